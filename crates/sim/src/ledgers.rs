//! Random commands about the ledger, with made-up amounts: mostly what the oracle's ledger expects next, sometimes
//! wrong. They are drawn from dice of their own: other draws would change what every kept seed does.

use crate::requests::{name, small};
use leasehold_engine::command::{
    AdjustLedger, CorrectEntry, DisputeEntry, IssueInvoice, OpenLedger, PostUsage, PutTaxRate, RatedLine,
    RecordPayment, SettleHour, StatePeriod,
};
use leasehold_engine::{Command, State};
use leasehold_model::body::{CorrectedLine, PeriodStated, RecordSet};
use leasehold_model::ledger::{ExactSteps, HOUR_NS, InvoiceNo, InvoiceSeries, Item, Magnitude};
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{
    Account, ClassNo, EntryId, Instant, Leg, LineKey, Month, PoolNo, Priority, ProjectNo, Span, Steps, TenantNo,
    UsageDelta,
};
use leasehold_oracle::Dice;
use leasehold_oracle::ledger::Ledger;

/// Something about the ledger, at times. The ledger must know everything that was decided.
pub(crate) fn any(state: &State, ledger: &Ledger, now: Instant) -> Option<Command> {
    let mut dice = Dice::new(now.0 << 7 ^ state.size() << 20);
    if ledger.opened().is_none() && !dice.one_in(20) {
        return dice.one_in(4).then(|| Command::OpenLedger(OpenLedger { from: start(now, &mut dice) }));
    }
    let mut drawn = Drawn { state, ledger, now, dice };
    Some(drawn.command())
}

/// The invoices that the month which is being closed lacks, each once, or its end.
pub(crate) fn rest_of_month(state: &State, ledger: &Ledger, now: Instant, dice: &mut Dice) -> Vec<Command> {
    let Some(month) = ledger.closing_month() else { return Vec::new() };
    let mut left = ledger.invoices_of(month);
    left.retain(|(tenant, currency)| !ledger.is_issued(*tenant, *currency, month));
    let mut drawn = Drawn { state, ledger, now, dice: dice.split() };
    let each: Vec<Command> = left.into_iter().map(|of| drawn.issue_to(of, month)).collect();
    if !each.is_empty() {
        return each;
    }
    // Not all tenants get a statement: the end of a month does not insist on them.
    let stated = drawn.statements(month);
    stated.into_iter().chain([Command::FinishPeriod(month)]).collect()
}

/// Shortly before the end of the last month, so that it can be closed soon; sometimes at no hour, or in the future.
fn start(now: Instant, dice: &mut Dice) -> Option<Instant> {
    let month_start = Month::of(now).start();
    match dice.below(12) {
        0 => None,
        1 => Some(Instant(now.0 + 1 + dice.below(HOUR_NS))),
        2 => Some(Instant(month_start.0 - dice.below(HOUR_NS))),
        _ => Some(Instant(month_start.0 - HOUR_NS * (1 + dice.below(2)))),
    }
}

struct Drawn<'a> {
    state: &'a State,
    ledger: &'a Ledger,
    now: Instant,
    dice: Dice,
}

impl Drawn<'_> {
    /// The first open month; the present one before there is a ledger.
    fn open_month(&self) -> Month {
        self.ledger.opened().map_or(Month::of(self.now), |_| self.ledger.first_open())
    }

    fn wrong(&mut self) -> bool {
        self.dice.one_in(15)
    }

    fn command(&mut self) -> Command {
        let closing = self.ledger.closing_month();
        match self.dice.below(24) {
            0..7 => self.post(),
            7..12 => self.settle(),
            12 | 13 => self.correct(),
            14 => self.adjust(),
            15 => self.dispute(),
            16 => self.tax(),
            17 => self.pay(),
            18 => match self.dice.below(2) {
                0 => Command::DeleteProject(self.project().0),
                _ => Command::DeleteTenant(self.project().1),
            },
            19 if closing.is_some() && self.dice.one_in(2) => self.state_period(),
            19 | 20 if closing.is_some() => self.issue(),
            21 => Command::OpenLedger(OpenLedger { from: start(self.now, &mut self.dice) }),
            _ => match closing {
                Some(month) if !self.dice.one_in(3) => Command::FinishPeriod(month),
                Some(_) => self.issue(),
                None => {
                    let open = self.open_month();
                    Command::ClosePeriod(if self.wrong() { open.next() } else { open })
                }
            },
        }
    }

    fn project(&mut self) -> (ProjectNo, TenantNo) {
        let projects: Vec<_> = self.state.projects().map(|(number, project)| (number, project.tenant)).collect();
        if projects.is_empty() || self.wrong() {
            return (ProjectNo(small(&mut self.dice, 8)), TenantNo(small(&mut self.dice, 4)));
        }
        *self.dice.pick(&projects)
    }

    fn currency(&mut self) -> Currency {
        Currency::new(["EUR", "EUR", "CHF", "JPY"][self.dice.index(4)]).expect("three letters")
    }

    fn previous(&mut self, project: ProjectNo, currency: Currency) -> Option<u64> {
        let last = self.ledger.payers().find(|(of, ..)| *of == (project, currency)).and_then(|(_, last, _)| last);
        if self.wrong() { Some(self.dice.below(self.state.size())) } else { last }
    }

    /// Any fraction in lowest terms, or almost any.
    fn exact(&mut self) -> ExactSteps {
        let denominator = *self.dice.pick(&[1, 2, 3, 7, 1000, 1_000_003]);
        let numerator = match denominator {
            1 => self.dice.below(5),
            _ => 1 + denominator * self.dice.below(3_000_000),
        };
        let denominator = if self.wrong() { denominator * 2 } else { denominator };
        let digits = |number: u64| Magnitude::from_digits(&number.to_be_bytes()).expect("8 bytes");
        let negative = numerator != 0 && self.dice.one_in(4);
        ExactSteps { negative, numerator: digits(numerator), denominator: digits(denominator) }
    }

    /// Usage of the next hour, of a payer that lacks parts, or of the month that is being closed.
    fn post(&mut self) -> Command {
        let (mut project, mut tenant) = self.project();
        let mut currency = self.currency();
        let (mut through, mut as_of_size) = (Instant(self.ledger.settled().0 + HOUR_NS), self.state.size());
        let mut closing = None;
        if let Some((month, cut)) = self.ledger.closing() {
            (through, as_of_size, closing) = (self.ledger.settled(), cut, Some(month));
        }
        let mut after = None;
        let partial = self.ledger.partial();
        if let Some((of, begun, size, key)) = partial.filter(|_| !self.dice.one_in(4)) {
            (project, currency) = of;
            (through, as_of_size, after) = (begun, size, Some(key));
            tenant = self.state.projects().find(|(no, _)| *no == project).map_or(tenant, |(_, found)| found.tenant);
        }
        let from = self.ledger.opened().unwrap_or(self.now);
        let hours = (through.0.saturating_sub(from.0) / HOUR_NS).max(1);
        let mut lines: Vec<RatedLine> =
            (0..1 + self.dice.below(3)).map(|_| self.line(through, hours, project)).collect();
        lines.retain(|line| after.as_ref().is_none_or(|key| line.key > *key) || self.dice.one_in(15));
        if !self.wrong() {
            lines.sort_by(|one, next| one.key.cmp(&next.key));
            lines.dedup_by(|one, next| one.key == next.key);
        }
        let own = lines.last().map_or(Month::of(through), |line| Month::of(line.key.hour));
        let month = own.max(closing.unwrap_or(self.open_month()));
        let first_open = closing.unwrap_or(self.open_month());
        lines.retain(|line| Month::of(line.key.hour).max(first_open) == month || self.dice.one_in(15));
        let previous = self.previous(project, currency);
        // A project with a posting that lacks parts could be deleted if nothing was posted yet: left out until the engine
        // refuses that.
        let is_nothing = lines.iter().all(|line| line.exact.numerator == Magnitude::default());
        let complete = !self.dice.one_in(8) || is_nothing;
        Command::PostUsage(PostUsage {
            tenant,
            project,
            currency,
            month,
            through,
            complete,
            as_of_size,
            previous,
            lines,
        })
    }

    fn line(&mut self, through: Instant, hours: u64, project: ProjectNo) -> RatedLine {
        let class = ClassNo(u16::try_from(self.dice.below(3)).expect("small"));
        let back = self.dice.below(hours) + u64::from(self.dice.one_in(30)) * hours;
        let key = LineKey {
            hour: Instant(through.0.saturating_sub(HOUR_NS * (1 + back))),
            project,
            pool: PoolNo(small(&mut self.dice, 2)),
            item: Item::Class(class),
            priority: *self.dice.pick(Priority::ALL),
            priced: Priority::Standard,
            tag: None,
            app_instance: None,
            attachment: None,
            control_plane: self.dice.one_in(4),
            card: None,
        };
        RatedLine { key, usage: UsageDelta(i128::from(self.dice.below(1 << 50))), exact: self.exact() }
    }

    fn settle(&mut self) -> Command {
        let hours = if self.wrong() { 2 } else { 1 };
        let through = Instant(self.ledger.settled().0 + HOUR_NS * hours);
        let as_of_size = self.state.size() + u64::from(self.dice.one_in(30));
        Command::SettleHour(SettleHour { through, as_of_size })
    }

    fn some_entry(&mut self) -> Option<EntryId> {
        let ids: Vec<EntryId> = self.ledger.by_hand().collect();
        (!ids.is_empty()).then(|| *self.dice.pick(&ids))
    }

    fn correct(&mut self) -> Command {
        let Some((id, entry)) = self.some_entry().and_then(|id| Some((id, self.ledger.entry(id)?.clone()))) else {
            return self.adjust();
        };
        let Some(project) = entry.project else { return self.adjust() };
        let mut reversal: Vec<Leg> =
            entry.legs.iter().map(|leg| Leg { account: leg.account, amount: -leg.amount }).collect();
        if self.wrong() {
            reversal.truncate(1);
        }
        let halved = entry.legs.iter().map(|leg| Leg { account: leg.account, amount: Steps(leg.amount.0 / 2) });
        let replacement = if self.dice.one_in(2) { Vec::new() } else { halved.collect() };
        let line = entry.usage().map(|(key, usage, exact)| CorrectedLine { key, usage: UsageDelta(usage), exact });
        let original = entry.months.map_or(self.open_month(), |(_, original)| original);
        Command::CorrectEntry(CorrectEntry {
            tenant: entry.tenant,
            project,
            currency: entry.currency,
            original_month: original,
            corrects: id,
            previous: self.previous(project, entry.currency),
            line,
            reversal,
            replacement,
            reason: name("wrong"),
        })
    }

    fn adjust(&mut self) -> Command {
        let (project, _) = self.project();
        let amount = Steps(i128::from(self.dice.below(9_000_000)) - 4_000_000);
        let others = [
            Account::Adjustments(project),
            Account::OperatorLoss,
            Account::Revenue(ClassNo(0)),
            Account::Rounding,
            Account::Receivable(ProjectNo(project.0 + 1)),
            Account::Tax,
            Account::CashClearing,
        ];
        let usual = if self.dice.one_in(6) { others.len() } else { 4 };
        let other = others[self.dice.index(usual)];
        let off = i128::from(self.wrong());
        let amounts = [(Account::Receivable(project), amount), (other, Steps(off - amount.0))];
        let open = self.open_month();
        let original_month = self.dice.one_in(2).then(|| *self.dice.pick(&[open, open, open.previous(), open.next()]));
        Command::AdjustLedger(AdjustLedger {
            project,
            currency: self.currency(),
            original_month,
            legs: amounts.map(|(account, amount)| Leg { account, amount }).to_vec(),
            reason: name("by hand"),
        })
    }

    fn dispute(&mut self) -> Command {
        let entry = self.some_entry().unwrap_or(EntryId { sequence: 1, position: 0 });
        let (project, tenant) = self.project();
        let open = !self.dice.one_in(3);
        Command::DisputeEntry(DisputeEntry { tenant, project, entry, open, reason: name("too much") })
    }

    fn tax(&mut self) -> Command {
        let open = self.open_month();
        let from = self.dice.one_in(2).then(|| *self.dice.pick(&[open, open.next(), open.previous()]));
        let rate = Decimal(*self.dice.pick(&[0, 190_000_000, 77_000_001, 1_000_000_000, 1_000_000_001]));
        Command::PutTaxRate(PutTaxRate { tenant: self.project().1, from, rate })
    }

    fn pay(&mut self) -> Command {
        let number = InvoiceNo { series: *self.dice.pick(InvoiceSeries::ALL), number: 1 + self.dice.below(3) };
        let owed: Vec<(TenantNo, Currency, i128)> = self
            .ledger
            .balances()
            .into_iter()
            .filter_map(|((account, currency), sum)| match account {
                Account::Invoiced(tenant) => Some((tenant, currency, sum)),
                _ => None,
            })
            .collect();
        let (tenant, currency, amount) = match owed.len() {
            0 => (self.project().1, self.currency(), i128::from(self.dice.below(3))),
            _ => *self.dice.pick(&owed),
        };
        Command::RecordPayment(RecordPayment {
            tenant,
            currency,
            amount: Steps(amount),
            invoice: self.dice.one_in(2).then_some(number),
            reference: name(&format!("bank {}", self.dice.below(40))),
            received_at: self
                .dice
                .one_in(3)
                .then(|| Instant(self.now.0 - 1_000_000_000 + self.dice.below(1_100_000_000))),
        })
    }

    /// Statements for most of those who lack one, mostly right.
    fn statements(&mut self, month: Month) -> Vec<Command> {
        let Some((_, cut)) = self.ledger.closing() else { return Vec::new() };
        let lacking = self.ledger.invoiced_in(month).into_iter().filter(|(_, stated)| !stated);
        let tenants: Vec<TenantNo> = lacking.map(|(tenant, _)| tenant).filter(|_| !self.dice.one_in(5)).collect();
        tenants.into_iter().map(|tenant| self.statement(tenant, month, cut)).collect()
    }

    /// A statement for anybody who got an invoice, perhaps for the second time.
    fn state_period(&mut self) -> Command {
        let (month, cut) = self.ledger.closing().unwrap_or((self.open_month(), self.state.size()));
        let invoiced = self.ledger.invoiced_in(month);
        let tenant = match invoiced.len() {
            0 => self.project().1,
            _ => self.dice.pick(&invoiced).0,
        };
        self.statement(tenant, month, cut)
    }

    fn statement(&mut self, tenant: TenantNo, month: Month, cut: u64) -> Command {
        let tenant = if self.wrong() { TenantNo(small(&mut self.dice, 4)) } else { tenant };
        let border = self.dice.below(cut + 1);
        let set = |count| RecordSet { count, root: [9; 32] };
        let mut stated = PeriodStated {
            month: if self.wrong() { month.next() } else { month },
            from: self.dice.below(border + 1),
            border,
            cut,
            records: set(self.dice.below(100)),
            common: set(self.dice.below(100)),
            list_at_start: [1; 32],
            list_at_border: [2; 32],
            common_at_start: [3; 32],
            common_at_border: [4; 32],
            claimed_nodes: [5; 32],
        };
        match self.dice.below(30) {
            0 => stated.from = stated.border + 1,
            1 => stated.border = stated.cut + 1,
            2 => stated.cut += 1,
            _ => {}
        }
        Command::StatePeriod(StatePeriod { tenant, stated })
    }

    fn issue(&mut self) -> Command {
        let month = self.ledger.closing_month().unwrap_or(self.open_month());
        let due: Vec<(TenantNo, Currency)> = self.ledger.invoices_of(month).into_iter().collect();
        if due.is_empty() {
            return Command::FinishPeriod(month);
        }
        let of = *self.dice.pick(&due);
        self.issue_to(of, month)
    }

    fn issue_to(&mut self, (tenant, currency): (TenantNo, Currency), month: Month) -> Command {
        let mut projects = self.ledger.owed(tenant, currency, month);
        if self.wrong() && projects.len() > 1 {
            projects.pop();
        }
        let taxes = self.ledger.taxes(tenant, currency, month);
        let mut taxed: Vec<(Decimal, Steps)> = taxes.iter().map(|line| (line.rate, line.posted)).collect();
        if self.wrong() {
            taxed.iter_mut().for_each(|(_, posted)| posted.0 += 1);
        }
        let due_at = self.now.saturating_add(Span::from_secs(30 * 86_400));
        Command::IssueInvoice(IssueInvoice { tenant, currency, projects, taxed, lines: 1, lines_hash: [7; 32], due_at })
    }
}
