//! Whether what a snapshot says can be. A snapshot is a file: bytes that no fold could have written
//! end in an error, never in a state that stops the engine later.

use super::BadSnapshot;
use crate::heat::HEAT_MAX;
use crate::idempotency::Claimed;
use crate::lease::Lease;
use crate::state::{CLASSES_MAX, State};
use crate::timer::ID_MAX;
use crate::token::Token;
use leasehold_model::limits::{CLASSES_PER_REQUEST_MAX, DEVICES_PER_CLASS_MAX, QUANTA_PER_NODE_MAX};
use leasehold_model::{ClassNo, Instant, LeaseNo, TenantNo};
use std::collections::BTreeSet;

type Sound = Result<(), BadSnapshot>;

fn demand(holds: bool, what: &'static str) -> Sound {
    if holds { Ok(()) } else { Err(BadSnapshot::Inconsistent(what)) }
}

impl State {
    pub(super) fn check_classes(&self) -> Sound {
        demand(self.classes.len() <= CLASSES_MAX, "more classes than there may be")?;
        // Classes are never deleted.
        let mut all = self.classes.iter();
        demand(all.all(|class| class.as_ref().is_some_and(|spec| spec.check().is_ok())), "a class that cannot be")
    }

    pub(super) fn check_tenancy(&self) -> Sound {
        // Half of the numbers that a timer can carry: no engine will ever hand out the rest.
        demand(self.next_lease <= ID_MAX / 2, "more leases than can have been")?;
        let has_tenant = |tenant: TenantNo| self.tenant(tenant).is_some();
        let mut owners = self.projects.iter().flatten().map(|p| p.tenant);
        demand(owners.all(has_tenant), "a project of no tenant")?;
        let mut owners = self.users.iter().flatten().map(|u| u.tenant);
        demand(owners.all(has_tenant), "a user of no tenant")
    }

    /// Before memory is set aside for each tenant that a token names.
    pub(super) fn check_tokens(&self, tokens: &[Option<Box<Token>>]) -> Sound {
        // What a token is confined to may be gone; that it never was cannot be.
        let was = |number: Option<u32>, rows: usize| number.is_none_or(|number| (number as usize) < rows);
        let mut scopes = tokens.iter().flatten().map(|token| &token.scope);
        let known = scopes.all(|scope| {
            was(scope.tenant.map(|no| no.0), self.tenants.len())
                && was(scope.project.map(|no| no.0), self.projects.len())
                && was(scope.user.map(|no| no.0), self.users.len())
                && was(scope.node.map(|no| no.0), self.nodes.len())
        });
        demand(known, "a token of something that never was")
    }

    pub(super) fn check_rates(&self) -> Sound {
        let set_in_time = |set_at: Instant, from: Instant| set_at <= from && set_at <= self.last_stamp;
        let mut starts = BTreeSet::new();
        for card in self.rate_cards() {
            demand(starts.insert((card.pool, card.from)), "two rate cards that begin as one")?;
            demand(set_in_time(card.set_at, card.from), "a rate card that changed the past")?;
            // Its pool may be gone; that it never was cannot be.
            let pool_was = card.pool.is_none_or(|pool| (pool.0 as usize) < self.pools.len());
            demand(pool_was, "prices of a pool that never was")?;
            let mut classes = card.prices.classes.iter();
            demand(classes.all(|(class, _)| self.class(*class).is_some()), "a price of no class")?;
        }
        let mut starts = BTreeSet::new();
        for policy in self.charge_policies() {
            demand(starts.insert(policy.from), "two charge policies that begin as one")?;
            demand(set_in_time(policy.set_at, policy.from), "a charge policy that changed the past")?;
        }
        Ok(())
    }

    /// Each name names one thing.
    pub(super) fn check_names(&self) -> Sound {
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
        demand(counts.iter().all(|(names, rows)| names == rows), "a name that is taken twice")
    }

    /// Before memory is set aside for the devices of a node.
    pub(super) fn check_capacity(
        &self,
        before: Option<ClassNo>,
        class: ClassNo,
        capacity: u64,
        per_device: u64,
    ) -> Sound {
        demand(before.is_none_or(|before| before < class), "classes of a node out of order")?;
        let spec = self.class(class).ok_or(BadSnapshot::Inconsistent("no such class"))?;
        demand((1..=QUANTA_PER_NODE_MAX).contains(&capacity), "a capacity that cannot be")?;
        let expected = if spec.has_devices() { spec.quanta_per_unit } else { 0 };
        demand(per_device == expected, "devices of another size than the class")?;
        if per_device > 0 {
            demand(capacity.is_multiple_of(per_device), "half a device")?;
            demand(capacity / per_device <= DEVICES_PER_CLASS_MAX, "more devices than there may be")?;
        }
        Ok(())
    }

    pub(super) fn check_nodes(&self) -> Sound {
        for node in self.nodes() {
            demand(self.pool(node.pool).is_some(), "a node of no pool")?;
            demand(node.heat.level <= HEAT_MAX, "a node hotter than can be")?;
        }
        Ok(())
    }

    /// Before the lease is put where it says it is.
    pub(super) fn check_lease(&self, last: Option<LeaseNo>, lease: &Lease) -> Sound {
        demand(last.is_none_or(|last| last < lease.number), "leases out of order")?;
        demand(lease.number.0 < self.next_lease, "a lease number that was not given")?;
        let gang_end = lease.gang.0.saturating_add(u64::from(lease.gang_len));
        demand((lease.gang.0..gang_end).contains(&lease.number.0), "a lease outside its gang")?;
        demand(usize::from(lease.gang_len) <= CLASSES_PER_REQUEST_MAX, "a gang larger than a request")?;
        demand(self.tenant(lease.tenant).is_some(), "no such tenant")?;
        let project = self.project(lease.project).filter(|project| project.tenant == lease.tenant);
        demand(project.is_some(), "a project that is not the tenant's")?;
        demand(lease.tag.is_none_or(|tag| (tag as usize) < self.tags.len()), "a tag that is not listed")?;
        demand(lease.granted_at <= lease.expires_at, "a deadline before the grant")?;
        if !lease.phase.is_held() {
            let held = lease.granted_at..=lease.expires_at;
            demand(held.contains(&lease.ended_at), "an end outside the lease")?;
        }
        self.check_place(lease)
    }

    fn check_place(&self, lease: &Lease) -> Sound {
        let node = self.node(lease.node).filter(|node| node.pool == lease.pool);
        let node = node.ok_or(BadSnapshot::Inconsistent("a node that is not in the pool"))?;
        // What is fenced stays where it is, whoever has the node.
        let claimer = node.custody.claim().map(|claim| (claim.by.tenant, Some(claim.by.user)));
        let of = lease.sensitive.then_some((lease.tenant, lease.user));
        demand(
            lease.phase == crate::lease::Phase::Fenced || of == claimer,
            "a lease on a node that is not open to it",
        )?;
        let class = node.class(lease.class);
        let class = class.ok_or(BadSnapshot::Inconsistent("a class that the node does not have"))?;
        let quanta = lease.quanta.0;
        demand((1..=class.free()).contains(&quanta), "more is leased than the node has")?;
        if class.per_device == 0 {
            return demand(lease.devices == 0, "devices of a class without any");
        }
        let count = u64::from(lease.devices.count_ones());
        let exist = (u64::BITS - lease.devices.leading_zeros()) as usize <= class.devices.len();
        demand(count > 0 && exist, "a device that does not exist")?;
        demand(count == 1 || quanta == count.saturating_mul(class.per_device), "several devices in part")?;
        let each = quanta / count;
        let mut used = class.devices.iter().enumerate().filter(|(index, _)| lease.devices >> index & 1 == 1);
        demand(used.all(|(_, used)| used.saturating_add(each) <= class.per_device), "a device holds more than it has")
    }

    pub(super) fn check_claim(&self, entry: &Claimed) -> Sound {
        let place = entry.owner.map_or(0, |tenant| tenant.0 as usize);
        demand(entry.owner.is_none() || place < self.tenants.len(), "a key of no tenant")?;
        demand(self.claims.newest().is_none_or(|last| last.stamp <= entry.stamp), "keys out of order")?;
        demand(!self.claims.touch(entry.scope), "a key that is claimed twice")
    }

    pub(super) fn check_leased(&self) -> Sound {
        let mut live = self.leases.in_any_order();
        demand(live.all(|lease| self.was_leased(lease.class)), "a lease of a class that was never leased")
    }
}
