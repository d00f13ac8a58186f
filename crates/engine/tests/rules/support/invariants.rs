//! Counted afresh from the list of leases, by brute force.

use leasehold_engine::{Custody, Engine, Lease, Phase, Quota, Readers, State};
use leasehold_model::{
    Amount, Body, CeilingMode, Fraction, FurtherScope, Instant, LeaseNo, Measure, NodeNo, NodeScope, PoolNo, Priority,
    Record,
};
use std::collections::BTreeSet;

/// Where everything is, against a recount: capacity per node, class and device; quotas; counters.
pub(crate) fn balance(state: &State) {
    let leases = state.leases();
    assert_eq!(leases.len(), state.live_leases());
    for node in state.nodes() {
        let here: Vec<&&Lease> = leases.iter().filter(|lease| lease.node == node.number).collect();
        assert_eq!(node.has_leases(), !here.is_empty());
        for class in &node.classes {
            let of_class = || here.iter().filter(|lease| lease.class == class.class);
            let sum = |phases: fn(Phase) -> bool| -> u64 {
                of_class().filter(|lease| phases(lease.phase)).map(|lease| lease.quanta.0).sum()
            };
            let split = node.split(class.class);
            assert_eq!(split.total(), class.capacity, "the six parts of {} add up", node.name);
            assert_eq!(class.held, sum(Phase::is_held));
            assert_eq!(class.tearing_down, sum(Phase::is_tearing_down));
            assert_eq!(class.fenced, sum(|phase| phase == Phase::Fenced));
            let kept: u64 = state.reserved(node.number, class.class).iter().sum();
            assert_eq!(class.reserved, kept, "what is kept on {}", node.name);
            let shown = (split.held, split.tearing_down, split.fenced, split.reserved);
            if node.lost {
                assert_eq!((split.offline, shown), (class.capacity, (0, 0, 0, 0)), "all of {} is offline", node.name);
            } else {
                assert_eq!(shown, (class.held, class.tearing_down, class.fenced, class.reserved));
            }
            let gives = node.is_in_service() && matches!(node.custody, Custody::Open | Custody::Claimed(_));
            assert_eq!(if gives { split.offline } else { split.idle }, 0);
            if class.per_device > 0 {
                assert_eq!(class.devices.len() as u64 * class.per_device, class.capacity);
            }
            for (index, used) in class.devices.iter().enumerate() {
                let on_it = of_class().filter(|lease| lease.devices >> index & 1 == 1);
                let recount: u64 = on_it.map(|lease| lease.quanta.0 / u64::from(lease.devices.count_ones())).sum();
                let kept = state.reserved(node.number, class.class);
                let recount = recount + kept.get(index).copied().unwrap_or(0);
                assert_eq!(*used, recount, "device {index} of {}", node.name);
                assert!(*used <= class.per_device);
            }
        }
        for lease in here {
            assert!(node.class(lease.class).is_some() && lease.pool == node.pool);
            if lease.phase != Phase::Fenced {
                let by = node.custody.claim().map(|claim| (claim.by.tenant, Some(claim.by.user)));
                let of = lease.sensitive.then_some((lease.tenant, lease.user));
                assert_eq!(of, by, "sensitive work lies on its user's nodes, and nothing else does");
            }
        }
    }
    for quota in state.quotas() {
        if quota.scope.further != FurtherScope::NONE {
            // The oracle counts these.
            continue;
        }
        let counted = match quota.measure {
            Measure::Allocations => recount_allocations(quota, state),
            Measure::Nodes => recount_nodes(quota, &leases, state),
            _ => recount(quota, &leases, state),
        };
        assert_eq!(quota.used(), Fraction::new(u128::from(counted), 1), "{:?}", quota.scope);
    }
    money(state);
    for tenant in state.tenants() {
        let count = leases.iter().filter(|lease| lease.tenant == tenant.number).count();
        assert_eq!(tenant.leases as usize, count);
    }
    for (number, project) in state.projects() {
        assert!(state.tenant(project.tenant).is_some());
        let concerns = |lease: &&&Lease| lease.project == number || lease.payer == number;
        assert_eq!(project.leases as usize, leases.iter().filter(concerns).count());
    }
    for (number, pool) in state.pools() {
        assert_eq!(pool.nodes as usize, state.nodes().filter(|node| node.pool == number).count());
    }
}

/// Money: what is kept back is kept back for just those leases that are held, and adds up.
pub(crate) fn money(state: &State) {
    let leases = state.leases();
    for ceiling in state.ceilings() {
        let app = ceiling.scope.app_instance;
        let under = leases.iter().filter(|lease| {
            lease.phase.is_held()
                && lease.payer == ceiling.scope.project
                && match app {
                    Some(_) => state.app_instance_of(lease.number) == app,
                    // The claim counts.
                    None => !lease.sensitive,
                }
        });
        let held: Vec<(LeaseNo, Amount)> = ceiling.held().collect();
        assert!(under.map(|lease| lease.number).eq(held.iter().map(|(lease, _)| *lease)), "{:?}", ceiling.scope);
        assert_eq!(ceiling.reserved, held.into_iter().map(|(_, cost)| cost).sum::<Amount>(), "{:?}", ceiling.scope);
    }
}

/// After a grant no hard ceiling that it counts against is passed, unless it costs nothing.
pub(crate) fn within_ceilings(state: &State, record: &Record) {
    let Body::Granted(granted) = &record.body else { return };
    let last = granted.first_lease.0 + granted.members.len() as u64;
    for ceiling in state.ceilings().filter(|ceiling| ceiling.mode == CeilingMode::Hard) {
        let own = ceiling.held().filter(|(lease, _)| (granted.first_lease.0..last).contains(&lease.0));
        let cost: Amount = own.map(|(_, cost)| cost).sum();
        assert!(cost == Amount::ZERO || !state.is_exceeded(ceiling, record.stamp), "{ceiling:?} after {record:?}");
    }
}

/// What readers are offered in order, against the deciding state and a recount.
pub(crate) fn readers_see(readers: &Readers, state: &State) {
    let leases = state.leases();
    let after = |no| readers.leases_after(no).map(|lease| lease.number).collect::<Vec<_>>();
    let middle = leases.get(leases.len() / 2).map(|lease| lease.number);
    for from in [None, middle, leases.last().map(|lease| lease.number)] {
        let expected: Vec<_> = leases.iter().map(|l| l.number).filter(|no| Some(*no) > from).collect();
        assert_eq!(after(from), expected, "readers' leases after {from:?}");
    }
    assert!(leases.is_sorted_by_key(|lease| lease.number));
    for node in state.nodes() {
        let here: Vec<&Lease> = leases.iter().copied().filter(|lease| lease.node == node.number).collect();
        assert_eq!(state.leases_on(node.number), here);
    }
    for tenant in state.tenants() {
        let own = state.quotas().filter(|quota| quota.scope.tenant == tenant.number);
        assert!(state.quotas_of(tenant.number).eq(own), "quotas of {}", tenant.settings.name);
    }
    for token in state.tokens() {
        assert_eq!(state.token_by_hash(&token.hash), Some(token.number));
        assert_eq!(state.token(token.number), Some(token));
    }
    assert!(readers.tokens().eq(state.tokens()));
}

fn lies_in(quota: &Quota, pool: PoolNo, node: NodeNo) -> bool {
    quota.scope.pool.is_none_or(|of| of == pool)
        && match quota.scope.node {
            NodeScope::One(one) => one == node,
            NodeScope::All | NodeScope::Each => true,
        }
}

fn counts(quota: &Quota, lease: &Lease) -> bool {
    let scope = &quota.scope;
    lease.phase != Phase::Fenced
        && !lease.sensitive
        && lease.tenant == scope.tenant
        && scope.project.is_none_or(|project| project == lease.payer)
        && scope.class.is_none_or(|class| class == lease.class)
        && scope.priority.is_none_or(|priority| priority == lease.priority)
        && lies_in(quota, lease.pool, lease.node)
}

fn recount(quota: &Quota, leases: &[&Lease], state: &State) -> u64 {
    let counted = leases.iter().filter(|lease| counts(quota, lease));
    match quota.measure {
        Measure::Quanta => {
            let claimed = claimed_under(quota, state).into_iter().map(|(_, quanta)| quanta);
            counted.map(|lease| lease.quanta.0).sum::<u64>() + claimed.sum::<u64>()
        }
        Measure::Leases => counted.count() as u64,
        Measure::Nodes | Measure::Allocations => unreachable!("counted by themselves"),
    }
}

/// The claimed nodes that a quota counts, with their quanta that are not fenced: once for each class.
fn claimed_under(quota: &Quota, state: &State) -> Vec<(NodeNo, u64)> {
    let scope = &quota.scope;
    let claimed = state.nodes().filter(|node| {
        node.custody.claim().is_some_and(|claim| {
            claim.by.tenant == scope.tenant
                && scope.project.is_none_or(|project| project == claim.project)
                && scope.priority.is_none_or(|priority| priority == Priority::Guaranteed)
                && lies_in(quota, node.pool, node.number)
        })
    });
    let classes = claimed.flat_map(|node| node.classes.iter().map(move |class| (node.number, class)));
    let counted = classes.filter(|(_, of)| scope.class.is_none_or(|class| class == of.class));
    counted.map(|(node, of)| (node, of.capacity - of.fenced)).collect()
}

/// Distinct nodes that are held, or claimed.
fn recount_nodes(quota: &Quota, leases: &[&Lease], state: &State) -> u64 {
    let counted = leases.iter().filter(|lease| counts(quota, lease)).map(|lease| lease.node);
    let claimed = claimed_under(quota, state).into_iter().map(|(node, _)| node);
    counted.chain(claimed).collect::<BTreeSet<_>>().len() as u64
}

fn recount_allocations(quota: &Quota, state: &State) -> u64 {
    let scope = &quota.scope;
    let placed = state.allocations_after(None).filter(|found| found.state.is_placed());
    let counted = placed.filter(|found| {
        found.tenant == scope.tenant
            && scope.project.is_none_or(|project| project == found.payer)
            && scope.priority.is_none_or(|priority| priority == found.spec.priority)
    });
    counted.count() as u64
}

/// Allocations, against the leases that they hold.
pub(crate) fn gangs(state: &State) {
    for found in state.allocations_after(None) {
        let held = found.lease_numbers().filter_map(|lease| state.lease(lease));
        let held = held.filter(|lease| lease.of == Some(found.number) && lease.phase.is_held()).count();
        if found.state.is_placed() {
            assert_eq!(found.held as usize, held, "what {} holds", found.number);
        } else {
            assert_eq!(held, 0, "{} waits and holds", found.number);
        }
    }
}

/// After everything due at or before `now` was applied, nothing lives past its limit.
pub(crate) fn nothing_overdue(engine: &Engine, now: Instant) {
    let state = engine.state();
    for lease in state.leases() {
        match lease.phase {
            Phase::Active => assert!(lease.expires_at > now, "{} lives past its deadline", lease.number),
            Phase::Fenced => {}
            _ => assert!(lease.limit_at > now, "{} is past its limit", lease.number),
        }
        if lease.phase.is_held() {
            assert!(lease.granted_at < lease.expires_at);
        } else {
            assert!(lease.granted_at <= lease.ended_at && lease.ended_at <= lease.expires_at.min(now));
        }
    }
    for node in state.nodes() {
        if let Custody::Wiping { limit_at, .. } = node.custody {
            assert!(limit_at > now, "{} is past the end of its wipe", node.name);
        }
    }
    assert!(engine.next_due().is_none_or(|due| due > now), "something is due after all that is due was done");
    gangs(state);
}
