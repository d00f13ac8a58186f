//! How stories deliver events: `op webhook biller`, `a webhook own`, with `of=a`, `number=0` for one that is changed,
//! `events=lease.*,node.claimed` and `ed25519`; `op unhook 0`, `op disable 0 gone`, `op reconciled 0 from=1 to=2`.

use super::Story;
use super::line::Line;
use super::world::name;
use leasehold_engine::command::{Command, DisableSink, PutSink};
use leasehold_model::body::{AccountingReconciled, SinkDisabledCause, SinkSignature};
use leasehold_model::{Instant, SinkNo, WebAddress};

pub(super) const VERBS: &[&str] = &["webhook", "unhook", "disable", "reconciled"];

impl Story {
    pub(super) fn sinks(&self, verb: &str, line: &Line<'_>) -> Command {
        let option = |name: &str| line.options.get(name).copied();
        let first = line.words[0];
        let sink = || SinkNo(first.parse().expect("a number"));
        match verb {
            "webhook" => Command::PutSink(PutSink {
                sink: option("number").map(|number| SinkNo(number.parse().expect("a number"))),
                tenant: option("of").map(|tenant| self.tenant(tenant)),
                name: name(first),
                url: WebAddress::new("https://example.com/hook").expect("an address"),
                events: match option("many") {
                    Some(many) => (0..many.parse().expect("a number")).map(|n: u32| name(&format!("e.{n}"))).collect(),
                    None => option("events").unwrap_or("*").split(',').map(name).collect(),
                },
                signature: if line.flag("ed25519") { SinkSignature::Ed25519 } else { SinkSignature::Hmac },
            }),
            "unhook" => Command::DeleteSink(sink()),
            "disable" => {
                let cause = if line.words.get(1) == Some(&"gone") {
                    SinkDisabledCause::Gone
                } else {
                    SinkDisabledCause::Requested
                };
                Command::DisableSink(DisableSink { sink: sink(), cause })
            }
            _ => {
                let instant = |name: &str| Instant(option(name).expect("an instant").parse().expect("a number"));
                let (since, until) = (instant("from"), instant("to"));
                let done = AccountingReconciled {
                    sink: sink(),
                    since,
                    until,
                    due: 5,
                    acknowledged: 3,
                    pending: 1,
                    sent: 1,
                    failed: 0,
                };
                Command::RecordReconciliation(done)
            }
        }
    }
}
