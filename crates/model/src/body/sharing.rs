//! Sharing the cost of control planes: policies, and the shares of a month (SEMANTICS 9 and 12).

use super::policies::PolicyScope;
use crate::codec::{DecodeError, Field, Reader, put_varint_wide};
use crate::id::{AppInstanceNo, ProjectNo, UnitNo};
use crate::ledger::{Month, Steps};
use crate::name::Name;
use crate::rate::{Currency, Decimal};
use crate::{fields, words};

words! {
    /// How the cost of a control plane is divided.
    pub enum SharingMethod {
        /// Not at all.
        None = 1 "none",
        /// Its owner bears it.
        Owner = 2 "owner",
        /// Evenly among the projects that used the runtime.
        Even = 3 "even",
        /// By what each project used of a unit.
        ByUsage = 4 "by_usage",
        /// By what each project may use of a unit.
        ByQuota = 5 "by_quota",
        /// By percentages.
        Fixed = 6 "fixed",
        /// By the service tiers of the projects that used the runtime.
        ByTier = 7 "by_tier",
        /// The control plane is not billable, and the operator bears it.
        NotBillable = 8 "not_billable",
    }
}

words! {
    /// What shares are for.
    pub enum SharedAs {
        /// They are booked.
        Entries "entries",
        /// They are recorded, and nothing is booked.
        Report "report",
    }
}

fields! {
    /// A service tier.
    pub struct ServiceTier { pub name: Name, pub weight: Decimal }
}

fields! {
    /// The service tiers of projects. Projects name their tier by its place.
    pub struct ServiceTiers {
        pub tiers: Vec<ServiceTier>,
        /// In order of their numbers.
        pub projects: Vec<(ProjectNo, u32)>,
        /// The tier of all other projects.
        pub default_tier: Option<u32>,
    }
}

impl ServiceTiers {
    /// The tier of a project.
    pub fn of(&self, project: ProjectNo) -> Option<&ServiceTier> {
        let own = self.projects.binary_search_by_key(&project, |(of, _)| *of).ok().map(|place| self.projects[place].1);
        own.or(self.default_tier).and_then(|place| self.tiers.get(place as usize))
    }
}

/// A method with what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SharingBasis {
    None,
    Owner,
    Even,
    ByUsage(UnitNo),
    ByQuota(UnitNo),
    /// Percentages, in order of the projects.
    Fixed(Vec<(ProjectNo, Decimal)>),
    ByTier(ServiceTiers),
}

impl SharingBasis {
    pub const fn method(&self) -> SharingMethod {
        match self {
            Self::None => SharingMethod::None,
            Self::Owner => SharingMethod::Owner,
            Self::Even => SharingMethod::Even,
            Self::ByUsage(_) => SharingMethod::ByUsage,
            Self::ByQuota(_) => SharingMethod::ByQuota,
            Self::Fixed(_) => SharingMethod::Fixed,
            Self::ByTier(_) => SharingMethod::ByTier,
        }
    }
    pub const fn unit(&self) -> Option<UnitNo> {
        match self {
            Self::ByUsage(unit) | Self::ByQuota(unit) => Some(*unit),
            Self::None | Self::Owner | Self::Even | Self::Fixed(_) | Self::ByTier(_) => None,
        }
    }
    /// The percentages, if it has any.
    pub fn percentages(&self) -> &[(ProjectNo, Decimal)] {
        if let Self::Fixed(percentages) = self { percentages } else { &[] }
    }
    pub const fn tiers(&self) -> Option<&ServiceTiers> {
        if let Self::ByTier(tiers) = self { Some(tiers) } else { None }
    }
    /// The projects that it names.
    pub fn projects(&self) -> impl Iterator<Item = ProjectNo> + '_ {
        let of_tiers = self.tiers().into_iter().flat_map(|tiers| &tiers.projects);
        self.percentages().iter().map(|(project, _)| *project).chain(of_tiers.map(|(project, _)| *project))
    }
    /// Whether others than the owner may bear something.
    pub const fn divides(&self) -> bool {
        !matches!(self, Self::None | Self::Owner)
    }
}

impl Field for SharingBasis {
    fn put(&self, out: &mut Vec<u8>) {
        self.method().put(out);
        match self {
            Self::None | Self::Owner | Self::Even => {}
            Self::ByUsage(unit) | Self::ByQuota(unit) => unit.put(out),
            Self::Fixed(weights) => weights.put(out),
            Self::ByTier(tiers) => tiers.put(out),
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match SharingMethod::get(r)? {
            SharingMethod::None => Self::None,
            SharingMethod::Owner => Self::Owner,
            SharingMethod::Even => Self::Even,
            SharingMethod::ByUsage => Self::ByUsage(Field::get(r)?),
            SharingMethod::ByQuota => Self::ByQuota(Field::get(r)?),
            SharingMethod::Fixed => Self::Fixed(Field::get(r)?),
            SharingMethod::ByTier => Self::ByTier(Field::get(r)?),
            SharingMethod::NotBillable => return Err(DecodeError::Forbidden("a method of sharing that is none")),
        })
    }
}

fields! {
    /// How cost is divided, and whether that is booked or only recorded.
    pub struct Sharing { pub basis: SharingBasis, pub entries: bool }
}

fields! {
    /// A sharing policy from now on. What it leaves open is as the policy for the next wider scope says.
    pub struct SharingPut {
        pub of: PolicyScope,
        /// Counted from 1 for each scope.
        pub version: u32,
        pub control_plane_billable: Option<bool>,
        pub distributable: Option<bool>,
        pub sharing: Option<Sharing>,
    }
}

/// What a share is in proportion to: parts of a unit, or parts of a weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShareWeight(pub u128);

impl Field for ShareWeight {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint_wide(self.0, out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(r.varint_wide()?))
    }
}

fields! {
    /// What a project bears of the cost of a control plane in a month. The project is the one in the record's head.
    pub struct LedgerShared {
        pub app_instance: AppInstanceNo,
        /// The project that owns the app instance, and was charged for the control plane.
        pub owner: ProjectNo,
        pub month: Month,
        pub currency: Currency,
        /// The payer's previous posting or correction in this currency.
        pub previous: Option<u64>,
        /// The policy that decided, and its version.
        pub policy: PolicyScope,
        pub version: u32,
        pub method: SharingMethod,
        /// The unit whose usage or limits decided.
        pub unit: Option<UnitNo>,
        /// The service tier of the project.
        pub tier: Option<Name>,
        pub weight: ShareWeight,
        pub total_weight: ShareWeight,
        /// What the control plane cost.
        pub pool: Steps,
        /// What of it falls to the project.
        pub share: Steps,
        /// What is booked as a debit of the project: its share, or for the owner less what others bear.
        pub booked: Steps,
    }
}
