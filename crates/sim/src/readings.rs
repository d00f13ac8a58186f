//! Checks predictions for readers: quotes, and positions in the queue.

use crate::requests::lease_request;
use leasehold_engine::{Command, Engine, Quoted, Readers, Refusal, Request, Sealed, Sequences, State};
use leasehold_model::{Batch, Body, Record, Span};
use leasehold_oracle::Dice;

/// Requests that are quoted and then decided.
const REQUESTS: u64 = 4;

/// Quotes requests with a state that was folded from records, and decides them with the running engine.
pub(crate) fn check(engine: &Engine, folded: &mut State) -> Result<(), String> {
    let (mut engine, mut reader) = (engine.clone(), Readers::beside(folded));
    // Its own generator, so that the run of the seed does not change.
    let mut dice = Dice::new(reader.size());
    let now = reader.last_stamp().saturating_add(Span::from_secs(1));
    for _ in 0..REQUESTS {
        let mut batch = Batch::new(reader.size());
        while !engine.advance(now, &mut batch, 10_000) {}
        follow(&mut reader, &batch)?;
        check_places(&reader)?;
        let (identity, command, _) = lease_request(&reader, &mut dice);
        let Command::Request(request) = &command else { return Err("not a lease request".into()) };
        let quoted = reader.view(|view| view.quote(now, &identity, request));
        let mut batch = Batch::new(reader.size());
        let decided = engine.decide(now, &Request::new(identity.clone(), command.clone()), &mut batch);
        let records = follow(&mut reader, &batch)?;
        if !is_kept(&quoted, &decided, records.first().map(|record| &record.body)) {
            return Err(format!(
                "{identity:?} asks for {request:?}\n  quoted {quoted:?}\n  but {decided:?} {records:?}"
            ));
        }
    }
    Ok(())
}

fn follow(reader: &mut Readers, batch: &Batch) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    for frame in batch.frames() {
        let record = frame.map_err(|error| error.to_string())?.decode().map_err(|error| error.to_string())?;
        reader.apply(&record).map_err(|error| error.to_string())?;
        records.push(record);
    }
    Ok(records)
}

type Decided = Result<Sealed<Sequences>, Refusal>;

/// Whether the decision is the one that was quoted.
fn is_kept(quoted: &Result<Quoted, Refusal>, decided: &Decided, body: Option<&Body>) -> bool {
    match (quoted, decided) {
        (Err(quoted), Err(refusal)) => body.is_none() && quoted == refusal,
        (Err(_), Ok(_)) | (Ok(_), Err(_)) => false,
        (Ok(Quoted::Granted(quote)), Ok(_)) => matches!(body, Some(Body::Granted(granted))
            if (quote.node, quote.pool, quote.ttl, quote.capped_by, &quote.over_soft)
                == (granted.node, granted.pool, granted.ttl, granted.capped_by, &granted.over_soft)),
        (Ok(Quoted::Evicts(_)), Ok(_)) => matches!(body, Some(Body::AllocationSubmitted(_))),
        (Ok(Quoted::Denied(cause)), Ok(_)) => matches!(body, Some(Body::Denied(denied)) if *cause == denied.cause),
    }
}

/// Checks that the positions in the list of all are those of each allocation.
fn check_places(reader: &Readers) -> Result<(), String> {
    let now = reader.last_stamp();
    let places = reader.standings(now).in_order();
    for found in reader.allocations_after(None) {
        let place = reader.view(|view| view.waiting_for(found, now)).map(|waits| waits.position);
        if places.of(found.number) != place {
            return Err(format!(
                "{} has the position {place:?}, but {:?} in the list",
                found.number,
                places.of(found.number)
            ));
        }
    }
    Ok(())
}

/// Checks that an engine that was restored from a snapshot makes the same automatic decisions as the running one.
pub(crate) fn check_next_decisions(running: &Engine, restored: State) -> Result<(), String> {
    let decided = running.state();
    let now = decided.last_stamp();
    let decided = [running.clone(), Engine::new(restored)].map(|mut engine| {
        let mut batch = Batch::new(engine.state().size());
        for wait in [0, 7, 61, 200] {
            engine.advance(now.saturating_add(Span::from_secs(wait)), &mut batch, 10_000);
        }
        batch.frames().map(|frame| frame.ok().and_then(|frame| frame.decode().ok())).collect::<Vec<_>>()
    });
    let [running, restored] = decided;
    match running.iter().zip(&restored).find(|(a, b)| a != b) {
        Some((ours, theirs)) => Err(format!("a restored engine decides\n  {theirs:?}\n  instead of {ours:?}")),
        None if running.len() != restored.len() => {
            let (most, which) = if running.len() > restored.len() { (&running, "") } else { (&restored, "not ") };
            let first = &most[running.len().min(restored.len())];
            Err(format!("the running engine does {which}decide {first:?}; a restored one differs"))
        }
        None => Ok(()),
    }
}
