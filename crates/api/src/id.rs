//! IDs as they are written in JSON, on the command line and in messages.

use leasehold_model::AllocationNo;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// An allocation: `alloc-` and its number. The number alone is read as well, as text or as a JSON number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllocationId(pub u64);

/// The text is not the ID of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadAllocationId;

impl fmt::Display for BadAllocationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an allocation is `alloc-` and its number")
    }
}
impl std::error::Error for BadAllocationId {}

impl From<AllocationNo> for AllocationId {
    fn from(number: AllocationNo) -> Self {
        Self(number.0)
    }
}

impl fmt::Display for AllocationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        AllocationNo(self.0).fmt(f)
    }
}

impl FromStr for AllocationId {
    type Err = BadAllocationId;
    fn from_str(text: &str) -> Result<Self, BadAllocationId> {
        let digits = text.strip_prefix("alloc-").unwrap_or(text);
        let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
        digits.parse().ok().filter(|_| plain).map(Self).ok_or(BadAllocationId)
    }
}

impl Serialize for AllocationId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AllocationId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Id;
        impl Visitor<'_> for Id {
            type Value = AllocationId;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an allocation like \"alloc-17\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<AllocationId, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<AllocationId, E> {
                Ok(AllocationId(number))
            }
        }
        deserializer.deserialize_any(Id)
    }
}

impl JsonSchema for AllocationId {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "AllocationId".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^alloc-[0-9]+$",
            "description": "An allocation: `alloc-` and its number.",
            "examples": ["alloc-17"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json, to_value};

    #[test]
    fn an_allocation_is_written_in_one_way_and_read_in_three() {
        assert_eq!(to_value(AllocationId(17)).unwrap(), json!("alloc-17"));
        for given in [json!("alloc-17"), json!("17"), json!(17)] {
            assert_eq!(from_value::<AllocationId>(given).unwrap(), AllocationId(17));
        }
        for given in [json!("alloc-017"), json!("lease-17"), json!("alloc-"), json!(-1), json!(1.5)] {
            assert!(from_value::<AllocationId>(given.clone()).is_err(), "{given}");
        }
    }
}
