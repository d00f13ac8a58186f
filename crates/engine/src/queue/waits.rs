//! Why one that waits does not run, and how many go before it.
//!
//! Told from the state and the minute alone, so that readers can ask: what the scheduler remembers (who is blocked, who
//! stands first) is found anew.

use super::positions::meet;
use super::{Line, Queue, Rank, ShapeKey};
use crate::allocation::Allocation;
use crate::ask::Ask;
use crate::custody::Claimer;
use crate::decide::dispatch::Promises;
use crate::gang::NoGang;
use crate::lease::Phase;
use crate::node::Node;
use crate::placement::Tentative;
use crate::promise::Promise;
use crate::view::View;
use leasehold_model::{AllocationNo, ClassNo, DenyCause, Instant, NodeNo, Quanta, TenantNo};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// How one that waits stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Its place among those that wait for a pool that it may use, counted from one.
    pub position: u64,
    pub reason: WaitReason,
    /// When it starts at the latest and where. Only to the first that finds no room anything is promised.
    pub promise: Option<Promise>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// A quota has no headroom for it.
    Quota(DenyCause),
    /// Its victims are not gone yet from these nodes.
    Victims { nodes: BTreeSet<NodeNo> },
    /// There is no room: so many of its replicas would find a place, and this is missing for the others.
    Room { fits: u32, class: ClassNo, short: Quanta },
    /// There is room that would delay one that goes first.
    Behind { ahead: AllocationNo, start: Instant },
    /// There would be room if its tenant had not had so much evicted within the hour.
    Evictions { used: u64, limit: u64 },
    /// Nothing stands in its way: it starts when the queue is looked at next.
    Due,
}

/// Those before it that are looked at to find out who stands first; what is said of a longer queue is
/// that there is no room.
const LOOKED_AT_MAX: usize = 64;

/// What keeps one from starting, as deciding would find it.
enum Hindrance {
    Nothing,
    Quota(DenyCause),
    Room,
    /// Refused at least one node for the sake of this one.
    Behind(AllocationNo),
}

impl View<'_> {
    /// Why an allocation waits; `None` if it does not.
    pub fn waiting_for(&self, waits: &Allocation, now: Instant) -> Option<Waits> {
        if !waits.state.is_queued() {
            return None;
        }
        let position = 1 + self.going_before(waits, now);
        if let Some(kept) = waits.reservation.as_deref() {
            let live = kept.victims.0.iter().filter_map(|lease| self.lease(*lease));
            let gone_from = live.filter(|lease| lease.phase != Phase::Fenced).map(|lease| lease.node).collect();
            return Some(Waits { position, reason: WaitReason::Victims { nodes: gone_from }, promise: None });
        }
        let ask = Ask::of(waits, now);
        let promises = Promises::new(self.heads_before(&ask));
        let (reason, promise) = match self.hindrance(&ask, &promises) {
            Hindrance::Nothing => (WaitReason::Due, None),
            Hindrance::Quota(cause) => (WaitReason::Quota(cause), None),
            found => {
                // One that has had enough evicted for now is the head like any other that finds no room.
                let is_first = promises.heads.is_empty();
                let promise = || is_first.then(|| self.promise(waits, now)).flatten();
                match self.too_much_evicted(&ask, &promises) {
                    Some(WaitReason::Due) => (WaitReason::Due, None),
                    Some(reason) => (reason, promise()),
                    None => (self.no_room(&ask, &found, &promises), promise()),
                }
            }
        };
        Some(Waits { position, reason, promise })
    }

    /// How many that could take the same places go before it.
    fn going_before(&self, waits: &Allocation, now: Instant) -> u64 {
        let own = self.rank_of(waits, now);
        let meets = |claimer: Option<Claimer>, pool| meet((claimer, pool), (waits.claimer(), waits.spec.pool));
        let mut standings = BTreeMap::new();
        let mut count = 0;
        for (key, waiting) in self.queue.shapes.iter().filter(|(key, _)| meets(key.claimer, key.pool)) {
            for (tenant, line) in waiting {
                let standing = *standings.entry(*tenant).or_insert_with(|| self.standing(*tenant, now));
                let before = (Reverse(key.priority), Reverse(standing)).cmp(&(own.0, own.1));
                count += match before {
                    std::cmp::Ordering::Less => line.len() as u64,
                    std::cmp::Ordering::Equal => line.range(..(own.2, own.3)).count() as u64,
                    std::cmp::Ordering::Greater => 0,
                };
            }
        }
        let apart = self.queue.reserved.iter().filter_map(|number| self.allocation(*number));
        let before = |other: &&Allocation| meets(other.claimer(), other.spec.pool) && self.rank_of(other, now) < own;
        count + apart.filter(before).count() as u64
    }

    /// In each line that it stands in, the first before it that finds no room.
    pub(crate) fn heads_before(&self, ask: &Ask<'_>) -> BTreeMap<Line, Rank> {
        if self.queue.shapes.is_empty() {
            return BTreeMap::new();
        }
        let (own, now) = (self.rank(ask), ask.now);
        let lines: Vec<Line> = self.lines().filter(|line| line.has(ask.claimer, ask.pool)).collect();
        let mut promises = Promises::new(BTreeMap::new());
        let mut settled: BTreeSet<&ShapeKey> = BTreeSet::new();
        let mut left = self.queue.firsts(&|tenant| self.standing(tenant, now));
        let mut looked_at = 0;
        while let Some(Reverse((rank, key, tenant))) = left.pop() {
            if rank >= own || looked_at == LOOKED_AT_MAX || lines.iter().all(|line| promises.heads.contains_key(line)) {
                break;
            }
            let meets = lines.iter().any(|line| key.stands_in(*line));
            if !meets || settled.contains(key) {
                continue;
            }
            looked_at += 1;
            let Some(before) = self.allocation(rank.3) else { continue };
            match self.hindrance(&Ask::of(before, now), &promises) {
                // Others of its shape may have the headroom that it lacks.
                Hindrance::Quota(_) => left.extend(self.queue.after(key, tenant, rank).map(Reverse)),
                Hindrance::Room => {
                    settled.insert(key);
                    let mut heads = std::mem::take(&mut promises.heads);
                    for line in lines.iter().filter(|line| key.stands_in(**line)) {
                        heads.entry(*line).or_insert(rank);
                    }
                    promises = Promises::new(heads);
                }
                Hindrance::Behind(_) | Hindrance::Nothing => {
                    settled.insert(key);
                }
            }
        }
        promises.heads
    }

    fn hindrance(&self, ask: &Ask<'_>, promises: &Promises) -> Hindrance {
        let behind = Cell::new(None);
        let allow = |node: &Node| {
            let free = promises.allow(*self, node, ask.now, ask.walltime);
            if !free {
                behind.set(promises.heads.get(&Line::at(node)).map(|head| head.3).or(behind.get()));
            }
            free
        };
        let ask = Ask { allow: Some(&allow), ..*ask };
        match self.place_gang(&ask, &mut Tentative::default()) {
            Ok(_) => Hindrance::Nothing,
            Err(NoGang::Quota(cause)) => Hindrance::Quota(cause),
            Err(NoGang::Room) => behind.get().map_or(Hindrance::Room, Hindrance::Behind),
        }
    }

    fn too_much_evicted(&self, ask: &Ask<'_>, promises: &Promises) -> Option<WaitReason> {
        // Where another is to start, nothing is evicted for one that goes after it.
        let spare = |node: &Node| promises.allow(*self, node, ask.now, None);
        let plan = self.plan_for(&Ask { allow: Some(&spare), ..*ask }, None)?;
        let tenant = self.tenant(ask.tenant)?;
        match (plan, tenant.settings.max_evicted_quanta_per_hour) {
            (Err(_), Some(limit)) => Some(WaitReason::Evictions { used: tenant.evicted(ask.now), limit }),
            // The eviction is due.
            (Ok(_), _) => Some(WaitReason::Due),
            (Err(_), None) => None,
        }
    }

    /// No room at all, or none that it may take before others.
    fn no_room(&self, ask: &Ask<'_>, found: &Hindrance, promises: &Promises) -> WaitReason {
        let place = |replicas: u32| {
            let ask = Ask { replicas, ..*ask };
            let mut taken = Tentative::default();
            self.place_gang(&ask, &mut taken).is_ok().then_some(taken)
        };
        let mut with_all = Tentative::default();
        let (mut fits, mut most) = (0, ask.replicas);
        while fits < most {
            let middle = fits + (most - fits).div_ceil(2);
            match place(middle) {
                Some(taken) => (fits, with_all) = (middle, taken),
                None => most = middle - 1,
            }
        }
        if fits == ask.replicas
            && let Hindrance::Behind(ahead) = found
            && let Some(start) = promises.start_of(*self, *ahead, ask.now)
        {
            return WaitReason::Behind { ahead: *ahead, start };
        }
        let missing = u64::from((ask.replicas - fits).max(1));
        let short = |(class, quanta): &(ClassNo, Quanta)| {
            let suits = |node: &&Node| {
                let pool = ask.pool.is_none_or(|pool| pool == node.pool);
                pool && node.is_open_to(ask.claimer) && ask.labels.iter().all(|label| node.labels.contains(label))
            };
            let room = |node: &Node| with_all.class(node, *class).map(|class| class.room_for(*quanta));
            let free = self.nodes().filter(suits).filter_map(room);
            let left = free.max().unwrap_or(0).min(quanta.0);
            (left < quanta.0, *class, Quanta(quanta.0.saturating_mul(missing).saturating_sub(left)))
        };
        let shorts: Vec<_> = ask.asks.iter().map(short).collect();
        let (_, class, short) =
            *shorts.iter().find(|(is_short, ..)| *is_short).or(shorts.first()).expect("a request asks for something");
        WaitReason::Room { fits, class, short }
    }
}

/// One that is the first of its tenant in its shape.
type First<'a> = (Rank, &'a ShapeKey, TenantNo);

impl Queue {
    /// The first of each tenant in each shape, the first of all on top.
    fn firsts(&self, standing: &dyn Fn(TenantNo) -> super::Standing) -> BinaryHeap<Reverse<First<'_>>> {
        let mut standings = BTreeMap::new();
        let mut heap = Vec::new();
        for (key, waiting) in &self.shapes {
            for (tenant, line) in waiting {
                let Some((submitted, number)) = line.first() else { continue };
                let standing = *standings.entry(*tenant).or_insert_with(|| standing(*tenant));
                let rank = (Reverse(key.priority), Reverse(standing), *submitted, *number);
                heap.push(Reverse((rank, key, *tenant)));
            }
        }
        heap.into()
    }

    /// The next of the same tenant in the same shape.
    fn after<'a>(&'a self, key: &'a ShapeKey, tenant: TenantNo, rank: Rank) -> Option<First<'a>> {
        let line = self.shapes.get(key)?.get(&tenant)?;
        let after = (std::ops::Bound::Excluded((rank.2, rank.3)), std::ops::Bound::Unbounded);
        let (submitted, number) = line.range(after).next()?;
        Some(((rank.0, rank.1, *submitted, *number), key, tenant))
    }
}
