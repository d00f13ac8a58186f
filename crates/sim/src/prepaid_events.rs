//! Counts notable events of prepaid credit in a history.

use leasehold_model::{Body, DenyCause, PrepaidAction, PrepaidState, Priority, Reason, Record, Steps};
use std::collections::BTreeMap;

pub(crate) fn count(records: &[Record], notable: &mut BTreeMap<&'static str, u64>) {
    let mut draining = false;
    for record in records {
        if !record.continues {
            draining = false;
        }
        let mut events = Vec::new();
        if let Body::PrepaidChanged(changed) = &record.body {
            draining = changed.action == PrepaidAction::Drain;
            events.push(match changed.to {
                PrepaidState::Enough => "prepaid: enough again",
                PrepaidState::Low => "prepaid: low",
                PrepaidState::Pending => "prepaid: pending",
                PrepaidState::Depleted => "prepaid: depleted",
            });
            events.push(match changed.action {
                PrepaidAction::Alert => "prepaid: alert",
                PrepaidAction::Downgrade => "prepaid: downgrade",
                PrepaidAction::Block => "prepaid: block",
                PrepaidAction::Drain => "prepaid: drain",
            });
            events.push(if record.continues { "prepaid: changed by a command" } else { "prepaid: changed by time" });
        } else if let Body::Revoked(_) = &record.body {
            let drained = draining && record.continues && record.reason == Some(Reason::Budget);
            events.extend(drained.then_some("prepaid: leases drained"));
        } else if let Body::AllocationChanged(changed) = &record.body {
            let downgraded = record.continues && changed.spec.priority == Priority::Scavenger;
            events.extend(downgraded.then_some("prepaid: waiting allocation downgraded"));
        } else if let Body::Denied(denied) = &record.body {
            events.extend(of_denial(denied.cause));
        } else if let Body::PrepaidLapsed(_) = &record.body {
            let late = record.effective_at < record.stamp;
            events.push(if late { "prepaid: expired, noticed late" } else { "prepaid: lapsed at once" });
        } else if let Body::PrepaidApplied(applied) = &record.body {
            let whole = if applied.uncovered == Steps::ZERO { "prepaid: covered" } else { "prepaid: not covered" };
            events.push(whole);
            events.extend((applied.amount < Steps::ZERO).then_some("prepaid: given back"));
            events.extend((applied.amount != applied.credited).then_some("prepaid: rounded"));
        }
        for what in events {
            *notable.entry(what).or_insert(0) += 1;
        }
    }
}

fn of_denial(cause: DenyCause) -> Option<&'static str> {
    let DenyCause::Prepaid { of_tenant, .. } = cause else { return None };
    Some(if of_tenant { "prepaid: denied by the tenant's credit" } else { "prepaid: denied by the project's credit" })
}
