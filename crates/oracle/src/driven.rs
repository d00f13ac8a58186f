//! Random histories that the oracle accepts; the invariants of DESIGN hold for them. A failing case prints its seed;
//! `drive(seed, …)` replays it.

use crate::due::TimerKind;
use crate::lease::Phase;
use crate::{Caller, Custody, Dice, Expected, Foretold, Oracle, RequestFacts, Wish};
use leasehold_model::body::{self, Leases, Reported, ReportedLeases};
use leasehold_model::policy::TeardownCause;
use leasehold_model::{
    Body, ClassNo, ClassSpec, FurtherScope, Instant, LeaseNo, LimitKind, Measure, Name, NodeNo, NodeScope, PoolNo,
    Priority, ProjectNo, Quanta, QuarantineCause, QuotaNo, QuotaScope, RULES_VERSION, Reason, Record, ResourceKind,
    Span, Strategy, TeardownMode, TenantNo, TenantSettings, UserNo,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

struct Driver {
    oracle: Oracle,
    dice: Dice,
    now: Instant,
    epoch: u64,
}

fn name(noun: &str, number: u64) -> Name {
    Name::new(&format!("{noun}-{number}")).expect("a name")
}

fn small(number: u64) -> u32 {
    u32::try_from(number).expect("small")
}

impl Driver {
    fn seal(&mut self, body: impl Into<Body>, of: Option<TenantNo>, change: impl FnOnce(&mut Record)) {
        let mut record = Record::new(self.oracle.size, self.now, body);
        record.identity.tenant = of;
        change(&mut record);
        self.carry(&mut record);
        self.oracle.observe(&record).expect("what the driver seals is legal");
        self.oracle.check_invariants().expect("the invariants hold after every record");
    }

    /// Adds the identity that a record about leases or claims carries.
    fn carry(&self, record: &mut Record) {
        let world = &self.oracle.world;
        macro_rules! of_leases {
            ($($kind:ident)*) => {
                $(if let Body::$kind(body) = &mut record.body {
                    let (identity, belongs_to) = world.lease(body.leases.0[0]).expect("a known lease").holder();
                    (record.identity, body.belongs_to) = (identity, Some(belongs_to));
                })*
            };
        }
        of_leases!(Expired Revoked TeardownStarted Fenced Unfenced);
        if let Body::NodeQuarantined(body::NodeQuarantined { node, .. }) | Body::NodeWiped(body::NodeWiped { node, .. }) =
            &record.body
            && let Custody::Wiping { ended: (tenant, project, user, _), .. } = world.nodes[node].custody
        {
            (record.identity.tenant, record.identity.project) = (Some(tenant), Some(project));
            record.identity.user = Some(user);
        }
    }

    fn put(&mut self, body: impl Into<Body>) {
        self.seal(body, None, |_| ());
    }

    fn stage(&mut self) {
        let origin = name("origin", 1);
        self.put(body::Genesis { format_version: 1, origin: origin.clone(), public_key: [1; 32], software: origin });
        for (class, kind, quanta_per_unit) in [(1, ResourceKind::Gpu, 7), (2, ResourceKind::Mem, 1024)] {
            let spec = ClassSpec { name: name("class", class), kind, tier: None, quanta_per_unit, premium: false };
            self.put(body::ClassPut { class: ClassNo(u16::try_from(class).expect("small")), spec });
        }
        for n in 1..=2u32 {
            let (ttl_max, grace) = (body::PerPriority::default(), None);
            let lifetime_max = body::PerPriority([None, Some(Span::from_secs(300)), None]);
            let strategy = if n == 1 { Strategy::BinPack } else { Strategy::Spread };
            let pool = PoolNo(n);
            self.put(body::PoolPut { pool, name: name("pool", u64::from(n)), strategy, ttl_max, lifetime_max, grace });
        }
        for n in 1..=3u32 {
            let (accounting_tag, max_evicted_quanta_per_hour) = (None, None);
            let (tenant, max_priority) = (TenantNo(n), Priority::Guaranteed);
            let name = name("tenant", u64::from(n));
            self.put(body::TenantPut {
                tenant,
                settings: TenantSettings {
                    accounting_tag,
                    max_priority,
                    max_evicted_quanta_per_hour,
                    ..TenantSettings::named(name.clone())
                },
            });
            self.put(body::ProjectPut { project: ProjectNo(n), tenant, name: name.clone() });
            self.put(body::UserPut { user: UserNo(n), tenant, name });
        }
        for n in 1..=6u32 {
            let teardown = if n % 3 == 0 { TeardownMode::Immediate } else { TeardownMode::Confirmed };
            let capacity = vec![(ClassNo(1), Quanta(7 * u64::from(n))), (ClassNo(2), Quanta(4096))];
            let (name, pool) = (name("node", u64::from(n)), PoolNo(1 + n % 2));
            self.put(body::NodePut {
                node: NodeNo(n),
                name,
                pool,
                rack: None,
                zone: None,
                labels: vec![],
                teardown,
                capacity,
            });
        }
        for n in 1..=9 {
            self.quota(n, true);
        }
    }

    fn quota(&mut self, number: u32, new: bool) {
        let base = self.dice.below(40);
        let limit = match number % 3 {
            0 => LimitKind::Hard { limit: base },
            1 => LimitKind::Soft { limit: base },
            _ => LimitKind::Burst { limit: base / 2, burst_limit: base, burst_ttl: Span::from_secs(1 + base) },
        };
        let measure = [Measure::Quanta, Measure::Leases, Measure::Nodes][number as usize / 3 % 3];
        let old = self.oracle.world.quotas.get(&QuotaNo(number)).map(|quota| quota.put.scope.clone());
        let fresh = QuotaScope {
            tenant: TenantNo(1 + number % 2),
            project: None,
            class: (measure == Measure::Quanta).then_some(ClassNo(1)),
            pool: (number == 4).then_some(PoolNo(1)),
            node: if number == 3 { NodeScope::Each } else { NodeScope::All },
            priority: None,
            further: FurtherScope::NONE,
        };
        assert_eq!(new, old.is_none(), "a quota is made once");
        self.put(body::QuotaPut {
            quota: QuotaNo(number),
            scope: old.unwrap_or(fresh),
            measure,
            limit,
            temporary: None,
            evict_own_lower: false,
        });
    }

    /// Applies the timers that are due, one lease per record.
    fn timers(&mut self) {
        while let Some(timer) = self.oracle.world.due(self.now).first().copied() {
            let of_lease = matches!(timer.kind, TimerKind::Expiry | TimerKind::Grace | TimerKind::Teardown);
            let lease = self.oracle.world.lease(LeaseNo(timer.id)).filter(|_| of_lease);
            let tenant = lease.map(|lease| lease.tenant);
            let closed = lease.is_some_and(|lease| self.oracle.world.nodes[&lease.node].is_immediate());
            let leases: Leases = [LeaseNo(timer.id)].into_iter().collect();
            let cause = TeardownCause::GraceEnded;
            let body: Body = match timer.kind {
                TimerKind::Expiry => body::Expired { leases, closed, belongs_to: None }.into(),
                TimerKind::Grace => body::TeardownStarted { leases, cause, closed, belongs_to: None }.into(),
                TimerKind::Teardown => body::Fenced { leases, belongs_to: None }.into(),
                TimerKind::Wipe => {
                    let (node, cause) = (NodeNo(small(timer.id)), QuarantineCause::WipeTimedOut);
                    let Custody::Wiping { ended, .. } = self.oracle.world.nodes[&node].custody else {
                        unreachable!("it is being wiped")
                    };
                    body::NodeQuarantined { node, cause, claim: Some(ended.3) }.into()
                }
                TimerKind::Burst => body::BurstEnded { quota: QuotaNo(small(timer.id)) }.into(),
                TimerKind::WindowEnd | TimerKind::WindowStart => unreachable!("no nodes are reserved"),
                TimerKind::Credit | TimerKind::PrepaidMinute => unreachable!("there is no prepaid credit"),
                TimerKind::QuotaUntil => body::QuotaUntilReached { quota: QuotaNo(small(timer.id)) }.into(),
            };
            self.seal(body, tenant, |record| record.effective_at = timer.due);
        }
        self.oracle.check_at_rest(self.now).expect("all that was due was applied");
    }

    fn any_lease(&mut self, of: impl Fn(Phase) -> bool) -> Option<(LeaseNo, TenantNo, bool)> {
        let world = &self.oracle.world;
        let leases: Vec<_> =
            world.leases.iter().filter(|l| of(l.phase)).map(|l| (l.number, l.tenant, l.node)).collect();
        let (number, tenant, node) = (!leases.is_empty()).then(|| *self.dice.pick(&leases))?;
        Some((number, tenant, self.oracle.world.nodes[&node].is_immediate()))
    }

    fn request(&mut self) {
        let tenant = 1 + self.dice.small(3);
        let sensitive = self.dice.below(4) == 0;
        let gpus = [1, 2, 3, 5, 7, 14, 21];
        let mut asks = vec![(ClassNo(1), *self.dice.pick(&gpus))];
        if self.dice.below(3) == 0 {
            asks.insert(0, (ClassNo(2), 1 + self.dice.below(3000)));
        }
        let facts = RequestFacts {
            tenant: TenantNo(tenant),
            project: ProjectNo(tenant),
            user: sensitive.then_some(UserNo(tenant)),
            sensitive,
            pool: (self.dice.below(3) == 0).then_some(PoolNo(1)),
            node: (self.dice.below(5) == 0).then_some(NodeNo(2)),
            asks,
            ttl: Span::from_secs(1 + self.dice.below(120)),
            priority: Priority::Standard,
            labels: Vec::new(),
            profile: None,
            app_instance: None,
            attachment: None,
            source_project: None,
        };
        let body = match self.oracle.expect_request(&facts, self.now) {
            Expected::Granted { node, devices, ttl, over_soft, capped_by, .. } => {
                self.grant(&facts, node, &devices, ttl, (over_soft, capped_by))
            }
            Expected::Denied(cause) => body::Denied {
                pool: facts.pool,
                asks: facts.asks.iter().map(|(class, quanta)| (*class, Quanta(*quanta))).collect(),
                ttl: facts.ttl,
                priority: facts.priority,
                rules_version: RULES_VERSION,
                cause,
                particulars: body::Particulars::default(),
            }
            .into(),
            Expected::Submitted(..) => unreachable!("all have the same priority: nobody evicts"),
            Expected::Refused(_) => return,
        };
        let mut record = Record::new(self.oracle.size, self.now, body);
        record.identity.tenant = Some(facts.tenant);
        record.identity.project = Some(facts.project);
        record.identity.user = facts.user;
        self.oracle.observe_with_request(&record, &facts).expect("the expected answer is legal");
    }

    fn grant(
        &self,
        facts: &RequestFacts,
        node: NodeNo,
        devices: &[u64],
        ttl: Span,
        quotas: (Vec<QuotaNo>, Option<QuotaNo>),
    ) -> Body {
        let member = |((class, quanta), devices): (&(ClassNo, u64), &u64)| body::Member {
            class: *class,
            quanta: Quanta(*quanta),
            devices: *devices,
        };
        body::Granted {
            first_lease: LeaseNo(self.oracle.world.highest.get("lease").map_or(1, |highest| highest + 1)),
            node,
            pool: self.oracle.world.nodes[&node].put.pool,
            ttl,
            priority: facts.priority,
            rules_version: RULES_VERSION,
            members: facts.asks.iter().zip(devices).map(member).collect(),
            sensitive: facts.sensitive,
            control_plane: false,
            correlation: None,
            allocation: None,
            app_instance: None,
            attachment: None,
            source_project: None,
            over_soft: quotas.0.into_iter().collect(),
            capped_by: quotas.1,
            profile: None,
            weighing: facts.node.is_none().then(|| self.oracle.world.weighing(self.oracle.world.nodes[&node].put.pool)),
            labels: facts.labels.clone(),
            capped_by_window: None,
        }
        .into()
    }

    fn lose(&mut self, node: NodeNo) {
        let last_seen = Instant(self.now.0 - self.dice.below(5_000_000_000).min(self.now.0));
        let last_seen = self.oracle.world.nodes[&node].last_sign.map_or(last_seen, |sign| sign.max(last_seen));
        self.put(body::NodeLost { node, last_seen });
        let closed = self.oracle.world.nodes[&node].is_immediate();
        let on_it = |l: &&crate::lease::Lease| l.node == node && l.phase.is_held();
        let held: Vec<_> = self.oracle.world.leases.iter().filter(on_it).map(|l| (l.gang, l.number, l.phase)).collect();
        let gangs: BTreeSet<LeaseNo> = held.iter().map(|(gang, ..)| *gang).collect();
        for gang in gangs {
            let tenant = self.oracle.world.lease(gang).expect("a gang has a first lease").tenant;
            let all: Leases = held.iter().filter(|(g, ..)| *g == gang).map(|(_, l, _)| *l).collect();
            let active = |(g, _, phase): &&(LeaseNo, LeaseNo, Phase)| *g == gang && *phase == Phase::Active;
            let leases: Leases = held.iter().filter(active).map(|(_, l, _)| *l).collect();
            if !leases.0.is_empty() {
                self.seal(body::Revoked { leases, grace: Span::ZERO, belongs_to: None }, Some(tenant), |record| {
                    record.continues = true;
                    record.reason = Some(Reason::NodeLost);
                });
            }
            if !all.0.is_empty() {
                let cause = TeardownCause::GraceEnded;
                self.seal(
                    body::TeardownStarted { leases: all, cause, closed, belongs_to: None },
                    Some(tenant),
                    |record| {
                        record.continues = true;
                        record.effective_at = last_seen;
                    },
                );
            }
        }
    }

    fn node_state(&mut self) {
        let node = NodeNo(1 + self.dice.small(6));
        let (drained, lost) = (self.oracle.world.nodes[&node].drained, self.oracle.world.nodes[&node].lost);
        match (self.dice.below(2), drained, lost) {
            (0, false, _) => self.put(body::NodeDrained { node, reason: None }),
            (0, true, _) => self.put(body::NodeResumed { node, reason: None }),
            (_, _, false) => self.lose(node),
            (_, _, true) => self.put(body::NodeReturned { node }),
        }
    }

    /// A claim, a release, or the report of a wipe, if possible.
    fn custody(&mut self) {
        let node = NodeNo(1 + self.dice.small(6));
        let (tenant, nodes) = (1 + self.dice.small(3), body::Nodes(vec![node]));
        let of = |tenant: TenantNo, project, user| Caller {
            tenant: Some(tenant),
            project: Some(project),
            user: Some(user),
            ..Caller::default()
        };
        let (caller, wish) = match self.oracle.world.nodes[&node].custody {
            Custody::Open => (
                of(TenantNo(tenant), ProjectNo(tenant), UserNo(tenant)),
                Wish::ClaimNodes { nodes: nodes.0, until: None, by_operator: false },
            ),
            Custody::Claimed { tenant, project, user, .. } => (of(tenant, project, user), Wish::ReleaseNodes(nodes.0)),
            Custody::Wiping { .. } => {
                let clean = self.dice.below(2) == 0;
                (Caller::default(), Wish::ReportWipe { node, generation: None, clean })
            }
            Custody::Quarantined { .. } => (Caller::default(), Wish::ClearQuarantine(node)),
        };
        if let Foretold::Sealed { tenant, bodies } = self.oracle.foretell(&caller, &wish, self.now) {
            self.seal(bodies[0].clone(), tenant, |record| {
                record.identity.project = caller.project;
                record.identity.user = caller.user;
            });
        }
    }

    fn step(&mut self) {
        self.now = Instant(self.now.0 + self.dice.below(8_000_000_000));
        if self.dice.below(40) == 0 {
            self.epoch += 1;
            let (epoch, software) = (self.epoch, name("test", 1));
            self.put(body::Started { epoch, software, rules_version: RULES_VERSION, clock_accepted: None });
        }
        self.timers();
        let one = |lease: LeaseNo| -> Leases { [lease].into_iter().collect() };
        match self.dice.below(12) {
            0..=4 => self.request(),
            5 => {
                if let Some((lease, tenant, closed)) = self.any_lease(Phase::is_held) {
                    let leases = ReportedLeases([Reported { lease, activity: None }].into_iter().collect());
                    self.seal(body::Released { leases, closed }, Some(tenant), |_| ());
                }
            }
            6 => {
                if let Some((lease, tenant, _)) = self.any_lease(|phase| phase == Phase::Active) {
                    let gang = self.oracle.world.lease(lease).expect("it was picked").gang;
                    let all = self.oracle.world.leases.iter().filter(|l| l.gang == gang && l.phase == Phase::Active);
                    let leases: Leases = all.map(|l| l.number).collect();
                    let grace = Span::from_secs(self.dice.below(60));
                    self.seal(body::Revoked { leases, grace, belongs_to: None }, Some(tenant), |r| {
                        r.reason = Some(Reason::Operator)
                    });
                }
            }
            7 => {
                if let Some((lease, tenant, closed)) = self.any_lease(|phase| phase == Phase::Revoking) {
                    let (leases, cause) = (one(lease), TeardownCause::Ready);
                    self.seal(body::TeardownStarted { leases, cause, closed, belongs_to: None }, Some(tenant), |_| ());
                }
            }
            8 | 9 => {
                if let Some((lease, tenant, _)) = self.any_lease(Phase::is_tearing_down) {
                    let node = self.oracle.world.lease(lease).expect("it was picked").node;
                    self.seal(body::TornDown { node, leases: one(lease), belongs_to: None }, Some(tenant), |_| ());
                }
            }
            10 => {
                if let Some((lease, tenant, _)) = self.any_lease(|phase| phase == Phase::Fenced) {
                    self.seal(
                        body::Unfenced { leases: one(lease), belongs_to: None, reason: None },
                        Some(tenant),
                        |_| (),
                    );
                }
            }
            _ => match self.dice.below(4) {
                0 => self.node_state(),
                1 => self.custody(),
                2 => self.now = Instant(self.now.0 + self.dice.below(4_000_000_000_000)),
                _ => {
                    let number = 1 + self.dice.small(9);
                    self.quota(number, false);
                }
            },
        }
        self.timers();
    }
}

fn drive(seed: u64, steps: usize) -> Driver {
    let (oracle, dice) = (Oracle::new(), Dice::new(seed));
    let mut driver = Driver { oracle, dice, now: Instant::from_secs(1000), epoch: 0 };
    driver.stage();
    (0..steps).for_each(|_| driver.step());
    driver
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every record of `drive` keeps the invariants, and usage adds up.
    #[test]
    fn usage_of_parts_of_time_adds_up_to_the_whole(seed in any::<u64>(), cuts in prop::collection::vec(0u64..2500, 3)) {
        let driver = drive(seed, 150);
        let mut cuts: Vec<_> = cuts.into_iter().map(Instant::from_secs).collect();
        cuts.sort();
        let usage = |from, to| driver.oracle.usage(from..to, driver.now);
        let mut sum = usage(cuts[0], cuts[1]);
        for (key, more) in usage(cuts[1], cuts[2]) {
            *sum.entry(key).or_default() += more;
        }
        prop_assert_eq!(sum, usage(cuts[0], cuts[2]));
    }
}

/// The driver covers all states; otherwise the test would prove nothing.
#[test]
fn random_histories_reach_every_phase() {
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        let driver = drive(seed, 150);
        seen.extend(driver.oracle.world.leases.iter().map(|lease| lease.phase.word()));
        seen.extend(driver.oracle.world.nodes.values().map(|node| match node.custody {
            Custody::Open => "open",
            Custody::Claimed { .. } => "claimed",
            Custody::Wiping { .. } => "wiping",
            Custody::Quarantined { cause, .. } => cause.word(),
        }));
        seen.extend(driver.oracle.world.leases.iter().filter(|lease| lease.sensitive).map(|_| "sensitive"));
        seen.extend(driver.oracle.world.quotas.values().filter_map(|q| q.episode.map(|_| "burst")));
    }
    let of_leases = ["active", "closed", "expired", "fenced", "releasing", "revoking", "sensitive", "tearing_down"];
    let of_nodes = ["open", "claimed", "wiping", "wipe_failed", "wipe_timed_out"];
    let all: BTreeSet<_> = of_leases.into_iter().chain(of_nodes).chain(["burst"]).collect();
    assert_eq!(seen, all);
}
