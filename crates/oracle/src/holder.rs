//! Whose a lease is, and which records must say so (SEMANTICS 11, "Identity and correlation").

use crate::lease::Lease;
use crate::violation::{Checked, demand};
use crate::world::World;
use leasehold_model::body::{BelongsTo, Correlation, Granted};
use leasehold_model::{AllocationNo, Identity, LeaseNo, Record};

/// Everything by which records are grouped that the holder did not cause.
pub(crate) type Holder = (Identity, BelongsTo);

impl Lease {
    pub(crate) fn holder(&self) -> Holder {
        let identity = Identity {
            tenant: Some(self.tenant),
            project: Some(self.project),
            user: self.user,
            workload: self.workload.clone(),
            token: None,
        };
        (identity, BelongsTo { allocation: self.of, correlation: self.correlation })
    }
}

/// The correlation ID of a grant: the one that the caller gave, or that of the record that began the request. That is
/// the submission of the allocation since rules version 4; before, each grant had its own.
pub(crate) fn correlation(granted: &Granted, of: Option<AllocationNo>, sequence: u64) -> Correlation {
    match (granted.correlation, of) {
        (Some(id), _) => Correlation::Given(id),
        (None, Some(number)) if granted.rules_version >= 4 => Correlation::Derived(number.0),
        (None, _) => Correlation::Derived(sequence),
    }
}

impl World {
    /// Whether the running process seals the whole identity. Nothing is demanded before a process has started.
    pub(crate) fn seals_holders(&self) -> bool {
        self.rules_version.is_some_and(|version| version >= 4)
    }

    /// Checks that a record carries the identity, the allocation and the correlation ID of all of its leases.
    pub(crate) fn check_carries(&self, record: &Record, leases: &[LeaseNo], said: Option<BelongsTo>) -> Checked {
        if !self.seals_holders() {
            return Ok(());
        }
        let identity = Identity { token: None, ..record.identity.clone() };
        for number in leases {
            let (of, belongs_to) = self.lease(*number).expect("it was looked up before").holder();
            demand!(identity == of, "identity", "{number} is of {of:?}, the record of {identity:?}");
            demand!(said == Some(belongs_to), "identity", "{number} belongs to {belongs_to:?}, not {said:?}");
        }
        Ok(())
    }
}
