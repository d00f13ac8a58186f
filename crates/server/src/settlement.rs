//! Settlement: posts each hour when it is over, and closes months (SEMANTICS 12, "Posting" and "Months").
//!
//! The books compute what has to be posted; it goes round as commands, and is in the ledger when their records come
//! back. Whatever is interrupted is continued from the records, by this process or its successor.

use crate::app::App;
use crate::metrics::LedgerFigures;
use leasehold_books::{BooksError, PayerPosting, Settlement};
use leasehold_cell::{Inbox, Reply, Submission, Unsealed};
use leasehold_engine::command::{IssueInvoice, Nothing, OpenLedger, PostUsage, SettleHour, ShareCost};
use leasehold_engine::{Command, Refusal, Request};
use leasehold_model::{Identity, Month, Span, TenantNo};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How often the daemon looks whether an hour is over.
const EVERY: Duration = Duration::from_millis(500);
/// Lines that wait for their reply at the same time: more would delay the requests of others.
const LINES_IN_FLIGHT: usize = 1024;
/// How long a step waits for the books to follow.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why a settlement stopped. It is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unsettled {
    /// The books are behind, or cannot be read.
    Books(BooksError),
    /// The books did not follow in time.
    Behind,
    Refused(Refusal),
    /// The journal is full, or the daemon is stopping.
    Unsealed(Unsealed),
    /// The daemon is stopping, or has no file descriptors left.
    Interrupted,
    /// The records of a month cannot be read, so that its statements cannot be made yet.
    Unreadable(String),
    /// The records of a month say nothing about a tenant that got an invoice.
    NotStated(TenantNo),
}

impl fmt::Display for Unsettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Books(error) => error.fmt(f),
            Self::Behind => f.write_str("the books do not follow fast enough"),
            Self::Refused(refusal) => write!(f, "{refusal} ({})", refusal.code()),
            Self::Unsealed(unsealed) => f.write_str(&crate::problem::unanswered(unsealed).detail),
            Self::Interrupted => f.write_str("the records of the month could not be read to their end"),
            Self::Unreadable(why) => {
                write!(f, "the statements of the month that is being closed cannot be made yet: {why}")
            }
            Self::NotStated(tenant) => {
                write!(f, "the records of the month say nothing about {tenant}, which got an invoice")
            }
        }
    }
}

impl From<BooksError> for Unsettled {
    fn from(error: BooksError) -> Self {
        Self::Books(error)
    }
}

impl From<Unsealed> for Unsettled {
    fn from(unsealed: Unsealed) -> Self {
        match unsealed {
            Unsealed::Refused(refusal) => Self::Refused(refusal),
            unsealed => Self::Unsealed(unsealed),
        }
    }
}

/// One settlement runs at a time. Keeps why the last one stopped.
#[derive(Debug, Default)]
pub(crate) struct SettlementService {
    running: Mutex<()>,
    trouble: Mutex<Option<String>>,
    /// How long after its issue an invoice is due.
    terms: Span,
}

impl SettlementService {
    pub(crate) fn new(terms: Span) -> Self {
        Self { terms, ..Self::default() }
    }

    /// Why hours that are over are not settled, if something is wrong.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn figures(&self, app: &App) -> LedgerFigures {
        let changed = app.books.with_books(|books| Ok(books.changed_after_correction().len() as u64));
        LedgerFigures { failing: self.trouble().is_some(), changed_after_correction: changed.unwrap_or_default() }
    }
}

/// Opens the ledger of a journal in which nothing was ever leased or claimed. Older ones wait for an operator, who knows
/// from when on usage is to be posted.
pub(crate) fn open_if_unused(cell: &leasehold_cell::Cell) {
    let is_unused = cell.now().read(|state| state.ledger().opened.is_none() && state.is_unused());
    if is_unused && let Err(error) = cell.operate(Command::OpenLedger(OpenLedger { from: None })) {
        tracing::warn!(?error, "the ledger could not be opened");
    }
}

/// Runs until the daemon ends.
pub(crate) async fn watch(app: Weak<App>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(app) = app.upgrade() else { return };
        let settled = tokio::task::spawn_blocking(move || drop(settle_now(&app))).await;
        if let Err(error) = settled {
            tracing::error!(%error, "the settlement failed");
        }
    }
}

/// The same as [`settle_now`], after the books have processed everything that is durable now.
pub(crate) fn settle_durable(app: &App) -> Result<(), Unsettled> {
    if !app.books.wait_for(app.journal.head().size, PATIENCE) {
        return Err(Unsettled::Behind);
    }
    settle_now(app)
}

/// Settles every hour that is over, and goes on with a month that is being closed. Blocks the thread.
pub(crate) fn settle_now(app: &App) -> Result<(), Unsettled> {
    let service = &app.settlement;
    let _running = service.running.lock().unwrap_or_else(PoisonError::into_inner);
    let done = settle(app);
    let mut trouble = service.trouble.lock().unwrap_or_else(PoisonError::into_inner);
    let why = done.as_ref().err().map(ToString::to_string);
    if *trouble != why {
        if let Some(why) = &why {
            tracing::warn!(why, "hours could not be settled; this is tried again");
        }
        *trouble = why;
    }
    done
}

fn settle(app: &App) -> Result<(), Unsettled> {
    let Some(closing) = app.now.read(|state| {
        let ledger = state.ledger();
        ledger.opened.map(|_| ledger.closing.as_ref().map(|closing| (closing.month, closing.cut)))
    }) else {
        return Ok(());
    };
    if let Some((month, cut)) = closing {
        close_month(app, month, cut)?;
    }
    while settle_hour(app)? {}
    Ok(())
}

/// Settles the next hour. Returns whether there was one.
fn settle_hour(app: &App) -> Result<bool, Unsettled> {
    let next = app.now.read(|state| state.ledger().settled_through).saturating_add(leasehold_engine::ledger::HOUR);
    if app.time() < next {
        return Ok(false);
    }
    // On a quiet cluster nothing may have been recorded since the hour ended; only a later record shows that it is over.
    let (stamp, size) = app.now.read(|state| (state.last_stamp(), state.size()));
    if stamp < next {
        let sealed = app.cell.operate(Command::Heartbeat(Nothing {}))?;
        wait_for(app, sealed.sequence())?;
    } else {
        wait_for(app, size - 1)?;
    }
    // What was sealed by others is of no concern: it is known in time, or follows as a difference.
    let Some(settlement) = app.books.with_books(|books| books.next_settlement())? else { return Ok(false) };
    let Settlement { through, as_of_size, postings } = settlement;
    let (payers, began) = (postings.len(), std::time::Instant::now());
    post_all(app, postings)?;
    let sealed = app.cell.operate(Command::SettleHour(SettleHour { through, as_of_size }))?;
    wait_for(app, sealed.sequence())?;
    tracing::info!(through = %through, payers, took_ms = began.elapsed().as_millis(), "an hour is settled");
    Ok(true)
}

/// Finishes a month after its cut: what the records before it say is posted, the invoices are issued, statements are
/// sealed by which they can be proved, and the month is closed.
fn close_month(app: &App, month: Month, cut: u64) -> Result<(), Unsettled> {
    wait_for(app, cut)?;
    let invoiced =
        app.now.read(|state| state.ledger().closing.as_ref().is_some_and(|closing| !closing.issued.is_empty()));
    if !invoiced {
        loop {
            let settlement = app.books.with_books(|books| books.closing_settlement())?;
            let postings = settlement.map(|settlement| settlement.postings).unwrap_or_default();
            if postings.is_empty() {
                break;
            }
            let last = post_all(app, postings)?;
            wait_for(app, last)?;
        }
    }
    // What control planes cost is divided before anybody is billed.
    let shares: Vec<_> = app.now.read(|state| state.shares_due().collect());
    for (app_instance, currency) in shares {
        let sealed = app.cell.operate(Command::ShareCost(ShareCost { app_instance, currency }))?;
        let last = sealed.records.last().map_or(sealed.sequence(), |record| record.sequence);
        wait_for(app, last)?;
    }
    let due: Vec<IssueInvoice> = app.books.with_books(|books| books.invoices_to_issue(app.settlement.terms))?;
    let count = due.len();
    let mut last = cut;
    for group in due.chunks(16) {
        let commands = group.iter().cloned().map(Command::IssueInvoice).collect();
        for reply in send(app, commands) {
            last = last.max(reply?.sequence());
        }
    }
    wait_for(app, last)?;
    let last = crate::statements::state_month(app, month, cut)?;
    wait_for(app, last)?;
    let sealed = app.cell.operate(Command::FinishPeriod(month))?;
    wait_for(app, sealed.sequence())?;
    tracing::info!(month = %month, invoices = count, "a month is closed");
    Ok(())
}

/// Posts for all payers, the parts of one payer one after the other. Returns the last sequence.
fn post_all(app: &App, postings: Vec<PayerPosting>) -> Result<u64, Unsettled> {
    let _following = app.books.keep_up();
    let mut posting = Posting { app, inbox: Arc::new(Inbox::new()), flying: BTreeMap::new(), sent: 0, lines: 0 };
    let mut waiting: VecDeque<VecDeque<PostUsage>> = postings.into_iter().map(|posting| posting.parts.into()).collect();
    let (mut last, mut failed, mut replies) = (0, None, VecDeque::new());
    loop {
        // One half is decided while the other one is being written.
        if failed.is_none() && posting.lines <= LINES_IN_FLIGHT / 2 {
            posting.send(&mut waiting);
        }
        if posting.flying.is_empty() {
            return failed.map_or(Ok(last), Err);
        }
        posting.inbox.take(&mut replies);
        for (tag, reply) in replies.drain(..) {
            let (lines, mut rest) = posting.flying.remove(&tag).expect("it was sent");
            posting.lines -= lines;
            match reply {
                Ok(sealed) => {
                    last = last.max(sealed.sequence());
                    if let Some(next) = rest.front_mut() {
                        next.previous = Some(sealed.sequence());
                        waiting.push_back(rest);
                    }
                }
                Err(unsealed) => failed = Some(unsealed.into()),
            }
        }
    }
}

/// Postings on their way. What was sent is always waited for.
struct Posting<'a> {
    app: &'a App,
    inbox: Arc<Inbox>,
    /// The lines of each part that has no reply yet, and the parts after it.
    flying: BTreeMap<u64, (usize, VecDeque<PostUsage>)>,
    sent: u64,
    /// Lines without a reply.
    lines: usize,
}

impl Posting<'_> {
    /// Sends parts until enough lines are on their way.
    fn send(&mut self, waiting: &mut VecDeque<VecDeque<PostUsage>>) {
        let mut group = Vec::new();
        while self.lines < LINES_IN_FLIGHT
            && let Some(mut parts) = waiting.pop_front()
        {
            let Some(part) = parts.pop_front() else { continue };
            let lines = part.lines.len();
            self.flying.insert(self.sent, (lines, parts));
            self.lines += lines;
            let request = Request::new(Identity::default(), Command::PostUsage(part));
            group.push(Submission { request, to: self.inbox.clone(), tag: self.sent });
            self.sent += 1;
        }
        self.app.cell.submit(group);
    }
}

/// Sends commands as the operator; they are decided together. The replies are in the order of the commands.
pub(crate) fn send(app: &App, commands: Vec<Command>) -> Vec<Reply> {
    let inbox = Arc::new(Inbox::new());
    let count = commands.len();
    app.cell.submit((0u64..).zip(commands).map(|(tag, command)| {
        let request = Request::new(Identity::default(), command);
        Submission { request, to: inbox.clone(), tag }
    }));
    let mut replies = VecDeque::new();
    while replies.len() < count {
        inbox.take(&mut replies);
    }
    let mut replies: Vec<_> = replies.into();
    replies.sort_unstable_by_key(|(tag, _)| *tag);
    replies.into_iter().map(|(_, reply)| reply).collect()
}

/// Waits until the books have processed a record.
fn wait_for(app: &App, sequence: u64) -> Result<(), Unsettled> {
    if app.books.wait_for(sequence.saturating_add(1), PATIENCE) { Ok(()) } else { Err(Unsettled::Behind) }
}
