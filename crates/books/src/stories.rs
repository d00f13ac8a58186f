//! Allocations: the submission, each attempt, and the end. Those that have not ended are in memory, the others in the
//! file, by number.
//!
//! An attempt has the numbers of its leases; their nodes and ends are in their rows.

use crate::bytes::{get_list, put_list};
use crate::facts::BooksError;
use crate::store::{STORIES, Store};
use crate::summary::Owners;
use crate::trail::{self, StepKind, TrailStep};
use leasehold_meter::Window;
use leasehold_model::body::{AllocationCheckpointed, AllocationPlaced};
use leasehold_model::codec::{DecodeError, Field, Reader};
use leasehold_model::{
    AllocationNo, AllocationSpec, AllocationState, AttemptEnd, Instant, LeaseNo, Name, PoolNo, Priority, ProjectNo,
    Record, Span, TenantNo, UserNo, fields,
};
use std::collections::BTreeMap;
use std::ops::Range;

type Followed = Result<(), &'static str>;

fields! {
    /// The fields that lists of allocations filter by.
    #[derive(Copy)]
    pub struct Outline {
        pub number: AllocationNo,
        pub tenant: TenantNo,
        pub project: ProjectNo,
        pub user: Option<UserNo>,
        /// The requested pool.
        pub pool: Option<PoolNo>,
        pub priority: Priority,
        pub state: AllocationState,
        pub submitted_at: Instant,
        /// When it ended.
        pub ended_at: Option<Instant>,
    }
}

impl Outline {
    /// Whether it had been submitted and had not ended at some instant of the window.
    pub fn meets(&self, window: Window) -> bool {
        let from = self.submitted_at;
        from < window.to && self.ended_at.is_none_or(|to| to > window.from || from == to && from >= window.from)
    }
}

fields! {
    /// A checkpoint that was reported.
    #[derive(Copy)]
    pub struct Checkpoint { pub at: Instant, pub bytes: u64, pub took: Span }
}

/// One attempt to run an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Counted from one.
    pub number: u32,
    /// The sequence of its placement.
    pub sequence: u64,
    pub placed_at: Instant,
    pub first_lease: LeaseNo,
    pub leases: u32,
    /// `None` while it runs.
    pub ended_at: Option<Instant>,
    /// Why it was interrupted or failed.
    pub end: Option<AttemptEnd>,
    pub checkpoints: Vec<Checkpoint>,
}

impl Attempt {
    /// The numbers of its leases.
    pub fn numbers(&self) -> Range<u64> {
        self.first_lease.0..self.first_lease.0 + u64::from(self.leases)
    }
}

fields! {
    /// How an allocation ended.
    #[derive(Copy)]
    pub struct Over {
        /// The record of its end, and its stamp.
        pub sequence: u64,
        pub at: Instant,
        /// Why it failed, if it failed.
        pub end: Option<AttemptEnd>,
        pub exit_status: Option<u32>,
        /// `None` if it was cancelled.
        pub storage_written: Option<u64>,
    }
}

impl Over {
    /// Bytes of storage that were written, if they are known. A record has zero where nobody said, so zero is unknown.
    pub fn known_written(&self) -> Option<u64> {
        self.storage_written.filter(|bytes| *bytes > 0)
    }
}

/// All fields of an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    pub outline: Outline,
    pub workload: Option<Name>,
    pub spec: AllocationSpec,
    pub attempts: Vec<Attempt>,
    pub over: Option<Over>,
    /// Records that no other field names.
    pub trail: Vec<TrailStep>,
}

impl Field for Attempt {
    fn put(&self, out: &mut Vec<u8>) {
        self.number.put(out);
        self.sequence.put(out);
        self.placed_at.put(out);
        self.first_lease.put(out);
        self.leases.put(out);
        self.ended_at.put(out);
        self.end.put(out);
        put_list(self.checkpoints.iter().copied(), out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            number: Field::get(r)?,
            sequence: Field::get(r)?,
            placed_at: Field::get(r)?,
            first_lease: Field::get(r)?,
            leases: Field::get(r)?,
            ended_at: Field::get(r)?,
            end: Field::get(r)?,
            checkpoints: get_list(r)?,
        })
    }
}

impl Field for Story {
    fn put(&self, out: &mut Vec<u8>) {
        self.outline.put(out);
        self.workload.put(out);
        self.spec.put(out);
        put_list(self.attempts.iter().cloned(), out);
        self.over.put(out);
        self.trail.put(out);
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            outline: Field::get(r)?,
            workload: Field::get(r)?,
            spec: Field::get(r)?,
            attempts: get_list(r)?,
            over: Field::get(r)?,
            trail: Field::get(r)?,
        })
    }
}

/// The size of a block of numbers with a common summary, as a power of two.
pub(crate) const BLOCK_BITS: u32 = 14;

fields! {
    pub struct BlockHead { pub latest: Instant, pub owners: Owners }
}

#[derive(Default)]
pub(crate) struct Stories {
    /// Allocations that have not ended.
    pub(crate) open: BTreeMap<AllocationNo, Story>,
    /// Summaries of the ended ones, by blocks of numbers.
    pub(crate) blocks: BTreeMap<u64, BlockHead>,
    /// Ended, and not in the file yet.
    pub(crate) fresh: BTreeMap<u64, Vec<u8>>,
    /// How many are in the file. An absent one means that it is not over, so that a removed one would not show.
    pub(crate) kept: u64,
}

impl Stories {
    pub(crate) fn fresh(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.fresh.iter().map(|(number, bytes)| (*number, bytes.as_slice()))
    }

    pub(crate) fn written(&mut self, kept: u64) {
        self.fresh.clear();
        self.kept = kept;
    }

    /// The allocation with this number, if it exists.
    pub(crate) fn story(&self, number: AllocationNo, store: &Store) -> Result<Option<Story>, BooksError> {
        if let Some(open) = self.open.get(&number) {
            return Ok(Some(open.clone()));
        }
        let stored;
        let bytes = match self.fresh.get(&number.0) {
            Some(bytes) => bytes,
            None => match store.entry(STORIES, number.0)? {
                Some(bytes) => {
                    stored = bytes;
                    &stored
                }
                None => return Ok(None),
            },
        };
        let mut r = Reader::new(bytes);
        let story = Story::get(&mut r).and_then(|story| r.finish().map(|()| story));
        story.map(Some).map_err(|_| store.damage())
    }

    /// It asks for something else from now on.
    pub(crate) fn changed(&mut self, number: AllocationNo, spec: &AllocationSpec) -> Followed {
        let story = self.open(number)?;
        (story.outline.pool, story.outline.priority) = (spec.pool, spec.priority);
        story.spec = spec.clone();
        Ok(())
    }

    fn open(&mut self, number: AllocationNo) -> Result<&mut Story, &'static str> {
        self.open.get_mut(&number).ok_or("unknown allocation")
    }

    pub(crate) fn submitted(&mut self, record: &Record, spec: &AllocationSpec) -> Followed {
        let number = AllocationNo(record.sequence);
        let outline = Outline {
            number,
            tenant: record.identity.tenant.ok_or("the allocation has no tenant")?,
            project: record.identity.project.ok_or("the allocation has no project")?,
            user: record.identity.user,
            pool: spec.pool,
            priority: spec.priority,
            state: AllocationState::Pending,
            submitted_at: record.stamp,
            ended_at: None,
        };
        let (workload, spec) = (record.identity.workload.clone(), spec.clone());
        self.open
            .insert(number, Story { outline, workload, spec, attempts: Vec::new(), over: None, trail: Vec::new() });
        Ok(())
    }

    pub(crate) fn placed(&mut self, record: &Record, placed: &AllocationPlaced) -> Followed {
        let story = self.open(placed.allocation)?;
        let staged = story.spec.staged;
        story.outline.state = if staged { AllocationState::Staging } else { AllocationState::Running };
        story.attempts.push(Attempt {
            number: placed.attempt,
            sequence: record.sequence,
            placed_at: record.stamp,
            first_lease: placed.first_lease,
            leases: placed.leases,
            ended_at: None,
            end: None,
            checkpoints: Vec::new(),
        });
        Ok(())
    }

    /// Notes a record that no other field names.
    pub(crate) fn note(&mut self, number: AllocationNo, kind: StepKind, record: &Record) {
        if let Some(story) = self.open.get_mut(&number) {
            trail::note(&mut story.trail, TrailStep::of(kind, record));
        }
    }

    pub(crate) fn set(&mut self, number: AllocationNo, state: AllocationState) -> Followed {
        self.open(number)?.outline.state = state;
        Ok(())
    }

    pub(crate) fn checkpointed(&mut self, record: &Record, written: &AllocationCheckpointed) -> Followed {
        let story = self.open(written.allocation)?;
        story.outline.state = AllocationState::Running;
        if let Some(attempt) = story.attempts.last_mut() {
            attempt.checkpoints.push(Checkpoint { at: record.stamp, bytes: written.bytes, took: written.took });
        }
        trail::note(&mut story.trail, TrailStep::of(StepKind::Checkpointed, record));
        Ok(())
    }

    /// Ends the current attempt; `state` is the new state of the allocation.
    pub(crate) fn ended(
        &mut self,
        number: AllocationNo,
        record: &Record,
        state: AllocationState,
        end: Option<AttemptEnd>,
    ) -> Followed {
        let story = self.open(number)?;
        story.outline.state = state;
        if let Some(attempt) = story.attempts.last_mut().filter(|attempt| attempt.ended_at.is_none()) {
            (attempt.ended_at, attempt.end) = (Some(record.effective_at), end);
        }
        Ok(())
    }

    /// Ends the allocation. `reported` is the exit status and the number of bytes written, if the holder reported
    /// them.
    pub(crate) fn over(
        &mut self,
        number: AllocationNo,
        record: &Record,
        state: AllocationState,
        end: Option<AttemptEnd>,
        (exit_status, storage_written): (Option<u32>, Option<u64>),
    ) -> Followed {
        self.ended(number, record, state, end)?;
        let over = Over { sequence: record.sequence, at: record.stamp, end, exit_status, storage_written };
        let mut story = self.open.remove(&number).expect("it was found above");
        story.outline.ended_at = Some(record.effective_at);
        story.over = Some(over);
        let Outline { tenant, project, user, .. } = story.outline;
        let block = self.blocks.entry(number.0 >> BLOCK_BITS);
        let block = block.or_insert_with(|| BlockHead { latest: Instant(0), owners: Owners::default() });
        block.latest = block.latest.max(record.effective_at);
        block.owners.add(tenant, project, user);
        let mut bytes = Vec::new();
        story.put(&mut bytes);
        self.fresh.insert(number.0, bytes);
        Ok(())
    }
}
