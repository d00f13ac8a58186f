//! `cargo xtask sim`: runs one seed of the simulator again, or many until one fails.

use clap::Args;
use leasehold_sim::{Tally, run_seeds};
use leasehold_terminal::numbers::thousands;
use leasehold_terminal::problem::{EXIT_OK, Problem};
use leasehold_terminal::{output, term};
use serde_json::json;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo xtask sim --seed 4711                 one seed; the run is always the same
  cargo xtask sim --seed 0 --seeds 10000      many seeds, until one fails")]
pub(crate) struct SimArgs {
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Number of consecutive seeds
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: u64,
    /// Steps per seed
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) steps: u32,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &SimArgs) -> Result<u8, Problem> {
    let show = term::drawable().is_some() && args.seeds > 1;
    let mut done = 0u64;
    let outcome = run_seeds(args.seed, args.seeds, args.steps, |seed| {
        done += 1;
        if show && done.is_multiple_of(50) {
            eprint!("\r{} of {} seeds, now at {seed} ", thousands(done), thousands(args.seeds));
        }
    });
    if show {
        eprint!("\r\x1b[K");
    }
    match outcome {
        Ok(tally) => {
            if args.json {
                output::print_json(&as_json(args, &tally))?;
            } else {
                output::print(&as_text(args, &tally))?;
            }
            Ok(EXIT_OK)
        }
        Err(failure) => {
            let again = format!("run it again with: cargo xtask sim --seed {} --steps {}", failure.seed, failure.steps);
            Err(Problem::not_verified("seed_failed", failure.to_string()).advice(again))
        }
    }
}

fn as_json(args: &SimArgs, tally: &Tally) -> serde_json::Value {
    let kinds: serde_json::Map<String, serde_json::Value> =
        tally.kinds.iter().map(|(kind, count)| ((*kind).to_owned(), json!(count))).collect();
    json!({
        "first_seed": args.seed, "seeds": tally.seeds, "steps": args.steps, "ok": true,
        "records": tally.records, "requests": tally.requests, "refused": tally.refused,
        "repeated": tally.repeated, "crashes": tally.crashes, "clean_stops": tally.clean_stops,
        "snapshots": tally.snapshots, "journal_full": tally.full, "clock_jumps": tally.clock_jumps,
        "bits_flipped": tally.flips, "records_by_kind": kinds,
    })
}

fn as_text(args: &SimArgs, tally: &Tally) -> String {
    let last = args.seed + args.seeds - 1;
    let seeds = if args.seeds == 1 { format!("seed {last}") } else { format!("seeds {} to {last}", args.seed) };
    let mut text = format!("{seeds}: engine and oracle agree on every record\n\n");
    let lines = [
        ("requests", tally.requests),
        ("  refused", tally.refused),
        ("  repeated with the same key", tally.repeated),
        ("  rejected, disk full", tally.full),
        ("records sealed", tally.records),
        ("crashes survived", tally.crashes),
        ("clean stops", tally.clean_stops),
        ("snapshots taken", tally.snapshots),
        ("clock jumps", tally.clock_jumps),
        ("flipped bits, all detected", tally.flips),
    ];
    for (what, count) in lines {
        text.push_str(&format!("{what:<34}{:>14}\n", thousands(count)));
    }
    text.push('\n');
    for (kind, count) in &tally.kinds {
        text.push_str(&format!("{kind:<34}{:>14}\n", thousands(*count)));
    }
    text
}
