//! Deciding: a request and an instant in, records out. A decision is applied at once, so that the next request sees it.
//! Readers have a state of their own, because this one is ahead of the disk.
//!
//! Beside the state, which only records change, an engine has what only deciding needs: timers, the placement index,
//! the scheduler and an index of idempotency keys. They follow the fold, are not in snapshots, and can be rebuilt from any state.

mod access;
pub(crate) mod admission;
mod agents;
mod allocations;
mod apps;
mod ceilings;
mod custody;
pub(crate) mod dispatch;
mod endings;
mod entitlements;
pub(crate) mod guard;
mod inventory;
mod ledger;
mod losses;
mod pending;
mod placement_preview;
mod prepaid;
mod quotas;
pub(crate) mod quote;
mod rates;
mod renewal;
mod sharing;
mod sinks;
mod statements;
mod tenancy;
mod timers;
mod usage;
mod windows;

pub(crate) use access::TOO_MANY_APPS;

use crate::allocation::Allocation;
use crate::command::{Command, Request, RequestKey, payload_hash};
use crate::follow::Follower;
use crate::idempotency::{KEY_LIMITS, KeyIndex, RememberedKey};
use crate::lease::Lease;
use crate::placement::Placement;
use crate::queue::ShapeKey;
use crate::refusal::Refusal;
use crate::scheduler::Scheduler;
use crate::sealed::{Sealed, Sequences};
use crate::state::State;
use crate::timer::{Entry, Timers};
use crate::usage::UsageIndex;
use crate::view::View;
use leasehold_model::body::{self, Body, Genesis, Started, UsageKey};
use leasehold_model::limits::LEASES_PER_RECORD_MAX;
use leasehold_model::{AllocationNo, Batch, Identity, Instant, LeaseNo, NodeNo, Record, TenantNo};
use smallvec::SmallVec;

/// The engine: a state, and the rules that make records.
#[derive(Clone, Debug, Default)]
pub struct Engine {
    state: State,
    timers: Timers,
    placement: Placement,
    scheduler: Scheduler,
    keys: KeyIndex,
    usage_ids: UsageIndex,
}

/// The records of one command while it is being decided.
struct Draft<'a> {
    engine: &'a mut Engine,
    out: &'a mut Batch,
    now: Instant,
    identity: &'a Identity,
    key: Option<&'a RequestKey>,
    first: u64,
    count: u32,
}

impl Draft<'_> {
    /// Adds a record to this command and applies it. The first record carries the idempotency key.
    fn emit(&mut self, tenant: Option<TenantNo>, body: impl Into<Body>, shape: impl FnOnce(&mut Record)) {
        let key = self.key.take();
        let mut record = Record {
            sequence: self.engine.state.size(),
            stamp: self.now,
            effective_at: self.now,
            identity: Identity { tenant: tenant.or(self.identity.tenant), ..self.identity.clone() },
            reason: None,
            idempotency: key.map(|key| key.sealed),
            hcl_entry: None,
            dra_claim_id: None,
            signers: SmallVec::new(),
            continues: self.count > 0,
            body: body.into(),
        };
        shape(&mut record);
        self.engine.seal(&record, key.map(|key| key.scope), self.out);
        self.count += 1;
    }

    fn plain(&mut self, body: impl Into<Body>) {
        self.emit(None, body, |_| {});
    }
}

impl Engine {
    /// An engine that continues from a state, for example from a snapshot or a replay.
    pub fn new(state: State) -> Self {
        let (timers, placement, scheduler) = (Timers::of(&state), Placement::of(&state), Scheduler::of(&state));
        let keys = KeyIndex::of(&state.idempotency_keys);
        let usage_ids = UsageIndex::of(&state.usage);
        Self { state, timers, placement, scheduler, keys, usage_ids }
    }

    /// The deciding state. It is ahead of the disk, so it is for deciding and for tests, not for readers.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The deciding state with the placement index.
    pub fn view(&self) -> View<'_> {
        self.placement.view(&self.state)
    }

    /// The earliest instant at which something may come due. It can be too early but is never too late.
    pub fn next_due(&self) -> Option<Instant> {
        if self.scheduler.is_due(&self.state) {
            return Some(self.state.last_stamp());
        }
        self.timers.peek().map(Entry::due)
    }

    /// Loads what the next requests will need into the CPU cache. Changes nothing.
    pub fn warm<'r>(&self, requests: impl Iterator<Item = &'r Request> + Clone) {
        self.state.warm_requests(&self.timers, &self.placement.evictables, &self.keys, requests);
    }

    fn seal(&mut self, record: &Record, scope: Option<u64>, out: &mut Batch) {
        out.push(record);
        let Self { state, timers, placement, scheduler, keys, usage_ids } = self;
        let folded = state.fold(record, scope, &mut Beside { timers, placement, scheduler, keys, usage_ids });
        folded.expect("the fold accepts every record that the engine makes");
    }

    /// The first record of a journal.
    pub fn genesis(&mut self, now: Instant, genesis: Genesis, out: &mut Batch) {
        assert_eq!(self.state.size(), 0, "genesis is the first record");
        let record = Record::new(0, now, genesis);
        self.seal(&record, None, out);
    }

    /// The first record of a process that becomes the writer of the journal.
    pub fn started(&mut self, now: Instant, started: Started, out: &mut Batch) {
        let record = Record::new(self.state.size(), now, started);
        self.seal(&record, None, out);
    }

    /// What a start found out about the journal itself, sealed before its `started` record.
    pub fn recovered(&mut self, now: Instant, found: impl Into<Body>, out: &mut Batch) {
        let found = found.into();
        assert!(
            matches!(found, Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_)),
            "{} is decided elsewhere",
            found.word()
        );
        let record = Record::new(self.state.size(), now, found);
        self.seal(&record, None, out);
    }

    /// Decides one request at `now`. Every timer due by then must have been applied ([`Self::advance`]).
    pub fn decide(&mut self, now: Instant, request: &Request, out: &mut Batch) -> Result<Sealed<Sequences>, Refusal> {
        assert!(now >= self.state.last_stamp(), "stamps never decrease");
        if let Some(token) = request.identity.token
            && !self.state.token(token).is_some_and(|found| found.is_live(&self.state, now))
        {
            return Err(Refusal::TokenNotLive { token });
        }
        if let Some(repeated) = self.check_key(now, request)? {
            return Ok(repeated);
        }
        if let Command::RecordUsage(command) = &request.command
            && let Some(first) = self.recorded_before(command)?
        {
            return Ok(Sealed::again(Sequences { first, count: 0 }));
        }
        let first = self.state.size();
        let (identity, key) = (&request.identity, request.key.as_ref());
        let mut draft = Draft { engine: self, out, now, identity, key, first, count: 0 };
        let done = draft.command(&request.command);
        debug_assert!(done.is_ok() || draft.count == 0, "a command that is refused has no records");
        let refused = done?;
        draft.note_prepaid();
        assert!(draft.count > 0, "an accepted command has at least one record");
        let records = Sequences { first: draft.first, count: draft.count };
        Ok(Sealed { records, refused, repeated: false })
    }

    /// Looks up the idempotency key: a repeated request gets its earlier answer, one with another payload is refused.
    fn check_key(&self, now: Instant, request: &Request) -> Result<Option<Sealed<Sequences>>, Refusal> {
        let Some(key) = &request.key else { return Ok(None) };
        let owner = key.sealed.owner;
        if let Some(tenant) = owner.filter(|tenant| self.state.tenant(*tenant).is_none()) {
            return Err(Refusal::UnknownTenant { tenant });
        }
        let remembered = &self.state.idempotency_keys;
        let window = self.state.settings.idempotency_window;
        match self.keys.find(remembered, key.scope, now, window) {
            Some(found) if found.payload == payload_hash(&key.sealed.payload) => {
                Ok(Some(Sealed::again(Sequences { first: found.sequence(), count: 0 })))
            }
            Some(found) => Err(Refusal::IdempotencyMismatch { sequence: found.sequence() }),
            None if !request.command.is_always_accepted() && remembered.is_full(owner, now, window, KEY_LIMITS) => {
                Err(Refusal::TooManyIdempotencyKeys { limit: KEY_LIMITS.sure })
            }
            None => Ok(None),
        }
    }
}

/// What the engine keeps beside its state.
struct Beside<'a> {
    timers: &'a mut Timers,
    placement: &'a mut Placement,
    scheduler: &'a mut Scheduler,
    keys: &'a mut KeyIndex,
    usage_ids: &'a mut UsageIndex,
}

impl Follower for Beside<'_> {
    fn lease_granted(&mut self, state: &State, slot: u32) {
        self.timers.begin(state, slot);
    }
    fn lease_due(&mut self, state: &State, slot: u32) {
        self.timers.arm(state, slot);
        self.scheduler.deadline_moved(state.leases.at(slot).priority);
    }
    fn lease_closed(&mut self, state: &State) {
        self.timers.sweep(state);
    }
    fn limits_restarted(&mut self, state: &State) {
        self.timers.reset(state);
    }
    fn comes_due(&mut self, entry: Entry) {
        self.timers.push(entry);
    }
    fn prepaid_touched(&mut self, account: u32) {
        self.timers.touched.insert(account);
    }
    fn key_added(&mut self, slot: u32, key: &RememberedKey) {
        self.keys.add(slot, key);
    }
    fn key_forgotten(&mut self, slot: u32, key: &RememberedKey) {
        self.keys.remove(slot, key);
    }
    fn usage_id_added(&mut self, place: u32, key: UsageKey) {
        self.usage_ids.add(place, key);
    }
    fn usage_id_forgotten(&mut self, place: u32, key: UsageKey) {
        self.usage_ids.remove(place, key);
    }
    fn node_put(&mut self, state: &State, node: NodeNo) {
        self.placement.put(state, node);
    }
    fn node_changed(&mut self, state: &State, node: NodeNo) {
        self.placement.change(state, node);
    }
    fn evictable(&mut self, lease: &Lease, added: bool) {
        self.placement.count_evictable(lease, added);
    }
    fn evictable_changed(&mut self, _: &State, node: NodeNo) {
        self.placement.change_evictable(node);
    }
    fn waits(&mut self, allocation: AllocationNo) {
        self.scheduler.arrive(allocation);
    }
    fn waits_no_longer(&mut self, key: &ShapeKey, allocation: &Allocation) {
        self.scheduler.step_out(key, allocation);
    }
    fn regrouped(&mut self, from: &ShapeKey, to: &ShapeKey, allocation: &Allocation) {
        self.scheduler.regroup(from, to, allocation);
    }
    fn attempt_ends(&mut self, allocation: AllocationNo) {
        self.scheduler.unsettled.insert(allocation);
    }
    fn attempt_over(&mut self, allocation: AllocationNo) {
        self.scheduler.unsettled.remove(&allocation);
    }
    fn freed(&mut self, state: &State, node: NodeNo) {
        self.scheduler.free(state, node);
    }
    fn taken(&mut self, state: &State, by: TenantNo) {
        self.scheduler.take(state, by);
    }
    fn headroom(&mut self, state: &State, tenant: TenantNo) {
        self.scheduler.headroom(state, tenant);
    }
    fn queue_affected(&mut self, state: &State) {
        self.scheduler.queue_affected(state);
    }
    fn recheck_queue(&mut self) {
        self.scheduler.recheck_all = true;
    }
    fn standings_changed(&mut self) {
        self.scheduler.forget_standings();
    }
}

/// A list that usually has one element, so that most commands do not allocate.
type Few<T> = SmallVec<[T; 1]>;

/// The leases that a command on several leases left out, with the reason for each; or why it is refused altogether.
type Partial = Result<Vec<(LeaseNo, Refusal)>, Refusal>;

impl Draft<'_> {
    fn command(&mut self, command: &Command) -> Partial {
        let done = |()| Vec::new();
        match command {
            Command::Request(request) => self.request_lease(request).map(done),
            Command::Renew(renewals) => self.renew(renewals),
            Command::Release(releases) => self.release(releases),
            Command::Revoke(revoke) => self.revoke(revoke),
            Command::Ready(leases) => self.ready(leases),
            Command::ConfirmTeardown(confirm) => self.confirm_teardown(confirm),
            Command::Unfence(unfence) => self.unfence(unfence),
            Command::ReportActivity(reports) => self.report_activity(reports),
            Command::SubmitAllocation(submit) => self.submit_allocation(submit).map(done),
            Command::StartAllocation(number) => self.start_allocation(*number).map(done),
            Command::BeginCheckpoint(number) => self.begin_checkpoint(*number).map(done),
            Command::ReportCheckpoint(report) => self.report_checkpoint(report).map(done),
            Command::CompleteAllocation(complete) => self.complete_allocation(complete).map(done),
            Command::CancelAllocation(number) => self.cancel_allocation(*number).map(done),
            Command::FailStart(failed) => self.fail_start(failed).map(done),
            Command::HoldAllocation(hold) => self.hold_allocation(hold).map(done),
            Command::ReleaseHold(number) => self.release_hold(*number).map(done),
            Command::ChangeAllocation(change) => self.change_allocation(change).map(done),
            Command::PutTenant(put) => self.put_tenant(put).map(done),
            Command::UpdateTenant(update) => self.update_tenant(update).map(done),
            Command::DeleteTenant(tenant) => self.delete_tenant(*tenant).map(done),
            Command::PutProject(put) => self.put_project(put).map(done),
            Command::SetPoolAccess(set) => self.set_pool_access(set).map(done),
            Command::DeleteProject(project) => self.delete_project(*project).map(done),
            Command::PutUser(put) => self.put_user(put).map(done),
            Command::DeleteUser(user) => self.delete_user(*user).map(done),
            Command::PutQuota(put) => self.put_quota(put).map(done),
            Command::DeleteQuota(quota) => self.delete_quota(*quota).map(done),
            Command::PutRateCard(put) => self.put_rate_card(put).map(done),
            Command::DeleteRateCard(card) => self.delete_rate_card(*card).map(done),
            Command::PutChargePolicy(put) => self.put_charge_policy(put).map(done),
            Command::PutCeiling(put) => self.put_ceiling(put).map(done),
            Command::DeleteCeiling(gone) => self.delete_ceiling(gone).map(done),
            Command::PutPool(put) => self.put_pool(put).map(done),
            Command::DeletePool(pool) => self.delete_pool(*pool).map(done),
            Command::PutClass(put) => self.put_class(put).map(done),
            Command::PutNode(put) => self.put_node(put).map(done),
            Command::DeleteNode(node) => self.delete_node(*node).map(done),
            Command::DrainNode(drain) => self.drain_node(drain).map(done),
            Command::ResumeNode(resume) => self.resume_node(resume).map(done),
            Command::LoseNode(lost) => self.lose_node(lost).map(done),
            Command::SettleLoss(settle) => self.settle_loss(settle).map(done),
            Command::ReturnNode(node) => self.return_node(*node).map(done),
            Command::RegisterAgent(register) => self.register_agent(register).map(done),
            Command::ReportCondition(report) => self.report_condition(report).map(done),
            Command::DetachAgent(node) => self.detach_agent(*node).map(done),
            Command::ClaimNodes(claim) => self.claim_nodes(claim, false).map(done),
            Command::ClaimForUser(claim) => self.claim_nodes(claim, true).map(done),
            Command::ReleaseNodes(nodes) => self.release_nodes(nodes).map(done),
            Command::ReportWipe(report) => self.report_wipe(report).map(done),
            Command::ClearQuarantine(node) => self.clear_quarantine(*node).map(done),
            Command::ReserveNodes(reserve) => self.reserve_nodes(reserve).map(done),
            Command::UnreserveNodes(window) => self.unreserve_nodes(*window).map(done),
            Command::NoteEmptyNode(note) => self.note_empty_node(note).map(done),
            Command::IssueToken(issue) => self.issue_token(issue).map(done),
            Command::RevokeToken(token) => self.revoke_token(*token).map(done),
            Command::OpenLedger(open) => self.start_ledger(open).map(done),
            Command::PostUsage(post) => self.post_usage(post).map(done),
            Command::SettleHour(settle) => self.settle_hour(settle).map(done),
            Command::CorrectEntry(correct) => self.correct_entry(correct).map(done),
            Command::AdjustLedger(adjust) => self.adjust_ledger(adjust).map(done),
            Command::DisputeEntry(dispute) => self.dispute_entry(dispute).map(done),
            Command::ClosePeriod(month) => self.close_period(*month).map(done),
            Command::IssueInvoice(issue) => self.issue_invoice(issue).map(done),
            Command::StatePeriod(state) => self.state_period(state).map(done),
            Command::FinishPeriod(month) => self.finish_period(*month).map(done),
            Command::RecordPayment(payment) => self.record_payment(payment).map(done),
            Command::PutTaxRate(put) => self.put_tax_rate(put).map(done),
            Command::TopUp(top) => self.top_up(top).map(done),
            Command::PutPrepaidPolicy(put) => self.put_prepaid_policy(put).map(done),
            Command::EndCredit(end) => self.end_credit(end).map(done),
            Command::PutUsageUnit(put) => self.put_usage_unit(put).map(done),
            Command::PutUnitPrice(put) => self.put_unit_price(put).map(done),
            Command::PutAppType(put) => self.put_app_type(put).map(done),
            Command::DeleteAppType(app_type) => self.delete_app_type(*app_type).map(done),
            Command::PutAppInstance(put) => self.put_app_instance(put).map(done),
            Command::DeleteAppInstance(app_instance) => self.delete_app_instance(*app_instance).map(done),
            Command::MakeAttachment(make) => self.make_attachment(make).map(done),
            Command::EndAttachment(attachment) => self.end_attachment(*attachment).map(done),
            Command::RecordUsage(record) => self.record_usage(record).map(done),
            Command::RecordUsageTogether(records) => self.record_usage_together(records).map(done),
            Command::PutEntitlement(put) => self.put_entitlement(put).map(done),
            Command::DeleteEntitlement(of) => self.delete_entitlement(*of).map(done),
            Command::PutAppPolicy(put) => self.put_app_policy(put).map(done),
            Command::PutSharing(put) => self.put_sharing(put).map(done),
            Command::ShareCost(share) => self.share_cost(*share).map(done),
            Command::PutSink(put) => self.put_sink(put).map(done),
            Command::DeleteSink(sink) => self.delete_sink(*sink).map(done),
            Command::DisableSink(disable) => self.disable_sink(*disable).map(done),
            Command::RecordReconciliation(result) => self.record_reconciliation(result).map(done),
            Command::ChangeSettings(settings) => self.change_settings(settings).map(done),
            Command::RotateKey(rotate) => self.rotate_key(rotate.new_key).map(done),
            Command::Heartbeat(_) => {
                self.plain(body::Heartbeat {});
                Ok(Vec::new())
            }
            Command::NoticeClockJump(jump) => {
                self.plain(body::ClockJumped { wall_clock: jump.wall_clock });
                Ok(Vec::new())
            }
        }
    }

    fn state(&self) -> &State {
        &self.engine.state
    }

    fn view(&self) -> View<'_> {
        self.engine.view()
    }

    fn rotate_key(&mut self, new_key: [u8; 32]) -> Result<(), Refusal> {
        let old_key = self.state().public_key;
        if old_key == new_key {
            return Err(Refusal::SameKey);
        }
        self.emit(None, body::KeyRotated { old_key, new_key }, |record| {
            record.signers.push(old_key);
            record.signers.push(new_key);
        });
        Ok(())
    }
}

/// Sorts the leases of a command, and checks that there are not too many of them and none is named twice.
fn in_order<T: Clone>(items: &[T], lease: impl Fn(&T) -> LeaseNo) -> Result<Few<T>, Refusal> {
    if items.is_empty() {
        return Err(Refusal::NoLeases);
    }
    if items.len() > LEASES_PER_RECORD_MAX {
        return Err(Refusal::TooManyLeases { named: items.len(), limit: LEASES_PER_RECORD_MAX });
    }
    if let [one] = items {
        return Ok(Few::from_buf([one.clone()]));
    }
    let mut sorted: Few<T> = items.iter().cloned().collect();
    sorted.sort_by_key(&lease);
    match sorted.windows(2).find(|pair| lease(&pair[0]) == lease(&pair[1])) {
        Some(pair) => Err(Refusal::DuplicateLease { lease: lease(&pair[0]) }),
        None => Ok(sorted),
    }
}
