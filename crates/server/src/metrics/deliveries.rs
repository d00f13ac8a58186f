//! Metrics of deliveries.

use super::page::Page;
use leasehold_deliver::SinkStatus;

/// Webhooks with series of their own. Those with higher numbers share one.
const WEBHOOKS_MAX: usize = 200;
/// In the place of the number of a webhook, for all beyond [`WEBHOOKS_MAX`].
const OTHERS: &str = "others";

/// What the page says about deliveries.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFigures {
    pub is_enabled: bool,
    /// They could not be started.
    pub has_trouble: bool,
    pub events_per_minute: u64,
    /// Whether the token of the accounting system could be read last; none without one.
    pub is_token_readable: Option<bool>,
    /// In order of their numbers.
    pub sinks: Vec<SinkFigures>,
}

/// One webhook.
#[derive(Clone, Debug)]
pub struct SinkFigures {
    /// Name of the tenant; empty for one of the operator.
    pub tenant: String,
    pub status: SinkStatus,
}

/// The figures of one webhook, or of several together.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    dropped: u64,
    dropped_open: u64,
    lag_events: u64,
    lag_records: u64,
    oldest_age_seconds: u64,
    memory_events: u64,
    memory_permille: u64,
    disk_events: u64,
    attempts: u64,
    delivered: u64,
    failures: u64,
    dead_letters: u64,
    disabled: u64,
    unreachable: u64,
    unread: u64,
    over_threshold: u64,
}

impl Sums {
    fn of(status: &SinkStatus) -> Self {
        let counters = status.counters;
        Self {
            dropped: counters.dropped,
            dropped_open: counters.dropped_open,
            lag_events: status.lag_events,
            lag_records: status.lag_records,
            oldest_age_seconds: status.oldest_age.map_or(0, |age| age.0 / 1_000_000_000),
            memory_events: status.in_memory_events,
            memory_permille: status.memory_permille,
            disk_events: status.on_disk_events,
            attempts: counters.attempts,
            delivered: counters.delivered,
            failures: counters.failures,
            dead_letters: status.dead_letters,
            disabled: u64::from(!status.enabled),
            unreachable: u64::from(status.enabled && status.backs_off_until.is_some()),
            unread: u64::from(status.source_error.is_some()),
            over_threshold: u64::from(status.is_over_threshold),
        }
    }

    fn with(self, other: Self) -> Self {
        Self {
            dropped: self.dropped + other.dropped,
            dropped_open: self.dropped_open + other.dropped_open,
            lag_events: self.lag_events + other.lag_events,
            // The worst of them.
            lag_records: self.lag_records.max(other.lag_records),
            oldest_age_seconds: self.oldest_age_seconds.max(other.oldest_age_seconds),
            memory_events: self.memory_events + other.memory_events,
            memory_permille: self.memory_permille.max(other.memory_permille),
            disk_events: self.disk_events + other.disk_events,
            attempts: self.attempts + other.attempts,
            delivered: self.delivered + other.delivered,
            failures: self.failures + other.failures,
            dead_letters: self.dead_letters + other.dead_letters,
            disabled: self.disabled + other.disabled,
            unreachable: self.unreachable + other.unreachable,
            unread: self.unread + other.unread,
            over_threshold: self.over_threshold + other.over_threshold,
        }
    }
}

/// The labels of a series.
struct Labels {
    webhook: String,
    name: String,
    tenant: String,
}

impl Labels {
    fn pairs(&self) -> [(&'static str, &str); 3] {
        [("webhook", &self.webhook), ("name", &self.name), ("tenant", &self.tenant)]
    }
}

fn series(sinks: &[SinkFigures]) -> Vec<(Labels, Sums)> {
    let (own, others) = sinks.split_at(sinks.len().min(WEBHOOKS_MAX));
    let own = own.iter().map(|sink| {
        let (webhook, name) = (sink.status.id.0.to_string(), sink.status.name.clone());
        (Labels { webhook, name, tenant: sink.tenant.clone() }, Sums::of(&sink.status))
    });
    let together = others.iter().map(|sink| Sums::of(&sink.status)).reduce(Sums::with);
    let labels = Labels { webhook: OTHERS.to_owned(), name: String::new(), tenant: String::new() };
    own.chain(together.map(|sums| (labels, sums))).collect()
}

pub(super) fn show(page: &mut Page, figures: &DeliveryFigures) {
    page.gauge("accounting_enabled", "1 if events are delivered.").set(u64::from(figures.is_enabled));
    let series = series(&figures.sinks);
    let help = "Events that were skipped because their webhook was too far behind.";
    let dropped = page.counter("accounting_events_dropped_total", help);
    if series.is_empty() {
        // It exists in any case, so that an alert about it can be trusted.
        dropped.set(0);
    }
    series.iter().for_each(|(labels, sums)| dropped.with(labels.pairs(), sums.dropped));
    if !figures.is_enabled {
        return;
    }
    page.gauge("accounting_not_running", "1 if deliveries are enabled and could not be started.")
        .set(u64::from(figures.has_trouble));
    page.gauge("accounting_events_per_minute", "Events that became due per minute, during the last hour.")
        .set(figures.events_per_minute);
    if let Some(is_readable) = figures.is_token_readable {
        page.gauge("accounting_token_readable", "1 if the token of the accounting system could be read.")
            .set(u64::from(is_readable));
    }
    page.gauge("accounting_webhooks", "Webhooks.").set(figures.sinks.len() as u64);
    let mut gauge = |name, help, of: fn(&Sums) -> u64| {
        let family = page.gauge(name, help);
        series.iter().for_each(|(labels, sums)| family.with(labels.pairs(), of(sums)));
    };
    gauge("accounting_events_dropped_open", "Skipped events that no reconciliation has sent.", |sums| {
        sums.dropped_open
    });
    gauge("accounting_lag_events", "Events that are due and not delivered.", |sums| sums.lag_events);
    gauge("accounting_lag_records", "Records after the one up to which everything is done.", |sums| sums.lag_records);
    gauge("accounting_oldest_event_age_seconds", "Age of the oldest event in memory.", |sums| sums.oldest_age_seconds);
    gauge("accounting_memory_events", "Events in memory.", |sums| sums.memory_events);
    gauge("accounting_disk_events", "Events that are due and only in the journal.", |sums| sums.disk_events);
    gauge("accounting_dead_letters", "Events that are set aside.", |sums| sums.dead_letters);
    gauge("accounting_disabled", "1 if nothing is delivered because the webhook is disabled.", |sums| sums.disabled);
    gauge("accounting_unreachable", "1 while the receiver as a whole fails.", |sums| sums.unreachable);
    gauge("accounting_unread", "1 while events cannot be read from the journal.", |sums| sums.unread);
    gauge("accounting_over_threshold", "1 while more events are behind than disk_buffer_max_events.", |sums| {
        sums.over_threshold
    });
    let help = "How much of the memory is filled, by events or by bytes, from 0 to 1.";
    let family = page.gauge("accounting_memory_used_ratio", help);
    series.iter().for_each(|(labels, sums)| family.permille(labels.pairs(), sums.memory_permille));
    let mut counter = |name, help, of: fn(&Sums) -> u64| {
        let family = page.counter(name, help);
        series.iter().for_each(|(labels, sums)| family.with(labels.pairs(), of(sums)));
    };
    counter("accounting_attempts_total", "Attempts to deliver an event.", |sums| sums.attempts);
    counter("accounting_delivered_total", "Events that were delivered.", |sums| sums.delivered);
    counter("accounting_failures_total", "Attempts that failed.", |sums| sums.failures);
}
