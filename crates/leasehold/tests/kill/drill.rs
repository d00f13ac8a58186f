//! The program that `kill.rs` kills: writes under load and prints each record once it is acknowledged, so that the test
//! can kill it at any moment and look for the acknowledged records. Takes a data directory, the number of threads, and a
//! seed.
//!
//! A line is `sequence digest`: the digest is SHA-256 over the record's own bytes, the link to the record before it
//! left out, because a reply does not carry the link.

use fastrand::Rng;
use leasehold_cell::{Cell, CellOptions, Reply, Sealed, StartOptions, SystemClock, Unsealed};
use leasehold_engine::command::{
    PutClass, PutNode, PutPool, PutProject, PutTenant, ReleaseOne, RenewOne, RequestLease,
};
use leasehold_engine::{Command, Request};
use leasehold_journal::{Local, Options};
use leasehold_model::body::PerPriority;
use leasehold_model::hex;
use leasehold_model::{
    Batch, Body, ClassNo, ClassSpec, Identity, LeaseNo, Name, PoolNo, ProjectNo, Quanta, Record, ResourceKind, Span,
    Strategy, TeardownMode, TenantNo, TenantSettings,
};
use leasehold_server::{DataDirectory, software};
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

const ORIGIN: &str = "drill.leasehold.local";
/// Small, so that the process is also killed while it begins a new segment.
const SEGMENT_BYTES: u64 = 256 << 10;
/// More than any command here needs.
const HEADROOM_BYTES: u64 = 64 << 10;

fn main() {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().expect("a folder, how many threads, a seed");
    let (data, submitters, seed) = (next(), next(), next());
    let [submitters, seed]: [u64; 2] = [submitters, seed].map(|text| text.parse().expect("a number"));
    drill(Path::new(&data), submitters, seed);
}

fn drill(data: &Path, submitters: u64, seed: u64) {
    let directory = DataDirectory::prepare(data).expect("a folder");
    let clock = SystemClock::new();
    let keys = directory.keys(Some(ORIGIN), ORIGIN).expect("keys");
    let public_key = keys.public_keys()[0];
    let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::default() };
    let local = Local::new(directory.secret().expect("a secret"));
    let (journal, _) = directory
        .open_journal(Arc::new(keys), options, local, &clock)
        .unwrap_or_else(|error| panic!("it opens: {error}"));
    let mut start = StartOptions::new(software(), public_key);
    start.headroom_bytes = HEADROOM_BYTES;
    let mut options = CellOptions::new(start);
    options.snapshot_every = 2000;
    let (cell, _) =
        Cell::start(Arc::new(journal), Arc::new(clock), options).unwrap_or_else(|error| panic!("it starts: {error}"));
    if cell.now().read(|state| state.project(ProjectNo(0)).is_none()) {
        for command in cluster() {
            // After a crash some of it may exist already, and is refused.
            acknowledge(&cell.operate(command));
        }
    }
    std::thread::scope(|scope| {
        for submitter in 0..submitters {
            let cell = &cell;
            scope.spawn(move || submit(cell, Rng::with_seed(seed.wrapping_add(submitter << 32))));
        }
    });
    assert_eq!(cell.failure(), None);
}

/// One submitter: requests, renews and releases leases, and waits for each answer, until it is killed or the pipe is closed.
fn submit(cell: &Cell, mut dice: Rng) {
    let identity = Identity { tenant: Some(TenantNo(0)), project: Some(ProjectNo(0)), ..Identity::default() };
    let mut held: Vec<LeaseNo> = Vec::new();
    loop {
        let command = match dice.u8(..3) {
            0 if !held.is_empty() => {
                let lease = held[dice.usize(..held.len())];
                Command::Renew([RenewOne { lease, ttl: Span::from_secs(60), activity: None }].into_iter().collect())
            }
            1 if held.len() > 20 => {
                let lease = held.swap_remove(dice.usize(..held.len()));
                Command::Release([ReleaseOne { lease, activity: None }].into_iter().collect())
            }
            _ => Command::Request(RequestLease::of(ClassNo(0), Quanta(dice.u64(1..9)), Span::from_secs(60))),
        };
        let key = dice.u64(..).to_le_bytes();
        let request = Request::once(identity.clone(), command, &key).expect("the key is short");
        let reply = cell.call(request);
        if let Ok(Sealed { records, repeated: false, .. }) = &reply
            && let Body::Granted(granted) = &records[0].body
        {
            held.push(granted.first_lease);
        }
        if matches!(reply, Err(Unsealed::Stopped)) || !acknowledge(&reply) {
            return;
        }
    }
}

/// Prints the acknowledged records; returns whether the pipe is still open.
fn acknowledge(reply: &Reply) -> bool {
    let records = reply.iter().flat_map(|sealed| &sealed.records);
    let lines: String = records.map(|record| format!("{} {}\n", record.sequence, digest(record))).collect();
    let mut stdout = io::stdout().lock();
    stdout.write_all(lines.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}

/// The digest of the encoded record without its link.
fn digest(record: &Record) -> String {
    let mut batch = Batch::new(record.sequence);
    batch.push(record);
    let frame = batch.frames().next().and_then(Result::ok).expect("a record was just put in");
    hex::encode(&Sha256::digest(&frame.bytes[32..]))
}

fn cluster() -> Vec<Command> {
    let name = |text: &str| Name::new(text).expect("a valid name");
    let mut commands = vec![
        Command::PutClass(PutClass {
            class: None,
            spec: ClassSpec {
                name: name("cpu"),
                kind: ResourceKind::Cpu,
                tier: None,
                quanta_per_unit: 1000,
                premium: false,
            },
        }),
        Command::PutPool(PutPool {
            pool: None,
            name: name("main"),
            strategy: Strategy::Spread,
            ttl_max: PerPriority::default(),
            lifetime_max: PerPriority::default(),
            grace: None,
            weights: None,
            queue: None,
        }),
    ];
    commands.extend((0..4).map(|n| {
        Command::PutNode(PutNode {
            node: None,
            name: name(&format!("node-{n}")),
            pool: PoolNo(0),
            rack: None,
            zone: None,
            labels: Vec::new(),
            teardown: TeardownMode::Immediate,
            capacity: vec![(ClassNo(0), Quanta(1_000_000))],
        })
    }));
    commands.push(Command::PutTenant(PutTenant { tenant: None, settings: TenantSettings::named(name("drill")) }));
    commands.push(Command::PutProject(PutProject { project: None, tenant: TenantNo(0), name: name("drill") }));
    commands
}
