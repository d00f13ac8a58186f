//! Commands about sinks (SEMANTICS 13). A sink is sealed like any other object; its secrets are not.

use super::Draft;
use super::inventory::number;
use crate::command::{DisableSink, PutSink};
use crate::refusal::Refusal;
use crate::sinks::Sink;
use leasehold_model::body::{AccountingReconciled, SinkDeleted, SinkDisabled, SinkPut};
use leasehold_model::limits::{SINK_EVENTS_MAX, SINKS_MAX, SINKS_PER_OWNER_MAX};
use leasehold_model::{Name, SinkNo};

impl Draft<'_> {
    /// The sink, if the caller may see it: operators see all, others those of their own tenant.
    fn known_sink(&self, sink: SinkNo) -> Result<&Sink, Refusal> {
        let own = self.identity.tenant;
        let found = self.state().sink(sink).filter(|found| own.is_none() || found.put.tenant == own);
        found.ok_or(Refusal::UnknownSink { sink })
    }

    pub(super) fn put_sink(&mut self, put: &PutSink) -> Result<(), Refusal> {
        let tenant = put.tenant.or(self.identity.tenant);
        if let Some(tenant) = tenant {
            self.known_tenant(tenant)?;
        }
        let mut events: Vec<Name> = put.events.clone();
        events.sort();
        events.dedup();
        if events.is_empty() || events.len() > SINK_EVENTS_MAX {
            return Err(Refusal::BadSinkEvents { limit: SINK_EVENTS_MAX });
        }
        let state = self.state();
        let sink = SinkNo(number(put.sink.map(|sink| sink.0), state.sinks.len())?);
        match put.sink {
            Some(sink) => {
                if self.known_sink(sink)?.put.tenant != tenant {
                    return Err(Refusal::SinkOwnerFixed { sink });
                }
            }
            None if state.sinks().count() >= SINKS_MAX => {
                return Err(Refusal::RegistryFull { what: "webhooks", limit: SINKS_MAX });
            }
            None => {
                if state.sinks().filter(|other| other.put.tenant == tenant).count() >= SINKS_PER_OWNER_MAX {
                    return Err(Refusal::RegistryFull { what: "webhooks of one owner", limit: SINKS_PER_OWNER_MAX });
                }
            }
        }
        if state.sink_named(tenant, put.name.as_str()).is_some_and(|other| other.put.sink != sink) {
            return Err(Refusal::NameTaken);
        }
        let (name, url) = (put.name.clone(), put.url.clone());
        self.emit(tenant, SinkPut { sink, tenant, name, url, events, signature: put.signature }, |_| {});
        Ok(())
    }

    pub(super) fn delete_sink(&mut self, sink: SinkNo) -> Result<(), Refusal> {
        let tenant = self.known_sink(sink)?.put.tenant;
        self.emit(tenant, SinkDeleted { sink }, |_| {});
        Ok(())
    }

    pub(super) fn disable_sink(&mut self, disable: DisableSink) -> Result<(), Refusal> {
        let DisableSink { sink, cause } = disable;
        let found = self.known_sink(sink)?;
        if found.disabled.is_some() {
            return Err(Refusal::SinkDisabled { sink });
        }
        let tenant = found.put.tenant;
        self.emit(tenant, SinkDisabled { sink, cause }, |_| {});
        Ok(())
    }

    /// The daemon states what a reconciliation found and sent.
    pub(super) fn record_reconciliation(&mut self, done: &AccountingReconciled) -> Result<(), Refusal> {
        let tenant = self.known_sink(done.sink)?.put.tenant;
        if done.since > done.until {
            return Err(Refusal::BadReconciliation);
        }
        self.emit(tenant, done.clone(), |_| {});
        Ok(())
    }
}
