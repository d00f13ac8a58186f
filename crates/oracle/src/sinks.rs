//! Sinks (SEMANTICS 14): objects of the operator or of one tenant, and what may be said about them.

use crate::apps::{those, unless};
use crate::foretell::{Caller, Told, sealed};
use crate::violation::{Checked, demand};
use crate::world::World;
use leasehold_model::body::{
    AccountingReconciled, SinkDeleted, SinkDisabled, SinkDisabledCause, SinkPut, SinkSignature,
};
use leasehold_model::limits::{SINK_EVENTS_MAX, SINKS_MAX, SINKS_PER_OWNER_MAX};
use leasehold_model::{Name, Record, SinkNo, TenantNo, WebAddress};

/// A sink, with why it is disabled.
pub type SinkLine = (SinkPut, Option<SinkDisabledCause>);

/// A sink to make or change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkWish {
    pub sink: Option<SinkNo>,
    pub tenant: Option<TenantNo>,
    pub name: Name,
    pub url: WebAddress,
    pub events: Vec<Name>,
    pub signature: SinkSignature,
}

impl World {
    /// The tenant of a sink that a caller may see; operators see all.
    fn sink_of(&self, caller: Option<TenantNo>, sink: SinkNo) -> Option<&SinkLine> {
        self.sinks.get(&sink).filter(|(put, _)| caller.is_none() || put.tenant == caller)
    }

    fn faults_of_sink(&self, number: Option<SinkNo>, put: &SinkPut) -> Vec<&'static str> {
        let others = || self.sinks.values().filter(|(other, _)| Some(other.sink) != number);
        let of_owner = || others().filter(|(other, _)| other.tenant == put.tenant);
        let is_full = others().count() >= SINKS_MAX || of_owner().count() >= SINKS_PER_OWNER_MAX;
        let moves = number.and_then(|number| self.sinks.get(&number)).is_some_and(|(old, _)| old.tenant != put.tenant);
        those(&[
            (put.tenant.is_some_and(|tenant| !self.tenants.contains_key(&tenant)), "unknown_tenant"),
            (of_owner().any(|(other, _)| other.name == put.name), "name_taken"),
            (number.is_none() && is_full, "registry_full"),
            (put.events.is_empty() || put.events.len() > SINK_EVENTS_MAX, "bad_webhook_events"),
            (moves, "webhook_owner_fixed"),
        ])
    }

    pub(crate) fn sink_put(&mut self, record: &Record, put: &SinkPut) -> Checked {
        let known = self.sinks.contains_key(&put.sink);
        let faults = self.faults_of_sink(known.then_some(put.sink), put);
        demand!(faults.is_empty(), "sink", "must be refused: {faults:?}");
        demand!(put.events.is_sorted_by(|a, b| a < b), "sink", "its events are not in order");
        demand!(record.identity.tenant == put.tenant, "sink", "the record is that of another tenant");
        if !known {
            self.check_new_number("sink", u64::from(put.sink.0))?;
        }
        self.take_number("sink", u64::from(put.sink.0));
        self.sinks.insert(put.sink, (put.clone(), None));
        Ok(())
    }

    fn check_owner(&self, record: &Record, sink: SinkNo) -> Checked {
        let known = self.sinks.get(&sink);
        demand!(known.is_some_and(|(put, _)| put.tenant == record.identity.tenant), "sink", "no {sink} of its tenant");
        Ok(())
    }

    pub(crate) fn sink_deleted(&mut self, record: &Record, gone: &SinkDeleted) -> Checked {
        self.check_owner(record, gone.sink)?;
        self.sinks.remove(&gone.sink);
        Ok(())
    }

    pub(crate) fn sink_disabled(&mut self, record: &Record, disabled: &SinkDisabled) -> Checked {
        self.check_owner(record, disabled.sink)?;
        let (_, cause) = self.sinks.get_mut(&disabled.sink).expect("its owner was checked");
        demand!(cause.is_none(), "sink", "it is disabled already");
        *cause = Some(disabled.cause);
        Ok(())
    }

    pub(crate) fn reconciled(&mut self, record: &Record, done: &AccountingReconciled) -> Checked {
        self.check_owner(record, done.sink)?;
        demand!(done.since <= done.until, "sink", "a reconciliation that ends before it begins");
        Ok(())
    }

    pub(crate) fn foretell_sink(&self, caller: &Caller, wish: &SinkWish) -> Told {
        let tenant = wish.tenant.or(caller.tenant);
        let mut events = wish.events.clone();
        events.sort();
        events.dedup();
        let SinkWish { name, url, signature, .. } = wish.clone();
        let sink = wish.sink.unwrap_or(SinkNo(self.next_number("sink")));
        let put = SinkPut { sink, tenant, name, url, events, signature };
        let mut faults = self.faults_of_sink(wish.sink, &put);
        faults.extend((caller.tenant.is_some() && caller.tenant != tenant).then_some("unknown_tenant"));
        let unknown = wish.sink.is_some_and(|sink| self.sink_of(caller.tenant, sink).is_none());
        faults.extend(unknown.then_some("unknown_webhook"));
        unless(faults, || sealed(tenant, put))
    }

    pub(crate) fn foretell_sink_gone(&self, caller: &Caller, sink: SinkNo) -> Told {
        let (put, _) = self.sink_of(caller.tenant, sink).ok_or("unknown_webhook")?;
        sealed(put.tenant, SinkDeleted { sink })
    }

    pub(crate) fn foretell_sink_disabled(&self, caller: &Caller, sink: SinkNo, cause: SinkDisabledCause) -> Told {
        match self.sink_of(caller.tenant, sink).ok_or("unknown_webhook")? {
            (_, Some(_)) => Err("webhook_disabled"),
            (put, None) => sealed(put.tenant, SinkDisabled { sink, cause }),
        }
    }

    pub(crate) fn foretell_reconciled(&self, caller: &Caller, done: &AccountingReconciled) -> Told {
        let (put, _) = self.sink_of(caller.tenant, done.sink).ok_or("unknown_webhook")?;
        if done.since > done.until { Err("bad_reconciliation") } else { sealed(put.tenant, done.clone()) }
    }
}
