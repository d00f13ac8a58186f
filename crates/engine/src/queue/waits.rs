//! Why an allocation waits, and its position in the queue.
//!
//! Both are computed from the state and the current minute, so that readers can ask for them: readers have no
//! scheduler, so what it remembers (which shapes are blocked, which allocations are heads) is recomputed.

use super::positions::compete;
use super::{Line, Queue, Rank, ShapeKey, Standing};
use crate::allocation::{Allocation, Hold};
use crate::ask::Ask;
use crate::assured_start::AssuredStart;
use crate::custody::Claimer;
use crate::decide::guard::AssuredStarts;
use crate::gang::NoGang;
use crate::lease::Phase;
use crate::node::Node;
use crate::placement::Tentative;
use crate::protection::own_lines;
use crate::view::View;
use leasehold_model::{AllocationNo, ClassNo, DenyCause, Instant, LeaseNo, NodeNo, PoolNo, Quanta, TenantNo};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// The situation of a waiting allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Its position among the allocations that wait for the same nodes, counted from one. While it is on hold, the
    /// position that it would have.
    pub position: u64,
    pub reason: WaitReason,
    /// When it starts at the latest and where. Only the head of a line has an assured start.
    pub assured_start: Option<AssuredStart>,
    /// Its protection, if it has waited for longer than `head_wait_max`.
    pub protection: Option<Protection>,
}

/// Whether an allocation that has waited too long is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Nothing of its priority or below starts on these nodes unless it ends before.
    On(Vec<NodeNo>),
    /// It is not protected, because this lease may be renewed forever.
    EndlessLease(LeaseNo),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// A quota or a ceiling has no headroom for it.
    Quota(DenyCause),
    /// Its victims on these nodes are not torn down yet.
    Victims { nodes: BTreeSet<NodeNo> },
    /// There is too little free capacity: `fits` replicas could be placed, and `short` quanta of `class` are missing
    /// for the others.
    Room { fits: u32, class: ClassNo, short: Quanta },
    /// It would fit, but would delay a higher-ranked allocation.
    Behind { ahead: AllocationNo, start: Option<Instant> },
    /// An eviction would make room, but its tenant has reached its limit on evictions per hour.
    Evictions { used: u64, limit: u64 },
    /// Its project is paused on every pool that it may use.
    Paused,
    /// It is on hold.
    Hold(Hold),
    /// It starts on the next scheduling pass.
    Due,
}

/// How many allocations are examined to find the heads before one. In a longer queue, the reason is given as a lack of
/// capacity.
const EXAMINED_MAX: usize = 64;

/// What keeps an allocation from starting, as a scheduling pass would find it.
enum Hindrance {
    Nothing,
    Quota(DenyCause),
    Room,
    /// At least one node was excluded because it is reserved for this allocation.
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
            let nodes = live.filter(|lease| lease.phase != Phase::Fenced).map(|lease| lease.node).collect();
            let reason = WaitReason::Victims { nodes };
            return Some(Waits { position, reason, assured_start: None, protection: None });
        }
        if let Some(hold) = &waits.on_hold {
            return Some(Waits {
                position,
                reason: WaitReason::Hold(hold.clone()),
                assured_start: None,
                protection: None,
            });
        }
        let ask = Ask::of(waits, now);
        if self.is_paused_everywhere(&ask) {
            return Some(Waits { position, reason: WaitReason::Paused, assured_start: None, protection: None });
        }
        let assured = AssuredStarts::new(self.heads_before(&ask));
        let (reason, assured_start) = match self.hindrance(&ask, &assured) {
            Hindrance::Nothing => (WaitReason::Due, None),
            Hindrance::Quota(cause) => (WaitReason::Quota(cause), None),
            found => {
                // An allocation that waits for the limit on evictions can be a head, like any other without capacity.
                let is_first = assured.heads.is_empty();
                let assured_start = || is_first.then(|| self.assured_start(waits, now)).flatten();
                match self.too_much_evicted(&ask, &assured) {
                    Some(WaitReason::Due) => (WaitReason::Due, None),
                    Some(reason) => (reason, assured_start()),
                    None => (self.no_room(&ask, &found, &assured), assured_start()),
                }
            }
        };
        let is_head = assured.heads.is_empty() && !matches!(reason, WaitReason::Quota(_) | WaitReason::Due);
        let protection = self.protection(waits, is_head, now);
        Some(Waits { position, reason, assured_start, protection })
    }

    /// Whether an allocation is protected, or what keeps a head from it that has waited too long.
    fn protection(&self, waits: &Allocation, is_head: bool, now: Instant) -> Option<Protection> {
        if !waits.protected_on.is_empty() {
            return Some(Protection::On(waits.protected_on.clone()));
        }
        if !is_head || !self.waited_too_long(waits, now) {
            return None;
        }
        let (ask, rank) = (Ask::of(waits, now), self.rank_of(waits, now));
        let heads = self.lines().filter(|line| line.has(ask.claimer, self.pool_of(&ask))).map(|line| (line, rank));
        let lines = own_lines(self, &heads.collect(), waits.number);
        let is_due = self.set_to_protect(waits, &lines, now).is_some();
        if is_due { None } else { self.lease_without_end(waits, &lines, now).map(Protection::EndlessLease) }
    }

    /// The pool in whose line an ask waits: that of the node that it names, or the one that it names.
    fn pool_of(&self, ask: &Ask<'_>) -> Option<PoolNo> {
        ask.node.and_then(|node| self.node(node)).map(|node| node.pool).or(ask.pool)
    }

    /// How many allocations that compete for the same nodes go before it.
    fn going_before(&self, waits: &Allocation, now: Instant) -> u64 {
        let own = self.rank_of(waits, now);
        let competes = |claimer: Option<Claimer>, pool| compete((claimer, pool), (waits.claimer(), waits.spec.pool));
        let mut standings = BTreeMap::new();
        let mut count = 0;
        for (key, waiting) in self.queue.shapes.iter().filter(|(key, _)| competes(key.claimer, key.pool)) {
            for (tenant, line) in waiting {
                let scarce = self.scarce(key.node, key.pool);
                let standing = standings.entry((*tenant, scarce));
                let standing = *standing.or_insert_with(|| self.standing_by(*tenant, scarce, now));
                let standing = Standing { is_preferred: !self.is_shape_lowered(key, *tenant, now), ..standing };
                let before = (Reverse(key.priority), Reverse(standing)).cmp(&(own.0, own.1));
                count += match before {
                    std::cmp::Ordering::Less => line.len() as u64,
                    std::cmp::Ordering::Equal => line.range(..(own.2, own.3)).count() as u64,
                    std::cmp::Ordering::Greater => 0,
                };
            }
        }
        let with_victims = self.queue.reserved.iter().filter_map(|number| self.allocation(*number));
        let before = |other: &&Allocation| competes(other.claimer(), other.spec.pool) && self.rank_of(other, now) < own;
        count + with_victims.filter(before).count() as u64
    }

    /// The head of each line in which it waits: the first allocation before it that finds no capacity.
    pub(crate) fn heads_before(&self, ask: &Ask<'_>) -> BTreeMap<Line, Rank> {
        if self.queue.shapes.is_empty() {
            return BTreeMap::new();
        }
        let (own, now) = (self.rank(ask), ask.now);
        let lines: Vec<Line> = self.lines().filter(|line| line.has(ask.claimer, self.pool_of(ask))).collect();
        let named = self.named_nodes();
        let mut assured = AssuredStarts::new(BTreeMap::new());
        let mut settled: BTreeSet<&ShapeKey> = BTreeSet::new();
        let mut left = self.queue.firsts(&|key, tenant| self.standing_of(&Ask { tenant, ..Ask::of_shape(key, now) }));
        let mut examined = 0;
        while let Some(Reverse((rank, key, tenant))) = left.pop() {
            if rank >= own || examined == EXAMINED_MAX || lines.iter().all(|line| assured.heads.contains_key(line)) {
                break;
            }
            let competes = lines.iter().any(|line| key.stands_in(*line, &named));
            if !competes || settled.contains(key) {
                continue;
            }
            examined += 1;
            let Some(before) = self.allocation(rank.3) else { continue };
            match self.hindrance(&Ask::of(before, now), &assured) {
                // Others of its shape may have the quota headroom that it lacks.
                Hindrance::Quota(_) => left.extend(self.queue.after(key, tenant, rank).map(Reverse)),
                Hindrance::Room => {
                    settled.insert(key);
                    let mut heads = std::mem::take(&mut assured.heads);
                    for line in lines.iter().filter(|line| key.stands_in(**line, &named)) {
                        heads.entry(*line).or_insert(rank);
                    }
                    assured = AssuredStarts::new(heads);
                }
                Hindrance::Behind(_) | Hindrance::Nothing => {
                    settled.insert(key);
                }
            }
        }
        assured.heads
    }

    fn hindrance(&self, ask: &Ask<'_>, assured: &AssuredStarts) -> Hindrance {
        let behind = Cell::new(None);
        let allow = |node: &Node| {
            let free = assured.allow(*self, node, ask.now, ask.stay());
            if !free {
                let protected = assured.protected_head(*self, node, ask.now, ask.stay());
                let head = || assured.heads.get(&Line::at(node)).map(|head| head.3);
                behind.set(protected.or_else(head).or(behind.get()));
            }
            free
        };
        match self.place_gang(&Ask { allow: Some(&allow), ..*ask }, &mut Tentative::default()) {
            Ok(_) => Hindrance::Nothing,
            Err(NoGang::Quota(cause)) => Hindrance::Quota(cause),
            Err(NoGang::Room) => match behind.get() {
                Some(ahead) if self.is_held_back(ask, assured) => Hindrance::Behind(ahead),
                _ => Hindrance::Room,
            },
        }
    }

    /// Whether an ask without room would fit, or make room, if no node were kept for those before it. One that would not
    /// is the head of its other lines, as a scheduling pass finds it.
    fn is_held_back(&self, ask: &Ask<'_>, assured: &AssuredStarts) -> bool {
        if !matches!(self.place_gang(ask, &mut Tentative::default()), Err(NoGang::Room)) {
            return true;
        }
        let spare = |node: &Node| assured.allow(*self, node, ask.now, ask.stay_after_eviction());
        let limited = matches!(self.plan_for(&Ask { allow: Some(&spare), ..*ask }, None), Some(Err(_)));
        !limited && self.plan_for(ask, None).is_some()
    }

    fn too_much_evicted(&self, ask: &Ask<'_>, assured: &AssuredStarts) -> Option<WaitReason> {
        // Nothing is evicted on nodes where a higher-ranked allocation has an assured start.
        let spare = |node: &Node| assured.allow(*self, node, ask.now, ask.stay_after_eviction());
        let plan = self.plan_for(&Ask { allow: Some(&spare), ..*ask }, None)?;
        let tenant = self.tenant(ask.tenant)?;
        match (plan, tenant.settings.max_evicted_quanta_per_hour) {
            (Err(_), Some(limit)) => Some(WaitReason::Evictions { used: tenant.evicted(ask.now), limit }),
            // The eviction happens on the next scheduling pass.
            (Ok(_), _) => Some(WaitReason::Due),
            (Err(_), None) => None,
        }
    }

    /// The reason if there is too little capacity, or none that it may use before others.
    fn no_room(&self, ask: &Ask<'_>, found: &Hindrance, assured: &AssuredStarts) -> WaitReason {
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
        {
            return WaitReason::Behind { ahead: *ahead, start: assured.start_of(*self, *ahead, ask.now) };
        }
        let missing = u64::from((ask.replicas - fits).max(1));
        let short = |(class, quanta): &(ClassNo, Quanta)| {
            let suits = |node: &&Node| {
                let pool = ask.pool.is_none_or(|pool| pool == node.pool);
                let named = ask.node.is_none_or(|named| named == node.number);
                pool && named
                    && node.is_open_to(ask.claimer)
                    && ask.labels.iter().all(|label| node.labels.contains(label))
            };
            let room = |node: &Node| with_all.class(node, *class).map(|class| class.room_for(*quanta));
            let free = self.nodes().filter(suits).filter_map(room);
            let left = free.max().unwrap_or(0).min(quanta.0);
            (left < quanta.0, *class, Quanta(quanta.0.saturating_mul(missing).saturating_sub(left)))
        };
        let shorts: Vec<_> = ask.asks.iter().map(short).collect();
        let (_, class, short) =
            *shorts.iter().find(|(is_short, ..)| *is_short).or(shorts.first()).expect("a request has at least one ask");
        WaitReason::Room { fits, class, short }
    }
}

/// The first allocation of a tenant in a shape.
type First<'a> = (Rank, &'a ShapeKey, TenantNo);

impl Queue {
    /// The first allocation of each tenant in each shape, with the highest-ranked one on top.
    fn firsts(&self, standing: &dyn Fn(&ShapeKey, TenantNo) -> super::Standing) -> BinaryHeap<Reverse<First<'_>>> {
        let mut heap = Vec::new();
        for (key, waiting) in &self.shapes {
            for (tenant, line) in waiting {
                let Some((submitted, number)) = line.first() else { continue };
                let rank = (Reverse(key.priority), Reverse(standing(key, *tenant)), *submitted, *number);
                heap.push(Reverse((rank, key, *tenant)));
            }
        }
        heap.into()
    }

    /// The next allocation of the same tenant in the same shape.
    fn after<'a>(&'a self, key: &'a ShapeKey, tenant: TenantNo, rank: Rank) -> Option<First<'a>> {
        let line = self.shapes.get(key)?.get(&tenant)?;
        let after = (std::ops::Bound::Excluded((rank.2, rank.3)), std::ops::Bound::Unbounded);
        let (submitted, number) = line.range(after).next()?;
        Some(((rank.0, rank.1, *submitted, *number), key, tenant))
    }
}
