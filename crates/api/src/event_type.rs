//! The types of events that webhooks are delivered.

/// Everything that can be delivered. Those for accounting systems have a payload of their own, the others that of the
/// record, or what it did to one lease.
pub const EVENT_TYPES: &[EventType] = &[
    of_lease("lease.granted", "A lease was granted"),
    of_record("lease.denied", "A request for a lease was denied"),
    of_lease("lease.renewed", "A lease was renewed"),
    of_lease("lease.released", "A lease was released by its holder"),
    of_lease("lease.expired", "A lease expired"),
    of_lease("lease.revoked", "A lease was revoked; its grace begins"),
    of_lease("lease.teardown_started", "The teardown of a revoked lease started"),
    of_lease("lease.torn_down", "The node confirmed the teardown of a lease"),
    of_lease("lease.fenced", "The teardown of a lease was not confirmed in time"),
    of_lease("lease.unfenced", "An operator declared the capacity of a fenced lease clean"),
    of_lease("lease.window_announced", "A maintenance window will end a lease, or was cancelled"),
    of_lease("lease.end_corrected", "A lease ended earlier than recorded, because its node was lost"),
    of_record("allocation.submitted", "An allocation was submitted and waits"),
    of_record("allocation.denied", "An allocation was denied"),
    of_record("allocation.placed", "An attempt of an allocation was placed"),
    for_accounting("allocation.started", "An allocation, or a lease without one, is running"),
    of_record("allocation.checkpointing", "An allocation writes a checkpoint"),
    for_accounting("allocation.checkpointed", "An allocation has written a checkpoint"),
    of_record("allocation.suspended", "An allocation was interrupted and waits with its checkpoint"),
    of_record("allocation.requeued", "An allocation was interrupted and waits to start again"),
    for_accounting("allocation.completed", "An allocation, or a lease without one, has ended"),
    for_accounting("allocation.corrected", "What an ended allocation used was corrected, because its node was lost"),
    of_record("allocation.failed", "An allocation failed"),
    of_record("allocation.cancelled", "An allocation was cancelled"),
    of_record("allocation.hold_set", "A waiting allocation was put on hold"),
    of_record("allocation.hold_cleared", "The hold of a waiting allocation was released"),
    of_record("allocation.changed", "A waiting allocation asks for something else"),
    for_accounting("node.claimed", "A node was claimed for sensitive work"),
    for_accounting("node.released", "A claimed node was released, and its wipe confirmed or failed"),
    of_record("node.lost", "A node was declared lost"),
    of_record("node.returned", "A lost node is back"),
    of_record("node.drained", "A node was drained"),
    of_record("node.resumed", "A node was resumed"),
    of_record("node.quarantined", "A node was quarantined"),
    for_accounting("quota.updated", "A quota or the budgets of a tenant were changed"),
    of_record("prepaid.changed", "A prepaid account is low, nearly used up, used up, or well funded again"),
    of_record("entitlement.warned", "More was used in a month than the soft limit of an entitlement"),
    of_record("invoice.issued", "An invoice or a credit note was issued"),
    of_record("period.closed", "A month was closed"),
];

/// Names all types for accounting systems in a list of types.
pub const ACCOUNTING: &str = "accounting";

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventAbout {
    /// What a record did to one lease.
    Lease,
    Record,
    Accounting,
}

impl EventAbout {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Record => "record",
            Self::Accounting => ACCOUNTING,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct EventType {
    pub word: &'static str,
    pub meaning: &'static str,
    pub about: EventAbout,
}

const fn of_lease(word: &'static str, meaning: &'static str) -> EventType {
    EventType { word, meaning, about: EventAbout::Lease }
}
const fn of_record(word: &'static str, meaning: &'static str) -> EventType {
    EventType { word, meaning, about: EventAbout::Record }
}
const fn for_accounting(word: &'static str, meaning: &'static str) -> EventType {
    EventType { word, meaning, about: EventAbout::Accounting }
}

impl EventType {
    /// Whether a word of a webhook names it: the type itself, its family (`lease.*`), or all (`*`).
    pub fn is_named_by(&self, word: &str) -> bool {
        let family = |family: &str| self.word.strip_prefix(family).is_some_and(|rest| rest.starts_with('.'));
        word == self.word || word == "*" || word.strip_suffix(".*").is_some_and(family)
    }
}

/// The families of types, such as `lease.*`, in the order of the types.
pub const EVENT_FAMILIES: &[&str] =
    &["lease.*", "allocation.*", "node.*", "quota.*", "prepaid.*", "entitlement.*", "invoice.*", "period.*"];

/// Everything that a list of types can name.
pub fn event_names() -> impl Iterator<Item = &'static str> {
    let types = EVENT_TYPES.iter().map(|one| one.word);
    types.chain(EVENT_FAMILIES.iter().copied()).chain([ACCOUNTING, "*"])
}

/// The words to seal for those that a caller gave: `accounting` is written out.
pub fn event_words(given: &[String]) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    for word in given {
        if word == ACCOUNTING {
            let accounting = EVENT_TYPES.iter().filter(|one| one.about == EventAbout::Accounting);
            words.extend(accounting.map(|one| one.word.to_owned()));
        } else if EVENT_TYPES.iter().any(|one| one.is_named_by(word)) {
            words.push(word.clone());
        } else {
            return Err(word.clone());
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_unique_and_there_are_few() {
        let mut words: Vec<&str> = EVENT_TYPES.iter().map(|one| one.word).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), EVENT_TYPES.len());
        assert!(EVENT_TYPES.len() <= 64, "a set of types is a word of 64 bits");
    }

    #[test]
    fn the_page_about_webhooks_lists_all_types() {
        let page = include_str!("../../../docs/how-to/webhooks.md");
        for one in EVENT_TYPES {
            let row = format!("| `{}` | {} | {}. |", one.word, one.about.word(), one.meaning);
            assert!(page.contains(&row), "no row {row}");
        }
        assert_eq!(
            page.lines().filter(|line| line.ends_with(". |") && line.starts_with("| `")).count(),
            EVENT_TYPES.len()
        );
    }

    #[test]
    fn families_are_those_of_the_types() {
        let mut families: Vec<String> = Vec::new();
        for one in EVENT_TYPES {
            let family = format!("{}.*", one.word.split_once('.').expect("a family").0);
            if !families.contains(&family) {
                families.push(family);
            }
        }
        assert_eq!(families, EVENT_FAMILIES);
        for name in event_names() {
            assert!(event_words(&[name.to_owned()]).is_ok(), "{name}");
        }
    }

    #[test]
    fn words_name_types_families_or_all() {
        let given = |words: &[&str]| event_words(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(given(&["lease.*", "node.lost", "*"]).map(|words| words.len()), Ok(3));
        assert_eq!(given(&["accounting"]).map(|words| words.len()), Ok(7));
        for wrong in ["leases.*", "lease", "lease.", "lease.bought", "", "*.*", "node.los"] {
            assert_eq!(given(&[wrong]), Err(wrong.to_owned()));
        }
    }
}
