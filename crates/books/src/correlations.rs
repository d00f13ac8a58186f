//! Which requests have a correlation ID.
//!
//! An ID that the daemon derived leads to its request by itself. IDs that callers gave are indexed by a hash of 64 bits;
//! what is found is compared with the ID itself.

use crate::facts::{Books, BooksError};
use crate::row::Row;
use crate::runs::RunKey;
use crate::store::CORRELATIONS;
use crate::stories::Story;
use leasehold_model::body::{Body, Correlation};
use leasehold_model::ledger::HOUR_NS;
use leasehold_model::{AllocationNo, Instant, LeaseNo, ProjectNo, Record, TenantNo};
use sha2::{Digest, Sha256};

/// A request that has the ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Allocation(Box<Story>),
    /// The leases of a grant that belongs to no allocation.
    Leases(Vec<Row>),
    Denied {
        sequence: u64,
        at: Instant,
        /// Whether it was an allocation and not a lease that was asked for.
        of_allocation: bool,
    },
    /// A part of a usage record.
    Usage {
        sequence: u64,
        at: Instant,
        part: LinePart,
    },
}

/// A series of reported usage and an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinePart {
    pub(crate) series: u32,
    pub(crate) hour: Instant,
}

impl LinePart {
    /// Marks a part of a usage record in the index, beside its series and hour.
    const MARK: u64 = 1 << 63;

    fn encoded(self) -> u64 {
        Self::MARK | (u64::from(self.series) << 28) | (self.hour.0 / HOUR_NS)
    }

    fn decoded(word: u64) -> Option<Self> {
        let (series, hour) = ((word & !Self::MARK) >> 28, word & ((1 << 28) - 1));
        let part = Self { series: u32::try_from(series).ok()?, hour: Instant(hour * HOUR_NS) };
        (word & Self::MARK != 0).then_some(part)
    }
}

/// Where a request is in the index: requests of a tenant are in order of their first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequestPlace {
    pub(crate) tenant: TenantNo,
    pub(crate) sequence: u64,
}

impl RequestPlace {
    pub(crate) const FIRST: Self = Self { tenant: TenantNo(0), sequence: 0 };
}

/// Marks the denial of a lease in the index, beside its project.
const OF_A_LEASE: u64 = 1 << 40;

fn hash_of(id: u128) -> u64 {
    let digest: [u8; 32] = Sha256::digest(id.to_be_bytes()).into();
    u64::from_be_bytes(*digest.first_chunk().expect("32 bytes"))
}

impl Books {
    /// Adds the request of a record to the index, if it was given an ID.
    pub(crate) fn index_correlation(&mut self, record: &Record) {
        let (index, stories) = (&mut self.correlations, &self.stories.open);
        let mut add = |id: Option<u128>, sequence: u64, denied: u64| {
            let (Some(id), Some(tenant)) = (id, record.identity.tenant) else { return };
            // A denial is kept nowhere else, so that its owner and its time are in the index.
            let at = if denied == 0 { 0 } else { record.stamp.0 };
            index.add([hash_of(id), tenant.0.into(), sequence, denied, at]);
        };
        let owner = record.identity.project.map_or(0, |project| u64::from(project.0) + 1);
        if let Body::AllocationSubmitted(one) = &record.body {
            add(one.spec.correlation, record.sequence, 0);
        } else if let Body::AllocationDenied(one) = &record.body {
            add(one.spec.correlation, record.sequence, owner);
        } else if let Body::Denied(one) = &record.body {
            add(one.particulars.correlation, record.sequence, owner | OF_A_LEASE);
        } else if let Body::Granted(one) = &record.body {
            let open = one.allocation.and_then(|allocation| stories.get(&allocation));
            // The leases of an allocation share its ID, and are found with it.
            if open.is_none_or(|story| story.spec.correlation != one.correlation) {
                add(one.correlation, record.sequence, 0);
            }
        } else if let Body::AllocationChanged(one) = &record.body {
            let before = stories.get(&one.allocation).and_then(|story| story.spec.correlation);
            if one.spec.correlation != before {
                add(one.spec.correlation, one.allocation.0, 0);
            }
        }
    }

    /// Adds a part of a usage record to the index.
    pub(crate) fn index_usage(&mut self, record: &Record, tenant: TenantNo, correlation: u128, part: LinePart) {
        let key = [hash_of(correlation), tenant.0.into(), record.sequence, part.encoded(), record.stamp.0];
        self.correlations.add(key);
    }

    /// Requests that were given an ID, from a place on; of one tenant or of all.
    pub(crate) fn given(
        &self,
        id: u128,
        tenant: Option<TenantNo>,
        from: RequestPlace,
        most: usize,
    ) -> Result<Vec<(RequestPlace, RunKey)>, BooksError> {
        let hash = hash_of(id);
        let first = from.max(RequestPlace { tenant: tenant.unwrap_or(TenantNo(0)), sequence: 0 });
        let last = tenant.map_or(u64::MAX, |tenant| tenant.0.into());
        let range = ([hash, first.tenant.0.into(), first.sequence, 0, 0], [hash, last, u64::MAX, u64::MAX, u64::MAX]);
        let mut keys = self.correlations.range(CORRELATIONS, &self.store, range, most)?;
        keys.dedup();
        let place = |key: &RunKey| RequestPlace {
            tenant: TenantNo(u32::try_from(key[1]).unwrap_or(u32::MAX)),
            sequence: key[2],
        };
        Ok(keys.into_iter().map(|key| (place(&key), key)).collect())
    }

    /// The request behind an entry of the index, if it has the ID and `sees` returns true.
    pub(crate) fn request_given(
        &self,
        id: u128,
        key: &RunKey,
        sees: &impl Fn(TenantNo, ProjectNo) -> bool,
    ) -> Result<Option<Found>, BooksError> {
        let [_, tenant, sequence, denied, at] = *key;
        if let Some(part) = LinePart::decoded(denied) {
            let of = self.unit_series(part.series).ok_or_else(|| self.store.damage())?;
            let seen = sees(of.tenant, of.project);
            return Ok(seen.then_some(Found::Usage { sequence, at: Instant(at), part }));
        }
        if let Some(project) = (denied & !OF_A_LEASE).checked_sub(1) {
            let owner = (u32::try_from(tenant), u32::try_from(project));
            let (Ok(tenant), Ok(project)) = owner else { return Err(self.store.damage()) };
            let seen = sees(TenantNo(tenant), ProjectNo(project));
            return Ok(seen.then_some(Found::Denied {
                sequence,
                at: Instant(at),
                of_allocation: denied & OF_A_LEASE == 0,
            }));
        }
        self.request(Correlation::Given(id), sequence, sees)
    }

    /// The request that began with a record, if it has this ID and `sees` returns true.
    pub(crate) fn request(
        &self,
        correlation: Correlation,
        sequence: u64,
        sees: &impl Fn(TenantNo, ProjectNo) -> bool,
    ) -> Result<Option<Found>, BooksError> {
        if let Some(story) = self.allocation(AllocationNo(sequence))? {
            let own = Correlation::or_derived(story.spec.correlation, sequence);
            let seen = own == correlation && sees(story.outline.tenant, story.outline.project);
            return Ok(seen.then(|| Found::Allocation(Box::new(story))));
        }
        let leases: Vec<LeaseNo> = self.granted_by(sequence)?;
        let rows = self.leases_of(leases)?.into_iter().map(|(row, _)| row);
        let rows: Vec<Row> =
            rows.filter(|row| row.correlation() == correlation && sees(row.tenant, row.project)).collect();
        Ok((!rows.is_empty()).then_some(Found::Leases(rows)))
    }
}
