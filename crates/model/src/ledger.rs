//! The amounts, accounts and months of the ledger (SEMANTICS 12).

pub use crate::account::{Account, AccountKind, Leg};
use crate::codec::{DecodeError, Field, Reader, put_varint, put_varint_wide};
use crate::id::{AppInstanceNo, AttachmentNo, ClassNo, PoolNo, ProjectNo, UnitNo};
use crate::instant::Instant;
pub use crate::month::{BadMonth, Month};
use crate::name::Name;
use crate::policy::Priority;
use crate::rate::{BadDecimal, Currency};
use crate::{fields, words};
use smallvec::SmallVec;
use std::fmt;
use std::str::FromStr;

/// Decimals of a posted amount.
pub const STEP_DECIMALS: u32 = 6;
/// Steps in one unit of a currency.
pub const STEPS_PER_UNIT: u64 = 1_000_000;

/// A posted amount: whole steps of 10^-6 of a currency, negative for what is given back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Steps(pub i128);

impl Steps {
    pub const ZERO: Self = Self(0);
    /// The largest amount that can be encoded.
    pub const MAX: Self = Self(1 << 110);

    /// `None` if the sum cannot be encoded.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self).filter(|sum| sum.is_encodable())
    }

    /// The sum of all; `None` if it cannot be encoded.
    pub fn sum(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        all.into_iter().try_fold(Self::ZERO, Self::checked_add)
    }

    pub const fn is_encodable(self) -> bool {
        self.0.unsigned_abs() <= Self::MAX.0.unsigned_abs()
    }
}

impl std::ops::Neg for Steps {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

/// Six decimals, always.
impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, all) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        let per_unit = u128::from(STEPS_PER_UNIT);
        f.pad(&format!("{sign}{}.{:06}", all / per_unit, all % per_unit))
    }
}

impl FromStr for Steps {
    type Err = BadDecimal;

    fn from_str(text: &str) -> Result<Self, BadDecimal> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
        let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !all_digits(whole) || !all_digits(part) {
            return Err(BadDecimal::NotANumber);
        }
        let part = part.trim_end_matches('0');
        if part.len() > STEP_DECIMALS as usize {
            return Err(BadDecimal::TooPrecise);
        }
        let whole: i128 = whole.parse().map_err(|_| BadDecimal::TooLarge)?;
        let part: i128 = format!("{part:0<6}").parse().map_err(|_| BadDecimal::NotANumber)?;
        let steps = whole.checked_mul(i128::from(STEPS_PER_UNIT)).and_then(|steps| steps.checked_add(part));
        let steps = steps.map(Self).filter(|steps| steps.is_encodable()).ok_or(BadDecimal::TooLarge)?;
        Ok(if negative { -steps } else { steps })
    }
}

/// Small numbers of either sign take few bytes: the sign is the lowest bit.
pub(crate) fn put_signed(value: i128, out: &mut Vec<u8>) {
    put_varint_wide((value.unsigned_abs() << 1) | u128::from(value < 0), out);
}

pub(crate) fn get_signed(r: &mut Reader<'_>) -> Result<i128, DecodeError> {
    let word = r.varint_wide()?;
    let size = i128::try_from(word >> 1).map_err(|_| DecodeError::BadInteger)?;
    match (word & 1 == 1, size) {
        (true, 0) => Err(DecodeError::Forbidden("a negative zero")),
        (true, size) => Ok(-size),
        (false, size) => Ok(size),
    }
}

impl Field for Steps {
    fn put(&self, out: &mut Vec<u8>) {
        assert!(self.is_encodable(), "an amount beyond the limit");
        put_signed(self.0, out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Some(Self(get_signed(r)?)).filter(|steps| steps.is_encodable()).ok_or(DecodeError::BadInteger)
    }
}

/// Usage as a difference: quanta × nanoseconds, or parts of a usage unit, negative where less was used than posted
/// before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UsageDelta(pub i128);

impl Field for UsageDelta {
    fn put(&self, out: &mut Vec<u8>) {
        assert!(self.0.unsigned_abs() < 1 << 120, "usage beyond the limit");
        put_signed(self.0, out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Some(Self(get_signed(r)?)).filter(|usage| usage.0.unsigned_abs() < 1 << 120).ok_or(DecodeError::BadInteger)
    }
}

/// What a payer's exact costs exceed its postings by, in units of 10^-30 of the currency: at most half a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Residual(i128);

impl Residual {
    pub const NONE: Self = Self(0);
    /// Units of a residual in one step.
    pub const PER_STEP: u128 = 1_000_000_000_000_000_000_000_000;

    /// A residual of so many units, unless that is more than half a step.
    pub fn from_units(units: i128) -> Option<Self> {
        (units.unsigned_abs() <= Self::PER_STEP / 2).then_some(Self(units))
    }
    pub const fn units(self) -> i128 {
        self.0
    }
}

impl Field for Residual {
    fn put(&self, out: &mut Vec<u8>) {
        put_signed(self.0, out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::from_units(get_signed(r)?).ok_or(DecodeError::BadInteger)
    }
}

/// The digits of a natural number of any size, in base 256, the most significant first and never zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Magnitude(SmallVec<[u8; 24]>);

/// The most bytes of a magnitude.
pub const MAGNITUDE_BYTES_MAX: usize = 128;

impl Magnitude {
    /// `None` if there are too many digits. Leading zeros are dropped.
    pub fn from_digits(digits: &[u8]) -> Option<Self> {
        let first = digits.iter().position(|digit| *digit != 0).unwrap_or(digits.len());
        let digits = &digits[first..];
        (digits.len() <= MAGNITUDE_BYTES_MAX).then(|| Self(SmallVec::from_slice(digits)))
    }
    pub fn digits(&self) -> &[u8] {
        &self.0
    }
    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }
}

/// In decimal digits.
impl fmt::Display for Magnitude {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Digits in base 10^9, the least significant first.
        const BASE: u64 = 1_000_000_000;
        let mut limbs: Vec<u64> = vec![0];
        for digit in &self.0 {
            let mut carry = u64::from(*digit);
            for limb in &mut limbs {
                let sum = *limb * 256 + carry;
                (*limb, carry) = (sum % BASE, sum / BASE);
            }
            if carry > 0 {
                limbs.push(carry);
            }
        }
        let mut text = limbs.pop().expect("there is at least one").to_string();
        limbs.iter().rev().for_each(|limb| text.push_str(&format!("{limb:09}")));
        f.pad(&text)
    }
}

impl Field for Magnitude {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(self.0.len() as u64, out);
        out.extend_from_slice(&self.0);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let n = r.count(MAGNITUDE_BYTES_MAX)?;
        let digits = r.take(n)?;
        if digits.first() == Some(&0) {
            return Err(DecodeError::BadInteger);
        }
        Ok(Self(SmallVec::from_slice(digits)))
    }
}

/// An exact amount in steps: a fraction, which the crate `ledger` computes with. Zero is 0/1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactSteps {
    pub negative: bool,
    pub numerator: Magnitude,
    /// Never zero.
    pub denominator: Magnitude,
}

/// `-22/7`, in steps.
impl fmt::Display for ExactSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        f.pad(&format!("{sign}{}/{}", self.numerator, self.denominator))
    }
}

impl Field for ExactSteps {
    fn put(&self, out: &mut Vec<u8>) {
        self.negative.put(out);
        self.numerator.put(out);
        self.denominator.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let exact = Self { negative: Field::get(r)?, numerator: Field::get(r)?, denominator: Field::get(r)? };
        if exact.denominator.is_zero() || exact.negative && exact.numerator.is_zero() {
            return Err(DecodeError::Forbidden("a fraction without a denominator, or a negative zero"));
        }
        Ok(exact)
    }
}

/// The start of the UTC hour that contains an instant.
pub const fn hour_of(at: Instant) -> Instant {
    Instant(at.0 - at.0 % HOUR_NS)
}
/// The nanoseconds of an hour.
pub const HOUR_NS: u64 = 3_600_000_000_000;

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item {
    /// Capacity of a class, held by leases or idle on claimed nodes.
    Class(ClassNo),
    /// Usage that an app reported. Such a line has no pool and no priority.
    Unit(UnitNo),
}

impl Field for Item {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Class(class) => {
                out.push(1);
                class.put(out);
            }
            Self::Unit(unit) => {
                out.push(2);
                unit.put(out);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.byte()? {
            1 => Ok(Self::Class(Field::get(r)?)),
            2 => Ok(Self::Unit(Field::get(r)?)),
            code => Err(DecodeError::BadCode { field: "item", code: u64::from(code) }),
        }
    }
}

fields! {
    /// What the usage of one line has in common. The payer and the currency are those of the posting. Lines are in this
    /// order.
    #[derive(PartialOrd, Ord, Hash)]
    pub struct LineKey {
        /// The start of the hour in which it was used.
        pub hour: Instant,
        /// Who held it.
        pub project: ProjectNo,
        pub pool: PoolNo,
        pub item: Item,
        pub priority: Priority,
        /// The priority by whose price it is charged.
        pub priced: Priority,
        pub tag: Option<Name>,
        pub app_instance: Option<AppInstanceNo>,
        pub attachment: Option<AttachmentNo>,
        pub control_plane: bool,
        /// The number of the rate card, or of the unit price; none for the default prices, or if the unit has no price.
        pub card: Option<u32>,
    }
}

impl LineKey {
    /// What lines of usage units have in place of a pool.
    pub const NO_POOL: PoolNo = PoolNo(u32::MAX);
}

words! {
    /// What an entry of the ledger is.
    pub enum EntryKind {
        /// Usage of an hour.
        Usage = 1 "usage",
        /// Takes a wrong entry back.
        Reversal = 2 "reversal",
        /// Takes the place of a wrong entry.
        Replacement = 3 "replacement",
        /// Rounding of a correction, or of an invoice.
        Rounding = 4 "rounding",
        /// Booked by hand.
        Adjustment = 5 "adjustment",
        /// What a project owes becomes part of an invoice.
        Invoice = 6 "invoice",
        /// Tax on an invoice.
        Tax = 7 "tax",
        Payment = 8 "payment",
        /// Credit that was paid in advance.
        TopUp = 9 "top_up",
        /// Credit that was not used in time.
        Lapse = 10 "lapse",
        /// Credit that pays an invoice.
        PrepaidUse = 11 "prepaid_use",
        /// A share of the cost of a control plane.
        Share = 12 "share",
    }
}

fields! {
    /// An entry of the ledger: the sequence of its record, and its position in it.
    #[derive(Copy, PartialOrd, Ord, Hash)]
    pub struct EntryId { pub sequence: u64, pub position: u16 }
}

/// `entry-1234-5`
impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("entry-{}-{}", self.sequence, self.position))
    }
}

impl EntryId {
    /// Reads what [`fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let (sequence, position) = text.strip_prefix("entry-")?.split_once('-')?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(sequence) || !digits(position) {
            return None;
        }
        Some(Self { sequence: sequence.parse().ok()?, position: position.parse().ok()? })
    }
}

words! {
    /// Whether an invoice asks for money or gives it back.
    pub enum InvoiceSeries {
        Invoice = 1 "invoice",
        /// The net of the month is negative.
        CreditNote = 2 "credit_note",
    }
}

fields! {
    /// The number of an invoice or of a credit note.
    #[derive(Copy, PartialOrd, Ord, Hash)]
    pub struct InvoiceNo { pub series: InvoiceSeries, pub number: u64 }
}

/// `INV-000012`, `CN-000003`
impl fmt::Display for InvoiceNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.series {
            InvoiceSeries::Invoice => "INV",
            InvoiceSeries::CreditNote => "CN",
        };
        f.pad(&format!("{prefix}-{:06}", self.number))
    }
}

impl InvoiceNo {
    /// Reads what [`fmt::Display`] writes; leading zeros may be left out.
    pub fn parse(text: &str) -> Option<Self> {
        let (prefix, number) = text.split_once('-')?;
        let series = match prefix {
            "INV" | "inv" => InvoiceSeries::Invoice,
            "CN" | "cn" => InvoiceSeries::CreditNote,
            _ => return None,
        };
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| number.parse().ok()).flatten().map(|number| Self { series, number })
    }
}

/// The decimals in which amounts of a currency are paid (ISO 4217).
pub fn currency_decimals(currency: Currency) -> u32 {
    const NONE: [&str; 17] = [
        "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF",
        "XPF",
    ];
    const THREE: [&str; 7] = ["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"];
    const FOUR: [&str; 2] = ["CLF", "UYW"];
    let text = currency.as_str();
    match () {
        () if NONE.contains(&text) => 0,
        () if THREE.contains(&text) => 3,
        () if FOUR.contains(&text) => 4,
        () => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_they_are_written() {
        for (text, steps) in [("0.000000", 0), ("1.500000", 1_500_000), ("-0.000001", -1), ("-12.000000", -12_000_000)]
        {
            assert_eq!(text.parse(), Ok(Steps(steps)));
            assert_eq!(Steps(steps).to_string(), text);
        }
        assert_eq!("7".parse(), Ok(Steps(7_000_000)));
        for bad in ["", "-", "1.", ".5", "1,5", "1e3", "0.0000001", "--1", "99999999999999999999999999999999"] {
            assert!(bad.parse::<Steps>().is_err(), "{bad}");
        }
    }

    #[test]
    fn fractions_are_written_in_decimal_digits() {
        let number = |digits: &[u8]| Magnitude::from_digits(digits).expect("short");
        for (digits, text) in [
            (&[][..], "0"),
            (&[0, 0, 7], "7"),
            (&[1, 0, 0, 0, 0], "4294967296"),
            (&[0x0d, 0xe0, 0xb6, 0xb3, 0xa7, 0x64, 0, 0], "1000000000000000000"),
        ] {
            assert_eq!(number(digits).to_string(), text);
        }
        let exact = ExactSteps { negative: true, numerator: number(&[22]), denominator: number(&[7]) };
        assert_eq!(exact.to_string(), "-22/7");
    }

    #[test]
    fn entries_and_invoices_have_names() {
        let entry = EntryId { sequence: 1234, position: 5 };
        assert_eq!((entry.to_string().as_str(), EntryId::parse("entry-1234-5")), ("entry-1234-5", Some(entry)));
        assert_eq!(EntryId::parse("entry-1234"), None);
        let note = InvoiceNo { series: InvoiceSeries::CreditNote, number: 3 };
        assert_eq!((note.to_string().as_str(), InvoiceNo::parse("CN-3")), ("CN-000003", Some(note)));
        assert_eq!(InvoiceNo::parse("XX-3"), None);
    }
}
