//! Encoding of the books: what a commit writes in addition to blocks and chunks.

use crate::bytes::{get_list, put_list};
use crate::chunk::ChunkHead;
use crate::claims::{Claim, Idle, Step};
use crate::facts::{BillingKey, Books, BooksError, Open, Phase};
use crate::ledger::LedgerBook;
use crate::losses::EndedClaim;
use crate::names::NamedKind;
use crate::nodes::{CapacitySeries, CapacitySeriesKey, ClassBook, NodeBook};
use crate::row::{End, Life, Rare, Row};
use crate::runs::RunHeads;
use crate::seal::Commit;
use crate::stays::OnNode;
use crate::store::HEADS;
use crate::stories::Story;
use crate::table::Table;
use crate::units::UnitBook;
use leasehold_meter::column::{unzigzag, zigzag};
use leasehold_meter::{Event, SegmentHead, Timeline, Window};
use leasehold_model::codec::{DecodeError, Field, Reader, put_varint};
use leasehold_model::rate::{ChargePolicyPut, RateCardPut};
use leasehold_model::{Activity, Instant, LeaseNo, NodeNo};
use std::hash::Hash;
use std::ops::ControlFlow;

/// Raised when the encoding changes: older books are rebuilt from the journal.
pub(crate) const BOOKS_VERSION: u32 = 18;

leasehold_model::fields! {
    /// The encoded form of a row.
    pub struct StoredRow {
        pub lease: LeaseNo,
        pub tenant: leasehold_model::TenantNo,
        pub project: leasehold_model::ProjectNo,
        pub payer: leasehold_model::ProjectNo,
        pub user: Option<leasehold_model::UserNo>,
        pub pool: leasehold_model::PoolNo,
        pub node: NodeNo,
        pub class: leasehold_model::ClassNo,
        pub priority: leasehold_model::Priority,
        pub by_claim: bool,
        pub tag: Option<u32>,
        pub allocation: Option<leasehold_model::AllocationNo>,
        pub app_instance: Option<leasehold_model::AppInstanceNo>,
        pub workload: Option<leasehold_model::Name>,
        pub quanta: u64,
        pub from: Instant,
        pub to: Instant,
        pub end_before: Option<Instant>,
        pub end: End,
        pub fenced: bool,
        pub activity: Option<Activity>,
        pub life: Life,
        pub rare: Option<Rare>,
    }
}

fn stored(row: &Row) -> StoredRow {
    StoredRow {
        lease: row.lease,
        tenant: row.tenant,
        project: row.project,
        payer: row.payer,
        user: row.user,
        pool: row.pool,
        node: row.node,
        class: row.class,
        priority: row.priority,
        by_claim: row.by_claim,
        tag: row.tag,
        allocation: row.allocation,
        app_instance: row.app_instance,
        workload: row.workload.clone(),
        quanta: row.quanta,
        from: row.held.from,
        to: row.held.to,
        end_before: row.end_before,
        end: row.end,
        fenced: row.fenced,
        activity: row.activity.as_deref().copied(),
        life: row.life,
        rare: row.rare.as_deref().cloned(),
    }
}

fn restored(row: StoredRow) -> Row {
    Row {
        lease: row.lease,
        tenant: row.tenant,
        project: row.project,
        payer: row.payer,
        user: row.user,
        pool: row.pool,
        node: row.node,
        class: row.class,
        priority: row.priority,
        by_claim: row.by_claim,
        tag: row.tag,
        allocation: row.allocation,
        app_instance: row.app_instance,
        workload: row.workload,
        quanta: row.quanta,
        held: Window::new(row.from, row.to),
        end_before: row.end_before,
        end: row.end,
        fenced: row.fenced,
        activity: row.activity.map(Box::new),
        life: row.life,
        rare: row.rare.map(Box::new),
    }
}

leasehold_model::fields! {
    pub struct StoredClaim {
        pub node: NodeNo,
        pub tenant: leasehold_model::TenantNo,
        pub project: leasehold_model::ProjectNo,
        pub user: Option<leasehold_model::UserNo>,
        pub sequence: u64,
        pub tag: Option<u32>,
        pub pool: leasehold_model::PoolNo,
        pub classes: Vec<StoredIdle>,
    }
}
leasehold_model::fields! {
    pub struct StoredIdle {
        pub class: leasehold_model::ClassNo,
        pub billing: u32,
        pub steps: Vec<StoredStep>,
    }
}
leasehold_model::fields! {
    pub struct StoredStep { pub at: Instant, pub rest: u64, pub in_service: bool }
}

impl StoredClaim {
    fn of(node: NodeNo, claim: &Claim) -> Self {
        let step = |step: &Step| StoredStep { at: step.at, rest: step.rest, in_service: step.in_service };
        let class = |(class, idle): (&leasehold_model::ClassNo, &Idle)| StoredIdle {
            class: *class,
            billing: idle.billing,
            steps: idle.steps.iter().map(step).collect(),
        };
        Self {
            node,
            tenant: claim.tenant,
            project: claim.project,
            user: claim.user,
            sequence: claim.sequence,
            tag: claim.tag,
            pool: claim.pool,
            classes: claim.classes.iter().map(class).collect(),
        }
    }

    /// Fails if a class has no step.
    fn restored(self) -> Option<(NodeNo, Claim)> {
        let step = |step: StoredStep| Step { at: step.at, rest: step.rest, in_service: step.in_service };
        let class = |idle: StoredIdle| {
            let steps: Vec<Step> = idle.steps.into_iter().map(step).collect();
            (!steps.is_empty()).then_some((idle.class, Idle { billing: idle.billing, steps }))
        };
        let classes = self.classes.into_iter().map(class).collect::<Option<_>>()?;
        let Self { node, tenant, project, user, sequence, tag, pool, .. } = self;
        Some((node, Claim { tenant, project, user, sequence, tag, pool, classes }))
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
        self.priced.put(out);
        self.payer.put(out);
        self.app_instance.put(out);
        self.attachment.put(out);
        self.control_plane.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            tenant: Field::get(r)?,
            project: Field::get(r)?,
            tag: Field::get(r)?,
            class: Field::get(r)?,
            pool: Field::get(r)?,
            priority: Field::get(r)?,
            priced: Field::get(r)?,
            payer: Field::get(r)?,
            app_instance: Field::get(r)?,
            attachment: Field::get(r)?,
            control_plane: Field::get(r)?,
        })
    }
}

impl Field for CapacitySeriesKey {
    fn put(&self, out: &mut Vec<u8>) {
        self.node.put(out);
        self.pool.put(out);
        self.class.put(out);
        self.series.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { node: Field::get(r)?, pool: Field::get(r)?, class: Field::get(r)?, series: CapacitySeries::get(r)? })
    }
}

fn put_timeline(timeline: &Timeline, out: &mut Vec<u8>) {
    put_varint(timeline.heads().len() as u64, out);
    for head in timeline.heads() {
        head.first.put(out);
        head.last.put(out);
        head.place.put(out);
    }
    put_varint(timeline.series() as u64, out);
    for (level, moment) in timeline.base() {
        put_varint(zigzag(level), out);
        out.extend_from_slice(&moment.to_le_bytes());
    }
    put_varint(timeline.tail().len() as u64, out);
    let mut last = Instant(0);
    for event in timeline.tail() {
        put_varint(event.at.since(last).0, out);
        event.series.put(out);
        put_varint(zigzag(event.delta), out);
        last = event.at;
    }
}

fn get_timeline(r: &mut Reader<'_>) -> Result<Timeline, DecodeError> {
    let heads = (0..r.count(1 << 40)?)
        .map(|_| Ok(SegmentHead { first: Field::get(r)?, last: Field::get(r)?, place: Field::get(r)? }))
        .collect::<Result<_, DecodeError>>()?;
    let base = (0..r.count(1 << 32)?)
        .map(|_| Ok((unzigzag(r.varint()?), i128::from_le_bytes(r.array()?))))
        .collect::<Result<_, DecodeError>>()?;
    let events = r.count(1 << 40)?;
    let mut last = Instant(0);
    let mut event = || {
        last = Instant(last.0.wrapping_add(r.varint()?));
        Ok(Event { at: last, series: Field::get(r)?, delta: unzigzag(r.varint()?) })
    };
    let tail = (0..events).map(|_| event()).collect::<Result<_, DecodeError>>()?;
    Timeline::restore(heads, base, tail).ok_or(DecodeError::BadInteger)
}

fn put_table<K: Field + Copy + Eq + Hash>(table: &Table<K>, out: &mut Vec<u8>) {
    put_list(table.keys.iter().copied(), out);
    put_timeline(&table.timeline, out);
}

fn get_table<K: Field + Copy + Eq + Hash>(r: &mut Reader<'_>) -> Result<Table<K>, DecodeError> {
    let keys = get_list(r)?;
    Table::restore(keys, get_timeline(r)?).ok_or(DecodeError::BadInteger)
}

fn put_node(node: &NodeBook, out: &mut Vec<u8>) {
    node.pool.put(out);
    node.since.put(out);
    node.drained.put(out);
    node.windows.put(out);
    node.lost.put(out);
    node.unclean.put(out);
    node.last_used.put(out);
    put_list(node.service.iter().copied(), out);
    put_varint(node.classes.len() as u64, out);
    for class in &node.classes {
        class.class.put(out);
        [class.capacity, class.held, class.tearing_down, class.fenced].iter().for_each(|level| level.put(out));
    }
}

fn get_node(r: &mut Reader<'_>) -> Result<NodeBook, DecodeError> {
    let (pool, since, drained, windows) = (Field::get(r)?, Field::get(r)?, Field::get(r)?, Field::get(r)?);
    let (lost, unclean, last_used, service) = (Field::get(r)?, Field::get(r)?, Field::get(r)?, get_list(r)?);
    let mut classes = Vec::new();
    for _ in 0..r.count(1 << 16)? {
        classes.push(ClassBook {
            class: Field::get(r)?,
            capacity: Field::get(r)?,
            held: Field::get(r)?,
            tearing_down: Field::get(r)?,
            fenced: Field::get(r)?,
            // Computed from the reservations.
            reserved: 0,
        });
    }
    Ok(NodeBook { pool, since, drained, windows, lost, unclean, last_used, service, classes })
}

leasehold_model::fields! {
    /// The indexes in the file, after a commit.
    #[derive(Default)]
    pub struct Indexes {
        pub correlations: RunHeads,
        pub payer_entries: RunHeads,
        pub line_hours: RunHeads,
        pub usage_behind: RunHeads,
        pub usage_refused: RunHeads,
        pub shares: RunHeads,
        /// By day.
        pub usage_ids: Vec<(u64, RunHeads)>,
    }
}

impl Books {
    /// Encodes everything that has no own entry.
    pub(crate) fn to_state(&self, commit: &Commit, indexes: &Indexes) -> Vec<u8> {
        let mut out = Vec::new();
        self.cursor.put(&mut out);
        self.last_stamp.put(&mut out);
        self.store.next_place.put(&mut out);
        put_list(self.classes.iter().map(|(number, spec)| (*number, spec.clone())), &mut out);
        put_list(self.tags.iter().cloned(), &mut out);
        put_list(self.tenant_tags.iter().map(|(tenant, tag)| (*tenant, *tag)), &mut out);
        put_varint(self.names.len() as u64, &mut out);
        for ((kind, number), object) in &self.names {
            kind.put(&mut out);
            number.put(&mut out);
            object.put(&mut out);
        }
        // With their length in front, because fields may be added to the end of prices later.
        put_varint(self.schedule.cards().count() as u64, &mut out);
        for card in self.schedule.cards() {
            let bytes = card.to_bytes();
            put_varint(bytes.len() as u64, &mut out);
            out.extend_from_slice(&bytes);
        }
        put_list(self.schedule.policies().cloned().collect::<Vec<_>>().into_iter(), &mut out);
        put_varint(self.nodes.books.len() as u64, &mut out);
        for (number, node) in &self.nodes.books {
            number.put(&mut out);
            put_node(node, &mut out);
        }
        put_list(self.claims.iter().map(|(node, claim)| StoredClaim::of(*node, claim)), &mut out);
        put_list(self.corrected.iter().map(|(place, end)| (*place, *end)), &mut out);
        put_list(self.failed_starts.iter().copied(), &mut out);
        let ended = self.ended_claims.iter().flat_map(|(node, claims)| claims.iter().map(|claim| (*node, *claim)));
        put_list(ended.collect::<Vec<_>>().into_iter(), &mut out);
        self.evictor.put(&mut out);
        put_varint(self.chunks.len() as u64, &mut out);
        put_list(self.tail.iter().map(stored), &mut out);
        put_varint(self.open.len() as u64, &mut out);
        for open in self.open.values() {
            stored(&open.row).put(&mut out);
            out.push(open.phase as u8);
            open.billing.put(&mut out);
            open.revoked.put(&mut out);
            open.failed_start.put(&mut out);
        }
        put_list(self.reserved.waiting.iter().map(|(number, kept)| (*number, kept.clone())), &mut out);
        put_table(&self.billing, &mut out);
        put_table(&self.nodes.series, &mut out);
        put_table(&self.forgiven, &mut out);
        self.ledger.put(&mut out);
        self.units.put(commit, &mut out);
        put_list(self.finder.heads_after(commit).into_iter(), &mut out);
        put_varint(self.stays.lists, &mut out);
        put_varint(self.stays.nodes.len() as u64, &mut out);
        for (node, on) in &self.stays.nodes {
            node.put(&mut out);
            put_list(on.heads.iter().copied(), &mut out);
            put_list(on.tail.iter().copied(), &mut out);
        }
        put_list(self.stories.open.values().cloned().collect::<Vec<_>>().into_iter(), &mut out);
        put_list(self.stories.blocks.iter().map(|(block, head)| (*block, head.clone())), &mut out);
        put_list(self.end_corrections.iter().map(|(lease, by)| (*lease, *by)), &mut out);
        indexes.put(&mut out);
        out
    }

    /// Returns the number of chunks; [`Self::read_heads`] reads their summaries.
    pub(crate) fn read_state(&mut self, bytes: &[u8]) -> Result<(u64, Vec<(u64, RunHeads)>), DecodeError> {
        let mut r = Reader::new(bytes);
        self.cursor = Field::get(&mut r)?;
        self.last_stamp = Field::get(&mut r)?;
        self.store.next_place = Field::get(&mut r)?;
        self.classes = get_list(&mut r)?.into_iter().collect();
        self.tags = get_list(&mut r)?;
        self.tenant_tags = get_list(&mut r)?.into_iter().collect();
        for _ in 0..r.count(1 << 40)? {
            let key = (NamedKind::get(&mut r)?, Field::get(&mut r)?);
            self.names.insert(key, Field::get(&mut r)?);
        }
        for _ in 0..r.count(1 << 40)? {
            let length = r.count(usize::MAX)?;
            self.schedule.put_card(RateCardPut::from_bytes(r.take(length)?)?);
        }
        get_list::<ChargePolicyPut>(&mut r)?.into_iter().for_each(|policy| self.schedule.put_policy(policy));
        for _ in 0..r.count(1 << 32)? {
            let number = NodeNo::get(&mut r)?;
            self.nodes.books.insert(number, get_node(&mut r)?);
        }
        for claim in get_list::<StoredClaim>(&mut r)? {
            let (node, claim) = claim.restored().ok_or(DecodeError::BadInteger)?;
            self.claims.insert(node, claim);
        }
        self.corrected = get_list(&mut r)?.into_iter().collect();
        self.failed_starts = get_list(&mut r)?.into_iter().collect();
        for (node, claim) in get_list::<(NodeNo, EndedClaim)>(&mut r)? {
            self.ended_claims.entry(node).or_default().push(claim);
        }
        self.evictor = Field::get(&mut r)?;
        let chunks = r.varint()?;
        self.tail = get_list::<StoredRow>(&mut r)?.into_iter().map(restored).collect();
        for _ in 0..r.count(1 << 40)? {
            let row = restored(Field::get(&mut r)?);
            let phase = match r.byte()? {
                0 => Phase::Held,
                1 => Phase::TearingDown,
                2 => Phase::Fenced,
                code => return Err(DecodeError::BadCode { field: "phase", code: code.into() }),
            };
            let (billing, revoked, failed_start) = (Field::get(&mut r)?, Field::get(&mut r)?, Field::get(&mut r)?);
            if phase == Phase::Held {
                self.deadlines.add(row.held.to, row.lease);
            }
            self.open_on.insert((row.node, row.lease));
            self.open.insert(row.lease, Open { row, phase, billing, revoked, failed_start });
        }
        self.reserved.waiting = get_list(&mut r)?.into_iter().collect();
        self.restore_reserved().ok_or(DecodeError::BadInteger)?;
        self.billing = get_table(&mut r)?;
        self.nodes.series = get_table(&mut r)?;
        self.forgiven = get_table(&mut r)?;
        self.ledger = LedgerBook::get(&mut r)?;
        self.units = UnitBook::get(&mut r)?;
        for number in 0..u32::try_from(self.billing.keys.len()).map_err(|_| DecodeError::BadInteger)? {
            self.list_payer(number);
        }
        let idle = self.claims.values().flat_map(|claim| claim.classes.values()).map(|idle| idle.billing);
        let known = self.forgiven.keys.iter().copied().chain(self.ledger.late.keys().copied());
        if self
            .open
            .values()
            .map(|open| open.billing)
            .chain(idle)
            .chain(known)
            .any(|no| no as usize >= self.billing.keys.len())
        {
            return Err(DecodeError::BadInteger);
        }
        self.finder.pages = get_list(&mut r)?;
        self.stays.lists = r.varint()?;
        for _ in 0..r.count(1 << 32)? {
            let node = NodeNo::get(&mut r)?;
            let (heads, tail) = (get_list(&mut r)?, get_list(&mut r)?);
            self.stays.nodes.insert(node, OnNode { heads, tail });
        }
        let stories = get_list::<Story>(&mut r)?.into_iter();
        self.stories.open = stories.map(|story| (story.outline.number, story)).collect();
        self.stories.blocks = get_list(&mut r)?.into_iter().collect();
        self.end_corrections = get_list(&mut r)?.into_iter().collect();
        let indexes = Indexes::get(&mut r)?;
        self.correlations.heads = indexes.correlations;
        (self.ledger.payer_entries.heads, self.ledger.line_hours.heads) = (indexes.payer_entries, indexes.line_hours);
        (self.units.behind.heads, self.units.refused.heads) = (indexes.usage_behind, indexes.usage_refused);
        self.ledger.shares.heads = indexes.shares;
        self.pass_deadlines(self.last_stamp);
        r.finish()?;
        Ok((chunks, indexes.usage_ids))
    }

    /// Reads the summaries of the chunks, each of which has its own entry.
    pub(crate) fn read_heads(&mut self, count: u64) -> Result<(), BooksError> {
        let mut heads = Vec::new();
        let mut sound = true;
        self.store.entries(HEADS, 0, |number, bytes| {
            let mut r = Reader::new(bytes);
            match ChunkHead::get(&mut r) {
                Ok(head) if number == heads.len() as u64 => heads.push(head),
                _ => sound = false,
            }
            if sound { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if !sound || heads.len() as u64 != count {
            return Err(self.store.damage());
        }
        self.chunks = heads;
        Ok(())
    }
}
