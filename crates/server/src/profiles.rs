//! What workloads were last seen to depend on, for the choice of a node.
//!
//! The books' thread learns it when it has time; the lease path looks it up, and never waits or
//! computes. A workload's name means something within its tenant, and so does its profile.

use leasehold_books::{Books, BooksError, Filter};
use leasehold_meter::Window;
use leasehold_model::{Instant, Name, Profile, ResourceKind, Sensitivity, Span, TenantNo};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant as Stopwatch};

/// How far back a profile looks.
const LEARN_OVER: Span = Span::from_secs(86_400);
/// A tenant that asks is learned of again after this.
const LEARN_EVERY: Duration = Duration::from_secs(30);
/// Between two lessons, so that the books have time for everything else.
const PAUSE: Duration = Duration::from_secs(1);
/// A tenant that has not asked for so long is forgotten.
const FORGET_AFTER: Duration = Duration::from_secs(3600);
/// Tenants that are kept in mind, and workloads of each.
const TENANTS_MAX: usize = 1024;
const WORKLOADS_MAX: usize = 1024;

/// When a tenant last asked, when it was last learned of, and whether nothing was known of it then: its first workload may
/// have begun a moment before.
struct Interest {
    asked: Stopwatch,
    learned: Option<Stopwatch>,
    in_vain: bool,
}

#[derive(Default)]
pub(crate) struct Profiles {
    known: RwLock<BTreeMap<TenantNo, BTreeMap<Name, Profile>>>,
    interest: Mutex<BTreeMap<TenantNo, Interest>>,
}

impl Profiles {
    /// What is known of a workload. Nothing waits here: where the list is being written, nothing is known.
    pub(crate) fn of(&self, tenant: TenantNo, workload: &Name) -> Option<Profile> {
        if let Ok(mut interest) = self.interest.try_lock() {
            let now = Stopwatch::now();
            if let Some(known) = interest.get_mut(&tenant) {
                known.asked = now;
            } else if interest.len() < TENANTS_MAX {
                interest.insert(tenant, Interest { asked: now, learned: None, in_vain: false });
            }
        }
        self.known.try_read().ok()?.get(&tenant)?.get(workload).copied()
    }

    /// Which tenant to learn of next: one that asks and was not learned of for a while, the longest first.
    fn next(&self) -> Option<TenantNo> {
        let mut interest = self.interest.lock().unwrap_or_else(PoisonError::into_inner);
        interest.retain(|_, interest| interest.asked.elapsed() < FORGET_AFTER);
        let last = interest.values().filter_map(|interest| interest.learned).max();
        if last.is_some_and(|last| last.elapsed() < PAUSE) {
            return None;
        }
        let due = |interest: &Interest| {
            let every = if interest.in_vain { PAUSE } else { LEARN_EVERY };
            interest.learned.is_none_or(|learned| learned.elapsed() >= every)
        };
        let (tenant, interest) =
            interest.iter_mut().filter(|(_, interest)| due(interest)).min_by_key(|(_, interest)| interest.learned)?;
        interest.learned = Some(Stopwatch::now());
        Some(*tenant)
    }

    /// Learns of one tenant, if it is time to. Called by the books' thread.
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
                levels[place.expect("one of the five kinds")] = kind.level;
            }
            learned.insert(workload.workload, Profile(levels));
        }
        let in_vain = learned.is_empty();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(tenant, learned);
        let mut interest = self.interest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(interest) = interest.get_mut(&tenant) {
            interest.in_vain = in_vain;
        }
        known.retain(|tenant, _| interest.contains_key(tenant));
        Ok(())
    }
}
