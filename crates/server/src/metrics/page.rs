//! A page of metrics.

use leasehold_cell::Histogram;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

type Labels = Vec<(&'static str, String)>;

#[derive(Debug)]
enum Value {
    Whole(u64),
    Fraction(f64),
    /// Sum, and the count for each bound.
    Spread(f64, Vec<(f64, u64)>),
}

/// All samples of one metric.
#[derive(Debug)]
pub(super) struct Family {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    samples: Vec<(Labels, Value)>,
}

#[derive(Debug, Default)]
pub(super) struct Page(Vec<Family>);

impl Page {
    fn family(&mut self, name: &'static str, help: &'static str, kind: MetricType) -> &mut Family {
        self.0.push(Family { name, help, kind, samples: Vec::new() });
        self.0.last_mut().expect("just pushed")
    }
    pub(super) fn gauge(&mut self, name: &'static str, help: &'static str) -> &mut Family {
        self.family(name, help, MetricType::Gauge)
    }
    pub(super) fn counter(&mut self, name: &'static str, help: &'static str) -> &mut Family {
        self.family(name, help, MetricType::Counter)
    }
    pub(super) fn histogram(&mut self, name: &'static str, help: &'static str) -> &mut Family {
        self.family(name, help, MetricType::Histogram)
    }

    pub(super) fn text(self) -> String {
        let mut registry = Registry::with_prefix("leasehold");
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        prometheus_client::encoding::text::encode_registry(&mut text, &registry).expect("writing to a string");
        text
    }
}

impl Family {
    pub(super) fn set(&mut self, value: u64) {
        self.samples.push((Labels::new(), Value::Whole(value)));
    }
    pub(super) fn of(&mut self, count: &AtomicU64) {
        self.set(count.load(Ordering::Relaxed));
    }
    pub(super) fn milliseconds(&mut self, ms: u64) {
        self.samples.push((Labels::new(), Value::Fraction(scaled(ms, 1e3))));
    }
    pub(super) fn nanoseconds(&mut self, ns: u64) {
        self.samples.push((Labels::new(), Value::Fraction(scaled(ns, 1e9))));
    }
    pub(super) fn permille<const N: usize>(&mut self, labels: [(&'static str, &str); N], permille: u64) {
        let labels = labels.map(|(key, value)| (key, value.to_owned()));
        self.samples.push((labels.into(), Value::Fraction(scaled(permille, 1e3))));
    }
    pub(super) fn with<const N: usize>(&mut self, labels: [(&'static str, &str); N], value: u64) {
        let labels = labels.map(|(key, value)| (key, value.to_owned()));
        self.samples.push((labels.into(), Value::Whole(value)));
    }
    /// A series begins with its first event.
    pub(super) fn unless_zero<const N: usize>(&mut self, labels: [(&'static str, &str); N], count: &AtomicU64) {
        let count = count.load(Ordering::Relaxed);
        if count > 0 {
            self.with(labels, count);
        }
    }
    /// A histogram in nanoseconds, shown in seconds.
    pub(super) fn times<const N: usize>(&mut self, labels: [(&'static str, &str); N], histogram: &Histogram) {
        self.spread(labels, histogram, 1e9);
    }
    pub(super) fn sizes(&mut self, histogram: &Histogram) {
        self.spread([], histogram, 1.0);
    }
    fn spread<const N: usize>(&mut self, labels: [(&'static str, &str); N], histogram: &Histogram, per_unit: f64) {
        let labels = labels.map(|(key, value)| (key, value.to_owned()));
        let bound = |bound: Option<u64>| bound.map_or(f64::MAX, |bound| scaled(bound, per_unit));
        let buckets = histogram.buckets().map(|(at_most, count)| (bound(at_most), count)).collect();
        self.samples.push((labels.into(), Value::Spread(scaled(histogram.sum(), per_unit), buckets)));
    }

    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut family = encoder.encode_descriptor(self.name, self.help, None, self.kind)?;
        for (labels, value) in &self.samples {
            if labels.is_empty() {
                value.encode(&mut family)?;
            } else {
                value.encode(&mut family.encode_family(labels)?)?;
            }
        }
        Ok(())
    }
}

impl Value {
    fn encode(&self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        match self {
            // Also for counters: the counter encoder would append a suffix that the names already have, and would write
            // a type that readers of the older text format do not know.
            Self::Whole(value) => encoder.encode_gauge(value),
            Self::Fraction(value) => encoder.encode_gauge(value),
            Self::Spread(sum, buckets) => {
                let count = buckets.iter().map(|(_, count)| count).sum();
                encoder.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
            }
        }
    }
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // Metrics without samples are left out.
        self.0.iter().filter(|family| !family.samples.is_empty()).try_for_each(|family| family.encode(&mut encoder))
    }
}

/// Metrics are only displayed, so floats are allowed here and nowhere else.
#[expect(clippy::float_arithmetic, reason = "the text format has seconds with decimals")]
fn scaled(value: u64, per_unit: f64) -> f64 {
    value as f64 / per_unit
}
