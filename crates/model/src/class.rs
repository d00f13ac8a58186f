//! Resource classes: what can be leased, and in which units (SEMANTICS 1).

use crate::limits::QUANTA_PER_UNIT_MAX;
use crate::name::Name;
use crate::{fields, words};
use std::fmt;

words! {
    /// The five kinds of capacity.
    pub enum ResourceKind as "Kind" {
        Gpu = 1 "gpu",
        Cpu = 2 "cpu",
        Mem = 3 "mem",
        Block = 4 "block",
        Net = 5 "net",
    }
}

impl ResourceKind {
    /// The name of the billing unit.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Gpu => "GPU",
            Self::Cpu => "core",
            Self::Mem | Self::Block => "GiB",
            Self::Net => "Gb/s",
        }
    }
}

fields! {
    /// The definition of a class; fixed once the class is used.
    pub struct ClassSpec {
        pub name: Name,
        pub kind: ResourceKind,
        /// The tier or model: `h100`, `dram`, `cxl`, `rdma`.
        pub tier: Option<Name>,
        /// How many quanta make one billing unit.
        pub quanta_per_unit: u64,
        /// Idle leases of premium classes are reported first as waste (SEMANTICS 8).
        pub premium: bool,
    }
}

/// Why a class is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadQuantaPerUnit(pub u64);

impl fmt::Display for BadQuantaPerUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "quanta_per_unit is {}; it must be 1 to {QUANTA_PER_UNIT_MAX}", self.0)
    }
}
impl std::error::Error for BadQuantaPerUnit {}

impl ClassSpec {
    pub fn check(&self) -> Result<(), BadQuantaPerUnit> {
        match self.quanta_per_unit {
            1..=QUANTA_PER_UNIT_MAX => Ok(()),
            other => Err(BadQuantaPerUnit(other)),
        }
    }

    /// Only GPUs have devices; other kinds are one divisible amount per node.
    pub fn has_devices(&self) -> bool {
        self.kind == ResourceKind::Gpu
    }
}
