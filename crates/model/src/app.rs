//! The registry of app runtimes: kinds of apps, usage units, and how a runtime is operated (SEMANTICS 9).

use crate::codec::{DecodeError, Field, Reader, put_varint};
use crate::id::UnitNo;
use crate::limits::UNITS_PER_APP_TYPE_MAX;
use crate::words;

words! {
    /// Who makes an app. Both kinds use the same calls and are billed the same way.
    pub enum AppOrigin {
        Internal = 1 "internal",
        ThirdParty = 2 "third_party",
    }
}

words! {
    /// For whom a runtime is operated.
    pub enum OperatingMode {
        /// For one tenant.
        TenantDedicated = 1 "tenant_dedicated",
        /// By the platform, for all tenants.
        PlatformManaged = 2 "platform_managed",
    }
}

words! {
    /// Whose control plane a runtime has.
    pub enum ControlPlaneScope {
        /// That of one project.
        Project = 1 "project",
        /// One that the projects of a tenant share.
        Tenant = 2 "tenant",
        /// One that all tenants share.
        Platform = 3 "platform",
    }
}

/// The pairs that exist, the default first.
pub const MODES_AND_SCOPES: [(OperatingMode, ControlPlaneScope); 3] = [
    (OperatingMode::TenantDedicated, ControlPlaneScope::Project),
    (OperatingMode::TenantDedicated, ControlPlaneScope::Tenant),
    (OperatingMode::PlatformManaged, ControlPlaneScope::Platform),
];

words! {
    /// What runs the work of an app.
    pub enum RuntimeBackend {
        Slurm = 1 "slurm",
        Ray = 2 "ray",
        Kubernetes = 3 "kubernetes",
        Serving = 4 "serving",
        BareMetal = 5 "bare_metal",
    }
}

words! {
    /// How a usage unit measures.
    pub enum UnitMeasure {
        /// Time: it is spread evenly over the reported interval.
        Time = 1 "time",
        /// Pieces, counted at the end of the reported interval.
        Count = 2 "count",
    }
}

/// How long something was up. Nobody submits it, as a job is submitted.
pub const UPTIME_HOURS: UnitNo = UnitNo(3);

/// The units that every site has: number, name and measure. Units that a site defines have higher numbers.
pub const STANDARD_UNITS: [(UnitNo, &str, UnitMeasure); 6] = [
    (UnitNo(0), "job_hours", UnitMeasure::Time),
    (UnitNo(1), "pod_hours", UnitMeasure::Time),
    (UnitNo(2), "gpu_hours", UnitMeasure::Time),
    (UPTIME_HOURS, "uptime_hours", UnitMeasure::Time),
    (UnitNo(4), "requests", UnitMeasure::Count),
    (UnitNo(5), "tokens", UnitMeasure::Count),
];

/// The first number of a unit that a site defines.
pub const FIRST_SITE_UNIT: UnitNo = UnitNo(64);

/// Usage units, in order of their numbers, none twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitList(Vec<UnitNo>);

impl UnitList {
    /// In order and each once; `None` if there are too many.
    pub fn new(units: impl IntoIterator<Item = UnitNo>) -> Option<Self> {
        let mut units: Vec<UnitNo> = units.into_iter().collect();
        units.sort_unstable();
        units.dedup();
        (units.len() <= UNITS_PER_APP_TYPE_MAX).then_some(Self(units))
    }
    pub fn contains(&self, unit: UnitNo) -> bool {
        self.0.binary_search(&unit).is_ok()
    }
    pub fn iter(&self) -> impl Iterator<Item = UnitNo> + '_ {
        self.0.iter().copied()
    }
}

impl Field for UnitList {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(self.0.len() as u64, out);
        self.0.iter().for_each(|unit| unit.put(out));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let n = r.count(UNITS_PER_APP_TYPE_MAX)?;
        let units = (0..n).map(|_| Field::get(r)).collect::<Result<Vec<UnitNo>, _>>()?;
        if units.is_sorted_by(|a, b| a < b) {
            Ok(Self(units))
        } else {
            Err(DecodeError::Forbidden("units out of order"))
        }
    }
}
