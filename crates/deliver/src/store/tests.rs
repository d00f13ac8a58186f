use super::*;
use crate::ranges::Ranges;
use leasehold_journal::Secret;
use std::os::unix::fs::PermissionsExt;

fn key(byte: u8) -> MacKey {
    Secret::new([byte; 32]).books().clone()
}

const ONE: SinkId = SinkId(1);

fn letter(sequence: u64) -> DeadLetter {
    DeadLetter {
        place: Place::start_of(sequence),
        id: format!("evt_{sequence}"),
        kind: "lease.granted".to_owned(),
        order: "lease-1".to_owned(),
        time_ns: 5,
        dead_at_ns: 6,
        attempts: 1,
        status: Some(404),
        reason: "the endpoint answered 404".to_owned(),
    }
}

fn changes(cursor: u64, dead: &[u64]) -> Changes {
    let mut done = Ranges::default();
    done.add(Place::start_of(cursor + 2), Place { sequence: cursor + 4, position: 3 });
    let progress = Progress { cursor: Place::start_of(cursor), done, dead: dead.len() as u64, ..Progress::new(3) };
    let dead = dead.iter().map(|sequence| (Place::start_of(*sequence), Some(letter(*sequence)))).collect();
    Changes { progress, dead, attempts: None }
}

#[test]
fn what_was_committed_is_there_after_opening_again() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("deliveries.redb");
    let (store, opened) = Store::open(&path, &key(1)).expect("created");
    assert_eq!(opened, Opened::New);
    assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
    assert!(matches!(Store::open(&path, &key(1)), Err(StoreError(why)) if why.contains("another process")));
    let first = changes(10, &[4, 5]);
    store.commit(&[(ONE, first.clone()), (SinkId(2), changes(7, &[]))]).expect("written");
    drop(store);
    let (store, opened) = Store::open(&path, &key(1)).expect("opened");
    assert_eq!(opened, Opened::Continued);
    let stored = store.load_sink(ONE).expect("sound").expect("there");
    assert_eq!((stored.progress, stored.dead), (first.progress, vec![Place::start_of(4), Place::start_of(5)]));
    assert_eq!(store.dead_letters(ONE, Place::start_of(5), 9).expect("sound"), [letter(5)]);
    assert_eq!(store.load_sink(SinkId(3)).expect("sound"), None);
    store.forget(ONE).expect("written");
    assert_eq!(store.load_sink(ONE).expect("sound"), None);
    assert!(store.load_sink(SinkId(2)).expect("sound").is_some());
    assert_eq!(std::fs::read_dir(folder.path()).expect("a directory").count(), 1);
}

#[test]
fn a_file_of_another_secret_or_a_damaged_one_is_set_aside() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("deliveries.redb");
    drop(Store::open(&path, &key(1)).expect("created"));
    let (store, opened) = Store::open(&path, &key(2)).expect("replaced");
    let kept_as = path.with_extension("redb.damaged");
    let why = "it was not written with local.secret".to_owned();
    assert_eq!(opened, Opened::Replaced { why, kept_as: kept_as.clone() });
    assert!(kept_as.exists());
    drop(store);
    for length in [0, 1, 5_000] {
        std::fs::write(&path, vec![0x5a; length]).expect("written");
        let (store, opened) = Store::open(&path, &key(1)).expect("replaced");
        // An empty file is one that was about to be created.
        assert_eq!(matches!(opened, Opened::Replaced { .. }), length > 0, "{length} bytes: {opened:?}");
        drop(store);
    }
    // The process died while it opened the file.
    std::fs::write(path.with_extension("opening"), "").expect("written");
    let (_, opened) = Store::open(&path, &key(1)).expect("replaced");
    assert!(matches!(opened, Opened::Replaced { why, .. } if why.contains("did not finish")));
}

/// Writes bytes into the file as somebody who does not have the key.
fn forge(store: &Store, change: impl FnOnce(&redb::WriteTransaction)) {
    let write = store.database.begin_write().expect("begins");
    change(&write);
    write.commit().expect("written");
}

#[test]
fn a_value_that_somebody_else_wrote_is_not_believed() {
    let fresh = || {
        let store = Store::in_memory(&key(1)).expect("created");
        store.commit(&[(ONE, changes(10, &[4, 5])), (SinkId(2), changes(99, &[]))]).expect("written");
        store
    };
    // A byte of the progress; the progress of another sink; a dead letter that is missing, altered or moved.
    type Change = fn(&redb::WriteTransaction);
    let damage: [(&str, Change); 5] = [
        ("a byte", |write| {
            let mut table = write.open_table(PROGRESS).expect("there");
            let mut all = table.get(1).expect("read").expect("there").value().to_vec();
            *all.last_mut().expect("some") ^= 1;
            table.insert(1, &*all).expect("written");
        }),
        ("another sink's", |write| {
            let mut table = write.open_table(PROGRESS).expect("there");
            let all = table.get(2).expect("read").expect("there").value().to_vec();
            table.insert(1, &*all).expect("written");
        }),
        ("no letter", |write| {
            write.open_table(DEAD).expect("there").remove((1, 4, 0)).expect("removed");
        }),
        ("an altered letter", |write| {
            let mut table = write.open_table(DEAD).expect("there");
            let mut all = table.get((1, 4, 0)).expect("read").expect("there").value().to_vec();
            all[MAC_BYTES + 3] ^= 1;
            table.insert((1, 4, 0), &*all).expect("written");
        }),
        ("a moved letter", |write| {
            let mut table = write.open_table(DEAD).expect("there");
            let all = table.remove((1, 4, 0)).expect("read").expect("there").value().to_vec();
            table.insert((1, 6, 0), &*all).expect("written");
        }),
    ];
    for (what, change) in damage {
        let store = fresh();
        assert!(store.load_sink(ONE).is_ok());
        forge(&store, change);
        assert!(store.load_sink(ONE).is_err(), "{what}");
        assert!(store.load_sink(SinkId(2)).is_ok(), "{what}: the other sink goes on");
    }
}
