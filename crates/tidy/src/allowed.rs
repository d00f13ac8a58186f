//! Exceptions to a rule, counted by file in `allowed.txt`. The counts may only go down.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};

const LIST: &str = "crates/tidy/allowed.txt";

/// The files that break a rule, with how often or by how much each does; files that keep it are left out.
pub(crate) type Counts = BTreeMap<String, usize>;

/// Counts something in each file.
pub fn counts_of(files: &[String], count: impl Fn(&str, &str) -> usize) -> Counts {
    let counted = files.iter().map(|path| (path.clone(), count(path, &crate::read(path))));
    counted.filter(|(_, count)| *count > 0).collect()
}

/// The sections of the list, in order, with the comments that lead each.
fn sections(text: &str) -> Vec<(String, Counts)> {
    let mut sections: Vec<(String, Counts)> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            sections.push((name.to_owned(), Counts::new()));
            continue;
        }
        let (count, path) = line.split_once(' ').unwrap_or_else(|| panic!("{LIST}: `{line}` is no count and path"));
        let (_, counts) = sections.last_mut().unwrap_or_else(|| panic!("{LIST}: `{line}` stands in no section"));
        counts.insert(path.to_owned(), count.parse().unwrap_or_else(|_| panic!("{LIST}: `{count}` is no number")));
    }
    sections
}

/// Compares what was found with a section of the list. A file that breaks the rule and is not listed, one that breaks it
/// more than listed, and a listed one that breaks it less or is gone are all told; `advice` says what to do about the
/// first two. With `UPDATE_TIDY=1` the list follows files that were moved and
/// is lowered to what was found, and never raised.
pub fn check_allowed(section: &str, found: &Counts, advice: &str) {
    // Tests run side by side, and each may rewrite its section.
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
            writeln!(wrong, "{path}: {count}, and {allowed} are allowed; {advice}").expect("text grows");
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

/// A listed file that is gone stands for one of the same name that is not listed.
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
