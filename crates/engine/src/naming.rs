//! How the message of a refusal refers to objects: by number, or by name.
//!
//! The engine has only numbers. People know names, but not everyone may see all names. So a refusal formats its message
//! with a [`Naming`], which the server implements for the caller that it answers.

use crate::ceiling::CeilingScope;
use crate::refusal::RegisteredGeneration;
use leasehold_model::activity::BadActivity;
use leasehold_model::body::{EntitlementScope, UsedInMonth};
use leasehold_model::placement::BadWeights;
use leasehold_model::rate::{BadPrices, Currency, Decimal};
use leasehold_model::{
    AllocationNo, AllocationState, Amount, AppInstanceNo, AppTypeNo, AttachmentNo, ClassNo, ControlPlaneScope,
    Fraction, Instant, LeaseNo, Month, NodeNo, OperatingMode, PoolNo, Priority, ProjectNo, QuotaNo, ResourceKind, Role,
    SinkNo, Span, TenantNo, TokenNo, UnitNo, UnitQuantity, UserNo, WindowNo,
};

/// Returns how a message refers to an object. The default is its number.
pub trait Naming {
    fn tenant(&self, tenant: TenantNo) -> String {
        tenant.to_string()
    }
    fn project(&self, project: ProjectNo) -> String {
        project.to_string()
    }
    fn user(&self, user: UserNo) -> String {
        user.to_string()
    }
    fn pool(&self, pool: PoolNo) -> String {
        pool.to_string()
    }
    fn node(&self, node: NodeNo) -> String {
        node.to_string()
    }
    fn class(&self, class: ClassNo) -> String {
        class.to_string()
    }
    fn quota(&self, quota: QuotaNo) -> String {
        quota.to_string()
    }
    fn token(&self, token: TokenNo) -> String {
        token.to_string()
    }
    fn app_instance(&self, app_instance: AppInstanceNo) -> String {
        app_instance.to_string()
    }
    fn app_type(&self, app_type: AppTypeNo) -> String {
        app_type.to_string()
    }
    fn unit(&self, unit: UnitNo) -> String {
        unit.to_string()
    }
    fn sink(&self, sink: SinkNo) -> String {
        sink.to_string()
    }
}

/// Refers to everything by number, as logs and tests do.
pub struct ByNumber;
impl Naming for ByNumber {}

/// A value that can be part of a message.
pub(crate) trait Phrase {
    fn phrase(&self, naming: &dyn Naming) -> String;
}

macro_rules! named {
    ($($number:ident $what:ident,)*) => {$(
        impl Phrase for $number {
            fn phrase(&self, naming: &dyn Naming) -> String {
                naming.$what(*self)
            }
        }
    )*};
}

named! {
    TenantNo tenant,
    ProjectNo project,
    UserNo user,
    PoolNo pool,
    NodeNo node,
    ClassNo class,
    QuotaNo quota,
    TokenNo token,
    AppInstanceNo app_instance,
    AppTypeNo app_type,
    UnitNo unit,
    SinkNo sink,
}

macro_rules! unnamed {
    ($($part:ty),* $(,)?) => {$(
        impl Phrase for $part {
            fn phrase(&self, _: &dyn Naming) -> String {
                self.to_string()
            }
        }
    )*};
}

// Leases, allocations and windows have no names; people also know them by number.
unnamed!(LeaseNo, AllocationNo, WindowNo, AllocationState, Amount, Currency, Fraction, Instant, Span, Priority, Role);
unnamed!(
    AttachmentNo,
    ControlPlaneScope,
    OperatingMode,
    Month,
    leasehold_model::Steps,
    leasehold_model::Funds,
    Decimal,
    UnitQuantity,
    UsedInMonth,
    ResourceKind,
    usize,
    u64,
    u32,
    &'static str,
    BadActivity,
    BadPrices,
    BadWeights,
    RegisteredGeneration
);

impl Phrase for Box<crate::refusal::Refusal> {
    fn phrase(&self, naming: &dyn Naming) -> String {
        self.message(naming)
    }
}
impl Phrase for CeilingScope {
    fn phrase(&self, naming: &dyn Naming) -> String {
        let project = naming.project(self.project);
        match self.app_instance {
            Some(app) => format!("{} of {project}", naming.app_instance(app)),
            None => project,
        }
    }
}
impl Phrase for EntitlementScope {
    fn phrase(&self, naming: &dyn Naming) -> String {
        let unit = naming.unit(self.unit);
        let project = self.project.map(|project| naming.project(project));
        match (project, self.app_instance.map(|app| naming.app_instance(app))) {
            (Some(project), Some(app)) => format!("{unit} of {project} on {app}"),
            (Some(whose), None) => format!("{unit} of {whose}"),
            (None, Some(on)) => format!("{unit} on {on}"),
            (None, None) => unit,
        }
    }
}
