//! Prices, factors, and charge policies for leases that end early (SEMANTICS 7).

use crate::class::ResourceKind;
use crate::codec::{DecodeError, Field, Reader, put_varint};
use crate::id::{ClassNo, PoolNo};
use crate::instant::{Instant, Span};
use crate::limits::{FACTOR_MAX, RATE_LINES_MAX, RATE_MAX};
use crate::name::Name;
use crate::policy::Priority;
use crate::{fields, words};
use std::fmt;
use std::str::FromStr;

/// Billionths in one.
pub const BILLION: u64 = 1_000_000_000;

/// A price or a factor: never negative, with up to nine decimals, stored in billionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal(pub u64);

/// Why a text is not a valid price or factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadDecimal {
    Negative,
    NotANumber,
    TooPrecise,
    TooLarge,
}

impl fmt::Display for BadDecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Negative => "must not be negative",
            Self::NotANumber => "must be a decimal number such as 0.01",
            Self::TooPrecise => "has more than nine decimals",
            Self::TooLarge => "is too large",
        })
    }
}
impl std::error::Error for BadDecimal {}

impl Decimal {
    pub const ONE: Self = Self(BILLION);

    /// A price as text: `0.01` per second, `2/h` per hour, `48/d` per day.
    pub fn per(self, period: Period) -> String {
        match period {
            Period::Second => self.to_string(),
            Period::Hour | Period::Day => format!("{self}/{}", period.word()),
        }
    }
}

/// Reads a number with up to nine decimals, as billionths.
pub(crate) fn billionths(text: &str) -> Result<u128, BadDecimal> {
    if text.starts_with('-') {
        return Err(BadDecimal::Negative);
    }
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) {
        return Err(BadDecimal::NotANumber);
    }
    let part = part.trim_end_matches('0');
    if part.len() > 9 {
        return Err(BadDecimal::TooPrecise);
    }
    let whole: u128 = whole.parse().map_err(|_| BadDecimal::TooLarge)?;
    let billionths: u128 = format!("{part:0<9}").parse().map_err(|_| BadDecimal::NotANumber)?;
    let all = whole.checked_mul(u128::from(BILLION)).and_then(|whole| whole.checked_add(billionths));
    all.ok_or(BadDecimal::TooLarge)
}

impl FromStr for Decimal {
    type Err = BadDecimal;

    fn from_str(text: &str) -> Result<Self, BadDecimal> {
        u64::try_from(billionths(text)?).map(Self).map_err(|_| BadDecimal::TooLarge)
    }
}

/// With as few decimals as necessary.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / BILLION, self.0 % BILLION);
        if part == 0 {
            return write!(f, "{whole}");
        }
        write!(f, "{whole}.{}", format!("{part:09}").trim_end_matches('0'))
    }
}

impl Field for Decimal {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Field::get(r).map(Self)
    }
}

/// Three capital letters, as in ISO 4217.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// The first in order.
    pub const FIRST: Self = Self(*b"AAA");
    /// The currency of the default prices.
    pub const DEFAULT: Self = Self(*b"EUR");

    pub fn new(text: &str) -> Option<Self> {
        let letters: [u8; 3] = text.as_bytes().try_into().ok()?;
        letters.iter().all(u8::is_ascii_uppercase).then_some(Self(letters))
    }
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("three letters")
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Field for Currency {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let letters: [u8; 3] = r.array()?;
        if letters.iter().all(u8::is_ascii_uppercase) {
            Ok(Self(letters))
        } else {
            Err(DecodeError::Forbidden("a currency that is not three capital letters"))
        }
    }
}

words! {
    /// What a price is for. Nothing is priced per month: months differ in length.
    pub enum Period {
        Second = 1 "s",
        Hour = 2 "h",
        Day = 3 "d",
    }
}

impl Period {
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Hour => 3_600,
            Self::Day => 86_400,
        }
    }
}

/// What the prices of a card are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Periods {
    /// In the order of `ResourceKind`.
    pub kinds: [Period; 5],
    /// Of classes whose own price is not per second; in order of class.
    pub classes: Vec<(ClassNo, Period)>,
}

impl Periods {
    /// All prices are per second.
    pub const SECONDS: Self = Self { kinds: [Period::Second; 5], classes: Vec::new() };
}

impl Field for Periods {
    fn put(&self, out: &mut Vec<u8>) {
        self.kinds.iter().for_each(|period| period.put(out));
        self.classes.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut kinds = [Period::Second; 5];
        for period in &mut kinds {
            *period = Field::get(r)?;
        }
        Ok(Self { kinds, classes: Field::get(r)? })
    }
}

/// Prices per unit and [`Period`], and the factors on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prices {
    pub currency: Currency,
    /// In the order of `ResourceKind`.
    pub kinds: PerKind,
    /// Prices of single classes, which override those of their kind; in order of class.
    pub classes: Vec<(ClassNo, Decimal)>,
    /// Factors by tier; in order of name.
    pub tiers: Vec<(Name, Decimal)>,
    /// In the order scavenger, standard, guaranteed.
    pub priorities: Factors,
    /// What the prices of kinds and classes are for.
    pub periods: Periods,
}

/// The bit of the periods among the fields that were added to prices later.
const WITH_PERIODS: u64 = 1;

/// Any prices can be encoded, for the hash of a command; only valid prices are decoded. They are the last field of
/// what contains them: what was added later follows at the end, and is absent if all prices are per second.
impl Field for Prices {
    fn put(&self, out: &mut Vec<u8>) {
        self.currency.put(out);
        self.kinds.put(out);
        self.classes.put(out);
        self.tiers.put(out);
        self.priorities.put(out);
        if self.periods != Periods::SECONDS {
            put_varint(WITH_PERIODS, out);
            self.periods.put(out);
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (currency, kinds) = (Field::get(r)?, Field::get(r)?);
        let (classes, tiers, priorities) = (Field::get(r)?, Field::get(r)?, Field::get(r)?);
        let periods = match r.added(WITH_PERIODS)? {
            0 => Periods::SECONDS,
            _ => Some(Periods::get(r)?)
                .filter(|periods| *periods != Periods::SECONDS)
                .ok_or(DecodeError::Forbidden("periods that are all a second"))?,
        };
        let prices = Self { currency, kinds, classes, tiers, priorities, periods };
        prices.check().map_err(|_| DecodeError::Forbidden("prices that are too high, too many or out of order"))?;
        Ok(prices)
    }
}

/// One price per kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerKind(pub [Decimal; 5]);

/// One factor per priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factors(pub [Decimal; 3]);

impl Field for PerKind {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|price| price.put(out));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut prices = [Decimal::default(); 5];
        for price in &mut prices {
            *price = Field::get(r)?;
        }
        Ok(Self(prices))
    }
}

impl Field for Factors {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.iter().for_each(|factor| factor.put(out));
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self([Field::get(r)?, Field::get(r)?, Field::get(r)?]))
    }
}

/// Why prices are invalid, with the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadPrices {
    RateTooLarge { field: String },
    FactorTooLarge { field: String },
    TooManyLines { field: &'static str },
    OutOfOrder { field: &'static str },
}

impl fmt::Display for BadPrices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateTooLarge { field } => write!(f, "{field} is above {RATE_MAX}"),
            Self::FactorTooLarge { field } => write!(f, "{field} is above {FACTOR_MAX}"),
            Self::TooManyLines { field } => write!(f, "{field} has more than {RATE_LINES_MAX} entries"),
            Self::OutOfOrder { field } => write!(f, "{field} contains an entry twice, or is not sorted"),
        }
    }
}
impl std::error::Error for BadPrices {}

impl BadPrices {
    /// The invalid field.
    pub fn field(&self) -> &str {
        match self {
            Self::RateTooLarge { field } | Self::FactorTooLarge { field } => field,
            Self::TooManyLines { field } | Self::OutOfOrder { field } => field,
        }
    }
}

/// The default prices (SEMANTICS 7).
pub static DEFAULT_PRICES: Prices = Prices {
    currency: Currency::DEFAULT,
    kinds: PerKind([Decimal(10_000_000), Decimal(2_000_000), Decimal(1_000_000), Decimal(500_000), Decimal(300_000)]),
    classes: Vec::new(),
    tiers: Vec::new(),
    priorities: Factors([Decimal(300_000_000), Decimal::ONE, Decimal(1_500_000_000)]),
    periods: Periods::SECONDS,
};

impl Prices {
    /// The default prices (SEMANTICS 7).
    pub fn default_card() -> Self {
        DEFAULT_PRICES.clone()
    }

    /// What the price of a class is for.
    pub fn period(&self, class: ClassNo, kind: ResourceKind) -> Period {
        if self.classes.binary_search_by_key(&class, |(class, _)| *class).is_err() {
            return self.periods.kinds[kind as usize - 1];
        }
        let own = self.periods.classes.binary_search_by_key(&class, |(class, _)| *class);
        own.map_or(Period::Second, |place| self.periods.classes[place].1)
    }

    /// The price of a class per unit and period, before factors.
    pub fn price(&self, class: ClassNo, kind: ResourceKind) -> Decimal {
        match self.classes.binary_search_by_key(&class, |(class, _)| *class) {
            Ok(place) => self.classes[place].1,
            Err(_) => self.kinds.0[kind as usize - 1],
        }
    }

    pub fn tier_factor(&self, tier: Option<&Name>) -> Decimal {
        let place = tier.and_then(|tier| self.tiers.binary_search_by(|(name, _)| name.cmp(tier)).ok());
        place.map_or(Decimal::ONE, |place| self.tiers[place].1)
    }

    pub fn priority_factor(&self, priority: Priority) -> Decimal {
        self.priorities.0[priority.index()]
    }

    /// Checks the limits. They ensure that the cost of the largest cluster over a century fits into 256 bits.
    pub fn check(&self) -> Result<(), BadPrices> {
        for (kind, price) in ResourceKind::ALL.iter().zip(self.kinds.0) {
            if price > RATE_MAX {
                return Err(BadPrices::RateTooLarge { field: format!("kinds.{kind}") });
            }
        }
        if self.classes.len() > RATE_LINES_MAX {
            return Err(BadPrices::TooManyLines { field: "classes" });
        }
        if self.tiers.len() > RATE_LINES_MAX {
            return Err(BadPrices::TooManyLines { field: "tiers" });
        }
        if !self.classes.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(BadPrices::OutOfOrder { field: "classes" });
        }
        if !self.tiers.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(BadPrices::OutOfOrder { field: "tiers" });
        }
        let of_class = &self.periods.classes;
        let has_price = |class: &ClassNo| self.classes.binary_search_by_key(class, |(class, _)| *class).is_ok();
        if !of_class.is_sorted_by(|a, b| a.0 < b.0)
            || !of_class.iter().all(|(class, period)| *period != Period::Second && has_price(class))
        {
            return Err(BadPrices::OutOfOrder { field: "classes" });
        }
        if let Some((class, _)) = self.classes.iter().find(|(_, price)| *price > RATE_MAX) {
            return Err(BadPrices::RateTooLarge { field: format!("classes.{}", class.0) });
        }
        if let Some((tier, _)) = self.tiers.iter().find(|(_, factor)| *factor > FACTOR_MAX) {
            return Err(BadPrices::FactorTooLarge { field: format!("tiers.{tier}") });
        }
        for (priority, factor) in Priority::ALL.iter().zip(self.priorities.0) {
            if factor > FACTOR_MAX {
                return Err(BadPrices::FactorTooLarge { field: format!("priorities.{priority}") });
            }
        }
        Ok(())
    }
}

/// How much of a lease is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// All held time.
    Full,
    None,
    /// The held time without its last part.
    MinusLast(Span),
}

impl Field for Charge {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Full => out.push(1),
            Self::None => out.push(2),
            Self::MinusLast(span) => {
                out.push(3);
                span.put(out);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match r.byte()? {
            1 => Self::Full,
            2 => Self::None,
            3 => Self::MinusLast(Field::get(r)?),
            code => return Err(DecodeError::BadCode { field: "charge", code: u64::from(code) }),
        })
    }
}

fields! {
    /// How leases are charged, by the reason of their end.
    pub struct Charges {
        pub preempted: Charge,
        pub fenced: Charge,
        pub node_lost: Charge,
        pub failed_start: Charge,
    }
}

impl Charges {
    /// Each reason with its charge.
    pub fn each(&self) -> [(&'static str, Charge); 4] {
        [
            ("preempted", self.preempted),
            ("fenced", self.fenced),
            ("node_lost", self.node_lost),
            ("failed_start", self.failed_start),
        ]
    }

    /// The default: all held time is charged.
    pub const DEFAULT: Self =
        Self { preempted: Charge::Full, fenced: Charge::Full, node_lost: Charge::Full, failed_start: Charge::Full };
}

/// Prices from an instant on, for one pool or for all pools without own prices. A card that has not taken effect can
/// be replaced under its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateCardPut {
    pub card: u32,
    pub pool: Option<PoolNo>,
    pub from: Instant,
    pub prices: Prices,
}

impl Field for RateCardPut {
    fn put(&self, out: &mut Vec<u8>) {
        assert_eq!(self.prices.check(), Ok(()), "only valid prices are recorded");
        self.card.put(out);
        self.pool.put(out);
        self.from.put(out);
        self.prices.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { card: Field::get(r)?, pool: Field::get(r)?, from: Field::get(r)?, prices: Field::get(r)? })
    }
}

fields! {
    /// A rate card that had not taken effect was deleted.
    pub struct RateCardDeleted { pub card: u32 }
}
fields! {
    /// How leases that end from an instant on are charged, by the reason of their end. A policy that has not taken
    /// effect can be replaced under its number.
    pub struct ChargePolicyPut {
        pub policy: u32,
        pub from: Instant,
        pub charges: Charges,
    }
}
