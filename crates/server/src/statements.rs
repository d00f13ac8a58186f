//! Statements: what the records of a month say about each tenant that got an invoice (ADR 25). They are made from the
//! files of the journal while the month is being closed, and sealed before it is closed.
//!
//! A month whose statements can never be made is closed without them: records of old rules do not name their tenants. If
//! the records cannot be read, the disk may be back in a moment, and an archive mounted: the month stays open and it is
//! tried again, for a day ([`patience`]). If a statement was made and is refused, something is wrong that nobody foresaw:
//! the month stays open, the operator is told, and it is tried again.

mod patience;
mod saved;

use crate::app::App;
use crate::settlement::{Unsettled, send};
use leasehold_bill::{Fold, Progress, Stated, Statements};
use leasehold_cell::{Reply, Unsealed};
use leasehold_engine::command::StatePeriod;
use leasehold_engine::{Command, Refusal};
use leasehold_journal::disk::is_out_of_files;
use leasehold_journal::{MacKey, ReadError};
use leasehold_model::{Month, TenantNo};
use patience::Patience;
use saved::SavedFolds;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Statements that are decided together.
const TOGETHER: usize = 16;

/// Why there are no statements.
#[derive(Debug)]
enum Unstated {
    /// The daemon is stopping, or has no file descriptors left: it is tried again.
    Later,
    /// The records cannot be read, for this reason: it is tried again for some time.
    Unreadable(String),
    /// The month is closed without them.
    Never(String),
}

/// What statements are made from, besides the journal.
#[derive(Debug)]
pub(crate) struct StatementService {
    folds: SavedFolds,
    /// Statements that were made and could not all be sealed: the records are not read again for the rest.
    made: Mutex<Option<Stated>>,
    patience: Patience,
}

impl StatementService {
    pub(crate) fn new(data: &Path, key: MacKey) -> Self {
        Self { folds: SavedFolds::new(data, key), made: Mutex::new(None), patience: Patience::default() }
    }

    fn made(&self) -> MutexGuard<'_, Option<Stated>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fold at the start of the range of a month or of an earlier one, if it was saved; else before the first record.
    pub(crate) fn fold_before(&self, app: &App, month: Month, cut: u64) -> Fold {
        self.folds.newest(month, cut, &*app.journal).unwrap_or_default()
    }
}

/// Seals the statements of the month that is being closed which are missing, and returns the last sequence.
pub(crate) fn state_month(app: &App, month: Month, cut: u64) -> Result<u64, Unsettled> {
    let missing: Vec<TenantNo> = app.now.read(|state| {
        let closing = state.ledger().closing.as_ref().filter(|closing| closing.month == month);
        closing.map(|closing| closing.unstated().collect()).unwrap_or_default()
    });
    if missing.is_empty() {
        return Ok(cut);
    }
    let (began, patience) = (std::time::Instant::now(), &app.statements.patience);
    if let Some(why) = patience.not_yet(month, app.time()) {
        return Err(Unsettled::Unreadable(why));
    }
    let made = app.statements.made().take().filter(|made| (made.month, made.cut) == (month, cut));
    let stated = match made.map_or_else(|| read(app, month, cut), Ok) {
        Ok(stated) => stated,
        Err(Unstated::Later) => return Err(Unsettled::Interrupted),
        Err(Unstated::Unreadable(why)) if patience.failed(month, app.time(), &why) => {
            return Err(Unsettled::Unreadable(why));
        }
        Err(Unstated::Never(why) | Unstated::Unreadable(why)) => {
            tracing::warn!(month = %month, why, "the month is closed without statements, so its invoices cannot be proved");
            return Ok(cut);
        }
    };
    let last = match seal(app, &stated, &missing) {
        Ok(last) => last.max(cut),
        Err(unsealed) => {
            *app.statements.made() = Some(stated);
            return Err(unsealed);
        }
    };
    if let Err(error) = app.statements.folds.save(&stated.fold_at_border, month.next(), &*app.journal) {
        tracing::warn!(%error, "cannot save where the next month begins; its statements are made from an earlier record");
    }
    let took_ms = began.elapsed().as_millis();
    tracing::info!(month = %month, statements = missing.len(), took_ms, "the statements of a month are sealed");
    Ok(last)
}

/// Reads the records up to the cut.
fn read(app: &App, month: Month, cut: u64) -> Result<Stated, Unstated> {
    let mut making = Statements::new(app.statements.fold_before(app, month, cut), month);
    let from = making.next_sequence();
    let mut ended = Err(Unstated::Never(format!("the journal ends before record {cut}")));
    let scanned = app.journal.scan(from, &mut |sequence, raw| {
        if sequence & 0xfff == 0 && app.scrub.is_stopping() {
            ended = Err(Unstated::Later);
            return ControlFlow::Break(());
        }
        let taken = match raw.decode() {
            Ok(record) => making.take(&record, &raw.hash()).map_err(|why| why.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match taken {
            Ok(Progress::Done) => ended = Ok(()),
            Ok(Progress::Before | Progress::Within(_)) => return ControlFlow::Continue(()),
            Err(why) => ended = Err(Unstated::Never(format!("record {sequence}: {why}"))),
        }
        ControlFlow::Break(())
    });
    match scanned {
        Ok(()) => ended?,
        Err(ReadError::Io(error)) if is_out_of_files(&error) => return Err(Unstated::Later),
        Err(error) => return Err(Unstated::Unreadable(error.to_string())),
    }
    making.finish().ok_or_else(|| Unstated::Never("the month has no records".into()))
}

/// Seals the statements of these tenants, and returns the last sequence.
fn seal(app: &App, stated: &Stated, missing: &[TenantNo]) -> Result<u64, Unsettled> {
    let mut last = 0;
    for group in missing.chunks(TOGETHER) {
        for reply in send(app, commands(stated, group)?) {
            last = last.max(sequence_of(reply)?);
        }
    }
    Ok(last)
}

/// Each tenant with an invoice has a statement: it has records, those that posted what it owes.
fn commands(stated: &Stated, tenants: &[TenantNo]) -> Result<Vec<Command>, Unsettled> {
    let command = |tenant: &TenantNo| {
        let of = stated.tenants.get(tenant).ok_or(Unsettled::NotStated(*tenant))?;
        Ok(Command::StatePeriod(StatePeriod { tenant: *tenant, stated: of.statement }))
    };
    tenants.iter().map(command).collect()
}

/// The sequence of a statement. One that exists already was sealed before an interruption.
fn sequence_of(reply: Reply) -> Result<u64, Unsettled> {
    match reply {
        Ok(sealed) => Ok(sealed.sequence()),
        Err(Unsealed::Refused(Refusal::StatementExists { .. })) => Ok(0),
        Err(unsealed) => Err(unsealed.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_bill::CommonList;

    #[test]
    fn a_refused_statement_keeps_the_month_open() {
        let tenant = TenantNo(3);
        let refused = |refusal| sequence_of(Err(Unsealed::Refused(refusal)));
        let mismatch = Refusal::StatementMismatch { tenant };
        assert_eq!(refused(mismatch.clone()), Err(Unsettled::Refused(mismatch)));
        assert_eq!(refused(Refusal::StatementExists { tenant }), Ok(0));
    }

    #[test]
    fn a_tenant_without_a_statement_keeps_the_month_open() {
        let month = Month::of(leasehold_model::Instant(0));
        let stated = Stated {
            month,
            from: 0,
            border: 0,
            cut: 0,
            common_at_start: CommonList::default(),
            common_at_border: CommonList::default(),
            tenants: std::collections::BTreeMap::new(),
            fold_at_border: Fold::new(),
        };
        assert_eq!(commands(&stated, &[]), Ok(Vec::new()));
        assert_eq!(commands(&stated, &[TenantNo(3)]), Err(Unsettled::NotStated(TenantNo(3))));
    }
}
