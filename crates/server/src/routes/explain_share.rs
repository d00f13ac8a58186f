//! Where a share of the cost of a control plane comes from.

use super::explain_entry::without_usage;
use leasehold_api::{CostShare, LedgerEntry, LedgerExplanation};
use leasehold_books::Entry;
use leasehold_model::body::SharingMethod;

pub(super) fn of_share(
    found: &Entry,
    shown: LedgerEntry,
    corrections: Vec<LedgerEntry>,
    share: CostShare,
) -> LedgerExplanation {
    let arithmetic = arithmetic(&share);
    let plain = without_usage(found, shown, corrections);
    LedgerExplanation { arithmetic, share: Some(share), ..plain }
}

/// The policy in words.
fn policy(share: &CostShare) -> String {
    let CostShare { policy_app, policy_version, .. } = share;
    let of = match (&share.policy_tenant, &share.policy_app_instance) {
        (_, Some(instance)) => format!("{policy_app} on {instance}"),
        (Some(tenant), None) => format!("{policy_app} for {tenant}"),
        (None, None) => policy_app.clone(),
    };
    format!("The sharing policy of {of}, version {policy_version}, was in force when the month was cut")
}

fn arithmetic(share: &CostShare) -> Vec<String> {
    let CostShare { app_instance, month, pool, currency, booked, weight, total_weight, project, .. } = share;
    let mut steps =
        vec![format!("The control plane of {app_instance} cost its owner {pool} {currency} in {month}, as posted.")];
    let unit = share.usage_unit.as_deref().unwrap_or_default();
    let measure = match share.method {
        SharingMethod::NotBillable => {
            steps.push(format!("{}: the control plane is not billable.", policy(share)));
            steps.push(format!("The operator bears it: {booked} {currency} are booked for the owner."));
            return steps;
        }
        SharingMethod::None | SharingMethod::Owner => "the owner bears it".to_owned(),
        SharingMethod::Even => "it is divided evenly among the projects that used the runtime".to_owned(),
        SharingMethod::ByUsage => format!("it is divided by the {unit} that each project used"),
        SharingMethod::ByQuota => format!("it is divided by the {unit} that each project may use in a month"),
        SharingMethod::Fixed => "it is divided by percentages".to_owned(),
        SharingMethod::ByTier => "it is divided by the service tiers of the projects that used the runtime".to_owned(),
    };
    steps.push(format!("{}: {measure}.", policy(share)));
    let tier = share.tier.as_ref().map(|tier| format!(" (tier {tier})")).unwrap_or_default();
    let part = &share.share;
    if total_weight == "0" {
        steps.push(format!("Nobody takes part, so that the owner keeps it: {part} {currency}."));
    } else {
        steps.push(format!(
            "{pool} {currency} × {weight}{tier} / {total_weight}, in whole steps of 0.000001 of which the largest \
             remainders get those that are left: {part} {currency} for {project}."
        ));
    }
    steps.push(if share.owner {
        format!("The owner was charged {pool} {currency} and bears {part} {currency}, so that {booked} {currency} is booked.")
    } else {
        format!("Booked: {booked} {currency}.")
    });
    steps
}
