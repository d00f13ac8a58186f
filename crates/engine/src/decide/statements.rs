//! Statements: what the records of a month say about each tenant that got an invoice (ADR 25). The daemon computes them
//! from the files of the journal. The engine does not see those; it makes sure that a statement is about the month that
//! is being closed and its cut, and that each tenant gets one at most. Whoever verifies the journal recomputes the rest.

use super::Draft;
use crate::command::StatePeriod;
use crate::refusal::Refusal;

impl Draft<'_> {
    pub(super) fn state_period(&mut self, state: &StatePeriod) -> Result<(), Refusal> {
        let StatePeriod { tenant, stated } = *state;
        let closing = self.open_ledger()?.closing.as_ref().filter(|closing| closing.month == stated.month);
        let closing = closing.ok_or(Refusal::NoPeriodIsClosing)?;
        if !closing.has_invoice(tenant) {
            return Err(Refusal::InvoiceMissing { tenant });
        }
        if closing.stated.contains(&tenant) {
            return Err(Refusal::StatementExists { tenant });
        }
        if stated.cut != closing.cut || stated.from > stated.border || stated.border > stated.cut {
            return Err(Refusal::StatementMismatch { tenant });
        }
        self.emit_of((tenant, None), stated, |_| {});
        Ok(())
    }
}
