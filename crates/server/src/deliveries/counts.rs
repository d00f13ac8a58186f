//! How many events became due since the daemon started, by owner and type. It is counted on the publishing thread, so it
//! must cost next to nothing, and nothing at all without webhooks.

use super::made::{Kinds, estimate};
use super::rate::Due;
use leasehold_api::event_type::{EVENT_TYPES, EventAbout};
use leasehold_model::{Record, TenantNo};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

type Counters = Arc<Vec<AtomicU64>>;

fn counters() -> Counters {
    Arc::new(EVENT_TYPES.iter().map(|_| AtomicU64::new(0)).collect())
}

#[derive(Default)]
struct Owners {
    /// Of all records, if the operator has a webhook.
    operator: Option<Counters>,
    tenants: BTreeMap<TenantNo, Counters>,
}

#[derive(Default)]
pub(crate) struct DueCounts {
    /// Whether there are webhooks at all.
    active: AtomicBool,
    owners: RwLock<Owners>,
    /// Events of those owners, each counted once, and those of them that accounting systems need.
    all: AtomicU64,
    accounting: AtomicU64,
}

impl DueCounts {
    /// The owners of webhooks. The counts of those that stay go on.
    pub(super) fn set_owners(&self, owners: impl Iterator<Item = Option<TenantNo>>) {
        let mut now = self.owners.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = Owners::default();
        for owner in owners {
            match owner {
                None => next.operator = now.operator.clone().or_else(|| Some(counters())),
                Some(tenant) => {
                    let known = now.tenants.get(&tenant).cloned();
                    next.tenants.insert(tenant, known.unwrap_or_else(counters));
                }
            }
        }
        self.active.store(next.operator.is_some() || !next.tenants.is_empty(), Ordering::Relaxed);
        *now = next;
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    /// A record became durable.
    pub(crate) fn count(&self, record: &Record) {
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        let tenant = record.identity.tenant.and_then(|tenant| owners.tenants.get(&tenant));
        if tenant.is_none() && owners.operator.is_none() {
            return;
        }
        estimate(&record.body, |kind, events| {
            self.all.fetch_add(events, Ordering::Relaxed);
            if EVENT_TYPES[kind].about == EventAbout::Accounting {
                self.accounting.fetch_add(events, Ordering::Relaxed);
            }
            for counters in owners.operator.iter().chain(tenant) {
                counters[kind].fetch_add(events, Ordering::Relaxed);
            }
        });
    }

    /// All events that became due to anybody: an upper bound of what one webhook is sent.
    pub(super) fn total(&self) -> Due {
        Due { all: self.all.load(Ordering::Relaxed), accounting: self.accounting.load(Ordering::Relaxed) }
    }

    /// The events of these types that became due to an owner.
    pub(super) fn due(&self, owner: Option<TenantNo>, kinds: Kinds) -> u64 {
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        let counters = match owner {
            None => owners.operator.as_ref(),
            Some(tenant) => owners.tenants.get(&tenant),
        };
        counters.map_or(0, |counters| kinds.iter().map(|kind| counters[kind].load(Ordering::Relaxed)).sum())
    }
}
