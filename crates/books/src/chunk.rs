//! Chunks of a few thousand closed leases, with one column per field: about 40 bytes per lease. A question reads only
//! the columns that it needs.

use crate::ask::Filter;
use crate::bytes::{optional, present};
use crate::row::{End, Ending, Life, Rare, Renewals, Row, priced};
use crate::summary::Owners;
use leasehold_meter::Window;
use leasehold_meter::column::{Column, unzigzag, zigzag};
use leasehold_model::codec::{DecodeError, Field, Reader, put_varint};
use leasehold_model::{
    Activity, AllocationNo, AppInstanceNo, ClassNo, Instant, LeaseNo, Name, NodeNo, PoolNo, Priority, ProjectNo,
    TenantNo, UserNo,
};

/// Rows in a chunk.
pub(crate) const CHUNK_ROWS: usize = 4096;

leasehold_model::fields! {
    /// The summary of a chunk, kept in memory.
    pub struct ChunkHead {
        pub rows: u32,
        pub earliest: Instant,
        pub latest: Instant,
        /// Whether a charge policy can apply to some of its leases.
        pub exceptions: bool,
        /// The lowest and the highest number of its leases.
        pub first: u64,
        pub last: u64,
        pub owners: Owners,
    }
}

impl ChunkHead {
    pub(crate) fn of(rows: &[Row]) -> Self {
        let numbers = || rows.iter().filter(|row| row.is_lease()).map(|row| row.lease.0);
        let mut owners = Owners::default();
        for row in rows {
            owners.add(row.tenant, row.project, row.user);
            if row.payer != row.project {
                owners.add(row.tenant, row.payer, row.user);
            }
        }
        Self {
            rows: u32::try_from(rows.len()).expect("a few thousand"),
            earliest: rows.iter().map(|row| row.held.from).min().unwrap_or_default(),
            latest: rows.iter().map(|row| row.held.to).max().unwrap_or_default(),
            exceptions: rows.iter().any(Row::is_exception),
            first: numbers().min().unwrap_or(u64::MAX),
            last: numbers().max().unwrap_or(0),
            owners,
        }
    }

    pub(crate) fn meets(&self, window: Window) -> bool {
        self.earliest < window.to && self.latest > window.from
    }

    /// False only if none of its leases can match.
    pub(crate) fn may_have(&self, filter: &Filter, window: Window) -> bool {
        self.earliest < window.to
            && self.latest >= window.from
            && [filter.project, filter.payer].into_iter().all(|project| match &filter.users {
                None => self.owners.may_be(filter.tenant, project, None),
                Some(users) => users.iter().any(|user| self.owners.may_be(filter.tenant, project, Some(*user))),
            })
    }
}

const FENCED: u64 = 1 << 6;
const ACTIVE: u64 = 1 << 7;
const SENSITIVE: u64 = 1 << 8;
const OVER_SOFT: u64 = 1 << 9;
const RARE: u64 = 1 << 10;
const BY_CLAIM: u64 = 1 << 11;

/// End, priority and flags in one number.
fn marks(row: &Row) -> u64 {
    let flag = |set: bool, bit: u64| if set { bit } else { 0 };
    (row.end as u64)
        | (row.priority as u64) << 4
        | flag(row.fenced, FENCED)
        | flag(row.activity.is_some(), ACTIVE)
        | flag(row.life.sensitive, SENSITIVE)
        | flag(row.life.over_soft, OVER_SOFT)
        | flag(row.rare.is_some(), RARE)
        | flag(row.by_claim, BY_CLAIM)
}

pub(crate) fn encode(rows: &[Row]) -> Vec<u8> {
    let mut out = Vec::with_capacity(rows.len() * 48);
    put_varint(rows.len() as u64, &mut out);
    let mut column = |field: &dyn Fn(&Row) -> u64| Column::put(rows.iter().map(field), &mut out);
    column(&|row| row.held.from.0);
    column(&|row| row.held.length().0);
    column(&|row| row.quanta);
    column(&|row| row.class.0.into());
    column(&|row| row.tenant.0.into());
    column(&|row| row.project.0.into());
    // Nearly always the project itself.
    column(&|row| optional((row.payer != row.project).then(|| row.payer.0.into())));
    column(&|row| row.pool.0.into());
    column(&|row| row.node.0.into());
    column(&marks);
    column(&|row| optional(row.tag.map(u64::from)));
    column(&|row| optional(row.user.map(|user| user.0.into())));
    column(&|row| optional(row.allocation.map(|no| no.0)));
    column(&|row| optional(row.app_instance.map(|no| no.0)));
    // The number plus one, wrapping: rows without a lease have the highest number, which would make the column wider.
    column(&|row| row.lease.0.wrapping_add(1));
    let mut names: Vec<&Name> = rows.iter().filter_map(|row| row.workload.as_ref()).collect();
    names.sort_unstable();
    names.dedup();
    let place = |name: &Name| names.binary_search(&name).expect("it is in the list") as u64;
    Column::put(rows.iter().map(|row| optional(row.workload.as_ref().map(place))), &mut out);
    put_varint(names.len() as u64, &mut out);
    names.iter().for_each(|name| name.put(&mut out));
    rows.iter().filter_map(|row| row.activity.as_ref()).for_each(|activity| activity.put(&mut out));
    let mut column = |field: &dyn Fn(&Row) -> u64| Column::put(rows.iter().map(field), &mut out);
    column(&|row| row.life.sequence);
    column(&|row| row.life.member.into());
    column(&|row| row.life.devices);
    column(&|row| row.life.expires_at.since(row.held.to).0);
    column(&|row| optional(row.life.ending.map(|ending| ending.sequence)));
    column(&|row| row.life.ending.map_or(0, |ending| zigzag(signed_distance(ending.at, row.held.to))));
    column(&|row| optional(row.life.closed_at.map(|at| at.since(row.held.to).0)));
    column(&|row| optional(row.life.closed_by.map(|sequence| sequence - announced_by(&row.life))));
    column(&|row| row.life.renewed.map_or(0, |renewed| renewed.count.into()));
    column(&|row| row.life.renewed.map_or(0, |renewed| renewed.sequence - row.life.sequence));
    column(&|row| row.life.renewed.map_or(0, |renewed| zigzag(signed_distance(renewed.at, row.held.to))));
    rows.iter().filter_map(|row| row.rare.as_ref()).for_each(|rare| rare.put(&mut out));
    out
}

/// The record that announced the end of a lease, or that granted it: none that follows has a lower number.
fn announced_by(life: &Life) -> u64 {
    life.ending.map_or(life.sequence, |ending| ending.sequence)
}

/// The signed difference of an instant from `base`.
fn signed_distance(at: Instant, base: Instant) -> i64 {
    at.0.wrapping_sub(base.0).cast_signed()
}

/// Which columns of a chunk are read; each depth includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    /// Times, nodes and owners.
    Amounts,
    /// All columns for usage and cost.
    Rows,
    /// Everything.
    Lives,
}

/// The columns of a chunk that hold numbers.
pub(crate) struct Chunk {
    pub(crate) rows: usize,
    from: Column,
    length: Column,
    quanta: Column,
    class: Column,
    tenant: Column,
    project: Column,
    lent_by: Column,
    pool: Column,
    node: Column,
    marks: Column,
    /// Columns that few questions need.
    rest: Option<Rest>,
    lives: Option<Lives>,
    /// Rows whose end was corrected after they were written, with that end.
    corrected: Vec<(usize, Instant)>,
}

struct Rest {
    tag: Column,
    user: Column,
    allocation: Column,
    app_instance: Column,
    lease: Column,
    workload: Column,
    names: Vec<Name>,
    activities: Vec<Activity>,
}

struct Lives {
    sequence: Column,
    member: Column,
    devices: Column,
    expires: Column,
    ending: Column,
    ending_at: Column,
    closed: Column,
    closed_by: Column,
    renewals: Column,
    renewed_by: Column,
    renewed_at: Column,
    rare: Vec<Rare>,
    /// For each row, the number of earlier rows with activity, and with rare fields.
    before: Vec<(u16, u16)>,
}

impl Chunk {
    pub(crate) fn decode(bytes: &[u8], depth: Depth) -> Result<Self, DecodeError> {
        let mut r = Reader::new(bytes);
        let rows = r.count(CHUNK_ROWS)?;
        let mut column = || Column::get(rows, &mut r);
        let mut chunk = Self {
            rows,
            from: column()?,
            length: column()?,
            quanta: column()?,
            class: column()?,
            tenant: column()?,
            project: column()?,
            lent_by: column()?,
            pool: column()?,
            node: column()?,
            marks: column()?,
            rest: None,
            lives: None,
            corrected: Vec::new(),
        };
        if depth >= Depth::Rows {
            let tag = column()?;
            let (user, allocation, app_instance) = (column()?, column()?, column()?);
            let (lease, workload) = (column()?, column()?);
            let names = (0..r.count(CHUNK_ROWS)?).map(|_| Name::get(&mut r)).collect::<Result<_, _>>()?;
            let activities =
                (0..chunk.marked(ACTIVE, rows)).map(|_| Activity::get(&mut r)).collect::<Result<_, _>>()?;
            chunk.rest = Some(Rest { tag, user, allocation, app_instance, lease, workload, names, activities });
        }
        if depth >= Depth::Lives {
            let mut column = || Column::get(rows, &mut r);
            let mut lives = Lives {
                sequence: column()?,
                member: column()?,
                devices: column()?,
                expires: column()?,
                ending: column()?,
                ending_at: column()?,
                closed: column()?,
                closed_by: column()?,
                renewals: column()?,
                renewed_by: column()?,
                renewed_at: column()?,
                rare: Vec::new(),
                before: chunk.ranks(),
            };
            lives.rare = (0..chunk.marked(RARE, rows)).map(|_| Rare::get(&mut r)).collect::<Result<_, _>>()?;
            chunk.lives = Some(lives);
            r.finish()?;
        }
        Ok(chunk)
    }

    /// The number of rows with a flag.
    fn marked(&self, mark: u64, rows: usize) -> usize {
        (0..rows).filter(|row| self.marks.at(*row) & mark != 0).count()
    }

    /// For each row, the number of earlier rows with activity, and with rare fields.
    fn ranks(&self) -> Vec<(u16, u16)> {
        let counted = |before: &mut (u16, u16), row: usize| {
            let (marks, here) = (self.marks.at(row), *before);
            before.0 += u16::from(marks & ACTIVE != 0);
            before.1 += u16::from(marks & RARE != 0);
            Some(here)
        };
        (0..self.rows).scan((0, 0), counted).collect()
    }

    /// The lease number of a row; the highest number for rows without a lease.
    pub(crate) fn lease(&self, row: usize) -> LeaseNo {
        LeaseNo(self.rest.as_ref().expect("the chunk was read at this depth").lease.at(row).wrapping_sub(1))
    }

    /// Sets the corrected ends of rows, in order of the rows.
    pub(crate) fn correct(&mut self, ends: impl Iterator<Item = (u64, Instant)>) {
        self.corrected = ends.map(|(row, end)| (usize::try_from(row).expect("a few thousand"), end)).collect();
    }

    #[inline]
    pub(crate) fn held(&self, row: usize) -> Window {
        let written = self.written(row);
        if self.corrected.is_empty() {
            return written;
        }
        let found = self.corrected.binary_search_by_key(&row, |(row, _)| *row);
        found.map_or(written, |place| Window::new(written.from, self.corrected[place].1))
    }
    /// When it was held, without corrections.
    #[inline]
    fn written(&self, row: usize) -> Window {
        let from = self.from.at(row);
        Window::new(Instant(from), Instant(from.wrapping_add(self.length.at(row))))
    }
    #[inline]
    pub(crate) fn quanta(&self, row: usize) -> u64 {
        self.quanta.at(row)
    }
    #[inline]
    pub(crate) fn brief(&self, row: usize) -> Brief {
        Brief {
            class: ClassNo(narrow(self.class.at(row))),
            tenant: TenantNo(narrow(self.tenant.at(row))),
            project: ProjectNo(narrow(self.project.at(row))),
            payer: ProjectNo(present(self.lent_by.at(row)).map_or_else(|| narrow(self.project.at(row)), narrow)),
            pool: PoolNo(narrow(self.pool.at(row))),
            node: NodeNo(narrow(self.node.at(row))),
            priority: priority(self.marks.at(row)),
            by_claim: self.marks.at(row) & BY_CLAIM != 0,
        }
    }

    /// All rows, with the columns that were read.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let (mut activities, mut rare) = (0, 0);
        (0..self.rows).map(move |row| {
            let marks = self.marks.at(row);
            let found = self.build(row, activities, rare);
            activities += usize::from(marks & ACTIVE != 0);
            rare += usize::from(marks & RARE != 0);
            found
        })
    }

    /// One row of a chunk that was read completely.
    pub(crate) fn row(&self, row: usize) -> Row {
        let (activities, rare) = self.lives.as_ref().expect("the chunk was read at this depth").before[row];
        self.build(row, activities.into(), rare.into())
    }

    /// A row, with its index among the rows with activity and among those with rare fields.
    fn build(&self, row: usize, activity: usize, rare: usize) -> Row {
        let rest = self.rest.as_ref().expect("the chunk was read at this depth");
        let marks = self.marks.at(row);
        let Brief { class, tenant, project, payer, pool, node, priority, by_claim } = self.brief(row);
        let name = |place: u64| usize::try_from(place).ok().and_then(|place| rest.names.get(place)).cloned();
        let (held, written) = (self.held(row), self.written(row));
        let rare = self.lives.as_ref().filter(|_| marks & RARE != 0).and_then(|lives| lives.rare.get(rare));
        Row {
            lease: self.lease(row),
            tenant,
            project,
            payer,
            user: present(rest.user.at(row)).map(|no| UserNo(narrow(no))),
            pool,
            node,
            class,
            priority,
            by_claim,
            tag: present(rest.tag.at(row)).map(narrow),
            allocation: present(rest.allocation.at(row)).map(AllocationNo),
            app_instance: present(rest.app_instance.at(row)).map(AppInstanceNo),
            workload: present(rest.workload.at(row)).and_then(name),
            quanta: self.quanta.at(row),
            held,
            end_before: (held.to != written.to).then_some(written.to),
            end: End::ALL.iter().copied().find(|end| *end as u64 == marks & 15).unwrap_or(End::Revoked),
            fenced: marks & FENCED != 0,
            activity: rest.activities.get(activity).filter(|_| marks & ACTIVE != 0).copied().map(Box::new),
            life: self.lives.as_ref().map_or_else(Life::default, |lives| lives.life(row, marks, written.to)),
            rare: rare.cloned().map(Box::new),
        }
    }
}

impl Lives {
    fn life(&self, row: usize, marks: u64, ended: Instant) -> Life {
        let later = |distance: u64| Instant(ended.0.wrapping_add(distance));
        let away = |column: &Column| later(unzigzag(column.at(row)).cast_unsigned());
        let (sequence, renewals) = (self.sequence.at(row), self.renewals.at(row));
        let renewed = || Renewals {
            count: narrow(renewals),
            sequence: sequence.wrapping_add(self.renewed_by.at(row)),
            at: away(&self.renewed_at),
        };
        let life = Life {
            sequence,
            member: narrow(self.member.at(row)),
            devices: self.devices.at(row),
            sensitive: marks & SENSITIVE != 0,
            over_soft: marks & OVER_SOFT != 0,
            expires_at: later(self.expires.at(row)),
            ending: present(self.ending.at(row)).map(|sequence| Ending { sequence, at: away(&self.ending_at) }),
            closed_at: present(self.closed.at(row)).map(later),
            closed_by: None,
            renewed: (renewals > 0).then(renewed),
        };
        let closed_by = present(self.closed_by.at(row)).map(|after| announced_by(&life).wrapping_add(after));
        Life { closed_by, ..life }
    }
}

/// The columns that most questions need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brief {
    pub(crate) class: ClassNo,
    pub(crate) tenant: TenantNo,
    pub(crate) project: ProjectNo,
    pub(crate) payer: ProjectNo,
    pub(crate) pool: PoolNo,
    pub(crate) node: NodeNo,
    pub(crate) priority: Priority,
    pub(crate) by_claim: bool,
}

impl Brief {
    /// The priority by whose price it is charged.
    pub(crate) fn priced(&self) -> Priority {
        priced(self.priority, self.by_claim)
    }
}

/// Narrows a value to its original width; the checksum guarantees that it fits.
fn narrow<T: TryFrom<u64> + Default>(value: u64) -> T {
    T::try_from(value).unwrap_or_default()
}

fn priority(marks: u64) -> Priority {
    match marks >> 4 & 3 {
        1 => Priority::Scavenger,
        3 => Priority::Guaranteed,
        _ => Priority::Standard,
    }
}
