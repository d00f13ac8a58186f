//! One line of a story, taken apart.

use super::world::name;
use leasehold_engine::command::ReleaseOne;
use leasehold_model::body::{PerPriority, PoolQueue};
use leasehold_model::{Activity, LeaseNo, Name, Priority, Span};
use std::collections::BTreeMap;

/// One line, taken apart.
pub(super) struct Line<'a> {
    pub(super) words: Vec<&'a str>,
    pub(super) options: BTreeMap<&'a str, &'a str>,
}

impl Line<'_> {
    pub(super) fn flag(&self, word: &str) -> bool {
        self.words.contains(&word)
    }
    pub(super) fn span(&self, option: &str) -> Option<Span> {
        self.options.get(option).map(|text| text.parse().expect("a length of time"))
    }
    pub(super) fn name(&self, option: &str) -> Option<Name> {
        self.options.get(option).map(|text| name(text))
    }
    pub(super) fn number<T: std::str::FromStr>(&self, option: &str) -> Option<T> {
        self.options.get(option).map(|text| text.parse().unwrap_or_else(|_| panic!("{option}={text}")))
    }
    /// `labels=ssd,gold`: keys whose value is yes.
    pub(super) fn labels(&self) -> Vec<(Name, Name)> {
        let all = self.options.get("labels");
        all.map_or(Vec::new(), |all| all.split(',').map(|label| (name(label), name("yes"))).collect())
    }
    pub(super) fn priority(&self, option: &str) -> Option<Priority> {
        self.options.get(option).map(|word| Priority::from_word(word).expect("a priority"))
    }
    pub(super) fn pool_queue(&self) -> Option<PoolQueue> {
        let (least, requeues) = (self.span("minrun"), self.number("requeues"));
        let queue = PoolQueue {
            min_runtime_before_eviction: least.unwrap_or(Span::ZERO),
            requeue_limit: requeues.unwrap_or(10),
        };
        (least.is_some() || requeues.is_some()).then_some(queue)
    }
    pub(super) fn per_priority(&self, option: &str) -> PerPriority {
        let one = |p: &Priority| self.span(&format!("{option}.{p}")).or(self.span(option));
        let each: Vec<_> = Priority::ALL.iter().map(one).collect();
        PerPriority([each[0], each[1], each[2]])
    }
    /// The leases with what is reported on them.
    pub(super) fn reports(&self) -> Vec<ReleaseOne> {
        let leases = self.words.iter().filter_map(|word| word.strip_prefix('#'));
        let read = |word: &str| match word.split_once('(') {
            None => ReleaseOne { lease: LeaseNo(word.parse().expect("a lease")), activity: None },
            Some((lease, report)) => {
                let parts: Vec<&str> = report.trim_end_matches(')').split(',').collect();
                let span = |at: usize| parts.get(at).map_or(Span::ZERO, |text| text.parse().expect("a span"));
                let busy: u128 = parts.get(2).map_or(0, |text| text.parse().expect("quantum-seconds"));
                let activity =
                    Activity { covered: span(0), active: span(1), busy: busy * 1_000_000_000, waiting: [span(3); 5] };
                ReleaseOne { lease: LeaseNo(lease.parse().expect("a lease")), activity: Some(activity) }
            }
        };
        leases.map(read).collect()
    }
    pub(super) fn leases(&self) -> Vec<LeaseNo> {
        self.reports().iter().map(|one| one.lease).collect()
    }
}
