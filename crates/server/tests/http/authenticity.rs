//! What a start does with a data directory that somebody else has written to (SEMANTICS 11, "Local authenticity").

use leasehold_cell::SystemClock;
use leasehold_journal::Keys;
use leasehold_model::body::{Body, TailAction, TenantDeleted};
use leasehold_model::{Batch, Record, TenantNo};
use leasehold_server::config::Config;
use leasehold_server::{Daemon, DaemonError, Start, UnprovedTail};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

fn open(data: &Path, unproved_tail: UnprovedTail) -> Result<Daemon, DaemonError> {
    let mut config = Config { data: data.to_owned(), listen: "127.0.0.1:0".into(), ..Config::default() };
    config.journal.segment_bytes = 4 << 20;
    let start = Start {
        clock: Arc::new(SystemClock::new()),
        accept_clock: false,
        unproved_tail,
        new_operator_token: false,
        on_failure: Arc::new(|why| panic!("the journal failed: {why}")),
    };
    Daemon::open(config, start)
}

/// Starts and stops once; returns the end of the journal.
fn stopped(data: &Path) -> leasehold_journal::Head {
    let daemon = open(data, UnprovedTail::Refuse).unwrap_or_else(|error| panic!("{error}"));
    let journal = Arc::clone(daemon.cell().journal());
    daemon.close().expect("it stops");
    journal.head()
}

#[test]
fn a_batch_that_somebody_appended_is_refused_and_can_be_cut() {
    let folder = tempfile::tempdir().expect("a directory");
    let data = folder.path();
    let head = stopped(data);
    let keys = Keys::load(&data.join("key")).expect("the key");
    let mut forged = Batch::new(head.size);
    let mut record =
        Record::new(head.size, leasehold_cell::Clock::wall(&SystemClock::new()), TenantDeleted { tenant: TenantNo(0) });
    record.effective_at = record.stamp;
    forged.push(&record);
    forged.seal(&head.hash, &keys).expect("nothing to sign");
    let segment = data.join("journal/00000001.seg");
    let mut bytes = fs::read(&segment).expect("the segment");
    bytes.extend_from_slice(forged.bytes());
    fs::write(&segment, bytes).expect("written");

    for tail in [UnprovedTail::Refuse, UnprovedTail::Accept] {
        let error = open(data, tail).err().expect("a refusal");
        assert_eq!(error.code(), "journal_tail_unproved");
        assert!(error.to_string().contains("--cut-unproved-tail"), "{error}");
    }
    let daemon = open(data, UnprovedTail::Cut).unwrap_or_else(|error| panic!("{error}"));
    let resolved = daemon.recovered.as_ref().and_then(|recovered| recovered.tail_resolved.clone());
    assert_eq!(resolved.as_ref().map(|tail| (tail.action, tail.records)), Some((TailAction::Cut, 1)));
    let sealed = daemon.cell().journal().record(head.size).expect("readable").expect("a record");
    assert_eq!(sealed.decode().expect("it decodes").body, Body::TailResolved(resolved.expect("just seen")));
    daemon.close().expect("it stops");
    assert!(stopped(data).size > head.size);
}

#[test]
fn a_lost_secret_is_replaced_and_one_that_others_may_read_is_refused() {
    let folder = tempfile::tempdir().expect("a directory");
    let data = folder.path();
    stopped(data);
    let secret = data.join("local.secret");
    let first = fs::read(&secret).expect("the secret");
    assert_eq!((first.len(), fs::metadata(&secret).expect("it is there").permissions().mode() & 0o777), (32, 0o600));
    fs::remove_file(&secret).expect("removed");
    // Everything is signed after a clean stop: nothing is asked, and that is said.
    let daemon = open(data, UnprovedTail::Refuse).unwrap_or_else(|error| panic!("{error}"));
    assert!(daemon.recovered.as_ref().is_some_and(|recovered| recovered.secret_lost));
    daemon.close().expect("it stops");
    assert_ne!(fs::read(&secret).expect("a new secret"), first);
    stopped(data);

    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).expect("changed");
    assert_eq!(open(data, UnprovedTail::Refuse).err().map(|error| error.code()), Some("secret_too_open"));
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("changed");
    fs::write(&secret, b"short").expect("written");
    assert_eq!(open(data, UnprovedTail::Refuse).err().map(|error| error.code()), Some("secret_malformed"));
}
