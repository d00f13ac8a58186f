//! Usage that the runtimes of apps report (SEMANTICS 9 and 12). The tenant, the project and the user in the record's head
//! are those that used it.

use crate::codec::Field;
use crate::fields;
use crate::id::{AllocationNo, AppInstanceNo, AttachmentNo, ProjectNo, TenantNo, UnitNo};
use crate::instant::Instant;
use crate::limits::USAGE_SPAN_MAX;
use crate::name::Name;
use crate::record::Identity;
use crate::usage::{UnitQuantity, UsageCharge};
use sha2::{Digest, Sha256};

fields! {
    /// What was reported.
    pub struct UsageReport {
        /// The tenant of the token that reported it; none for an operator.
        pub reporter: Option<TenantNo>,
        /// Who counts the IDs: the name of the token.
        pub source: Name,
        pub id: Name,
        pub app_instance: AppInstanceNo,
        pub unit: UnitNo,
        pub quantity: UnitQuantity,
        pub from: Instant,
        pub to: Instant,
        pub correlation: u128,
        /// Used by the control plane and not by the work that it runs.
        pub control_plane: bool,
        /// The lent worker that it was used on.
        pub attachment: Option<AttachmentNo>,
        pub allocation: Option<AllocationNo>,
        /// The ID of the record that it replaces.
        pub supersedes: Option<Name>,
    }
}

/// What a report is told from others by: 128 bits of SHA-256.
pub type UsageKey = [u64; 2];

impl UsageReport {
    /// The key of a report by a source: the tenant of its token, and the name of that.
    pub fn key_for(reporter: Option<TenantNo>, source: &Name, id: &Name) -> UsageKey {
        let mut bytes = Vec::with_capacity(96);
        reporter.put(&mut bytes);
        source.put(&mut bytes);
        id.put(&mut bytes);
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        let word = |at: usize| u64::from_be_bytes(*digest[at..].first_chunk().expect("32 bytes"));
        [word(0), word(8)]
    }

    pub fn key(&self) -> UsageKey {
        Self::key_for(self.reporter, &self.source, &self.id)
    }

    /// The key of the record that it replaces.
    pub fn superseded_key(&self) -> Option<UsageKey> {
        self.supersedes.as_ref().map(|id| Self::key_for(self.reporter, &self.source, id))
    }

    /// A digest of all that was reported, with whose usage it is: the same ID with another payload is a mistake.
    pub fn payload(&self, identity: &Identity) -> u64 {
        let mut bytes = Vec::with_capacity(192);
        self.put(&mut bytes);
        identity.tenant.put(&mut bytes);
        identity.project.put(&mut bytes);
        identity.user.put(&mut bytes);
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        u64::from_be_bytes(*digest.first_chunk().expect("32 bytes"))
    }
}

fields! {
    /// The record that is replaced: what it said no longer counts.
    #[derive(Copy)]
    pub struct ReplacedUsage {
        pub sequence: u64,
        pub project: ProjectNo,
        pub quantity: UnitQuantity,
        pub from: Instant,
        pub to: Instant,
        pub control_plane: bool,
        pub attachment: Option<AttachmentNo>,
        pub charge: UsageCharge,
    }
}

impl UsageRecorded {
    /// Whether the times of the record, and of the one that it replaces, can be those of usage that was over at an instant.
    pub fn has_times_before(&self, stamp: Instant) -> bool {
        let fits = |from: Instant, to: Instant| from <= to && to < stamp && to.since(from) <= USAGE_SPAN_MAX;
        let report = &self.report;
        fits(report.from, report.to) && self.replaces.is_none_or(|old| fits(old.from, old.to))
    }
}

fields! {
    /// A usage record was accepted.
    pub struct UsageRecorded {
        pub report: UsageReport,
        pub charge: UsageCharge,
        /// Nobody is known to have asked for it, so that it is the owner's.
        pub no_submitter: bool,
        pub replaces: Option<ReplacedUsage>,
    }
    added {
        /// The project that is credited with what it costs: it pays for the capacity.
        1 pub creditor: Option<ProjectNo>,
        /// The project that was credited with what the replaced record cost.
        2 pub replaced_creditor: Option<ProjectNo>,
    }
}
