//! The points of a block, packed: distances from the block's first instant in as few bytes as the longest takes, then the
//! changes in as few as the largest takes. Every point is found without reading those before it.

use super::{Head, Point, Sum, after};
use crate::QuantaNs;
use crate::interval::Window;
use leasehold_model::Instant;

/// `[bytes of a distance, bytes of a change, points…]`; each point is its distance and its change, little-endian. Eight
/// bytes of padding at the end let every field be read as a whole word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block(Box<[u8]>);

const PADDING: usize = 8;
const HEAD: usize = 2;

fn bytes_of(bits: u32) -> usize {
    (bits.div_ceil(8) as usize).max(1)
}

/// Bits of a number with its sign.
fn signed_bits(value: i64) -> u32 {
    65 - (value ^ (value >> 63)).leading_zeros()
}

impl Block {
    pub(super) fn encode(points: &[Point]) -> Self {
        let first = points[0].at;
        let far = points[points.len() - 1].at.since(first).0;
        let wide = bytes_of(64 - far.leading_zeros());
        let deep = points.iter().map(|point| bytes_of(signed_bits(point.delta))).max().unwrap_or(1);
        let mut bytes = Vec::with_capacity(HEAD + points.len() * (wide + deep) + PADDING);
        bytes.push(u8::try_from(wide).expect("at most eight"));
        bytes.push(u8::try_from(deep).expect("at most eight"));
        for point in points {
            bytes.extend_from_slice(&point.at.since(first).0.to_le_bytes()[..wide]);
            bytes.extend_from_slice(&point.delta.to_le_bytes()[..deep]);
        }
        bytes.resize(bytes.len() + PADDING, 0);
        Self(bytes.into())
    }

    /// As it was kept. `None` if it cannot be one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [wide, deep, points @ ..] = bytes else { return None };
        let each = usize::from(*wide) + usize::from(*deep);
        let sound = (1..=8).contains(wide) && (1..=8).contains(deep) && points.len() >= each;
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len() + PADDING, 0);
        (sound && points.len() % each == 0).then(|| Self(padded.into()))
    }

    /// Stands in for one that cannot be read.
    pub fn empty() -> Self {
        Self(vec![1; HEAD].into_iter().chain([0; PADDING]).collect())
    }

    /// What is kept of it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0[..self.0.len() - PADDING]
    }

    /// Memory that it takes.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn word(&self, place: usize) -> u64 {
        u64::from_le_bytes(*self.0[place..].first_chunk().expect("padded"))
    }

    /// Its points in order.
    #[inline]
    pub(super) fn points(&self, first: Instant) -> impl Iterator<Item = Point> + '_ {
        let (wide, deep) = (usize::from(self.0[0]), usize::from(self.0[1]));
        let (mask, shift) = (u64::MAX >> (64 - 8 * wide), 64 - 8 * deep);
        let last = self.0.len() - PADDING;
        (HEAD..last).step_by(wide + deep).map(move |place| Point {
            at: Instant(first.0.wrapping_add(self.word(place) & mask)),
            // Shifted up and down again, so that the sign comes along.
            delta: (self.word(place + wide) << shift).cast_signed() >> shift,
        })
    }

    /// The integral up to an instant that is not before the first, and the level there.
    pub(super) fn at(&self, head: &Head, at: Instant) -> (QuantaNs, u64) {
        let mut sum = Sum { level: head.level, integral: head.integral, at: head.first };
        for point in self.points(head.first) {
            if point.at > at {
                break;
            }
            sum.step(point);
        }
        sum.advance(at);
        (sum.integral, sum.level)
    }

    /// The highest level after a point inside the window.
    pub(super) fn peak(&self, head: &Head, window: Window) -> u64 {
        let (mut level, mut peak) = (head.level, 0);
        for point in self.points(head.first) {
            level = after(level, point.delta);
            if point.at >= window.to {
                break;
            }
            if point.at >= window.from {
                peak = peak.max(level);
            }
        }
        peak
    }
}
