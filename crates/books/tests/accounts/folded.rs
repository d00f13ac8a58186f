//! The fold of the crate `bill` over the simulator's histories: it contradicts no record, and lists the leases that the
//! oracle says are not closed.

use crate::from_env;
use leasehold_bill::{Ending as ListedEnding, Fold, OpenLease};
use leasehold_oracle::accounts::{Accounts, Ending};
use leasehold_sim::tell_seed;
use std::collections::BTreeMap;

fn ending(listed: ListedEnding) -> Ending {
    match listed {
        ListedEnding::None => Ending::None,
        ListedEnding::Plain => Ending::Plain,
        ListedEnding::Preempted => Ending::Preempted,
        ListedEnding::ForOwn => Ending::PreemptedForOwn,
        ListedEnding::NodeLost => Ending::NodeLost,
        ListedEnding::FailedStart => Ending::FailedStart,
    }
}

fn one_seed(seed: u64) -> usize {
    let (_, records) = tell_seed(seed, 440).unwrap_or_else(|failure| panic!("{failure}"));
    let mut fold = Fold::new();
    for record in &records {
        fold.take(record).unwrap_or_else(|why| panic!("seed {seed}: {why}: {record:?}"));
    }
    let lists = fold.tenants().map(|tenant| fold.tenant_list(tenant));
    let mut open: BTreeMap<_, OpenLease> =
        lists.flat_map(|list| list.leases.into_iter().map(move |lease| ((list.tenant, lease.lease), lease))).collect();
    let all = open.len();
    for tenure in Accounts::of(&records).tenures().filter(|tenure| !tenure.is_closed()) {
        let lease = open.remove(&(tenure.tenant, tenure.lease));
        let lease = lease.unwrap_or_else(|| panic!("seed {seed}: {} is not listed", tenure.lease));
        let listed = (lease.project, lease.payer, lease.pool, lease.node, lease.class, lease.quanta.0, lease.priority);
        let known =
            (tenure.project, tenure.payer(), tenure.pool, tenure.node, tenure.class, tenure.quanta, tenure.priority);
        assert_eq!(listed, known, "seed {seed}: {}", lease.lease);
        let listed = (lease.from, lease.to, ending(lease.ending), lease.fenced_from.is_some(), &lease.tag);
        let known = (tenure.from, tenure.to, tenure.ending, tenure.was_fenced(), &tenure.tag);
        assert_eq!(listed, known, "seed {seed}: {}", lease.lease);
        let listed = (lease.app_instance, lease.control_plane);
        assert_eq!(listed, (tenure.app_instance, tenure.control_plane), "seed {seed}: {}", lease.lease);
    }
    assert!(open.is_empty(), "seed {seed}: {open:?} are closed");
    all
}

/// LEASEHOLD_ACCOUNTS_FOLDS sets the number of seeds.
#[test]
fn open_leases_are_those_of_the_oracle() {
    let (from, count) = (from_env("LEASEHOLD_ACCOUNTS_FROM", 0), from_env("LEASEHOLD_ACCOUNTS_FOLDS", 300));
    let listed: usize = (from..from + count).map(one_seed).sum();
    assert!(listed as u64 > count, "only {listed} leases in {count} histories");
}
