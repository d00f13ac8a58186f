//! The leases as records of a journal: a grant and a release each, in chronological order.

use super::leases::{Lease, NODES, RESOURCES, T0, TENANTS};
use crate::scratch;
use crate::work::name;
use leasehold_journal::Journal;
use leasehold_model::body::{
    Body, ClassPut, Genesis, Granted, Member, NodePut, PerPriority, PoolPut, ProjectPut, Released, Reported,
    ReportedLeases, TenantPut,
};
use leasehold_model::{
    Batch, ClassNo, ClassSpec, FORMAT_VERSION, Identity, Instant, LeaseNo, NodeNo, PoolNo, Priority, ProjectNo, Quanta,
    Record, ResourceKind, Span, Strategy, TeardownMode, TenantNo, TenantSettings,
};
use smallvec::smallvec;

/// In the order of the data set.
const KINDS: [ResourceKind; RESOURCES as usize] =
    [ResourceKind::Mem, ResourceKind::Block, ResourceKind::Net, ResourceKind::Gpu, ResourceKind::Cpu];
const GPU: u8 = 3;
/// Enough capacity for all leases on every node; the one GPU of a node is one large device.
const ROOM: u64 = 1 << 32;

struct Writer<'j> {
    journal: &'j dyn Journal,
    batch: Batch,
}

impl Writer<'_> {
    fn put(&mut self, second: u64, identity: Identity, body: impl Into<Body>) {
        let stamp = Instant::from_secs(second);
        let record = Record { identity, ..Record::new(self.batch.next_sequence(), stamp, body.into()) };
        self.batch.push(&record);
        if self.batch.count() == 4000 {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.batch.is_empty() {
            let next = self.batch.next_sequence();
            self.journal.prepare().expect("there is room");
            self.journal.append(&mut self.batch).expect("there is room");
            self.batch.reset(next);
        }
    }
}

fn cluster(to: &mut Writer<'_>) {
    let nobody = Identity::default;
    let public_key = scratch::keys().public_keys()[0];
    let (origin, software) = (name(scratch::ORIGIN), name("leasehold bench"));
    to.put(T0, nobody(), Genesis { format_version: FORMAT_VERSION, origin, public_key, software });
    for (class, kind) in (0..).map(ClassNo).zip(KINDS) {
        let quanta_per_unit = if kind == ResourceKind::Gpu { ROOM } else { 1 };
        let spec = ClassSpec { name: name(kind.word()), kind, tier: None, quanta_per_unit, premium: false };
        to.put(T0, nobody(), ClassPut { class, spec });
    }
    let (ttl_max, lifetime_max) = (PerPriority::default(), PerPriority::default());
    let strategy = Strategy::BinPack;
    to.put(T0, nobody(), PoolPut { pool: PoolNo(0), name: name("main"), strategy, ttl_max, lifetime_max, grace: None });
    for node in 0..NODES {
        let put = NodePut {
            node: NodeNo(node),
            name: name(&format!("n{node}")),
            pool: PoolNo(0),
            rack: None,
            zone: None,
            labels: Vec::new(),
            teardown: TeardownMode::Immediate,
            capacity: (0..RESOURCES).map(|class| (ClassNo(class), Quanta(ROOM))).collect(),
        };
        to.put(T0, nobody(), put);
    }
    for tenant in 0..TENANTS {
        let put = TenantPut { tenant: TenantNo(tenant), settings: TenantSettings::named(name(&format!("t{tenant}"))) };
        to.put(T0, nobody(), put);
        let project = ProjectPut { project: ProjectNo(tenant), tenant: TenantNo(tenant), name: name("main") };
        to.put(T0, nobody(), project);
    }
}

fn identity(tenant: u16) -> Identity {
    let tenant = u32::from(tenant);
    Identity { tenant: Some(TenantNo(tenant)), project: Some(ProjectNo(tenant)), ..Identity::default() }
}

/// Writes the cluster and the records of every lease; returns the number of records.
pub(super) fn write(leases: &[Lease], journal: &dyn Journal) -> u64 {
    let mut to = Writer { journal, batch: Batch::new(0) };
    cluster(&mut to);
    let mut ends: Vec<u64> = (0..).zip(leases).map(|(no, lease): (u64, _)| u64::from(lease.end) << 32 | no).collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().map(|end| (end >> 32, end & 0xffff_ffff)).peekable();
    for (no, lease) in (0u64..).zip(leases) {
        while let Some((end, ended)) = ends.next_if(|(end, _)| *end <= u64::from(lease.start)) {
            release(&mut to, end, ended, leases);
        }
        let granted = Granted {
            first_lease: LeaseNo(no),
            node: NodeNo(lease.node.into()),
            pool: PoolNo(0),
            ttl: Span::from_secs(u64::from(lease.end - lease.start) + 1),
            priority: Priority::Standard,
            rules_version: 1,
            members: smallvec![Member {
                class: ClassNo(lease.resource.into()),
                quanta: Quanta(lease.capacity.into()),
                devices: u64::from(lease.resource == GPU),
            }],
            sensitive: false,
            control_plane: false,
            correlation: given_id(no),
            allocation: None,
            app_instance: None,
            attachment: None,
            source_project: None,
            over_soft: smallvec![],
            capped_by: None,
            capped_by_window: None,
            profile: None,
            weighing: None,
            labels: Vec::new(),
        };
        to.put(T0 + u64::from(lease.start), identity(lease.tenant), granted);
    }
    for (end, ended) in ends {
        release(&mut to, end, ended, leases);
    }
    to.flush();
    journal.head().size
}

/// The correlation ID that a lease was given: one in sixteen, and each is shared by two leases.
pub(super) fn given_id(lease: u64) -> Option<u128> {
    lease.is_multiple_of(16).then(|| u128::from(lease / 32 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

fn release(to: &mut Writer<'_>, end: u64, lease: u64, leases: &[Lease]) {
    let tenant = leases[lease as usize].tenant;
    let reported = Reported { lease: LeaseNo(lease), activity: None };
    let released = Released { leases: ReportedLeases(smallvec![reported]), closed: true };
    to.put(T0 + end, identity(tenant), released);
}
