//! Applies records to the books. The outcomes are in the records; nothing is decided here.

use crate::facts::{Books, BooksError, Open, Phase};
use crate::ledger::Cut;
use crate::ledger::PrepaidEvent;
use crate::nodes::{NodeBook, QuantaState};
use crate::row::{End, Ending, Life, Rare, Renewals, Revocation, Row};
use crate::table::signed;
use crate::trail::{self, StepKind, TrailStep};
use leasehold_meter::Window;
use leasehold_model::body::{Body, Correlation, Granted};
use leasehold_model::{
    Activity, AllocationNo, AllocationState, AttemptEnd, ClassNo, Instant, LeaseNo, NodeNo, Reason, Record, Span,
};

type Followed = Result<(), &'static str>;

/// The rules version from which leases on claimed nodes are priced as guaranteed.
const PRICED_BY_CLAIM: u32 = 4;

fn end_of(reason: Reason) -> End {
    match reason {
        Reason::Preempted { .. } => End::Preempted,
        Reason::NodeLost => End::NodeLost,
        _ => End::Revoked,
    }
}

impl Books {
    /// Applies the next record. After an error the books must be discarded.
    pub fn apply(&mut self, record: &Record) -> Result<(), BooksError> {
        let sequence = record.sequence;
        if sequence != self.cursor {
            return Err(BooksError::Inconsistent { sequence, what: "it is not the next record" });
        }
        self.index_correlation(record);
        let followed = self.follow_body(record).and_then(|()| self.follow_reservations(record));
        followed.map_err(|what| BooksError::Inconsistent { sequence, what })?;
        self.follow_names(record);
        self.pass_deadlines(record.stamp);
        // Applying a record can read from the file, which may be damaged.
        self.sound(())?;
        self.cursor += 1;
        self.last_stamp = record.stamp;
        Ok(())
    }

    fn follow_body(&mut self, record: &Record) -> Followed {
        let stamp = record.stamp;
        match &record.body {
            Body::ClassPut(put) => drop(self.classes.insert(put.class, put.spec.clone())),
            Body::TenantPut(put) => {
                match put.settings.accounting_tag.as_ref().map(|tag| self.tag_number(tag)) {
                    Some(tag) => self.tenant_tags.insert(put.tenant, tag),
                    None => self.tenant_tags.remove(&put.tenant),
                };
            }
            Body::UsageUnitPut(put) => self.units.put_unit(put),
            Body::UnitPricePut(put) => self.units.put_price(put),
            Body::AppInstancePut(put) => self.units.put_instance(put),
            Body::UsageRecorded(recorded) => self.usage_recorded(record, recorded)?,
            Body::AppTypePut(_)
            | Body::AppTypeDeleted(_)
            | Body::AppInstanceDeleted(_)
            | Body::AttachmentMade(_)
            | Body::AttachmentEnded(_)
            | Body::EntitlementPut(_)
            | Body::EntitlementDeleted(_)
            | Body::EntitlementWarned(_)
            | leasehold_model::sink_kinds!() => {}
            Body::UsageRefused(refused) => self.units.refuse(record, refused)?,
            Body::AppPolicyPut(put) => self.units.put_policy(put, record.sequence),
            Body::SharingPut(put) => self.units.put_sharing(put, record.sequence),
            Body::RateCardPut(card) => self.schedule.put_card(card.clone()),
            Body::RateCardDeleted(gone) => self.schedule.drop_card(gone.card),
            Body::ChargePolicyPut(policy) => self.put_policy(policy)?,
            Body::NodePut(put) => self.nodes.put(put, stamp, &mut self.store),
            Body::NodeDeleted(gone) => self.nodes.delete(gone.node, stamp, &mut self.store),
            Body::NodeDrained(n) => self.set_node(n.node, stamp, |node| node.drained = true)?,
            Body::NodeResumed(n) => self.set_node(n.node, stamp, |node| node.drained = false)?,
            Body::WindowStarted(begun) => {
                for node in self.known_nodes(&begun.nodes.0) {
                    self.set_node(node, stamp, |node| node.windows += 1)?;
                }
            }
            Body::WindowEnded(ended) if ended.begun => {
                for node in self.known_nodes(&ended.nodes.0) {
                    self.set_node(node, stamp, |node| node.windows = node.windows.saturating_sub(1))?;
                }
            }
            // It had not begun.
            Body::WindowEnded(_) => {}
            Body::NodeLost(n) => {
                self.nodes.lose(n.node, n.last_seen.min(stamp), &mut self.store)?;
                // A claim on it is not charged from then on.
                self.serve_idle(n.node, n.last_seen)?;
                self.await_corrections(n.node, n.last_seen);
            }
            // What was awaited and not named was no longer charged.
            Body::LossSettled(settled) => {
                self.forget_ended_claims(settled.node, |claim| claim.is_awaited && claim.ended_by < settled.loss);
            }
            Body::NodeReturned(n) => self.set_node(n.node, stamp, |node| node.lost = false)?,
            Body::NodesClaimed(claimed) => {
                claimed.nodes.0.iter().try_for_each(|node| self.claim(record, *node))?;
            }
            Body::NodesReleased(released) => {
                for node in &released.nodes.0 {
                    self.unclaim(*node, record)?;
                    self.set_node(*node, stamp, |node| (node.unclean, node.last_used) = (true, stamp))?;
                }
            }
            Body::NodeWiped(wiped) => {
                self.set_node(wiped.node, stamp, |node| node.unclean = false)?;
                self.forget_ended_claims(wiped.node, |claim| !claim.is_awaited);
            }
            Body::EndsCorrected(corrected) => {
                corrected.leases.0.iter().for_each(|lease| self.note_correction(*lease, record));
                self.correct_ends(&corrected.leases.0, record.effective_at)?;
            }
            Body::ClaimEndCorrected(corrected) => {
                self.correct_claim(corrected.claim, corrected.node, record.effective_at)?;
                self.forget_ended_claims(corrected.node, |claim| claim.claim == corrected.claim);
            },
            Body::QuarantineCleared(cleared) => {
                self.set_node(cleared.node, stamp, |node| node.unclean = false)?;
            }
            Body::Granted(granted) => self.grant(record, granted)?,
            Body::Renewed(renewed) => {
                for renewal in &renewed.renewals {
                    let open = self.open.get_mut(&renewal.lease).ok_or("unknown lease")?;
                    if renewal.expires_at < open.row.held.to {
                        self.deadlines.add(renewal.expires_at, renewal.lease);
                    }
                    open.row.held.to = renewal.expires_at;
                    open.row.life.expires_at = renewal.expires_at;
                    let count = open.row.life.renewed.map_or(0, |renewed| renewed.count).saturating_add(1);
                    open.row.life.renewed = Some(Renewals { count, sequence: record.sequence, at: stamp });
                    report(&mut open.row, renewal.activity.as_ref());
                }
            }
            Body::ActivityReported(reported) => {
                for one in &reported.leases.0 {
                    let open = self.open.get_mut(&one.lease).ok_or("unknown lease")?;
                    report(&mut open.row, one.activity.as_ref());
                }
            }
            Body::Released(released) => {
                for one in &released.leases.0 {
                    let open = self.open.get_mut(&one.lease).ok_or("unknown lease")?;
                    report(&mut open.row, one.activity.as_ref());
                    let end = match open.revoked {
                        Some(End::ReleasedEvicted) => End::ReleasedEvicted,
                        Some(End::EvictedByOwn) => End::ReleasedByOwn,
                        _ if open.failed_start => End::FailedStart,
                        _ => End::Released,
                    };
                    self.end(one.lease, record, end, released.closed)?;
                }
            }
            Body::Expired(expired) => {
                for lease in &expired.leases.0 {
                    self.end(*lease, record, End::Expired, expired.closed)?;
                }
            }
            Body::Revoked(revoked) => {
                for lease in &revoked.leases.0 {
                    let evictor = self.evictor;
                    let open = self.open.get_mut(lease).ok_or("unknown lease")?;
                    // Since rules version 4, whose revocations say what they belong to.
                    let for_own = |by: u64| evictor == Some((by, open.row.tenant));
                    open.revoked = Some(match (record.reason.unwrap_or(Reason::Operator), revoked.belongs_to) {
                        (Reason::Preempted { by }, Some(_)) if for_own(by) => End::EvictedByOwn,
                        (Reason::Preempted { .. }, Some(_)) => End::ReleasedEvicted,
                        (reason, _) => end_of(reason),
                    });
                    if let (None, Some(reason)) = (open.row.life.ending, record.reason) {
                        note_ending(&mut open.row, record);
                        let by_itself = record.identity.token.is_none();
                        let revocation = Revocation { reason, grace: revoked.grace, by_itself };
                        open.row.rare.get_or_insert_default().revocation = Some(revocation);
                    } else {
                        note_step(&mut open.row, StepKind::Revoked, record);
                    }
                }
            }
            Body::TeardownStarted(started) => {
                for lease in &started.leases.0 {
                    let revoked = self.open.get(lease).ok_or("unknown lease")?.revoked;
                    let revoked = revoked.map(|end| if end == End::ReleasedEvicted { End::Preempted } else { end });
                    let end = match (record.reason.map(end_of), revoked) {
                        (Some(End::NodeLost), _) => End::NodeLost,
                        (_, Some(End::EvictedByOwn)) => End::EvictedByOwn,
                        (reason, revoked) => reason.or(revoked).unwrap_or(End::Revoked),
                    };
                    self.end(*lease, record, end, started.closed)?;
                }
            }
            Body::TornDown(torn) => self.free(&torn.leases.0, Phase::TearingDown, record)?,
            Body::Unfenced(unfenced) => self.free(&unfenced.leases.0, Phase::Fenced, record)?,
            Body::Fenced(fenced) => {
                for lease in &fenced.leases.0 {
                    let open = self.open.get_mut(lease).ok_or("unknown lease")?;
                    let before = open.row.clone();
                    (open.phase, open.row.fenced) = (Phase::Fenced, true);
                    open.row.rare.get_or_insert_default().fenced_at = Some(stamp);
                    note_step(&mut open.row, StepKind::Fenced, record);
                    let (node, class, quanta) = (open.row.node, open.row.class, open.row.quanta);
                    // From the teardown deadline on, whenever that was noticed.
                    let at = record.effective_at.max(open.row.held.to);
                    let (billing, after) = (open.billing, open.row.clone());
                    self.forgive_again(billing, &before, &after);
                    self.shift(node, class, (QuantaState::TearingDown, QuantaState::Fenced), quanta, at)?;
                }
            }
            Body::AllocationSubmitted(submitted) => self.stories.submitted(record, &submitted.spec)?,
            Body::AllocationPlaced(placed) => self.stories.placed(record, placed)?,
            Body::AllocationStarted(one) => {
                self.stories.set(one.allocation, AllocationState::Running)?;
                self.stories.note(one.allocation, StepKind::Started, record);
            }
            Body::AllocationCheckpointing(one) => {
                self.stories.set(one.allocation, AllocationState::Checkpointing)?;
                self.stories.note(one.allocation, StepKind::Checkpointing, record);
            }
            Body::AllocationCheckpointed(written) => self.stories.checkpointed(record, written)?,
            Body::AllocationSuspended(one) => {
                self.stories.ended(one.allocation, record, AllocationState::Suspended, Some(one.end))?;
                self.stories.note(one.allocation, StepKind::Suspended, record);
            }
            Body::AllocationRequeued(one) => {
                self.stories.ended(one.allocation, record, AllocationState::Pending, Some(one.end))?;
                self.stories.note(one.allocation, StepKind::Requeued, record);
            }
            Body::AllocationCompleted(one) => {
                let reported = (one.exit_status, Some(one.storage_written));
                self.stories.over(one.allocation, record, AllocationState::Completed, None, reported)?;
            }
            Body::PreemptionDecided(decided) => {
                self.note_evictor(record, decided.allocation);
                self.stories.note(decided.allocation, StepKind::PreemptionDecided, record);
            }
            Body::ReservationTakenOver(taken) => {
                self.note_evictor(record, taken.allocation);
                self.stories.note(taken.allocation, StepKind::ReservationTakenOver, record);
                let dropped = taken.dropped.iter();
                dropped.for_each(|one| self.stories.note(*one, StepKind::ReservationDropped, record));
            }
            Body::ReservationDropped(one) => self.stories.note(one.allocation, StepKind::ReservationDropped, record),
            Body::HeadProtected(one) => self.stories.note(one.allocation, StepKind::HeadProtected, record),
            Body::AllocationHoldSet(one) => self.stories.note(one.allocation, StepKind::HoldSet, record),
            Body::AllocationHoldCleared(one) => self.stories.note(one.allocation, StepKind::HoldCleared, record),
            Body::WindowAnnounced(told) => {
                for lease in &told.leases.0 {
                    if let Some(open) = self.open.get_mut(lease) {
                        note_step(&mut open.row, StepKind::WindowAnnounced, record);
                    }
                }
            }
            Body::AllocationFailed(one) => {
                if one.end == AttemptEnd::FailedStart {
                    self.fail_start(one.allocation)?;
                }
                let reported = (one.exit_status, Some(one.storage_written));
                self.stories.over(one.allocation, record, AllocationState::Failed, Some(one.end), reported)?;
            }
            Body::AllocationCancelled(one) => {
                self.stories.over(one.allocation, record, AllocationState::Cancelled, None, (None, None))?;
            }
            Body::AllocationChanged(one) => {
                self.stories.changed(one.allocation, &one.spec)?;
                self.stories.note(one.allocation, StepKind::Changed, record);
            }
            Body::LedgerOpened(opened) => {
                self.ledger.open(opened);
                self.open_units(opened.from)?;
            }
            Body::LedgerPosted(posted) => {
                self.ledger.posted(record, posted)?;
                self.units_posted(record.identity.project.ok_or("an entry without a project")?, posted);
            }
            Body::HourSettled(settled) => self.ledger.settled(settled),
            Body::LedgerCorrected(corrected) => self.ledger.corrected(record, corrected)?,
            Body::LedgerAdjusted(adjusted) => self.ledger.adjusted(record, adjusted)?,
            Body::LedgerDisputed(disputed) => self.ledger.dispute(disputed),
            Body::LedgerShared(shared) => self.ledger.shared(record, shared)?,
            Body::PeriodClosing(closing) => {
                self.ledger.closing = Some(Cut { month: closing.month, sequence: record.sequence });
                self.units.unposted.at_cut = Some(self.units.unposted.lines.clone());
            }
            Body::InvoiceIssued(invoice) => self.ledger.invoiced(record, invoice)?,
            Body::PeriodStated(stated) => self.ledger.stated(record, stated)?,
            Body::PeriodClosed(closed) => {
                self.ledger.close(record, closed);
                self.units.unposted.at_cut = None;
            }
            Body::PaymentRecorded(payment) => self.ledger.paid(record, payment)?,
            Body::PrepaidToppedUp(topped) => self.ledger.prepaid(record, PrepaidEvent::ToppedUp(topped.clone()))?,
            Body::PrepaidLapsed(lapsed) => self.ledger.prepaid(record, PrepaidEvent::Lapsed(lapsed.clone()))?,
            Body::PrepaidApplied(applied) => self.ledger.prepaid(record, PrepaidEvent::Applied(applied.clone()))?,
            // They say what happens to new work, and book nothing.
            Body::PrepaidPolicyPut(_) | Body::PrepaidChanged(_) => {}
            Body::TaxRatePut(put) => drop(self.ledger.tax_rates.insert((put.tenant, put.from), put.rate)),
            // About the journal itself.
            Body::Genesis(_)
            | Body::Started(_)
            | Body::Heartbeat(_)
            | Body::KeyRotated(_)
            | Body::ClockJumped(_)
            | Body::Converted(_)
            | Body::TailResolved(_) | Body::Restored(_)
            | Body::Unknown { .. }
            // Rules of the engine; their consequences have their own records.
            | Body::SettingsChanged(_)
            | Body::PlacementChanged(_)
            | Body::SensitiveChanged(_)
            | Body::PoolPlacementPut(_) | Body::PoolQueuePut(_) | Body::QueueChanged(_) | Body::ProjectPoolPut(_)
            | Body::QuotaPut(_)
            | Body::QuotaDeleted(_)
            | Body::BurstEnded(_) | Body::QuotaUntilReached(_)
            | Body::WindowPut(_)
            | Body::BudgetsPut(_)
            | Body::CeilingPut(_)
            | Body::CeilingDeleted(_)
            // Tokens, which the books do not keep, and names (`names.rs`).
            | Body::PoolPut(_)
            | Body::PoolDeleted(_)
            | Body::TenantDeleted(_)
            | Body::ProjectPut(_)
            | Body::ProjectDeleted(_)
            | Body::UserPut(_)
            | Body::UserDeleted(_)
            | Body::TokenIssued(_)
            | Body::TokenRevoked(_)
            // No change of capacity; a quarantined node has been offline since its release.
            | Body::NodeCondition(_)
            | Body::AgentRegistered(_)
            | Body::AgentDetached(_)
            | Body::NodeEmpty(_)
            | Body::NodeQuarantined(_)
            // No lease starts or ends.
            | Body::Denied(_)
            | Body::AllocationDenied(_)
            | Body::Preempted(_) => {}
        }
        Ok(())
    }

    /// Changes whether a node is available. If it is not, a claim on it is not charged.
    fn set_node(&mut self, node: NodeNo, stamp: Instant, change: impl FnOnce(&mut NodeBook)) -> Followed {
        self.nodes.set(node, stamp, &mut self.store, change)?;
        self.serve_idle(node, stamp)
    }

    /// Those of these nodes that were not deleted.
    fn known_nodes(&self, nodes: &[NodeNo]) -> Vec<NodeNo> {
        nodes.iter().copied().filter(|node| self.nodes.books.contains_key(node)).collect()
    }

    /// Moves quanta of a node from one state to another.
    fn shift(
        &mut self,
        node: NodeNo,
        class: ClassNo,
        way: (QuantaState, QuantaState),
        quanta: u64,
        at: Instant,
    ) -> Followed {
        self.nodes.shift(node, class, way, quanta, at, &mut self.store)?;
        self.shift_idle(node, class, way, quanta, at)
    }

    fn tag_number(&mut self, tag: &leasehold_model::Name) -> u32 {
        let place = self.tags.iter().position(|known| known == tag).unwrap_or_else(|| {
            self.tags.push(tag.clone());
            self.tags.len() - 1
        });
        u32::try_from(place).expect("fewer than 2^32 tags")
    }

    fn grant(&mut self, record: &Record, granted: &Granted) -> Followed {
        let tenant = record.identity.tenant.ok_or("the grant has no tenant")?;
        let project = record.identity.project.ok_or("the grant has no project")?;
        let tag = self.tenant_tags.get(&tenant).copied();
        let (pool, priority) = (granted.pool, granted.priority);
        let by_claim = granted.sensitive && granted.rules_version >= PRICED_BY_CLAIM;
        let deadline = record.stamp.checked_add(granted.ttl).ok_or("the deadline is too late")?;
        for (i, member) in (0u64..).zip(&granted.members) {
            let (class, quanta) = (member.class, member.quanta.0);
            let way = (QuantaState::Free, QuantaState::Held);
            self.shift(granted.node, class, way, quanta, record.stamp)?;
            let row = Row {
                lease: LeaseNo(granted.first_lease.0 + i),
                tenant,
                project,
                payer: granted.source_project.unwrap_or(project),
                user: record.identity.user,
                pool,
                node: granted.node,
                class,
                priority,
                by_claim,
                tag,
                allocation: granted.allocation,
                app_instance: granted.app_instance,
                workload: record.identity.workload.clone(),
                quanta,
                held: Window::new(record.stamp, deadline),
                end_before: None,
                end: End::Held,
                fenced: false,
                activity: None,
                life: Life {
                    sequence: record.sequence,
                    member: u8::try_from(i).expect("at most sixteen"),
                    devices: member.devices,
                    sensitive: granted.sensitive,
                    over_soft: !granted.over_soft.is_empty(),
                    expires_at: deadline,
                    ending: None,
                    closed_at: None,
                    closed_by: None,
                    renewed: None,
                },
                rare: rare(record, granted),
            };
            let billing = self.payer(row.billing_key());
            self.bill(billing, record.stamp, signed(quanta));
            self.finder.granted(row.lease, record.stamp, record.sequence);
            self.open_on.insert((row.node, row.lease));
            self.deadlines.add(deadline, row.lease);
            self.reserved.use_devices(&row, true);
            self.open.insert(row.lease, Open { row, phase: Phase::Held, billing, revoked: None, failed_start: false });
        }
        self.forget_deadlines();
        Ok(())
    }

    /// Billing stops at the record's effective instant, within the lease's own time (SEMANTICS 2).
    fn end(&mut self, lease: LeaseNo, record: &Record, end: End, closed: bool) -> Followed {
        let open = self.open.get_mut(&lease).ok_or("unknown lease")?;
        if open.phase != Phase::Held {
            return Err("the lease is not held");
        }
        let row = &mut open.row;
        let ended_at = record.effective_at.clamp(row.held.from, row.held.to);
        row.held.to = ended_at;
        row.end = end;
        if row.life.ending.is_none() && matches!(end, End::Released | End::Expired | End::FailedStart) {
            note_ending(row, record);
        }
        if row.life.ending.is_none_or(|ending| ending.sequence != record.sequence) {
            note_step(row, end_kind(end), record);
        }
        open.phase = Phase::TearingDown;
        self.deadlines.ended(lease);
        let (billing, node, class, quanta) = (open.billing, row.node, row.class, row.quanta);
        let forgiven = row.forgiven(&self.schedule);
        self.bill(billing, ended_at, -signed(quanta));
        self.forgive_window(billing, quanta, forgiven, true);
        let to = if closed { QuantaState::Free } else { QuantaState::TearingDown };
        self.shift(node, class, (QuantaState::Held, to), quanta, ended_at)?;
        if closed {
            self.close_open(lease, record).expect("it was found above");
        }
        Ok(())
    }

    /// The capacity of leases is free again.
    fn free(&mut self, leases: &[LeaseNo], from: Phase, record: &Record) -> Followed {
        for lease in leases {
            let open = self.open.get(lease).ok_or("unknown lease")?;
            if open.phase != from {
                return Err("the lease is in another phase");
            }
            let state = if from == Phase::Fenced { QuantaState::Fenced } else { QuantaState::TearingDown };
            let (node, class, quanta) = (open.row.node, open.row.class, open.row.quanta);
            self.shift(node, class, (state, QuantaState::Free), quanta, record.stamp)?;
            self.close_open(*lease, record)?;
        }
        Ok(())
    }

    /// Remembers for whom leases are evicted by the records that follow.
    fn note_evictor(&mut self, record: &Record, allocation: AllocationNo) {
        let tenant = self.stories.open.get(&allocation).map(|story| story.outline.tenant);
        self.evictor = tenant.map(|tenant| (record.sequence, tenant));
    }

    /// The leases of an allocation that could not be started end as such, unless they were being evicted. Those that have
    /// ended already are charged as such.
    fn fail_start(&mut self, allocation: AllocationNo) -> Followed {
        let Some(attempt) = self.stories.open.get(&allocation).and_then(|story| story.attempts.last()) else {
            return Ok(());
        };
        let leases = (attempt.first_lease.0..).take(attempt.leases as usize).map(LeaseNo);
        for lease in leases {
            match self.open.get_mut(&lease) {
                Some(open) if open.phase == Phase::Held => open.failed_start = true,
                _ => self.fail_start_of_ended(lease)?,
            }
        }
        Ok(())
    }

    /// Closes an open lease.
    fn close_open(&mut self, lease: LeaseNo, record: &Record) -> Followed {
        let mut row = self.open.remove(&lease).ok_or("unknown lease")?.row;
        self.open_on.remove(&(row.node, lease));
        self.reserved.use_devices(&row, false);
        (row.life.closed_at, row.life.closed_by) = (Some(record.stamp), Some(record.sequence));
        self.close(row);
        Ok(())
    }
}

/// The optional fields of a grant that few have.
fn rare(record: &Record, granted: &Granted) -> Option<Box<Rare>> {
    // Before rules version 4 the leases of an allocation did not share its correlation ID.
    let own = granted.correlation_of(record.sequence) == Correlation::Derived(record.sequence);
    let correlation_of = (own && granted.allocation.is_some()).then_some(record.sequence);
    let rare = Rare {
        correlation: granted.correlation,
        correlation_of,
        labels: granted.labels.clone(),
        control_plane: granted.control_plane,
        attachment: granted.attachment,
        ..Rare::default()
    };
    (rare != Rare::default()).then(|| Box::new(rare))
}

/// The step that the record of an end is.
pub(crate) fn end_kind(end: End) -> StepKind {
    match end {
        End::Released | End::ReleasedEvicted | End::ReleasedByOwn | End::FailedStart => StepKind::Released,
        End::Expired => StepKind::Expired,
        End::Revoked | End::Preempted | End::NodeLost | End::EvictedByOwn | End::Held | End::Idle => {
            StepKind::TeardownStarted
        }
    }
}

/// Notes a record that no other field of the row names.
fn note_step(row: &mut Row, kind: StepKind, record: &Record) {
    trail::note(&mut row.rare.get_or_insert_default().trail, TrailStep::of(kind, record));
}

/// Notes the first record that announces the end of the lease.
fn note_ending(row: &mut Row, record: &Record) {
    row.life.ending = Some(Ending { sequence: record.sequence, at: record.stamp });
}

/// Adds an activity report to the earlier ones.
fn report(row: &mut Row, activity: Option<&Activity>) {
    let Some(new) = activity else { return };
    let sum = row.activity.get_or_insert_default();
    let add = |a: Span, b: Span| Span(a.0.saturating_add(b.0));
    sum.covered = add(sum.covered, new.covered);
    sum.busy = sum.busy.saturating_add(new.busy);
    sum.active = add(sum.active, new.active);
    for (sum, new) in sum.waiting.iter_mut().zip(new.waiting) {
        *sum = add(*sum, new);
    }
}
