//! Commands about the registry of app runtimes (SEMANTICS 9).

use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{
    AllocationNo, AppInstanceNo, AppOrigin, AppTypeNo, ControlPlaneScope, Instant, Name, OperatingMode, ProjectNo,
    RuntimeBackend, UnitMeasure, UnitNo, fields,
};

fields! {
    /// Defines a usage unit. It cannot change, because usage is recorded in it.
    pub struct PutUsageUnit { pub name: Name, pub measure: UnitMeasure }
}

fields! {
    /// Sets the price of a usage unit, by default from now on and for all apps.
    pub struct PutUnitPrice {
        pub unit: UnitNo,
        pub app_type: Option<AppTypeNo>,
        pub currency: Currency,
        pub price: Decimal,
        pub from: Option<Instant>,
    }
}

fields! {
    /// Registers a kind of app, or changes one. Its slug cannot change.
    pub struct PutAppType {
        pub app_type: Option<AppTypeNo>,
        pub slug: Name,
        pub origin: AppOrigin,
        pub units: Vec<UnitNo>,
    }
}

fields! {
    /// Registers a runtime of a project, or renames one. Nothing else of it can change.
    pub struct PutAppInstance {
        pub app_instance: Option<AppInstanceNo>,
        pub project: ProjectNo,
        pub name: Name,
        pub app_type: AppTypeNo,
        pub mode: OperatingMode,
        pub scope: ControlPlaneScope,
        pub backend: RuntimeBackend,
    }
}

fields! {
    /// A project pays for capacity of a shared runtime of its tenant from now on.
    pub struct MakeAttachment {
        pub app_instance: AppInstanceNo,
        pub source_project: ProjectNo,
        /// An allocation of the source project that it lends as it is.
        pub allocation: Option<AllocationNo>,
    }
}
