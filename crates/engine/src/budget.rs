//! What a tenant used recently, which determines its standing in the queue (SEMANTICS 4).
//!
//! GPU time, core time and node time are integrals of a level over time. Their values are kept at whole hours, so that the use in
//! a rolling window that starts at one takes two lookups, and at the last whole minute, for which standings are
//! computed: a standing depends only on the journal and the minute, not on the instant of the query.

use crate::claims::{ChangedAt, ClaimedNode};
use crate::follow::Follower;
use crate::lease::Lease;
use crate::on_nodes::OnNodes;
use crate::queue::Standing;
use crate::state::{State, entry, entry_mut};
use leasehold_model::codec::{DecodeError, Field, Reader, put_varint};
use leasehold_model::limits::BUDGET_DAYS_MAX;
use leasehold_model::{ClassNo, Instant, NodeNo, PoolNo, ResourceKind, TenantNo};
use std::collections::{BTreeMap, VecDeque};

const MINUTE: u64 = 60_000_000_000;
const HOUR: u64 = 60 * MINUTE;
/// The level of one GPU, or of one node, is 2 to the power of this.
pub(crate) const ONE: u32 = 20;
const HOURS_KEPT: u64 = (BUDGET_DAYS_MAX as u64 + 1) * 24;
/// One for each hour of the longest window, one for the current hour, and one before the window.
const MARKS_MAX: usize = (BUDGET_DAYS_MAX as usize + 1) * 24 + 2;

/// The most that a lease adds to a level: a million GPUs or cores.
const LEVEL_MAX: u64 = 1 << 40;

/// More than any cluster can use; larger sums in a snapshot are invalid.
const SUM_MAX: u128 = 1 << 106;

/// The integral of a level over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meter {
    level: u64,
    /// Level × nanoseconds, up to `since`.
    sum: u128,
    since: Instant,
    /// The sum at the whole minute before `since`.
    at_minute: u128,
    /// The sums at the beginning of hours. The level was zero during hours that are left out.
    marks: VecDeque<(u64, u128)>,
}

impl Meter {
    /// The sum at `at`, which must not be before `since`.
    fn grown(&self, at: Instant) -> u128 {
        self.sum + u128::from(self.level) * u128::from(at.since(self.since).0)
    }

    fn advance(&mut self, to: Instant) {
        if to <= self.since {
            return;
        }
        let minute = to.0 / MINUTE * MINUTE;
        if minute > self.since.0 {
            self.at_minute = self.grown(Instant(minute));
        }
        let (last, hour) = (self.since.0 / HOUR, to.0 / HOUR);
        if hour > last {
            let first = if self.level == 0 { hour } else { (last + 1).max(hour.saturating_sub(HOURS_KEPT)) };
            for mark in first..=hour {
                let sum = self.grown(Instant(mark * HOUR));
                self.marks.push_back((mark, sum));
            }
            // One mark before the longest window is enough.
            while self.marks.len() > 1 && self.marks[1].0 + HOURS_KEPT <= hour {
                self.marks.pop_front();
            }
        }
        self.sum = self.grown(to);
        self.since = to;
    }

    fn rise(&mut self, at: Instant, by: u64) {
        self.advance(at);
        self.level += by;
    }

    fn fall(&mut self, at: Instant, by: u64) {
        self.advance(at);
        self.level -= by;
    }

    /// Subtracts what was added at `level` since `from`, because a lease had already ended at that instant.
    fn take_back(&mut self, level: u64, from: Instant) {
        // Almost every lease ends at the instant of its record.
        if from >= self.since {
            return;
        }
        let since = |at: u64| u128::from(level) * u128::from(at.saturating_sub(from.0));
        self.sum = self.sum.saturating_sub(since(self.since.0));
        self.at_minute = self.at_minute.saturating_sub(since(self.since.0 / MINUTE * MINUTE));
        for (hour, sum) in self.marks.iter_mut().rev().take_while(|(hour, _)| hour * HOUR > from.0) {
            *sum = sum.saturating_sub(since(*hour * HOUR));
        }
    }

    /// Whether these values are possible with this level at this stamp; snapshots are checked with it.
    fn is_sound(&self, level: u64, last_stamp: Instant) -> bool {
        let marks = || self.marks.iter();
        let rise = marks().zip(marks().skip(1)).all(|(a, b)| a.0 < b.0 && a.1 <= b.1);
        let last = self.marks.back().copied().unwrap_or_default();
        self.level == level
            && self.since <= last_stamp
            && self.sum < SUM_MAX
            && self.at_minute <= self.sum
            && rise
            && last.0 <= self.since.0 / HOUR
            && last.1 <= self.sum
    }

    /// The sum at the whole minute before `now`.
    fn at_minute_of(&self, now: Instant) -> u128 {
        let minute = Instant(now.0 / MINUTE * MINUTE);
        if minute >= self.since { self.grown(minute) } else { self.at_minute }
    }

    /// The sum at the beginning of an hour; zero if that is before the first mark.
    fn at_hour(&self, hour: u64) -> u128 {
        if hour * HOUR >= self.since.0 {
            return self.grown(Instant(hour * HOUR));
        }
        let place = self.marks.partition_point(|(mark, _)| *mark < hour);
        match self.marks.get(place) {
            // Nothing was used before the first mark.
            Some((first, _)) if place == 0 && *first > hour => 0,
            found => found.map_or(0, |(_, sum)| *sum),
        }
    }

    /// The increase during the window that ends at the whole minute before `now`.
    fn in_window(&self, now: Instant, days: u32) -> u128 {
        let start = (now.0 / HOUR).saturating_sub(u64::from(days) * 24);
        self.at_minute_of(now).saturating_sub(self.at_hour(start))
    }
}

impl Field for Meter {
    fn put(&self, out: &mut Vec<u8>) {
        self.level.put(out);
        self.sum.put(out);
        self.since.put(out);
        self.at_minute.put(out);
        put_varint(self.marks.len() as u64, out);
        self.marks.iter().for_each(|mark| mark.put(out));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (level, sum, since, at_minute) = (Field::get(r)?, Field::get(r)?, Field::get(r)?, Field::get(r)?);
        let marks = (0..r.count(MARKS_MAX)?).map(|_| Field::get(r)).collect::<Result<VecDeque<_>, _>>()?;
        Ok(Self { level, sum, since, at_minute, marks })
    }
}

/// What one tenant used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    gpus: Meter,
    /// Cores on pools without GPUs.
    cores: Meter,
    nodes: Meter,
    on: OnNodes,
}

impl Field for Spent {
    fn put(&self, out: &mut Vec<u8>) {
        self.gpus.put(out);
        self.cores.put(out);
        self.nodes.put(out);
        self.on.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { gpus: Field::get(r)?, cores: Field::get(r)?, nodes: Field::get(r)?, on: Field::get(r)? })
    }
}

/// What a tenant used over a rolling window, in 2^20ths of a GPU, a core or a node times nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spending {
    pub gpu: u128,
    /// Core time on pools without GPUs.
    pub core: u128,
    pub node: u128,
    /// GPU time of all tenants.
    pub all_gpu: u128,
    /// Core time of all tenants on pools without GPUs.
    pub all_core: u128,
}

/// What the fair share of a tenant is a share of (SEMANTICS 11): GPU time on pools with GPUs, core time elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scarce {
    Gpus,
    Cores,
}

impl Spending {
    /// One hour of one GPU, core or node, in the same unit.
    pub const HOUR: u128 = (HOUR as u128) << ONE;
}

const FULL: u128 = 1 << 20;

/// The rules version from which the share on pools without GPUs is one of core time.
const CORE_SHARES: u32 = 4;

/// The budget factor (SEMANTICS 4): 1 up to 80 %, falling linearly to 0.05 at 120 %.
fn factor(used: u128, hours: u64) -> u128 {
    let fraction = (used << 20) / (Spending::HOUR * u128::from(hours).max(1));
    let (begin, end) = (FULL * 8 / 10, FULL * 12 / 10);
    match fraction {
        f if f <= begin => FULL,
        f if f >= end => FULL / 20,
        f => FULL - (f - begin) * (FULL * 95 / 100) / (end - begin),
    }
}

impl State {
    /// What a lease adds to the time of which tenants have a share, if it adds anything.
    fn share_level(&self, lease: &Lease) -> Option<(Scarce, u64)> {
        self.level_of(lease.class, lease.quanta.0, lease.counts_cores)
    }

    fn level_of(&self, class: ClassNo, quanta: u64, counts_cores: bool) -> Option<(Scarce, u64)> {
        let class = entry(&self.classes, u32::from(class.0)).expect("the class of held capacity exists");
        let scarce = match class.kind {
            ResourceKind::Gpu => Scarce::Gpus,
            ResourceKind::Cpu if counts_cores => Scarce::Cores,
            ResourceKind::Cpu | ResourceKind::Mem | ResourceKind::Block | ResourceKind::Net => return None,
        };
        let level = (u128::from(quanta) << ONE) / u128::from(class.quanta_per_unit);
        // So many that the sum over all leases fits.
        let level = u64::try_from(level).unwrap_or(u64::MAX).min(LEVEL_MAX);
        (level > 0).then_some((scarce, level))
    }

    /// Whether the core time of a lease that is granted now counts: its pool has no GPUs, and the rules say so.
    pub(crate) fn counts_cores(&self, pool: PoolNo) -> bool {
        self.follows_rules(CORE_SHARES) && !self.has_gpus(pool)
    }

    /// Whether a pool has nodes with GPUs.
    pub(crate) fn has_gpus(&self, pool: PoolNo) -> bool {
        self.pool(pool).is_some_and(|pool| pool.gpu_nodes > 0)
    }

    /// What the share is a share of for work that may use a node, a pool or, without either, any pool.
    pub(crate) fn scarce(&self, node: Option<NodeNo>, pool: Option<PoolNo>) -> Scarce {
        let pool = node.and_then(|node| self.node(node)).map(|node| node.pool).or(pool);
        let has_gpus = match pool {
            Some(pool) => self.has_gpus(pool),
            None => self.pools().any(|(_, pool)| pool.gpu_nodes > 0),
        };
        if has_gpus { Scarce::Gpus } else { Scarce::Cores }
    }

    pub(crate) fn meter_begin(&mut self, lease: &Lease) {
        if self.is_counted_by_claim(lease) {
            return;
        }
        let (share, at) = (self.share_level(lease), lease.granted_at);
        let spent = &mut entry_mut(&mut self.tenants, lease.tenant.0).expect("a lease's tenant exists").spent;
        if let Some((scarce, level)) = share {
            let (own, all) = match scarce {
                Scarce::Gpus => (&mut spent.gpus, &mut self.gpu_time),
                Scarce::Cores => (&mut spent.cores, &mut self.core_time),
            };
            own.rise(at, level);
            all.rise(at, level);
        }
        if spent.on.add(lease.node) {
            spent.nodes.rise(at, 1 << ONE);
        }
    }

    /// Stops counting a lease. It may have ended before the stamp of the record that ends it.
    pub(crate) fn meter_end(&mut self, lease: &Lease, stamp: Instant, to: &mut impl Follower) {
        if !self.is_counted_by_claim(lease) {
            self.stop_metering(lease, ChangedAt { stamp, effective: lease.ended_at }, to);
        }
    }

    /// Stops counting a lease, by a record at `stamp`, from an earlier instant on.
    pub(crate) fn stop_metering(&mut self, lease: &Lease, at: ChangedAt, to: &mut impl Follower) {
        let share = self.share_level(lease);
        let ChangedAt { stamp, effective: ended } = at;
        let spent = &mut entry_mut(&mut self.tenants, lease.tenant.0).expect("a lease's tenant exists").spent;
        if let Some((scarce, level)) = share {
            let meters = match scarce {
                Scarce::Gpus => [&mut spent.gpus, &mut self.gpu_time],
                Scarce::Cores => [&mut spent.cores, &mut self.core_time],
            };
            for meter in meters {
                meter.fall(stamp, level);
                meter.take_back(level, ended);
            }
        }
        if let Some(last) = spent.on.remove(lease.node, ended) {
            spent.nodes.fall(stamp, 1 << ONE);
            spent.nodes.take_back(1 << ONE, last);
        }
        // The sums at the last whole minute have changed, and with them the standings of this minute.
        if ended.0 < stamp.0 / MINUTE * MINUTE {
            to.standings_changed();
        }
    }

    /// Counts the change of what a claimed node counts.
    pub(crate) fn count_claim_in_budgets(
        &mut self,
        before: Option<&ClaimedNode>,
        after: Option<&ClaimedNode>,
        at: ChangedAt,
        to: &mut impl Follower,
    ) {
        let Some(claimed) = before.or(after) else { return };
        let level = |claimed: Option<&ClaimedNode>| self.claimed_level(claimed);
        let ((was_levels, was_used), (is_levels, is_used)) = (level(before), level(after));
        let ChangedAt { stamp, effective } = at;
        let tenant = claimed.claim.by.tenant;
        let spent = &mut entry_mut(&mut self.tenants, tenant.0).expect("a claimer's tenant exists").spent;
        let meters = [[&mut spent.gpus, &mut self.gpu_time], [&mut spent.cores, &mut self.core_time]];
        for ((was, is), meters) in was_levels.into_iter().zip(is_levels).zip(meters) {
            for meter in meters {
                if is > was {
                    meter.rise(stamp, is - was);
                } else if was > is {
                    meter.fall(stamp, was - is);
                    meter.take_back(was - is, effective);
                }
            }
        }
        if is_used && !was_used && spent.on.add(claimed.node) {
            spent.nodes.rise(stamp, 1 << ONE);
        }
        if was_used
            && !is_used
            && let Some(last) = spent.on.remove(claimed.node, effective)
        {
            spent.nodes.fall(stamp, 1 << ONE);
            spent.nodes.take_back(1 << ONE, last);
        }
        if effective.0 < stamp.0 / MINUTE * MINUTE {
            to.standings_changed();
        }
    }

    /// The GPUs and the cores that a claimed node counts, and whether the node counts.
    fn claimed_level(&self, claimed: Option<&ClaimedNode>) -> ([u64; 2], bool) {
        let mut levels = [0; 2];
        let Some(claimed) = claimed else { return (levels, false) };
        let share = |(class, quanta): &(ClassNo, u64)| self.level_of(*class, *quanta, claimed.claim.counts_cores);
        for (scarce, level) in claimed.in_use().iter().filter_map(share) {
            levels[scarce as usize] += level;
        }
        (levels, claimed.quanta.is_some() && claimed.in_service)
    }

    /// Loads what counts the leases of a tenant on a node.
    #[inline]
    pub(crate) fn prefetch_counts(&self, tenant: TenantNo, node: NodeNo) {
        if let Some(tenant) = self.tenant(tenant) {
            tenant.spent.on.prefetch(node);
        }
    }

    /// Whether the use in a snapshot is consistent with its held leases.
    pub(crate) fn meters_are_sound(&self) -> bool {
        let mut held: BTreeMap<TenantNo, ([u64; 2], BTreeMap<NodeNo, u32>)> = BTreeMap::new();
        let mut all = [0u64; 2];
        let counts = |lease: &&Lease| lease.phase.is_held() && !self.is_counted_by_claim(lease);
        for lease in self.leases.in_any_order().filter(counts) {
            let (levels, on) = held.entry(lease.tenant).or_default();
            if let Some((scarce, level)) = self.share_level(lease) {
                levels[scarce as usize] += level;
                all[scarce as usize] += level;
            }
            *on.entry(lease.node).or_default() += 1;
        }
        for claimed in self.nodes().filter_map(|node| self.claimed_node(node.number)) {
            if let (levels, true) = self.claimed_level(Some(&claimed)) {
                let (sums, on) = held.entry(claimed.claim.by.tenant).or_default();
                for (place, level) in levels.into_iter().enumerate() {
                    sums[place] += level;
                    all[place] += level;
                }
                *on.entry(claimed.node).or_default() += 1;
            }
        }
        let stamp = self.last_stamp;
        self.gpu_time.is_sound(all[0], stamp)
            && self.core_time.is_sound(all[1], stamp)
            && self.tenants().all(|tenant| {
                let ([gpus, cores], on) = held.remove(&tenant.number).unwrap_or_default();
                let nodes = (on.len() as u64) << ONE;
                let counted = tenant.spent.on.in_order();
                tenant.spent.gpus.is_sound(gpus, stamp)
                    && tenant.spent.cores.is_sound(cores, stamp)
                    && tenant.spent.nodes.is_sound(nodes, stamp)
                    && counted.iter().all(|(_, (_, last))| *last <= stamp)
                    && counted.into_iter().map(|(node, (count, _))| (node, count)).eq(on)
            })
    }

    /// What a tenant used in the last `days`, as of the last whole minute.
    pub fn spending(&self, tenant: TenantNo, now: Instant, days: u32) -> Option<Spending> {
        let spent = &self.tenant(tenant)?.spent;
        Some(Spending {
            gpu: spent.gpus.in_window(now, days),
            core: spent.cores.in_window(now, days),
            node: spent.nodes.in_window(now, days),
            all_gpu: self.gpu_time.in_window(now, days),
            all_core: self.core_time.in_window(now, days),
        })
    }

    /// The standing of a tenant in the queue in the minute of `now`, for work on pools with GPUs.
    pub fn standing(&self, tenant: TenantNo, now: Instant) -> Standing {
        self.standing_by(tenant, Scarce::Gpus, now)
    }

    /// The standing of a tenant in the queue in the minute of `now`, by its share of what is scarce.
    pub fn standing_by(&self, tenant: TenantNo, scarce: Scarce, now: Instant) -> Standing {
        let Some(found) = self.tenant(tenant) else { return Standing::FRESH };
        let budgets = &found.budgets;
        let used = self.spending(tenant, now, budgets.period_days).expect("the tenant exists");
        let gpu =
            budgets.gpu_hours.map(|hours| factor(used.gpu, hours.saturating_add(budgets.burst_allowance.unwrap_or(0))));
        let node = budgets.node_hours.map(|hours| factor(used.node, hours));
        let factor = gpu.into_iter().chain(node).min().unwrap_or(FULL);
        let (own, all) = match scarce {
            Scarce::Gpus => (used.gpu, used.all_gpu),
            Scarce::Cores => (used.core, used.all_core),
        };
        let share = (own << 20).checked_div(all).unwrap_or(0);
        let target = u128::from(budgets.fair_share.unwrap_or(0)) * FULL / 1000;
        let signed = |amount: u128| i64::try_from(amount).expect("at most one");
        Standing {
            is_preferred: true,
            factor: u32::try_from(factor).expect("at most one"),
            deficit: signed(target) - signed(share.min(FULL)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A year has more hours than a list in a record may have items.
    #[test]
    fn a_year_of_use_is_encoded_and_decoded() {
        let mut meter = Meter::default();
        meter.rise(Instant(1), 1 << ONE);
        for day in 1..=500 {
            meter.advance(Instant(day * 24 * HOUR));
        }
        let mut bytes = Vec::new();
        meter.put(&mut bytes);
        assert!(meter.marks.len() > 8000 && meter.marks.len() <= MARKS_MAX, "{}", meter.marks.len());
        assert_eq!(Meter::get(&mut Reader::new(&bytes)), Ok(meter));
    }
}
