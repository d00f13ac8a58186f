//! Corrections, adjustments, disputes, tax rates and payments.

use super::story::{Step, Story};
use leasehold_engine::Command;
use leasehold_engine::command::{AdjustLedger, CorrectEntry, DisputeEntry, PutTaxRate, RecordPayment};
use leasehold_model::body::CorrectedLine;
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{Account, ClassNo, EntryId, Identity, Leg, Name, ProjectNo, Steps, TenantNo};

fn reason() -> Name {
    Name::new("by hand").expect("a valid name")
}

impl Story {
    pub(crate) fn by_hand(&mut self) -> Step<()> {
        if self.books().ledger_opened().is_none() {
            return Ok(());
        }
        match self.dice.below(10) {
            0..4 => self.correct(),
            4..6 => self.adjust(),
            6 => self.dispute(),
            7 => self.tax(),
            _ => self.pay(),
        }
    }

    /// An entry of the ledger that can be corrected.
    fn some_entry(&mut self) -> Option<EntryId> {
        let ids: Vec<EntryId> = self.audit.ledger.by_hand().collect();
        (!ids.is_empty()).then(|| *self.dice.pick(&ids))
    }

    fn correct(&mut self) -> Step<()> {
        let Some(id) = self.some_entry() else { return Ok(()) };
        let found = self.books().entry(id).map_err(|error| error.to_string())?;
        // The books leave out what changes nothing.
        let Some(entry) = found else { return Ok(()) };
        if self.books().correction_of(id).is_some() {
            return Ok(());
        }
        let project = entry.project.ok_or_else(|| format!("{id} is of no project"))?;
        let reversal: Vec<Leg> =
            entry.legs.iter().map(|leg| Leg { account: leg.account, amount: -leg.amount }).collect();
        let replacement = match self.dice.below(3) {
            0 => Vec::new(),
            _ => {
                let times = i128::from(self.dice.below(3));
                let legs =
                    entry.legs.iter().map(|leg| Leg { account: leg.account, amount: Steps(leg.amount.0 / 2 * times) });
                legs.collect()
            }
        };
        let line = entry.line.as_ref().map(|line| CorrectedLine {
            key: line.key.clone(),
            usage: line.usage,
            exact: line.exact.clone(),
        });
        let correct = CorrectEntry {
            tenant: entry.tenant,
            project,
            currency: entry.currency,
            original_month: entry.original_month.ok_or_else(|| format!("{id} has no month"))?,
            corrects: id,
            previous: self.books().last_entry_of(project, entry.currency),
            line,
            reversal,
            replacement,
            reason: reason(),
        };
        // What a runtime costs is shared once.
        let of_runtime = |leg: &Leg| matches!(leg.account, Account::SharedRuntime(_));
        let refused: &[&str] = match entry.legs.iter().any(of_runtime) {
            true => &["account_not_by_hand", "posting_incomplete", "period_is_closing"],
            false => &["posting_incomplete", "period_is_closing"],
        };
        self.expect(Command::CorrectEntry(correct), refused)
    }

    fn adjust(&mut self) -> Step<()> {
        let projects: Vec<(ProjectNo, TenantNo)> =
            self.engine.state().projects().map(|(number, project)| (number, project.tenant)).collect();
        if projects.is_empty() {
            return Ok(());
        }
        let (project, _) = *self.dice.pick(&projects);
        let amount = Steps(i128::from(self.dice.below(20_000_000)) - 10_000_000);
        let other = *self.dice.pick(&[
            Account::Adjustments(project),
            Account::OperatorLoss,
            Account::Revenue(ClassNo(0)),
            Account::Rounding,
        ]);
        let legs = vec![Leg { account: Account::Receivable(project), amount }, Leg { account: other, amount: -amount }];
        let open = self.books().first_open_month();
        let currency = self.currency();
        let adjust = AdjustLedger {
            project,
            currency,
            original_month: self.dice.one_in(2).then(|| if self.dice.one_in(2) { open.previous() } else { open }),
            legs,
            reason: reason(),
        };
        self.expect(Command::AdjustLedger(adjust), &["posting_incomplete", "period_is_closing", "no_such_period"])
    }

    fn currency(&mut self) -> Currency {
        Currency::new(["EUR", "EUR", "CHF", "JPY"][self.dice.index(4)]).expect("three letters")
    }

    fn dispute(&mut self) -> Step<()> {
        let Some(id) = self.some_entry() else { return Ok(()) };
        let found = self.books().entry(id).map_err(|error| error.to_string())?;
        let Some(entry) = found else { return Ok(()) };
        let project = entry.project.ok_or_else(|| format!("{id} is of no project"))?;
        let open = !self.books().is_disputed(id);
        let dispute = DisputeEntry { tenant: entry.tenant, project, entry: id, open, reason: reason() };
        self.expect(Command::DisputeEntry(dispute), &[])?;
        if self.books().is_disputed(id) != open {
            return Err(format!("{id} was not disputed"));
        }
        Ok(())
    }

    fn tax(&mut self) -> Step<()> {
        let tenants: Vec<TenantNo> = self.engine.state().tenants().map(|tenant| tenant.number).collect();
        if tenants.is_empty() {
            return Ok(());
        }
        let tenant = *self.dice.pick(&tenants);
        let rates = [0, 190_000_000, 70_000_000, 77_123_456, 1_000_000_000];
        let from = self.dice.one_in(2).then(|| {
            let open = self.books().first_open_month();
            *self.dice.pick(&[open, open.next(), open.previous()])
        });
        let rate = Decimal(*self.dice.pick(&rates));
        self.expect(Command::PutTaxRate(PutTaxRate { tenant, from, rate }), &["period_closed", "period_is_closing"])
    }

    fn pay(&mut self) -> Step<()> {
        let invoices = self.books().invoices().to_vec();
        if invoices.is_empty() {
            return Ok(());
        }
        let head = self.dice.pick(&invoices).clone();
        let amount = if self.dice.one_in(2) { head.total } else { Steps(head.total.0 / 3 + 1) };
        let reference = format!("bank {}", self.size());
        let pay = RecordPayment {
            tenant: head.tenant,
            currency: head.currency,
            amount,
            invoice: self.dice.one_in(2).then_some(head.number),
            reference: Name::new(&reference).expect("a valid name"),
            received_at: None,
        };
        let codes: &[&str] = if amount == Steps::ZERO { &["bad_payment_amount"] } else { &["unknown_tenant"] };
        self.expect(Command::RecordPayment(pay), codes)
    }

    /// The command is accepted, or refused for one of these reasons.
    pub(crate) fn expect(&mut self, command: Command, codes: &[&str]) -> Step<()> {
        let text = format!("{command:?}");
        match self.submit(Identity::default(), command)? {
            Err(refusal) if !codes.contains(&refusal.code()) => Err(format!("{refusal}\n  {text}")),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}
