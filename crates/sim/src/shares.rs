//! Random commands of the ledger about control planes and what is shared of their cost: postings of what they cost and of
//! reported usage, with both sides of work that is charged, and shares that are due or not. They are drawn from dice of
//! their own: other draws would change what every kept seed does.

use crate::requests::{name, small};
use crate::{ledgers, sharing};
use leasehold_engine::command::{AdjustLedger, PostUsage, RatedLine, SettleHour, ShareCost};
use leasehold_engine::{AppInstance, Command, State};
use leasehold_model::ledger::{ExactSteps, HOUR_NS, Item, Magnitude};
use leasehold_model::rate::Currency;
use leasehold_model::{
    Account, AppInstanceNo, Body, ClassNo, ControlPlaneScope, Instant, Leg, LineKey, Month, PoolNo, Priority,
    ProjectNo, Record, Steps, UsageDelta,
};
use leasehold_oracle::{Dice, Oracle};
use std::collections::BTreeSet;

/// Some commands about shares, at times: often those that bring the end of the first month nearer. The oracle must know
/// everything that was decided.
pub(crate) fn any(state: &State, oracle: &Oracle, now: Instant) -> Vec<Command> {
    let dice = Dice::new(now.0.rotate_left(7) ^ state.size() << 22 ^ 0x5a4e5);
    let ledger = oracle.ledger();
    if ledger.opened().is_none() {
        return Vec::new();
    }
    let mut drawn = Drawn { state, oracle, now, dice };
    match ledger.closing() {
        None => drawn.before_the_end(),
        Some(_) => drawn.at_the_end(),
    }
}

/// The runtimes whose control planes cost something so far.
pub(crate) fn costly(records: &[Record]) -> BTreeSet<AppInstanceNo> {
    let mut found = BTreeSet::new();
    for record in records {
        if let Body::LedgerPosted(posted) = &record.body {
            let lines = posted.lines.iter().filter(|line| line.key.control_plane);
            found.extend(lines.filter_map(|line| line.key.app_instance));
        }
    }
    found
}

struct Drawn<'a> {
    state: &'a State,
    oracle: &'a Oracle,
    now: Instant,
    dice: Dice,
}

fn digits(number: u64) -> Magnitude {
    Magnitude::from_digits(&number.to_be_bytes()).expect("8 bytes")
}

impl<'a> Drawn<'a> {
    /// Mostly a runtime that is shared.
    fn instance(&mut self) -> Option<&'a AppInstance> {
        let all: Vec<&AppInstance> = self.state.app_instances_after(None).collect();
        let is_shared = |found: &&AppInstance| found.scope != ControlPlaneScope::Project;
        let shared: Vec<&AppInstance> = all.iter().copied().filter(is_shared).collect();
        let from = if shared.is_empty() || self.dice.one_in(6) { all } else { shared };
        (!from.is_empty()).then(|| *self.dice.pick(&from))
    }

    /// Costs, and the next hour up to the end of the month; then its cut.
    fn before_the_end(&mut self) -> Vec<Command> {
        let ledger = self.oracle.ledger();
        let (settled, month) = (ledger.settled(), ledger.first_open());
        let mut commands = Vec::new();
        if self.dice.one_in(2) {
            commands.extend(self.costs());
        } else if self.dice.one_in(2) {
            commands.extend(self.reported());
        }
        if self.dice.one_in(30) {
            commands.extend(self.by_hand());
        }
        if self.dice.one_in(30) {
            commands.push(self.some_share());
        }
        if settled < month.end() && self.dice.one_in(4) {
            let through = Instant(settled.0 + HOUR_NS);
            commands.push(Command::SettleHour(SettleHour { through, as_of_size: self.state.size() }));
        } else if settled >= month.end() && self.dice.one_in(10) {
            commands.push(Command::ClosePeriod(month));
        }
        commands
    }

    /// What is left to be posted, the shares, and invoices; not always in this order.
    fn at_the_end(&mut self) -> Vec<Command> {
        let due: Vec<(AppInstanceNo, Currency)> = self.state.shares_due().collect();
        let share = |(app_instance, currency)| Command::ShareCost(ShareCost { app_instance, currency });
        match self.dice.below(10) {
            0..2 => self.costs(),
            2 => self.reported().into_iter().collect(),
            3 if self.dice.one_in(2) => vec![self.some_share()],
            3 if !due.is_empty() => vec![share(*self.dice.pick(&due))],
            4..8 if !due.is_empty() => {
                // A project may go before it bears its share.
                let gone = sharing::named_project(self.state, &mut self.dice).filter(|_| self.dice.one_in(2));
                gone.map(Command::DeleteProject).into_iter().chain(due.into_iter().map(share)).collect()
            }
            _ => ledgers::rest_of_month(self.state, self.oracle.ledger(), self.now, &mut self.dice),
        }
    }

    /// An entry by hand on the account of a runtime.
    fn by_hand(&mut self) -> Option<Command> {
        let found = self.instance()?;
        let (own, other) = (Account::Receivable(found.project), Account::SharedRuntime(found.number));
        let amount = Steps(1 + i128::from(self.dice.below(1000)));
        let legs = vec![Leg { account: own, amount }, Leg { account: other, amount: -amount }];
        let (project, currency, reason) = (found.project, Currency::DEFAULT, name("by hand"));
        Some(Command::AdjustLedger(AdjustLedger { project, currency, original_month: None, legs, reason }))
    }

    /// What some control planes cost their owners, each payer once.
    fn costs(&mut self) -> Vec<Command> {
        let mut payers = BTreeSet::new();
        let all = (0..3).filter_map(|_| self.cost());
        let each = all.filter(|post| payers.insert((post.project, post.currency)));
        each.map(Command::PostUsage).collect()
    }

    fn some_share(&mut self) -> Command {
        let known = self.instance().map(|found| found.number);
        let app_instance = known.filter(|_| !self.dice.one_in(6)).unwrap_or(AppInstanceNo(self.dice.below(12)));
        let currency = Currency::new(["EUR", "EUR", "CHF", "JPY"][self.dice.index(4)]).expect("three letters");
        Command::ShareCost(ShareCost { app_instance, currency })
    }

    /// The end of the hours that can be posted now, and from how many records: those of the next hour, or those of the
    /// month that is being closed.
    fn place(&self) -> Option<(Instant, u64)> {
        let ledger = self.oracle.ledger();
        let next = Instant(ledger.settled().0 + HOUR_NS);
        match ledger.closing() {
            Some((_, cut)) => Some((ledger.settled(), cut)),
            None => (next <= self.now).then_some((next, self.state.size())),
        }
    }

    /// A complete posting of lines that are booked in one month.
    fn posting(&self, (project, currency): (ProjectNo, Currency), mut lines: Vec<RatedLine>) -> Option<PostUsage> {
        let ledger = self.oracle.ledger();
        let (through, as_of_size) = self.place()?;
        let from = ledger.opened()?;
        lines.retain(|line| line.key.hour >= from && line.key.hour < through);
        lines.sort_by(|one, next| one.key.cmp(&next.key));
        lines.dedup_by(|one, next| one.key == next.key);
        let first_open = ledger.closing_month().unwrap_or(ledger.first_open());
        let booked = |line: &RatedLine| Month::of(line.key.hour).max(first_open);
        let month = booked(lines.first()?);
        lines.retain(|line| booked(line) == month);
        let own = ledger.payers().find(|(of, ..)| *of == (project, currency));
        Some(PostUsage {
            tenant: self.state.project(project)?.tenant,
            project,
            currency,
            month,
            through,
            complete: true,
            as_of_size,
            previous: own.and_then(|(_, last, _)| last),
            lines,
        })
    }

    /// What the control plane of a runtime cost its owner in an hour, sometimes another project.
    fn cost(&mut self) -> Option<PostUsage> {
        let (through, _) = self.place()?;
        let found = self.instance()?;
        let currency = Currency::new(if self.dice.one_in(6) { "CHF" } else { "EUR" }).expect("three letters");
        let lines = (0..1 + self.dice.below(3)).map(|_| self.line(found, through)).collect();
        let payers: Vec<ProjectNo> = self.state.projects().map(|(number, _)| number).collect();
        let payer = if self.dice.one_in(12) { *self.dice.pick(&payers) } else { found.project };
        self.posting((payer, currency), lines)
    }

    fn line(&mut self, found: &AppInstance, through: Instant) -> RatedLine {
        let key = LineKey {
            hour: Instant(through.0 - HOUR_NS * (1 + self.dice.below(2))),
            project: found.project,
            pool: PoolNo(small(&mut self.dice, 2)),
            item: Item::Class(ClassNo(u16::try_from(self.dice.below(3)).expect("small"))),
            priority: Priority::Standard,
            priced: Priority::Standard,
            tag: None,
            app_instance: Some(found.number),
            attachment: None,
            control_plane: !self.dice.one_in(6),
            card: None,
        };
        let most = if self.dice.one_in(3) { 40 } else { 90_000_000 };
        let thirds = (1 + self.dice.below(most)) * 3 + 1;
        let negative = self.dice.one_in(5);
        let exact = ExactSteps { negative, numerator: digits(thirds), denominator: digits(3) };
        let usage = i128::from(self.dice.below(1 << 50));
        RatedLine { key, usage: UsageDelta(if negative { -usage } else { usage }), exact }
    }

    /// What a payer was charged for usage, or credited with; sometimes what is given back.
    fn reported(&mut self) -> Option<Command> {
        let (through, _) = self.place()?;
        let from = self.oracle.ledger().opened()?;
        let mut all = self.oracle.unit_lines();
        all.retain(|(_, key, ..)| key.hour >= from && key.hour < through);
        let credits: Vec<_> = all.iter().filter(|(_, _, usage, _)| *usage < 0).map(|(payer, ..)| *payer).collect();
        let payers: Vec<_> = all.iter().map(|(payer, ..)| *payer).collect();
        let among = if credits.is_empty() || self.dice.one_in(2) { payers } else { credits };
        let payer = if among.is_empty() { None } else { Some(*self.dice.pick(&among)) }?;
        let gives_back = self.dice.one_in(5);
        let mut lines = Vec::new();
        for (_, key, usage, mut exact) in all.into_iter().filter(|(of, ..)| *of == payer) {
            let usage = if gives_back { -usage } else { usage };
            exact.negative = exact.negative != gives_back && !exact.numerator.is_zero();
            if !self.dice.one_in(3) {
                lines.push(RatedLine { key, usage: UsageDelta(usage), exact });
            }
        }
        self.posting(payer, lines).map(Command::PostUsage)
    }
}
