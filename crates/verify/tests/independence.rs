//! What proves an invoice must not share a line with what made it.

use std::collections::BTreeSet;
use std::path::Path;

/// The names of our own crates that a manifest lists under `[dependencies]`. What a crate needs for its own tests only
/// does not reach those that use it.
fn our_dependencies(name: &str) -> BTreeSet<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/");
    let manifest = std::fs::read_to_string(crates.join(name).join("Cargo.toml")).expect("a manifest");
    let mut section = "";
    let mut found = BTreeSet::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if (section == "[dependencies]" || section == "[build-dependencies]" || section.starts_with("[target."))
            && let Some(rest) = line.strip_prefix("leasehold-")
        {
            found.insert(rest.split(['.', ' ', '=']).next().expect("a name").to_owned());
        }
    }
    found
}

/// All that a crate depends on, by any way.
fn reached_from(name: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        open.extend(our_dependencies(&name).into_iter().filter(|found| reached.insert(found.clone())));
    }
    reached
}

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

/// The books compute usage another way, and the engine decides what is booked (ADR 25).
#[test]
fn a_bill_is_computed_without_the_books_and_the_engine() {
    let bill = names(["ledger", "meter", "model", "tlog"]);
    assert_eq!(reached_from("bill"), bill);
    assert_eq!(reached_from("verify"), bill.into_iter().chain(names(["bill"])).collect());
}

#[test]
fn the_check_sees_dependencies() {
    // A check that finds nothing anywhere would prove nothing.
    assert!(reached_from("books").contains("meter"));
    assert!(reached_from("server").is_superset(&names(["books", "engine"])));
}
