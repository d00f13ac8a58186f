//! The agent's binary is put on every node: it is built from the client and what that needs, and from nothing that
//! decides, stores or simulates.

use std::collections::BTreeSet;
use std::process::Command;

/// Our own crates that are linked into a package, without the prefix of their names.
fn linked(package: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["tree", "--offline", "--edges", "normal", "--prefix", "none"]);
    let output = cargo.args(["--format", "{p}", "--package", package]).output().expect("cargo runs");
    let tree = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = tree.lines().filter_map(|line| line.strip_prefix("leasehold-")?.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn it_links_the_client_and_nothing_of_the_server() {
    let expected = ["agent", "api", "client", "model", "service", "terminal"];
    assert_eq!(linked("leasehold-agent"), expected.map(str::to_owned).into());
}

#[test]
fn the_check_sees_what_is_linked() {
    // A check that finds nothing anywhere would prove nothing.
    assert!(linked("leasehold-server").is_superset(&["books", "cell", "engine", "journal"].map(str::to_owned).into()));
}
