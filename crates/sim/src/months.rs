//! Stories in which months are closed: app runtimes, their usage and the ledger, and nearly nothing else, so that much of
//! it happens in few steps. The second month is a whole one.

use crate::life::{Life, Step};
use crate::{apps, entitlements, ledgers, policies, prepaid, shares, sharing, usage};
use leasehold_engine::command::{OpenLedger, PutUnitPrice, SettleHour};
use leasehold_engine::{Command, State};
use leasehold_model::ledger::HOUR_NS;
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{Identity, Instant, Month, ProjectNo, Span, TenantNo, UnitNo};
use leasehold_oracle::Dice;

impl Life<'_> {
    pub(crate) fn live_months(&mut self, steps: u32, dice: &mut Dice) -> Step<()> {
        let start = Month::of(self.core.stamp()).start().0 - HOUR_NS * (1 + dice.below(2));
        // Allocations are submitted only for their numbers: on drained nodes none is placed.
        for node in self.now.read(|state| state.nodes().map(|node| node.number).collect::<Vec<_>>()) {
            self.settle(Command::DrainNode(node.into()))?;
        }
        // Some is used before there is a ledger, and superseded later.
        let early = if dice.one_in(3) { 20 } else { 0 };
        for _ in 0..early {
            self.use_runtimes(dice)?;
        }
        self.settle(Command::OpenLedger(OpenLedger { from: Some(Instant(start)) }))?;
        let first = self.truth.oracle.ledger().first_open();
        // Units of the apps that there are from the beginning.
        for unit in [0, 2, 4].into_iter().filter(|_| !dice.one_in(4)).map(UnitNo).collect::<Vec<_>>() {
            let price = Decimal(1 + dice.below(1 << 32));
            let put = PutUnitPrice { unit, app_type: None, currency: Currency::DEFAULT, price, from: None };
            self.decide(Identity::default(), Command::PutUnitPrice(put))?;
        }
        let mut is_long = dice.one_in(3);
        for step in 0..steps {
            self.use_runtimes(dice)?;
            for command in self.wanted_of_ledger() {
                self.decide(Identity::default(), command)?;
            }
            let ledger = self.truth.oracle.ledger();
            if is_long && ledger.closing().is_none() && ledger.first_open() > first {
                is_long = false;
                self.pass_month()?;
            }
            if step % 40 == 0 {
                self.check_states("between steps")?;
                self.check_replay()?;
            }
        }
        self.check_states("at the end")?;
        self.check_replay()
    }

    fn decide(&mut self, identity: Identity, command: Command) -> Step<()> {
        // Hours are settled here without everything that a settlement posts: nobody may go whose usage was left out.
        let oracle = &self.truth.oracle;
        let goes = |project: ProjectNo, tenant: TenantNo| {
            matches!(&command, Command::DeleteProject(gone) if *gone == project)
                || matches!(&command, Command::DeleteTenant(gone) if *gone == tenant)
        };
        let projects =
            self.now.read(|state| state.projects().map(|(of, found)| (of, found.tenant)).collect::<Vec<_>>());
        if projects.into_iter().any(|(project, tenant)| goes(project, tenant) && oracle.has_usage_to_post(project)) {
            return Ok(());
        }
        self.make_room()?;
        let is_alive = self.settle_as(identity, command)?;
        if is_alive { Ok(()) } else { Err("a disk without faults has failed".to_owned()) }
    }

    fn use_runtimes(&mut self, dice: &mut Dice) -> Step<()> {
        self.truth.clock.advance(Span::from_millis(1 + dice.below(4000)));
        for (identity, command) in self.wanted(dice) {
            self.decide(identity, command)?;
        }
        Ok(())
    }

    /// What is asked for at one time.
    fn wanted(&mut self, dice: &mut Dice) -> Vec<(Identity, Command)> {
        let now = self.core.stamp();
        let (records, before) = (&self.truth.records, &mut self.truth.topped_up);
        let has_prepaid = self.truth.has_prepaid;
        let mut commands = Vec::new();
        self.now.read(|state: &State| {
            commands.extend(sharing::any(state, records, now, true));
            commands.extend(usage::work(state, records, now, true));
            commands.extend(usage::any(state, records, now).filter(|_| dice.one_in(2)));
            commands.extend(apps::on_account(state, now));
            commands.extend(policies::any(state, now));
            commands.extend(apps::any(state, now).filter(|_| dice.one_in(4)));
            commands.extend(entitlements::any(state, records, now).filter(|_| dice.one_in(4)));
            let credit = prepaid::any(state, before, now).filter(|_| has_prepaid && dice.one_in(2));
            commands.extend(credit.map(|command| (Identity::default(), command)));
        });
        commands
    }

    fn wanted_of_ledger(&mut self) -> Vec<Command> {
        let (now, oracle) = (self.core.stamp(), &self.truth.oracle);
        self.now.read(|state: &State| {
            let about_shares = shares::any(state, oracle, now);
            let other = ledgers::any(state, oracle.ledger(), now).filter(|_| about_shares.is_empty());
            other.into_iter().chain(about_shares).collect()
        })
    }

    /// Waits for the end of the open month, and settles all but its last hours.
    fn pass_month(&mut self) -> Step<()> {
        let end = self.truth.oracle.ledger().first_open().end();
        let now = self.core.stamp();
        self.truth.clock.advance(Span(end.0.saturating_sub(now.0)));
        while self.truth.oracle.ledger().settled().0 + 2 * HOUR_NS < end.0 {
            let through = Instant(self.truth.oracle.ledger().settled().0 + HOUR_NS);
            let as_of_size = self.now.read(State::size);
            self.decide(Identity::default(), Command::SettleHour(SettleHour { through, as_of_size }))?;
            // A posting that lacks parts is completed by the commands of the next steps.
            if self.truth.oracle.ledger().settled() < through {
                break;
            }
        }
        Ok(())
    }
}
