//! What is linked into what: the rules that keep a program small, or an auditor's reading short.

use std::collections::BTreeSet;
use std::process::Command;

/// The crates that are linked into a package, itself included; ours without the prefix of their names.
fn linked(package: &str) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["tree", "--offline", "--edges", "normal", "--prefix", "none"]);
    let output = cargo.args(["--format", "{p}", "--package", package]).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8_lossy(&output.stdout);
    let names = tree.lines().filter_map(|line| line.split(' ').next()).filter(|name| !name.is_empty());
    names.map(|name| name.strip_prefix("leasehold-").map_or(name.to_owned(), |name| format!("our {name}"))).collect()
}

/// Our own among them.
fn ours(package: &str) -> BTreeSet<String> {
    linked(package).iter().filter_map(|name| name.strip_prefix("our ").map(str::to_owned)).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn the_agent_links_the_client_and_nothing_of_the_server() {
    assert_eq!(ours("leasehold-agent"), set(&["agent", "api", "client", "model", "service", "terminal", "yaml"]));
}

#[test]
fn the_adapters_link_the_client_and_nothing_of_the_server() {
    let shared = set(&["adapter-kit", "api", "client", "model", "service", "terminal", "yaml"]);
    for package in ["slurm", "ray"] {
        let expected = shared.iter().cloned().chain([package.to_owned()]).collect();
        assert_eq!(ours(&format!("leasehold-{package}")), expected);
    }
}

#[test]
fn the_binary_links_neither_the_simulator_nor_the_oracle() {
    let ours = ours("leasehold");
    assert!(ours.is_disjoint(&set(&["sim", "oracle"])), "{ours:?}");
    // A check that finds nothing anywhere would prove nothing.
    assert!(
        ours.is_superset(&set(&["agent", "bench", "books", "cell", "demo", "engine", "journal", "server"])),
        "{ours:?}"
    );
}

#[test]
fn the_verifier_is_the_format_the_tree_and_the_bill() {
    // What invoices follow from is computed by the crates of the bill (ADR 25), and by nothing of the server.
    assert_eq!(ours("leasehold-verify"), set(&["bill", "ledger", "meter", "model", "tlog", "verify"]));
    // JSON is a view, made at the edges.
    let model = linked("leasehold-model");
    assert!(model.contains("sha2") && model.is_disjoint(&set(&["serde", "serde_core", "serde_json"])), "{model:?}");
}
