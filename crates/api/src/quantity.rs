//! Quantities of a resource class, as text.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::fmt;

/// A quantity in the billing unit of its class: `8`, `500m`, `80GiB`, `25Gb`, `1/7`. A JSON integer means whole units.
/// The number of quanta depends on the class, so it stays text until the class is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Quantity(pub String);

impl Quantity {
    /// Characters of the longest quantity that is accepted.
    const CHARS_MAX: usize = 64;
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Quantity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity like \"8\", \"500m\", \"80GiB\" or \"1/7\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                if text.len() > Quantity::CHARS_MAX {
                    return Err(E::custom("a quantity has at most 64 characters"));
                }
                Ok(Quantity(text.to_owned()))
            }
            fn visit_u64<E: de::Error>(self, units: u64) -> Result<Quantity, E> {
                Ok(Quantity(units.to_string()))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A quantity in the billing unit of its class: 8, 500m, 80GiB, 25Gb, 1/7. An integer means whole units.",
            "anyOf": [
                { "type": "string", "minLength": 1, "maxLength": Self::CHARS_MAX },
                { "type": "integer", "minimum": 0, "maximum": crate::limits::INTEGER_MAX },
            ],
            "examples": ["2"],
        })
    }
}
