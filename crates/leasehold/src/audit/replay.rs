//! `leasehold audit replay`: repeats a recorded decision, from the files alone.

use super::open;
use crate::cli::ReplayArgs;
use crate::journal_files::JournalFiles;
use crate::output::{print, print_json};
use crate::problem::{EXIT_NOT_VERIFIED, EXIT_OK, Problem};
use leasehold_engine::{Readers, Replayed, State, replay};
use leasehold_journal::Scanned;
use leasehold_model::{Body, Hash, Record};
use leasehold_view::Directory;
use serde_json::{Value, json};
use std::fmt::Write;
use std::ops::ControlFlow;

/// The records of a decision, each with its JSON, and the state before it.
struct Reading {
    state: Readers,
    sealed: Vec<(Record, Value)>,
    /// The first record of the command that the requested record belongs to.
    first: u64,
    scanned: Scanned,
}

/// Reads the journal up to a record, and the records that continue it.
fn read(files: &JournalFiles, sequence: u64) -> Result<Reading, Problem> {
    let mut state = Readers::default();
    let mut directory = Directory::new();
    let mut sealed = Vec::new();
    let mut first = 0;
    let scanned = files.scan(&mut |entry| {
        let unreadable = |error: &dyn std::fmt::Display| {
            Problem::not_verified("record_undecodable", format!("record {} cannot be read: {error}", entry.sequence))
                .advice("run leasehold audit verify")
        };
        let record = entry.raw.decode().map_err(|error| unreadable(&error))?;
        if entry.sequence <= sequence && !record.continues {
            first = entry.sequence;
        }
        if entry.sequence < sequence {
            let hash: &Hash = &entry.hash;
            directory.pass(&entry.raw, hash).map_err(|error| unreadable(&error))?;
            state.apply(&record).map_err(|error| unreadable(&error))?;
            return Ok(ControlFlow::Continue(()));
        }
        if entry.sequence > sequence && !record.continues {
            return Ok(ControlFlow::Break(()));
        }
        let shown = directory.show(&entry.raw, &entry.hash).map_err(|error| unreadable(&error))?;
        sealed.push((record, shown));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(Reading { state, sealed, first, scanned })
}

pub(super) fn run(args: &ReplayArgs) -> Result<u8, Problem> {
    let files = open(&args.journal)?;
    let mut reading = read(&files, args.sequence)?;
    if reading.scanned.first > 0 {
        return Err(Problem::refused("record_not_found", "the beginning of the journal is archived or deleted")
            .advice("if it is archived, give its directory with --archive: a replay needs all records from the first one on"));
    }
    if reading.sealed.is_empty() {
        let what = format!("there is no record {}: the journal has {} records", args.sequence, reading.scanned.size);
        return Err(Problem::refused("record_not_found", what).advice("sequence numbers start at 0"));
    }
    // A decision can only be replayed as a whole, from its first record.
    if reading.first < args.sequence {
        reading = read(&files, reading.first)?;
    }
    let Reading { state, sealed, .. } = reading;
    let (first, _) = sealed.first().expect("the decision that a record is part of was read before it").clone();
    let part = (first.sequence < args.sequence).then_some(args.sequence);
    let records: Vec<Record> = sealed.iter().map(|(record, _)| record.clone()).collect();
    let verdict = replay((*state).clone(), &records);
    if matches!(verdict, Replayed::NotADecision | Replayed::PartOf(_)) {
        let word = first.body.word();
        let what = match part {
            Some(part) => {
                format!("record {part} follows from record {} ({word}), which contains no decision", first.sequence)
            }
            None => format!("record {} ({word}) contains no decision", first.sequence),
        };
        return Err(Problem::refused("not_a_decision", what)
            .advice("grants, denials, placements and evictions can be replayed; see --help"));
    }
    if args.json {
        let word = match &verdict {
            Replayed::Same => "same",
            Replayed::Differs(_) => "differs",
            _ => "other_rules",
        };
        let shown: Vec<&Value> = sealed.iter().map(|(_, shown)| shown).collect();
        print_json(&json!({ "sequence": first.sequence, "part": part, "replayed": word, "sealed": shown }))?;
    } else {
        let part = part.map_or_else(String::new, |part| {
            format!("record {part} is part of the decision in record {}\n", first.sequence)
        });
        print(&(part + &text(&state, &first, sealed.len(), &verdict)))?;
    }
    match verdict {
        Replayed::Differs(_) => Ok(EXIT_NOT_VERIFIED),
        _ => Ok(EXIT_OK),
    }
}

fn text(state: &State, first: &Record, records: usize, verdict: &Replayed) -> String {
    let mut out = format!("record {}, {}, {}\n", first.sequence, first.body.word(), first.stamp);
    describe(state, first, &mut out);
    let last = first.sequence + records as u64 - 1;
    let span = if records > 1 { format!("records {} to {last}", first.sequence) } else { format!("record {last}") };
    let verdict = match verdict {
        Replayed::Same => {
            format!("Replayed from the {} records before it: the same result ({span}).\n", first.sequence)
        }
        Replayed::Differs(again) => {
            let mut text = format!("Replayed from the {} records before it: the result DIFFERS.\n", first.sequence);
            for record in again {
                writeln!(text, "  replayed: {:?}", record.body).expect("text grows");
            }
            text
        }
        Replayed::OtherRules(version) => {
            format!("The decision was made by rules version {version}, which this program does not contain.\n")
        }
        Replayed::NotADecision | Replayed::PartOf(_) => String::new(),
    };
    out + &verdict
}

/// Describes the decision.
fn describe(state: &State, record: &Record, out: &mut String) {
    let node = |node| state.node(node).map_or_else(String::new, |node| node.name.to_string());
    let tenant = |tenant| state.tenant(tenant).map_or_else(String::new, |tenant| tenant.settings.name.to_string());
    if let Body::PreemptionDecided(decided) = &record.body {
        let requester = state.allocation(decided.allocation);
        let who = requester.map_or_else(String::new, |found| format!(" of {}", tenant(found.tenant)));
        let places: Vec<String> = decided.places.iter().map(|place| node(place.node)).collect();
        let _ = writeln!(
            out,
            "  {}{who}, {}, finds no free capacity and evicts on {}:",
            decided.allocation,
            decided.priority,
            places.join(", ")
        );
        for lease in decided.victims.0.iter().filter_map(|lease| state.lease(*lease)) {
            let (of, on) = (tenant(lease.tenant), node(lease.node));
            let _ = writeln!(
                out,
                "    {} of {of} on {on}: {}, {} quanta, would have ended {}",
                lease.number, lease.priority, lease.quanta, lease.expires_at
            );
        }
    } else if let Body::ReservationTakenOver(taken) = &record.body {
        let requester = state.allocation(taken.allocation);
        let who = requester.map_or_else(String::new, |found| format!(" of {}", tenant(found.tenant)));
        let from: Vec<String> = taken.dropped.iter().map(ToString::to_string).collect();
        let _ = writeln!(
            out,
            "  {}{who}, {}, finds no free capacity, takes over what is reserved for {} and evicts {} leases",
            taken.allocation,
            taken.priority,
            from.join(", "),
            taken.victims.0.len()
        );
    } else if let Body::AllocationPlaced(placed) = &record.body {
        let _ = writeln!(out, "  {} begins attempt {}", placed.allocation, placed.attempt);
    } else if let Body::Granted(granted) = &record.body {
        let _ = writeln!(out, "  {} on {}", granted.first_lease, node(granted.node));
    }
}
