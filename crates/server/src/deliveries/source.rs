//! The events of the journal: records are read from its files, and described with what the books know.

use super::accounting::Payloads;
use super::counts::DueCounts;
use super::gathered::{Gathered, Unknown};
use super::made::{About, Kinds, Work, made, may_make};
use crate::app::App;
use leasehold_api::event_type::{EVENT_TYPES, EventAbout};
use leasehold_books::Books;
use leasehold_deliver::{Event, Page, SinkSpec, Source, SourceError};
use leasehold_journal::ReadError;
use leasehold_model::body::Body;
use leasehold_model::id::IdKind;
use leasehold_model::{AllocationNo, Instant, NodeNo, PublicId, RawRecord, Record, Span};
use leasehold_view::Directory;
use serde_json::Value;
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Records that one page looks at, and leases whose facts it keeps.
const RECORDS_PER_PAGE: u64 = 20_000;
const LEASES_PER_PAGE: usize = 8_192;
/// About how many events are counted at once.
const COUNTED_AT_ONCE: u64 = 4_096;
/// How long a page waits for the books.
const PATIENCE: Duration = Duration::from_secs(10);
/// A wipe is confirmed or fails within this time of the release, unless the daemon was stopped meanwhile.
const WIPE_TIME: Span = Span::from_secs(35 * 60);

/// The events of a daemon's journal.
pub(super) struct JournalEvents {
    pub(super) app: Weak<App>,
    pub(super) counts: Arc<DueCounts>,
}

fn unread(why: impl ToString) -> SourceError {
    SourceError::Later(why.to_string())
}

/// Looks something up in the books. They cannot grow meanwhile, but nothing else waits.
fn informed<T, E: ToString>(app: &App, look: impl FnOnce(&Books) -> Result<T, E>) -> Result<T, SourceError> {
    app.books.with_books(|books| Ok(look(books).map_err(unread))).map_err(unread)?
}

/// Events with the same key are delivered in order: those of an allocation, of a lease without one, of a node.
fn order_of(record: &Record, about: About, allocation: Option<AllocationNo>, node: Option<NodeNo>) -> String {
    let of_record = || match (&record.body, record.identity.tenant) {
        (Body::AllocationSubmitted(_) | Body::AllocationDenied(_), _) => AllocationNo(record.sequence).to_string(),
        (body, Some(tenant)) => format!("{}/{tenant}", body.word()),
        (body, None) => body.word().to_owned(),
    };
    match (about, allocation, node) {
        (
            About::Started(Work::Lease(lease))
            | About::Completed(Work::Lease(lease))
            | About::Corrected(Work::Lease(lease)),
            _,
            _,
        ) => lease.to_string(),
        (About::NodeClaimed(node), _, _) => node.to_string(),
        (_, Some(allocation), _) => allocation.to_string(),
        (About::Lease(_, lease), None, _) => lease.to_string(),
        (_, None, Some(node)) => node.to_string(),
        (_, None, None) => of_record(),
    }
}

/// The allocation and the node that the JSON of a record or of a lease event names.
fn names_of(data: &Value, body: &Body) -> (Option<AllocationNo>, Option<NodeNo>) {
    let allocation = data["allocation_id"].as_str().or(data["body"]["allocation_id"].as_str());
    let allocation = allocation.and_then(|text| text.strip_prefix("alloc-")?.parse().ok().map(AllocationNo));
    let node = crate::records::node_of(body);
    (allocation, node)
}

impl JournalEvents {
    fn app(&self) -> Result<Arc<App>, SourceError> {
        self.app.upgrade().ok_or_else(|| unread("the daemon is stopping"))
    }

    /// Waits until the books have everything that is durable. Returns how much that is.
    fn books_at_head(app: &App) -> Result<u64, SourceError> {
        let head = app.journal.head().size;
        if !app.books.wait_for(head, PATIENCE) {
            return Err(unread("the books are behind"));
        }
        Ok(head)
    }

    /// Visits the records from `from` up to `to` that may make events for the sink, until the visitor has enough. Returns
    /// where to go on.
    fn visit(
        app: &App,
        sink: &SinkSpec,
        (from, to): (u64, u64),
        mut visit: impl FnMut(&Record, &RawRecord<'_>, u64) -> Result<ControlFlow<()>, SourceError>,
    ) -> Result<u64, SourceError> {
        let wanted = Kinds::named_by(&sink.events);
        let (mut next, mut failed) = (from, None);
        let scanned = app.journal.scan(from, &mut |sequence, raw| {
            if sequence >= to {
                return ControlFlow::Break(());
            }
            let visited = match raw.decode() {
                Err(_) => Err(unread(format!("record {sequence} cannot be decoded"))),
                Ok(record) if sink.tenant.is_some() && record.identity.tenant != sink.tenant => {
                    Ok(ControlFlow::Continue(()))
                }
                Ok(record) => match may_make(&record.body, wanted) {
                    0 => Ok(ControlFlow::Continue(())),
                    events => visit(&record, &raw, events),
                },
            };
            match visited {
                Ok(flow) => {
                    next = sequence + 1;
                    flow
                }
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        match scanned {
            // The page ends there, and the next one begins after them.
            Err(ReadError::Archived { .. }) if next > from => return Ok(next),
            Err(ReadError::Archived { .. }) => return Err(SourceError::Gone { until: at_hand(app, from)? }),
            scanned => scanned.map_err(unread)?,
        }
        failed.map_or(Ok(next), Err)
    }

    /// What the events of the next records are made from: of as many as have about `most` events. Returns where they end,
    /// and how many events of them were counted as due.
    fn gather(app: &App, sink: &SinkSpec, window: (u64, u64), most: u64) -> Result<(Gathered, u64, u64), SourceError> {
        let wanted = Kinds::named_by(&sink.events);
        let (mut gathered, mut events) = (Gathered::default(), 0);
        let end = Self::visit(app, sink, window, |record, _, some| {
            let leases = informed(app, |books| gathered.note(record, wanted, |number| books.allocation(number)))?;
            events += some;
            let is_enough = events >= most || leases >= LEASES_PER_PAGE;
            Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        informed(app, |books| gathered.look_up(books))?;
        Ok((gathered, end, events))
    }

    /// The events of one record that the sink wants.
    fn events_of(
        app: &App,
        gathered: &Gathered,
        directory: &mut Directory,
        wanted: Kinds,
        record: &Record,
        raw: &RawRecord<'_>,
    ) -> Result<Vec<Event>, SourceError> {
        let all = made(record, wanted, gathered).map_err(unread)?;
        let is_wanted = |about: fn(About) -> bool| all.iter().any(|one| wanted.has(one.kind) && about(one.about));
        let mut shown = Value::Null;
        if is_wanted(|about| matches!(about, About::Lease(..))) {
            informed(app, |books| gathered.teach(directory, books, record))?;
        }
        if is_wanted(|about| matches!(about, About::Lease(..) | About::Record | About::QuotaUpdated)) {
            shown = directory.show_known(raw, &raw.hash()).map_err(|_| unread("a record cannot be decoded"))?;
        }
        let is_release = is_wanted(|about| about == About::NodeReleased);
        let released_at = if let (Body::NodeWiped(wiped), true) = (&record.body, is_release) {
            released_at(app, record, wiped.node, wiped.claim)?
        } else if let (Body::NodeQuarantined(gone), true) = (&record.body, is_release) {
            released_at(app, record, gone.node, gone.claim)?
        } else {
            None
        };
        let payload = |about| {
            informed(app, |books| {
                let facts = Payloads { app, books, gathered };
                Ok::<_, Unknown>(match about {
                    About::Started(work) => Some(facts.started(record, work)?),
                    About::Completed(work) => Some(facts.completed(record, work)?),
                    About::Corrected(work) => Some(facts.corrected(record, work)?),
                    About::Checkpointed(of) => facts.checkpointed(record, of)?,
                    About::NodeClaimed(node) => facts.claimed(record, node),
                    About::NodeReleased => facts.released(record, released_at),
                    About::Lease(..) | About::Record | About::QuotaUpdated => None,
                })
            })
        };
        let mut events = Vec::new();
        let mut accounting = 0_u16;
        for (position, one) in (0_u16..).zip(all) {
            let is_accounting = EVENT_TYPES[one.kind].about == EventAbout::Accounting;
            let place = accounting;
            accounting += u16::from(is_accounting);
            if !wanted.has(one.kind) {
                continue;
            }
            let data = match one.about {
                About::Lease(at, _) => Some(shown["lease_events"][usize::from(at)].take()),
                About::Record | About::QuotaUpdated => Some(shown.clone()),
                about => payload(about)?,
            };
            let data = data.ok_or_else(|| unread(format!("record {} is not what its kind says", record.sequence)))?;
            let id = match one.about {
                About::Lease(at, _) => PublicId::new(&app.genesis, IdKind::LeaseEvent, at, record.sequence),
                About::Record => PublicId::new(&app.genesis, IdKind::Record, 0, record.sequence),
                _ => PublicId::new(&app.genesis, IdKind::AccountingEvent, place, record.sequence),
            };
            let (allocation, node) = names_of(&data, &record.body);
            let order = order_of(record, one.about, allocation, node);
            events.push(Event {
                sequence: record.sequence,
                position,
                id: id.to_string(),
                kind: EVENT_TYPES[one.kind].word.to_owned(),
                subject: order.clone(),
                order,
                time: record.effective_at,
                data,
            });
        }
        directory.forget_closed(record);
        Ok(events)
    }
}

/// When a node was released that is wiped or quarantined now.
fn released_at(app: &App, record: &Record, node: NodeNo, claim: Option<u64>) -> Result<Option<Instant>, SourceError> {
    let claimed = claim.unwrap_or(0);
    let recent = sequence_at(app, Instant(record.stamp.0.saturating_sub(WIPE_TIME.0)))?.max(claimed);
    match last_release(app, node, recent..record.sequence)? {
        // The daemon was stopped meanwhile. What was archived or deleted is not known.
        None if claim.is_some() => last_release(app, node, at_hand(app, claimed)?.min(recent)..recent),
        found => Ok(found),
    }
}

/// The last release of a node in these records.
fn last_release(app: &App, node: NodeNo, records: Range<u64>) -> Result<Option<Instant>, SourceError> {
    let mut found = None;
    let scanned = app.journal.scan(records.start, &mut |sequence, raw| {
        if sequence >= records.end {
            return ControlFlow::Break(());
        }
        if let Ok(record) = raw.decode()
            && let Body::NodesReleased(released) = &record.body
            && released.nodes.0.contains(&node)
        {
            found = Some(record.effective_at);
        }
        ControlFlow::Continue(())
    });
    scanned.map_err(unread)?;
    Ok(found)
}

/// The first record at hand from this one on.
fn at_hand(app: &App, from: u64) -> Result<u64, SourceError> {
    let (mut low, mut high) = (from, app.journal.head().size.max(from));
    while low < high {
        let middle = low + (high - low) / 2;
        match app.journal.scan(middle, &mut |_, _| ControlFlow::Break(())) {
            Err(ReadError::Archived { .. }) => low = middle + 1,
            scanned => {
                scanned.map_err(unread)?;
                high = middle;
            }
        }
    }
    Ok(low)
}

/// The first record at hand that is stamped at or after an instant. Stamps never go backwards.
fn sequence_at(app: &App, at: Instant) -> Result<u64, SourceError> {
    let (mut low, mut high) = (0, app.journal.head().size);
    while low < high {
        let middle = low + (high - low) / 2;
        let mut stamp = None;
        let scanned = app.journal.scan(middle, &mut |_, raw| {
            stamp = raw.decode().ok().map(|record| record.stamp);
            ControlFlow::Break(())
        });
        match scanned {
            // The beginning was moved away or deleted: what is asked for is the first record that is there.
            Err(ReadError::Archived { .. }) => {
                low = middle + 1;
                continue;
            }
            scanned => scanned.map_err(unread)?,
        }
        match stamp.ok_or_else(|| unread(format!("record {middle} cannot be decoded")))? {
            stamp if stamp < at => low = middle + 1,
            _ => high = middle,
        }
    }
    Ok(low)
}

impl Source for JournalEvents {
    fn head(&self) -> u64 {
        self.app.upgrade().map_or(0, |app| app.journal.head().size)
    }

    fn read(&self, sink: &SinkSpec, from: u64, most: usize) -> Result<Page, SourceError> {
        let app = self.app()?;
        let head = Self::books_at_head(&app)?;
        let wanted = Kinds::named_by(&sink.events);
        let to = head.min(from.saturating_add(RECORDS_PER_PAGE));
        let (gathered, end, counted) = Self::gather(&app, sink, (from, to), most as u64)?;
        let (mut directory, mut events) = (app.live.names(), Vec::new());
        let next = Self::visit(&app, sink, (from, end), |record, raw, _| {
            events.extend(Self::events_of(&app, &gathered, &mut directory, wanted, record, raw)?);
            Ok(ControlFlow::Continue(()))
        })?;
        let overcounted = counted.saturating_sub(events.len() as u64);
        Ok(Page { events, next, overcounted })
    }

    fn count(&self, sink: &SinkSpec, from: u64, to: u64) -> Result<u64, SourceError> {
        let app = self.app()?;
        let to = to.min(Self::books_at_head(&app)?);
        let wanted = Kinds::named_by(&sink.events);
        let (mut count, mut at) = (0, from);
        while at < to {
            let (gathered, end, _) = match Self::gather(&app, sink, (at, to), COUNTED_AT_ONCE) {
                Err(SourceError::Gone { until }) => {
                    at = until;
                    continue;
                }
                gathered => gathered?,
            };
            Self::visit(&app, sink, (at, end), |record, _, _| {
                let all = made(record, wanted, &gathered).map_err(unread)?;
                count += all.iter().filter(|one| wanted.has(one.kind)).count() as u64;
                Ok(ControlFlow::Continue(()))
            })?;
            if end <= at {
                return Err(unread(format!("nothing was read at record {at}")));
            }
            at = end;
        }
        Ok(count)
    }

    fn due(&self, sink: &SinkSpec) -> u64 {
        self.counts.due(sink.tenant, Kinds::named_by(&sink.events))
    }

    fn sequence_at(&self, at: Instant) -> Result<u64, SourceError> {
        sequence_at(&*self.app()?, at)
    }
}
