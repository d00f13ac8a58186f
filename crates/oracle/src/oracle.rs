//! The oracle: reads records in order, reports the first illegal one, and predicts answers.

use crate::acts::{Script, Sealing};
use crate::command::{Command, RememberedKeys, key_of};
use crate::due::applied_by;
use crate::ledger::Ledger;
use crate::queue::{Heads, minute_of};
use crate::request::{Expected, RequestFacts};
use crate::violation::{Broken, Checked, Violation, broken, demand, found};
use crate::world::World;
use leasehold_model::body::{Converted, Genesis, KeyRotated, SettingsChanged, Started};
use leasehold_model::limits::TTL_MAX;
use leasehold_model::{AllocationState, Amount, Body, FORMAT_VERSION, Instant, LeaseNo, RULES_VERSION, Record, Span};

/// The brute-force model. After a [`Violation`] it must not be used any more.
#[derive(Clone, Debug)]
pub struct Oracle {
    pub(crate) world: World,
    pub(crate) size: u64,
    pub(crate) last_stamp: Option<Instant>,
    key: Option<[u8; 32]>,
    format_version: u32,
    started: Option<(u64, u32)>,
    command: Command,
    remembered_keys: RememberedKeys,
}

impl Default for Oracle {
    fn default() -> Self {
        Self::new()
    }
}

impl Oracle {
    /// An oracle for a journal that records its settings before they matter. Until then the least strict settings
    /// apply; the idempotency window is the one of SEMANTICS 4.
    pub fn new() -> Self {
        Self::with_settings(SettingsChanged {
            ttl_max: TTL_MAX,
            grace_default: Span::from_secs(60),
            teardown_deadline: Span::from_secs(300),
            node_timeout: Span::from_secs(60),
            idempotency_window: Span::from_secs(24 * 3600),
        })
    }

    /// An oracle with the given settings before the first `settings.changed`.
    pub fn with_settings(settings: SettingsChanged) -> Self {
        Self {
            world: World::new(settings),
            size: 0,
            last_stamp: None,
            key: None,
            format_version: 0,
            started: None,
            command: Command::default(),
            remembered_keys: RememberedKeys::default(),
        }
    }

    /// Checks that the next record is legal after all earlier ones, then applies it.
    pub fn observe(&mut self, record: &Record) -> Result<(), Violation> {
        self.take(record, None).map_err(|broken| broken.at(record.sequence))
    }

    /// Like [`Self::observe`], for the record that answers a request: it must be exactly the expected answer, with
    /// node, devices, caps and causes.
    pub fn observe_with_request(&mut self, record: &Record, facts: &RequestFacts) -> Result<(), Violation> {
        self.take(record, Some(facts)).map_err(|broken| broken.at(record.sequence))
    }

    /// The expected answer to a request that is decided at `now`, after all timers that are due by then.
    pub fn expect_request(&self, facts: &RequestFacts, now: Instant) -> Expected {
        self.world.expect_request(facts, now)
    }

    /// Whether a ceiling refuses a renewal with these figures.
    pub fn stands_against(
        &self,
        lease: LeaseNo,
        requested: Amount,
        used: Amount,
        amount: Amount,
        now: Instant,
    ) -> bool {
        self.world.stands_against(lease, requested, used, amount, now)
    }

    /// What the records say about money.
    pub fn ledger(&self) -> &Ledger {
        &self.world.ledger
    }

    /// Checks, between commands, that the last command is complete and no timer is overdue.
    pub fn check_at_rest(&self, now: Instant) -> Result<(), Violation> {
        let settled = self.world.check_settled(&self.command);
        let timers = settled.and_then(|()| self.world.check_none_due(now));
        timers.and_then(|()| self.check_queue_at_rest(now)).map_err(|broken| broken.at(self.size))
    }

    fn take(&mut self, record: &Record, facts: Option<&RequestFacts>) -> Checked {
        self.check_head(record)?;
        self.world.begin_minute(record.stamp);
        if self.last_stamp != Some(record.stamp) {
            self.world.placed_in_run.clear();
        }
        if !record.continues {
            self.world.check_settled(&self.command)?;
            self.command = Command::default();
        }
        let is_timer = self.check_timers(record)?;
        if !record.continues && !is_timer && self.command.script.is_empty() {
            self.command.prepaid = Some((record.stamp, self.world.prepaid_states(record.stamp)));
        }
        if !record.continues {
            self.world.check_token(record)?;
        }
        let was_foretold = self.command.script.pop_front();
        match &was_foretold {
            Some(line) => line.check(record)?,
            None => self.check_effective(record, is_timer)?,
        }
        self.world.check_unforetold(record, was_foretold.is_some())?;
        self.remembered_keys.check(record, &self.command)?;
        if let Some(facts) = facts {
            self.world.check_answer(record, facts)?;
        }
        self.apply(record, is_timer, was_foretold.is_some())?;
        if is_timer {
            self.command.timer = Some(record.effective_at);
        }
        if let Some(key) = key_of(record) {
            self.command.key = Some(key);
        }
        let rules_version = self.started.map_or(RULES_VERSION, |(_, rules)| rules);
        self.remembered_keys.remember(record, self.world.settings.idempotency_window, rules_version);
        // While a gang is granted, the capacity that was reserved for it is not available to others.
        if self.command.script.is_empty() {
            self.world.fill_reservations();
        }
        self.world.follow_instances(record);
        self.world.follow_claims(record);
        self.world.follow_minutes(record, is_timer);
        self.world.follow_episodes(record.stamp);
        self.world.follow_overage(record.stamp);
        if let Body::QuotaPut(put) = &record.body {
            self.world.mark_again(put.quota);
        }
        if let Body::QuotaUntilReached(ended) = &record.body {
            self.world.mark_again(ended.quota);
        }
        self.world.follow_assurances(record);
        self.world.follow_protections(record);
        if moves_queue(record) || self.world.moves_money(record) || self.world.moves_victims(record) {
            self.world.looked = None;
        }
        self.size += 1;
        self.last_stamp = Some(record.stamp);
        Ok(())
    }

    /// SEMANTICS 2 and 6: no gaps, increasing stamps, no effective instant after the stamp.
    fn check_head(&self, record: &Record) -> Checked {
        demand!(record.sequence == self.size, "sequence", "{} where {} is next", record.sequence, self.size);
        let is_genesis = matches!(record.body, Body::Genesis(_));
        demand!(is_genesis == (self.size == 0), "genesis", "{} at {}", record.body.word(), record.sequence);
        if let Some(last) = self.last_stamp {
            demand!(record.stamp >= last, "stamp", "{} after {last}", record.stamp);
        }
        demand!(record.effective_at <= record.stamp, "effective", "{} after its stamp", record.effective_at);
        if record.continues {
            demand!(self.last_stamp == Some(record.stamp), "continues", "the previous record has another stamp");
        }
        Ok(())
    }

    /// Whether the record applies a timer. If so, it must be the next timer; if not, none may be due (SEMANTICS 2). A
    /// new process records its start first; timers that became due during the outage follow.
    fn check_timers(&mut self, record: &Record) -> Result<bool, Broken> {
        let of_lost_node = self.command.lost.is_some() && matches!(record.body, Body::TeardownStarted(_));
        let timer = self.world.prepaid_timer_of(record).or_else(|| applied_by(record));
        if let Some((kind, ids)) = timer.filter(|_| !of_lost_node) {
            self.world.check_timer(record, kind, &ids)?;
            self.command.timers_checked = false;
            return Ok(true);
        }
        // The new state of prepaid credit belongs to what changed it, also if that is a timer.
        if record.continues && matches!(record.body, Body::PrepaidChanged(_)) {
            return Ok(false);
        }
        if !record.continues && !matches!(record.body, Body::Genesis(_) | Body::Started(_)) {
            return self.check_acts(record).map(|()| false);
        }
        // Within a command only timers that it created can be due; they are applied after its last record.
        let waits = record.continues && (self.command.timers_checked || !self.command.script.is_empty());
        if !waits && !matches!(record.body, Body::Genesis(_) | Body::Started(_)) {
            self.world.check_none_due(record.stamp)?;
            self.command.timers_checked = true;
        }
        Ok(false)
    }

    /// Automatic records come after all timers that are due and before any command.
    fn check_acts(&mut self, record: &Record) -> Checked {
        self.world.check_none_due(record.stamp)?;
        match self.next_act(record.stamp) {
            // A move that became possible only by the passing of time may wait for the next minute.
            Some(script) if script[0].check(record).is_ok() || self.was_due_before() => {
                self.command.script = script.into();
            }
            _ => {
                self.world.placed_in_run.clear();
                if !self.is_scheduled(record.stamp) {
                    let before = self.last_stamp.unwrap_or(record.stamp);
                    let heads = self.world.look(record.stamp).or_else(|_| self.world.look(before)).ok();
                    self.world.give_assurances(heads.as_ref().unwrap_or(&Heads::new()), record.stamp);
                    self.world.looked = heads.map(|heads| (minute_of(record.stamp), heads));
                }
            }
        }
        self.command.timers_checked = true;
        Ok(())
    }

    /// Whether there was a scheduling pass in this minute and nothing has changed since.
    fn is_scheduled(&self, now: Instant) -> bool {
        self.world.looked.as_ref().is_some_and(|(minute, _)| *minute == minute_of(now))
    }

    fn next_act(&self, now: Instant) -> Option<Script> {
        if self.is_scheduled(now) { None } else { self.world.next_act(self.sealing(now)) }
    }

    /// Whether a move was due right after the last record.
    fn was_due_before(&self) -> bool {
        self.last_stamp.is_some_and(|last| self.world.next_act(self.sealing(last)).is_some())
    }

    /// Checks that no automatic record is due.
    fn check_queue_at_rest(&self, now: Instant) -> Checked {
        if let Some(script) = self.next_act(now).filter(|_| self.was_due_before()) {
            broken!("at-rest", "{:?} is due", script[0].body);
        }
        Ok(())
    }

    fn sealing(&self, now: Instant) -> Sealing {
        let rules_version = self.started.map_or(RULES_VERSION, |(_, rules)| rules);
        Sealing { now, rules_version, sequence: self.size }
    }

    /// Records take effect at their stamp. Only the leases of a lost node end before: when the node was last seen.
    fn check_effective(&self, record: &Record, is_timer: bool) -> Checked {
        let (at, stamp) = (record.effective_at, record.stamp);
        let legal = if is_timer {
            true
        } else if let Body::NodeLost(lost) = &record.body {
            at == stamp || at == lost.last_seen
        } else if let (Body::Revoked(_), Some((_, last_seen))) = (&record.body, self.command.lost) {
            at == stamp || at == last_seen
        } else if let (Body::TeardownStarted(_), Some((_, last_seen))) = (&record.body, self.command.lost) {
            at == last_seen
        } else if let Body::HourSettled(settled) = &record.body {
            at == settled.through
        } else if let Some(loss) = loss_corrected_by(record) {
            self.world.losses.get(&loss).is_some_and(|loss| at == loss.last_seen)
        } else if let Body::PrepaidChanged(_) = &record.body {
            at == self.command.timer.unwrap_or(stamp)
        } else {
            at == stamp
        };
        demand!(legal, "effective", "{} stamped {stamp} takes effect at {at}", record.body.word());
        Ok(())
    }

    fn apply(&mut self, record: &Record, is_timer: bool, was_foretold: bool) -> Checked {
        let sealing = Sealing { sequence: self.size + 1, ..self.sealing(record.stamp) };
        let (world, command) = (&mut self.world, &mut self.command);
        match &record.body {
            Body::Genesis(body) => self.genesis(body),
            Body::Started(body) => self.started(record, body),
            Body::Heartbeat(_) | Body::ClockJumped(_) | Body::TailResolved(_) | Body::Restored(_) => Ok(()),
            Body::Converted(body) => self.converted(body),
            Body::KeyRotated(body) => self.key_rotated(record, body),
            Body::SettingsChanged(body) => {
                world.settings_changed(body)?;
                self.remembered_keys.shorten(body.idempotency_window);
                Ok(())
            }
            Body::ClassPut(body) => world.class_put(body),
            Body::PoolPut(body) => world.pool_put(body),
            Body::PoolPlacementPut(body) => world.pool_placement_put(body),
            Body::PoolQueuePut(body) => world.pool_queue_put(body),
            Body::PlacementChanged(body) => world.placement_changed(body, record.stamp),
            Body::QueueChanged(body) => world.queue_changed(body),
            Body::HeadProtected(body) => {
                self.check_rules_version(body.rules_version)?;
                self.world.head_protected(body)
            }
            Body::PoolDeleted(body) => world.pool_deleted(body.pool),
            Body::TenantPut(body) => world.tenant_put(body),
            Body::TenantDeleted(body) => world.tenant_deleted(body.tenant),
            Body::ProjectPut(body) => world.project_put(body),
            Body::ProjectPoolPut(body) => world.project_pool_put(body),
            Body::ProjectDeleted(body) => world.project_deleted(body.project),
            Body::UserPut(body) => world.user_put(body),
            Body::UserDeleted(body) => world.user_deleted(body.user),
            Body::QuotaPut(body) => world.quota_put(body),
            Body::BudgetsPut(body) => world.budgets_put(body),
            Body::QuotaDeleted(body) => world.quota_deleted(body.quota),
            Body::BurstEnded(body) => world.burst_ended(body.quota),
            Body::QuotaUntilReached(body) => world.until_reached(body.quota),
            Body::WindowPut(body) => world.window_put(command, record, body),
            Body::WindowStarted(body) => world.window_started(command, record, body),
            Body::WindowEnded(body) => world.window_ended(command, record, body),
            Body::WindowAnnounced(_) => {
                demand!(was_foretold, "follows", "an announcement belongs to a new window");
                Ok(())
            }
            Body::NodePut(body) => world.node_put(body),
            Body::NodeDeleted(body) => world.node_deleted(body.node),
            Body::NodeDrained(body) => world.set_drained(body.node, true),
            Body::NodeResumed(body) => world.set_drained(body.node, false),
            Body::NodeLost(body) => {
                world.node_lost(record, body)?;
                command.lost = Some((body.node, body.last_seen));
                Ok(())
            }
            Body::NodeReturned(body) => world.node_returned(body.node),
            Body::EndsCorrected(body) => world.ends_corrected(command, record, body),
            Body::ClaimEndCorrected(body) => world.claim_end_corrected(record, body),
            Body::LossSettled(body) => world.loss_settled(body),
            Body::InvoiceIssued(body) => {
                world.check_all_shared()?;
                world.ledger.take(record)?;
                command.script = world.applications(record, body).into();
                Ok(())
            }
            Body::PrepaidToppedUp(body) => {
                world.ledger.take(record)?;
                world.topped_up(record, body)
            }
            Body::PrepaidPolicyPut(body) => {
                world.ledger.take(record)?;
                world.prepaid_policy_put(record, body)
            }
            Body::PrepaidLapsed(body) => {
                world.ledger.take(record)?;
                world.prepaid_lapsed(record, body)
            }
            Body::PrepaidChanged(body) => world.prepaid_changed(command, record, body),
            Body::PrepaidApplied(body) => {
                demand!(was_foretold, "follows", "credit is used by invoices only");
                world.ledger.take(record)?;
                world.prepaid_applied(record, body)
            }
            Body::UsageRecorded(body) => world.usage_recorded(command, record, body),
            Body::UsageRefused(body) => world.usage_refused(record, body),
            Body::EntitlementWarned(body) => world.entitlement_warned(command, record, body),
            Body::LedgerShared(body) => world.ledger_shared(command, record, body, was_foretold),
            Body::PeriodClosing(_) => {
                world.ledger.take(record)?;
                world.sharing_at_cut = world.sharing.clone();
                Ok(())
            }
            Body::PeriodClosed(_) => {
                world.check_all_shared()?;
                world.ledger.take(record)
            }
            leasehold_model::ledger_kinds!() => {
                world.ledger.take(record)?;
                world.follow_usage_postings(record);
                world.count_postings(record)
            }
            Body::NodeCondition(body) => world.node_condition(body, record.stamp),
            Body::SensitiveChanged(body) => world.sensitive_changed(body),
            Body::NodesClaimed(body) => world.nodes_claimed(command, record, body),
            Body::NodesReleased(body) => world.nodes_released(record, body),
            Body::NodeWiped(body) => world.node_wiped(record, body),
            Body::NodeQuarantined(body) => world.node_quarantined(record, body),
            Body::QuarantineCleared(body) => world.quarantine_cleared(body.node),
            Body::AgentRegistered(body) => world.agent_registered(body, record.stamp),
            Body::AgentDetached(body) => world.agent_detached(body.node, record.stamp),
            Body::NodeEmpty(body) => world.node_empty(record, body),
            Body::TokenIssued(body) => world.token_issued(record, body),
            Body::TokenRevoked(body) => world.token_revoked(record, body),
            Body::RateCardPut(body) => world.rate_card_put(record, body),
            Body::RateCardDeleted(body) => world.rate_card_deleted(record, body),
            Body::UsageUnitPut(body) => world.usage_unit_put(body),
            Body::UnitPricePut(body) => world.unit_price_put(record, body),
            Body::AppTypePut(body) => world.app_type_put(body),
            Body::AppTypeDeleted(body) => world.app_type_deleted(body),
            Body::AppInstancePut(body) => world.app_instance_put(record, body),
            Body::AppInstanceDeleted(body) => world.app_instance_deleted(record, body),
            Body::AttachmentMade(body) => world.attachment_made(record, body),
            Body::AttachmentEnded(body) => world.attachment_ended(command, record, body),
            Body::EntitlementPut(body) => world.entitlement_put(record, body),
            Body::EntitlementDeleted(body) => world.entitlement_deleted(record, body),
            Body::AppPolicyPut(body) => world.app_policy_put(record, body),
            Body::SharingPut(body) => world.sharing_put(record, body),
            Body::SinkPut(body) => world.sink_put(record, body),
            Body::SinkDeleted(body) => world.sink_deleted(record, body),
            Body::SinkDisabled(body) => world.sink_disabled(record, body),
            Body::AccountingReconciled(body) => world.reconciled(record, body),
            Body::CeilingPut(body) => world.ceiling_put(record, body),
            Body::CeilingDeleted(body) => world.ceiling_deleted(body),
            Body::ChargePolicyPut(body) => world.charge_policy_put(body, record.stamp),
            Body::Granted(body) => {
                self.check_rules_version(body.rules_version)?;
                match body.allocation.filter(|_| was_foretold) {
                    Some(of) => self.world.gang_granted(record, body, of),
                    None => self.world.granted(record, body),
                }
            }
            Body::Denied(body) => {
                self.check_rules_version(body.rules_version)?;
                self.world.denied(record, body)
            }
            Body::Renewed(body) => world.renewed(record, body),
            Body::Released(body) => world.released(command, record, body),
            Body::Expired(body) => world.expired(record, body),
            Body::Revoked(body) => world.revoked(command, record, body),
            Body::TeardownStarted(body) => world.teardown_started(command, record, body, is_timer),
            Body::TornDown(body) => world.torn_down(command, record, body),
            Body::Fenced(body) => world.fenced(record, body),
            Body::Unfenced(body) => world.unfenced(record, body),
            Body::ActivityReported(body) => world.reported(record, &body.leases.0),
            Body::Preempted(_) => broken!("unknown-kind", "this kind is never written"),
            Body::PreemptionDecided(body) => world.preempted(record, body),
            Body::ReservationTakenOver(body) => {
                self.check_rules_version(body.rules_version)?;
                self.world.taken_over(record, body)
            }
            Body::ReservationDropped(body) => world.reservation_dropped(record, body.allocation),
            Body::AllocationSubmitted(body) => world.submitted(command, record, body, sealing),
            Body::AllocationDenied(body) => {
                self.check_rules_version(body.rules_version)?;
                self.world.allocation_denied(record, body)
            }
            Body::AllocationPlaced(body) => world.placed(record, body),
            Body::AllocationStarted(body) => world.started_running(record, body.allocation),
            Body::AllocationCheckpointing(body) => world.checkpointing(record, body.allocation),
            Body::AllocationCheckpointed(body) => world.checkpointed(command, record, body),
            Body::AllocationSuspended(body) => world.back_in_queue(record, body.allocation, AllocationState::Suspended),
            Body::AllocationRequeued(body) => world.back_in_queue(record, body.allocation, AllocationState::Pending),
            Body::AllocationCompleted(body) => world.completed(record, body),
            Body::AllocationFailed(body) => world.failed(record, body, was_foretold),
            Body::AllocationCancelled(body) => world.cancelled(record, body.allocation),
            Body::AllocationHoldSet(body) => world.hold_set(record, body),
            Body::AllocationHoldCleared(body) => world.hold_cleared(record, body.allocation),
            Body::AllocationChanged(body) => world.changed(record, body, was_foretold),
            Body::Unknown { kind, .. } => broken!("unknown-kind", "kind {kind} is not known"),
        }
    }

    fn genesis(&mut self, genesis: &Genesis) -> Checked {
        let version = genesis.format_version;
        demand!((1..=FORMAT_VERSION).contains(&version), "genesis", "format version {version}");
        self.key = Some(genesis.public_key);
        self.format_version = version;
        Ok(())
    }

    fn converted(&mut self, converted: &Converted) -> Checked {
        let (before, version) = (self.format_version, converted.format_version);
        demand!(version > before && version <= FORMAT_VERSION, "converted", "format version {version} after {before}");
        self.format_version = version;
        Ok(())
    }

    fn started(&mut self, record: &Record, started: &Started) -> Checked {
        if let Some((epoch, _)) = self.started {
            demand!(started.epoch > epoch, "epoch", "{} after {epoch}", started.epoch);
        }
        if let Some(accepted) = &started.clock_accepted {
            let last = accepted.last_stamp;
            demand!(self.last_stamp == Some(last), "clock-accepted", "{last} was not the last stamp");
        }
        self.started = Some((started.epoch, started.rules_version));
        self.world.rules_version = Some(started.rules_version);
        if self.world.is_by_rules_4() {
            self.world.rules_4_since.get_or_insert((record.stamp, record.sequence));
        }
        self.world.restart_limits(record.stamp);
        let numbers: Vec<_> = self.world.nodes.keys().copied().collect();
        numbers.into_iter().for_each(|node| self.world.report_stands(node, record.stamp));
        Ok(())
    }

    fn key_rotated(&mut self, record: &Record, rotated: &KeyRotated) -> Checked {
        let key = found!(self.key, "key", "no key is in force");
        demand!(rotated.old_key == key, "key", "the old key is not the one in force");
        demand!(rotated.new_key != key, "key", "the new key is the old one");
        demand!(record.signers[..] == [rotated.old_key, rotated.new_key], "key", "not signed by both keys");
        self.key = Some(rotated.new_key);
        Ok(())
    }

    /// A decision contains the rules version of its process (SEMANTICS 6).
    fn check_rules_version(&self, version: u32) -> Checked {
        let known = self.started.is_none_or(|(_, rules)| rules == version);
        demand!(known, "rules-version", "{version} is not the version of the running process");
        Ok(())
    }
}

/// The loss whose consequences a record corrects; it takes effect when the node was last seen.
fn loss_corrected_by(record: &Record) -> Option<u64> {
    if let Body::EndsCorrected(body) = &record.body {
        Some(body.loss)
    } else if let Body::ClaimEndCorrected(body) = &record.body {
        Some(body.loss)
    } else {
        None
    }
}

/// Whether the record may change something for waiting allocations, so that a scheduling pass follows.
fn moves_queue(record: &Record) -> bool {
    !matches!(
        record.body,
        Body::Denied(_)
            | Body::AllocationDenied(_)
            | Body::AllocationStarted(_)
            | Body::AllocationCheckpointing(_)
            | Body::AllocationCheckpointed(_)
            | Body::Renewed(_)
            | Body::ActivityReported(_)
            | Body::Heartbeat(_)
            | Body::ClockJumped(_)
            | Body::Converted(_)
            | Body::TailResolved(_)
            | Body::Restored(_)
            | Body::KeyRotated(_)
            | Body::SensitiveChanged(_)
            | Body::ClassPut(_)
            | Body::PoolDeleted(_)
            | Body::TenantDeleted(_)
            | Body::ProjectPut(_)
            | Body::ProjectDeleted(_)
            | Body::UserPut(_)
            | Body::UserDeleted(_)
            | Body::NodeCondition(_)
            | Body::AgentRegistered(_)
            | Body::AgentDetached(_)
            | Body::NodeEmpty(_)
            | Body::TokenIssued(_)
            | Body::TokenRevoked(_)
            | Body::RateCardPut(_)
            | Body::RateCardDeleted(_)
            | Body::ChargePolicyPut(_)
            | Body::UsageUnitPut(_)
            | Body::UnitPricePut(_)
            | Body::AppTypePut(_)
            | Body::AppTypeDeleted(_)
            | Body::AppInstancePut(_)
            | Body::AttachmentMade(_)
            | Body::EntitlementPut(_)
            | Body::EntitlementDeleted(_)
            | Body::AppPolicyPut(_)
            | Body::SharingPut(_)
            | leasehold_model::sink_kinds!()
            | Body::EndsCorrected(_)
            | Body::ClaimEndCorrected(_)
            | Body::LossSettled(_)
            | leasehold_model::ledger_kinds!()
    )
}
