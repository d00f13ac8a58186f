//! `leasehold events` and `leasehold audit records`.

use super::failure::Failed;
use super::interrupt::Interrupt;
use super::record_lines::{print_record, print_some};
use super::session::Session;
use crate::cli::events::{EventsArgs, RecordsArgs};
use crate::term;
use crate::time_format;
use leasehold_client::EventFilter;
use leasehold_model::Span;

/// How many records are shown without `--after`.
const LAST: u64 = 100;

pub(super) async fn run(session: &Session, args: &EventsArgs) -> Result<(), Failed> {
    if args.follow {
        return follow(session, args).await;
    }
    let after = match args.after {
        Some(after) => Some(after),
        None => session.client.about().await?.size.checked_sub(LAST + 1),
    };
    let args = RecordsArgs { after, tenant: args.tenant.clone(), kind: args.kind.clone(), limit: None };
    records(session, &args).await
}

pub(super) async fn records(session: &Session, args: &RecordsArgs) -> Result<(), Failed> {
    let call = session
        .client
        .list_records()
        .maybe("after", args.after)
        .maybe("tenant", args.tenant.as_ref())
        .maybe("kind", args.kind.as_ref());
    print_some(session, call, args.limit.unwrap_or(u64::MAX)).await
}

async fn follow(session: &Session, args: &EventsArgs) -> Result<(), Failed> {
    let filter = EventFilter {
        after: args.after,
        tenant: args.tenant.clone(),
        kind: args.kind.clone(),
        node: args.node.clone(),
        lease: args.lease.clone(),
    };
    let on_break = |error: &leasehold_client::Error, pause: std::time::Duration| {
        let pause = Span(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX));
        let what = error.to_string();
        let what = what.split_once("; ").map_or(what.as_str(), |(what, _)| what);
        term::say(&format!("leasehold: {what}; connecting again in {}\n", time_format::span(pause)));
    };
    let mut interrupt = Interrupt::listen()?;
    let mut events = session.client.events(&filter)?.on_break(on_break);
    loop {
        tokio::select! {
            event = events.next() => {
                if print_record(session, &event?.record)?.is_break() {
                    return Ok(());
                }
            }
            () = interrupt.wait() => return Ok(()),
        }
    }
}
