//! Exceptions to a rule, counted by file in `allowed.txt`. The counts may only go down.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

const LIST: &str = "crates/tidy/allowed.txt";

/// The files that violate a rule, each with the number or the size of its violations.
pub(crate) type Counts = BTreeMap<String, usize>;

/// Counts something in each file.
pub fn counts_of(files: &[String], count: impl Fn(&str, &str) -> usize) -> Counts {
    let counted = files.iter().map(|path| (path.clone(), count(path, &crate::read(path))));
    counted.filter(|(_, count)| *count > 0).collect()
}

/// The sections of the list, in order.
fn sections(text: &str) -> Vec<(String, Counts)> {
    let mut sections: Vec<(String, Counts)> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            sections.push((name.to_owned(), Counts::new()));
            continue;
        }
        let (count, path) =
            line.split_once(' ').unwrap_or_else(|| panic!("{LIST}: `{line}` is not a count and a path"));
        let (_, counts) = sections.last_mut().unwrap_or_else(|| panic!("{LIST}: `{line}` is not in a section"));
        counts.insert(path.to_owned(), count.parse().unwrap_or_else(|_| panic!("{LIST}: `{count}` is not a number")));
    }
    sections
}

/// Compares the counts found with a section of the list, and fails if a count is higher or lower than listed; `advice`
/// tells what to do about a higher one. With `UPDATE_TIDY=1` the list follows files that were moved and is lowered to the
/// counts found, but never raised.
pub fn check_allowed(section: &str, found: &Counts, advice: &str) {
    // Tests run in parallel, and each may rewrite its section.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let text = crate::read(LIST);
    let all = sections(&text);
    let mut listed = all.iter().find(|(name, _)| name == section).map(|(_, counts)| counts.clone()).unwrap_or_default();
    let update = std::env::var_os("UPDATE_TIDY").is_some();
    if update {
        follow_moves(&mut listed, found);
    }
    let mut wrong = String::new();
    for (path, count) in found {
        let allowed = listed.get(path).copied().unwrap_or(0);
        if *count > allowed {
            writeln!(wrong, "{path}: {count}, but only {allowed} are allowed; {advice}").expect("text grows");
        }
    }
    let lowered: Counts = listed
        .iter()
        .map(|(path, allowed)| (path.clone(), found.get(path).copied().unwrap_or(0).min(*allowed)))
        .filter(|(_, count)| *count > 0)
        .collect();
    if update {
        lower(&text, section, &lowered);
    } else {
        for (path, allowed) in listed.iter().filter(|(path, allowed)| lowered.get(*path) != Some(*allowed)) {
            let count = lowered.get(path).copied().unwrap_or(0);
            writeln!(wrong, "{path}: {count}, less than the {allowed} in [{section}] of {LIST}; lower it there")
                .expect("text grows");
        }
    }
    assert!(wrong.is_empty(), "[{section}]\n{wrong}(UPDATE_TIDY=1 lowers the list)");
}

/// A listed file that no longer exists is replaced by an unlisted file of the same name.
fn follow_moves(listed: &mut Counts, found: &Counts) {
    let name = |path: &str| path.rsplit('/').next().map(str::to_owned);
    for path in found.keys() {
        let gone = |old: &&String| name(old) == name(path) && !crate::root().join(old).exists();
        if !listed.contains_key(path)
            && let Some(old) = listed.keys().find(gone).cloned()
        {
            let count = listed.remove(&old).expect("it was just listed");
            listed.insert(path.clone(), count);
        }
    }
}

/// Rewrites the lines of one section.
fn lower(text: &str, section: &str, counts: &Counts) {
    let mut out = String::new();
    let mut inside = false;
    for line in text.lines() {
        let is_entry = line.split_once(' ').is_some_and(|(count, _)| count.parse::<usize>().is_ok());
        if !inside || !is_entry {
            writeln!(out, "{line}").expect("text grows");
        }
        if line.starts_with('[') {
            inside = line == format!("[{section}]");
            for (path, count) in counts.iter().filter(|_| inside) {
                writeln!(out, "{count} {path}").expect("text grows");
            }
        }
    }
    if out != text {
        std::fs::write(crate::root().join(LIST), out).expect("the list can be written");
    }
}
