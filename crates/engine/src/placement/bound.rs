//! An upper bound for the scores of many nodes, computed from the ranges of their free capacity.
//!
//! For one class and one capacity, and without rounding, a score is a linear function of the free
//! capacity plus a multiple of its reciprocal. It is convex, so its maximum is at one end of the range.
//! With several classes, the sum of the maxima of each class is loose, because hardly any node reaches
//! all of them. What the linear parts have in common is therefore also bounded by the sum of the free
//! shares of all classes, and the smaller of the two bounds is used. The small constants (`+ 1`, `+ 2`)
//! make up for rounding.

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
        Some(Self { scale, terms, others })
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
        let Scale { weights, weight_sum, classes } = &self.scale;
        let most = u64::try_from(self.several(ranges)).unwrap_or(0);
        Some(cool((most / (weight_sum * classes) + u64::from(weights.locality) * locality) / 1000, heat))
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

    /// The highest sum of pressure, fit and fragmentation within the ranges, times the sum of the weights and the number
    /// of classes. A class that counts more for pressure than for fragmentation is better if more of it is free, another
    /// one if less of it is.
    fn several(&self, ranges: &[Range]) -> i64 {
        let Scale { weights: w, weight_sum, classes } = &self.scale;
        let (pressure, fit, packed) = (i64::from(w.pressure), i64::from(w.fit), i64::from(w.fragmentation));
        let (weight_sum, classes) = (signed(*weight_sum), signed(*classes));
        let slope = |term: &Term| pressure * signed(term.ask.weight) * classes - packed * weight_sum;
        let (least, most) = self
            .terms
            .iter()
            .map(slope)
            .fold((i64::MAX, i64::MIN), |(least, most), slope| (least.min(slope), most.max(slope)));
        // What all classes have in common is bounded by the sum of their free shares.
        let common = if least >= 0 { least } else { most.min(0) };
        let (mut each, mut own, mut fits, mut rounding) = (0, 0, 0, 0);
        let (mut taken_least, mut taken_most) = (0, 0);
        for term in &self.terms {
            let (ask, range, slope) = (&term.ask, &ranges[term.column], slope(term));
            let fit_at = |free: u64| fit * classes * signed(ask.weight) * (signed(share(ask.quanta, free)) + 1);
            let low = range.free_lo.max(ask.quanta);
            let left_high = i64::from(range.share_hi) + 2 - signed(term.least);
            let left_low = (i64::from(range.share_lo) - signed(term.most)).max(0);
            let left = |slope: i64| slope * if slope >= 0 { left_high } else { left_low };
            each += if slope < 0 || range.total_lo != range.total_hi {
                left(slope) + fit_at(low)
            } else {
                let left_at_low = if range.free_lo < ask.quanta { 2 } else { i64::from(range.share_lo) + 2 };
                let at_low = slope * (left_at_low - signed(term.least)).max(2) + fit_at(low);
                at_low.max(slope * left_high + fit_at(range.free_hi))
            };
            own += left(slope - common);
            fits += fit_at(low);
            rounding += pressure * classes * signed(ask.weight);
            taken_least += signed(term.least);
            taken_most += signed(term.most);
        }
        let sum = ranges.last().expect("the sum of all shares");
        let of_others =
            |share: fn(&Range) -> u32| self.others.iter().map(|at| i64::from(share(&ranges[*at]))).sum::<i64>();
        let together = if common >= 0 {
            let asked = i64::from(sum.share_hi) + signed(ranges.len() as u64) - of_others(|range| range.share_lo);
            common * (asked + classes - taken_least)
        } else {
            let others = of_others(|range| range.share_hi) + signed(self.others.len() as u64);
            common * (i64::from(sum.share_lo) - others - taken_most).max(0)
        };
        packed * weight_sum * classes * signed(ONE) + rounding + each.min(own + together + fits)
    }
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).expect("shares and weights are small")
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
