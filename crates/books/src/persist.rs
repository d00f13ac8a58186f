//! The books as bytes: what a commit writes beside blocks and chunks, and how it is read back.

use crate::chunk::{ChunkHead, StoredHead};
use crate::column::{get_list, put_list};
use crate::facts::{BillingKey, Books, Open, Phase};
use crate::nodes::{ClassBook, NodeBook, Place, PlaceKey};
use crate::row::{End, Row};
use crate::table::Table;
use leasehold_meter::{Head, Point, Series, Window};
use leasehold_model::codec::{DecodeError, Field, Reader, put_varint, put_varint_wide};
use leasehold_model::rate::{ChargePolicyPut, RateCardPut};
use leasehold_model::{Activity, Instant, LeaseNo, NodeNo};
use std::hash::Hash;

/// Raised when these bytes change: older books are made anew from the journal.
pub(crate) const BOOKS_VERSION: u32 = 2;

leasehold_model::fields! {
    /// A row, with its end in the order of the struct.
    pub struct StoredRow {
        pub lease: LeaseNo,
        pub tenant: leasehold_model::TenantNo,
        pub project: leasehold_model::ProjectNo,
        pub user: Option<leasehold_model::UserNo>,
        pub pool: leasehold_model::PoolNo,
        pub node: NodeNo,
        pub class: leasehold_model::ClassNo,
        pub priority: leasehold_model::Priority,
        pub tag: Option<u32>,
        pub allocation: Option<leasehold_model::AllocationNo>,
        pub app_instance: Option<leasehold_model::AppInstanceNo>,
        pub workload: Option<leasehold_model::Name>,
        pub quanta: u64,
        pub from: Instant,
        pub to: Instant,
        pub end: End,
        pub fenced: bool,
        pub activity: Option<Activity>,
    }
}

fn stored(row: &Row) -> StoredRow {
    StoredRow {
        lease: row.lease,
        tenant: row.tenant,
        project: row.project,
        user: row.user,
        pool: row.pool,
        node: row.node,
        class: row.class,
        priority: row.priority,
        tag: row.tag,
        allocation: row.allocation,
        app_instance: row.app_instance,
        workload: row.workload.clone(),
        quanta: row.quanta,
        from: row.held.from,
        to: row.held.to,
        end: row.end,
        fenced: row.fenced,
        activity: row.activity.as_deref().copied(),
    }
}

fn restored(row: StoredRow) -> Row {
    Row {
        lease: row.lease,
        tenant: row.tenant,
        project: row.project,
        user: row.user,
        pool: row.pool,
        node: row.node,
        class: row.class,
        priority: row.priority,
        tag: row.tag,
        allocation: row.allocation,
        app_instance: row.app_instance,
        workload: row.workload,
        quanta: row.quanta,
        held: Window::new(row.from, row.to),
        end: row.end,
        fenced: row.fenced,
        activity: row.activity.map(Box::new),
    }
}

impl Field for BillingKey {
    fn put(&self, out: &mut Vec<u8>) {
        self.tenant.put(out);
        self.project.put(out);
        self.tag.put(out);
        self.class.put(out);
        self.pool.put(out);
        self.priority.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            tenant: Field::get(r)?,
            project: Field::get(r)?,
            tag: Field::get(r)?,
            class: Field::get(r)?,
            pool: Field::get(r)?,
            priority: Field::get(r)?,
        })
    }
}

impl Field for PlaceKey {
    fn put(&self, out: &mut Vec<u8>) {
        self.node.put(out);
        self.pool.put(out);
        self.class.put(out);
        self.place.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { node: Field::get(r)?, pool: Field::get(r)?, class: Field::get(r)?, place: Place::get(r)? })
    }
}

/// The head of a block, in the order in which the file keeps them.
pub(crate) fn put_head(head: &Head, out: &mut Vec<u8>) {
    head.first.put(out);
    head.level.put(out);
    put_varint_wide(head.integral, out);
    head.peak.put(out);
    head.block.put(out);
}
pub(crate) fn get_head(r: &mut Reader<'_>) -> Result<Head, DecodeError> {
    Ok(Head {
        first: Field::get(r)?,
        level: Field::get(r)?,
        integral: r.varint_wide()?,
        peak: Field::get(r)?,
        block: Field::get(r)?,
    })
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}
fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

fn put_table<K: Field + Copy + Eq + Hash>(table: &Table<K>, out: &mut Vec<u8>) {
    put_varint(table.keys.len() as u64, out);
    for (key, series) in table.iter() {
        key.put(out);
        put_varint(series.heads().len() as u64, out);
        let (level, integral) = series.tail_base();
        put_varint(level, out);
        put_varint_wide(integral, out);
        put_varint(series.tail().len() as u64, out);
        let mut last = Instant(0);
        for point in series.tail() {
            put_varint(point.at.since(last).0, out);
            put_varint(zigzag(point.delta), out);
            last = point.at;
        }
    }
}

/// Where a series' heads lie: its table, its number, and how many it has.
pub(crate) type Heads<'h> = dyn FnMut(u64, usize) -> Option<Vec<Head>> + 'h;

fn get_table<K: Field + Copy + Eq + Hash>(
    r: &mut Reader<'_>,
    table_no: u64,
    heads: &mut Heads<'_>,
) -> Result<Table<K>, DecodeError> {
    let mut table = Table::default();
    let series = r.count(1 << 31)?;
    for number in 0..series {
        let key = K::get(r)?;
        let count = r.count(1 << 31)?;
        let (level, integral) = (r.varint()?, r.varint_wide()?);
        let points = r.count(1 << 20)?;
        let mut tail = Vec::with_capacity(points);
        let mut last = Instant(0);
        for _ in 0..points {
            last = Instant(last.0.wrapping_add(r.varint()?));
            tail.push(Point { at: last, delta: unzigzag(r.varint()?) });
        }
        let heads = heads(head_key(table_no, number, 0), count).ok_or(DecodeError::BadInteger)?;
        let series = Series::restore(heads, tail, level, integral).ok_or(DecodeError::BadInteger)?;
        table.restore(key, series);
    }
    Ok(table)
}

/// The place of a head in the file: table, series, and place in it.
pub(crate) fn head_key(table: u64, series: usize, place: usize) -> u64 {
    assert!(series < 1 << 31 && place < 1 << 32, "fewer series and blocks than that");
    table << 63 | (series as u64) << 32 | place as u64
}

pub(crate) const BILLING: u64 = 0;
pub(crate) const PLACES: u64 = 1;

fn put_node(node: &NodeBook, out: &mut Vec<u8>) {
    node.pool.put(out);
    node.since.put(out);
    node.drained.put(out);
    node.lost.put(out);
    put_varint(node.classes.len() as u64, out);
    for class in &node.classes {
        class.class.put(out);
        [class.capacity, class.held, class.tearing_down, class.fenced].iter().for_each(|level| level.put(out));
    }
}

fn get_node(r: &mut Reader<'_>) -> Result<NodeBook, DecodeError> {
    let (pool, since, drained, lost) = (Field::get(r)?, Field::get(r)?, Field::get(r)?, Field::get(r)?);
    let mut classes = Vec::new();
    for _ in 0..r.count(1 << 16)? {
        classes.push(ClassBook {
            class: Field::get(r)?,
            capacity: Field::get(r)?,
            held: Field::get(r)?,
            tearing_down: Field::get(r)?,
            fenced: Field::get(r)?,
        });
    }
    Ok(NodeBook { pool, since, drained, lost, classes })
}

impl Books {
    /// Everything but blocks, heads and chunks.
    pub(crate) fn to_state(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.cursor.put(&mut out);
        self.last_stamp.put(&mut out);
        self.store.next_block.put(&mut out);
        put_list(self.classes.iter().map(|(number, spec)| (*number, spec.clone())), &mut out);
        put_list(self.tags.iter().cloned(), &mut out);
        put_list(self.tenant_tags.iter().map(|(tenant, tag)| (*tenant, *tag)), &mut out);
        put_list(self.schedule.cards().cloned().collect::<Vec<_>>().into_iter(), &mut out);
        put_list(self.schedule.policies().cloned().collect::<Vec<_>>().into_iter(), &mut out);
        put_varint(self.nodes.books.len() as u64, &mut out);
        for (number, node) in &self.nodes.books {
            number.put(&mut out);
            put_node(node, &mut out);
        }
        put_list(self.chunks.iter().map(|head| head.stored()), &mut out);
        put_list(self.tail.iter().map(stored), &mut out);
        put_varint(self.open.len() as u64, &mut out);
        for open in self.open.values() {
            stored(&open.row).put(&mut out);
            out.push(open.phase as u8);
            open.billing.put(&mut out);
            open.revoked.put(&mut out);
        }
        put_table(&self.billing, &mut out);
        put_table(&self.nodes.places, &mut out);
        out
    }

    pub(crate) fn read_state(&mut self, bytes: &[u8], heads: &mut Heads<'_>) -> Result<(), DecodeError> {
        let mut r = Reader::new(bytes);
        self.cursor = Field::get(&mut r)?;
        self.last_stamp = Field::get(&mut r)?;
        self.store.next_block = Field::get(&mut r)?;
        self.classes = get_list(&mut r)?.into_iter().collect();
        self.tags = get_list(&mut r)?;
        self.tenant_tags = get_list(&mut r)?.into_iter().collect();
        get_list::<RateCardPut>(&mut r)?.into_iter().for_each(|card| self.schedule.put_card(card));
        get_list::<ChargePolicyPut>(&mut r)?.into_iter().for_each(|policy| self.schedule.put_policy(policy));
        for _ in 0..r.count(1 << 32)? {
            let number = NodeNo::get(&mut r)?;
            self.nodes.books.insert(number, get_node(&mut r)?);
        }
        self.chunks = get_list::<StoredHead>(&mut r)?.iter().map(ChunkHead::restored).collect();
        self.tail = get_list::<StoredRow>(&mut r)?.into_iter().map(restored).collect();
        for _ in 0..r.count(1 << 40)? {
            let row = restored(Field::get(&mut r)?);
            let phase = match r.byte()? {
                0 => Phase::Held,
                1 => Phase::TearingDown,
                2 => Phase::Fenced,
                code => return Err(DecodeError::BadCode { field: "phase", code: code.into() }),
            };
            let (billing, revoked) = (Field::get(&mut r)?, Field::get(&mut r)?);
            if phase == Phase::Held {
                self.deadlines.add(row.held.to, row.lease);
            }
            self.open.insert(row.lease, Open { row, phase, billing, revoked });
        }
        self.billing = get_table(&mut r, BILLING, heads)?;
        self.nodes.places = get_table(&mut r, PLACES, heads)?;
        for (number, key) in (0u32..).zip(&self.billing.keys) {
            self.of_tenant.entry(key.tenant).or_default().push(number);
        }
        if self.open.values().any(|open| open.billing as usize >= self.billing.keys.len()) {
            return Err(DecodeError::BadInteger);
        }
        self.pass_deadlines(self.last_stamp);
        r.finish()
    }
}
