//! What the simulator leaves out because the engine is known to be wrong there. Each constant goes when that is mended.

use leasehold_engine::{Command, State};
use leasehold_model::UserNo;
use leasehold_oracle::{Foretold, Wish};

/// Work is tested against the quotas of the project that holds it, not of the one that pays: there are no quotas of
/// projects.
const QUOTAS_OF_PAYERS: bool = true;
/// Submissions are tested for everything else before their app instance and their attachment.
const ORDER_OF_FAULTS: bool = true;
/// The app instances of a deleted tenant stay.
const TENANTS_WITH_INSTANCES: bool = true;

/// Leaves out what a command must not do yet.
pub(crate) fn without(state: &State, command: &mut Command) {
    if let Command::PutQuota(put) = command
        && put.quota.is_none()
    {
        put.scope.project = put.scope.project.filter(|_| !QUOTAS_OF_PAYERS);
    } else if let Command::DeleteTenant(tenant) = *command {
        let has_instances = state.app_instances_after(None).any(|found| found.tenant == tenant);
        if TENANTS_WITH_INSTANCES && has_instances {
            *command = Command::DeleteUser(UserNo(99));
        }
    }
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
