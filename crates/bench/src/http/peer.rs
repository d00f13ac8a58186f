//! The same requests, renewals and releases in PostgreSQL, including quota checks and events.

use crate::postgres::Postgres;
use std::fs;

const SCHEMA: &str = include_str!("postgres/schema.sql");
const OPERATION: &str = include_str!("postgres/operation.sql");

#[derive(Clone, Copy)]
pub(super) struct Figures {
    pub(super) clients: u32,
    pub(super) per_second: f64,
    pub(super) p99_us: f64,
}

/// The server with our schema.
pub(super) struct LeasePeer(Postgres);

impl LeasePeer {
    pub(super) fn start() -> Self {
        Self(Postgres::start())
    }

    /// One operation per transaction.
    pub(super) fn singles(&self, linked: bool, clients: u32) -> Figures {
        self.0.sql(SCHEMA, "bench");
        let script = self.0.write("operation.sql", OPERATION);
        let logs = self.0.folder("logs");
        let prefix = format!("--log-prefix={}", logs.join("log").display());
        let linking = format!("linked={}", u8::from(linked));
        let variables = ["-D", &linking, "-D", "phase=0", "-D", "lease=0"];
        let per_second = self.0.pgbench(clients, &script, &[&variables[..], &["-l", &prefix]].concat());
        let mut took_us: Vec<u64> = Vec::new();
        for log in fs::read_dir(&logs).expect("logs") {
            let text = fs::read_to_string(log.expect("a file").path()).expect("a log");
            took_us.extend(text.lines().filter_map(|line| line.split(' ').nth(2)?.parse::<u64>().ok()));
        }
        took_us.sort_unstable();
        let p99_us = took_us[took_us.len() * 99 / 100] as f64;
        let figures = Figures { clients, per_second, p99_us };
        let kind = if linked { "hash-linked" } else { "plain" };
        eprintln!("  PostgreSQL, {kind}, {clients} clients: {:.0}/s, p99 {p99_us:.0} us", figures.per_second);
        figures
    }

    /// A thousand plain operations per transaction.
    pub(super) fn batches(&self, clients: u32) -> f64 {
        self.0.sql(SCHEMA, "bench");
        let script =
            self.0.write("batch.sql", "\\set start random(0, 999)\nselect lease_batch(false, 1000, :start);\n");
        let per_second = self.0.pgbench(clients, &script, &[]) * 1000.0;
        eprintln!("  PostgreSQL, plain, 1000 per transaction, {clients} clients: {per_second:.0}/s");
        per_second
    }
}
