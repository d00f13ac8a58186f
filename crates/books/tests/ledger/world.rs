//! An engine, and books that follow its records. Time is given as text: `10:20` is on 30 November 2026, `12-01 00:10` on
//! another day of that winter.

use leasehold_books::{Books, Entry, EntryQuestion, Keeper};
use leasehold_engine::command::{
    CorrectEntry, EndedClaim, EndedLease, LoseNode, OpenLedger, PutAppInstance, PutAppType, PutChargePolicy, PutClass,
    PutNode, PutPool, PutProject, PutRateCard, PutTenant, PutUser, ReleaseOne, RequestLease, SettleHour, SettleLoss,
};
use leasehold_engine::{Command, Engine, Refusal, Request, State};
use leasehold_journal::{Journal, Keys, MemoryJournal};
use leasehold_model::body::{BelongsTo, Body, CorrectedLine, Genesis, PerPriority, Started};
use leasehold_model::rate::{Charges, Currency, Decimal, Prices};
use leasehold_model::{
    Account, AppInstanceNo, AppOrigin, AppTypeNo, Batch, ClassNo, ClassSpec, ControlPlaneScope, EntryId,
    FORMAT_VERSION, Identity, Instant, LeaseNo, Leg, Month, Name, NodeNo, OperatingMode, PoolNo, Priority, ProjectNo,
    Quanta, RULES_VERSION, Record, ResourceKind, RuntimeBackend, Span, Steps, Strategy, TeardownMode, TenantNo,
    TenantSettings, UserNo,
};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const GPU: ClassNo = ClassNo(0);
pub(crate) const EUR: Currency = Currency::DEFAULT;

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) books: Books,
    pub(crate) records: Vec<Record>,
    now: Instant,
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// `10:20`, `10:20:30`, `12-01 00:10`; without a day it is 30 November 2026.
pub(crate) fn at(text: &str) -> Instant {
    let (day, clock) = text.split_once(' ').unwrap_or(("11-30", text));
    let (month, day) = day.split_once('-').expect("a month and a day");
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let year = if number(month) < 6 { 2027 } else { 2026 };
    let month = Month::new(year, u32::try_from(number(month)).expect("small")).expect("a month");
    let mut clock = clock.split(':').map(number);
    let mut part = || clock.next().unwrap_or(0);
    let seconds = (number(day) - 1) * 86_400 + part() * 3600 + part() * 60 + part();
    month.start().saturating_add(Span::from_secs(seconds))
}

pub(crate) fn steps(text: &str) -> Steps {
    text.parse().expect("an amount")
}

impl World {
    /// Its journal, sealed with keys of the test.
    pub(crate) fn sealed(&self) -> MemoryJournal {
        let keys = Keys::new("test", &[9; 32]).expect("a valid origin");
        let (mut records, mut batch) = (self.records.clone(), Batch::new(0));
        if let Body::Genesis(genesis) = &mut records[0].body {
            genesis.public_key = keys.public_keys()[0];
        }
        let journal = MemoryJournal::new(Arc::new(keys));
        records.iter().for_each(|record| batch.push(record));
        journal.append(&mut batch).expect("sealed");
        journal
    }

    /// Two tenants with a project each, two nodes with two GPUs in sevenths, one cent a second and GPU. The ledger is open
    /// from nine o'clock on.
    pub(crate) fn new() -> Self {
        let mut world = Self::unopened(at("09:00"));
        world.ok(Command::OpenLedger(OpenLedger { from: None }));
        world
    }

    /// The same without a ledger.
    pub(crate) fn unopened(from: Instant) -> Self {
        let mut engine = Engine::new(State::new());
        let mut batch = Batch::new(0);
        let genesis = Genesis {
            format_version: FORMAT_VERSION,
            origin: name("test"),
            public_key: [1; 32],
            software: name("tests"),
        };
        engine.genesis(from, genesis, &mut batch);
        let started = Started { epoch: 1, software: name("tests"), rules_version: RULES_VERSION, clock_accepted: None };
        let mut world = Self { engine, books: Keeper::in_memory().books, records: Vec::new(), now: from };
        world.follow(&batch);
        let mut batch = Batch::new(1);
        world.engine.started(from, started, &mut batch);
        world.follow(&batch);
        let spec =
            ClassSpec { name: name("gpu"), kind: ResourceKind::Gpu, tier: None, quanta_per_unit: 7, premium: false };
        world.ok(Command::PutClass(PutClass { class: None, spec }));
        let pool = PutPool {
            pool: None,
            name: name("main"),
            strategy: Strategy::Spread,
            ttl_max: PerPriority([Some(Span::from_secs(40 * 86_400)); 3]),
            lifetime_max: PerPriority::default(),
            grace: Some(Span::ZERO),
            weights: None,
            queue: None,
        };
        world.ok(Command::PutPool(pool));
        for node in ["n0", "n1"] {
            world.ok(Command::PutNode(PutNode {
                node: None,
                name: name(node),
                pool: PoolNo(0),
                rack: None,
                zone: None,
                labels: Vec::new(),
                teardown: TeardownMode::Immediate,
                capacity: vec![(GPU, Quanta(14))],
            }));
        }
        for (number, tenant) in (0..).zip(["physics", "biology"]) {
            let settings = TenantSettings { max_priority: Priority::Guaranteed, ..TenantSettings::named(name(tenant)) };
            world.ok(Command::PutTenant(PutTenant { tenant: None, settings }));
            let tenant = TenantNo(number);
            world.ok(Command::PutProject(PutProject { project: None, tenant, name: name("lab") }));
            world.ok(Command::PutUser(PutUser { user: None, tenant, name: name("ada") }));
        }
        world
    }

    fn follow(&mut self, batch: &Batch) {
        for frame in batch.frames() {
            let record = frame.expect("a whole frame").decode().expect("a record");
            self.books.apply(&record).unwrap_or_else(|error| panic!("{error}: {record:?}"));
            self.records.push(record);
        }
    }

    /// What comes due until then is done, and the engine shows that it is running.
    pub(crate) fn wait(&mut self, until: &str) -> &mut Self {
        self.now = at(until);
        let mut batch = Batch::new(self.engine.state().size());
        assert!(self.engine.advance(self.now, &mut batch, u32::MAX), "everything due is done");
        self.follow(&batch);
        self.ok(Command::Heartbeat(leasehold_engine::command::Nothing {}));
        self
    }

    fn request(&mut self, identity: Identity, command: Command) -> Result<u64, Refusal> {
        let mut batch = Batch::new(self.engine.state().size());
        assert!(self.engine.advance(self.now, &mut batch, u32::MAX), "everything due is done");
        let decided = self.engine.decide(self.now, &Request::new(identity, command), &mut batch);
        self.follow(&batch);
        decided.map(|sealed| sealed.records.first)
    }

    pub(crate) fn try_to(&mut self, command: Command) -> Result<u64, Refusal> {
        self.request(Identity::default(), command)
    }

    /// The sequence of its first record.
    pub(crate) fn ok(&mut self, command: Command) -> u64 {
        let told = format!("{command:?}");
        self.try_to(command).unwrap_or_else(|refusal| panic!("{refusal}: {told}"))
    }

    pub(crate) fn refused(&mut self, command: Command) -> &'static str {
        let before = self.engine.state().digest();
        let code = self.try_to(command).expect_err("it is refused").code();
        assert_eq!(self.engine.state().digest(), before, "a refusal leaves no trace");
        code
    }

    fn holder(tenant: u32) -> Identity {
        Identity {
            tenant: Some(TenantNo(tenant)),
            project: Some(ProjectNo(tenant)),
            user: Some(UserNo(tenant)),
            ..Identity::default()
        }
    }

    /// Registers another runtime of a tenant.
    pub(crate) fn runtime(&mut self, tenant: u32) -> AppInstanceNo {
        if self.engine.state().app_types().next().is_none() {
            let (slug, origin) = (name("slurm"), AppOrigin::Internal);
            self.ok(Command::PutAppType(PutAppType { app_type: None, slug, origin, units: Vec::new() }));
        }
        let all = self.engine.state().app_instances_after(None).count();
        let sequence = self.ok(Command::PutAppInstance(PutAppInstance {
            app_instance: None,
            project: ProjectNo(tenant),
            name: name(&format!("runtime-{all}")),
            app_type: AppTypeNo(0),
            mode: OperatingMode::TenantDedicated,
            scope: ControlPlaneScope::Project,
            backend: RuntimeBackend::Slurm,
        }));
        match &self.records[usize::try_from(sequence).expect("small")].body {
            leasehold_model::Body::AppInstancePut(put) => put.app_instance,
            other => panic!("no runtime: {other:?}"),
        }
    }

    /// A lease of some sevenths of a GPU on a node.
    pub(crate) fn lease(
        &mut self,
        tenant: u32,
        node: u32,
        quanta: u64,
        ttl_s: u64,
        change: impl FnOnce(&mut RequestLease),
    ) -> LeaseNo {
        let mut request =
            RequestLease { node: Some(NodeNo(node)), ..RequestLease::of(GPU, Quanta(quanta), Span::from_secs(ttl_s)) };
        change(&mut request);
        let sequence = self.request(Self::holder(tenant), Command::Request(request)).expect("a grant");
        let record = &self.records[usize::try_from(sequence).expect("small")];
        match &record.body {
            leasehold_model::Body::Granted(granted) => granted.first_lease,
            other => panic!("no grant: {other:?}"),
        }
    }

    pub(crate) fn release(&mut self, tenant: u32, lease: LeaseNo) {
        let release = Command::Release(smallvec![ReleaseOne { lease, activity: None }]);
        self.request(Self::holder(tenant), release).expect("a release");
    }

    pub(crate) fn try_as_holder(&mut self, tenant: u32, command: Command) -> Result<u64, Refusal> {
        self.request(Self::holder(tenant), command)
    }

    pub(crate) fn as_holder(&mut self, tenant: u32, command: Command) -> u64 {
        self.try_as_holder(tenant, command).expect("it is done")
    }

    /// The price of a GPU-second from now on.
    pub(crate) fn price(&mut self, per_second: &str) {
        let mut prices = Prices::default_card();
        prices.kinds.0[0] = per_second.parse().expect("a price");
        self.ok(Command::PutRateCard(PutRateCard { card: None, pool: None, from: None, prices }));
    }

    pub(crate) fn charge(&mut self, charges: Charges) {
        self.ok(Command::PutChargePolicy(PutChargePolicy { policy: None, from: None, charges }));
    }

    /// Declares a node lost, and settles the loss as the daemon does.
    pub(crate) fn lose(&mut self, node: u32, last_seen: &str) {
        let (node, last_seen) = (NodeNo(node), at(last_seen));
        let loss = self.ok(Command::LoseNode(LoseNode { node, last_seen }));
        let ended = self.books.ended_after(loss, node, last_seen).expect("the books can be read");
        let leases = ended.leases.iter().map(|row| EndedLease {
            lease: row.lease,
            tenant: row.tenant,
            project: row.project,
            user: row.user,
            workload: None,
            belongs_to: BelongsTo { allocation: row.allocation, correlation: row.correlation() },
        });
        let claims = ended.claims.iter().map(|claim| EndedClaim {
            claim: claim.claim,
            tenant: claim.tenant,
            project: claim.project,
            user: claim.user,
        });
        let settle = SettleLoss { loss, leases: leases.collect(), claims: claims.collect(), complete: true };
        if self.engine.state().open_losses().any(|(open, _)| open == loss) {
            self.ok(Command::SettleLoss(settle));
        }
    }

    /// Posts what has to be posted; at most so many parts, then the process ends.
    pub(crate) fn post(&mut self, settlement: leasehold_books::Settlement, most: usize) -> bool {
        let mut left = most;
        for posting in settlement.postings {
            let mut previous = None;
            for (place, mut part) in posting.parts.into_iter().enumerate() {
                if left == 0 {
                    return false;
                }
                left -= 1;
                if place > 0 {
                    part.previous = previous;
                }
                previous = Some(self.ok(Command::PostUsage(part)));
            }
        }
        true
    }

    /// Settles every hour that is over, as the daemon does.
    pub(crate) fn settle(&mut self) -> &mut Self {
        while let Some(settlement) = self.books.next_settlement().expect("the books can be read") {
            let (through, as_of_size) = (settlement.through, settlement.as_of_size);
            assert!(self.post(settlement, usize::MAX));
            self.ok(Command::SettleHour(SettleHour { through, as_of_size }));
        }
        self
    }

    /// Closes a month, as the daemon does.
    pub(crate) fn close(&mut self, month: &str) -> &mut Self {
        let month: Month = month.parse().expect("a month");
        self.settle();
        self.ok(Command::ClosePeriod(month));
        self.finish(month)
    }

    pub(crate) fn finish(&mut self, month: Month) -> &mut Self {
        if let Some(settlement) = self.books.closing_settlement().expect("the books can be read") {
            assert!(self.post(settlement, usize::MAX));
        }
        for invoice in self.books.invoices_to_issue(Span::from_secs(30 * 86_400)).expect("the books can be read") {
            self.ok(Command::IssueInvoice(invoice));
        }
        self.ok(Command::FinishPeriod(month));
        self
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        let question = EntryQuestion { limit: 10_000, ..EntryQuestion::default() };
        self.books.entries(&question).expect("the books can be read").entries
    }

    /// Every entry as a line: kind, hour of usage, month of booking, payer, amount.
    pub(crate) fn told(&self) -> String {
        let mut out = String::new();
        for entry in self.entries() {
            let hour = entry
                .line
                .as_ref()
                .map_or_else(|| "-".into(), |line| line.key.hour.to_string()[5..16].replace('T', " "));
            let month = entry.month.map_or_else(|| "-".into(), |month| month.to_string());
            let payer = entry.project.map_or_else(|| entry.tenant.to_string(), |project| project.to_string());
            out.push_str(&format!("{} {hour} {month} {payer} {}\n", entry.kind, entry.amount()));
        }
        out
    }

    /// Checks what must always hold: entries sum to zero, and balances are what the entries say.
    pub(crate) fn check(&self) -> &Self {
        let mut sums = self.books.recount_balances().expect("the books can be read");
        let total: i128 = sums.values().map(|sum| sum.0).sum();
        assert_eq!(total, 0, "entries sum to zero");
        sums.retain(|_, sum| *sum != Steps::ZERO);
        let mut balances: std::collections::BTreeMap<_, _> =
            self.books.account_balances().map(|(account, currency, balance)| ((account, currency), balance)).collect();
        balances.retain(|_, balance| *balance != Steps::ZERO);
        assert_eq!(sums, balances, "balances are what the entries say");
        for entry in self.entries() {
            assert_eq!(Steps::sum(entry.legs.iter().map(|leg| leg.amount)), Some(Steps::ZERO), "{entry:?}");
            assert_eq!(self.books.entry(entry.id).expect("the books can be read"), Some(entry));
        }
        for ((project, currency), payer) in &self.engine.state().ledger().payers {
            let owed: i128 = payer.unbilled.iter().map(|(_, amount)| amount.0).sum();
            assert_eq!(self.books.account_balance(Account::Receivable(*project), *currency), Steps(owed));
            assert_eq!(self.books.residual_of(*project, *currency), payer.residual);
        }
        self
    }

    /// What a project owes and was not invoiced.
    pub(crate) fn owes(&self, project: u32) -> String {
        self.books.account_balance(Account::Receivable(ProjectNo(project)), EUR).to_string()
    }

    /// The command that corrects an entry, as the daemon makes it.
    pub(crate) fn correction(&self, entry: EntryId, amount: Option<&str>) -> CorrectEntry {
        let found = self.books.entry(entry).expect("the books can be read").expect("there is such an entry");
        let project = found.project.expect("an entry of a project");
        let replaced = |amount: Steps| {
            let other = found.legs.iter().find(|leg| leg.account != Account::Receivable(project)).expect("two legs");
            vec![Leg { account: Account::Receivable(project), amount }, Leg { account: other.account, amount: -amount }]
        };
        CorrectEntry {
            tenant: found.tenant,
            project,
            currency: found.currency,
            original_month: found.original_month.expect("it has one"),
            corrects: entry,
            previous: self.books.last_entry_of(project, found.currency),
            line: found.line.as_ref().map(|line| CorrectedLine {
                key: line.key.clone(),
                usage: line.usage,
                exact: line.exact.clone(),
            }),
            reversal: found.legs.iter().map(|leg| Leg { account: leg.account, amount: -leg.amount }).collect(),
            replacement: amount.map(|amount| replaced(steps(amount))).unwrap_or_default(),
            reason: name("wrong price"),
        }
    }
}

/// A tax rate.
pub(crate) fn rate(text: &str) -> Decimal {
    text.parse().expect("a rate")
}
