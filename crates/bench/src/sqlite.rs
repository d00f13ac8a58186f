//! The peer: SQLite in process, with a write-ahead log, full sync, hash-linked events and a thousand operations per
//! transaction. It does the same checks: quota, node, lease, event.

use crate::scratch;
use crate::work::Dice;
use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};
use std::time::Instant as Stopwatch;

const OPERATIONS: u64 = 400_000;
const PER_TRANSACTION: u64 = 1000;

const SCHEMA: &str = "
    pragma journal_mode = WAL; pragma synchronous = FULL; pragma cache_size = -262144; pragma wal_autocheckpoint = 10000;
    create table tenant(id integer primary key, lim int not null, used int not null);
    create table node(id integer primary key, free int not null);
    create table lease(id integer primary key, tenant int, node int, cap int, state int, start_at int, expires_at int);
    create table event(seq integer primary key, at int, lease int, tenant int, node int, kind int, cap int, prev blob, hash blob);
    create table head(seq int, hash blob);
    insert into head values(0, zeroblob(32));
    with recursive g(i) as (select 1 union all select i + 1 from g where i < 1000) insert into tenant select i, 64, 0 from g;
    with recursive g(i) as (select 1 union all select i + 1 from g where i < 1000) insert into node select i, 8 from g;
";

struct Peer<'c> {
    connection: &'c Connection,
    clock: Stopwatch,
}

impl Peer<'_> {
    fn run(&self, sql: &str, values: impl rusqlite::Params) -> usize {
        let mut statement = self.connection.prepare_cached(sql).expect("valid SQL");
        statement.execute(values).expect("the statement runs")
    }

    fn now(&self) -> i64 {
        1_767_225_600_000_000 + self.clock.elapsed().as_micros() as i64
    }

    fn event(&self, lease: i64, tenant: i64, node: i64, kind: i64, cap: i64) {
        let at = self.now();
        let (seq, prev): (i64, [u8; 32]) = {
            let mut head = self.connection.prepare_cached("select seq, hash from head").expect("valid SQL");
            head.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).expect("there is a head")
        };
        let mut bytes = [0u8; 32 + 7 * 8];
        bytes[..32].copy_from_slice(&prev);
        for (i, value) in [seq + 1, at, lease, tenant, node, kind, cap].into_iter().enumerate() {
            bytes[32 + i * 8..40 + i * 8].copy_from_slice(&value.to_le_bytes());
        }
        let hash: [u8; 32] = Sha256::digest(bytes).into();
        self.run(
            "insert into event values(?,?,?,?,?,?,?,?,?)",
            params![seq + 1, at, lease, tenant, node, kind, cap, prev, hash],
        );
        self.run("update head set seq = ?, hash = ?", params![seq + 1, hash]);
    }

    fn request(&self, tenant: i64, node: i64, cap: i64) -> Option<i64> {
        let take = "update tenant set used = used + ?2 where id = ?1 and used + ?2 <= lim";
        if self.run(take, params![tenant, cap]) == 0 {
            return None;
        }
        if self.run("update node set free = free - ?2 where id = ?1 and free >= ?2", params![node, cap]) == 0 {
            self.run("update tenant set used = used - ?2 where id = ?1", params![tenant, cap]);
            return None;
        }
        let at = self.now();
        self.run(
            "insert into lease(tenant, node, cap, state, start_at, expires_at) values(?,?,?,1,?,?)",
            params![tenant, node, cap, at, at + 3_600_000_000],
        );
        let lease = self.connection.last_insert_rowid();
        self.event(lease, tenant, node, 1, cap);
        Some(lease)
    }

    fn lease(&self, lease: i64) -> (i64, i64, i64) {
        let mut found =
            self.connection.prepare_cached("select tenant, node, cap from lease where id = ?").expect("valid SQL");
        found.query_row([lease], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).expect("the lease exists")
    }

    fn renew(&self, lease: i64) {
        let (tenant, node, cap) = self.lease(lease);
        let changed = self.run(
            "update lease set expires_at = ?2 where id = ?1 and state = 1",
            params![lease, self.now() + 3_600_000_000],
        );
        assert_eq!(changed, 1);
        self.event(lease, tenant, node, 2, cap);
    }

    fn release(&self, lease: i64) {
        let (tenant, node, cap) = self.lease(lease);
        let sql = "update lease set state = 0, expires_at = ?2 where id = ?1 and state = 1";
        assert_eq!(self.run(sql, params![lease, self.now()]), 1);
        self.run("update tenant set used = used - ?2 where id = ?1", params![tenant, cap]);
        self.run("update node set free = free + ?2 where id = ?1", params![node, cap]);
        self.event(lease, tenant, node, 3, cap);
    }
}

/// Operations per second.
pub(crate) fn hash_linked() -> f64 {
    let folder = scratch::folder();
    let connection = Connection::open(folder.path().join("peer.sqlite")).expect("a database can be created");
    connection.set_prepared_statement_cache_capacity(64);
    connection.execute_batch(SCHEMA).expect("valid SQL");
    let peer = Peer { connection: &connection, clock: Stopwatch::now() };
    connection.execute_batch("begin").expect("a transaction begins");
    for i in 1..=2000i64 {
        peer.request(1 + i % 1000, 1 + (i * 7) % 1000, 1);
    }
    connection.execute_batch("commit; pragma wal_checkpoint(truncate)").expect("a transaction ends");
    let mut dice = Dice(88_172_645_463_325_252);
    let mut held = None;
    let mut renewed = false;
    let began = Stopwatch::now();
    for _ in 0..OPERATIONS / PER_TRANSACTION {
        peer.run("begin immediate", []);
        for _ in 0..PER_TRANSACTION {
            match held {
                None => {
                    let (tenant, node) = (1 + dice.below(1000) as i64, 1 + dice.below(1000) as i64);
                    held = peer.request(tenant, node, 1 + dice.below(2) as i64);
                    renewed = false;
                }
                Some(lease) if !renewed => {
                    peer.renew(lease);
                    renewed = true;
                }
                Some(lease) => {
                    peer.release(lease);
                    held = None;
                }
            }
        }
        peer.run("commit", []);
    }
    OPERATIONS as f64 / began.elapsed().as_secs_f64()
}
