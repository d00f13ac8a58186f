//! What comes in with a dependency, against `deny.toml`: its licence, where it is from, and that no version is left open.
//! The same as `cargo deny check licenses sources bans`, without having to build cargo-deny.

use leasehold_tidy::{read, root};
use serde_json::Value;
use std::process::Command;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The list that a key of `deny.toml` holds.
fn listed(key: &str) -> Vec<String> {
    let text = read("deny.toml");
    let start = text.find(&format!("\n{key} = [")).unwrap_or_else(|| panic!("deny.toml has no list {key}"));
    let (inside, _) = text[start..].split_once('[').and_then(|(_, rest)| rest.split_once(']')).expect("a whole list");
    inside.split(',').map(|one| one.trim().trim_matches('"').to_owned()).filter(|one| !one.is_empty()).collect()
}

/// Everything that is built on a system, as cargo resolves it.
fn packages(target: &str) -> Vec<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", target]).current_dir(root());
    let output = command.output().expect("cargo runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {said}");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    metadata["packages"].as_array().expect("a list of packages").clone()
}

/// The host's own, which has been fetched if this test was built.
fn all() -> Vec<Value> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    assert!(listed("targets").contains(&target), "{target} is not among the targets of deny.toml");
    let all = packages(&target);
    assert!(all.len() > 100, "only {} packages were found", all.len());
    all
}

fn is_ours(package: &Value) -> bool {
    package["source"].is_null()
}

fn named(package: &Value) -> String {
    let text = |key: &str| package[key].as_str().unwrap_or("?").to_owned();
    format!("{} {}", text("name"), text("version"))
}

/// Whether an SPDX expression can be met with these licences: `OR` leaves a choice, `AND` does not. A slash is an old `OR`.
fn is_met(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.trim();
    for (word, all) in [(" OR ", false), ("/", false), (" AND ", true)] {
        let parts = split_outside(expression, word);
        if parts.len() > 1 {
            let mut met = parts.iter().map(|part| is_met(part, allowed));
            return if all { met.all(|met| met) } else { met.any(|met| met) };
        }
    }
    match expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => is_met(inner, allowed),
        None => allowed.iter().any(|one| one == expression),
    }
}

/// Splits at a word that does not stand in brackets.
fn split_outside<'a>(expression: &'a str, word: &str) -> Vec<&'a str> {
    let (mut depth, mut parts, mut from) = (0i32, Vec::new(), 0);
    for (at, byte) in expression.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ if depth == 0 && at >= from && expression[at..].starts_with(word) => {
                parts.push(&expression[from..at]);
                from = at + word.len();
            }
            _ => {}
        }
    }
    parts.push(&expression[from..]);
    parts
}

#[test]
fn licences_are_on_the_list() {
    let allowed = listed("allow");
    let wrong = all().into_iter().filter(|package| !is_met(package["license"].as_str().unwrap_or(""), &allowed));
    let wrong: Vec<String> = wrong.map(|package| format!("{}: {}", named(&package), package["license"])).collect();
    assert!(wrong.is_empty(), "not on the list of deny.toml:\n{}", wrong.join("\n"));
}

#[test]
fn everything_comes_from_the_registry() {
    let strange = all().into_iter().filter(|package| !is_ours(package) && package["source"] != REGISTRY);
    let strange: Vec<String> = strange.map(|package| format!("{}: {}", named(&package), package["source"])).collect();
    assert!(strange.is_empty(), "not from crates.io:\n{}", strange.join("\n"));
}

#[test]
fn no_version_is_left_open() {
    let mut open = Vec::new();
    for package in all().iter().filter(|package| is_ours(package)) {
        for dependency in package["dependencies"].as_array().expect("a list of dependencies") {
            if dependency["req"] == "*" && dependency["path"].is_null() {
                open.push(format!("{}: {}", named(package), dependency["name"]));
            }
        }
    }
    assert!(open.is_empty(), "any version would do:\n{}", open.join("\n"));
}

#[test]
fn expressions_are_read_as_spdx_means_them() {
    let allowed: Vec<String> = ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).into();
    for (expression, met) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("MIT AND GPL-3.0", false),
        ("(GPL-3.0 OR MIT) AND Zlib", true),
        ("(GPL-3.0 OR BSD-3-Clause) AND Zlib", false),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("Apache-2.0", false),
    ] {
        assert_eq!(is_met(expression, &allowed), met, "{expression}");
    }
}
