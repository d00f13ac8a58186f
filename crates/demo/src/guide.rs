//! What a person reads first: where everything is, and what to try.

use super::agents::log_of;
use super::cluster::{SANDBOX_GPUS, SANDBOX_NAME, SANDBOX_TENANT, TENANTS};
use super::history::Written;
use super::start::{ORIGIN, Opened};
use crate::data_directory::Place;
use crate::numbers::{decimal, thousands};
use crate::term::{Paint, Style, program, shell_word};
use leasehold_model::Span;
use std::path::{Path, PathBuf};

/// The token of the tenant that the one who watches may play.
pub(crate) fn tenant_token(place: &Place) -> PathBuf {
    place.data().join(format!("{}.token", TENANTS[SANDBOX_TENANT].name))
}

pub(crate) struct Guide<'a> {
    pub(crate) place: &'a Place,
    pub(crate) opened: &'a Opened,
    pub(crate) written: Option<Written>,
    pub(crate) length: Option<Span>,
    pub(crate) seed: u64,
}

fn word(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

impl Guide<'_> {
    pub(crate) fn text(&self, paint: Paint) -> String {
        let mut text = format!(
            "{}  40 nodes, 6 tenants and a daemon, on the real engine and a real sealed journal.\n\n",
            paint.bold("Leasehold demo")
        );
        for (label, value) in self.facts() {
            text.push_str(&format!("  {}  {value}\n", paint.dim(&format!("{label:<8}"))));
        }
        text.push_str(
            "\n  Look at holders that crash and expire on time, tenants that meet a hard, a soft and a burst limit, a\n  \
             revocation with grace, a machine that dies and one whose agent hangs until its capacity is fenced, a\n  \
             queue of gangs, in which a guaranteed one evicts scavengers now and then, and a machine that is claimed for\n  \
             sensitive work, given back and wiped.\n\n",
        );
        text.push_str(&format!("  {}\n", paint.dim("In another terminal:")));
        for (command, remark) in self.commands() {
            let command = paint.paint(Style::Cyan, &command);
            let remark = if remark.is_empty() { String::new() } else { format!("   {}", paint.dim(remark)) };
            text.push_str(&format!("    {command}{remark}\n"));
        }
        text + "\n"
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let (place, opened) = (self.place, self.opened);
        let url = &opened.url;
        let taken = if opened.port_taken { "   (port 8420 is taken, so it is another one)" } else { "" };
        let kept = if place.temporary { "   (temporary: delete it when you are done)" } else { "" };
        let tenant = TENANTS[SANDBOX_TENANT].name;
        let stops = match self.length {
            None => "when you press Ctrl-C".to_owned(),
            Some(length) => format!("after {length}, or when you press Ctrl-C"),
        };
        let mut facts = vec![
            ("daemon", format!("{url}{taken}")),
            ("docs", format!("{url}/api/docs")),
            ("operator", format!("{}   (its token)", word(&place.operator_token()))),
            ("tenant", format!("{}   (a token of {tenant})", word(&tenant_token(place)))),
            ("folder", format!("{}{kept}", word(place.data()))),
            ("agents", format!("12 processes; {} is the log of one", word(&log_of(place, "h100-01")))),
            ("origin", format!("{ORIGIN}   (the name it signs under)")),
            ("stops", format!("{stops}   (seed {})", self.seed)),
        ];
        match (&self.written, &opened.recovered) {
            (Some(written), _) => facts.push(("history", history(written))),
            (None, Some(_)) => facts.extend(restart(opened)),
            (None, None) => {}
        }
        facts
    }

    fn commands(&self) -> Vec<(String, &'static str)> {
        let (me, place, url) = (program(), self.place, &self.opened.url);
        let (data, trust, operator) = (word(place.data()), word(&place.trust()), word(&place.operator_token()));
        let token = word(&tenant_token(place));
        let gpus = |n: u64| format!("{me} lease request --class gpu-l40s={n} --ttl 10m --project {SANDBOX_NAME}");
        vec![
            (format!("export LEASEHOLD_URL={url} LEASEHOLD_TOKEN_FILE={token}"), ""),
            (gpus(SANDBOX_GPUS / 2), "granted"),
            (gpus(SANDBOX_GPUS), "refused: used, requested, limit"),
            (format!("{me} lease list --project {SANDBOX_NAME}"), "what the tenant holds there"),
            (
                format!(
                    "{me} alloc submit --class gpu-l40s=1 --replicas 2 --walltime 10m --project {SANDBOX_NAME} --wait"
                ),
                "a gang: all or none",
            ),
            (format!("{me} alloc list --token-file {operator}"), "the queue; `alloc show` says why one waits"),
            (format!("{me} usage --by project,class --from 7d"), "what it held in the week, exactly"),
            (format!("{me} cost --by project --bucket day --from 7d"), "and what that cost"),
            (
                format!("{me} waste --from 7d --token-file {operator}"),
                "what nobody used, and what it could have earned",
            ),
            (format!("{me} lease revoke LEASE --grace 30s --token-file {operator}"), "as the operator"),
            (format!("{me} events --follow --kind lease.denied --token-file {operator}"), "everybody's"),
            (format!("curl -s -H \"Authorization: Bearer $(cat {token})\" '{url}/api/v1/leases?limit=2'"), ""),
            (format!("{me} audit verify {data} --trust {trust}"), "yes, or what is wrong"),
            (format!("kill -9 {}", std::process::id()), "then start it again on the folder: nothing is lost"),
            (format!("{me} demo --data {data}"), ""),
        ]
    }
}

fn history(written: &Written) -> String {
    let ms = u128::from(u64::try_from(written.took.as_millis()).unwrap_or(u64::MAX));
    let from = written.from.to_string();
    let from = from.get(..10).unwrap_or(&from);
    format!(
        "{} records since {from}, made up in {} s through the same engine",
        thousands(written.records),
        decimal(ms, 1000, 1)
    )
}

fn restart(opened: &Opened) -> Vec<(&'static str, String)> {
    let Some(found) = &opened.recovered else { return Vec::new() };
    let from = match opened.snapshot_size {
        0 => String::new(),
        size => format!(" after a snapshot of {}", thousands(size)),
    };
    let mut lines = vec![(
        "restart",
        format!(
            "{} records were here; {} folded{from}, {} beyond the last checkpoint verified",
            thousands(found.size),
            thousands(opened.replayed),
            thousands(found.rolled_forward)
        ),
    )];
    if let Some(torn) = found.torn {
        let bytes = torn.bytes;
        lines.push(("", format!("the torn end of a write ({bytes} bytes) was cut off; nobody had been told of it")));
    }
    lines
}
