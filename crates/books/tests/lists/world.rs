//! A long generated history, without an engine: many leases on many nodes, most short, some very long, that end in
//! every way; some belong to allocations with one or more attempts.

use leasehold_model::body::{
    AllocationCancelled, AllocationCheckpointed, AllocationCompleted, AllocationFailed, AllocationPlaced,
    AllocationRequeued, AllocationSubmitted, Body, ClassPut, Expired, Fenced, Genesis, Granted, Member, NodePut,
    Released, Reported, ReportedLeases, Revoked, TeardownStarted, TenantPut, TornDown, Unfenced,
};
use leasehold_model::policy::TeardownCause;
use leasehold_model::{
    AllocationNo, AllocationSpec, AttemptEnd, ClassNo, ClassSpec, FORMAT_VERSION, Identity, Instant, LeaseNo, Name,
    NodeNo, PoolNo, Priority, ProjectNo, Quanta, Reason, Record, ResourceKind, Span, TeardownMode, TenantNo,
    TenantSettings, UserNo,
};
use leasehold_sim::Dice;
use smallvec::smallvec;
use std::collections::BTreeMap;

pub(crate) const NODES: u32 = 500;
const TENANTS: u64 = 200;

fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

/// The next event of a lease.
#[derive(Clone, Copy)]
enum Next {
    End,
    TearDown,
    Fence,
    Unfence,
    /// It belongs to an allocation, which ends with its only lease.
    EndAttempt(AllocationNo, u32),
}

struct World {
    dice: Dice,
    now: Instant,
    records: Vec<Record>,
    next_lease: u64,
    due: BTreeMap<(Instant, u64), (u64, Next)>,
    holders: BTreeMap<u64, Identity>,
}

impl World {
    fn push(&mut self, body: impl Into<Body>) -> &mut Record {
        self.records.push(Record::new(self.records.len() as u64, self.now, body));
        self.records.last_mut().expect("just pushed")
    }

    fn after(&mut self, span: u64, lease: u64, next: Next) {
        let at = Instant(self.now.0 + 1 + span);
        let order = self.dice.draw();
        self.due.insert((at, order), (lease, next));
    }

    fn cluster(&mut self, public_key: [u8; 32]) {
        let (origin, software) = (name("sim.example"), name("written by hand"));
        self.push(Genesis { format_version: FORMAT_VERSION, origin, public_key, software });
        let spec =
            ClassSpec { name: name("gpu"), kind: ResourceKind::Gpu, tier: None, quanta_per_unit: 1, premium: false };
        self.push(ClassPut { class: ClassNo(0), spec });
        for tenant in 0..u32::try_from(TENANTS).expect("small") {
            self.push(TenantPut {
                tenant: TenantNo(tenant),
                settings: TenantSettings {
                    accounting_tag: (tenant % 3 == 0).then(|| name(&format!("cc-{}", tenant / 3))),
                    max_priority: Priority::Guaranteed,
                    ..TenantSettings::named(name(&format!("tenant {tenant}")))
                },
            });
        }
        for node in 0..NODES {
            self.push(NodePut {
                node: NodeNo(node),
                name: name(&format!("n{node}")),
                pool: PoolNo(node % 3),
                rack: None,
                zone: None,
                labels: Vec::new(),
                teardown: TeardownMode::Confirmed,
                capacity: vec![(ClassNo(0), Quanta(1 << 40))],
            });
        }
    }

    fn somebody(&mut self) -> Identity {
        // A few tenants have most of it; some have next to nothing.
        let (a, b) = (self.dice.below(TENANTS), self.dice.below(TENANTS));
        let tenant = u32::try_from(a * b * b / TENANTS / TENANTS).expect("small");
        Identity {
            tenant: Some(TenantNo(tenant)),
            project: Some(ProjectNo(tenant * 2 + self.dice.small(2))),
            user: self.dice.one_in(2).then(|| UserNo(tenant * 5 + self.dice.small(5))),
            workload: self.dice.one_in(3).then(|| name(["train", "serve"][tenant as usize % 2])),
            token: None,
        }
    }

    fn grant(&mut self, identity: Identity, allocation: Option<AllocationNo>) -> u64 {
        let lease = self.next_lease;
        self.next_lease += 1;
        let node = self.dice.small(NODES);
        let rare = self.dice.one_in(20);
        let granted = Granted {
            first_lease: LeaseNo(lease),
            node: NodeNo(node),
            pool: PoolNo(node % 3),
            ttl: Span::from_secs(100 * 86_400),
            priority: Priority::ALL[self.dice.index(3)],
            rules_version: 1,
            members: smallvec![Member { class: ClassNo(0), quanta: Quanta(1 + lease % 8), devices: lease % 256 }],
            sensitive: rare,
            control_plane: false,
            correlation: rare.then_some(u128::from(lease) << 70),
            allocation,
            app_instance: None,
            attachment: None,
            source_project: None,
            over_soft: smallvec![],
            capped_by: None,
            profile: None,
            weighing: None,
            labels: if rare { vec![(name("zone"), name("a"))] } else { Vec::new() },
        };
        self.holders.insert(lease, identity.clone());
        self.push(granted).identity = identity;
        lease
    }

    /// Minutes for most leases, days for some.
    fn duration(&mut self) -> u64 {
        let longest = *self.dice.pick(&[600, 3600, 3600, 7200, 20 * 86_400]);
        self.dice.below(longest * 1_000_000_000)
    }

    fn begin(&mut self) {
        let identity = self.somebody();
        if self.dice.percent(90) {
            let lease = self.grant(identity, None);
            let span = self.duration();
            self.after(span, lease, Next::End);
            return;
        }
        let spec = AllocationSpec {
            pool: self.dice.one_in(3).then_some(PoolNo(1)),
            ..AllocationSpec::of(smallvec![(ClassNo(0), Quanta(1))])
        };
        let number = AllocationNo(self.records.len() as u64);
        self.push(AllocationSubmitted { spec, when_over_quota: None, node: None }).identity = identity.clone();
        match self.dice.below(5) {
            0 => self.push(AllocationCancelled { allocation: number }).identity = identity,
            _ => self.place(number, 1, identity),
        }
    }

    fn place(&mut self, allocation: AllocationNo, attempt: u32, identity: Identity) {
        let first_lease = LeaseNo(self.next_lease);
        self.push(AllocationPlaced { allocation, attempt, first_lease, leases: 1, rules_version: 1 });
        let lease = self.grant(identity, Some(allocation));
        let span = self.duration();
        self.after(span, lease, Next::EndAttempt(allocation, attempt));
    }

    fn release(&mut self, lease: u64, closed: bool) {
        let reported = Reported { lease: LeaseNo(lease), activity: None };
        self.push(Released { leases: ReportedLeases(smallvec![reported]), closed });
    }

    fn end(&mut self, lease: u64) {
        let leases = || [LeaseNo(lease)].into_iter().collect();
        match self.dice.below(10) {
            0..5 => self.release(lease, true),
            5 | 6 => {
                self.release(lease, false);
                self.after(5_000_000_000, lease, Next::TearDown);
            }
            7 => {
                let at = Instant(self.now.0 - self.dice.below(1_000_000));
                self.push(Expired { leases: leases(), closed: true, belongs_to: None }).effective_at = at;
            }
            _ => {
                let reason = if self.dice.one_in(2) { Reason::Operator } else { Reason::Preempted { by: 7 } };
                self.push(Revoked { leases: leases(), grace: Span::from_secs(1), belongs_to: None }).reason =
                    Some(reason);
                self.push(TeardownStarted {
                    leases: leases(),
                    cause: TeardownCause::Ready,
                    closed: false,
                    belongs_to: None,
                });
                let next = if self.dice.one_in(4) { Next::Fence } else { Next::TearDown };
                self.after(9_000_000_000, lease, next);
            }
        }
    }

    fn happen(&mut self, lease: u64, next: Next) {
        let leases = || [LeaseNo(lease)].into_iter().collect();
        match next {
            Next::End => self.end(lease),
            Next::TearDown => {
                self.push(TornDown { node: NodeNo(0), leases: leases(), belongs_to: None });
            }
            Next::Fence => {
                self.push(Fenced { leases: leases(), belongs_to: None });
                self.after(60_000_000_000, lease, Next::Unfence);
            }
            Next::Unfence => {
                self.push(Unfenced { leases: leases(), belongs_to: None, reason: None });
            }
            Next::EndAttempt(allocation, attempt) => {
                let identity = self.holders[&lease].clone();
                if self.dice.one_in(3) {
                    self.push(AllocationCheckpointed { allocation, bytes: lease, took: Span(5) });
                }
                self.release(lease, true);
                match self.dice.below(4) {
                    0 if attempt < 4 => {
                        self.push(AllocationRequeued { allocation, end: AttemptEnd::Preempted });
                        self.place(allocation, attempt + 1, identity);
                    }
                    1 => {
                        let (end, exit_status) = (AttemptEnd::Reported, Some(3));
                        self.push(AllocationFailed { allocation, end, exit_status, storage_written: 0 });
                    }
                    _ => drop(
                        self.push(AllocationCompleted { allocation, exit_status: Some(0), storage_written: lease })
                            .continues,
                    ),
                }
            }
        }
    }
}

/// Generates this number of leases; the last ones are still held.
pub(crate) fn long_history(leases: u64, seed: u64, public_key: [u8; 32]) -> Vec<Record> {
    let mut world = World {
        dice: Dice::new(seed),
        now: Instant::from_secs(1_800_000_000),
        records: Vec::new(),
        next_lease: 0,
        due: BTreeMap::new(),
        holders: BTreeMap::new(),
    };
    world.cluster(public_key);
    while world.next_lease < leases {
        let next = Instant(world.now.0 + 1 + world.dice.below(40_000_000_000));
        while let Some(((at, _), (lease, what))) = world.due.first_key_value().map(|(key, due)| (*key, *due))
            && at <= next
        {
            world.due.pop_first();
            world.now = at;
            world.happen(lease, what);
        }
        world.now = next;
        world.begin();
    }
    world.records
}
