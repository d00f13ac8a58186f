//! What operators set on a tenant. The command, the record and the state share these structs: a new setting is added
//! here, and in the places where people read or write it.

use crate::allocation::WhenOverQuota;
use crate::codec::{DecodeError, Field, Reader, put_varint};
use crate::fields;
use crate::limits::ADDRESS_LINES_MAX;
use crate::name::Name;
use crate::policy::Priority;

/// A postal address, line by line: at least one line, and at most [`ADDRESS_LINES_MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(Vec<Name>);

impl Address {
    /// `None` if there are no lines, or too many.
    pub fn new(lines: Vec<Name>) -> Option<Self> {
        (1..=ADDRESS_LINES_MAX).contains(&lines.len()).then_some(Self(lines))
    }
    pub fn lines(&self) -> &[Name] {
        &self.0
    }
}

impl Field for Address {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(self.0.len() as u64, out);
        self.0.iter().for_each(|line| line.put(out));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let lines = r.count(ADDRESS_LINES_MAX)?;
        let lines = (0..lines).map(|_| Field::get(r)).collect::<Result<_, _>>()?;
        Self::new(lines).ok_or(DecodeError::Forbidden("an address without lines"))
    }
}

fields! {
    /// The settings of a tenant that one `tenant.put` record replaces as a whole.
    pub struct TenantSettings {
        pub name: Name,
        pub accounting_tag: Option<Name>,
        pub max_priority: Priority,
        pub max_evicted_quanta_per_hour: Option<u64>,
    }
    added {
        /// Whom to write to or call about this tenant.
        1 pub contact: Option<Name>,
        /// What becomes of its allocations that would exceed a quota and do not say it themselves.
        2 pub when_over_quota: Option<WhenOverQuota>,
        /// Where its invoices are sent to.
        4 pub billing_address: Option<Address>,
        /// Its number with the tax authority, as printed on invoices.
        8 pub tax_id: Option<Name>,
    }
}

fields! {
    /// A change of some settings. What is absent keeps its value; what is present and empty is cleared (SEMANTICS 4).
    #[derive(Default)]
    pub struct TenantSettingsChange {
        pub name: Option<Name>,
        pub accounting_tag: Option<Option<Name>>,
        pub max_priority: Option<Priority>,
        pub max_evicted_quanta_per_hour: Option<Option<u64>>,
    }
    added {
        1 pub contact: Option<Option<Name>>,
        2 pub when_over_quota: Option<Option<WhenOverQuota>>,
        4 pub billing_address: Option<Option<Address>>,
        8 pub tax_id: Option<Option<Name>>,
    }
}

impl TenantSettings {
    /// A tenant of which nothing is set but its name.
    pub fn named(name: Name) -> Self {
        Self {
            name,
            accounting_tag: None,
            max_priority: Priority::default(),
            max_evicted_quanta_per_hour: None,
            contact: None,
            when_over_quota: None,
            billing_address: None,
            tax_id: None,
        }
    }
}

impl TenantSettingsChange {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The settings after this change.
    pub fn applied_to(&self, old: &TenantSettings) -> TenantSettings {
        fn kept<T: Clone>(change: &Option<T>, old: &T) -> T {
            change.as_ref().unwrap_or(old).clone()
        }
        TenantSettings {
            name: kept(&self.name, &old.name),
            accounting_tag: kept(&self.accounting_tag, &old.accounting_tag),
            max_priority: kept(&self.max_priority, &old.max_priority),
            max_evicted_quanta_per_hour: kept(&self.max_evicted_quanta_per_hour, &old.max_evicted_quanta_per_hour),
            contact: kept(&self.contact, &old.contact),
            when_over_quota: kept(&self.when_over_quota, &old.when_over_quota),
            billing_address: kept(&self.billing_address, &old.billing_address),
            tax_id: kept(&self.tax_id, &old.tax_id),
        }
    }
}
