//! Writes the stories of `tests/frozen/rules-7`, once: `LEASEHOLD_FREEZE=1 cargo test -p leasehold-sim --test freeze`.
//! `LEASEHOLD_TELL=NAME` prints one story instead. The seeds are written by `crates/books/tests/accounts/ledger/freeze.rs`.
//!
//! In a script, `from rules-6/usage` goes on after that journal, and `100 reopened` is a process that opens the journal
//! again. What the daemon does with the books is in `money.rs`.

#[path = "../../src/entitlements_events.rs"]
mod entitlements_events;
#[path = "../../../engine/tests/rules/losses.rs"]
#[allow(dead_code, unused_imports, unreachable_pub)]
mod losses;
mod money;
#[path = "../../../engine/tests/rules/support/mod.rs"]
#[allow(dead_code, unused_imports, unreachable_pub)]
mod support;
mod writer;

use leasehold_cell::take_snapshot;
use leasehold_journal::{FileJournal, Head, Journal};
use leasehold_model::Record;
use money::Teller;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use support::Story;
use writer::Writer;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/frozen")
}

fn copy_files(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy_files(&source, &target);
        } else {
            fs::copy(source, target).unwrap();
        }
    }
}

fn script_of(name: &str) -> String {
    let text = fs::read_to_string(root().join("rules-7").join(name).join("story.txt")).unwrap();
    text.split("\n----\n").next().unwrap().trim_end().to_owned()
}

fn records_in(journal: &FileJournal) -> Vec<Record> {
    let mut records = Vec::new();
    journal
        .scan_verified(Head::EMPTY, &mut |_, raw, _| {
            records.push(raw.decode().unwrap());
            ControlFlow::Continue(())
        })
        .unwrap();
    records
}

fn tell_and_write(name: &str, snapshots: bool, data: PathBuf) -> String {
    let snapshot: Option<fn(&FileJournal)> = snapshots.then_some(|journal| {
        take_snapshot(journal).unwrap();
    });
    let script = script_of(name);
    let mut teller = Teller::new(Story::on(""));
    let mut writer: Option<Writer> = None;
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["from", base] = words[..] {
            let _ = fs::remove_dir_all(&data);
            copy_files(&root().join(base).join("data"), &data);
            // It is opened when the story goes on, by the line `reopened`.
            let copy = std::env::temp_dir().join(format!("freeze-{name}"));
            let _ = fs::remove_dir_all(&copy);
            copy_files(&data, &copy);
            let read = Writer::open(copy, 0, None);
            teller = Teller::new(Story::after(records_in(&read.journal)));
            continue;
        }
        if words.get(1) == Some(&"reopened") {
            let story = &mut teller.story;
            let last = story.world.state().last_stamp();
            if let Some(mut before) = writer.take() {
                before.write(&story.world.records);
                before.close(last);
            } else if !data.join("anchor").exists() {
                let mut first = Writer::new(data.clone(), snapshot);
                first.write(&story.world.records);
                first.close(last);
            }
            let opened = Writer::open(data.clone(), story.world.records.len(), snapshot);
            assert!(opened.journal.to_seal().is_empty(), "a start that has nothing to say");
            writer = Some(opened);
            continue;
        }
        teller.line(line, &words);
    }
    let story = teller.story;
    if !script.starts_with("from ") {
        observe(&story.world.records);
    }
    let mut writer = writer.unwrap_or_else(|| Writer::new(data, snapshot));
    writer.write(&story.world.records);
    writer.close(story.world.state().last_stamp());
    format!("{script}\n----\n{}", story.text)
}

/// The oracle finds nothing wrong. Prints what the history holds of entitlements and policies.
fn observe(records: &[Record]) {
    let known = leasehold_engine::Settings::default();
    let mut oracle = leasehold_oracle::Oracle::with_settings(leasehold_oracle::Settings {
        ttl_max: known.ttl_max,
        grace_default: known.grace_default,
        teardown_deadline: known.teardown_deadline,
        node_timeout: known.node_timeout,
        idempotency_window: known.idempotency_window,
    });
    for record in records {
        oracle.observe(record).unwrap_or_else(|violation| panic!("{violation}: {record:?}"));
    }
    let mut notable = std::collections::BTreeMap::new();
    entitlements_events::count(records, &mut notable);
    notable.iter().for_each(|(what, count)| eprintln!("notable {what}: {count}"));
}

#[test]
fn freeze() {
    if let Ok(name) = std::env::var("LEASEHOLD_TELL") {
        let data = std::env::temp_dir().join(format!("told-{name}"));
        let _ = fs::remove_dir_all(&data);
        let text = tell_and_write(&name, false, data);
        println!("{}", text.split("\n----\n").nth(1).unwrap());
        return;
    }
    if std::env::var_os("LEASEHOLD_FREEZE").is_none() {
        return;
    }
    for (name, snapshots) in [
        ("entitlements", true),
        ("policies", true),
        ("nodes", false),
        ("reservations", false),
        ("upgraded", true),
        ("upgraded-lent", false),
    ] {
        let folder = root().join("rules-7").join(name);
        let data = folder.join("data");
        let _ = fs::remove_dir_all(&data);
        let text = tell_and_write(name, snapshots, data);
        fs::write(folder.join("story.txt"), text).unwrap();
    }
}
