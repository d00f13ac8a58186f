//! Patterns for kinds that most matches over the bodies treat alike.

/// A pattern for the kinds that say how the journal and the cluster are set up. They concern no single lease, node or
/// allocation, so most matches over [`Body`] treat them alike. A new kind is listed here or in each match.
#[macro_export]
macro_rules! setup_kinds {
    () => {
        $crate::Body::Genesis(_)
            | $crate::Body::Started(_)
            | $crate::Body::Heartbeat(_)
            | $crate::Body::KeyRotated(_)
            | $crate::Body::ClockJumped(_)
            | $crate::Body::Converted(_)
            | $crate::Body::TailResolved(_)
            | $crate::Body::Restored(_)
            | $crate::Body::SettingsChanged(_)
            | $crate::Body::ClassPut(_)
            | $crate::Body::PoolPut(_)
            | $crate::Body::PoolDeleted(_)
            | $crate::Body::TenantPut(_)
            | $crate::Body::TenantDeleted(_)
            | $crate::Body::ProjectPut(_)
            | $crate::Body::ProjectDeleted(_)
            | $crate::Body::UserPut(_)
            | $crate::Body::UserDeleted(_)
            | $crate::Body::QuotaPut(_)
            | $crate::Body::QuotaDeleted(_)
            | $crate::Body::BurstEnded(_)
            | $crate::Body::QuotaUntilReached(_)
            | $crate::Body::RateCardPut(_)
            | $crate::Body::RateCardDeleted(_)
            | $crate::Body::ChargePolicyPut(_)
            | $crate::Body::BudgetsPut(_)
            | $crate::Body::PoolPlacementPut(_)
            | $crate::Body::PoolQueuePut(_)
            | $crate::Body::QueueChanged(_)
            | $crate::Body::ProjectPoolPut(_)
            | $crate::Body::PlacementChanged(_)
            | $crate::Body::SensitiveChanged(_)
            | $crate::Body::TokenIssued(_)
            | $crate::Body::TokenRevoked(_)
            | $crate::Body::CeilingPut(_)
            | $crate::Body::CeilingDeleted(_)
            | $crate::registry_kinds!()
            | $crate::sink_kinds!()
    };
}

/// A pattern for the kinds of the registry of app runtimes.
#[macro_export]
macro_rules! registry_kinds {
    () => {
        $crate::Body::UsageUnitPut(_)
            | $crate::Body::UnitPricePut(_)
            | $crate::Body::AppTypePut(_)
            | $crate::Body::AppTypeDeleted(_)
            | $crate::Body::AppInstancePut(_)
            | $crate::Body::AppInstanceDeleted(_)
            | $crate::Body::AttachmentMade(_)
            | $crate::Body::AttachmentEnded(_)
            | $crate::Body::EntitlementPut(_)
            | $crate::Body::EntitlementDeleted(_)
            | $crate::Body::AppPolicyPut(_)
            | $crate::Body::SharingPut(_)
    };
}

/// A pattern for the kinds about deliveries.
#[macro_export]
macro_rules! sink_kinds {
    () => {
        $crate::Body::SinkPut(_)
            | $crate::Body::SinkDeleted(_)
            | $crate::Body::SinkDisabled(_)
            | $crate::Body::AccountingReconciled(_)
    };
}

/// A pattern for the kinds of the ledger and of the usage that runtimes report. They concern money that is owed, and no
/// lease, node or allocation.
#[macro_export]
macro_rules! ledger_kinds {
    () => {
        $crate::Body::LedgerOpened(_)
            | $crate::Body::LedgerPosted(_)
            | $crate::Body::HourSettled(_)
            | $crate::Body::LedgerCorrected(_)
            | $crate::Body::LedgerAdjusted(_)
            | $crate::Body::LedgerDisputed(_)
            | $crate::Body::PeriodClosing(_)
            | $crate::Body::InvoiceIssued(_)
            | $crate::Body::PeriodStated(_)
            | $crate::Body::PeriodClosed(_)
            | $crate::Body::PaymentRecorded(_)
            | $crate::Body::TaxRatePut(_)
            | $crate::Body::PrepaidToppedUp(_)
            | $crate::Body::PrepaidPolicyPut(_)
            | $crate::Body::PrepaidLapsed(_)
            | $crate::Body::PrepaidChanged(_)
            | $crate::Body::PrepaidApplied(_)
            | $crate::Body::UsageRecorded(_)
            | $crate::Body::UsageRefused(_)
            | $crate::Body::EntitlementWarned(_)
            | $crate::Body::LedgerShared(_)
    };
}
