//! Adds what the simulator's histories lack: prices at critical instants, more kinds of leases, more reasons.

use crate::history::{name, prices};
use leasehold_model::body::Body;
use leasehold_model::rate::{Charge, ChargePolicyPut, Charges, RateCardDeleted, RateCardPut};
use leasehold_model::{AllocationNo, AppInstanceNo, Instant, PoolNo, Reason, Record, Span, UserNo};
use leasehold_sim::Dice;
use std::collections::BTreeMap;

pub(crate) fn spiced(mut records: Vec<Record>, dice: &mut Dice) -> Vec<Record> {
    for record in &mut records {
        match &mut record.body {
            Body::ClassPut(put) if dice.one_in(2) => put.spec.tier = Some(name("h100")),
            Body::Granted(granted) => {
                granted.allocation = dice.one_in(2).then(|| AllocationNo(dice.below(4)));
                granted.app_instance = dice.one_in(3).then(|| AppInstanceNo(dice.below(3)));
                record.identity.user = dice.one_in(2).then(|| UserNo(u32::try_from(dice.below(3)).expect("small")));
                let workload = *dice.pick(&["train", "serve", "sweep"]);
                record.identity.workload = dice.one_in(2).then(|| name(workload));
            }
            Body::Revoked(_) if dice.one_in(2) => record.reason = Some(Reason::Preempted { by: 0 }),
            #[rustfmt::skip]
            Body::ClassPut(_) | Body::TenantPut(_) | Body::Denied(_) | Body::Released(_) | Body::Expired(_)
            | Body::Revoked(_) | Body::TeardownStarted(_) | Body::Fenced(_) | Body::Genesis(_) | Body::Started(_)
            | Body::Heartbeat(_) | Body::KeyRotated(_) | Body::ClockJumped(_) | Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_) | Body::SettingsChanged(_)
            | Body::PoolPut(_) | Body::PoolDeleted(_) | Body::TenantDeleted(_) | Body::ProjectPut(_)
            | Body::ProjectDeleted(_) | Body::UserPut(_) | Body::UserDeleted(_) | Body::QuotaPut(_)
            | Body::QuotaDeleted(_) | Body::BurstEnded(_) | Body::QuotaUntilReached(_) | Body::WindowPut(_) | Body::WindowStarted(_) | Body::WindowEnded(_) | Body::WindowAnnounced(_) | Body::EndsCorrected(_) | Body::ClaimEndCorrected(_) | Body::LossSettled(_) | leasehold_model::ledger_kinds!() | Body::RateCardPut(_) | Body::RateCardDeleted(_)
            | Body::ChargePolicyPut(_) | Body::BudgetsPut(_) | Body::PoolPlacementPut(_) | Body::PoolQueuePut(_) | Body::PlacementChanged(_) | Body::QueueChanged(_) | Body::ProjectPoolPut(_)
            | Body::SensitiveChanged(_) | Body::NodePut(_) | Body::NodeDeleted(_) | Body::NodeDrained(_)
            | Body::NodeResumed(_) | Body::NodeLost(_) | Body::NodeReturned(_) | Body::NodeCondition(_)
            | Body::AgentRegistered(_) | Body::AgentDetached(_) | Body::NodeEmpty(_) | Body::Renewed(_) | Body::TornDown(_)
            | Body::Unfenced(_) | Body::ActivityReported(_) | Body::Preempted(_) | Body::PreemptionDecided(_)
            | Body::ReservationDropped(_) | Body::ReservationTakenOver(_) | Body::HeadProtected(_) | Body::TokenIssued(_) | Body::TokenRevoked(_)
            | Body::AllocationSubmitted(_) | Body::AllocationDenied(_) | Body::AllocationPlaced(_)
            | Body::AllocationStarted(_) | Body::AllocationCheckpointing(_) | Body::AllocationCheckpointed(_)
            | Body::AllocationSuspended(_) | Body::AllocationRequeued(_) | Body::AllocationCompleted(_)
            | Body::AllocationFailed(_) | Body::AllocationCancelled(_)
            | Body::AllocationHoldSet(_) | Body::AllocationHoldCleared(_) | Body::AllocationChanged(_) | Body::NodesClaimed(_)
            | Body::NodesReleased(_) | Body::NodeWiped(_) | Body::NodeQuarantined(_) | Body::QuarantineCleared(_)
            | leasehold_model::registry_kinds!() | leasehold_model::sink_kinds!() | Body::CeilingPut(_) | Body::CeilingDeleted(_) | Body::Unknown { .. } => {}
        }
    }
    for number in 0..dice.below(6) {
        let place = 1 + dice.index(records.len());
        let stamp = records[place - 1].stamp;
        let from = start(&records, stamp, dice);
        let number = 1000 + u32::try_from(number).expect("small");
        let (pool, scope) = (dice.one_in(2), PoolNo(u32::try_from(dice.below(3)).expect("small")));
        let pool = pool.then_some(scope);
        let twin = |record: &Record| {
            matches!(&record.body, Body::RateCardPut(card) if card.pool == pool && card.from == from)
                || matches!(&record.body, Body::ChargePolicyPut(policy) if policy.from == from)
        };
        if records.iter().any(twin) {
            continue;
        }
        let body: Body = if dice.one_in(3) {
            let charges = Charges {
                preempted: charge(dice),
                fenced: charge(dice),
                node_lost: charge(dice),
                // From a die of its own, so that the other draws stay as they are.
                failed_start: charge(&mut Dice::new(u64::from(number))),
            };
            ChargePolicyPut { policy: number, from, charges }.into()
        } else {
            let currency = *dice.pick(&["EUR", "EUR", "CHF"]);
            RateCardPut { card: number, pool, from, prices: prices(currency, dice.below(1 << 30)) }.into()
        };
        let is_card = matches!(body, Body::RateCardPut(_));
        records.insert(place, Record::new(0, stamp, body));
        if is_card && from > stamp && dice.one_in(3) {
            // Withdrawn again, at once or just before its day.
            let after = place + 1;
            let last = records.partition_point(|record| record.stamp < from).max(after);
            let place = if dice.one_in(2) { after } else { last };
            let stamp = records[place - 1].stamp;
            records.insert(place, Record::new(0, stamp, RateCardDeleted { card: number }));
        }
    }
    // Records refer to earlier ones by sequence. An allocation's number is the sequence of the record that submitted it.
    let mut moved = BTreeMap::from([(0, 0)]);
    for (sequence, record) in (0..).zip(&mut records) {
        // What was inserted has no sequence yet, and nothing refers to it.
        if record.sequence > 0 {
            moved.insert(record.sequence, sequence);
        }
        record.sequence = sequence;
        if let Some(number) = allocation_mut(&mut record.body) {
            number.0 = moved[&number.0];
        }
        if let Body::ReservationTakenOver(taken) = &mut record.body {
            taken.dropped.iter_mut().for_each(|number| number.0 = moved[&number.0]);
        }
        if let Some(Reason::Preempted { by }) = &mut record.reason {
            *by = moved[by];
        }
        for earlier in sequences_mut(&mut record.body) {
            *earlier = moved[earlier];
        }
    }
    records
}

/// The sequences of losses, claims and superseded usage in a record.
fn sequences_mut(body: &mut Body) -> Vec<&mut u64> {
    if let Body::EndsCorrected(one) = body {
        vec![&mut one.loss]
    } else if let Body::ClaimEndCorrected(one) = body {
        vec![&mut one.loss, &mut one.claim]
    } else if let Body::UsageRecorded(one) = body {
        one.replaces.iter_mut().map(|old| &mut old.sequence).collect()
    } else if let Body::LossSettled(one) = body {
        vec![&mut one.loss]
    } else if let Body::NodesReleased(one) = body {
        one.claim.iter_mut().collect()
    } else if let Body::NodeWiped(one) = body {
        one.claim.iter_mut().collect()
    } else if let Body::NodeQuarantined(one) = body {
        one.claim.iter_mut().collect()
    } else {
        Vec::new()
    }
}

/// The allocation in a record.
fn allocation_mut(body: &mut Body) -> Option<&mut AllocationNo> {
    Some(match body {
        Body::AllocationPlaced(one) => &mut one.allocation,
        Body::AllocationStarted(one) => &mut one.allocation,
        Body::AllocationCheckpointing(one) => &mut one.allocation,
        Body::AllocationCheckpointed(one) => &mut one.allocation,
        Body::AllocationSuspended(one) => &mut one.allocation,
        Body::AllocationRequeued(one) => &mut one.allocation,
        Body::AllocationCompleted(one) => &mut one.allocation,
        Body::AllocationFailed(one) => &mut one.allocation,
        Body::AllocationCancelled(one) => &mut one.allocation,
        Body::AllocationHoldSet(one) => &mut one.allocation,
        Body::AllocationHoldCleared(one) => &mut one.allocation,
        Body::AllocationChanged(one) => &mut one.allocation,
        Body::PreemptionDecided(one) => &mut one.allocation,
        Body::ReservationDropped(one) => &mut one.allocation,
        Body::ReservationTakenOver(one) => &mut one.allocation,
        Body::HeadProtected(one) => &mut one.allocation,
        #[rustfmt::skip]
        Body::ClassPut(_) | Body::TenantPut(_) | Body::Granted(_) | Body::Denied(_) | Body::Released(_)
        | Body::Expired(_) | Body::Revoked(_) | Body::TeardownStarted(_) | Body::Fenced(_) | Body::Genesis(_)
        | Body::Started(_) | Body::Heartbeat(_) | Body::KeyRotated(_) | Body::ClockJumped(_) | Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_)
        | Body::SettingsChanged(_) | Body::PoolPut(_) | Body::PoolDeleted(_) | Body::TenantDeleted(_)
        | Body::ProjectPut(_) | Body::ProjectDeleted(_) | Body::UserPut(_) | Body::UserDeleted(_) | Body::QuotaPut(_)
        | Body::QuotaDeleted(_) | Body::BurstEnded(_) | Body::QuotaUntilReached(_) | Body::WindowPut(_) | Body::WindowStarted(_) | Body::WindowEnded(_) | Body::WindowAnnounced(_) | Body::EndsCorrected(_) | Body::ClaimEndCorrected(_) | Body::LossSettled(_) | leasehold_model::ledger_kinds!() | Body::RateCardPut(_) | Body::RateCardDeleted(_)
        | Body::ChargePolicyPut(_) | Body::BudgetsPut(_) | Body::PoolPlacementPut(_) | Body::PoolQueuePut(_) | Body::PlacementChanged(_) | Body::QueueChanged(_) | Body::ProjectPoolPut(_)
        | Body::SensitiveChanged(_) | Body::NodePut(_) | Body::NodeDeleted(_) | Body::NodeDrained(_)
        | Body::NodeResumed(_) | Body::NodeLost(_) | Body::NodeReturned(_) | Body::NodeCondition(_)
        | Body::AgentRegistered(_) | Body::AgentDetached(_) | Body::NodeEmpty(_) | Body::Renewed(_) | Body::TornDown(_)
        | Body::Unfenced(_) | Body::ActivityReported(_) | Body::Preempted(_) | Body::TokenIssued(_)
        | Body::TokenRevoked(_) | Body::AllocationSubmitted(_) | Body::AllocationDenied(_) | Body::NodesClaimed(_)
        | Body::NodesReleased(_) | Body::NodeWiped(_) | Body::NodeQuarantined(_) | Body::QuarantineCleared(_)
        | leasehold_model::registry_kinds!() | leasehold_model::sink_kinds!() | Body::CeilingPut(_) | Body::CeilingDeleted(_) | Body::Unknown { .. } => return None,
    })
}

/// Now, at the instant of a later event, or a nanosecond before or after it.
fn start(records: &[Record], stamp: Instant, dice: &mut Dice) -> Instant {
    let event = dice.pick(records);
    let at = if dice.one_in(2) { event.stamp } else { event.effective_at };
    let beside = match dice.below(6) {
        0 => Instant(at.0 + 1),
        1 => Instant(at.0 - 1),
        2 => stamp,
        _ => at,
    };
    beside.max(stamp)
}

fn charge(dice: &mut Dice) -> Charge {
    match dice.below(3) {
        0 => Charge::Full,
        1 => Charge::None,
        _ => Charge::MinusLast(Span(1 + dice.below(40_000_000_000))),
    }
}
