//! An upper bound for the scores of many nodes, computed from the ranges of their free capacity.
//!
//! For one class and one capacity, and without rounding, a score is a linear function of the free
//! capacity plus a multiple of its reciprocal. It is convex, so its maximum is at one end of the range.
//! With several classes, the sum of the maxima of each class is loose, because hardly any node reaches
//! all of them. The linear part is therefore also bounded by the sum of the free shares of all classes,
//! and the smaller of the two bounds is used. The small constants (`+ 1`, `+ 2`) make up for rounding.

use super::node_tree::NodeTree;
use super::score::{ClassAsk, ONE, Scale, Sums, cool, share};
use super::stock::Range;
use smallvec::SmallVec;

/// One class of the request, on one tree.
#[derive(Clone, Copy, Debug)]
struct Term {
    ask: ClassAsk,
    column: usize,
    /// The requested quanta as a share of the largest capacity in the tree, and of the smallest.
    least: u64,
    most: u64,
}

/// Bounds for the scores of one request on the nodes of one tree.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    scale: Scale,
    terms: SmallVec<[Term; 4]>,
    /// The columns of the classes that are not requested.
    others: SmallVec<[usize; 4]>,
    /// The least weight among the requested classes: every share counts at least that often.
    common: u64,
}

impl Bounds {
    /// `None` if no node of the tree can fit the request.
    pub(super) fn new(scale: Scale, asks: &[ClassAsk], tree: &NodeTree) -> Option<Self> {
        let mut terms: SmallVec<[Term; 4]> = SmallVec::new();
        for ask in asks {
            let column = tree.classes.iter().position(|class| *class == ask.class)?;
            let all = tree.whole_range(column);
            if !ask.fits(all.room_hi, all.whole_hi) {
                return None;
            }
            let most = share_of(ask.quanta, all.total_lo) + 1;
            terms.push(Term { ask: *ask, column, least: share(ask.quanta, all.total_hi), most });
        }
        let asked = |column: &usize| terms.iter().any(|term| term.column == *column);
        let others = (0..tree.classes.len()).filter(|column| !asked(column)).collect();
        let common = terms.iter().map(|term| term.ask.weight).min().unwrap_or(0);
        Some(Self { scale, terms, others, common })
    }

    /// The tree's column for the class of the n-th ask.
    pub(super) fn column(&self, ask: usize) -> usize {
        self.terms[ask].column
    }

    /// No node within the ranges has a higher score. `None` if the request fits none of them. Exact if
    /// all of them have the same capacity free.
    #[inline]
    pub(super) fn bound(&self, ranges: &[Range], locality: u64, heat: u16) -> Option<u64> {
        match self.terms.as_slice() {
            [one] => self.bound_of_one(one, &ranges[one.column], locality, heat),
            _ => self.bound_of_several(ranges, locality, heat),
        }
    }

    #[inline]
    fn bound_of_one(&self, term: &Term, range: &Range, locality: u64, heat: u16) -> Option<u64> {
        if !term.ask.fits(range.room_hi, range.whole_hi) {
            return None;
        }
        let weights = &self.scale.weights;
        let sum = if range.free_lo == range.free_hi && range.total_lo == range.total_hi {
            let mut sums = Sums::default();
            sums.add(&term.ask, range.total_hi, range.free_hi);
            return Some(self.scale.total(&self.scale.terms(sums, locality), heat));
        } else if weights.pressure >= weights.fragmentation {
            self.spread_class(term, range)
        } else {
            let slope = u64::from(weights.fragmentation - weights.pressure);
            let left = u64::from(range.share_lo).saturating_sub(term.most);
            let fits = self.fit_at(term, range.free_lo.max(term.ask.quanta));
            u64::from(weights.fragmentation) * ONE + fits - slope * left
        };
        Some(cool((sum + u64::from(weights.locality) * locality) / 1000, heat))
    }

    fn bound_of_several(&self, ranges: &[Range], locality: u64, heat: u16) -> Option<u64> {
        let mut alike = true;
        for term in &self.terms {
            let range = &ranges[term.column];
            if !term.ask.fits(range.room_hi, range.whole_hi) {
                return None;
            }
            alike &= range.free_lo == range.free_hi && range.total_lo == range.total_hi;
        }
        if alike {
            let mut sums = Sums::default();
            for Term { ask, column, .. } in &self.terms {
                sums.add(ask, ranges[*column].total_hi, ranges[*column].free_hi);
            }
            return Some(self.scale.total(&self.scale.terms(sums, locality), heat));
        }
        let weights = &self.scale.weights;
        let most = if weights.pressure >= weights.fragmentation { self.spread(ranges) } else { self.packed(ranges) };
        let mean = if self.scale.weight_sum == 1 { most } else { most / self.scale.weight_sum };
        Some(cool((mean + u64::from(weights.locality) * locality) / 1000, heat))
    }

    #[inline]
    fn fit_at(&self, term: &Term, free: u64) -> u64 {
        u64::from(self.scale.weights.fit) * (share(term.ask.quanta, free) + 1)
    }

    /// The bound for one class if free capacity raises the score (pressure outweighs fragmentation).
    #[inline]
    fn spread_class(&self, term: &Term, range: &Range) -> u64 {
        let w = &self.scale.weights;
        let packed = u64::from(w.fragmentation);
        let slope = u64::from(w.pressure) - packed;
        let Term { ask, least, .. } = term;
        let low = range.free_lo.max(ask.quanta);
        let left_high = u64::from(range.share_hi) + 2 - least;
        if range.total_lo != range.total_hi {
            return packed * ONE + slope * left_high + self.fit_at(term, low);
        }
        let rise = u128::from(slope) * u128::from(low) * u128::from(range.free_hi);
        if rise >= u128::from(w.fit) * u128::from(ask.quanta) * u128::from(range.total_hi) {
            return packed * ONE + slope * left_high + self.fit_at(term, range.free_hi);
        }
        let left_low = if range.free_lo < ask.quanta { 2 } else { u64::from(range.share_lo) + 2 };
        packed * ONE + slope * left_low.saturating_sub(*least).max(2) + self.fit_at(term, low)
    }

    /// As [`Self::spread_class`] for all classes: the lesser of the sum of the bounds of each class, and a bound that
    /// separates what is free of all classes together from how well each class fits.
    fn spread(&self, ranges: &[Range]) -> u64 {
        let w = &self.scale.weights;
        let slope = u64::from(w.pressure - w.fragmentation);
        let (mut each, mut shares, mut fits, mut taken) = (0, 0, 0, 0);
        for term in &self.terms {
            let (ask, range) = (&term.ask, &ranges[term.column]);
            each += ask.weight * self.spread_class(term, range);
            fits += ask.weight * self.fit_at(term, range.free_lo.max(ask.quanta));
            shares += (ask.weight - self.common) * (u64::from(range.share_hi) + 1);
            taken += ask.weight * term.least;
        }
        let others: u64 = self.others.iter().map(|column| u64::from(ranges[*column].share_lo)).sum();
        let sum = ranges.last().expect("the sum of all shares");
        let asked = u64::from(sum.share_hi) + ranges.len() as u64 - others;
        let free = (shares + self.common * asked + self.scale.weight_sum).saturating_sub(taken);
        each.min(self.scale.weight_sum * u64::from(w.fragmentation) * ONE + slope * free + fits)
    }

    /// The bound if used capacity raises the score. Less free capacity then improves all of its terms.
    fn packed(&self, ranges: &[Range]) -> u64 {
        let w = &self.scale.weights;
        let slope = u64::from(w.fragmentation - w.pressure);
        let (mut left, mut shares, mut fits, mut taken) = (0, 0, 0, 0);
        for term in &self.terms {
            let (ask, range) = (&term.ask, &ranges[term.column]);
            fits += ask.weight * self.fit_at(term, range.free_lo.max(ask.quanta));
            left += ask.weight * u64::from(range.share_lo).saturating_sub(term.most);
            shares += (ask.weight - self.common) * u64::from(range.share_lo);
            taken += ask.weight * term.most;
        }
        let others: u64 = self.others.iter().map(|column| u64::from(ranges[*column].share_hi) + 1).sum();
        let sum = ranges.last().expect("the sum of all shares");
        let asked = u64::from(sum.share_lo).saturating_sub(others);
        let left = left.max((shares + self.common * asked).saturating_sub(taken));
        self.scale.weight_sum * u64::from(w.fragmentation) * ONE + fits - slope * left
    }
}

/// As [`share`], for a part that may be larger than the whole.
fn share_of(part: u64, whole: u64) -> u64 {
    if part <= whole { share(part, whole) } else { (part / whole + 1).saturating_mul(ONE).min(u64::MAX >> 24) }
}

/// Scores and bounds for a row, whose nodes differ only in what is free of their one class.
pub(super) struct RowBounds {
    scale: Scale,
    ask: ClassAsk,
    total: u64,
    locality: u64,
}

impl RowBounds {
    pub(super) fn new(scale: Scale, ask: ClassAsk, total: u64, locality: u64) -> Self {
        Self { scale, ask, total, locality }
    }

    pub(super) fn score(&self, free: u64) -> u64 {
        let mut sums = Sums::default();
        sums.add(&self.ask, self.total, free);
        self.scale.total(&self.scale.terms(sums, self.locality), 0)
    }

    /// An upper bound for the scores of nodes with `low` to `high` free, and whether `high` has the better score.
    /// Rounding raises a score between the ends by at most one, because the weights add up to one.
    pub(super) fn of(&self, low: u64, high: u64) -> (u64, bool) {
        let low_score = self.score(low);
        if low == high {
            return (low_score, true);
        }
        let high_score = self.score(high);
        (low_score.max(high_score) + 1, high_score >= low_score)
    }
}
