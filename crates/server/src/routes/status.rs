//! What is going on now: capacity, tenants, queue, trouble, disk and journal in one answer.

use super::audit::status_of;
use crate::app::App;
use crate::context::{Answer, Context, json};
use crate::metrics::gauges::add;
use crate::{show, show_custody};
use leasehold_api::{
    ClassStatus, DiskStatus, Fence, HeldInClass, LeaseCounts, NodeCounts, Quarantine, QueueStatus, Status,
    TenantStatus, WaitingByPriority, When,
};
use leasehold_cell::Now;
use leasehold_engine::{CapacitySplit, Custody, Lease, Node, Phase, State};
use leasehold_model::{AllocationNo, AllocationState, ClassNo, Instant, LeaseNo, NodeNo, Priority, TenantNo};
use std::collections::BTreeMap;

/// Items that are read before the view is released for a moment.
const AT_ONCE: usize = 4096;
/// Tenants, fences and quarantines that are listed.
const LISTED_MAX: usize = 10;

pub(super) async fn status(context: Context) -> Answer {
    let app = &context.app;
    let mut seen = Seen::default();
    seen.read_nodes(&app.now);
    seen.read_leases(app);
    seen.read_allocations(&app.now);
    let disk = rustix::fs::statvfs(&app.data).ok().map(|disk| DiskStatus {
        free_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
        size_bytes: disk.f_blocks.saturating_mul(disk.f_frsize),
        journal_room_bytes: app.journal.room(),
    });
    let as_of = When(app.time());
    let (audit, deliveries) = (status_of(app), app.deliveries.summary());
    json(200, &Status { deliveries, ..app.now.read(|state| seen.shown(state, as_of, disk, audit)) })
}

/// What was counted. Items are read in parts, so that publishing never waits long.
#[derive(Default)]
struct Seen {
    classes: BTreeMap<ClassNo, CapacitySplit>,
    nodes: NodeCounts,
    quarantined: Vec<NodeNo>,
    leases: LeaseCounts,
    tenants: BTreeMap<TenantNo, Holding>,
    /// The oldest fences: when the lease ended, and which one it is.
    fences: BTreeMap<(Instant, LeaseNo), Fence>,
    waiting: BTreeMap<Priority, u64>,
    running: u64,
    oldest: Option<(Instant, AllocationNo)>,
}

#[derive(Default)]
struct Holding {
    leases: u64,
    waiting: u64,
    held: BTreeMap<ClassNo, u64>,
}

/// Calls `part` until it has read fewer items than it may.
fn in_parts(mut part: impl FnMut() -> usize) {
    while part() == AT_ONCE {}
}

impl Seen {
    fn read_nodes(&mut self, now: &Now) {
        let mut after: Option<NodeNo> = None;
        in_parts(|| {
            now.read(|state| {
                let before = after;
                let mut read = 0;
                for node in state.nodes().skip_while(|node| Some(node.number) <= before).take(AT_ONCE) {
                    self.node(node);
                    after = Some(node.number);
                    read += 1;
                }
                read
            })
        });
    }

    fn node(&mut self, node: &Node) {
        let counts = &mut self.nodes;
        counts.all += 1;
        counts.without_agent += u64::from(node.agent.is_none());
        // A state that needs an operator takes precedence.
        let state = match (node.custody, node.lost, node.is_drained()) {
            (Custody::Quarantined { .. }, ..) => &mut counts.quarantined,
            (_, true, _) => &mut counts.lost,
            (_, _, true) => &mut counts.drained,
            (Custody::Claimed(_), ..) => &mut counts.claimed,
            (Custody::Wiping { .. }, ..) => &mut counts.wiping,
            (Custody::Open, ..) => &mut counts.available,
        };
        *state += 1;
        if matches!(node.custody, Custody::Quarantined { .. }) && self.quarantined.len() < LISTED_MAX {
            self.quarantined.push(node.number);
        }
        for class in &node.classes {
            add(self.classes.entry(class.class).or_default(), node.split(class.class));
        }
    }

    fn read_leases(&mut self, app: &App) {
        let mut after: Option<LeaseNo> = None;
        in_parts(|| {
            app.now.readers(|readers| {
                let mut read = 0;
                for lease in readers.leases_after(after).take(AT_ONCE) {
                    self.lease(app, readers, lease);
                    after = Some(lease.number);
                    read += 1;
                }
                read
            })
        });
    }

    fn lease(&mut self, app: &App, state: &State, lease: &Lease) {
        match lease.phase {
            Phase::Active => self.leases.active += 1,
            Phase::Revoking => self.leases.revoking += 1,
            Phase::Releasing | Phase::Expired | Phase::TearingDown => self.leases.tearing_down += 1,
            Phase::Fenced => {
                self.leases.fenced += 1;
                let name = |name: Option<&leasehold_model::Name>| name.map_or_else(String::new, ToString::to_string);
                let fence = Fence {
                    lease: lease.number.to_string(),
                    lease_uid: app.lease_uid(lease.number),
                    node: name(state.node(lease.node).map(|node| &node.name)),
                    class: name(state.class(lease.class).map(|class| &class.name)),
                    quanta: lease.quanta.0,
                    ended_at: When(lease.ended_at),
                };
                self.fences.insert((lease.ended_at, lease.number), fence);
                if self.fences.len() > LISTED_MAX {
                    self.fences.pop_last();
                }
            }
        }
        if lease.phase.is_held() {
            let holding = self.tenants.entry(lease.tenant).or_default();
            holding.leases += 1;
            *holding.held.entry(lease.class).or_default() += lease.quanta.0;
        }
    }

    fn read_allocations(&mut self, now: &Now) {
        let mut after: Option<AllocationNo> = None;
        in_parts(|| {
            now.read(|state| {
                let mut read = 0;
                for found in state.allocations_after(after).take(AT_ONCE) {
                    after = Some(found.number);
                    read += 1;
                    match found.state {
                        AllocationState::Pending | AllocationState::Suspended => {
                            *self.waiting.entry(found.spec.priority).or_default() += 1;
                            self.tenants.entry(found.tenant).or_default().waiting += 1;
                            let this = (found.submitted_at, found.number);
                            self.oldest = Some(self.oldest.map_or(this, |oldest| oldest.min(this)));
                        }
                        AllocationState::Staging | AllocationState::Running | AllocationState::Checkpointing => {
                            self.running += 1
                        }
                        AllocationState::Completed | AllocationState::Failed | AllocationState::Cancelled => {}
                    }
                }
                read
            })
        });
    }

    fn shown(&self, state: &State, as_of: When, disk: Option<DiskStatus>, audit: leasehold_api::AuditStatus) -> Status {
        let classes: Vec<ClassStatus> = self
            .classes
            .iter()
            .filter_map(|(class, split)| {
                let spec = state.class(*class)?;
                Some(ClassStatus {
                    class: spec.name.to_string(),
                    class_id: u32::from(class.0),
                    kind: spec.kind,
                    unit: spec.kind.unit().to_owned(),
                    quanta_per_unit: spec.quanta_per_unit,
                    quanta: split.total(),
                    held: split.held,
                    tearing_down: split.tearing_down,
                    reserved: split.reserved,
                    fenced: split.fenced,
                    offline: split.offline,
                    idle: split.idle,
                })
            })
            .collect();
        let mut tenants: Vec<TenantStatus> = self
            .tenants
            .iter()
            .map(|(tenant, holding)| {
                let held = holding.held.iter().filter_map(|(class, held)| {
                    let whole = self.classes.get(class).map_or(0, CapacitySplit::total);
                    let share = u128::from(*held) * 1000 / u128::from(whole.max(1));
                    Some(HeldInClass {
                        class: state.class(*class)?.name.to_string(),
                        held: *held,
                        share_permille: u64::try_from(share).unwrap_or(u64::MAX),
                    })
                });
                TenantStatus {
                    tenant: show::tenant_name(state, *tenant),
                    tenant_id: tenant.0,
                    leases: holding.leases,
                    waiting: holding.waiting,
                    held: held.collect(),
                }
            })
            .collect();
        let tenant_count = tenants.len() as u64;
        let largest = |tenant: &TenantStatus| tenant.held.iter().map(|held| held.share_permille).max();
        // Stable: equal shares stay in order of tenant numbers.
        tenants.sort_by_key(|tenant| std::cmp::Reverse((largest(tenant), tenant.leases)));
        tenants.truncate(LISTED_MAX);
        let quarantines = self.quarantined.iter().filter_map(|node| {
            let node = state.node(*node)?;
            Some(Quarantine { node: node.name.to_string(), custody: show_custody::custody(state, node.custody) })
        });
        let priorities = self.waiting.iter().rev();
        Status {
            as_of,
            classes,
            nodes: self.nodes.clone(),
            leases: self.leases.clone(),
            tenants,
            tenant_count,
            queue: QueueStatus {
                waiting: self.waiting.values().sum(),
                priorities: priorities
                    .map(|(priority, waiting)| WaitingByPriority { priority: *priority, waiting: *waiting })
                    .collect(),
                oldest_allocation_id: self.oldest.map(|(_, number)| number.into()),
                oldest_submitted_at: self.oldest.map(|(at, _)| When(at)),
                running: self.running,
            },
            fences: self.fences.values().cloned().collect(),
            quarantines: quarantines.collect(),
            disk,
            deliveries: None,
            audit,
        }
    }
}
