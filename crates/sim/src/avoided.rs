//! What the simulator leaves out because the engine is known to be wrong there. Each constant goes when that is mended.

use leasehold_engine::{Command, State};
use leasehold_model::TenantNo;
use leasehold_oracle::{Foretold, Wish};

/// Work is tested against the quotas of the project that holds it, not of the one that pays: a tenant has no quotas of
/// projects while something is lent, and nothing is lent while it has some.
const QUOTAS_OF_PAYERS: bool = true;
/// Submissions are tested for everything else before their app instance and their attachment.
const ORDER_OF_FAULTS: bool = true;
/// The app instances of a deleted tenant stay.
const TENANTS_WITH_INSTANCES: bool = true;

/// Whether a command is not sent, by the state in which it would be decided.
pub(crate) fn is_left_out(state: &State, command: &Command) -> bool {
    if let Command::PutQuota(put) = command {
        let tenant = put.scope.tenant;
        let lent = || state.allocations_after(None).any(|of| of.tenant == tenant && of.spec.attachment.is_some());
        QUOTAS_OF_PAYERS && put.quota.is_none() && put.scope.project.is_some() && lent()
    } else if let Command::SubmitAllocation(submit) = command {
        let of = submit.spec.attachment.and_then(|number| state.attachment(number)).map(|found| found.tenant);
        of.is_some_and(|tenant| !may_lend(state, tenant))
    } else if let Command::DeleteTenant(tenant) = command {
        TENANTS_WITH_INSTANCES && state.app_instances_after(None).any(|found| found.tenant == *tenant)
    } else {
        false
    }
}

/// Whether something is lent within a tenant.
pub(crate) fn may_lend(state: &State, tenant: TenantNo) -> bool {
    !QUOTAS_OF_PAYERS || !has_quotas_of_projects(state, tenant)
}

fn has_quotas_of_projects(state: &State, tenant: TenantNo) -> bool {
    state.quotas().any(|quota| quota.scope.tenant == tenant && quota.scope.project.is_some())
}

/// Whether any refusal will do.
pub(crate) fn is_refused_somehow(wish: &Wish, foretold: &Foretold) -> bool {
    let of_runtimes = [
        "unknown_app_instance",
        "app_of_other_project",
        "unknown_attachment",
        "attachment_mismatch",
        "source_needs_attachment",
    ];
    let is_about_them = matches!(foretold, Foretold::Refused(code) if of_runtimes.contains(code));
    ORDER_OF_FAULTS && matches!(wish, Wish::Submit(..)) && is_about_them
}
