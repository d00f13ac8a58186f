//! The registry of app runtimes: usage units and their prices, apps, app instances, and what projects lend them
//! (SEMANTICS 9 and 12).

use crate::app::{AppOrigin, ControlPlaneScope, OperatingMode, RuntimeBackend, UnitList, UnitMeasure};
use crate::fields;
use crate::id::{AllocationNo, AppInstanceNo, AppTypeNo, AttachmentNo, ProjectNo, UnitNo};
use crate::instant::Instant;
use crate::name::Name;
use crate::rate::{Currency, Decimal};

fields! {
    /// A usage unit that the site defines.
    pub struct UsageUnitPut { pub unit: UnitNo, pub name: Name, pub measure: UnitMeasure }
}

fields! {
    /// The price of a usage unit from an instant on, for one kind of app or for all that have none of their own.
    pub struct UnitPricePut {
        /// Prices are numbered from 1.
        pub price_no: u32,
        pub unit: UnitNo,
        pub app_type: Option<AppTypeNo>,
        pub currency: Currency,
        /// For one unit.
        pub price: Decimal,
        pub from: Instant,
    }
}

fields! {
    /// A kind of app, and the units in which its runtimes report usage.
    pub struct AppTypePut { pub app_type: AppTypeNo, pub slug: Name, pub origin: AppOrigin, pub units: UnitList }
}
fields! { pub struct AppTypeDeleted { pub app_type: AppTypeNo } }

fields! {
    /// A runtime, owned by a project of the tenant in the record's head. Only its name ever changes.
    pub struct AppInstancePut {
        pub app_instance: AppInstanceNo,
        pub project: ProjectNo,
        pub name: Name,
        pub app_type: AppTypeNo,
        pub mode: OperatingMode,
        pub scope: ControlPlaneScope,
        pub backend: RuntimeBackend,
    }
}
fields! { pub struct AppInstanceDeleted { pub app_instance: AppInstanceNo } }

fields! {
    /// From now on a project pays for capacity that the owner of a shared runtime of its tenant holds.
    pub struct AttachmentMade {
        pub attachment: AttachmentNo,
        pub app_instance: AppInstanceNo,
        pub source_project: ProjectNo,
        /// An allocation of the source project that it lends as it is.
        pub allocation: Option<AllocationNo>,
    }
}
fields! {
    /// Nothing new is requested on account of the attachment, and nothing that was is renewed.
    pub struct AttachmentEnded { pub attachment: AttachmentNo }
}
