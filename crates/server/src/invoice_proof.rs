//! The file that proves an invoice (ADR 25), made from the files of the journal.
//!
//! The records of the month are read once. Those that concern the invoice go into the file, and the hashes of all others
//! into its multiproof; what lies before and after is known by the roots of its blocks, except for rotations of the
//! signing key. The file is built in memory, few at a time, and checked as the payer checks it before it is sent. If nobody
//! waits for it any more, reading stops.

use crate::access::Caller;
use crate::app::App;
use crate::proofs::{Continued, Tree, reach};
use crate::scans::{prove, unreadable};
use leasehold_api::{Problem, codes};
use leasehold_bill::proof_file::{Bill, Growth, Lists, Opened, Place, ProofFile, ProofWriter};
use leasehold_bill::{Concern, Progress, StatedTenant, Statements, check};
use leasehold_journal::SignedCheckpoint;
use leasehold_model::body::PeriodStated;
use leasehold_model::codec::Field;
use leasehold_model::frame::RawRecord;
use leasehold_model::{Body, InvoiceNo, Month, Record, TenantNo};
use leasehold_tlog::{Subtree, leaf_hash};
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};

/// An invoice whose month is closed and stated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Provable {
    pub(crate) number: InvoiceNo,
    pub(crate) tenant: TenantNo,
    pub(crate) month: Month,
    /// The sequence of the invoice, and of the statement.
    pub(crate) issued_at: u64,
    pub(crate) stated_at: u64,
    /// The file also proves that the journal continues that of this size.
    pub(crate) since_size: Option<u64>,
}

/// Whoever waits for a file holds the other end.
pub(crate) type Waiting = Weak<()>;

/// Whether the file can be made now.
pub(crate) fn check_ready(app: &App, invoice: Provable) -> Result<(), Problem> {
    let size = app.journal.checkpointed().size();
    if size <= invoice.stated_at {
        return Err(not_covered());
    }
    match invoice.since_size.filter(|since| *since > size) {
        Some(since) => Err(codes::BAD_QUERY.problem(format!(
            "`since_size` is {since}, but the newest checkpoint has {size} records: a journal cannot continue a longer one."
        ))),
        None => Ok(()),
    }
}

/// The file that proves an invoice.
pub(crate) async fn prove_invoice(
    app: Arc<App>,
    caller: Caller,
    invoice: Provable,
    waiting: Waiting,
) -> Result<Vec<u8>, Problem> {
    check_ready(&app, invoice)?;
    let signed = app.journal.checkpointed();
    reach(&app, &caller, signed.size()).await?;
    prove(&app, &caller, move |app| {
        let file = make(app, invoice, &signed, &waiting)?;
        check_file(&file, &signed)?;
        Ok(file)
    })
    .await
}

fn not_covered() -> Problem {
    codes::PROOF_NOT_READY.problem("No checkpoint covers the end of the month yet; try again in a minute.")
}

fn failed(why: &str) -> Problem {
    tracing::error!(why, "cannot prove an invoice; run leasehold-verify on the journal");
    codes::PROOF_FAILED.problem(format!("The invoice cannot be proved: {why}"))
}

/// The statement that was sealed.
fn sealed(app: &App, at: u64) -> Result<PeriodStated, Problem> {
    let mut found = None;
    let scanned = app.journal.scan(at, &mut |_, raw| {
        if let Ok(Record { body: Body::PeriodStated(stated), .. }) = raw.decode() {
            found = Some(stated);
        }
        ControlFlow::Break(())
    });
    scanned.map_err(|error| unreadable(&error))?;
    found.ok_or_else(|| failed("the journal does not have its statement where the books say"))
}

fn make(app: &App, invoice: Provable, signed: &SignedCheckpoint, waiting: &Waiting) -> Result<Vec<u8>, Problem> {
    let stated = sealed(app, invoice.stated_at)?;
    let rotations = app.key_history.rotations(app.journal.as_ref()).map_err(|error| unreadable(&error))?;
    let growth = invoice.since_size.filter(|since| *since > 0).map(|since| growth(app, since, signed)).transpose()?;
    let fold = app.statements.fold_before(app, invoice.month, stated.cut);
    let mut reading = Reading {
        bill: Bill {
            tenant: invoice.tenant,
            month: invoice.month,
            invoice: invoice.number,
            issued_at: invoice.issued_at,
            statement: (invoice.stated_at, stated),
        },
        size: signed.size(),
        making: Statements::new(fold, invoice.month).with_lists_of(invoice.tenant),
        writer: ProofWriter::new(invoice.number, &signed.note, growth.as_ref()),
        closed: false,
        bytes_max: app.proof_bytes_max,
    };
    let before = rotations.iter().copied().filter(|at| *at < stated.from);
    pass_until(app, &mut reading.writer, stated.from, before)?;
    let from = reading.making.next_sequence();
    let mut ended = Ok(());
    let scanned = app.journal.scan(from, &mut |sequence, raw| {
        if sequence & 0xfff == 0 && (app.scrub.is_stopping() || waiting.strong_count() == 0) {
            ended = Err(codes::STOPPING.problem("The daemon is stopping, or nobody waits for the proof."));
            return ControlFlow::Break(());
        }
        match reading.read(sequence, &raw) {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(()),
            Err(problem) => {
                ended = Err(problem);
                ControlFlow::Break(())
            }
        }
    });
    scanned.map_err(|error| unreadable(&error))?;
    ended?;
    if !reading.closed {
        return Err(not_covered());
    }
    let Reading { making, mut writer, size, .. } = reading;
    let read = writer.size();
    pass_until(app, &mut writer, size, rotations.into_iter().filter(|at| (read..size).contains(at)))?;
    let mut made = making.finish().ok_or_else(|| failed("the journal ends before the end of the month"))?;
    let of = made.tenants.remove(&invoice.tenant).filter(|of| of.statement == stated);
    let of = of.ok_or_else(|| failed("its statement does not follow from the records of its month"))?;
    let StatedTenant { claimed_nodes, list_at_start, .. } = of;
    let lists = Lists {
        common: made.common_at_start.to_bytes(),
        tenant: list_at_start.ok_or_else(|| failed("the tenant's list is missing"))?.to_bytes(),
        claimed_nodes: claimed_nodes.to_bytes(),
    };
    let (file, root) = writer.finish(&lists).map_err(|error| failed(&error.to_string()))?;
    if root != signed.position.tree.root() {
        return Err(failed("the records do not lead to the signed root, so that the journal is damaged"));
    }
    Ok(file)
}

/// The journal as it is read for a proof.
struct Reading {
    bill: Bill,
    size: u64,
    making: Statements,
    writer: ProofWriter,
    /// The end of the month was read.
    closed: bool,
    /// The most bytes that the file may have.
    bytes_max: u64,
}

impl Reading {
    /// Takes a record; false if no more are needed.
    fn read(&mut self, sequence: u64, raw: &RawRecord<'_>) -> Result<bool, Problem> {
        if sequence >= self.size {
            return Ok(false);
        }
        let hash = raw.hash();
        let bad = |why: String| failed(&format!("record {sequence}: {why}"));
        let record = raw.decode().map_err(|error| bad(error.to_string()))?;
        let (_, stated) = self.bill.statement;
        let belongs = if sequence <= stated.cut {
            match self.making.take(&record, &hash).map_err(|why| bad(why.to_string()))? {
                Progress::Before => return Ok(true),
                Progress::Done => true,
                Progress::Within(Concern::Common) => true,
                Progress::Within(Concern::Tenant(tenant)) => tenant == self.bill.tenant,
                Progress::Within(Concern::Nobody) => {
                    matches!(self.bill.place(&record), Some(Place::Other | Place::Rotation))
                }
            }
        } else {
            self.bill.place(&record).is_some()
        };
        if belongs {
            self.writer.record(raw, &hash);
        } else {
            self.writer.pass(leaf_hash(&hash));
        }
        if self.writer.bytes() as u64 > self.bytes_max {
            let detail = format!("The proof would be larger than {} bytes (`limits.proof_bytes`).", self.bytes_max);
            return Err(codes::PROOF_TOO_LARGE.problem(detail));
        }
        self.closed = sequence > stated.cut && self.bill.place(&record) == Some(Place::Closed);
        Ok(!self.closed)
    }
}

/// Passes over all records before this one, except for those given: they go into the file.
fn pass_until(
    app: &App,
    writer: &mut ProofWriter,
    until: u64,
    except: impl Iterator<Item = u64>,
) -> Result<(), Problem> {
    let mut tree = Tree::new(app);
    for at in except {
        pass(&mut tree, writer, at)?;
        let scanned = app.journal.scan(at, &mut |_, raw| {
            writer.record(&raw, &raw.hash());
            ControlFlow::Break(())
        });
        scanned.map_err(|error| unreadable(&error))?;
    }
    pass(&mut tree, writer, until)
}

/// Passes over records in subtrees as large as possible.
fn pass(tree: &mut Tree<'_>, writer: &mut ProofWriter, until: u64) -> Result<(), Problem> {
    while writer.size() < until {
        let at = writer.size();
        let level = at.trailing_zeros().min((until - at).ilog2());
        let root = tree.root_of(Subtree { level, index: at >> level })?;
        writer.pass_subtree(level, root).expect("the records so far are a multiple of 2^level");
    }
    Ok(())
}

/// That the signed journal continues that of an earlier size.
fn growth(app: &App, since: u64, signed: &SignedCheckpoint) -> Result<Growth, Problem> {
    let Continued { proof, from_root, .. } = Tree::new(app).continued(since, signed.size(), signed)?;
    Ok(Growth { from: since, root: from_root, hashes: proof.hashes })
}

/// Reads the file as the payer does.
fn check_file(bytes: &[u8], signed: &SignedCheckpoint) -> Result<(), Problem> {
    let file = ProofFile::read(bytes).map_err(|error| failed(&error.to_string()))?;
    let Opened { evidence, root, .. } = file.open(signed.size()).map_err(|error| failed(&error.to_string()))?;
    if root != signed.position.tree.root() {
        return Err(failed("the file does not lead to the signed root"));
    }
    file.check_growth(signed.size(), &root).map_err(|error| failed(&error.to_string()))?;
    let report = check(&evidence);
    match (report.is_proved(), report.mismatches.first()) {
        (true, _) => Ok(()),
        (false, Some(first)) => {
            Err(failed(&format!("{} Expected {}, found {}.", first.why, first.expected, first.found)))
        }
        (false, None) => Err(failed("the invoice is not among its records")),
    }
}
