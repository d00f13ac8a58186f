//! Random commands about sinks, from dice of their own: other draws would change what every kept seed does.

use crate::apps::who;
use crate::requests::small;
use leasehold_engine::command::{DisableSink, PutSink};
use leasehold_engine::{Command, State};
use leasehold_model::body::{AccountingReconciled, SinkDisabledCause, SinkSignature};
use leasehold_model::limits::SINK_EVENTS_MAX;
use leasehold_model::{Identity, Instant, Name, SinkNo, TenantNo, WebAddress};
use leasehold_oracle::Dice;

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// A command about sinks, or one that ends some, at times.
pub(crate) fn any(state: &State, now: Instant) -> Option<(Identity, Command)> {
    let mut dice = Dice::new(now.0.rotate_left(29) ^ state.size() << 23 ^ 0x51_4b);
    if !dice.one_in(40) {
        return None;
    }
    let dice = &mut dice;
    let known: Vec<SinkNo> = state.sinks().map(|sink| sink.put.sink).collect();
    let sink = if known.is_empty() || dice.one_in(6) { SinkNo(small(dice, 6)) } else { *dice.pick(&known) };
    let owner = state.sink(sink).and_then(|found| found.put.tenant);
    let command = match dice.below(12) {
        0..6 => put(None, None, dice),
        6..8 => put(Some(sink), owner.filter(|_| !dice.one_in(6)), dice),
        8 => Command::DeleteSink(sink),
        9 => Command::DisableSink(DisableSink { sink, cause: *dice.pick(SinkDisabledCause::ALL) }),
        10 => {
            let (since, until) = (Instant(u64::from(small(dice, 3))), Instant(u64::from(small(dice, 3))));
            let done =
                AccountingReconciled { sink, since, until, due: 3, acknowledged: 1, pending: 1, sent: 1, failed: 0 };
            Command::RecordReconciliation(done)
        }
        _ => Command::DeleteTenant(owner?),
    };
    let by_operator = matches!(command, Command::DeleteTenant(_)) || dice.one_in(3);
    let identity = if by_operator { Identity::default() } else { who(owner.unwrap_or(TenantNo(small(dice, 4))), dice) };
    Some((identity, command))
}

fn put(sink: Option<SinkNo>, tenant: Option<TenantNo>, dice: &mut Dice) -> Command {
    let events = match dice.below(16) {
        0 => Vec::new(),
        1 => (0..=SINK_EVENTS_MAX).map(|number| name(&format!("event.{number}"))).collect(),
        2 => vec![name("lease.*"), name("allocation.started"), name("lease.*")],
        _ => vec![name("*")],
    };
    Command::PutSink(PutSink {
        sink,
        tenant: if dice.one_in(3) { Some(TenantNo(small(dice, 4))) } else { tenant },
        name: name(&format!("hook-{}", small(dice, 4))),
        url: WebAddress::new("https://example.com/hook").expect("an address"),
        events,
        signature: *dice.pick(SinkSignature::ALL),
    })
}
