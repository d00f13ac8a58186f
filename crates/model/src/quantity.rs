//! Quantities as people write them (`8`, `500m`, `80GiB`, `25Gb`, `1/7`), as exact quanta.

use crate::class::{ClassSpec, ResourceKind};
use crate::codec::{DecodeError, Field, Reader};
use std::fmt;

/// A count of the smallest leasable piece of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quanta(pub u64);

impl fmt::Display for Quanta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
impl Field for Quanta {
    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }
    #[inline]
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self(Field::get(r)?))
    }
}

/// An amount in billing units, as an exact fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    numerator: u128,
    denominator: u64,
}

impl Fraction {
    /// `parts` times one over `per_unit`.
    pub fn new(parts: u128, per_unit: u64) -> Self {
        assert!(per_unit > 0, "a unit has at least one part");
        let shared = u64::try_from(common_divisor(parts, u128::from(per_unit))).expect("it divides `per_unit`");
        Self { numerator: parts / u128::from(shared), denominator: per_unit / shared }
    }

    pub const fn numerator(self) -> u128 {
        self.numerator
    }
    pub const fn denominator(self) -> u64 {
        self.denominator
    }

    /// Whether it is more than a whole number of units.
    pub fn exceeds(self, units: u64) -> bool {
        self.numerator > u128::from(units) * u128::from(self.denominator)
    }
}

fn common_divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            denominator => write!(f, "{}/{denominator}", self.numerator),
        }
    }
}

impl Field for Fraction {
    fn put(&self, out: &mut Vec<u8>) {
        self.numerator.put(out);
        self.denominator.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (numerator, denominator) = (Field::get(r)?, Field::get(r)?);
        let is_lowest = denominator > 0 && Self::new(numerator, denominator).denominator == denominator;
        if is_lowest {
            Ok(Self { numerator, denominator })
        } else {
            Err(DecodeError::Forbidden("a fraction that can be reduced"))
        }
    }
}

/// Why a text is not a quantity of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadQuantity {
    Unreadable(String),
    /// The suffix belongs to another kind of resource.
    WrongUnit {
        suffix: String,
        unit: &'static str,
    },
    /// The amount is not a whole number of quanta.
    NotWhole {
        text: String,
        quanta_per_unit: u64,
        unit: &'static str,
    },
    Zero,
    TooLarge(String),
}

impl fmt::Display for BadQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(text) => {
                write!(f, "`{text}` is not a quantity; write it like 8, 500m, 80GiB, 25Gb or 1/7")
            }
            Self::WrongUnit { suffix, unit } => {
                write!(f, "`{suffix}` is not a unit of this class, which is counted in {unit}")
            }
            Self::NotWhole { text, quanta_per_unit, unit } => {
                write!(f, "`{text}` is not a whole number of quanta; the smallest piece is 1/{quanta_per_unit} {unit}")
            }
            Self::Zero => write!(f, "a quantity must be more than zero"),
            Self::TooLarge(text) => write!(f, "`{text}` is too large"),
        }
    }
}
impl std::error::Error for BadQuantity {}

/// The factor of a suffix, as numerator and denominator of billing units.
fn suffix_factor(suffix: &str, kind: ResourceKind) -> Result<(u128, u128), bool> {
    const GIB: u128 = 1 << 30;
    let bytes = |n: u128| match kind {
        ResourceKind::Mem | ResourceKind::Block => Ok((n, GIB)),
        _ => Err(true),
    };
    let bits = |n: u128| match kind {
        ResourceKind::Net => Ok((n, 1_000_000_000)),
        _ => Err(true),
    };
    match suffix {
        "" => Ok((1, 1)),
        "m" => Ok((1, 1000)),
        "KiB" => bytes(1 << 10),
        "MiB" => bytes(1 << 20),
        "GiB" => bytes(1 << 30),
        "TiB" => bytes(1 << 40),
        "PiB" => bytes(1 << 50),
        "KB" => bytes(1_000),
        "MB" => bytes(1_000_000),
        "GB" => bytes(1_000_000_000),
        "TB" => bytes(1_000_000_000_000),
        "PB" => bytes(1_000_000_000_000_000),
        "Kb" => bits(1_000),
        "Mb" => bits(1_000_000),
        "Gb" => bits(1_000_000_000),
        "Tb" => bits(1_000_000_000_000),
        _ => Err(false),
    }
}

/// Reads digits with at most nine decimals, as numerator and power-of-ten denominator.
fn decimal(text: &str) -> Option<(u128, u128)> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty()
        || whole.len() > 18
        || decimals.len() > 9
        || !digits(whole)
        || !digits(decimals)
        || (text.contains('.') && decimals.is_empty())
    {
        return None;
    }
    let scale = 10u128.pow(u32::try_from(decimals.len()).ok()?);
    let fraction: u128 = if decimals.is_empty() { 0 } else { decimals.parse().ok()? };
    Some((whole.parse::<u128>().ok()? * scale + fraction, scale))
}

/// Reads a quantity of `class`, exactly.
pub fn parse(text: &str, class: &ClassSpec) -> Result<Quanta, BadQuantity> {
    let unreadable = || BadQuantity::Unreadable(text.to_owned());
    let written = text.trim();
    // `1/7` is a fraction, `25Gb/s` is not.
    let fraction = written.split_once('/').filter(|(_, b)| b.starts_with(|c: char| c.is_ascii_digit()));
    let (num, den) = if let Some((a, b)) = fraction {
        let ((a, 1), (b, 1)) = (decimal(a).ok_or_else(unreadable)?, decimal(b).ok_or_else(unreadable)?) else {
            return Err(unreadable());
        };
        if b == 0 {
            return Err(unreadable());
        }
        (a, b)
    } else {
        let end = written.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(written.len());
        let (number, suffix) = written.split_at(end);
        let (n, d) = decimal(number).ok_or_else(unreadable)?;
        // Only bits are counted per second.
        let rate = suffix.strip_suffix("/s").or(suffix.strip_suffix("ps")).filter(|bits| bits.ends_with('b'));
        let suffix = rate.unwrap_or(suffix);
        let (fn_, fd) = suffix_factor(suffix, class.kind).map_err(|known| {
            if known {
                BadQuantity::WrongUnit { suffix: suffix.to_owned(), unit: class.kind.unit() }
            } else {
                unreadable()
            }
        })?;
        let too_large = || BadQuantity::TooLarge(text.to_owned());
        (n.checked_mul(fn_).ok_or_else(too_large)?, d.checked_mul(fd).ok_or_else(too_large)?)
    };
    let quanta =
        num.checked_mul(u128::from(class.quanta_per_unit)).ok_or_else(|| BadQuantity::TooLarge(text.to_owned()))?;
    if quanta == 0 {
        return Err(BadQuantity::Zero);
    }
    if quanta % den != 0 {
        return Err(BadQuantity::NotWhole {
            text: text.to_owned(),
            quanta_per_unit: class.quanta_per_unit,
            unit: class.kind.unit(),
        });
    }
    u64::try_from(quanta / den).map(Quanta).map_err(|_| BadQuantity::TooLarge(text.to_owned()))
}

/// Formats quanta in billing units: as an integer, else as a decimal with at most nine places, else as a fraction.
pub fn display(quanta: Quanta, class: &ClassSpec) -> String {
    let per_unit = class.quanta_per_unit;
    if per_unit == 0 {
        // The engine creates no such class, but decoded bytes can contain one, and formatting must not panic.
        return format!("{quanta}/0");
    }
    let (whole, rest) = (quanta.0 / per_unit, quanta.0 % per_unit);
    if rest == 0 {
        return whole.to_string();
    }
    let billionths = u128::from(rest) * 1_000_000_000;
    if billionths % u128::from(per_unit) == 0 {
        let decimals = format!("{:09}", billionths / u128::from(per_unit));
        return format!("{whole}.{}", decimals.trim_end_matches('0'));
    }
    format!("{}/{per_unit}", quanta.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Name;

    fn class(kind: ResourceKind, quanta_per_unit: u64) -> ClassSpec {
        let name = Name::new("c").expect("a valid name");
        ClassSpec { name, kind, tier: None, quanta_per_unit, premium: false }
    }

    #[test]
    fn people_write_quantities_as_they_are_used_to() {
        use ResourceKind::{Block, Cpu, Gpu, Mem, Net};
        for (text, kind, per_unit, quanta) in [
            ("8", Gpu, 7, 56),
            ("1/7", Gpu, 7, 1),
            ("3/7", Gpu, 7, 3),
            ("500m", Cpu, 1000, 500),
            ("1.5", Cpu, 1000, 1500),
            ("80GiB", Mem, 1024, 81_920),
            ("512MiB", Mem, 1024, 512),
            ("2TiB", Block, 1, 2048),
            ("25Gb", Net, 10, 250),
            ("25Gb/s", Net, 10, 250),
            ("100Mbps", Net, 10, 1),
        ] {
            let class = class(kind, per_unit);
            assert_eq!(parse(text, &class), Ok(Quanta(quanta)), "{text}");
            let shown = display(Quanta(quanta), &class);
            assert_eq!(parse(&shown, &class), Ok(Quanta(quanta)), "{text} shown as {shown}");
        }
    }

    #[test]
    fn wrong_quantities_say_what_is_wrong() {
        let gpu = class(ResourceKind::Gpu, 7);
        assert!(matches!(parse("1/2", &gpu), Err(BadQuantity::NotWhole { .. })));
        assert!(matches!(parse("80GiB", &gpu), Err(BadQuantity::WrongUnit { .. })));
        assert_eq!(parse("0", &gpu), Err(BadQuantity::Zero));
        for text in
            ["", "-1", "1e3", "x", "1/0", "1//2", "1.", ".5", "1 2", "½", "1/7/7", "8 GiBs", "8/s", "8ps", "8m/s"]
        {
            assert!(matches!(parse(text, &gpu), Err(BadQuantity::Unreadable(_))), "{text}");
        }
        assert!(matches!(parse("999999999999999999", &gpu), Ok(_) | Err(BadQuantity::TooLarge(_))));
        let mem = class(ResourceKind::Mem, 1024);
        assert!(matches!(parse("80GiB/s", &mem), Err(BadQuantity::Unreadable(_))));
        assert!(matches!(parse("999999999999999999PiB", &mem), Err(BadQuantity::TooLarge(_))));
    }
}
