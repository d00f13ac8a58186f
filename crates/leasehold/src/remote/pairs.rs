//! Options of the form `--label KEY=VALUE`. Each key may be given once.

use crate::problem::Problem;
use std::collections::BTreeMap;

/// The pairs as a map; a duplicate key is an error.
pub(super) fn by_key<V, T>(
    option: &str,
    pairs: &[(String, V)],
    value: impl Fn(&V) -> T,
) -> Result<BTreeMap<String, T>, Problem> {
    let mut map = BTreeMap::new();
    for (key, given) in pairs {
        if map.insert(key.clone(), value(given)).is_some() {
            return Err(twice(option, key));
        }
    }
    Ok(map)
}

pub(super) fn twice(option: &str, key: &str) -> Problem {
    Problem::usage("usage", format!("{option} is given twice for {key:?}")).advice("give it once")
}
