//! Closed leases by the thousand, one column per field: some 25 bytes each, and a question reads the columns it needs.

use crate::bytes::{optional, present};
use crate::row::{End, Row};
use leasehold_meter::Window;
use leasehold_meter::column::Column;
use leasehold_model::codec::{DecodeError, Field, Reader, put_varint};
use leasehold_model::{
    Activity, AllocationNo, AppInstanceNo, ClassNo, Instant, LeaseNo, Name, NodeNo, PoolNo, Priority, ProjectNo,
    TenantNo, UserNo,
};

/// Rows in a chunk.
pub(crate) const CHUNK_ROWS: usize = 4096;

/// What is known of a chunk without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHead {
    pub(crate) rows: u32,
    pub(crate) earliest: Instant,
    pub(crate) latest: Instant,
    /// Some of its leases may be charged otherwise than by what was held.
    pub(crate) exceptions: bool,
}

leasehold_model::fields! {
    pub struct StoredHead { pub rows: u32, pub earliest: Instant, pub latest: Instant, pub exceptions: bool }
}

impl ChunkHead {
    pub(crate) fn of(rows: &[Row]) -> Self {
        Self {
            rows: u32::try_from(rows.len()).expect("a few thousand"),
            earliest: rows.iter().map(|row| row.held.from).min().unwrap_or_default(),
            latest: rows.iter().map(|row| row.held.to).max().unwrap_or_default(),
            exceptions: rows.iter().any(Row::is_exception),
        }
    }
    pub(crate) fn meets(&self, window: Window) -> bool {
        self.earliest < window.to && self.latest > window.from
    }
    pub(crate) fn stored(self) -> StoredHead {
        let Self { rows, earliest, latest, exceptions } = self;
        StoredHead { rows, earliest, latest, exceptions }
    }
    pub(crate) fn restored(head: &StoredHead) -> Self {
        let StoredHead { rows, earliest, latest, exceptions } = *head;
        Self { rows, earliest, latest, exceptions }
    }
}

const FENCED: u64 = 1 << 6;
const ACTIVE: u64 = 1 << 7;

/// End, priority and two flags in one byte.
fn marks(row: &Row) -> u64 {
    let flag = |set: bool, bit: u64| if set { bit } else { 0 };
    (row.end as u64) | (row.priority as u64) << 4 | flag(row.fenced, FENCED) | flag(row.activity.is_some(), ACTIVE)
}

pub(crate) fn encode(rows: &[Row]) -> Vec<u8> {
    let mut out = Vec::with_capacity(rows.len() * 32);
    put_varint(rows.len() as u64, &mut out);
    let mut column = |field: &dyn Fn(&Row) -> u64| Column::put(rows.iter().map(field), &mut out);
    column(&|row| row.held.from.0);
    column(&|row| row.held.length().0);
    column(&|row| row.quanta);
    column(&|row| row.class.0.into());
    column(&|row| row.tenant.0.into());
    column(&|row| row.project.0.into());
    column(&|row| row.pool.0.into());
    column(&|row| row.node.0.into());
    column(&marks);
    column(&|row| optional(row.tag.map(u64::from)));
    column(&|row| optional(row.user.map(|user| user.0.into())));
    column(&|row| optional(row.allocation.map(|no| no.0)));
    column(&|row| optional(row.app_instance.map(|no| no.0)));
    column(&|row| row.lease.0);
    let mut names: Vec<&Name> = rows.iter().filter_map(|row| row.workload.as_ref()).collect();
    names.sort_unstable();
    names.dedup();
    let place = |name: &Name| names.binary_search(&name).expect("it is in the list") as u64;
    Column::put(rows.iter().map(|row| optional(row.workload.as_ref().map(place))), &mut out);
    put_varint(names.len() as u64, &mut out);
    names.iter().for_each(|name| name.put(&mut out));
    rows.iter().filter_map(|row| row.activity.as_ref()).for_each(|activity| activity.put(&mut out));
    out
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
    pool: Column,
    node: Column,
    marks: Column,
    /// What few questions ask for.
    rest: Option<Rest>,
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

impl Chunk {
    /// Reads a chunk; `whole` if more than times, places and owners is asked for.
    pub(crate) fn decode(bytes: &[u8], whole: bool) -> Result<Self, DecodeError> {
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
            pool: column()?,
            node: column()?,
            marks: column()?,
            rest: None,
        };
        if whole {
            let tag = column()?;
            let (user, allocation, app_instance) = (column()?, column()?, column()?);
            let (lease, workload) = (column()?, column()?);
            let names = (0..r.count(CHUNK_ROWS)?).map(|_| Name::get(&mut r)).collect::<Result<_, _>>()?;
            let active = (0..rows).filter(|row| chunk.marks.at(*row) & ACTIVE != 0).count();
            let activities = (0..active).map(|_| Activity::get(&mut r)).collect::<Result<_, _>>()?;
            chunk.rest = Some(Rest { tag, user, allocation, app_instance, lease, workload, names, activities });
            r.finish()?;
        }
        Ok(chunk)
    }

    #[inline]
    pub(crate) fn held(&self, row: usize) -> Window {
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
            pool: PoolNo(narrow(self.pool.at(row))),
            node: NodeNo(narrow(self.node.at(row))),
            priority: priority(self.marks.at(row)),
        }
    }

    /// Every row in full; only of a chunk that was read whole.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let rest = self.rest.as_ref().expect("read whole");
        let mut activities = rest.activities.iter();
        (0..self.rows).map(move |row| {
            let marks = self.marks.at(row);
            let Brief { class, tenant, project, pool, node, priority } = self.brief(row);
            let activity = if marks & ACTIVE == 0 { None } else { activities.next().copied().map(Box::new) };
            let name = |place: u64| usize::try_from(place).ok().and_then(|place| rest.names.get(place)).cloned();
            Row {
                lease: LeaseNo(rest.lease.at(row)),
                tenant,
                project,
                user: present(rest.user.at(row)).map(|no| UserNo(narrow(no))),
                pool,
                node,
                class,
                priority,
                tag: present(rest.tag.at(row)).map(narrow),
                allocation: present(rest.allocation.at(row)).map(AllocationNo),
                app_instance: present(rest.app_instance.at(row)).map(AppInstanceNo),
                workload: present(rest.workload.at(row)).and_then(name),
                quanta: self.quanta.at(row),
                held: self.held(row),
                end: End::ALL.iter().copied().find(|end| *end as u64 == marks & 15).unwrap_or(End::Revoked),
                fenced: marks & FENCED != 0,
                activity,
            }
        })
    }
}

/// What most questions ask of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brief {
    pub(crate) class: ClassNo,
    pub(crate) tenant: TenantNo,
    pub(crate) project: ProjectNo,
    pub(crate) pool: PoolNo,
    pub(crate) node: NodeNo,
    pub(crate) priority: Priority,
}

/// Back to the width it was widened from; the checksum vouches for it.
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
