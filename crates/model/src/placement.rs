//! Inputs to the choice of a node: the weights of the score, and the sensitivity of a workload (SEMANTICS 5 and 8).

use crate::class::ResourceKind;
use crate::codec::{DecodeError, Field, Reader, put_varint};
use crate::policy::Strategy;
use crate::words;
use std::fmt;

/// The sum of the weights of a score.
pub const WEIGHTS_SUM: u16 = 1000;

/// The weight of each term of the score, in thousandths that add up to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    pub pressure: u16,
    pub fit: u16,
    pub locality: u16,
    pub fragmentation: u16,
}

/// Weights that do not add up to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadWeights {
    /// The sum, in thousandths.
    pub sum: u32,
}

impl fmt::Display for BadWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the weights add up to {}.{:03}, not to one", self.sum / 1000, self.sum % 1000)
    }
}
impl std::error::Error for BadWeights {}

impl Weights {
    pub const SPREAD: Self = Self { pressure: 500, fit: 200, locality: 200, fragmentation: 100 };
    pub const BIN_PACK: Self = Self { pressure: 100, fit: 200, locality: 200, fragmentation: 500 };

    pub fn check(self) -> Result<(), BadWeights> {
        let parts = [self.pressure, self.fit, self.locality, self.fragmentation];
        let sum = parts.into_iter().map(u32::from).sum();
        if sum == u32::from(WEIGHTS_SUM) { Ok(()) } else { Err(BadWeights { sum }) }
    }
}

impl Field for Weights {
    fn put(&self, out: &mut Vec<u8>) {
        self.pressure.put(out);
        self.fit.put(out);
        self.locality.put(out);
        self.fragmentation.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let weights = Self {
            pressure: Field::get(r)?,
            fit: Field::get(r)?,
            locality: Field::get(r)?,
            fragmentation: Field::get(r)?,
        };
        weights.check().map_err(|_| DecodeError::Forbidden("weights that do not add up to one"))?;
        Ok(weights)
    }
}

/// The weights by which a node was chosen: those of a strategy, or the pool's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighing {
    Strategy(Strategy),
    Custom(Weights),
}

impl Weighing {
    pub const fn weights(self) -> Weights {
        match self {
            Self::Strategy(Strategy::Spread) => Weights::SPREAD,
            Self::Strategy(Strategy::BinPack) => Weights::BIN_PACK,
            Self::Custom(weights) => weights,
        }
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Strategy(strategy) => strategy.word(),
            Self::Custom(_) => "custom",
        }
    }
}

const CUSTOM: u8 = 3;

impl Field for Weighing {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Strategy(strategy) => strategy.put(out),
            Self::Custom(weights) => {
                out.push(CUSTOM);
                weights.put(out);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match r.byte()? {
            1 => Self::Strategy(Strategy::Spread),
            2 => Self::Strategy(Strategy::BinPack),
            CUSTOM => Self::Custom(Field::get(r)?),
            code => return Err(DecodeError::BadCode { field: "weighing", code: u64::from(code) }),
        })
    }
}

words! {
    /// How much a workload depends on one kind of resource.
    pub enum Sensitivity {
        Unused = 0 "unused",
        Indifferent = 1 "indifferent",
        Low = 2 "low",
        Moderate = 3 "moderate",
        Critical = 4 "critical",
    }
}

/// How much a workload depends on each kind, in the order of `ResourceKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile(pub [Sensitivity; 5]);

/// Bits of one kind in the sealed profile.
const LEVEL_BITS: usize = 3;

impl Profile {
    pub const fn of(self, kind: ResourceKind) -> Sensitivity {
        self.0[kind as usize - 1]
    }
}

impl Field for Profile {
    /// Three bits for each kind, the first kind lowest.
    fn put(&self, out: &mut Vec<u8>) {
        let levels = self.0.iter().enumerate();
        put_varint(levels.fold(0, |word, (place, level)| word | (*level as u64) << (LEVEL_BITS * place)), out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let word = r.varint()?;
        let bad = DecodeError::BadCode { field: "profile", code: word };
        if word >> (LEVEL_BITS * 5) != 0 {
            return Err(bad);
        }
        let mut levels = [Sensitivity::Unused; 5];
        for (place, level) in levels.iter_mut().enumerate() {
            let code = usize::try_from(word >> (LEVEL_BITS * place) & 7).expect("three bits");
            *level = *Sensitivity::ALL.get(code).ok_or(bad.clone())?;
        }
        Ok(Self(levels))
    }
}
