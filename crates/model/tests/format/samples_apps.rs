//! Samples of the registry of app runtimes.

use super::{NEW_YEAR, name};
use leasehold_model::TenantSettings;
use leasehold_model::app::FIRST_SITE_UNIT;
use leasehold_model::body::*;
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::*;

pub(super) fn bodies() -> Vec<Body> {
    vec![
        UsageUnitPut { unit: FIRST_SITE_UNIT, name: name("images"), measure: UnitMeasure::Count }.into(),
        UnitPricePut {
            price_no: 1,
            unit: UnitNo(4),
            app_type: Some(AppTypeNo(1)),
            currency: Currency::DEFAULT,
            price: Decimal(400_000),
            from: NEW_YEAR,
        }
        .into(),
        AppTypePut {
            app_type: AppTypeNo(1),
            slug: name("slurm"),
            origin: AppOrigin::ThirdParty,
            units: UnitList::new([UnitNo(2), UnitNo(0)]).expect("few units"),
        }
        .into(),
        AppTypeDeleted { app_type: AppTypeNo(1) }.into(),
        AppInstancePut {
            app_instance: AppInstanceNo(300),
            project: ProjectNo(3),
            name: name("slurm-shared"),
            app_type: AppTypeNo(1),
            mode: OperatingMode::TenantDedicated,
            scope: ControlPlaneScope::Tenant,
            backend: RuntimeBackend::Slurm,
        }
        .into(),
        AppInstanceDeleted { app_instance: AppInstanceNo(300) }.into(),
        AttachmentMade {
            attachment: AttachmentNo(7),
            app_instance: AppInstanceNo(300),
            source_project: ProjectNo(4),
            allocation: Some(AllocationNo(41)),
        }
        .into(),
        AttachmentEnded { attachment: AttachmentNo(7) }.into(),
        Denied {
            particulars: Particulars { correlation: Some(0x5f0c_1b3e), ..Particulars::default() },
            ..super::denied(DenyCause::Quota { quota: QuotaNo(5), used: 1, requested: 2, limit: 2 })
        }
        .into(),
    ]
}

/// With a field that was added to the kind after its first records were sealed.
pub(crate) fn tenant_with_contact() -> TenantPut {
    let contact = Some(name("ops@physics.example"));
    TenantPut { tenant: TenantNo(1), settings: TenantSettings { contact, ..TenantSettings::named(name("physics")) } }
}
