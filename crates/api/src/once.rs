//! Maps in requests that refuse duplicate keys, because it cannot be known which of the two values was meant.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

struct Once<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for Once<V> {
    type Value = BTreeMap<String, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some(key) = members.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("\"{}\" is given twice", key.escape_debug())));
            }
            map.insert(key, members.next_value()?);
        }
        Ok(map)
    }
}

/// For a field of a request: `#[serde(deserialize_with = "once::map")]`.
pub(crate) fn map<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, V>, D::Error> {
    deserializer.deserialize_map(Once(PhantomData))
}

struct Keys<V>(BTreeMap<String, V>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Keys<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        map(deserializer).map(Self)
    }
}

/// The same for a field that may be absent or null.
pub(crate) fn optional_map<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, V>>, D::Error> {
    Ok(Option::<Keys<V>>::deserialize(deserializer)?.map(|keys| keys.0))
}

#[cfg(test)]
mod tests {
    use crate::{NewNode, NodeChange, PriceChange, RegisterAgent};

    fn refusal<T: serde::de::DeserializeOwned>(text: &str) -> String {
        serde_json::from_str::<T>(text).err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn duplicate_keys_are_refused_in_every_map_of_a_request() {
        for error in [
            refusal::<NewNode>(r#"{"name":"n","pool":"p","labels":{"a":"1","a":"1"}}"#),
            refusal::<NewNode>(r#"{"name":"n","pool":"p","capacity":{"a":1,"a":2}}"#),
            refusal::<NodeChange>(r#"{"labels":{"a":"1","a":"2"}}"#),
            refusal::<NodeChange>(r#"{"capacity":{"a":"1","a":"2"}}"#),
            refusal::<RegisterAgent>(r#"{"instance":"","labels":{"a":"1","a":"2"}}"#),
            refusal::<PriceChange>(r#"{"classes":{"a":"1","a":null}}"#),
            refusal::<PriceChange>(r#"{"tiers":{"a":"1","a":"2"}}"#),
        ] {
            assert!(error.starts_with("\"a\" is given twice"), "{error:?}");
        }
        let null: NodeChange = serde_json::from_str(r#"{"labels":null}"#).expect("null means absent");
        assert_eq!(null, NodeChange::default());
    }
}
