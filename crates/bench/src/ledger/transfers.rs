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

/// Ours compared with transactions of a thousand transfers.
pub(super) fn against(ours: f64) -> Outcome {
    let postgres = Postgres::start();
    let schema = SCHEMA.replace(":projects", &PROJECTS.to_string()).replace(":classes", &CLASSES.len().to_string());
    let run = |what: &str, script: &str, clients: u32, transfers: f64| {
        postgres.sql(&schema, "bench");
        let file = postgres.write("transfer.sql", script);
        let per_second = postgres.pgbench(clients, &file, &[]) * transfers;
        eprintln!("  PostgreSQL, {what}, {clients} clients: {per_second:.0} transfers/s");
        per_second
    };
    let singles = best((0..ROUNDS).flat_map(|_| [8, 32]).map(|clients| run("one call each", SINGLE, clients, 1.0)));
    let batch = |function: &str| format!("\\set n random(0, 1000000000)\nselect {function}(:n, 1000);\n");
    let calls = batch("transfer_batch");
    let called = best((0..ROUNDS).map(|_| run("1000 calls in a transaction", &calls, 1, 1000.0)));
    let sets = batch("transfer_set");
    let in_sets = best((0..ROUNDS).map(|_| run("1000 in one statement", &sets, 1, 1000.0)));
    drop(postgres);
    let note = format!(
        "entries posted, beside 1,000 calls of the procedure in a transaction; 1,000 transfers as one statement: \
         {in_sets:.0}/s; one call a transaction: {singles:.0}/s"
    );
    Outcome::against("ledger.post_vs_postgres", ours, "1/s", called, ">= 5", 5.0).note(note)
}
