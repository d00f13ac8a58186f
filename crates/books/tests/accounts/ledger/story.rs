//! An engine with a small cluster, the books that follow it, and the audit of its ledger.

use crate::files::books_key;
use crate::history::{keys, name};
use leasehold_books::{Books, EndedClaim, EndedOnNode, Keeper, Row};
use leasehold_engine::command::{self, SettleLoss, ShareCost, TopUp};
use leasehold_engine::{Command, Engine, Refusal, Request, State};
use leasehold_journal::{Journal, MemoryJournal};
use leasehold_model::body::{BelongsTo, Genesis, Started};
use leasehold_model::rate::Charge;
use leasehold_model::{
    AppInstanceNo, Batch, FORMAT_VERSION, Identity, Instant, PoolNo, ProjectNo, RULES_VERSION, Record, Span, TenantNo,
};
use leasehold_oracle::ledger::Audit;
use leasehold_oracle::{Oracle, Settings};
use leasehold_sim::{Dice, draw};
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) type Step<T> = Result<T, String>;

const HOUR: u64 = 3_600_000_000_000;

/// Where the books are kept between crashes.
pub(crate) enum Shelf {
    Memory,
    File(PathBuf),
}

pub(crate) struct Story {
    pub(crate) engine: Engine,
    pub(crate) now: Instant,
    pub(crate) records: Vec<Record>,
    pub(crate) audit: Audit,
    pub(crate) dice: Dice,
    journal: MemoryJournal,
    keeper: Keeper,
    shelf: Shelf,
    /// How much longer everything takes than in the simulator.
    slower: u64,
    /// The whole model, where there is prepaid credit, and the last credit that was asked for.
    oracle: Option<Oracle>,
    topped_up: Option<TopUp>,
    /// Whether the cost of control planes is shared.
    pub(crate) shares: bool,
}

impl Story {
    /// A journal without a cluster.
    pub(crate) fn empty(now: Instant, shelf: Shelf) -> Step<Self> {
        let mut story = Self {
            engine: Engine::new(State::new()),
            now,
            records: Vec::new(),
            audit: Audit::default(),
            dice: Dice::new(0),
            journal: MemoryJournal::new(Arc::new(keys())),
            keeper: Keeper::in_memory(),
            shelf,
            slower: 1,
            oracle: None,
            topped_up: None,
            shares: false,
        };
        let genesis = Genesis {
            format_version: FORMAT_VERSION,
            origin: name("sim.example"),
            public_key: keys().public_keys()[0],
            software: name("a ledger's story"),
        };
        let mut batch = Batch::new(0);
        story.engine.genesis(now, genesis, &mut batch);
        let started = Started { epoch: 1, software: name("sim"), rules_version: RULES_VERSION, clock_accepted: None };
        story.engine.started(now, started, &mut batch);
        story.publish(&batch)?;
        Ok(story)
    }

    /// A cluster some time before the end of a month.
    pub(crate) fn begin(seed: u64, shelf: Shelf) -> Step<Self> {
        let mut dice = Dice::new(seed ^ 0x1ed6_e500);
        let month_end = *dice.pick(&[1_772_323_200, 1_775_001_600, 1_798_761_600]);
        let now = Instant(month_end * 1_000_000_000 - dice.below(60 * HOUR));
        let mut story = Self::empty(now, shelf)?;
        if seed % 4 == 3 {
            let mut oracle = Oracle::with_settings(settings());
            let known = story.records.iter().try_for_each(|record| oracle.observe(record));
            known.map_err(|violation| violation.to_string())?;
            story.oracle = Some(oracle);
        }
        story.slower = 1 + dice.below(60);
        story.dice = dice;
        for mut command in draw::world(&mut story.dice) {
            story.stretch(&mut command);
            // Some of it is invalid.
            let _ = story.operate(command)?;
        }
        for step in 0..draw::FOUNDING {
            if let Some(command) = draw::founding(story.engine.state(), step) {
                let _ = story.operate(command)?;
            }
        }
        Ok(story)
    }

    pub(crate) fn books(&self) -> &Books {
        &self.keeper.books
    }
    pub(crate) fn size(&self) -> u64 {
        self.records.len() as u64
    }

    /// Gives new records to the journal, the books and the audit.
    fn publish(&mut self, batch: &Batch) -> Step<()> {
        let mut sealed = Batch::new(self.size());
        for frame in batch.frames() {
            let record = frame.map_err(|error| error.to_string())?.decode().map_err(|error| error.to_string())?;
            if std::env::var("LEASEHOLD_ACCOUNTS_TELL").is_ok() {
                let who =
                    (record.identity.tenant.map(|no| no.0), record.identity.project.map(|no| no.0), record.reason);
                println!("{} {} {} {who:?} {:?}", record.sequence, record.stamp, record.effective_at, record.body);
            }
            self.audit.observe(&record).map_err(|violation| format!("{violation}\n  {record:?}"))?;
            let told = self.oracle.as_mut().map_or(Ok(()), |oracle| oracle.observe(&record));
            told.map_err(|violation| format!("{violation}\n  {record:?}"))?;
            if matches!(self.shelf, Shelf::Memory) {
                self.keeper.books.apply(&record).map_err(|error| format!("{error}\n  {record:?}"))?;
            }
            sealed.push(&record);
            self.records.push(record);
        }
        if !sealed.is_empty() && matches!(self.shelf, Shelf::File(_)) {
            self.journal.append(&mut sealed).map_err(|error| error.to_string())?;
            self.keeper.follow(&self.journal, u64::MAX / 2).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// The books are lost and read again, from their file or from all records.
    pub(crate) fn crash(&mut self) -> Step<()> {
        match &self.shelf {
            Shelf::Memory => {
                self.keeper = Keeper::in_memory();
                for record in &self.records {
                    self.keeper.books.apply(record).map_err(|error| format!("{error}\n  {record:?}"))?;
                }
            }
            Shelf::File(path) => {
                self.keeper = Keeper::in_memory();
                let opened = Keeper::open(path, &self.journal, &books_key()).map_err(|error| error.to_string())?;
                self.keeper = opened.0;
                self.keeper.follow(&self.journal, u64::MAX / 2).map_err(|error| error.to_string())?;
            }
        }
        let snapshot = self.engine.state().to_snapshot();
        let state = State::from_snapshot(&snapshot).map_err(|error| error.to_string())?;
        self.engine = Engine::new(state);
        Ok(())
    }

    /// Writes the books to their file, if they have one.
    pub(crate) fn commit(&mut self) -> Step<()> {
        match self.shelf {
            Shelf::Memory => Ok(()),
            Shelf::File(_) => self.keeper.commit(&self.journal).map_err(|error| error.to_string()),
        }
    }

    /// Decides a command after everything that is due. Returns the sequence of its first record.
    pub(crate) fn submit(&mut self, identity: Identity, command: Command) -> Step<Result<u64, Refusal>> {
        self.decide(&Request::new(identity, command))
    }

    /// A command of the operator or of the daemon.
    pub(crate) fn operate(&mut self, command: Command) -> Step<Result<u64, Refusal>> {
        self.submit(Identity::default(), command)
    }

    pub(crate) fn decide(&mut self, request: &Request) -> Step<Result<u64, Refusal>> {
        self.come_due()?;
        let mut batch = Batch::new(self.size());
        let done = self.engine.decide(self.now, request, &mut batch);
        self.publish(&batch)?;
        Ok(done.map(|sealed| sealed.records.first))
    }

    fn come_due(&mut self) -> Step<()> {
        let mut batch = Batch::new(self.size());
        while !self.engine.advance(self.now, &mut batch, 10_000) {}
        self.publish(&batch)
    }

    /// Time passes: seconds, minutes, hours or days.
    pub(crate) fn wait(&mut self) -> Step<()> {
        let dice = &mut self.dice;
        let span = match dice.below(40) {
            0..8 => dice.below(20_000_000_000),
            8..28 => dice.below(HOUR / 3),
            28..37 => dice.below(4 * HOUR),
            37 | 38 => dice.below(20 * HOUR),
            // Exactly to the next hour.
            _ => HOUR - self.now.0 % HOUR,
        };
        self.pass(Span(span))
    }

    pub(crate) fn pass(&mut self, span: Span) -> Step<()> {
        self.now = self.now.saturating_add(span);
        self.come_due()?;
        if self.dice.one_in(2) {
            let beat = self.operate(Command::Heartbeat(leasehold_engine::command::Nothing {}))?;
            beat.map_err(|refusal| format!("a heartbeat: {refusal}"))?;
        }
        Ok(())
    }

    /// Some request of the simulator, in slow motion.
    pub(crate) fn ask(&mut self) -> Step<()> {
        if self.oracle.is_some() {
            let command = draw::about_prepaid(self.engine.state(), &mut self.topped_up, self.now);
            command.map_or(Ok(()), |command| self.operate(command).map(drop))?;
        }
        let mut request = draw::request(self.engine.state(), self.now, &mut self.dice);
        self.stretch(&mut request.command);
        self.serve(&mut request);
        // The daemon knows the caller by the token, and a tenant's token belongs to its own people.
        let state = self.engine.state();
        let owner = |token| state.token(token).and_then(|found| found.scope.tenant);
        let tenant = request.identity.tenant;
        request.identity.token =
            request.identity.token.filter(|token| owner(*token).is_none_or(|owner| Some(owner) == tenant));
        self.decide(&request).map(drop)?;
        let about_apps = draw::about_apps(self.engine.state(), self.now);
        about_apps.map_or(Ok(()), |request| self.decide(&request).map(drop))?;
        if self.shares
            && let Some(request) = draw::about_sharing(self.engine.state(), &self.records, self.now)
        {
            self.decide(&request).map(drop)?;
        }
        self.report()
    }

    /// What control planes cost is divided before anybody is billed, as the daemon does it.
    pub(crate) fn share_costs(&mut self) -> Step<()> {
        let due: Vec<_> = self.engine.state().shares_due().collect();
        for (app_instance, currency) in due {
            let shared = self.operate(Command::ShareCost(ShareCost { app_instance, currency }))?;
            shared.map_err(|refusal| format!("a share: {refusal}"))?;
        }
        Ok(())
    }

    /// Some capacity serves a control plane.
    fn serve(&mut self, request: &mut Request) {
        let control_plane = self.dice.one_in(if self.shares { 4 } else { 12 });
        let runtime = self.shares.then(|| self.some_runtime()).flatten();
        if let Command::Request(lease) = &mut request.command {
            if let Some((number, tenant, project)) = runtime.filter(|_| control_plane) {
                lease.app_instance = Some(number);
                request.identity = Identity { tenant: Some(tenant), project: Some(project), ..Identity::default() };
            }
            lease.control_plane |= control_plane;
        } else if let Command::SubmitAllocation(submit) = &mut request.command {
            submit.spec.control_plane |= control_plane;
        }
    }

    /// A runtime and who owns it.
    fn some_runtime(&mut self) -> Option<(AppInstanceNo, TenantNo, ProjectNo)> {
        let all = self.engine.state().app_instances_after(None);
        let all: Vec<_> = all.map(|found| (found.number, found.tenant, found.project)).collect();
        (!all.is_empty()).then(|| *self.dice.pick(&all))
    }

    /// Lets leases last for hours, nodes be lost for hours, and policies forgive as much.
    fn stretch(&mut self, command: &mut Command) {
        let slower = self.slower;
        let longer = |span: &mut Span| span.0 = span.0.saturating_mul(slower);
        let now = self.now;
        if let Command::Request(request) = command {
            longer(&mut request.ttl);
        } else if let Command::Renew(renewals) = command {
            renewals.iter_mut().for_each(|renewal| longer(&mut renewal.ttl));
        } else if let Command::SubmitAllocation(submit) = command {
            submit.spec.ttl.iter_mut().chain(&mut submit.spec.walltime).for_each(longer);
        } else if let Command::PutPool(pool) = command {
            let some = [&mut pool.ttl_max, &mut pool.lifetime_max];
            some.into_iter().flat_map(|spans| spans.0.iter_mut().flatten()).for_each(longer);
        } else if let Command::ChangeSettings(settings) = command {
            longer(&mut settings.ttl_max);
        } else if let Command::LoseNode(lose) = command {
            lose.last_seen = Instant(now.0.saturating_sub(now.0.saturating_sub(lose.last_seen.0) * slower));
        } else if let Command::PutChargePolicy(put) = command {
            let charges = &mut put.charges;
            for charge in
                [&mut charges.preempted, &mut charges.fenced, &mut charges.node_lost, &mut charges.failed_start]
            {
                if let Charge::MinusLast(span) = charge {
                    longer(span);
                }
            }
        } else if let Command::PutRateCard(put) = command {
            // Cards for all pools are rare otherwise.
            put.pool = put.pool.filter(|pool| *pool != PoolNo(2));
        }
    }

    /// What ended on a lost node after it was last seen is named, as the daemon does it.
    pub(crate) fn settle_losses(&mut self) -> Step<()> {
        let open: Vec<_> = self.engine.state().open_losses().collect();
        for (loss, of) in open {
            let EndedOnNode { leases, claims } =
                self.books().ended_after(loss, of.node, of.last_seen).map_err(|error| error.to_string())?;
            let settle = SettleLoss {
                loss,
                leases: leases.iter().map(ended_lease).collect(),
                claims: claims.iter().map(ended_claim).collect(),
                complete: true,
            };
            self.operate(Command::SettleLoss(settle))?.map_err(|refusal| format!("a loss: {refusal}"))?;
        }
        Ok(())
    }
}

fn ended_lease(row: &Row) -> command::EndedLease {
    command::EndedLease {
        lease: row.lease,
        tenant: row.tenant,
        project: row.project,
        user: row.user,
        workload: row.workload.clone(),
        belongs_to: BelongsTo { allocation: row.allocation, correlation: row.correlation() },
    }
}

fn ended_claim(ended: &EndedClaim) -> command::EndedClaim {
    let EndedClaim { claim, tenant, project, user, .. } = *ended;
    command::EndedClaim { claim, tenant, project, user }
}

/// The settings with which an engine begins.
fn settings() -> Settings {
    let known = leasehold_engine::Settings::default();
    Settings {
        ttl_max: known.ttl_max,
        grace_default: known.grace_default,
        teardown_deadline: known.teardown_deadline,
        node_timeout: known.node_timeout,
        idempotency_window: known.idempotency_window,
    }
}
