//! What the events of a page are made from: the leases and allocations of its records, from the books. They are looked
//! up together, because leases that have ended are stored in blocks, and without the state, which could not be published
//! meanwhile.

use super::accounting::attempt_at;
use super::made::{Facts, Kinds, needs};
use leasehold_books::{Attempt, Books, BooksError, Row, Story};
use leasehold_model::body::{BelongsTo, Body};
use leasehold_model::{AllocationNo, LeaseNo, PoolNo, Quanta, Record};
use leasehold_view::{Directory, KnownLease};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The books do not know what a record names.
#[derive(Debug)]
pub(super) struct Unknown(String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the books do not know {}", self.0)
    }
}

#[derive(Default)]
pub(super) struct Gathered {
    leases: BTreeMap<LeaseNo, Row>,
    stories: BTreeMap<AllocationNo, Story>,
    /// What has to be looked up.
    wanted: BTreeSet<LeaseNo>,
}

impl Gathered {
    /// Notes what the events of a record need. Returns how many leases have been noted.
    pub(super) fn note(
        &mut self,
        record: &Record,
        kinds: Kinds,
        story: impl FnOnce(AllocationNo) -> Result<Option<Story>, BooksError>,
    ) -> Result<usize, BooksError> {
        if let Some(allocation) = needs(&record.body, kinds, &mut self.wanted)
            && !self.stories.contains_key(&allocation)
            && let Some(story) = story(allocation)?
        {
            self.wanted.extend(story.attempts.iter().flat_map(Attempt::numbers).map(LeaseNo));
            self.stories.insert(allocation, story);
        }
        Ok(self.wanted.len())
    }

    /// Looks up what was noted.
    pub(super) fn look_up(&mut self, books: &Books) -> Result<(), BooksError> {
        let found = books.leases_of(std::mem::take(&mut self.wanted))?;
        self.leases.extend(found.into_iter().map(|(row, _)| (row.lease, row)));
        Ok(())
    }

    pub(super) fn lease(&self, lease: LeaseNo) -> Result<&Row, Unknown> {
        self.leases.get(&lease).ok_or_else(|| Unknown(lease.to_string()))
    }

    pub(super) fn story(&self, allocation: AllocationNo) -> Result<&Story, Unknown> {
        self.stories.get(&allocation).ok_or_else(|| Unknown(allocation.to_string()))
    }

    /// Tells the directory about the leases of a record, as they were then. Whenever the event is made, it is the same:
    /// what changes in the life of a lease is its deadline, and a grant and a renewal say what that was.
    pub(super) fn teach(&self, directory: &mut Directory, books: &Books, record: &Record) -> Result<(), Unknown> {
        let mut leases = Vec::new();
        crate::record_leases::touched(&record.body, |lease| leases.push(lease));
        for lease in leases {
            let row = self.lease(lease)?;
            let expires_at = if let Body::Granted(granted) = &record.body {
                record.stamp.saturating_add(granted.ttl)
            } else if let Body::Renewed(renewed) = &record.body
                && let Some(renewal) = renewed.renewals.iter().find(|renewal| renewal.lease == lease)
            {
                renewal.expires_at
            } else {
                row.life.expires_at
            };
            let facts = KnownLease {
                tenant: row.tenant,
                project: row.project,
                user: row.user,
                workload: row.workload.clone(),
                belongs_to: BelongsTo { allocation: row.allocation, correlation: row.correlation() },
                tag: row.tag.and_then(|tag| books.tag(tag)).cloned(),
                class: row.class,
                quanta: Quanta(row.quanta),
                node: row.node,
                devices: row.life.devices,
                granted_at: row.held.from,
                expires_at,
            };
            directory.know_lease(lease, facts);
        }
        Ok(())
    }
}

impl Facts for Gathered {
    type Error = Unknown;

    fn without_allocation(&self, leases: &[LeaseNo]) -> Result<Vec<LeaseNo>, Unknown> {
        let mut without = Vec::new();
        for lease in leases {
            if self.lease(*lease)?.allocation.is_none() {
                without.push(*lease);
            }
        }
        Ok(without)
    }

    fn is_staged(&self, allocation: AllocationNo) -> Result<bool, Unknown> {
        Ok(self.story(allocation)?.spec.staged)
    }

    fn pools(&self, allocation: AllocationNo, attempt_before: Option<u64>) -> Result<Vec<PoolNo>, Unknown> {
        let story = self.story(allocation)?;
        let attempts = match attempt_before {
            Some(sequence) => attempt_at(story, sequence).into_iter().collect(),
            None => story.attempts.iter().collect::<Vec<_>>(),
        };
        let mut pools = BTreeSet::new();
        for lease in attempts.into_iter().flat_map(Attempt::numbers) {
            pools.insert(self.lease(LeaseNo(lease))?.pool);
        }
        Ok(pools.into_iter().collect())
    }

    fn pools_ended_before(
        &self,
        allocation: AllocationNo,
        leases: &[LeaseNo],
        sequence: u64,
    ) -> Result<Vec<PoolNo>, Unknown> {
        // While it goes on, what is corrected becomes part of what its end says.
        if self.story(allocation)?.over.is_none_or(|over| over.sequence >= sequence) {
            return Ok(Vec::new());
        }
        let pools: Result<BTreeSet<_>, _> = leases.iter().map(|lease| Ok(self.lease(*lease)?.pool)).collect();
        Ok(pools?.into_iter().collect())
    }
}
