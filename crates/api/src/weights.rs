//! Weights of the placement score.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A weight between 0 and 1 with up to three decimals, such as `0.5`, as text or as a number. Kept in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight(pub u16);

/// The value is not a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadWeight;

impl fmt::Display for BadWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a weight is a number between 0 and 1 with at most three decimals")
    }
}
impl std::error::Error for BadWeight {}

impl FromStr for Weight {
    type Err = BadWeight;
    fn from_str(text: &str) -> Result<Self, BadWeight> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.len() <= 3 && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(decimals) {
            return Err(BadWeight);
        }
        let whole: u32 = whole.parse().map_err(|_| BadWeight)?;
        let decimals: u32 = format!("{decimals:0<3}").parse().map_err(|_| BadWeight)?;
        let thousandths = whole * 1000 + decimals;
        u16::try_from(thousandths).ok().filter(|weight| *weight <= 1000).map(Self).ok_or(BadWeight)
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

impl Serialize for Weight {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Weight {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Share;
        impl Visitor<'_> for Share {
            type Value = Weight;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a weight between 0 and 1 with up to three decimals, like \"0.5\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Weight, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, whole: u64) -> Result<Weight, E> {
                whole.to_string().parse().map_err(E::custom)
            }
            // The shortest text of a float is what was written in the request.
            fn visit_f64<E: de::Error>(self, share: f64) -> Result<Weight, E> {
                share.to_string().parse().map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, _: i64) -> Result<Weight, E> {
                Err(E::custom(BadWeight))
            }
        }
        deserializer.deserialize_any(Share)
    }
}

impl JsonSchema for Weight {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Weight".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number between 0 and 1 with up to three decimals.",
            "anyOf": [
                { "type": "string", "pattern": "^(0(\\.[0-9]{1,3})?|1(\\.0{1,3})?)$" },
                { "type": "number", "minimum": 0, "maximum": 1 },
            ],
            "examples": ["0.25"],
        })
    }
}

/// Weights of the terms of the placement score. They add up to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// Weight of the capacity that stays free on the node.
    pub pressure: Weight,
    /// Weight of how closely the request fits the free capacity.
    pub fit: Weight,
    /// Weight of how near the other members of the gang are.
    pub locality: Weight,
    /// Weight of how much of the node is in use already.
    pub fragmentation: Weight,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_from_text_and_numbers() {
        let read = |json: &str| serde_json::from_str::<Weight>(json).map(|weight| weight.0).ok();
        for (json, thousandths) in
            [("\"0.5\"", 500), ("0.5", 500), ("0.125", 125), ("1", 1000), ("\"1.000\"", 1000), ("0", 0), ("0.001", 1)]
        {
            assert_eq!(read(json), Some(thousandths), "{json}");
        }
        for json in ["-0.1", "\"-0.1\"", "-1", "1.001", "2", "0.0001", "1e-9", "\"\"", "\".5\"", "null", "\"0.5 \""] {
            assert_eq!(read(json), None, "{json}");
        }
        assert_eq!(serde_json::to_string(&Weight(70)).expect("JSON"), "\"0.070\"");
    }
}
