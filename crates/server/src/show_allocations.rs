//! Allocations as the API shows them: what they request, where they are placed, and why they wait.

use crate::access::Caller;
use crate::app::App;
use crate::problem::{denial, quota_words, sentence};
use crate::show::{self, whole};
use crate::show_apps;
use leasehold_api as api;
use leasehold_api::{Problem, Ttl, When, codes};
use leasehold_cell::Sealed;
use leasehold_engine::{Allocation, Protection, Readers, State, WaitReason};
use leasehold_model::body::{Body, Correlation, Granted};
use leasehold_model::{
    AllocationNo, AllocationSpec, DenyCause, Identity, Instant, LeaseNo, NodeNo, Quanta, Record, quantity,
};
use std::collections::BTreeMap;

fn correlation(app: &App, number: AllocationNo, spec: &AllocationSpec) -> String {
    Correlation::or_derived(spec.correlation, number.0).id(&app.genesis).to_string()
}

/// An allocation as it was submitted.
pub(crate) fn as_submitted(
    app: &App,
    state: &State,
    number: AllocationNo,
    identity: &Identity,
    spec: &AllocationSpec,
    submitted_at: Instant,
) -> api::Allocation {
    let asks = spec.asks.iter().filter_map(|(class, quanta)| {
        let class = state.class(*class)?;
        let quantity = quantity::display(*quanta, class);
        Some(api::Asked { class: class.name.to_string(), quantity, quanta: quanta.0 })
    });
    api::Allocation {
        id: number.into(),
        state: api::AllocationState::Pending,
        tenant: identity.tenant.map_or_else(String::new, |tenant| show::tenant_name(state, tenant)),
        project: show::text(identity.project.and_then(|project| state.project(project)).map(|project| &project.name))
            .unwrap_or_default(),
        user: show::text(identity.user.and_then(|user| state.user(user)).map(|user| &user.name)),
        workload: show::text(identity.workload.as_ref()),
        asks: asks.collect(),
        replicas: spec.replicas,
        priority: spec.priority,
        pool: show::text(spec.pool.and_then(|pool| state.pool(pool)).map(|pool| &pool.name)),
        walltime: spec.walltime.map(Ttl),
        ttl: spec.ttl.map(Ttl),
        staged: spec.staged,
        requeue: spec.requeue,
        labels: spec.labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
        together: spec.together,
        apart: spec.apart,
        sensitive: spec.sensitive,
        app_instance: spec.app_instance.map(|app| show_apps::app_name(state, app)),
        attachment: spec.attachment.map(|attachment| attachment.0),
        source_project: show::text(
            spec.source_project.and_then(|project| state.project(project)).map(|project| &project.name),
        ),
        correlation_id: correlation(app, number, spec),
        submitted_at: When(submitted_at),
        position: None,
        attempt: 0,
        placed_at: None,
        ends_by: None,
        ended_at: None,
        on_hold: None,
    }
}

/// An allocation that has not ended.
pub(crate) fn allocation(app: &App, state: &State, found: &Allocation) -> api::Allocation {
    let identity = Identity {
        tenant: Some(found.tenant),
        project: Some(found.project),
        user: found.user,
        workload: found.workload.clone(),
        token: None,
    };
    api::Allocation {
        state: found.state,
        attempt: found.attempt,
        placed_at: found.state.is_placed().then_some(When(found.placed_at)),
        ends_by: found.bound().map(When),
        on_hold: found.on_hold.as_ref().map(|hold| api::Hold {
            since: When(hold.since),
            by_operator: hold.by_operator,
            reason: show::text(hold.reason.as_ref()),
        }),
        ..as_submitted(app, state, found.number, &identity, &found.spec, found.submitted_at)
    }
}

/// One replica, as granted.
pub(crate) fn replica(app: &App, state: &State, record: &Record, granted: &Granted) -> api::Replica {
    let lease = |(place, member): (u64, &leasehold_model::body::Member)| {
        let class = state.class(member.class);
        api::GrantedLease {
            id: LeaseNo(granted.first_lease.0 + place).to_string(),
            uid: app.lease_uid(LeaseNo(granted.first_lease.0 + place)),
            class: class.map_or_else(String::new, |class| class.name.to_string()),
            quantity: class.map_or_else(String::new, |class| quantity::display(member.quanta, class)),
            quanta: member.quanta.0,
            devices: show::devices(member.devices),
        }
    };
    api::Replica {
        node: state.node(granted.node).map_or_else(String::new, |node| node.name.to_string()),
        pool: state.pool(granted.pool).map_or_else(String::new, |pool| pool.name.to_string()),
        leases: (0..).zip(&granted.members).map(lease).collect(),
        expires_at: When(record.stamp.saturating_add(granted.ttl)),
        grace_ends_at: None,
        capped_by_quota_id: granted.capped_by.map(|quota| quota.0),
    }
}

/// The replicas of the current attempt, from its leases.
pub(crate) fn running_replicas(app: &App, state: &State, found: &Allocation) -> Vec<api::Replica> {
    let mut replicas: Vec<api::Replica> = Vec::new();
    let mut gang = None;
    for lease in found.lease_numbers().filter_map(|lease| state.lease(lease)) {
        let shown = show::lease(app, state, lease);
        if gang != Some(lease.gang) {
            gang = Some(lease.gang);
            replicas.push(api::Replica {
                node: shown.node,
                pool: shown.pool,
                leases: Vec::new(),
                expires_at: shown.expires_at,
                grace_ends_at: shown.grace_ends_at,
                capped_by_quota_id: None,
            });
        }
        let last = replicas.last_mut().expect("one was just made");
        last.leases.push(api::GrantedLease {
            id: shown.id,
            uid: shown.uid,
            class: shown.class,
            quantity: shown.quantity,
            quanta: shown.quanta,
            devices: shown.devices,
        });
    }
    replicas
}

/// Allocations that have ended, with how they ended.
pub(crate) type Ended = BTreeMap<AllocationNo, api::AllocationState>;

/// A submission, or the problem if it was denied. One that started at once is shown from its records, so that a repeated
/// request gets the same answer. Any other is shown as it is now: one that evicted others without a grace period has
/// started since, and a repeated request may find it running or over. `ended` has those that are over.
pub(crate) fn submitted(app: &App, state: &State, sealed: &Sealed, ended: &Ended) -> Result<api::Submitted, Problem> {
    let record = sealed.first();
    if let Body::AllocationDenied(denied) = &record.body {
        // Limits are those of whoever pays.
        let payer =
            Identity { project: denied.spec.source_project.or(record.identity.project), ..record.identity.clone() };
        return Err(denial(state, &payer, &denied.cause).with("sequence", record.sequence));
    }
    let Body::AllocationSubmitted(submitted) = &record.body else {
        let detail = format!("The request has an unexpected record ({}).", record.body.word());
        return Err(codes::INTERNAL.problem(detail));
    };
    let spec = &submitted.spec;
    let replicas: Vec<_> = (sealed.records.iter())
        .filter_map(|record| {
            let Body::Granted(granted) = &record.body else { return None };
            Some(replica(app, state, record, granted))
        })
        .collect();
    let number = AllocationNo(record.sequence);
    let (now_in, replicas) = match (replicas.is_empty(), state.allocation(number)) {
        (false, _) if spec.staged => (api::AllocationState::Staging, replicas),
        (false, _) => (api::AllocationState::Running, replicas),
        (true, Some(found)) if found.state.is_placed() => (found.state, running_replicas(app, state, found)),
        (true, Some(found)) => (found.state, replicas),
        (true, None) => (ended.get(&number).copied().unwrap_or(api::AllocationState::Pending), replicas),
    };
    Ok(api::Submitted {
        sequence: record.sequence,
        id: api::AllocationId(record.sequence),
        state: now_in,
        submitted_at: When(record.stamp),
        correlation_id: correlation(app, AllocationNo(record.sequence), spec),
        replicas,
    })
}

/// `1st`, `2nd`, `3rd`, `4th`.
fn ordinal(n: u64) -> String {
    let ending = match (n % 10, n % 100) {
        (1, rest) if rest != 11 => "st",
        (2, rest) if rest != 12 => "nd",
        (3, rest) if rest != 13 => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// Why an allocation waits. Objects of others are not named.
pub(crate) fn waiting(state: &Readers, caller: &Caller, found: &Allocation, now: Instant) -> Option<api::Waiting> {
    if !found.state.is_queued() {
        return None;
    }
    let waits = state.view(|view| view.waiting_for(found, now))?;
    let mut shown = api::Waiting {
        position: waits.position,
        reason: api::WaitReason::Due,
        detail: String::new(),
        starts_by: waits.assured_start.map(|assured| When(assured.start)),
        quota_id: None,
        used: None,
        requested: None,
        limit: None,
        class: None,
        short: None,
        ahead: None,
        ahead_starts_by: None,
        nodes: Vec::new(),
        protected_on: Vec::new(),
        endless_lease_id: None,
    };
    let detail = match waits.reason {
        WaitReason::Quota(cause) => {
            shown.reason = api::WaitReason::Quota;
            match cause {
                DenyCause::Quota { quota, used, requested, limit } => {
                    shown.quota_id = Some(quota.0);
                    (shown.used, shown.requested, shown.limit) = (Some(used), Some(requested), Some(limit));
                }
                DenyCause::KindQuota { quota, used, requested, limit } => {
                    shown.quota_id = Some(quota.0);
                    (shown.used, shown.requested) = (Some(whole(used)), Some(whole(requested)));
                    shown.limit = Some(limit);
                }
                DenyCause::BurstOver { quota, .. } => {
                    shown.reason = api::WaitReason::Burst;
                    shown.quota_id = Some(quota.0);
                }
                DenyCause::Ceiling { .. } | DenyCause::Prepaid { .. } => shown.reason = api::WaitReason::Cost,
                DenyCause::Capacity { .. } => {}
            }
            let why = match (cause, found.spec.walltime) {
                (DenyCause::BurstOver { quota, ends_at }, Some(walltime)) if now.saturating_add(walltime) > ends_at => {
                    let what = quota_words(state, quota);
                    format!(
                        "it would exceed the base limit of {what}, and its walltime of {walltime} is longer than what is \
                         left of the burst, which would end at {}",
                        When(ends_at)
                    )
                }
                _ => denial(state, (found.tenant, found.payer), &cause).detail.replacen("Tenant", "tenant", 1),
            };
            let headroom = if shown.reason == api::WaitReason::Cost { "cost" } else { "quota" };
            format!("waiting for {headroom} headroom: {}", why.trim_end_matches('.'))
        }
        WaitReason::Room { fits, class, short } => {
            shown.reason = api::WaitReason::Capacity;
            let spec = state.class(class);
            shown.class = spec.map(|spec| spec.name.to_string());
            shown.short = spec.map(|spec| quantity::display(short, spec));
            no_room(state, found, fits, shown.class.as_deref(), short, spec)
        }
        WaitReason::Behind { ahead, start } => {
            shown.reason = api::WaitReason::Behind;
            let first = state.allocation(ahead).filter(|first| caller.sees_project(first.tenant, first.project));
            shown.ahead = first.map(|first| first.number.into());
            shown.ahead_starts_by = start.map(When);
            let who = first.map_or_else(|| "a higher-ranked allocation".to_owned(), |first| first.number.to_string());
            match start {
                Some(start) => format!("would delay {who}, which starts by {}", When(start)),
                None => format!("would delay {who}, for which nodes are protected"),
            }
        }
        WaitReason::Victims { nodes } => {
            shown.reason = api::WaitReason::Victims;
            // Gangs are evicted as a whole, so victims may be on nodes that the caller may not see.
            let may_know = |node: &&NodeNo| caller.sees_node(**node) || found.reserved_on().any(|own| own == **node);
            let known = nodes.iter().filter(may_know).filter_map(|node| state.node(*node));
            shown.nodes = known.map(|node| node.name.to_string()).collect();
            match (nodes.is_empty(), shown.nodes.is_empty()) {
                (true, _) => "its victims have ended; it starts on the next scheduling pass".to_owned(),
                (false, true) => "victims are being torn down".to_owned(),
                (false, false) => format!("victims are being torn down on {}", shown.nodes.join(", ")),
            }
        }
        WaitReason::Evictions { used, limit } => {
            shown.reason = api::WaitReason::Evictions;
            (shown.used, shown.limit) = (Some(used), Some(limit));
            format!("{used} quanta were evicted for its tenant within the hour, and the limit is {limit}")
        }
        WaitReason::Paused => {
            shown.reason = api::WaitReason::Paused;
            "its project is paused on every pool that it may use".to_owned()
        }
        WaitReason::Hold(hold) => {
            shown.reason = api::WaitReason::Hold;
            let by = if hold.by_operator { "an operator" } else { "its holder" };
            let reason = hold.reason.map_or_else(String::new, |reason| format!(" ({reason})"));
            shown.detail = sentence(&format!("put on hold by {by} at {}{reason}", When(hold.since)));
            return Some(shown);
        }
        WaitReason::Due => "nothing prevents it from starting; it starts on the next scheduling pass".to_owned(),
    };
    let protection = waits.protection.map_or_else(String::new, |found| protection(state, caller, found, &mut shown));
    shown.detail = sentence(&format!("{}, {detail}{protection}", ordinal(waits.position)));
    Some(shown)
}

/// Where an allocation is protected, or what keeps it from being protected.
fn protection(state: &Readers, caller: &Caller, found: Protection, shown: &mut api::Waiting) -> String {
    match found {
        Protection::On(nodes) => {
            let nodes = nodes.iter().filter_map(|node| state.node(*node));
            shown.protected_on = nodes.map(|node| node.name.to_string()).collect();
            format!("; it is protected on {}", shown.protected_on.join(", "))
        }
        Protection::EndlessLease(number) => {
            let lease = state.lease(number);
            let seen = lease.filter(|lease| caller.sees_project(lease.tenant, lease.project));
            shown.endless_lease_id = seen.map(|lease| lease.number.to_string());
            let who = seen.map_or_else(|| "a lease of another tenant".to_owned(), |lease| lease.number.to_string());
            format!("; it is not protected, because {who} has neither a walltime nor a maximum lifetime")
        }
    }
}

fn no_room(
    state: &State,
    found: &Allocation,
    fits: u32,
    class: Option<&str>,
    short: Quanta,
    spec: Option<&leasehold_model::ClassSpec>,
) -> String {
    let pool = found.spec.pool.and_then(|pool| state.pool(pool));
    let place = pool.map_or_else(String::new, |pool| format!(" on pool {}", pool.name));
    let replicas = found.spec.replicas;
    let rest = if replicas > 1 { format!("; {fits} of {replicas} replicas would fit") } else { String::new() };
    let (Some(class), Some(spec)) = (class, spec) else { return format!("no capacity is free{place}{rest}") };
    match (short, found.spec.together) {
        (Quanta(0), Some(domain)) if replicas > 1 => {
            format!("no {} has enough free capacity for all replicas{place}{rest}", domain.word())
        }
        (Quanta(0), _) => format!("no node has everything free at once{place}{rest}"),
        (short, _) => {
            let unit = spec.kind.unit();
            let of = if class.eq_ignore_ascii_case(unit) { String::new() } else { format!(" of {class}") };
            format!("{} {unit}{of} short{place}{rest}", quantity::display(short, spec))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ordinal;

    #[test]
    fn ordinals_have_their_endings() {
        let shown: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 102, 111].into_iter().map(ordinal).collect();
        assert_eq!(shown.join(" "), "1st 2nd 3rd 4th 11th 12th 13th 21st 102nd 111th");
    }
}
