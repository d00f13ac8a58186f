//! Lost nodes: what ended there after the node was last seen is billed to that instant only (SEMANTICS 11).
//!
//! The engine forgets closed leases, so the books name them. Rows in chunks are never rewritten: their corrected ends
//! are kept beside the chunks.

use crate::chunk::{CHUNK_ROWS, Depth};
use crate::claims::Claim;
use crate::facts::{Books, BooksError, Phase};
use crate::nodes::{CapacitySeries, CapacitySeriesKey};
use crate::row::Row;
use crate::table::signed;
use leasehold_meter::Window;
use leasehold_model::{Instant, LeaseNo, NodeNo, ProjectNo, Record, TenantNo, UserNo};
use std::collections::BTreeSet;

type Followed = Result<(), &'static str>;

leasehold_model::fields! {
    /// A claim that has ended.
    #[derive(Copy)]
    pub struct EndedClaim {
        /// The sequence of the record that made it.
        pub claim: u64,
        pub tenant: TenantNo,
        pub project: ProjectNo,
        pub user: UserNo,
        pub from: Instant,
        pub ended_at: Instant,
        /// The sequence of the record that ended it.
        pub ended_by: u64,
        /// Whether its node was lost since, having been seen last before it ended, so that its end will be corrected.
        pub is_awaited: bool,
    }
}

leasehold_model::fields! {
    /// The last record that corrected the end of a lease.
    #[derive(Copy)]
    pub struct EndCorrection {
        pub sequence: u64,
        pub at: Instant,
        /// The end before, if the lease was not closed yet; else [`Row::end_before`] says it.
        pub before: Option<Instant>,
    }
}

/// What ended on a node after an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndedOnNode {
    pub leases: Vec<Row>,
    pub claims: Vec<EndedClaim>,
}

/// The end of a row that is billed up to an instant at the most.
fn corrected(held: Window, last_seen: Instant) -> Instant {
    held.to.min(last_seen).max(held.from)
}

fn shorten(row: &mut Row, last_seen: Instant) {
    let to = corrected(row.held, last_seen);
    if to < row.held.to {
        row.end_before.get_or_insert(row.held.to);
        row.held.to = to;
    }
}

impl Books {
    /// Moves the corrected ends of rows that become a chunk beside it: chunks contain the rows as they were closed.
    pub(crate) fn set_corrections_aside(&mut self) {
        let first = (self.chunks.len() * CHUNK_ROWS) as u64;
        for (place, row) in (first..).zip(&mut self.tail) {
            if let Some(before) = row.end_before.take() {
                self.corrected.insert(place, std::mem::replace(&mut row.held.to, before));
            }
        }
    }

    /// Leases and claims that had ended on a node when it was lost, and are billed beyond the instant at which it was
    /// last seen. `loss` is the sequence of the record that declared it lost: what began after the node had returned is
    /// not meant, nor is a claim that was given back after the loss, which is not charged since then.
    pub fn ended_after(&self, loss: u64, node: NodeNo, last_seen: Instant) -> Result<EndedOnNode, BooksError> {
        let mut ended = EndedOnNode::default();
        let changes = |row: &Row| row.life.sequence < loss && corrected(row.held, last_seen) < row.held.to;
        let (closed, _) = self.stays(node, 0, Window::new(last_seen, Instant::MAX), usize::MAX)?;
        let open = self.open_on.range((node, LeaseNo(0))..=(node, LeaseNo(u64::MAX)));
        let open = open
            .map(|(_, lease)| lease.0)
            .filter(|lease| self.open.get(&LeaseNo(*lease)).is_some_and(|open| open.phase != Phase::Held));
        let numbers: BTreeSet<u64> = closed.into_iter().chain(open).collect();
        let rows = self.leases_of(numbers.into_iter().map(LeaseNo))?.into_iter().map(|(row, _)| row);
        ended.leases.extend(rows.filter(changes));
        let claims = self.ended_claims.get(&node).into_iter().flatten();
        ended.claims.extend(claims.filter(|claim| claim.ended_by < loss && claim.ended_at > last_seen.max(claim.from)));
        Ok(ended)
    }

    /// A node was lost: the ends of claims after it was last seen will be corrected.
    pub(crate) fn await_corrections(&mut self, node: NodeNo, last_seen: Instant) {
        for claim in self.ended_claims.get_mut(&node).into_iter().flatten() {
            claim.is_awaited |= claim.ended_at > last_seen.max(claim.from);
        }
    }

    /// A node is running after claims had ended on it: they are billed as they ended, but for those of an earlier loss.
    pub(crate) fn forget_ended_claims(&mut self, node: NodeNo, which: impl Fn(&EndedClaim) -> bool) {
        if let Some(claims) = self.ended_claims.get_mut(&node) {
            claims.retain(|claim| !which(claim));
            if claims.is_empty() {
                self.ended_claims.remove(&node);
            }
        }
    }

    /// Notes that a record corrects the end of a lease.
    pub(crate) fn note_correction(&mut self, lease: LeaseNo, record: &Record) {
        let earlier = self.end_corrections.get(&lease).and_then(|correction| correction.before);
        let before = earlier.or_else(|| self.open.get(&lease).map(|open| open.row.held.to));
        let correction = EndCorrection { sequence: record.sequence, at: record.stamp, before };
        self.end_corrections.insert(lease, correction);
    }

    /// Leases are billed to an instant at the most.
    pub(crate) fn correct_ends(&mut self, leases: &[LeaseNo], last_seen: Instant) -> Followed {
        for lease in leases {
            if let Some(open) = self.open.get_mut(lease) {
                if open.phase == Phase::Held {
                    return Err("the lease is still held");
                }
                let before = open.row.clone();
                // Its row is not written yet, and will contain the corrected end.
                open.row.held.to = corrected(before.held, last_seen);
                self.book_correction(&before, last_seen);
                continue;
            }
            let found = self.find([lease.0]).map_err(|_| "a row cannot be read")?;
            let place = found.first().ok_or("unknown lease")?.place;
            self.correct_at(place, last_seen)?;
        }
        Ok(())
    }

    /// The idle capacity of a claim that has ended on a node is billed to an instant at the most.
    pub(crate) fn correct_claim(&mut self, claim: u64, node: NodeNo, last_seen: Instant) -> Followed {
        let after = Window::new(last_seen, Instant::MAX);
        let is_idle =
            |row: &Row| !row.is_lease() && row.node == node && row.life.sequence == claim && row.held.to > last_seen;
        let mut places = Vec::new();
        for (number, head) in self.chunks.iter().enumerate() {
            if !head.meets(after) {
                continue;
            }
            let chunk = self.chunk(number, Depth::Lives).map_err(|_| "a chunk cannot be read")?;
            let found = chunk.rows().enumerate().filter(|(_, row)| is_idle(row));
            places.extend(found.map(|(row, _)| number * CHUNK_ROWS + row));
        }
        let first = self.chunks.len() * CHUNK_ROWS;
        places.extend(self.tail.iter().enumerate().filter(|(_, row)| is_idle(row)).map(|(row, _)| first + row));
        places.into_iter().try_for_each(|place| self.correct_at(place as u64, last_seen))
    }

    /// Corrects the end of a closed row.
    fn correct_at(&mut self, place: u64, last_seen: Instant) -> Followed {
        let index = usize::try_from(place).map_err(|_| "a position that cannot be")?;
        let (number, row) = (index / CHUNK_ROWS, index % CHUNK_ROWS);
        let before = match number.checked_sub(self.chunks.len()) {
            Some(_) => {
                let found = self.tail.get_mut(row).ok_or("a position without a row")?;
                let before = found.clone();
                shorten(found, last_seen);
                before
            }
            None => {
                let chunk = self.chunk(number, Depth::Lives).map_err(|_| "a chunk cannot be read")?;
                let before = chunk.row(row);
                self.corrected.insert(place, corrected(before.held, last_seen));
                before
            }
        };
        self.book_correction(&before, last_seen);
        Ok(())
    }

    /// Takes what a row was billed after an instant out of all series.
    fn book_correction(&mut self, row: &Row, last_seen: Instant) {
        let Row { class, pool, node, .. } = *row;
        let (from, to, quanta) = (corrected(row.held, last_seen), row.held.to, signed(row.quanta));
        if from == to {
            return;
        }
        let billing = self.payer(row.billing_key());
        // Increases come before decreases, so that no series becomes negative.
        self.bill(billing, to, quanta);
        self.bill(billing, from, -quanta);
        let mut after = row.clone();
        after.held.to = from;
        self.forgive_again(billing, row, &after);
        let key = |series| CapacitySeriesKey { node, pool, class, series };
        let mut book = |series, less: bool| {
            let (at, back) = if less { (to, from) } else { (from, to) };
            self.nodes.change(key(series), at, quanta, &mut self.store);
            self.nodes.change(key(series), back, -quanta, &mut self.store);
        };
        if row.is_lease() {
            // The node was lost by then, so that its whole capacity counts as offline.
            book(CapacitySeries::Held, true);
            book(CapacitySeries::HeldLost, true);
            book(CapacitySeries::Offline, false);
        } else {
            book(CapacitySeries::ClaimedIdle, true);
        }
    }

    /// Remembers a claim that ends now, until its node is known to be running.
    pub(crate) fn note_ended_claim(&mut self, node: NodeNo, claim: &Claim, by: &Record) {
        let Claim { tenant, project, sequence, .. } = *claim;
        let Some(user) = claim.user else { return };
        let from = claim.classes.values().next().and_then(|idle| idle.steps.first()).map_or(by.stamp, |step| step.at);
        let ended = EndedClaim {
            claim: sequence,
            tenant,
            project,
            user,
            from,
            ended_at: by.stamp,
            ended_by: by.sequence,
            is_awaited: false,
        };
        self.ended_claims.entry(node).or_default().push(ended);
    }
}
