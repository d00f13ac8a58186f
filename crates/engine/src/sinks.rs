//! Sinks: where events are delivered to. The engine keeps them, so that they are what the journal says; it delivers
//! nothing.

use crate::state::{State, entry};
use leasehold_model::body::{SinkDisabledCause, SinkPut};
use leasehold_model::{SinkNo, TenantNo};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sink {
    /// As it was put last.
    pub put: SinkPut,
    /// The record that made it. Events of earlier records are not delivered to it.
    pub made_by: u64,
    pub disabled: Option<SinkDisabledCause>,
}

impl State {
    pub fn sink(&self, sink: SinkNo) -> Option<&Sink> {
        entry(&self.sinks, sink.0)
    }

    /// All sinks in order of number.
    pub fn sinks(&self) -> impl Iterator<Item = &Sink> {
        self.sinks.iter().flatten()
    }

    /// The sink of an owner with this name.
    pub fn sink_named(&self, tenant: Option<TenantNo>, name: &str) -> Option<&Sink> {
        self.sinks().find(|sink| sink.put.tenant == tenant && sink.put.name.as_str() == name)
    }
}
