//! The first output of the demo: addresses, files, and commands to try.

use super::agents::log_of;
use super::cluster::{SANDBOX_GPUS, SANDBOX_NAME, SANDBOX_TENANT, TENANTS};
use super::history::Written;
use super::start::{ORIGIN, Opened};
use crate::data_directory::DemoDirectory;
use crate::numbers::{decimal, thousands};
use crate::term::{Paint, Style, program, shell_word};
use leasehold_model::Span;
use std::path::{Path, PathBuf};

/// The file with the token of the tenant that the user can act as.
pub(crate) fn tenant_token(directory: &DemoDirectory) -> PathBuf {
    directory.data().join(format!("{}.token", TENANTS[SANDBOX_TENANT].name))
}

pub(crate) struct Guide<'a> {
    pub(crate) directory: &'a DemoDirectory,
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
            "{}  41 nodes, 6 tenants and 12 agents, run by the real daemon on a real journal.\n\n",
            paint.bold("Leasehold demo")
        );
        for (label, value) in self.facts() {
            text.push_str(&format!("  {}  {value}\n", paint.dim(&format!("{label:<8}"))));
        }
        text.push_str(
            "\n  You will see leases that expire after their holder crashed, tenants that reach a hard, a soft and a burst\n  \
             quota, a revocation with grace, a node that loses power, an agent that hangs until the capacity of its\n  \
             node is fenced, a queue of gangs in which guaranteed work evicts scavengers, and a node that is claimed\n  \
             for sensitive work, released and wiped.\n\n",
        );
        text.push_str(&format!("  {}\n", paint.dim("In another terminal:")));
        for (command, remark) in self.commands() {
            let command = paint.paint(Style::Cyan, &command);
            let remark =
                if remark.is_empty() { String::new() } else { format!("   {}", paint.dim(&format!("# {remark}"))) };
            text.push_str(&format!("    {command}{remark}\n"));
        }
        text + "\n"
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let (directory, opened) = (self.directory, self.opened);
        let url = &opened.url;
        let taken = if opened.port_taken { "   (port 8420 is in use)" } else { "" };
        let kept = if directory.temporary { "   (temporary; delete it when you are done)" } else { "" };
        let tenant = TENANTS[SANDBOX_TENANT].name;
        let stops = match self.length {
            None => "on Ctrl-C".to_owned(),
            Some(length) => format!("after {length}, or on Ctrl-C"),
        };
        let mut facts = vec![
            ("daemon", format!("{url}{taken}")),
            ("API docs", format!("{url}/api/docs")),
            ("operator", format!("{}   (operator token)", word(&directory.operator_token()))),
            ("tenant", format!("{}   (token of the tenant {tenant})", word(&tenant_token(directory)))),
            ("data", format!("{}{kept}", word(directory.data()))),
            ("agents", format!("12 processes   (log of one: {})", word(&log_of(directory, "h100-01")))),
            ("origin", format!("{ORIGIN}   (name under which checkpoints are signed)")),
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
        let (me, directory, url) = (program(), self.directory, &self.opened.url);
        let (data, trust, operator) =
            (word(directory.data()), word(&directory.trust()), word(&directory.operator_token()));
        let token = word(&tenant_token(directory));
        let gpus = |n: u64| format!("{me} lease request --class gpu-l40s={n} --ttl 10m --project {SANDBOX_NAME}");
        vec![
            (format!("export LEASEHOLD_URL={url} LEASEHOLD_TOKEN_FILE={token}"), ""),
            (gpus(SANDBOX_GPUS / 2), "granted"),
            (gpus(SANDBOX_GPUS), "denied, with used, requested and limit"),
            (format!("{me} lease list --project {SANDBOX_NAME}"), "the leases of this project"),
            (
                format!(
                    "{me} alloc submit --class gpu-l40s=1 --replicas 2 --walltime 10m --project {SANDBOX_NAME} --wait"
                ),
                "a gang: both replicas start, or none",
            ),
            (format!("{me} alloc list --token-file {operator}"), "the queue; `alloc show` explains why one waits"),
            (format!("{me} usage --by project,class --from 7d"), "usage of the last week"),
            (format!("{me} cost --by project --bucket day --from 7d"), "cost by day"),
            (
                format!("{me} invoice draft --tenant {} --token-file {operator}", TENANTS[SANDBOX_TENANT].name),
                "the bill so far, from posted hours",
            ),
            (
                format!("{me} ledger entries --kind usage --token-file {operator}"),
                "`ledger explain ENTRY` shows where one comes from",
            ),
            (format!("{me} waste --from 7d --token-file {operator}"), "unused capacity, and its price"),
            (
                format!("{me} lease revoke LEASE --grace 30s --token-file {operator}"),
                "as the operator; LEASE is an ID from the list",
            ),
            (
                format!("{me} events --follow --kind lease.denied --token-file {operator}"),
                "denials of all tenants, live",
            ),
            (format!("curl -s -H \"Authorization: Bearer $(cat {token})\" '{url}/api/v1/leases?limit=2'"), ""),
            (format!("{me} audit verify {data} --trust {trust}"), "verifies the journal"),
            (format!("kill -9 {}", std::process::id()), "kills the demo; nothing is lost"),
            (format!("{me} demo --data {data}"), "starts it again, with the same state"),
        ]
    }
}

fn history(written: &Written) -> String {
    let ms = u128::from(u64::try_from(written.took.as_millis()).unwrap_or(u64::MAX));
    let from = written.from.to_string();
    let from = from.get(..10).unwrap_or(&from);
    format!(
        "{} records since {from}, generated by the engine in {} s",
        thousands(written.records),
        decimal(ms, 1000, 1)
    )
}

fn restart(opened: &Opened) -> Vec<(&'static str, String)> {
    let Some(found) = &opened.recovered else { return Vec::new() };
    let from = match opened.snapshot_size {
        0 => String::new(),
        size => format!(" after the snapshot at record {}", thousands(size)),
    };
    let mut lines = vec![(
        "restart",
        format!(
            "{} records found; {} replayed{from}; {} after the last checkpoint, verified",
            thousands(found.size),
            thousands(opened.replayed),
            thousands(found.rolled_forward)
        ),
    )];
    if let Some(torn) = found.torn {
        let bytes = torn.bytes;
        lines.push((
            "",
            format!("removed an incomplete write of {bytes} bytes at the end; it had not been acknowledged"),
        ));
    }
    lines
}
