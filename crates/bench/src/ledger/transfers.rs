//! The same double entries in PostgreSQL: one call of a stored procedure for each transfer, and a thousand transfers in a
//! transaction.

use super::cluster::{CLASSES, PROJECTS};
use crate::outcome::Outcome;
use crate::postgres::Postgres;

const SCHEMA: &str = include_str!("transfers.sql");
const SINGLE: &str = "\\set n random(0, 1000000000)\nselect transfer(:n);\n";
const ROUNDS: usize = 3;

fn best(rounds: impl Iterator<Item = f64>) -> f64 {
    rounds.fold(0.0, f64::max)
}

/// Ours compared with transactions of a thousand transfers: with a call for each, and as one statement.
pub(super) fn against(ours: f64) -> [Outcome; 2] {
    let postgres = Postgres::start();
    let schema = SCHEMA.replace(":projects", &PROJECTS.to_string()).replace(":classes", &CLASSES.len().to_string());
    let run = |what: &str, script: &str, clients: u32, transfers: f64| {
        postgres.sql(&schema, "bench");
        let file = postgres.write("transfer.sql", script);
        let per_second = postgres.pgbench(clients, &file, &[]) * transfers;
        eprintln!("  PostgreSQL, {what}, {clients} clients: {per_second:.0} transfers/s");
        per_second
    };
    // Every transfer credits one of five accounts, whose rows are locked until the transaction ends: more clients wait.
    let singles = best((0..2).flat_map(|_| [8, 32]).map(|clients| run("one call each", SINGLE, clients, 1.0)));
    let batches = |what: &str, function: &str| {
        let script = format!("\\set n random(0, 1000000000)\nselect {function}(:n, 1000);\n");
        best((0..ROUNDS).map(|_| run(what, &script, 1, 1000.0)))
    };
    let called = batches("1000 calls in a transaction", "transfer_batch");
    let in_sets = batches("1000 in one statement", "transfer_set");
    drop(postgres);
    let note =
        format!("batches of 1,000 transfers, a call of the procedure for each; one in a transaction: {singles:.0}/s");
    let without_calls = "1,000 transfers, made up by the server itself, as one statement without calls";
    [
        Outcome::against("ledger.post_vs_postgres", ours, "1/s", called, ">= 5", 5.0).note(note),
        Outcome::against("ledger.post_vs_postgres_set", ours, "1/s", in_sets, "-", 0.0).note(without_calls),
    ]
}
