//! Sensitivity profiles of workloads, used for placement.
//!
//! The books thread computes them when it has time; the lease path looks them up and never waits. Workload names, and
//! therefore profiles, belong to a tenant.

use leasehold_books::{Books, BooksError, Filter};
use leasehold_meter::Window;
use leasehold_model::{Instant, Name, Profile, ResourceKind, Sensitivity, Span, TenantNo};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant as Stopwatch};

/// Length of the window that a profile is computed from.
const LEARN_OVER: Span = Span::from_secs(86_400);
/// How often the profiles of a tenant are computed while it sends requests.
const LEARN_EVERY: Duration = Duration::from_secs(30);
/// Shortest time between two computations, so that the books thread can do its other work.
const PAUSE: Duration = Duration::from_secs(1);
/// Profiles of a tenant are dropped when it has sent no request for this long.
const FORGET_AFTER: Duration = Duration::from_secs(3600);
/// Tenants, and workloads per tenant, that have profiles.
const TENANTS_MAX: usize = 1024;
const WORKLOADS_MAX: usize = 1024;

/// Requests of a tenant. If no profile was found, the next computation comes earlier: the first workload of the tenant
/// may have begun a moment before.
struct Interest {
    asked: Stopwatch,
    learned: Option<Stopwatch>,
    found_nothing: bool,
}

#[derive(Default)]
pub(crate) struct Profiles {
    known: RwLock<BTreeMap<TenantNo, BTreeMap<Name, Profile>>>,
    interest: Mutex<BTreeMap<TenantNo, Interest>>,
}

impl Profiles {
    /// The profile of a workload. Never waits: while the profiles are being updated, none is returned.
    pub(crate) fn of(&self, tenant: TenantNo, workload: &Name) -> Option<Profile> {
        if let Ok(mut interest) = self.interest.try_lock() {
            let now = Stopwatch::now();
            if let Some(known) = interest.get_mut(&tenant) {
                known.asked = now;
            } else if interest.len() < TENANTS_MAX {
                interest.insert(tenant, Interest { asked: now, learned: None, found_nothing: false });
            }
        }
        self.known.try_read().ok()?.get(&tenant)?.get(workload).copied()
    }

    /// The tenant whose profiles are due: the one whose last computation is longest ago.
    fn next(&self) -> Option<TenantNo> {
        let mut interest = self.interest.lock().unwrap_or_else(PoisonError::into_inner);
        interest.retain(|_, interest| interest.asked.elapsed() < FORGET_AFTER);
        let last = interest.values().filter_map(|interest| interest.learned).max();
        if last.is_some_and(|last| last.elapsed() < PAUSE) {
            return None;
        }
        let due = |interest: &Interest| {
            let every = if interest.found_nothing { PAUSE } else { LEARN_EVERY };
            interest.learned.is_none_or(|learned| learned.elapsed() >= every)
        };
        let (tenant, interest) =
            interest.iter_mut().filter(|(_, interest)| due(interest)).min_by_key(|(_, interest)| interest.learned)?;
        interest.learned = Some(Stopwatch::now());
        Some(*tenant)
    }

    /// Computes the profiles of one tenant, if one is due. Called by the books thread.
    pub(crate) fn learn(&self, books: &Books) -> Result<(), BooksError> {
        let Some(tenant) = self.next() else { return Ok(()) };
        let to = books.last_stamp();
        let window = Window::new(Instant(to.0.saturating_sub(LEARN_OVER.0)), to);
        let filter = Filter { tenant: Some(tenant), ..Filter::default() };
        let mut learned = BTreeMap::new();
        for workload in books.sensitivity(window, &filter)?.into_iter().take(WORKLOADS_MAX) {
            let mut levels = [Sensitivity::Unused; 5];
            for kind in &workload.kinds {
                let place = ResourceKind::ALL.iter().position(|known| *known == kind.kind);
                levels[place.expect("every kind is in the list")] = kind.level;
            }
            learned.insert(workload.workload, Profile(levels));
        }
        let found_nothing = learned.is_empty();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(tenant, learned);
        let mut interest = self.interest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(interest) = interest.get_mut(&tenant) {
            interest.found_nothing = found_nothing;
        }
        known.retain(|tenant, _| interest.contains_key(tenant));
        Ok(())
    }
}
