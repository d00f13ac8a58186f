//! What metrics and the status page say about deliveries.

use super::DeliveryService;
use crate::app::App;
use crate::metrics::deliveries::{DeliveryFigures, SinkFigures};
use leasehold_api::DeliverySummary;
use leasehold_deliver::SinkStatus;
use leasehold_model::SinkNo;

impl DeliveryService {
    fn statuses(&self) -> Vec<SinkStatus> {
        self.running().map(|running| running.status()).unwrap_or_default()
    }

    /// The figures for a page of metrics.
    pub(crate) fn figures(&self, app: &App) -> DeliveryFigures {
        if !self.config.enabled {
            return DeliveryFigures::default();
        }
        let named = |status: SinkStatus| {
            let tenant = app.now.read(|state| {
                let sink = state.sink(SinkNo(u32::try_from(status.id.0).ok()?))?;
                let tenant = state.tenant(sink.put.tenant?)?;
                Some(tenant.settings.name.to_string())
            });
            SinkFigures { tenant: tenant.unwrap_or_default(), status }
        };
        DeliveryFigures {
            is_enabled: true,
            has_trouble: self.trouble().is_some(),
            events_per_minute: self.events_per_minute(app.time()).all,
            is_token_readable: self.token().map(|token| token.state().is_readable()),
            sinks: self.statuses().into_iter().map(named).collect(),
        }
    }

    /// What an operator should know at a glance; none if deliveries are off.
    pub(crate) fn summary(&self) -> Option<DeliverySummary> {
        if !self.config.enabled {
            return None;
        }
        let mut summary = DeliverySummary { running: self.trouble().is_none(), ..DeliverySummary::default() };
        for status in self.statuses() {
            summary.webhooks += 1;
            summary.disabled += u64::from(!status.enabled);
            let is_failing = status.backs_off_until.is_some() || status.source_error.is_some();
            summary.failing += u64::from(status.enabled && is_failing);
            summary.dead_letters += status.dead_letters;
            summary.dropped_open += status.counters.dropped_open;
        }
        Some(summary)
    }
}
