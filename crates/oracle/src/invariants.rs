//! Invariants that hold after every record (DESIGN, "Invariants").

use crate::capacity::share_of_device;
use crate::custody::Custody;
use crate::lease::Phase;
use crate::oracle::Oracle;
use crate::violation::{Checked, Violation, demand, found};
use crate::world::World;
use leasehold_model::{ClassNo, TenantNo};
use std::collections::BTreeMap;

impl Oracle {
    /// Checks the invariants by recomputing everything in other ways than the rules do.
    pub fn check_invariants(&self) -> Result<(), Violation> {
        self.world.check_invariants().map_err(|broken| broken.at(self.size))
    }
}

impl World {
    fn check_invariants(&self) -> Checked {
        self.check_six_parts()?;
        self.check_devices()?;
        self.check_tenants_add_up()?;
        self.check_lives()?;
        self.check_custody()
    }

    /// Held + tearing down + reserved + fenced + offline + idle = capacity, per node and class.
    fn check_six_parts(&self) -> Checked {
        for (number, node) in &self.nodes {
            for class in self.classes.keys() {
                let p = self.parts(*number, node, *class);
                let sum = p.held + p.tearing_down + p.reserved + p.fenced + p.offline + p.idle;
                demand!(sum == p.capacity, "six-parts", "{number} {class}: {p:?}");
                demand!(p.idle == 0 || p.offline == 0, "six-parts", "{number} {class} is idle and offline: {p:?}");
            }
        }
        Ok(())
    }

    /// Used and idle quanta add up to the device, and every lease is on devices that exist.
    fn check_devices(&self) -> Checked {
        for (number, node) in &self.nodes {
            for (class, spec) in self.classes.iter().filter(|(_, spec)| spec.has_devices()) {
                let used = self.device_use(*number, node, *class);
                let over = used.iter().position(|used| *used > spec.quanta_per_unit);
                demand!(over.is_none(), "device-full", "{number} {class} device {over:?}: {used:?}");
                for lease in self.leases_on(*number, *class) {
                    let lies: u64 = (0..used.len()).map(|i| share_of_device(lease, spec, i)).sum();
                    demand!(lies == lease.quanta, "device-share", "{} has {lies} on {used:?}", lease.number);
                }
            }
        }
        Ok(())
    }

    /// The sums over tenants and over nodes are equal, for held capacity and for used capacity.
    fn check_tenants_add_up(&self) -> Checked {
        let mut by_tenant: BTreeMap<(TenantNo, ClassNo), u64> = BTreeMap::new();
        for lease in self.leases.iter().filter(|lease| lease.phase.is_held()) {
            *by_tenant.entry((lease.tenant, lease.class)).or_default() += lease.quanta;
        }
        for class in self.classes.keys() {
            let tenants: u64 = by_tenant.iter().filter(|((_, c), _)| c == class).map(|(_, quanta)| quanta).sum();
            let nodes: u64 = self.nodes.iter().map(|(number, node)| self.parts(*number, node, *class).held).sum();
            demand!(tenants == nodes, "tenants-add-up", "{class}: tenants hold {tenants}, nodes {nodes}");
        }
        Ok(())
    }

    /// A claimed node has only its claimer's sensitive work, and sensitive work is only on claimed nodes. Fenced
    /// leases remain when the node is released.
    fn check_custody(&self) -> Checked {
        for lease in self.leases.iter().filter(|lease| lease.phase.takes_capacity()) {
            let (number, custody) = (lease.number, self.nodes[&lease.node].custody);
            let holder = lease.user.filter(|_| lease.sensitive).map(|user| (lease.tenant, user));
            let may_lie = match custody {
                Custody::Claimed { .. } => holder.is_some() && holder == custody.claimer(),
                Custody::Open => !lease.sensitive || lease.phase == Phase::Fenced,
                Custody::Wiping { .. } | Custody::Quarantined { .. } => lease.phase == Phase::Fenced,
            };
            demand!(may_lie, "custody", "{number} of {holder:?} is on {}, which is {custody:?}", lease.node);
        }
        for (number, node) in self.nodes.iter().filter(|(_, node)| node.custody != Custody::Open) {
            let kept = self.classes.keys().any(|class| self.kept_on(*number, *class).iter().any(|(_, kept)| *kept > 0));
            demand!(!kept, "custody", "there is a reservation on {number}, which is {:?}", node.custody);
        }
        Ok(())
    }

    /// A lease has an end exactly if it has ended, and a node as long as it uses capacity.
    fn check_lives(&self) -> Checked {
        for lease in &self.leases {
            let number = lease.number;
            demand!(lease.ended_at.is_none() == lease.phase.is_held(), "lives", "{lease:?}");
            demand!(
                lease.ended_at.is_none_or(|at| at >= lease.granted_at && at <= lease.expires_at),
                "lives",
                "{lease:?}"
            );
            if lease.phase.takes_capacity() {
                found!(self.nodes.get(&lease.node), "lives", "{number} is on {}, which is gone", lease.node);
            }
            if lease.phase.counts_for_quota() {
                let holder = self.projects.get(&lease.project).map(|project| project.tenant);
                demand!(holder == Some(lease.tenant), "lives", "{number} is of {:?}", lease.tenant);
            }
        }
        Ok(())
    }
}
