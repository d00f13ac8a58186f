//! How records about sinks change the state.

use super::fold::put;
use super::{State, entry, entry_mut};
use crate::sinks::Sink;
use leasehold_model::body::{SinkDisabled, SinkPut};
use leasehold_model::{Record, SinkNo, TenantNo};

type Folded = Result<(), &'static str>;

impl State {
    pub(super) fn fold_sink(&mut self, record: &Record, sink: &SinkPut) -> Folded {
        if let Some(tenant) = sink.tenant {
            self.tenant(tenant).ok_or("a sink of no tenant")?;
        }
        let number = sink.sink.0;
        let made_by = match entry(&self.sinks, number) {
            Some(old) if old.put.tenant != sink.tenant => return Err("a sink changed its owner"),
            Some(old) => old.made_by,
            None => record.sequence,
        };
        put(&mut self.sinks, number, Sink { put: sink.clone(), made_by, disabled: None })
    }

    pub(super) fn fold_sink_deleted(&mut self, sink: SinkNo) -> Folded {
        let gone = self.sinks.get_mut(sink.0 as usize).and_then(Option::take);
        gone.map(drop).ok_or("no such sink")
    }

    pub(super) fn fold_sink_disabled(&mut self, disabled: &SinkDisabled) -> Folded {
        let sink = entry_mut(&mut self.sinks, disabled.sink.0).ok_or("no such sink")?;
        sink.disabled = Some(disabled.cause);
        Ok(())
    }

    /// The sinks of a tenant go with it.
    pub(super) fn drop_sinks_of(&mut self, tenant: TenantNo) {
        self.sinks.iter_mut().for_each(|sink| drop(sink.take_if(|sink| sink.put.tenant == Some(tenant))));
    }
}
