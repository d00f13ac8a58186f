//! The fields of each kind of record.

use super::Directory;
use super::correlation::{belongs_to, correlation_id, with_reason};
use super::object::{Object, count, devices, text, units};
use super::{allocations, apps, entitlements, ledger, placement, prepaid, rates, sharing, sinks};
use leasehold_model::access::TokenScope;
use leasehold_model::activity::Activity;
use leasehold_model::allocation::WhenOverQuota;
use leasehold_model::body::{
    Body, Correlation, Denied, Granted, NodePut, Nodes, PerPriority, QuotaPut, Renewal, Renewed, Reported,
    ReportedLeases, TokenIssued,
};
use leasehold_model::class::ResourceKind;
use leasehold_model::hex;
use leasehold_model::id::{ClassNo, QuotaNo, WindowNo};
use leasehold_model::instant::Instant;
use leasehold_model::name::Name;
use leasehold_model::policy::{DenyCause, Priority};
use leasehold_model::quantity::Quanta;
use leasehold_model::quota::{HolderScope, LimitKind, NodeScope, QuotaScope};
use leasehold_model::record::Record;
use leasehold_model::tenant::Address;
use serde_json::{Map, Value};

fn address(address: &Address) -> Value {
    address.lines().iter().map(|line| Value::from(line.as_str())).collect()
}

pub(super) fn show(directory: &Directory, record: &Record) -> Value {
    let new = || Object::new(directory);
    match &record.body {
        Body::Genesis(genesis) => new()
            .field("format_version", genesis.format_version)
            .field("origin", genesis.origin.as_str())
            .field("public_key", hex::encode(&genesis.public_key))
            .field("software", genesis.software.as_str()),
        Body::Started(started) => {
            let clock = started.clock_accepted.as_ref();
            let clock = clock.map(|clock| {
                new().instant("last_stamp", clock.last_stamp).instant("wall_clock", clock.wall_clock).done()
            });
            new()
                .count("epoch", started.epoch)
                .field("software", started.software.as_str())
                .field("rules_version", started.rules_version)
                .field("clock_accepted", clock)
        }
        Body::Heartbeat(_) => new(),
        Body::KeyRotated(rotated) => {
            new().field("old_key", hex::encode(&rotated.old_key)).field("new_key", hex::encode(&rotated.new_key))
        }
        Body::ClockJumped(jumped) => new().instant("wall_clock", jumped.wall_clock),
        Body::Converted(converted) => new().field("format_version", converted.format_version),
        Body::TailResolved(tail) => {
            new().field("action", tail.action.word()).count("records", tail.records).count("bytes", tail.bytes)
        }
        Body::Restored(restored) => new().count("records", restored.records).instant("copied_at", restored.copied_at),
        Body::SettingsChanged(settings) => new()
            .span("ttl_max", settings.ttl_max)
            .span("grace_default", settings.grace_default)
            .span("teardown_deadline", settings.teardown_deadline)
            .span("node_timeout", settings.node_timeout)
            .span("idempotency_window", settings.idempotency_window),
        Body::ClassPut(put) => new()
            .named("class", put.class)
            .field("kind", put.spec.kind.word())
            .field("tier", text(put.spec.tier.as_ref()))
            .count("quanta_per_unit", put.spec.quanta_per_unit)
            .field("unit", put.spec.kind.unit())
            .field("premium", put.spec.premium),
        Body::PoolPut(put) => new()
            .named("pool", put.pool)
            .field("strategy", put.strategy.word())
            .field("ttl_max", per_priority(directory, &put.ttl_max))
            .field("lifetime_max", per_priority(directory, &put.lifetime_max))
            .span("grace", put.grace),
        Body::PoolQueuePut(put) => new()
            .named("pool", put.pool)
            .span("min_runtime_before_eviction", put.queue.min_runtime_before_eviction)
            .field("requeue_limit", put.queue.requeue_limit),
        Body::PoolPlacementPut(put) => new()
            .named("pool", put.pool)
            .field("weights", put.weights.map(|weights| placement::weights(directory, weights))),
        Body::PlacementChanged(settings) => new().span("heat_half_life", settings.heat_half_life),
        Body::ProjectPoolPut(put) => {
            new().named("project", put.project).named("pool", put.pool).field("access", put.access.word())
        }
        Body::QueueChanged(settings) => new().span("head_wait_max", settings.head_wait_max),
        Body::PoolDeleted(gone) => new().named("pool", gone.pool),
        Body::TenantPut(put) => new()
            .named("tenant", put.tenant)
            .field("accounting_tag", text(put.settings.accounting_tag.as_ref()))
            .field("max_priority", put.settings.max_priority.word())
            .field("max_evicted_quanta_per_hour", put.settings.max_evicted_quanta_per_hour.map(count))
            .field("contact", text(put.settings.contact.as_ref()))
            .field("when_over_quota", put.settings.when_over_quota.map(WhenOverQuota::word))
            .field("billing_address", put.settings.billing_address.as_ref().map(address))
            .field("tax_id", text(put.settings.tax_id.as_ref())),
        Body::TenantDeleted(gone) => new().named("tenant", gone.tenant),
        Body::ProjectPut(put) => new().named("project", put.project).named("tenant", put.tenant),
        Body::ProjectDeleted(gone) => new().named("project", gone.project),
        Body::UserPut(put) => new().named("user", put.user).named("tenant", put.tenant),
        Body::UserDeleted(gone) => new().named("user", gone.user),
        Body::QuotaPut(put) => quota(new(), directory, put),
        Body::BudgetsPut(put) => new()
            .named("tenant", put.tenant)
            .field("gpu_hours_budget", put.budgets.gpu_hours.map(count))
            .field("node_hours_budget", put.budgets.node_hours.map(count))
            .field("budget_period_days", put.budgets.period_days)
            .field("fair_share_target_thousandths", put.budgets.fair_share)
            .field("burst_allowance_gpu_hours", put.budgets.burst_allowance.map(count))
            .field("max_pending", put.budgets.max_pending.map(count)),
        Body::CeilingPut(put) => new()
            .named("project", put.project)
            .named("app_instance", put.app_instance)
            .field("amount", put.amount.to_string())
            .field("currency", put.currency.as_str())
            .field("mode", put.mode.word()),
        Body::CeilingDeleted(gone) => new().named("project", gone.project).named("app_instance", gone.app_instance),
        Body::QuotaDeleted(gone) => new().field("quota_id", gone.quota.0),
        Body::BurstEnded(ended) => new().field("quota_id", ended.quota.0),
        Body::QuotaUntilReached(ended) => new().field("quota_id", ended.quota.0),
        Body::WindowPut(put) => {
            let shown = window(new(), put.window, (put.from, put.until), put.reason.as_ref());
            shown.field("nodes", nodes(directory, &put.nodes))
        }
        Body::WindowStarted(started) => {
            new().field("window_id", started.window.0).field("nodes", nodes(directory, &started.nodes))
        }
        Body::WindowEnded(ended) => new()
            .field("window_id", ended.window.0)
            .field("nodes", nodes(directory, &ended.nodes))
            .field("begun", ended.begun)
            .field("cancelled", ended.cancelled),
        Body::WindowAnnounced(told) => {
            let shown = window(new(), told.window, (told.from, told.until), told.reason.as_ref());
            let shown = shown.field("cancelled", told.cancelled == Some(true));
            belongs_to(shown.leases("leases", &told.leases.0), directory, Some(told.belongs_to))
        }
        Body::EndsCorrected(corrected) => {
            let shown = new().field("loss_sequence", count(corrected.loss)).leases("leases", &corrected.leases.0);
            belongs_to(shown, directory, Some(corrected.belongs_to))
        }
        Body::ClaimEndCorrected(corrected) => new()
            .field("loss_sequence", count(corrected.loss))
            .named("node", corrected.node)
            .field("claim_sequence", count(corrected.claim)),
        Body::LedgerOpened(opened) => new().instant("from", opened.from),
        Body::LedgerPosted(posted) => ledger::posted(new(), directory, posted),
        Body::HourSettled(settled) => new().instant("through", settled.through).count("as_of_size", settled.as_of_size),
        Body::LedgerCorrected(corrected) => ledger::corrected(new(), directory, corrected),
        Body::LedgerAdjusted(adjusted) => ledger::adjusted(new(), directory, adjusted),
        Body::LedgerDisputed(disputed) => new()
            .field("entry", disputed.entry.to_string())
            .field("open", disputed.open)
            .field("reason", disputed.reason.as_str()),
        Body::PeriodClosing(closing) => new().field("month", closing.month.to_string()),
        Body::InvoiceIssued(issued) => ledger::invoice(new(), directory, issued),
        Body::PeriodStated(stated) => ledger::stated(new(), directory, stated),
        Body::PeriodClosed(closed) => ledger::closed(new(), closed),
        Body::PaymentRecorded(paid) => ledger::payment(new(), paid),
        Body::PrepaidToppedUp(topped) => prepaid::topped_up(new(), topped),
        Body::PrepaidPolicyPut(put) => prepaid::policy(new(), put),
        Body::PrepaidLapsed(lapsed) => prepaid::lapsed(new(), lapsed),
        Body::PrepaidChanged(changed) => prepaid::changed(new(), changed),
        Body::PrepaidApplied(applied) => prepaid::applied(new(), applied),
        Body::UsageUnitPut(put) => apps::unit(new(), put),
        Body::UnitPricePut(put) => apps::price(new(), directory, put),
        Body::AppTypePut(put) => apps::app_type(new(), directory, put),
        Body::AppTypeDeleted(gone) => new().named("app", gone.app_type),
        Body::AppInstancePut(put) => apps::instance(new(), put),
        Body::AppInstanceDeleted(gone) => new().named("app_instance", gone.app_instance),
        Body::AttachmentMade(made) => apps::attachment(new(), made),
        Body::AttachmentEnded(ended) => new().count("attachment_id", ended.attachment.0),
        Body::UsageRecorded(recorded) => apps::usage(new(), directory, recorded),
        Body::UsageRefused(refused) => entitlements::refused(new(), directory, refused),
        Body::EntitlementPut(put) => entitlements::put(new(), directory, put),
        Body::EntitlementDeleted(gone) => entitlements::scope(new(), directory, gone.of),
        Body::EntitlementWarned(warned) => entitlements::warned(new(), directory, warned),
        Body::AppPolicyPut(put) => entitlements::policy(new(), directory, put),
        Body::SharingPut(put) => sharing::policy(new(), directory, put),
        Body::LedgerShared(shared) => sharing::shared(new(), directory, shared),
        Body::SinkPut(put) => sinks::put(new(), put),
        Body::SinkDeleted(gone) => new().field("webhook_id", gone.sink.0),
        Body::SinkDisabled(disabled) => {
            new().field("webhook_id", disabled.sink.0).field("cause", disabled.cause.word())
        }
        Body::AccountingReconciled(done) => sinks::reconciled(new(), done),
        Body::TaxRatePut(put) => {
            new().named("tenant", put.tenant).field("from", put.from.to_string()).field("rate", put.rate.to_string())
        }
        Body::LossSettled(settled) => new().field("loss_sequence", count(settled.loss)).named("node", settled.node),
        Body::RateCardPut(put) => rates::card(new(), directory, put),
        Body::RateCardDeleted(gone) => new().field("card_id", gone.card),
        Body::ChargePolicyPut(put) => rates::policy(new(), directory, put),
        Body::NodePut(put) => node(new(), directory, put),
        Body::NodeDeleted(gone) => new().named("node", gone.node),
        Body::NodeDrained(drained) => with_reason(new().named("node", drained.node), drained.reason.as_ref()),
        Body::NodeResumed(resumed) => with_reason(new().named("node", resumed.node), resumed.reason.as_ref()),
        Body::NodeLost(lost) => new().named("node", lost.node).instant("last_seen", lost.last_seen),
        Body::NodeReturned(returned) => new().named("node", returned.node),
        Body::NodeCondition(condition) => new()
            .named("node", condition.node)
            .field("load", condition.load.word())
            .field("errors", condition.errors.word())
            .field("throttled", condition.throttled),
        Body::AgentRegistered(agent) => new()
            .named("node", agent.node)
            .count("generation", agent.generation)
            .field("instance", format!("{:032x}", agent.instance)),
        Body::AgentDetached(agent) => new().named("node", agent.node),
        Body::NodeEmpty(empty) => new().named("node", empty.node).instant("since", empty.since),
        Body::Granted(granted) => grant(new(), directory, record, granted),
        Body::Denied(denied) => denial(new(), directory, record.sequence, denied),
        Body::Renewed(renewed) => new().field("renewals", renewals(directory, renewed)),
        Body::Released(released) => {
            new().field("leases", reports(directory, &released.leases)).field("closed", released.closed)
        }
        Body::Expired(expired) => {
            let shown = new().leases("leases", &expired.leases.0).field("closed", expired.closed);
            belongs_to(shown, directory, expired.belongs_to)
        }
        Body::Revoked(revoked) => {
            let shown = new().leases("leases", &revoked.leases.0).span("grace", revoked.grace);
            belongs_to(shown, directory, revoked.belongs_to)
        }
        Body::TeardownStarted(started) => {
            let shown = new().leases("leases", &started.leases.0).field("cause", started.cause.word());
            belongs_to(shown.field("closed", started.closed), directory, started.belongs_to)
        }
        Body::TornDown(torn) => {
            let shown = new().named("node", torn.node).leases("leases", &torn.leases.0);
            belongs_to(shown, directory, torn.belongs_to)
        }
        Body::Fenced(fenced) => belongs_to(new().leases("leases", &fenced.leases.0), directory, fenced.belongs_to),
        Body::Unfenced(unfenced) => {
            let shown = belongs_to(new().leases("leases", &unfenced.leases.0), directory, unfenced.belongs_to);
            with_reason(shown, unfenced.reason.as_ref())
        }
        Body::ActivityReported(reported) => new().field("leases", reports(directory, &reported.leases)),
        Body::Preempted(preempted) => new()
            .named("node", preempted.node)
            .field("priority", preempted.priority.word())
            .field("rules_version", preempted.rules_version)
            .leases("victims", &preempted.victims.0),
        Body::PreemptionDecided(_)
        | Body::ReservationDropped(_)
        | Body::ReservationTakenOver(_)
        | Body::HeadProtected(_)
        | Body::AllocationSubmitted(_)
        | Body::AllocationDenied(_)
        | Body::AllocationPlaced(_)
        | Body::AllocationStarted(_)
        | Body::AllocationCheckpointing(_)
        | Body::AllocationCheckpointed(_)
        | Body::AllocationSuspended(_)
        | Body::AllocationRequeued(_)
        | Body::AllocationCompleted(_)
        | Body::AllocationFailed(_)
        | Body::AllocationCancelled(_)
        | Body::AllocationHoldSet(_)
        | Body::AllocationHoldCleared(_)
        | Body::AllocationChanged(_) => allocations::show(new(), directory, record),
        Body::SensitiveChanged(settings) => new().field("sensitive_pool_size", settings.pool_size.map(count)),
        Body::NodesClaimed(claimed) => {
            new().field("nodes", nodes(directory, &claimed.nodes)).instant("until", claimed.until)
        }
        Body::NodesReleased(released) => {
            let shown = new().field("nodes", nodes(directory, &released.nodes));
            shown.field("claim_sequence", released.claim.map(count))
        }
        Body::NodeWiped(wiped) => new().named("node", wiped.node).field("claim_sequence", wiped.claim.map(count)),
        Body::NodeQuarantined(quarantined) => {
            let shown = new().named("node", quarantined.node).field("cause", quarantined.cause.word());
            // An operator must clear it, because data may remain on the node.
            shown.field("severity", "critical").field("claim_sequence", quarantined.claim.map(count))
        }
        Body::QuarantineCleared(cleared) => new().named("node", cleared.node),
        Body::TokenIssued(issued) => token(new(), directory, issued),
        Body::TokenRevoked(revoked) => new().named("token", revoked.token),
        Body::Unknown { kind, bytes } => new().field("kind_code", *kind).field("bytes", hex::encode(bytes)),
    }
    .done()
}

pub(crate) fn nodes(directory: &Directory, nodes: &Nodes) -> Value {
    nodes.0.iter().map(|node| Object::new(directory).named("node", *node).done()).collect()
}

fn per_priority(directory: &Directory, spans: &PerPriority) -> Value {
    let shown = Object::new(directory);
    Priority::ALL.iter().fold(shown, |shown, priority| shown.span(priority.word(), spans.of(*priority))).done()
}

/// An amount of a class, in quanta and in billing units.
pub(super) fn amount(directory: &Directory, class: ClassNo, quanta: Quanta) -> Object<'_> {
    Object::new(directory)
        .named("class", class)
        .count("quanta", quanta.0)
        .field("units", units(quanta, directory.class(class)))
}

fn quota<'a>(shown: Object<'a>, directory: &'a Directory, put: &QuotaPut) -> Object<'a> {
    let shown = shown
        .field("quota_id", put.quota.0)
        .field("scope", quota_scope(directory, &put.scope))
        .field("measure", put.measure.word())
        .field("limit", limit(directory, put.limit));
    let shown = if put.evict_own_lower { shown.field("evict_own_lower", true) } else { shown };
    match put.temporary {
        None => shown,
        Some(temporary) => {
            shown.field("temporary_limit", limit(directory, temporary.limit)).instant("until", temporary.until)
        }
    }
}

fn limit(directory: &Directory, limit: LimitKind) -> Value {
    let shown = Object::new(directory).field("type", limit.word()).count("limit", limit.limit());
    match limit {
        LimitKind::Hard { .. } | LimitKind::Soft { .. } => shown,
        LimitKind::Burst { burst_limit, burst_ttl, .. } => {
            shown.count("burst_limit", burst_limit).span("burst_ttl", burst_ttl)
        }
    }
    .done()
}

fn quota_scope(directory: &Directory, scope: &QuotaScope) -> Value {
    let (nodes, node) = match scope.node {
        NodeScope::All => ("all", None),
        NodeScope::One(node) => ("one", Some(node)),
        NodeScope::Each => ("each", None),
    };
    let shown = Object::new(directory)
        .named("tenant", scope.tenant)
        .named("project", scope.project)
        .named("class", scope.class)
        .named("pool", scope.pool)
        .field("nodes", nodes)
        .named("node", node)
        .field("priority", scope.priority.map(Priority::word));
    let further = &scope.further;
    let shown = if further.and_above { shown.field("and_above", true) } else { shown };
    let shown = match further.kind {
        None => shown,
        Some(kind) => shown.field("kind", kind.word()),
    };
    let shown = match further.user {
        None => shown,
        Some(HolderScope::Each) => shown.field("users", "each"),
        Some(HolderScope::One(user)) => shown.field("users", "one").named("user", user),
    };
    match further.app_instance {
        None => shown,
        Some(HolderScope::Each) => shown.field("app_instances", "each"),
        Some(HolderScope::One(app)) => shown.field("app_instances", "one").named("app_instance", app),
    }
    .done()
}

/// A list, because a journal can contain the same key twice.
pub(super) fn labels(directory: &Directory, labels: &[(Name, Name)]) -> Value {
    let label = |(key, value): &(Name, Name)| {
        Object::new(directory).field("key", key.as_str()).field("value", value.as_str()).done()
    };
    labels.iter().map(label).collect()
}

fn node<'a>(shown: Object<'a>, directory: &'a Directory, put: &NodePut) -> Object<'a> {
    let capacity = put.capacity.iter().map(|(class, quanta)| amount(directory, *class, *quanta).done());
    shown
        .named("node", put.node)
        .named("pool", put.pool)
        .field("rack", text(put.rack.as_ref()))
        .field("zone", text(put.zone.as_ref()))
        .field("labels", labels(directory, &put.labels))
        .field("teardown", put.teardown.word())
        .field("capacity", capacity.collect::<Value>())
}

/// Shows only the start of the secret's hash: enough to identify a token, useless for an attacker.
fn token<'a>(shown: Object<'a>, directory: &'a Directory, issued: &TokenIssued) -> Object<'a> {
    shown
        .named("token", issued.token)
        .field("fingerprint", hex::encode(&issued.hash[..4]))
        .field("role", issued.role.word())
        .field("scope", token_scope(directory, &issued.scope))
        .instant("expires_at", issued.expires_at)
}

fn token_scope(directory: &Directory, scope: &TokenScope) -> Value {
    Object::new(directory)
        .named("tenant", scope.tenant)
        .named("project", scope.project)
        .named("user", scope.user)
        .named("node", scope.node)
        .field("app_instance_ids", scope.app_instances.iter().map(|app| count(app.0)).collect::<Value>())
        .done()
}

fn grant<'a>(shown: Object<'a>, directory: &'a Directory, record: &Record, granted: &Granted) -> Object<'a> {
    let members = granted
        .members
        .iter()
        .map(|member| amount(directory, member.class, member.quanta).field("devices", devices(member.devices)).done());
    // Without a correlation ID of the caller, it is derived from the record that began the request.
    let correlation = correlation_id(directory, granted.correlation_of(record.sequence));
    shown
        .field("first_lease", granted.first_lease.to_string())
        .named("node", granted.node)
        .named("pool", granted.pool)
        .span("ttl", granted.ttl)
        .instant("expires_at", record.stamp.saturating_add(granted.ttl))
        .field("priority", granted.priority.word())
        .field("rules_version", granted.rules_version)
        .field("members", members.collect::<Value>())
        .field("sensitive", granted.sensitive)
        .field("control_plane", granted.control_plane)
        .field("correlation_id", correlation)
        .field("correlation_given", granted.correlation.is_some())
        .field("allocation_id", granted.allocation.map(|no| no.to_string()))
        .named("app_instance", granted.app_instance)
        .field("attachment_id", granted.attachment.map(|no| count(no.0)))
        .named("source_project", granted.source_project)
        .field("over_soft_quota_ids", granted.over_soft.iter().map(|quota| quota.0).collect::<Value>())
        .field("capped_by_quota_id", granted.capped_by.map(|QuotaNo(quota)| quota))
        .field("profile", granted.profile.map(placement::profile))
        .field("weights", granted.weighing.map(|weighing| placement::weighing(directory, weighing)))
        .field("labels", labels(directory, &granted.labels))
        .field("capped_by_window_id", granted.capped_by_window.map(|WindowNo(window)| window))
}

/// The parts of a maintenance window that its record and its announcements have in common.
fn window<'a>(
    shown: Object<'a>,
    number: WindowNo,
    (from, until): (Instant, Instant),
    reason: Option<&Name>,
) -> Object<'a> {
    shown.field("window_id", number.0).instant("from", from).instant("until", until).field("reason", text(reason))
}

fn denial<'a>(shown: Object<'a>, directory: &'a Directory, sequence: u64, denied: &Denied) -> Object<'a> {
    let asks = denied.asks.iter().map(|(class, quanta)| amount(directory, *class, *quanta).done());
    let asked = &denied.particulars;
    shown
        .named("pool", denied.pool)
        .field("asks", asks.collect::<Value>())
        .span("ttl", denied.ttl)
        .field("priority", denied.priority.word())
        .field("rules_version", denied.rules_version)
        .field("cause", denial_cause(directory, denied.cause))
        .field("sensitive", asked.sensitive)
        .named("node", asked.node)
        .field("labels", labels(directory, &asked.labels))
        .field("profile", asked.profile.map(placement::profile))
        .named("app_instance", asked.app_instance)
        .field("correlation_id", correlation_id(directory, Correlation::or_derived(asked.correlation, sequence)))
        .field("correlation_given", asked.correlation.is_some())
}

pub(super) fn denial_cause(directory: &Directory, cause: DenyCause) -> Value {
    let new = |kind: &str| Object::new(directory).field("type", kind);
    match cause {
        DenyCause::Quota { quota, used, requested, limit } => new("quota")
            .field("quota_id", quota.0)
            .count("used", used)
            .count("requested", requested)
            .count("limit", limit),
        DenyCause::KindQuota { quota, used, requested, limit } => new("kind_quota")
            .field("quota_id", quota.0)
            .field("used", used.to_string())
            .field("requested", requested.to_string())
            .field("limit", limit.to_string()),
        DenyCause::BurstOver { quota, ends_at } => {
            new("burst_over").field("quota_id", quota.0).instant("ends_at", ends_at)
        }
        DenyCause::Capacity { class, requested, most_free } => {
            new("capacity").named("class", class).count("requested", requested.0).count("most_free", most_free.0)
        }
        DenyCause::Ceiling { app_instance, spent, reserved, requested, amount } => new("ceiling")
            .named("app_instance", app_instance)
            .field("spent", spent.to_string())
            .field("reserved", reserved.to_string())
            .field("requested", requested.to_string())
            .field("amount", amount.to_string()),
        DenyCause::Prepaid { of_tenant, state, available, requested } => new("prepaid")
            .field("of_tenant", of_tenant)
            .field("state", state.word())
            .field("available", available.to_string())
            .field("requested", requested.to_string()),
    }
    .done()
}

fn renewals(directory: &Directory, renewed: &Renewed) -> Value {
    let one = |renewal: &Renewal| {
        Object::new(directory)
            .field("lease", renewal.lease.to_string())
            .instant("expires_at", renewal.expires_at)
            .field("activity", renewal.activity.as_ref().map(|report| activity(directory, report)))
            .done()
    };
    renewed.renewals.iter().map(one).collect()
}

fn reports(directory: &Directory, reported: &ReportedLeases) -> Value {
    let one = |report: &Reported| {
        Object::new(directory)
            .field("lease", report.lease.to_string())
            .field("activity", report.activity.as_ref().map(|report| activity(directory, report)))
            .done()
    };
    reported.0.iter().map(one).collect()
}

fn activity(directory: &Directory, report: &Activity) -> Value {
    let waiting: Map<String, Value> = ResourceKind::ALL
        .iter()
        .zip(report.waiting)
        .filter(|(_, wait)| wait.0 > 0)
        .map(|(kind, wait)| (kind.word().to_owned(), wait.0.to_string().into()))
        .collect();
    Object::new(directory)
        .span("covered", report.covered)
        .field("busy_quantum_ns", report.busy.to_string())
        .span("active", report.active)
        .field("waiting_ns", waiting)
        .done()
}
