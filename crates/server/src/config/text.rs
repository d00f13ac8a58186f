//! Values as text: `10m`, `256KiB`, and sections without keys.

use leasehold_deliver::{SecretError, SecretRef};
use leasehold_model::{Retention, Span};
use serde::de::{Deserialize, Deserializer, Error};
use std::borrow::Cow;
use zeroize::Zeroizing;

pub(super) fn span<'de, D: Deserializer<'de>>(from: D) -> Result<Span, D::Error> {
    let text = Cow::<str>::deserialize(from)?;
    text.parse().map_err(D::Error::custom)
}

pub(super) fn maybe_span<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Span>, D::Error> {
    let text = Option::<Cow<str>>::deserialize(from)?;
    text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
}

pub(super) fn retention<'de, D: Deserializer<'de>>(from: D) -> Result<Retention, D::Error> {
    let text = Cow::<str>::deserialize(from)?;
    text.parse().map_err(D::Error::custom)
}

/// Where a secret is, or why that cannot be known. The text is dropped in any case: it may be the secret itself.
pub(super) fn secret_ref<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Result<SecretRef, SecretError>>, D::Error> {
    let text = Option::<String>::deserialize(from)?.map(Zeroizing::new);
    Ok(text.map(|text| text.parse()))
}

/// A section whose keys are all commented out is present but empty.
pub(super) fn section<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

pub(super) fn size<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = Cow::<str>::deserialize(from)?;
    parse_size(&text).ok_or_else(|| {
        D::Error::custom(format_args!("`{text}` is not a size; write it like 4096, 256KiB, 64MiB or 1GiB"))
    })
}

pub(super) fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit: u64 = match unit.trim_start() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// Formats a size.
pub(super) fn show_size(bytes: u64) -> String {
    let (scale, unit) = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "")]
        .into_iter()
        .find(|(scale, _)| bytes >= *scale && bytes.is_multiple_of(*scale))
        .unwrap_or((1, ""));
    format!("{}{unit}", bytes / scale)
}
