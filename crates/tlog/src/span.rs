//! The runs of leaves whose roots are the hashes of a proof.
//!
//! Every hash in a proof is the root of the tree over one run of leaves, and the runs of one proof lie side
//! by side. Given their bounds, one pass over the leaves in journal order, keeping one frontier at a time,
//! computes every hash. Only bounds and finished roots are kept: O(log n).

use std::ops::Range;

use crate::frontier::Frontier;
use crate::hash::Hash;

/// A run of leaves, by index.
pub(crate) type Span = Range<u64>;

/// Where a tree over `span` splits: the left side holds the largest power of two below its size (RFC 6962, 2.1).
/// Only asked for spans of two leaves or more.
pub(crate) fn split(span: &Span) -> u64 {
    let last = span.end - span.start - 1;
    span.start + (1 << last.ilog2())
}

/// The siblings on the way from leaf `index` up to the root of a tree of `size` leaves.
pub(crate) fn inclusion_spans(index: u64, size: u64) -> Vec<Span> {
    let mut siblings = Vec::new();
    let mut around = 0..size;
    while around.end - around.start > 1 {
        let middle = split(&around);
        if index < middle {
            siblings.push(middle..around.end);
            around.end = middle;
        } else {
            siblings.push(around.start..middle);
            around.start = middle;
        }
    }
    siblings.reverse();
    siblings
}

/// The runs of a consistency proof, in proof order, and the old tree's own run where the proof leaves it out
/// because the reader has its root already (RFC 6962, 2.1.2: the flag `b` of SUBPROOF).
pub(crate) fn consistency_spans(old_size: u64, new_size: u64) -> (Option<Span>, Vec<Span>) {
    let mut spans = Vec::new();
    let mut around = 0..new_size;
    while old_size < around.end {
        let middle = split(&around);
        if old_size <= middle {
            spans.push(middle..around.end);
            around.end = middle;
        } else {
            spans.push(around.start..middle);
            around.start = middle;
        }
    }
    let known = if around.start == 0 {
        Some(around)
    } else {
        spans.push(around);
        None
    };
    spans.reverse();
    (known, spans)
}

/// Takes all leaves in order and keeps the root of each span.
#[derive(Clone, Debug)]
pub(crate) struct SpanRoots {
    /// The remaining spans with their index in `roots`, the next one last.
    ahead: Vec<(Span, usize)>,
    current: Frontier,
    roots: Vec<Hash>,
    leaves: u64,
}

impl SpanRoots {
    /// The spans must lie side by side from leaf 0 on, in any order.
    pub(crate) fn new(spans: Vec<Span>) -> Self {
        let roots = vec![Hash::default(); spans.len()];
        let mut ahead: Vec<_> = spans.into_iter().zip(0..).collect();
        ahead.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
        Self { ahead, current: Frontier::new(), roots, leaves: 0 }
    }

    /// Leaves past the last span are counted and otherwise ignored.
    pub(crate) fn push(&mut self, leaf: Hash) {
        self.leaves = self.leaves.saturating_add(1);
        let Some((span, place)) = self.ahead.last() else {
            return;
        };
        self.current.push(leaf);
        if self.leaves == span.end {
            self.roots[*place] = self.current.root();
            self.current = Frontier::new();
            self.ahead.pop();
        }
    }

    /// The number of leaves so far.
    pub(crate) fn leaves(&self) -> u64 {
        self.leaves
    }

    /// The roots, in the order in which the spans were given.
    pub(crate) fn into_roots(self) -> Vec<Hash> {
        self.roots
    }
}
