//! Maintenance windows: nodes that an operator reserved from one instant until another (SEMANTICS 11).

use crate::node::Node;
use crate::state::{State, entry, entry_mut};
use leasehold_model::{Instant, Name, NodeNo, QuotaNo, Span, WindowNo};

/// A window that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    pub number: WindowNo,
    /// In rising order. Nodes that were deleted since are still listed.
    pub nodes: Vec<NodeNo>,
    pub from: Instant,
    pub until: Instant,
    pub reason: Option<Name>,
    /// Whether it has begun: its nodes are drained.
    pub is_open: bool,
}

/// What the windows of a node mean for it; derived from all windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeWindows {
    /// The start of the first window that has not begun, and that window.
    pub next: Option<(Instant, WindowNo)>,
    /// How many windows have begun and not ended.
    pub open: u32,
}

impl Node {
    /// Whether an operator or a maintenance window keeps new work away from it.
    pub fn is_drained(&self) -> bool {
        self.drained || self.windows.open > 0
    }

    /// Whether work that starts at `start` and may run for `walltime` ends before the next window begins. Work without
    /// a walltime may start at any time before the window, because its TTL is shortened.
    pub(crate) fn is_free_of_windows(&self, start: Instant, walltime: Option<Span>) -> bool {
        let Some((from, _)) = self.windows.next else { return true };
        match walltime {
            Some(walltime) => start.saturating_add(walltime) <= from,
            None => start < from,
        }
    }

    /// The latest instant at which such work may start; `None` if it never may.
    pub(crate) fn latest_start(&self, walltime: Option<Span>) -> Option<Instant> {
        let Some((from, _)) = self.windows.next else { return Some(Instant(u64::MAX)) };
        from.0.checked_sub(walltime.map_or(1, |walltime| walltime.0)).map(Instant)
    }

    /// The TTL that the next window leaves of `ttl`, and the window if it shortens it.
    pub(crate) fn ttl_before_window(&self, ttl: Span, now: Instant) -> (Span, Option<WindowNo>) {
        match self.windows.next {
            Some((from, window)) if from.since(now) < ttl => (from.since(now), Some(window)),
            _ => (ttl, None),
        }
    }
}

impl State {
    /// The windows that have not ended, by number.
    pub fn windows(&self) -> impl Iterator<Item = &Window> {
        self.windows.iter().flatten()
    }

    pub fn window(&self, window: WindowNo) -> Option<&Window> {
        entry(&self.windows, window.0)
    }

    /// What is left of a TTL on a node, with the quota or the window that shortened it. A window that begins when the
    /// quota ends is not named.
    pub(crate) fn capped_on(
        &self,
        node: NodeNo,
        (ttl, quota): (Span, Option<QuotaNo>),
        now: Instant,
    ) -> (Span, Option<QuotaNo>, Option<WindowNo>) {
        let node = entry(&self.nodes, node.0).expect("a chosen node exists");
        match node.ttl_before_window(ttl, now) {
            (_, None) => (ttl, quota, None),
            (ttl, window) => (ttl, None, window),
        }
    }

    /// The first window that a node belongs to, begun or not.
    pub(crate) fn window_of(&self, node: NodeNo) -> Option<WindowNo> {
        self.windows().find(|window| window.nodes.contains(&node)).map(|window| window.number)
    }

    /// Computes what the windows mean for a node.
    pub(crate) fn count_windows(&mut self, number: NodeNo) {
        let of_node = self.windows.iter().flatten().filter(|window| window.nodes.binary_search(&number).is_ok());
        let mut counted = NodeWindows::default();
        for window in of_node {
            if window.is_open {
                counted.open += 1;
            } else if counted.next.is_none_or(|next| (window.from, window.number) < next) {
                counted.next = Some((window.from, window.number));
            }
        }
        if let Some(node) = entry_mut(&mut self.nodes, number.0) {
            node.windows = counted;
        }
    }
}
