//! What an idempotency key is bound to: the payload of a command, and the hashes of both.

use super::{Command, CorrectEntry, IssueToken, RequestLease};
use crate::decide::TOO_MANY_APPS;
use crate::refusal::Refusal;
use leasehold_model::body::{Asks, ServiceTiers, SharingBasis};
use leasehold_model::codec::{Field, LIST_MAX};
use leasehold_model::limits::{
    APP_INSTANCES_PER_TOKEN_MAX, CLASSES_PER_NODE_MAX, CLASSES_PER_REQUEST_MAX, IDEMPOTENCY_KEY_BYTES_MAX,
    LABELS_PER_ALLOCATION_MAX, LABELS_PER_NODE_MAX, LEASES_PER_RECORD_MAX, LEDGER_LEGS_MAX, LEDGER_LINES_MAX,
    NODES_PER_CLAIM_MAX, RATE_LINES_MAX, SERVICE_TIERS_MAX, SHARING_PROJECTS_MAX, SINK_EVENTS_MAX,
    UNITS_PER_APP_TYPE_MAX,
};
use leasehold_model::{Activity, Name, TenantNo, TokenNo};
use sha2::{Digest, Sha256};

/// Commands without lists and without anything that the caller did not send. A new command is added here, or to the
/// functions below.
macro_rules! plain_commands {
    () => {
        Command::StartAllocation(_)
            | Command::BeginCheckpoint(_)
            | Command::ReportCheckpoint(_)
            | Command::CompleteAllocation(_)
            | Command::CancelAllocation(_)
            | Command::FailStart(_)
            | Command::HoldAllocation(_)
            | Command::ReleaseHold(_)
            | Command::ChangeAllocation(_)
            | Command::PutTenant(_)
            | Command::DeleteTenant(_)
            | Command::UpdateTenant(_)
            | Command::PutProject(_)
            | Command::SetPoolAccess(_)
            | Command::DeleteProject(_)
            | Command::PutUser(_)
            | Command::DeleteUser(_)
            | Command::PutPool(_)
            | Command::DeletePool(_)
            | Command::PutClass(_)
            | Command::DeleteNode(_)
            | Command::DrainNode(_)
            | Command::ResumeNode(_)
            | Command::LoseNode(_)
            | Command::ReturnNode(_)
            | Command::PutQuota(_)
            | Command::DeleteQuota(_)
            | Command::ChangeSettings(_)
            | Command::RotateKey(_)
            | Command::Heartbeat(_)
            | Command::NoticeClockJump(_)
            | Command::DeleteRateCard(_)
            | Command::PutChargePolicy(_)
            | Command::PutCeiling(_)
            | Command::DeleteCeiling(_)
            | Command::RegisterAgent(_)
            | Command::ReportCondition(_)
            | Command::DetachAgent(_)
            | Command::ReportWipe(_)
            | Command::ClearQuarantine(_)
            | Command::UnreserveNodes(_)
            | Command::NoteEmptyNode(_)
            | Command::RevokeToken(_)
            | Command::OpenLedger(_)
            | Command::SettleHour(_)
            | Command::DisputeEntry(_)
            | Command::ClosePeriod(_)
            | Command::FinishPeriod(_)
            | Command::RecordPayment(_)
            | Command::PutTaxRate(_)
            | Command::TopUp(_)
            | Command::PutPrepaidPolicy(_)
            | Command::EndCredit(_)
            | Command::PutUsageUnit(_)
            | Command::PutUnitPrice(_)
            | Command::DeleteAppType(_)
            | Command::PutAppInstance(_)
            | Command::DeleteAppInstance(_)
            | Command::MakeAttachment(_)
            | Command::EndAttachment(_)
            | Command::RecordUsage(_)
            | Command::RecordUsageTogether(_)
            | Command::PutEntitlement(_)
            | Command::DeleteEntitlement(_)
            | Command::PutAppPolicy(_)
            | Command::ShareCost(_)
            | Command::StatePeriod(_)
            | Command::DeleteSink(_)
            | Command::DisableSink(_)
            | Command::RecordReconciliation(_)
    };
}

/// Refuses commands that are too long to be encoded, with the same refusal that deciding them would give.
pub(super) fn check_lengths(command: &Command) -> Result<(), Refusal> {
    let refuse_if = |too_long: bool, refusal: Refusal| if too_long { Err(refusal) } else { Ok(()) };
    let check_leases = |named: usize| {
        let limit = LEASES_PER_RECORD_MAX;
        refuse_if(named > limit, Refusal::TooManyLeases { named, limit })
    };
    let check_nodes = |named: usize| {
        let limit = NODES_PER_CLAIM_MAX;
        refuse_if(named > limit, Refusal::TooManyNodes { named, limit })
    };
    let check_asks = |asks: &Asks| {
        let (asked, limit) = (asks.len(), CLASSES_PER_REQUEST_MAX);
        refuse_if(asked > limit, Refusal::TooManyClasses { asked, limit })
    };
    let check_labels =
        |labels: &[(Name, Name)], limit: usize| refuse_if(labels.len() > limit, Refusal::TooManyLabels { limit });
    let check_legs = |legs: usize| {
        let limit = LEDGER_LEGS_MAX;
        refuse_if(legs > limit, Refusal::TooManyLegs { limit })
    };
    match command {
        Command::Renew(list) => check_leases(list.len()),
        Command::Release(list) | Command::ReportActivity(list) => check_leases(list.len()),
        Command::Revoke(revoke) => check_leases(revoke.leases.len()),
        Command::ConfirmTeardown(confirm) => check_leases(confirm.leases.len()),
        Command::Ready(list) => check_leases(list.len()),
        Command::Unfence(unfence) => check_leases(unfence.leases.len()),
        Command::ClaimNodes(claim) | Command::ClaimForUser(claim) => check_nodes(claim.nodes.len()),
        Command::ReleaseNodes(nodes) => check_nodes(nodes.len()),
        Command::SettleLoss(settle) => check_leases(settle.leases.len().max(settle.claims.len())),
        Command::ReserveNodes(reserve) => check_nodes(reserve.nodes.len()),
        Command::Request(request) => {
            check_asks(&request.asks)?;
            check_labels(&request.labels, LABELS_PER_NODE_MAX)
        }
        Command::SubmitAllocation(submit) => {
            check_asks(&submit.spec.asks)?;
            check_labels(&submit.spec.labels, LABELS_PER_ALLOCATION_MAX)
        }
        Command::PutNode(put) => {
            check_labels(&put.labels, LABELS_PER_NODE_MAX)?;
            let limit = CLASSES_PER_NODE_MAX;
            refuse_if(put.capacity.len() > limit, Refusal::TooManyNodeClasses { limit })
        }
        Command::IssueToken(issue) => {
            let too_many = issue.scope.app_instances.len() > APP_INSTANCES_PER_TOKEN_MAX;
            refuse_if(too_many, Refusal::BadTokenScope { role: issue.role, why: TOO_MANY_APPS })
        }
        Command::PutRateCard(put) => {
            let lines = put.prices.classes.len().max(put.prices.tiers.len());
            let checked = if lines > RATE_LINES_MAX { put.prices.check() } else { Ok(()) };
            checked.map_err(|why| Refusal::BadPrices { why })
        }
        Command::PutAppType(put) => {
            let limit = UNITS_PER_APP_TYPE_MAX;
            refuse_if(put.units.len() > limit, Refusal::RegistryFull { what: "units of an app", limit })
        }
        Command::PutSink(put) => {
            let limit = SINK_EVENTS_MAX;
            refuse_if(put.events.len() > limit, Refusal::BadSinkEvents { limit })
        }
        Command::PostUsage(post) => {
            let limit = LEDGER_LINES_MAX;
            refuse_if(post.lines.len() > limit, Refusal::TooManyLines { limit })
        }
        Command::CorrectEntry(correct) => check_legs(correct.reversal.len().max(correct.replacement.len())),
        Command::AdjustLedger(adjust) => check_legs(adjust.legs.len()),
        Command::PutSharing(put) => {
            let basis = put.sharing.as_ref().map(|sharing| &sharing.basis);
            let limit = SHARING_PROJECTS_MAX;
            let percentages = basis.map_or(0, |basis| basis.percentages().len());
            refuse_if(percentages > limit, Refusal::BadShares { limit })?;
            let is_long = |tiers: &ServiceTiers| tiers.projects.len() > limit || tiers.tiers.len() > SERVICE_TIERS_MAX;
            refuse_if(basis.and_then(SharingBasis::tiers).is_some_and(is_long), Refusal::BadTiers)
        }
        Command::IssueInvoice(issue) => {
            let too_many = issue.projects.len().max(issue.taxed.len()) > LIST_MAX;
            refuse_if(too_many, Refusal::InvoiceMismatch { tenant: issue.tenant })
        }
        plain_commands!() => Ok(()),
    }
}

/// Encodes a command for its payload hash. Busy time that is too large for the encoding is refused when the report is
/// decided; for the hash it is replaced by the largest value that can be encoded.
pub(super) fn put_payload(command: &Command, payload: &mut Vec<u8>) {
    let too_large = |activity: &Option<Activity>| activity.is_some_and(|a| a.busy > BUSY_WRITTEN_MAX);
    let limit = |activity: &mut Option<Activity>| {
        if let Some(activity) = activity {
            activity.busy = activity.busy.min(BUSY_WRITTEN_MAX);
        }
    };
    match command {
        Command::Renew(list) if list.iter().any(|one| too_large(&one.activity)) => {
            let mut list = list.clone();
            list.iter_mut().for_each(|one| limit(&mut one.activity));
            Command::Renew(list).put(payload);
        }
        Command::Release(list) | Command::ReportActivity(list) if list.iter().any(|one| too_large(&one.activity)) => {
            let mut list = list.clone();
            list.iter_mut().for_each(|one| limit(&mut one.activity));
            let is_release = matches!(command, Command::Release(_));
            let limited = if is_release { Command::Release(list) } else { Command::ReportActivity(list) };
            limited.put(payload);
        }
        // The profile is measured, not sent by the caller, and may change before the request is sent again.
        Command::Request(request) if request.profile.is_some() => {
            Command::Request(RequestLease { profile: None, ..request.clone() }).put(payload);
        }
        Command::SubmitAllocation(submit) if submit.spec.profile.is_some() => {
            let mut submit = submit.clone();
            submit.spec.profile = None;
            Command::SubmitAllocation(submit).put(payload);
        }
        // A new secret is generated each time the request is sent.
        Command::IssueToken(issue) => Command::IssueToken(IssueToken { hash: [0; 32], ..issue.clone() }).put(payload),
        // The caller names an entry; what that is, and what was posted last, is looked up each time.
        Command::CorrectEntry(correct) => {
            let CorrectEntry { corrects, replacement, reason, .. } = correct;
            corrects.put(payload);
            replacement.put(payload);
            reason.put(payload);
        }
        Command::PostUsage(_)
        | Command::AdjustLedger(_)
        | Command::IssueInvoice(_)
        | Command::PutSharing(_)
        | Command::Renew(_)
        | Command::Release(_)
        | Command::ReportActivity(_)
        | Command::Request(_)
        | Command::SubmitAllocation(_)
        | Command::Revoke(_)
        | Command::Ready(_)
        | Command::ConfirmTeardown(_)
        | Command::Unfence(_)
        | Command::ClaimNodes(_)
        | Command::ClaimForUser(_)
        | Command::ReleaseNodes(_)
        | Command::ReserveNodes(_)
        | Command::SettleLoss(_)
        | Command::PutNode(_)
        | Command::PutRateCard(_)
        | Command::PutAppType(_)
        | Command::PutSink(_)
        | plain_commands!() => command.put(payload),
    }
}

/// The largest busy time that can be encoded: scaled numbers need some bits for their unit (`codec::put_scaled`).
const BUSY_WRITTEN_MAX: u128 = (1 << 120) - 1;

/// The hash under which an idempotency key is remembered. It is cryptographic, so that no tenant can construct a key
/// that collides with one of another tenant.
///
/// 64 bits are enough: to be answered by mistake, a request would have to collide in the payload as well.
pub(crate) fn key_scope(owner: Option<TenantNo>, token: Option<TokenNo>, key: &[u8]) -> u64 {
    // 17 bytes for owner, token and length, then at most 64 for the key: different keys never have the same encoding.
    let mut bytes = [0u8; 17 + IDEMPOTENCY_KEY_BYTES_MAX];
    let mut put = |at: usize, number: Option<u32>| {
        let word = number.map_or(0, |n| u64::from(n) + 1).to_le_bytes();
        bytes[at..at + 8].copy_from_slice(&word);
    };
    put(0, owner.map(|t| t.0));
    put(8, token.map(|t| t.0));
    bytes[16] = u8::try_from(key.len()).expect("the length of the key was checked");
    bytes[17..17 + key.len()].copy_from_slice(key);
    let digest: [u8; 32] = Sha256::digest(&bytes[..17 + key.len()]).into();
    first_half(&digest)
}

/// What is remembered of the hash of a command.
pub(crate) fn payload_hash(payload: &[u8; 16]) -> u64 {
    first_half(payload)
}

fn first_half(hash: &[u8]) -> u64 {
    u64::from_be_bytes(hash[..8].try_into().expect("a hash has at least eight bytes"))
}
