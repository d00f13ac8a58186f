//! Which events a record makes, and about what (SEMANTICS 11, "Accounting events", and 14).

use crate::record_leases::touched;
use leasehold_api::event_type::{EVENT_TYPES, EventAbout};
use leasehold_model::body::{BelongsTo, Body, Leases};
use leasehold_model::{AllocationNo, LeaseNo, NodeNo, PoolNo, Record};
use std::sync::LazyLock;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// The lease at this position of the record.
    Lease(u16, LeaseNo),
    Record,
    Started(Work),
    Completed(Work),
    Corrected(Work),
    Checkpointed(AllocationNo),
    NodeClaimed(NodeNo),
    NodeReleased,
    QuotaUpdated,
}

/// What accounting systems know as an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// The part of an allocation in one pool; without a pool, if it never had a lease.
    Allocation(AllocationNo, Option<PoolNo>),
    /// A lease that belongs to no allocation.
    Lease(LeaseNo),
}

/// An event that a record makes: its type, as an index into the list of types, and what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) kind: usize,
    pub(super) about: About,
}

/// A set of types of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kinds(u64);

impl Kinds {
    pub(super) fn named_by(words: &[String]) -> Self {
        let named = |kind: &usize| words.iter().any(|word| EVENT_TYPES[*kind].is_named_by(word));
        Self((0..EVENT_TYPES.len()).filter(named).fold(0, |set, kind| set | 1 << kind))
    }
    pub(super) const fn has(self, kind: usize) -> bool {
        self.0 & (1 << kind) != 0
    }
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        (0..EVENT_TYPES.len()).filter(move |kind| self.has(*kind))
    }
}

/// The index of a type.
const fn kind(word: &str) -> usize {
    let mut at = 0;
    while at < EVENT_TYPES.len() {
        if same(EVENT_TYPES[at].word.as_bytes(), word.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("no such type of events")
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

const STARTED: usize = kind("allocation.started");
const COMPLETED: usize = kind("allocation.completed");
const CORRECTED: usize = kind("allocation.corrected");
const CHECKPOINTED: usize = kind("allocation.checkpointed");
const NODE_CLAIMED: usize = kind("node.claimed");
const NODE_RELEASED: usize = kind("node.released");
const QUOTA_UPDATED: usize = kind("quota.updated");

/// What has to be known of leases and allocations to say which events a record makes.
pub(super) trait Facts {
    type Error;
    /// Those of the leases, in order of number, that belong to no allocation.
    fn without_allocation(&self, leases: &[LeaseNo]) -> Result<Vec<LeaseNo>, Self::Error>;
    /// Whether the allocation is staged: it starts when its holder says so.
    fn is_staged(&self, allocation: AllocationNo) -> Result<bool, Self::Error>;
    /// The pools of the leases of an allocation: of the attempt that was placed last before a record, or of all.
    fn pools(&self, allocation: AllocationNo, attempt_before: Option<u64>) -> Result<Vec<PoolNo>, Self::Error>;
    /// The pools of these leases of an allocation, if it had ended before a record; none if it had not.
    fn pools_ended_before(
        &self,
        allocation: AllocationNo,
        leases: &[LeaseNo],
        sequence: u64,
    ) -> Result<Vec<PoolNo>, Self::Error>;
}

/// For each kind of record, by its code, the type of the events that it makes by itself.
static OWN_KINDS: LazyLock<Vec<Option<usize>>> = LazyLock::new(|| {
    let highest = Body::KINDS.iter().map(|(code, _)| *code).max().unwrap_or_default();
    let own = |word: &str| EVENT_TYPES.iter().position(|one| one.word == word && one.about != EventAbout::Accounting);
    let mut all = vec![None; highest as usize + 1];
    Body::KINDS.iter().for_each(|(code, word)| all[*code as usize] = own(word));
    all
});

fn own_kind(body: &Body) -> Option<usize> {
    OWN_KINDS.get(body.kind() as usize).copied().flatten()
}

/// What a record says to accounting systems.
enum Told {
    Nothing,
    /// So many leases without an allocation begin, from this one on.
    LeasesBegan(LeaseNo, u64),
    LeasesEnded(LeaseList),
    /// The attempt of an allocation has its leases, and runs unless it is staged.
    Placed(AllocationNo),
    Running(AllocationNo),
    Over(AllocationNo),
    /// Leases, of an allocation or of none, had ended before it was recorded that they did.
    EndsCorrected(Option<AllocationNo>, LeaseList),
    Checkpointed(AllocationNo),
    /// One event for each: the events of a node are in order, whatever else was claimed with it.
    NodesClaimed(Vec<NodeNo>),
    NodeReleased,
    QuotaUpdated,
}

/// Sorted.
type LeaseList = Vec<LeaseNo>;

impl Told {
    /// The type of the events. A record makes those of one type at most.
    const fn kind(&self) -> Option<usize> {
        Some(match self {
            Self::Nothing => return None,
            Self::LeasesBegan(..) | Self::Placed(_) | Self::Running(_) => STARTED,
            Self::LeasesEnded(_) | Self::Over(_) => COMPLETED,
            Self::EndsCorrected(..) => CORRECTED,
            Self::Checkpointed(_) => CHECKPOINTED,
            Self::NodesClaimed(_) => NODE_CLAIMED,
            Self::NodeReleased => NODE_RELEASED,
            Self::QuotaUpdated => QUOTA_UPDATED,
        })
    }
}

fn told(body: &Body) -> Told {
    let ended = |leases: &Leases, belongs_to: Option<BelongsTo>| match belongs_to.and_then(|to| to.allocation) {
        Some(_) => Told::Nothing,
        None => Told::LeasesEnded(leases.0.to_vec()),
    };
    match body {
        Body::Granted(granted) if granted.allocation.is_none() => {
            Told::LeasesBegan(granted.first_lease, granted.members.len() as u64)
        }
        Body::Released(released) => Told::LeasesEnded(released.leases.leases().collect()),
        Body::Expired(expired) => ended(&expired.leases, expired.belongs_to),
        Body::TeardownStarted(started) => ended(&started.leases, started.belongs_to),
        Body::AllocationPlaced(placed) => Told::Placed(placed.allocation),
        Body::AllocationStarted(started) => Told::Running(started.allocation),
        Body::AllocationCompleted(over) => Told::Over(over.allocation),
        Body::AllocationFailed(over) => Told::Over(over.allocation),
        Body::AllocationCancelled(over) => Told::Over(over.allocation),
        Body::EndsCorrected(corrected) => {
            Told::EndsCorrected(corrected.belongs_to.allocation, corrected.leases.0.to_vec())
        }
        Body::AllocationCheckpointed(checkpoint) => Told::Checkpointed(checkpoint.allocation),
        Body::NodesClaimed(claimed) => Told::NodesClaimed(claimed.nodes.0.to_vec()),
        Body::NodeWiped(_) | Body::NodeQuarantined(_) => Told::NodeReleased,
        Body::QuotaPut(_) | Body::QuotaDeleted(_) | Body::QuotaUntilReached(_) | Body::BudgetsPut(_) => {
            Told::QuotaUpdated
        }
        Body::Granted(_)
        | Body::Denied(_)
        | Body::Renewed(_)
        | Body::Revoked(_)
        | Body::TornDown(_)
        | Body::Fenced(_)
        | Body::Unfenced(_)
        | Body::ActivityReported(_)
        | Body::WindowAnnounced(_)
        | Body::ClaimEndCorrected(_)
        | Body::LossSettled(_)
        | Body::Preempted(_)
        | Body::PreemptionDecided(_)
        | Body::ReservationDropped(_)
        | Body::ReservationTakenOver(_)
        | Body::HeadProtected(_)
        | Body::AllocationSubmitted(_)
        | Body::AllocationDenied(_)
        | Body::AllocationCheckpointing(_)
        | Body::AllocationSuspended(_)
        | Body::AllocationRequeued(_)
        | Body::AllocationHoldSet(_)
        | Body::AllocationHoldCleared(_)
        | Body::AllocationChanged(_)
        | Body::NodePut(_)
        | Body::NodeDeleted(_)
        | Body::NodeDrained(_)
        | Body::NodeResumed(_)
        | Body::NodeLost(_)
        | Body::NodeReturned(_)
        | Body::NodeCondition(_)
        | Body::AgentRegistered(_)
        | Body::AgentDetached(_)
        | Body::NodeEmpty(_)
        | Body::NodesReleased(_)
        | Body::QuarantineCleared(_)
        | Body::WindowPut(_)
        | Body::WindowStarted(_)
        | Body::WindowEnded(_)
        | leasehold_model::setup_kinds!()
        | leasehold_model::ledger_kinds!()
        | Body::Unknown { .. } => Told::Nothing,
    }
}

/// About how many events of which types a record makes. It is exact but for leases that end, whose allocations a record
/// need not name, and for allocations in several pools.
pub(super) fn estimate(body: &Body, mut count: impl FnMut(usize, u64)) {
    if let Some(kind) = own_kind(body) {
        let mut events = 1;
        if EVENT_TYPES[kind].about == EventAbout::Lease {
            events = 0;
            touched(body, |_| events += 1);
        }
        count(kind, events);
    }
    let told = told(body);
    let events = match &told {
        Told::LeasesBegan(_, leases) => *leases,
        Told::LeasesEnded(leases) | Told::EndsCorrected(None, leases) => leases.len() as u64,
        Told::NodesClaimed(nodes) => nodes.len() as u64,
        _ => 1,
    };
    if let Some(kind) = told.kind() {
        count(kind, events);
    }
}

/// About how many events of these types a record makes.
pub(super) fn may_make(body: &Body, wanted: Kinds) -> u64 {
    let mut all = 0;
    estimate(body, |kind, events| all += if wanted.has(kind) { events } else { 0 });
    all
}

/// The leases and the allocation that have to be known to make the wanted events of a record.
pub(super) fn needs(body: &Body, wanted: Kinds, leases: &mut impl Extend<LeaseNo>) -> Option<AllocationNo> {
    if own_kind(body).is_some_and(|kind| wanted.has(kind) && EVENT_TYPES[kind].about == EventAbout::Lease) {
        touched(body, |lease| leases.extend([lease]));
    }
    let told = told(body);
    if !told.kind().is_some_and(|kind| wanted.has(kind)) {
        return None;
    }
    match told {
        Told::LeasesBegan(first, count) => leases.extend((first.0..first.0 + count).map(LeaseNo)),
        Told::LeasesEnded(ended) | Told::EndsCorrected(None, ended) => leases.extend(ended),
        Told::EndsCorrected(Some(of), _) => return Some(of),
        Told::Placed(of) | Told::Running(of) | Told::Over(of) | Told::Checkpointed(of) => return Some(of),
        Told::Nothing | Told::NodesClaimed(_) | Told::NodeReleased | Told::QuotaUpdated => {}
    }
    None
}

/// The events that a record makes, in order. Those for accounting systems, which cost more to find out, only if they are
/// wanted; they come last, so that the others have the same positions either way.
pub(super) fn made<F: Facts>(record: &Record, wanted: Kinds, facts: &F) -> Result<Vec<Made>, F::Error> {
    let mut all = Vec::new();
    if let Some(kind) = own_kind(&record.body) {
        if EVENT_TYPES[kind].about == EventAbout::Lease {
            let mut position = 0;
            touched(&record.body, |lease| {
                all.push(Made { kind, about: About::Lease(position, lease) });
                position += 1;
            });
        } else {
            all.push(Made { kind, about: About::Record });
        }
    }
    let told = told(&record.body);
    if !told.kind().is_some_and(|kind| wanted.has(kind)) {
        return Ok(all);
    }
    let began = |work| Made { kind: STARTED, about: About::Started(work) };
    let ended = |work| Made { kind: COMPLETED, about: About::Completed(work) };
    let corrected = |work| Made { kind: CORRECTED, about: About::Corrected(work) };
    let parts = |allocation, attempt_before| {
        let pools = facts.pools(allocation, attempt_before)?;
        let of = |pool| Work::Allocation(allocation, pool);
        let known: Vec<Work> = pools.into_iter().map(|pool| of(Some(pool))).collect();
        Ok::<_, F::Error>(if known.is_empty() { vec![of(None)] } else { known })
    };
    match told {
        Told::Nothing => {}
        Told::LeasesBegan(first, count) => {
            all.extend((first.0..first.0 + count).map(|lease| began(Work::Lease(LeaseNo(lease)))));
        }
        Told::LeasesEnded(leases) => {
            all.extend(facts.without_allocation(&leases)?.into_iter().map(|lease| ended(Work::Lease(lease))));
        }
        Told::Placed(allocation) => {
            if !facts.is_staged(allocation)? {
                all.extend(parts(allocation, Some(record.sequence))?.into_iter().map(began));
            }
        }
        Told::Running(allocation) => all.extend(parts(allocation, Some(record.sequence))?.into_iter().map(began)),
        Told::Over(allocation) => all.extend(parts(allocation, None)?.into_iter().map(ended)),
        Told::EndsCorrected(None, leases) => {
            all.extend(leases.into_iter().map(|lease| corrected(Work::Lease(lease))));
        }
        Told::EndsCorrected(Some(of), leases) => {
            let pools = facts.pools_ended_before(of, &leases, record.sequence)?;
            all.extend(pools.into_iter().map(|pool| corrected(Work::Allocation(of, Some(pool)))));
        }
        Told::Checkpointed(of) => all.push(Made { kind: CHECKPOINTED, about: About::Checkpointed(of) }),
        Told::NodesClaimed(nodes) => {
            all.extend(nodes.into_iter().map(|node| Made { kind: NODE_CLAIMED, about: About::NodeClaimed(node) }));
        }
        Told::NodeReleased => all.push(Made { kind: NODE_RELEASED, about: About::NodeReleased }),
        Told::QuotaUpdated => all.push(Made { kind: QUOTA_UPDATED, about: About::QuotaUpdated }),
    }
    Ok(all)
}
