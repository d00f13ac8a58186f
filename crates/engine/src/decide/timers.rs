//! What happens without a request: timers, in the order of SEMANTICS 2 (due, kind, id).

use super::Engine;
use crate::holder::Holder;
use crate::lease::Phase;
use crate::state::{State, entry};
use crate::timer::Entry;
use leasehold_model::body::{
    Body, BurstEnded, Expired, Fenced, Leases, NodeQuarantined, QuotaUntilReached, TeardownStarted,
};
use leasehold_model::limits::LEASES_PER_RECORD_MAX;
use leasehold_model::policy::TeardownCause;
use leasehold_model::{Batch, Instant, LeaseNo, NodeNo, QuarantineCause, QuotaNo, Record, TeardownMode};

/// What leases must have in common to be ended by one record.
#[derive(Clone, PartialEq, Eq)]
struct Together {
    due: Instant,
    holder: Holder,
    phase: Phase,
    closed: bool,
}

impl Engine {
    /// Applies everything that is due at or before `now`, with at most about `records_max` records. Returns whether all
    /// of it is done; if not, call it again before deciding anything.
    pub fn advance(&mut self, now: Instant, out: &mut Batch, records_max: u32) -> bool {
        assert!(now >= self.state.last_stamp(), "stamps never decrease");
        let limit = self.state.size() + u64::from(records_max);
        let done = self.advance_to(now, out, limit);
        if !self.timers.touched.is_empty() {
            self.arm_touched();
        }
        done
    }

    fn advance_to(&mut self, now: Instant, out: &mut Batch, limit: u64) -> bool {
        loop {
            let left = |state: &State| {
                u32::try_from(limit.saturating_sub(state.size())).expect("at most records_max are left")
            };
            if !self.apply_timers(now, out, left(&self.state)) || left(&self.state) == 0 {
                return self.is_done(now);
            }
            let before = self.state.size();
            if !self.dispatch(now, out, left(&self.state)) {
                return false;
            }
            // A scheduling pass can make a timer due at once, for example an eviction without grace.
            if self.state.size() == before {
                return true;
            }
        }
    }

    /// Whether nothing is due at `now`.
    fn is_done(&self, now: Instant) -> bool {
        !self.scheduler.is_due_at(&self.state, now) && self.timers.peek().is_none_or(|entry| entry.due() > now)
    }

    fn apply_timers(&mut self, now: Instant, out: &mut Batch, records_max: u32) -> bool {
        let mut made = 0;
        let mut run: Option<(Together, Leases)> = None;
        while let Some(due) = self.timers.peek().filter(|entry| entry.due() <= now) {
            let together = if due.is_of_lease() { self.comes_due(due) } else { None };
            if due.is_of_lease() && together.is_none() {
                continue;
            }
            let lease = LeaseNo(due.id());
            // A record lists its leases in rising order, which is the order of the heap.
            if let (Some((open, leases)), Some(together)) = (&mut run, &together)
                && open == together
                && leases.0.len() < LEASES_PER_RECORD_MAX
                && leases.0.last().is_none_or(|last| *last < lease)
            {
                self.timers.take(&self.state, due);
                leases.0.push(lease);
                continue;
            }
            // Sealing a record may rebuild the heap, so its first entry is read again.
            if let Some(run) = run.take() {
                self.end_run(now, run, out);
                made += 1;
                continue;
            }
            if made >= records_max {
                return false;
            }
            self.timers.take(&self.state, due);
            match together {
                Some(together) => run = Some((together, Leases([lease].into_iter().collect()))),
                None if due.is_burst() => made += u32::from(self.end_burst(now, due, out)),
                None if due.is_quota_until() => made += u32::from(self.end_temporary_limit(now, due, out)),
                None if due.is_window_end() => made += u32::from(self.end_window(now, due, out)),
                None if due.is_window_start() => made += u32::from(self.start_window(now, due, out)),
                None if due.is_credit() => made += u32::from(self.expire_credits(now, due, out)),
                None if due.is_prepaid_minute() => made += u32::from(self.prepaid_minute(now, due, out)),
                None => made += u32::from(self.end_wipe(now, due, out)),
            }
        }
        if let Some(run) = run {
            self.end_run(now, run, out);
        }
        true
    }

    /// What the first entry ends, if it is current and due. Removes an outdated entry, and pushes an entry that came up
    /// early again with the right instant.
    fn comes_due(&mut self, due: Entry) -> Option<Together> {
        let Some(slot) = self.timers.slot_of(&self.state, due) else {
            self.timers.pop();
            return None;
        };
        let lease = self.state.leases.at(slot);
        if lease.timer() != Some(due) {
            self.timers.take(&self.state, due);
            self.timers.arm(&self.state, slot);
            return None;
        }
        let node = entry(&self.state.nodes, lease.node.0).expect("a lease's node exists");
        Some(Together {
            due: due.due(),
            holder: lease.holder(),
            phase: lease.phase,
            closed: node.teardown == TeardownMode::Immediate,
        })
    }

    /// Makes the record that ends a group of leases.
    fn end_run(&mut self, now: Instant, (together, leases): (Together, Leases), out: &mut Batch) {
        let Together { due, holder, phase, closed } = together;
        let belongs_to = Some(holder.belongs_to);
        let body: Body = match phase {
            Phase::Active => Expired { leases, closed, belongs_to }.into(),
            Phase::Revoking => TeardownStarted { leases, cause: TeardownCause::GraceEnded, closed, belongs_to }.into(),
            Phase::Releasing | Phase::Expired | Phase::TearingDown => Fenced { leases, belongs_to }.into(),
            Phase::Fenced => unreachable!("a fenced lease has no timer"),
        };
        let mut record = Record::new(self.state.size(), now, body);
        record.effective_at = due;
        record.identity = holder.identity();
        self.seal(&record, None, out);
    }

    /// Quarantines a node whose wipe was not confirmed in time. Only an operator can clear that.
    fn end_wipe(&mut self, now: Instant, due: Entry, out: &mut Batch) -> bool {
        let node = NodeNo(u32::try_from(due.id()).expect("node numbers fit 32 bits"));
        let found = self.state.node(node).filter(|found| found.custody.wipe_due() == Some(due.due()));
        let Some(ended) = found.and_then(|found| found.custody.ended_claim()) else { return false };
        let (cause, claim) = (QuarantineCause::WipeTimedOut, Some(ended.sequence));
        let mut record = Record::new(self.state.size(), now, NodeQuarantined { node, cause, claim });
        record.identity = ended.identity();
        record.effective_at = due.due();
        self.seal(&record, None, out);
        true
    }

    fn end_burst(&mut self, now: Instant, due: Entry, out: &mut Batch) -> bool {
        let number = QuotaNo(u32::try_from(due.id()).expect("quota numbers fit 32 bits"));
        let quota = entry(&self.state.quotas, number.0);
        let Some(quota) = quota.filter(|quota| quota.episode_due() == Some(due.due())) else { return false };
        let mut record = Record::new(self.state.size(), now, BurstEnded { quota: number });
        record.effective_at = due.due();
        record.identity.tenant = Some(quota.scope.tenant);
        self.seal(&record, None, out);
        true
    }

    fn end_temporary_limit(&mut self, now: Instant, due: Entry, out: &mut Batch) -> bool {
        let number = QuotaNo(u32::try_from(due.id()).expect("quota numbers fit 32 bits"));
        let quota = entry(&self.state.quotas, number.0);
        let quota = quota.filter(|quota| quota.temporary.is_some_and(|temporary| temporary.until == due.due()));
        let Some(quota) = quota else { return false };
        let mut record = Record::new(self.state.size(), now, QuotaUntilReached { quota: number });
        record.effective_at = due.due();
        record.identity.tenant = Some(quota.scope.tenant);
        self.seal(&record, None, out);
        true
    }
}
