//! The fold: how each kind of record changes the state. Records carry their outcome, so nothing is decided here.

use super::{FoldError, LastUse, Project, Settings, State, Table, User, entry, entry_mut};
use crate::apps::PAYERS_COUNT;
use crate::ceiling::CeilingScope;
use crate::command::{key_scope, payload_hash};
use crate::custody::Custody;
use crate::follow::Follower;
use crate::holder::Named;
use crate::idempotency::{KEY_LIMITS, KeptAs, RememberedKey};
use crate::lease::{Lease, NONE, Phase};
use crate::node::{Condition, Node};
use crate::prepaid::PrepaidScope;
use leasehold_model::body::{Body, Correlation, Granted, TeardownStarted};
use leasehold_model::policy::TeardownCause;
use leasehold_model::{AllocationState, HolderScope, Idempotency, Instant, LeaseNo, Record, Span, TeardownMode};
use std::sync::Arc;

type Folded = Result<(), &'static str>;

/// Adds an entry under the next number, or replaces one.
pub(super) fn put<T>(table: &mut Table<T>, number: u32, value: T) -> Folded {
    let index = number as usize;
    match table.len() {
        len if index < len => table[index] = Some(value),
        len if index == len => table.push(Some(value)),
        _ => return Err("a number was skipped"),
    }
    Ok(())
}

/// Whether the command of this record can be repeated without harm, so that its key is remembered briefly (SEMANTICS 11).
fn is_idempotent(body: &Body) -> bool {
    let ready = |started: &TeardownStarted| started.cause == TeardownCause::Ready;
    matches!(body, Body::Renewed(_) | Body::Released(_) | Body::ActivityReported(_))
        || matches!(body, Body::TeardownStarted(started) if ready(started))
}

impl State {
    /// Folds one record. After an error the state must be discarded: the journal contradicts this program.
    pub fn apply(&mut self, record: &Record) -> Result<(), FoldError> {
        self.fold(record, Self::scope_of(record), &mut ())
    }

    /// The scope of a record's idempotency key (see `key_scope`). Computing it is the expensive part of folding a
    /// record, so a replay does it in another thread.
    pub fn scope_of(record: &Record) -> Option<u64> {
        record.idempotency.as_ref().map(|c| key_scope(c.owner, record.identity.token, &c.key))
    }

    /// Folds many records, each with its [`Self::scope_of`].
    pub fn apply_many(&mut self, records: &[(Record, Option<u64>)]) -> Result<(), FoldError> {
        for some in records.chunks(32) {
            self.warm_records(some.iter().map(|(record, _)| record));
            for (record, scope) in some {
                self.fold(record, *scope, &mut ())?;
            }
        }
        Ok(())
    }

    /// Folds one record and reports the changes to a follower. The idempotency key is remembered under `scope`; `None`
    /// for states that neither decide nor are written to snapshots.
    pub(crate) fn fold(
        &mut self,
        record: &Record,
        scope: Option<u64>,
        to: &mut impl Follower,
    ) -> Result<(), FoldError> {
        let sequence = record.sequence;
        if sequence != self.size {
            return Err(FoldError::OutOfOrder { expected: self.size, found: sequence });
        }
        if record.stamp < self.last_stamp {
            return Err(FoldError::StampBack { sequence });
        }
        if let Body::Unknown { kind, .. } = record.body {
            return Err(FoldError::UnknownKind { sequence, kind });
        }
        let window = self.settings.idempotency_window;
        self.idempotency_keys.sweep(record.stamp, window, |slot, key| to.key_forgotten(slot, key));
        self.fold_body(record, to).map_err(|what| FoldError::Inconsistent { sequence, what })?;
        if let (Some(key), Some(scope)) = (&record.idempotency, scope) {
            self.remember_key(record, key, scope, to);
        }
        if !self.prepaids.is_empty() {
            self.prepaids.note_timers(record);
        }
        self.size += 1;
        self.last_stamp = record.stamp;
        Ok(())
    }

    fn remember_key(&mut self, record: &Record, sent: &Idempotency, scope: u64, to: &mut impl Follower) {
        let window = self.settings.idempotency_window;
        let kept = if self.rules_version >= Some(4) && is_idempotent(&record.body) {
            KeptAs::Brief
        } else {
            // A key of an operator counts to the tenant that its command was about.
            let owner = record.identity.tenant.or(sent.owner);
            let keys = &mut self.idempotency_keys;
            keys.make_room(owner, record.stamp, window, KEY_LIMITS, |slot, key| to.key_forgotten(slot, key));
            KeptAs::Counted(owner)
        };
        let key = RememberedKey::new(record.stamp, record.sequence, scope, payload_hash(&sent.payload));
        let slot = self.idempotency_keys.add(key, kept);
        to.key_added(slot, self.idempotency_keys.at(slot));
    }

    fn fold_body(&mut self, record: &Record, to: &mut impl Follower) -> Folded {
        let stamp = record.stamp;
        if !self.follows_rules(PAYERS_COUNT) {
            self.note_numbers(&record.body);
        }
        match &record.body {
            Body::Genesis(genesis) => {
                if record.sequence != 0 {
                    return Err("a genesis record that is not the first");
                }
                self.origin = Some(genesis.origin.clone());
                self.public_key = genesis.public_key;
            }
            Body::Started(started) => {
                if started.epoch <= self.epoch {
                    return Err("an epoch that is not greater than the one before");
                }
                self.epoch = started.epoch;
                self.change_rules(stamp, to, |state| state.rules_version = Some(started.rules_version));
                self.begin_overages(stamp);
                self.restart_limits(stamp, to);
                self.restart_reports(stamp, to);
            }
            Body::Heartbeat(_)
            | Body::ClockJumped(_)
            | Body::Converted(_)
            | Body::TailResolved(_)
            | Body::Restored(_)
            | Body::Denied(_)
            | Body::AllocationDenied(_) => {}
            Body::Preempted(_) => return Err("a kind of record that no version writes"),
            Body::KeyRotated(rotation) => self.public_key = rotation.new_key,
            Body::SettingsChanged(s) => {
                let window = self.settings.idempotency_window;
                if s.idempotency_window > window {
                    self.idempotency_keys.forget_over(stamp, window, |slot, key| to.key_forgotten(slot, key));
                }
                self.settings = Settings {
                    ttl_max: s.ttl_max,
                    grace_default: s.grace_default,
                    teardown_deadline: s.teardown_deadline,
                    node_timeout: s.node_timeout,
                    idempotency_window: s.idempotency_window,
                    heat_half_life: self.settings.heat_half_life,
                    sensitive_pool_size: self.settings.sensitive_pool_size,
                    head_wait_max: self.settings.head_wait_max,
                };
                to.recheck_queue();
            }
            Body::PlacementChanged(s) => self.fold_half_life(s.heat_half_life, stamp, to),
            Body::SensitiveChanged(s) => self.settings.sensitive_pool_size = s.pool_size,
            Body::QueueChanged(s) => {
                self.settings.head_wait_max = s.head_wait_max;
                to.recheck_queue();
            }
            Body::PoolPlacementPut(put) => {
                entry_mut(&mut self.pools, put.pool.0).ok_or("no such pool")?.weights = put.weights;
            }
            Body::PoolQueuePut(put) => {
                entry_mut(&mut self.pools, put.pool.0).ok_or("no such pool")?.queue = put.queue;
                to.recheck_queue();
            }
            Body::ClassPut(class) => {
                let number = u32::from(class.class.0);
                if let Some(old) = entry(&self.classes, number) {
                    self.names.classes.remove(&old.name);
                }
                self.names.classes.insert(class.spec.name.clone(), number);
                put(&mut self.classes, number, class.spec.clone())?;
                self.set_parts_counted();
            }
            Body::PoolPut(pool) => self.fold_pool(pool, to)?,
            Body::PoolDeleted(gone) => {
                self.pool_access.0.retain(|(_, pool), _| *pool != gone.pool);
                let pool = self.pools.get_mut(gone.pool.0 as usize).and_then(Option::take);
                self.names.pools.remove(&pool.ok_or("no such pool")?.name);
            }
            Body::TenantPut(tenant) => self.fold_tenant(tenant, to)?,
            Body::TenantDeleted(gone) => self.fold_tenant_deleted(gone.tenant.0)?,
            Body::ProjectPut(p) => {
                let leases = entry(&self.projects, p.project.0).map_or(0, |old| old.leases);
                if let Some(old) = entry(&self.projects, p.project.0) {
                    self.names.projects.remove(&(old.tenant, old.name.clone()));
                }
                self.names.projects.insert((p.tenant, p.name.clone()), p.project.0);
                let last_use = entry(&self.projects, p.project.0).map_or_else(LastUse::default, |old| old.last_use);
                let project = Project { tenant: p.tenant, name: p.name.clone(), leases, last_use };
                put(&mut self.projects, p.project.0, project)?;
            }
            Body::ProjectPoolPut(put) => {
                let tenant = self.project(put.project).ok_or("no such project")?.tenant;
                self.pool(put.pool).ok_or("no such pool")?;
                self.pool_access.set(put.project, put.pool, put.access);
                self.regroup(tenant, to);
                to.standings_changed();
                to.recheck_queue();
            }
            Body::ProjectDeleted(gone) => {
                let project = self.projects.get_mut(gone.project.0 as usize).and_then(Option::take);
                let project = project.ok_or("no such project")?;
                let tenant = project.tenant;
                self.names.projects.remove(&(tenant, project.name));
                self.drop_quotas_of(|q| q.scope.project == Some(gone.project), to);
                self.ceilings.retain(|ceiling| ceiling.scope.project != gone.project);
                self.prepaids.retain(|scope| scope != PrepaidScope::Project(gone.project));
                self.drop_entitlements_of(gone.project);
                self.pool_access.0.retain(|(project, _), _| *project != gone.project);
                self.regroup(tenant, to);
            }
            Body::UserPut(u) => {
                if let Some(old) = entry(&self.users, u.user.0) {
                    self.names.users.remove(&(old.tenant, old.name.clone()));
                }
                self.names.users.insert((u.tenant, u.name.clone()), u.user.0);
                put(&mut self.users, u.user.0, User { tenant: u.tenant, name: u.name.clone() })?;
            }
            Body::UserDeleted(gone) => {
                let user = self.users.get_mut(gone.user.0 as usize).and_then(Option::take);
                let user = user.ok_or("no such user")?;
                self.names.users.remove(&(user.tenant, user.name));
                let own = Some(HolderScope::One(gone.user));
                self.drop_quotas_of(|quota| quota.scope.further.user == own, to);
            }
            Body::QuotaPut(quota) => self.fold_quota(quota, stamp, to)?,
            Body::BudgetsPut(put) => {
                let tenant = entry_mut(&mut self.tenants, put.tenant.0).ok_or("no such tenant")?;
                tenant.budgets = put.budgets.clone();
                to.standings_changed();
            }
            Body::QuotaDeleted(gone) => {
                let number = gone.quota;
                entry(&self.quotas, number.0).ok_or("no such quota")?;
                self.drop_quotas_of(|q| q.number == number, to);
            }
            Body::BurstEnded(ended) => {
                let quota = entry_mut(&mut self.quotas, ended.quota.0).ok_or("no such quota")?;
                quota.episode = None;
                let tenant = quota.scope.tenant;
                to.headroom(self, tenant);
            }
            Body::QuotaUntilReached(ended) => self.fold_until_reached(ended.quota, stamp, to)?,
            Body::WindowPut(reserved) => self.fold_window(reserved, to)?,
            Body::WindowStarted(started) => self.fold_window_started(started, to)?,
            Body::WindowEnded(ended) => self.fold_window_ended(ended, to)?,
            // For the holders; the window has its own record.
            Body::WindowAnnounced(_) => {}
            Body::NodePut(node) => self.fold_node(node, to)?,
            Body::NodeDeleted(gone) => {
                self.end_protection_on(gone.node, to);
                to.recheck_queue();
                let node = self.nodes.get_mut(gone.node.0 as usize).and_then(Option::take);
                let node = node.ok_or("no such node")?;
                if node.custody.claim().is_some() {
                    return Err("the node is claimed");
                }
                self.claimed.change(gone.node, node.custody, Custody::Open);
                self.names.nodes.remove(&node.name);
                self.count_node(&node, false, to)?;
                to.node_put(self, gone.node);
            }
            Body::NodeDrained(n) => {
                let drain = |node: &mut Node| (node.drained, node.drain_reason) = (true, n.reason.clone());
                self.set_node_state(n.node, stamp.into(), drain, to)?;
            }
            Body::NodeResumed(n) => {
                let resume = |node: &mut Node| (node.drained, node.drain_reason) = (false, None);
                self.set_node_state(n.node, stamp.into(), resume, to)?;
            }
            Body::NodeLost(lost) => self.fold_lost(record, lost, to)?,
            Body::EndsCorrected(corrected) => self.fold_ends_corrected(record, corrected)?,
            Body::ClaimEndCorrected(corrected) => self.fold_claim_end_corrected(record, corrected)?,
            Body::LossSettled(settled) => self.fold_loss_settled(settled)?,
            Body::NodeReturned(n) => self.set_node_state(n.node, stamp.into(), |node| node.lost = false, to)?,
            Body::NodeCondition(c) => {
                let condition = Condition { load: c.load, errors: c.errors, throttled: c.throttled };
                self.fold_condition(c.node, condition, stamp, to)?;
                self.note_sign_of_life(c.node, stamp)?;
            }
            Body::NodesClaimed(claimed) => self.fold_claimed(record, claimed, to)?,
            Body::NodesReleased(released) => self.fold_nodes_released(record, released, to)?,
            Body::NodeWiped(wiped) => {
                self.fold_wiped(wiped.node, stamp, to)?;
                self.note_sign_of_life(wiped.node, stamp)?;
            }
            Body::NodeQuarantined(quarantined) => self.fold_quarantined(record, quarantined, to)?,
            Body::QuarantineCleared(cleared) => self.fold_quarantine_cleared(cleared.node, stamp, to)?,
            Body::AgentRegistered(registered) => {
                self.fold_agent(registered)?;
                self.note_sign_of_life(registered.node, stamp)?;
            }
            Body::NodeEmpty(empty) => {
                entry_mut(&mut self.nodes, empty.node.0).ok_or("no such node")?.empty_noted = Some(empty.since);
            }
            Body::AgentDetached(detached) => {
                entry_mut(&mut self.nodes, detached.node.0).ok_or("no such node")?.agent = None;
                self.drop_report(detached.node, stamp, to)?;
            }
            Body::TokenIssued(issued) => self.fold_token(issued, stamp)?,
            Body::TokenRevoked(revoked) => self.tokens.remove(revoked.token)?,
            Body::RateCardPut(put) => {
                self.fold_rate_card(put, stamp)?;
                self.prices_changed(to);
            }
            Body::RateCardDeleted(gone) => {
                self.fold_rate_card_deleted(gone.card, stamp)?;
                self.prices_changed(to);
            }
            Body::CeilingPut(put) => self.fold_ceiling(put, stamp, to)?,
            Body::CeilingDeleted(gone) => {
                self.fold_ceiling_deleted(CeilingScope { project: gone.project, app_instance: gone.app_instance }, to)?;
            }
            Body::ChargePolicyPut(put) => self.fold_charge_policy(put, stamp)?,
            Body::Granted(granted) => self.fold_grant(record, granted, to)?,
            Body::Renewed(renewed) => {
                for renewal in &renewed.renewals {
                    let slot = self.held_slot(renewal.lease)?;
                    let lease = self.leases.at_mut(slot);
                    let before = std::mem::replace(&mut lease.expires_at, renewal.expires_at);
                    if renewal.activity.is_some() {
                        lease.reported_to = stamp;
                    }
                    if !self.ceilings.is_empty() || !self.prepaids.is_empty() {
                        let lease = lease.clone();
                        self.reserve_cost(&lease, to);
                        self.extend_prepaid(&lease, before, to);
                    }
                    to.lease_due(self, slot);
                }
            }
            Body::ActivityReported(reported) => {
                for lease in reported.leases.leases() {
                    let slot = self.leases.slot(lease).ok_or("no such lease")?;
                    self.leases.at_mut(slot).reported_to = stamp;
                }
            }
            Body::Released(r) => self.fold_ends(r.leases.leases(), record, Phase::Releasing, r.closed, to)?,
            Body::Expired(e) => self.fold_ends(e.leases.0.iter().copied(), record, Phase::Expired, e.closed, to)?,
            Body::TeardownStarted(t) => {
                self.fold_ends(t.leases.0.iter().copied(), record, Phase::TearingDown, t.closed, to)?;
            }
            Body::Revoked(revoked) => {
                for lease in &revoked.leases.0 {
                    self.fold_revoked(*lease, record, revoked.grace, to)?;
                }
            }
            Body::TornDown(torn) => {
                self.fold_closed(&torn.leases.0, stamp, Phase::is_tearing_down, to)?;
                // Where teardowns need no confirmation, the record says nothing about the node.
                if self.node(torn.node).is_some_and(|node| node.teardown == TeardownMode::Confirmed) {
                    self.note_sign_of_life(torn.node, stamp)?;
                }
            }
            Body::Fenced(fenced) => self.fold_fences(&fenced.leases.0, (stamp, record.effective_at), to)?,
            Body::Unfenced(unfenced) => {
                self.fold_closed(&unfenced.leases.0, stamp, |phase| phase == Phase::Fenced, to)?
            }
            Body::PreemptionDecided(decided) => self.fold_preemption(record, decided, to)?,
            Body::ReservationDropped(dropped) => self.fold_reservation_dropped(dropped.allocation, to)?,
            Body::ReservationTakenOver(taken) => self.fold_taken_over(record, taken, to)?,
            Body::HeadProtected(protected) => self.fold_protected(protected, to)?,
            Body::AllocationSubmitted(submitted) => self.fold_submitted(record, submitted, to)?,
            Body::AllocationPlaced(placed) => self.fold_placed(record, placed, to)?,
            Body::AllocationStarted(started) => {
                self.fold_allocation_state(started.allocation, AllocationState::Running)?;
            }
            Body::AllocationCheckpointing(begun) => {
                self.fold_allocation_state(begun.allocation, AllocationState::Checkpointing)?;
            }
            Body::AllocationCheckpointed(done) => self.fold_checkpointed(done.allocation)?,
            Body::AllocationSuspended(suspended) => {
                self.fold_back_in_queue(suspended.allocation, AllocationState::Suspended, stamp, to)?;
            }
            Body::AllocationRequeued(requeued) => {
                self.fold_back_in_queue(requeued.allocation, AllocationState::Pending, stamp, to)?;
                // Counted since the limit exists.
                if self.rules_version.is_none_or(|version| version >= 4) {
                    self.allocations.get_mut(requeued.allocation).ok_or("no such allocation")?.requeues += 1;
                }
            }
            Body::AllocationCompleted(done) => {
                self.fold_over(done.allocation, AllocationState::Completed, stamp, to)?
            }
            Body::AllocationFailed(failed) => self.fold_over(failed.allocation, AllocationState::Failed, stamp, to)?,
            Body::AllocationHoldSet(held) => self.fold_hold_set(record, held, to)?,
            Body::AllocationHoldCleared(held) => self.fold_hold_cleared(held.allocation, to)?,
            Body::AllocationChanged(changed) => self.fold_changed(changed.allocation, &changed.spec, to)?,
            Body::AllocationCancelled(gone) => {
                self.fold_over(gone.allocation, AllocationState::Cancelled, stamp, to)?
            }
            Body::LedgerOpened(opened) => self.fold_ledger_opened(opened)?,
            Body::LedgerPosted(posted) => self.fold_posted(record, posted, to)?,
            Body::HourSettled(settled) => self.fold_hour_settled(settled, to)?,
            Body::LedgerCorrected(corrected) => self.fold_corrected(record, corrected, to)?,
            Body::LedgerAdjusted(adjusted) => self.fold_adjusted(record, adjusted, to)?,
            Body::LedgerDisputed(disputed) => self.fold_disputed(disputed)?,
            Body::PeriodClosing(closing) => self.fold_period_closing(record, closing)?,
            Body::InvoiceIssued(invoice) => self.fold_invoice(record, invoice)?,
            Body::PeriodStated(stated) => self.fold_period_stated(record, stated)?,
            Body::PeriodClosed(closed) => self.fold_period_closed(closed)?,
            Body::PaymentRecorded(payment) => self.fold_payment(record, payment)?,
            Body::TaxRatePut(put) => self.fold_tax_rate(put),
            Body::PrepaidToppedUp(topped) => self.fold_topped_up(record, topped, to)?,
            Body::PrepaidPolicyPut(put) => self.fold_prepaid_policy(record, put, to)?,
            Body::PrepaidLapsed(lapsed) => self.fold_lapsed(record, lapsed, to)?,
            Body::PrepaidChanged(changed) => self.fold_prepaid_changed(record, changed, to)?,
            Body::PrepaidApplied(applied) => self.fold_applied(record, applied, to)?,
            Body::UsageUnitPut(put) => self.fold_usage_unit(put)?,
            Body::UnitPricePut(put) => self.fold_unit_price(put)?,
            Body::AppTypePut(put) => self.fold_app_type(put)?,
            Body::AppTypeDeleted(gone) => self.fold_app_type_deleted(gone.app_type)?,
            Body::AppInstancePut(put) => self.fold_app_instance(put)?,
            Body::AppInstanceDeleted(gone) => self.fold_app_instance_deleted(gone.app_instance, to)?,
            Body::AttachmentMade(made) => self.fold_attachment(record, made)?,
            Body::AttachmentEnded(ended) => self.fold_attachment_ended(ended.attachment, stamp)?,
            Body::UsageRecorded(recorded) => self.fold_usage(record, recorded, to)?,
            Body::UsageRefused(refused) => self.fold_usage_refused(record, refused)?,
            Body::EntitlementPut(put) => self.fold_entitlement(put)?,
            Body::EntitlementDeleted(gone) => self.fold_entitlement_deleted(gone.of)?,
            Body::EntitlementWarned(warned) => self.fold_entitlement_warned(warned)?,
            Body::AppPolicyPut(put) => self.fold_app_policy(put)?,
            Body::SharingPut(put) => self.fold_sharing_policy(put)?,
            Body::LedgerShared(shared) => self.fold_shared(record, shared, to)?,
            Body::SinkPut(put) => self.fold_sink(record, put)?,
            Body::SinkDeleted(gone) => self.fold_sink_deleted(gone.sink)?,
            Body::SinkDisabled(disabled) => self.fold_sink_disabled(disabled)?,
            // What was delivered is no part of the state.
            Body::AccountingReconciled(_) => {}
            Body::Unknown { .. } => unreachable!("fold refuses unknown kinds"),
        }
        Ok(())
    }

    fn prices_changed(&mut self, to: &mut impl Follower) {
        if !self.prepaids.is_empty() {
            self.reprice_prepaid(to);
        }
        if !self.ceilings.is_empty() || !self.prepaids.is_empty() {
            to.recheck_queue();
        }
    }

    fn fold_revoked(&mut self, lease: LeaseNo, record: &Record, grace: Span, to: &mut impl Follower) -> Folded {
        let stamp = record.stamp;
        let slot = self.held_slot(lease)?;
        let lease = self.leases.at(slot).clone();
        if lease.is_evictable() {
            to.evictable(&lease, false);
            to.evictable_changed(self, lease.node);
        }
        to.queue_affected(self);
        if lease.of.is_some() {
            self.follow_revoked(&lease, record.reason, to);
        }
        if lease.phase == Phase::Active {
            self.count_ending(lease.node, true);
        }
        let lease = self.leases.at_mut(slot);
        lease.phase = Phase::Revoking;
        lease.grace = grace;
        // Grace never extends past the deadline (SEMANTICS 2).
        lease.limit_at = stamp.saturating_add(grace).min(lease.expires_at);
        to.lease_due(self, slot);
        Ok(())
    }

    fn fold_grant(&mut self, record: &Record, granted: &Granted, to: &mut impl Follower) -> Folded {
        if granted.first_lease.0 != self.next_lease {
            return Err("the lease number is out of order");
        }
        let tenant = record.identity.tenant.ok_or("a grant without a tenant")?;
        let project = record.identity.project.ok_or("a grant without a project")?;
        let owner = entry_mut(&mut self.tenants, tenant.0).ok_or("no such tenant")?;
        let members = u32::try_from(granted.members.len()).expect("at most sixteen");
        owner.leases += members;
        let tag = owner.tag;
        entry_mut(&mut self.projects, project.0).ok_or("no such project")?.leases += members;
        let lends = granted.rules_version >= PAYERS_COUNT;
        let payer = granted.source_project.filter(|_| lends).unwrap_or(project);
        if payer != project {
            entry_mut(&mut self.projects, payer.0).ok_or("no such project")?.leases += members;
        }
        let expires_at = record.stamp.checked_add(granted.ttl).ok_or("the deadline is later than any instant")?;
        let (request, given) = match granted.correlation_of(record.sequence) {
            Correlation::Given(id) => (record.sequence, Some(id)),
            Correlation::Derived(sequence) => (sequence, None),
        };
        let named = Named { workload: record.identity.workload.clone(), correlation: given };
        let named = (named != Named::default()).then(|| Arc::new(named));
        let counts_cores = self.counts_cores(granted.pool);
        for (i, member) in (0u64..).zip(&granted.members) {
            let mut lease = Lease {
                number: LeaseNo(granted.first_lease.0 + i),
                gang: granted.first_lease,
                gang_len: u8::try_from(granted.members.len()).expect("at most sixteen"),
                tenant,
                project,
                payer,
                user: record.identity.user,
                of: None,
                request,
                named: named.clone(),
                node: granted.node,
                pool: granted.pool,
                class: member.class,
                quanta: member.quanta,
                devices: member.devices,
                granted_at: record.stamp,
                expires_at,
                ended_at: Instant(0),
                limit_at: Instant(0),
                grace: Span::ZERO,
                reported_to: record.stamp,
                tag,
                phase: Phase::Active,
                priority: granted.priority,
                sensitive: granted.sensitive,
                over_soft: !granted.over_soft.is_empty(),
                counts_cores,
                crowd: false,
                node_next: NONE,
                node_prev: NONE,
            };
            self.join_allocation(granted.allocation, &mut lease);
            self.occupy(&lease, to)?;
            self.mark_leased(lease.class);
            self.meter_begin(&lease);
            self.count_cost(&lease, granted, to);
            self.begin_prepaid(&lease, to);
            self.count_in_quotas(&lease, true, record.stamp, to);
            self.follow_lifetime(&lease);
            let slot = self.leases.insert(lease);
            self.chain_to_node(slot);
            to.lease_granted(self, slot);
        }
        to.node_changed(self, granted.node);
        self.next_lease += granted.members.len() as u64;
        to.taken(self, tenant);
        Ok(())
    }
}
