//! The oracle must not share a line with what it judges.

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
        } else if section == "[dependencies]"
            && let Some(rest) = line.strip_prefix("leasehold-")
        {
            found.insert(rest.split(['.', ' ', '=']).next().expect("a name").to_owned());
        }
    }
    found
}

#[test]
fn it_depends_on_the_model_alone() {
    let mut reached = BTreeSet::new();
    let mut open = vec!["oracle".to_owned()];
    while let Some(name) = open.pop() {
        for dependency in our_dependencies(&name) {
            if reached.insert(dependency.clone()) {
                open.push(dependency);
            }
        }
    }
    assert_eq!(reached, BTreeSet::from(["model".to_owned()]), "neither engine nor meter nor books, by any way");
}

#[test]
fn the_check_sees_dependencies() {
    // A check that finds nothing anywhere would prove nothing.
    assert!(our_dependencies("engine").contains("model"));
    assert!(our_dependencies("books").contains("meter"));
}
