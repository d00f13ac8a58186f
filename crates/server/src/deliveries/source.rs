//! The events of the journal: records are read from its files, and described with what the books know.

use super::accounting::Payloads;
use super::counts::DueCounts;
use super::made::{About, Facts, Kinds, Made, Work, made, may_make};
use crate::app::App;
use crate::record_leases::learn_leases;
use leasehold_api::event_type::{EVENT_TYPES, EventAbout};
use leasehold_books::{Books, BooksError};
use leasehold_deliver::{Event, Page, SinkSpec, Source, SourceError};
use leasehold_journal::ReadError;
use leasehold_model::body::Body;
use leasehold_model::id::IdKind;
use leasehold_model::{AllocationNo, Instant, LeaseNo, NodeNo, PoolNo, PublicId, RawRecord, Record, Span};
use leasehold_view::Directory;
use serde_json::Value;
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Records that one page looks at.
const RECORDS_PER_PAGE: u64 = 20_000;
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
    SourceError(why.to_string())
}

impl Facts for Payloads<'_> {
    type Error = BooksError;

    fn without_allocation(&self, leases: &[LeaseNo]) -> Result<Vec<LeaseNo>, BooksError> {
        let rows = self.books.leases_of(leases.iter().copied())?;
        Ok(rows.into_iter().filter(|(row, _)| row.allocation.is_none()).map(|(row, _)| row.lease).collect())
    }

    fn is_staged(&self, allocation: AllocationNo) -> Result<bool, BooksError> {
        Ok(self.story(allocation)?.is_some_and(|story| story.spec.staged))
    }

    fn pools(&self, allocation: AllocationNo, attempt_before: Option<u64>) -> Result<Vec<PoolNo>, BooksError> {
        Payloads::pools(self, allocation, attempt_before)
    }
}

/// Runs something with what the books and the state know now.
fn informed<T>(app: &App, look: impl FnOnce(&Payloads<'_>) -> Result<T, BooksError>) -> Result<T, SourceError> {
    let with_books = |books: &Books| app.now.read(|state| look(&Payloads { app, state, books }));
    app.books.with_books(with_books).map_err(unread)
}

/// Events with the same key are delivered in order: those of an allocation, of a lease without one, of a node.
fn order_of(record: &Record, about: About, allocation: Option<AllocationNo>, node: Option<NodeNo>) -> String {
    let of_record = || match (&record.body, record.identity.tenant) {
        (Body::AllocationSubmitted(_) | Body::AllocationDenied(_), _) => AllocationNo(record.sequence).to_string(),
        (body, Some(tenant)) => format!("{}/{tenant}", body.word()),
        (body, None) => body.word().to_owned(),
    };
    match (about, allocation, node) {
        (About::Started(Work::Lease(lease)) | About::Completed(Work::Lease(lease)), _, _) => lease.to_string(),
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
        mut visit: impl FnMut(&Record, &RawRecord<'_>) -> Result<ControlFlow<()>, SourceError>,
    ) -> Result<u64, SourceError> {
        let wanted = Kinds::named_by(&sink.events);
        let (mut next, mut failed) = (from, None);
        let scanned = app.journal.scan(from, &mut |sequence, raw| {
            if sequence >= to {
                return ControlFlow::Break(());
            }
            let mut flow = ControlFlow::Continue(());
            match raw.decode() {
                Ok(record) => {
                    let is_own = sink.tenant.is_none() || record.identity.tenant == sink.tenant;
                    if is_own && may_make(&record.body, wanted) {
                        match visit(&record, &raw) {
                            Ok(asked) => flow = asked,
                            Err(error) => {
                                failed = Some(error);
                                return ControlFlow::Break(());
                            }
                        }
                    }
                }
                Err(_) => failed = Some(unread(format!("record {sequence} cannot be decoded"))),
            }
            next = sequence + 1;
            flow
        });
        scanned.map_err(unread)?;
        failed.map_or(Ok(next), Err)
    }

    /// The events of one record that the sink wants.
    fn events_of(
        app: &App,
        directory: &mut Directory,
        wanted: Kinds,
        record: &Record,
        raw: &RawRecord<'_>,
    ) -> Result<Vec<Event>, SourceError> {
        let all = informed(app, |facts| made(record, wanted, facts))?;
        let needs_view = |one: &Made| matches!(one.about, About::Lease(..) | About::Record | About::QuotaUpdated);
        let mut shown = Value::Null;
        if all.iter().any(|one| wanted.has(one.kind) && needs_view(one)) {
            learn_leases(app, directory, record).map_err(|problem| unread(problem.detail))?;
            shown = directory.show_known(raw, &raw.hash()).map_err(|_| unread("a record cannot be decoded"))?;
        }
        let released_at = if let Body::NodeWiped(wiped) = &record.body {
            released_at(app, record, wiped.node, wiped.claim)?
        } else if let Body::NodeQuarantined(gone) = &record.body {
            released_at(app, record, gone.node, gone.claim)?
        } else {
            None
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
                About::Lease(at, _) => Some(shown["lease_events"][usize::from(at)].clone()),
                About::Record | About::QuotaUpdated => Some(shown.clone()),
                About::Started(work) => informed(app, |facts| facts.started(record, work))?,
                About::Completed(work) => informed(app, |facts| facts.completed(record, work))?,
                About::Checkpointed(of) => informed(app, |facts| facts.checkpointed(record, of))?,
                About::NodesClaimed => informed(app, |facts| Ok(facts.claimed(record)))?,
                About::NodeReleased => informed(app, |facts| Ok(facts.released(record, released_at)))?,
            };
            let data =
                data.ok_or_else(|| unread(format!("the books do not know what record {} says", record.sequence)))?;
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
    let from = sequence_at(app, Instant(record.stamp.0.saturating_sub(WIPE_TIME.0)))?;
    let mut found = None;
    let scanned = app.journal.scan(from.max(claim.unwrap_or(0)), &mut |sequence, raw| {
        if sequence >= record.sequence {
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
        let mut directory = app.live.names();
        let mut events: Vec<Event> = Vec::new();
        let to = head.min(from.saturating_add(RECORDS_PER_PAGE));
        let next = Self::visit(&app, sink, (from, to), |record, raw| {
            events.extend(Self::events_of(&app, &mut directory, wanted, record, raw)?);
            Ok(if events.len() >= most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(Page { events, next })
    }

    fn count(&self, sink: &SinkSpec, from: u64, to: u64) -> Result<u64, SourceError> {
        let app = self.app()?;
        let head = Self::books_at_head(&app)?;
        let wanted = Kinds::named_by(&sink.events);
        let mut count = 0;
        Self::visit(&app, sink, (from, to.min(head)), |record, _| {
            let all = informed(&app, |facts| made(record, wanted, facts))?;
            count += all.iter().filter(|one| wanted.has(one.kind)).count() as u64;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(count)
    }

    fn due(&self, sink: &SinkSpec) -> u64 {
        self.counts.due(sink.tenant, Kinds::named_by(&sink.events))
    }

    fn sequence_at(&self, at: Instant) -> u64 {
        let Some(app) = self.app.upgrade() else { return 0 };
        sequence_at(&app, at).unwrap_or_else(|error| {
            tracing::error!(%error, "the beginning of a time could not be found; it is taken from the first record on");
            0
        })
    }
}
