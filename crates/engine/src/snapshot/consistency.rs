//! Checks that a decoded snapshot is consistent. A snapshot is a file and may be damaged or forged: bytes that no fold
//! could have produced must end in an error, never in a state that makes the engine panic later.

use super::BadSnapshot;
use crate::heat::HEAT_MAX;
use crate::lease::Lease;
use crate::state::{CLASSES_MAX, State};
use crate::timer::ID_MAX;
use crate::token::Token;
use leasehold_model::limits::{CLASSES_PER_REQUEST_MAX, DEVICES_PER_CLASS_MAX, QUANTA_PER_NODE_MAX};
use leasehold_model::{ClassNo, Instant, LeaseNo, TenantNo};
use std::collections::BTreeSet;

type Checked = Result<(), BadSnapshot>;

fn demand(holds: bool, what: &'static str) -> Checked {
    if holds { Ok(()) } else { Err(BadSnapshot::Inconsistent(what)) }
}

impl State {
    pub(super) fn check_classes(&self) -> Checked {
        demand(self.classes.len() <= CLASSES_MAX, "too many classes")?;
        // Classes are never deleted.
        let mut all = self.classes.iter();
        demand(all.all(|class| class.as_ref().is_some_and(|spec| spec.check().is_ok())), "an invalid class")
    }

    pub(super) fn check_tenancy(&self) -> Checked {
        // Timers can carry twice as many lease numbers; the upper half will never be assigned.
        demand(self.next_lease <= ID_MAX / 2, "the next lease number is too large")?;
        let has_tenant = |tenant: TenantNo| self.tenant(tenant).is_some();
        let mut owners = self.projects.iter().flatten().map(|p| p.tenant);
        demand(owners.all(has_tenant), "a project without a tenant")?;
        let mut owners = self.users.iter().flatten().map(|u| u.tenant);
        demand(owners.all(has_tenant), "a user without a tenant")
    }

    /// Runs before memory is allocated for each tenant that a token names.
    pub(super) fn check_tokens(&self, tokens: &[Option<Box<Token>>]) -> Checked {
        // What a token is limited to may have been deleted, but its number must have been assigned.
        let was_assigned = |number: Option<u32>, rows: usize| number.is_none_or(|number| (number as usize) < rows);
        let mut scopes = tokens.iter().flatten().map(|token| &token.scope);
        let known = scopes.all(|scope| {
            was_assigned(scope.tenant.map(|no| no.0), self.tenants.len())
                && was_assigned(scope.project.map(|no| no.0), self.projects.len())
                && was_assigned(scope.user.map(|no| no.0), self.users.len())
                && was_assigned(scope.node.map(|no| no.0), self.nodes.len())
        });
        demand(known, "a token whose scope has numbers that were never assigned")
    }

    pub(super) fn check_rates(&self) -> Checked {
        let set_in_time = |set_at: Instant, from: Instant| set_at <= from && set_at <= self.last_stamp;
        let mut starts = BTreeSet::new();
        for card in self.rate_cards() {
            demand(starts.insert((card.pool, card.from)), "two rate cards with the same pool and start")?;
            demand(set_in_time(card.set_at, card.from), "a rate card that begins before it was set")?;
            // The pool may have been deleted, but its number must have been assigned.
            let pool_was_assigned = card.pool.is_none_or(|pool| (pool.0 as usize) < self.pools.len());
            demand(pool_was_assigned, "a rate card for a pool that never existed")?;
            let mut classes = card.prices.classes.iter();
            demand(classes.all(|(class, _)| self.class(*class).is_some()), "a price for a class that does not exist")?;
        }
        let mut starts = BTreeSet::new();
        for policy in self.charge_policies() {
            demand(starts.insert(policy.from), "two charge policies with the same start")?;
            demand(set_in_time(policy.set_at, policy.from), "a charge policy that begins before it was set")?;
        }
        Ok(())
    }

    /// Checks that names are unique.
    pub(super) fn check_names(&self) -> Checked {
        fn rows<T>(table: &[Option<T>]) -> usize {
            table.iter().flatten().count()
        }
        let names = &self.names;
        let counts = [
            (names.tenants.len(), rows(&self.tenants)),
            (names.projects.len(), rows(&self.projects)),
            (names.users.len(), rows(&self.users)),
            (names.pools.len(), rows(&self.pools)),
            (names.classes.len(), rows(&self.classes)),
            (names.nodes.len(), rows(&self.nodes)),
        ];
        demand(counts.iter().all(|(names, rows)| names == rows), "a name that is used twice")
    }

    /// Runs before memory is allocated for the devices of a node.
    pub(super) fn check_capacity(
        &self,
        before: Option<ClassNo>,
        class: ClassNo,
        capacity: u64,
        per_device: u64,
    ) -> Checked {
        demand(before.is_none_or(|before| before < class), "the classes of a node are out of order")?;
        let spec = self.class(class).ok_or(BadSnapshot::Inconsistent("no such class"))?;
        demand((1..=QUANTA_PER_NODE_MAX).contains(&capacity), "an invalid capacity")?;
        let expected = if spec.has_devices() { spec.quanta_per_unit } else { 0 };
        demand(per_device == expected, "devices of the wrong size")?;
        if per_device > 0 {
            demand(capacity.is_multiple_of(per_device), "a capacity that is not a whole number of devices")?;
            demand(capacity / per_device <= DEVICES_PER_CLASS_MAX, "too many devices")?;
        }
        Ok(())
    }

    pub(super) fn check_nodes(&self) -> Checked {
        for node in self.nodes() {
            demand(self.pool(node.pool).is_some(), "a node without a pool")?;
            demand(node.heat.level.max(node.heat.floor) <= HEAT_MAX, "the heat of a node is too high")?;
        }
        Ok(())
    }

    /// Runs before the lease is added to its node.
    pub(super) fn check_lease(&self, last: Option<LeaseNo>, lease: &Lease) -> Checked {
        demand(last.is_none_or(|last| last < lease.number), "leases are out of order")?;
        demand(lease.number.0 < self.next_lease, "a lease number that was never assigned")?;
        let gang_end = lease.gang.0.saturating_add(u64::from(lease.gang_len));
        demand((lease.gang.0..gang_end).contains(&lease.number.0), "a lease outside its gang")?;
        demand(usize::from(lease.gang_len) <= CLASSES_PER_REQUEST_MAX, "a gang larger than a request")?;
        demand(self.tenant(lease.tenant).is_some(), "no such tenant")?;
        let of_tenant = |project| self.project(project).filter(|project| project.tenant == lease.tenant);
        let project = of_tenant(lease.project).and(of_tenant(lease.payer));
        demand(project.is_some(), "a project of another tenant")?;
        demand(lease.tag.is_none_or(|tag| (tag as usize) < self.tags.len()), "an accounting tag that does not exist")?;
        demand(lease.granted_at <= lease.expires_at, "a deadline before the grant")?;
        if !lease.phase.is_held() {
            let held = lease.granted_at..=lease.expires_at;
            demand(held.contains(&lease.ended_at), "a lease that ended before its grant or after its deadline")?;
        }
        self.check_location(lease)
    }

    fn check_location(&self, lease: &Lease) -> Checked {
        let node = self.node(lease.node).filter(|node| node.pool == lease.pool);
        let node = node.ok_or(BadSnapshot::Inconsistent("a node that is not in the pool"))?;
        // Fenced leases stay on the node when its custody changes.
        let claimer = node.custody.claim().map(|claim| (claim.by.tenant, Some(claim.by.user)));
        let of = lease.sensitive.then_some((lease.tenant, lease.user));
        demand(lease.phase == crate::lease::Phase::Fenced || of == claimer, "a lease on a node that it may not use")?;
        let class = node.class(lease.class);
        let class = class.ok_or(BadSnapshot::Inconsistent("the node does not have the class"))?;
        let quanta = lease.quanta.0;
        demand((1..=class.free()).contains(&quanta), "more is leased than the capacity of the node")?;
        if class.per_device == 0 {
            return demand(lease.devices == 0, "a device of a class without devices");
        }
        let count = u64::from(lease.devices.count_ones());
        let exist = (u64::BITS - lease.devices.leading_zeros()) as usize <= class.devices.len();
        demand(count > 0 && exist, "a device that does not exist")?;
        demand(count == 1 || quanta == count.saturating_mul(class.per_device), "a part of several devices")?;
        let each = quanta / count;
        let mut used = class.devices.iter().enumerate().filter(|(index, _)| lease.devices >> index & 1 == 1);
        demand(
            used.all(|(_, used)| used.saturating_add(each) <= class.per_device),
            "more is leased than the capacity of a device",
        )
    }

    pub(super) fn check_leased(&self) -> Checked {
        let mut live = self.leases.in_any_order();
        demand(live.all(|lease| self.was_leased(lease.class)), "a lease of a class that is marked as never leased")
    }
}
