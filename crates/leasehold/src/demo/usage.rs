//! Who held what for how long: exact integers, from the sealed intervals and from nothing else.
//!
//! A lease is billed over [granted, end) (SEMANTICS 2); what is still held counts up to the last stamp.

use crate::folder::{Folder, Scanned};
use crate::problem::Problem;
use leasehold_model::{Body, ClassNo, ClassSpec, Instant, LeaseNo, Name, NodeNo, Quanta, Record, TenantNo};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

struct Held {
    tenant: TenantNo,
    node: NodeNo,
    class: ClassNo,
    quanta: Quanta,
    granted_at: Instant,
}

/// Quanta × nanoseconds.
pub(crate) type QuantaNs = u128;

/// Leases of one tenant: how many came to be, and how they ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) granted: u64,
    pub(crate) denied: u64,
    pub(crate) over_soft: u64,
    pub(crate) expired: u64,
    pub(crate) revoked: u64,
    pub(crate) fenced: u64,
}

#[derive(Default)]
pub(crate) struct Usage {
    held: BTreeMap<LeaseNo, Held>,
    pub(crate) by_tenant: BTreeMap<(TenantNo, ClassNo), QuantaNs>,
    by_node: BTreeMap<(NodeNo, ClassNo), QuantaNs>,
    pub(crate) tenants: BTreeMap<TenantNo, (Name, Counts)>,
    pub(crate) classes: BTreeMap<ClassNo, ClassSpec>,
    /// Records of the whole journal and of this run, by kind.
    pub(crate) kinds: BTreeMap<&'static str, (u64, u64)>,
    last_stamp: Instant,
}

impl Usage {
    /// Reads the whole journal; the run began with record `first`.
    pub(crate) fn of(folder: &Folder, first: u64) -> Result<(Self, Scanned), Problem> {
        let mut usage = Self::default();
        let scanned = folder.scan_from_genesis(&mut |entry| {
            let record = entry.raw.decode().map_err(|error| {
                Problem::not_verified("record_undecodable", format!("record {}: {error}", entry.sequence))
            })?;
            usage.add(&record, record.sequence >= first);
            Ok(ControlFlow::Continue(()))
        })?;
        let now = usage.last_stamp;
        let open: Vec<LeaseNo> = usage.held.keys().copied().collect();
        usage.end(open.into_iter(), now);
        Ok((usage, scanned))
    }

    fn add(&mut self, record: &Record, in_this_run: bool) {
        self.last_stamp = record.stamp;
        let kind = self.kinds.entry(record.body.word()).or_default();
        kind.0 += 1;
        kind.1 += u64::from(in_this_run);
        let tenant = record.identity.tenant;
        match &record.body {
            Body::ClassPut(put) => {
                self.classes.insert(put.class, put.spec.clone());
            }
            Body::TenantPut(put) => {
                let counts = self.tenants.get(&put.tenant).map(|(_, counts)| *counts).unwrap_or_default();
                self.tenants.insert(put.tenant, (put.name.clone(), counts));
            }
            Body::Granted(granted) => {
                let Some(tenant) = tenant else { return };
                for (number, member) in (granted.first_lease.0..).zip(&granted.members) {
                    let (class, quanta) = (member.class, member.quanta);
                    let held = Held { tenant, node: granted.node, class, quanta, granted_at: record.stamp };
                    self.held.insert(LeaseNo(number), held);
                }
                self.count(record, |counts| {
                    counts.granted += 1;
                    counts.over_soft += u64::from(!granted.over_soft.is_empty());
                });
            }
            Body::Denied(_) => self.count(record, |counts| counts.denied += 1),
            Body::Released(released) => self.end(released.leases.leases(), record.effective_at),
            Body::Expired(expired) => {
                self.count(record, |counts| counts.expired += expired.leases.0.len() as u64);
                self.end(expired.leases.0.iter().copied(), record.effective_at);
            }
            Body::Revoked(revoked) => self.count(record, |counts| counts.revoked += revoked.leases.0.len() as u64),
            Body::TeardownStarted(started) => self.end(started.leases.0.iter().copied(), record.effective_at),
            Body::Fenced(fenced) => self.count(record, |counts| counts.fenced += fenced.leases.0.len() as u64),
            _ => {}
        }
    }

    fn count(&mut self, record: &Record, change: impl FnOnce(&mut Counts)) {
        let tenant = record.identity.tenant.and_then(|tenant| self.tenants.get_mut(&tenant));
        if let Some((_, counts)) = tenant {
            change(counts);
        }
    }

    fn end(&mut self, leases: impl Iterator<Item = LeaseNo>, at: Instant) {
        for lease in leases {
            let Some(held) = self.held.remove(&lease) else { continue };
            let amount = u128::from(held.quanta.0) * u128::from(at.since(held.granted_at).0);
            *self.by_tenant.entry((held.tenant, held.class)).or_default() += amount;
            *self.by_node.entry((held.node, held.class)).or_default() += amount;
        }
    }

    pub(crate) fn of_tenant(&self, tenant: TenantNo, class: ClassNo) -> QuantaNs {
        self.by_tenant.get(&(tenant, class)).copied().unwrap_or(0)
    }

    /// The same sum by tenants and by nodes: any partition adds up to the whole (DESIGN, invariant 4).
    pub(crate) fn total(&self, class: ClassNo) -> QuantaNs {
        let by_tenant: QuantaNs = self.by_tenant.iter().filter(|((_, c), _)| *c == class).map(|(_, n)| n).sum();
        let by_node: QuantaNs = self.by_node.iter().filter(|((_, c), _)| *c == class).map(|(_, n)| n).sum();
        assert_eq!(by_tenant, by_node, "usage adds up to the same whole");
        by_tenant
    }
}
