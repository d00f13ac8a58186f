//! Queries for allocations, waiting, running or ended: one by its number, or those that existed within a window.

use crate::facts::{Books, BooksError};
use crate::store::STORIES;
use crate::stories::{BLOCK_BITS, Outline, Story};
use leasehold_meter::Window;
use leasehold_model::codec::{Field, Reader};
use leasehold_model::{AllocationNo, AllocationState, Instant, PoolNo, Priority, ProjectNo, TenantNo, UserNo};
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

/// A query for a list of allocations. Fields that are not set match everything.
#[derive(Clone, Debug, Default)]
pub struct AllocationQuestion {
    pub tenant: Option<TenantNo>,
    pub project: Option<ProjectNo>,
    pub user: Option<UserNo>,
    pub pool: Option<PoolNo>,
    pub priority: Option<Priority>,
    pub state: Option<AllocationState>,
    /// Matches allocations that were submitted and had not ended at some instant of the window.
    pub window: Option<Window>,
    /// The page starts after this number.
    pub after: Option<AllocationNo>,
    /// The size of the page.
    pub limit: usize,
}

impl AllocationQuestion {
    fn takes(&self, one: &Outline) -> bool {
        self.tenant.is_none_or(|tenant| tenant == one.tenant)
            && self.project.is_none_or(|project| project == one.project)
            && self.user.is_none_or(|user| Some(user) == one.user)
            && self.pool.is_none_or(|pool| Some(pool) == one.pool)
            && self.priority.is_none_or(|priority| priority == one.priority)
            && self.state.is_none_or(|state| state == one.state)
            && self.window.is_none_or(|window| one.meets(window))
    }
}

/// One page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocationPage {
    /// In order of number.
    pub allocations: Vec<Story>,
    /// The cursor of the next page; none on the last page. A page that needs many reads ends early.
    pub next: Option<AllocationNo>,
}

/// Allocations that one page examines before it ends early, except for the rest of a block.
const LOOKED_MAX: usize = 200_000;

impl Books {
    /// The allocation with this number, if it was ever submitted.
    pub fn allocation(&self, number: AllocationNo) -> Result<Option<Story>, BooksError> {
        self.stories.story(number, &self.store)
    }

    /// A page of the allocations for which `sees` returns true.
    pub fn allocations(
        &self,
        question: &AllocationQuestion,
        sees: impl Fn(&Outline) -> bool,
    ) -> Result<AllocationPage, BooksError> {
        let mut from = question.after.map_or(0, |after| after.0.saturating_add(1));
        let (mut page, mut looked) = (AllocationPage::default(), 0);
        while let Some(block) = self.next_block(from, question) {
            if looked >= LOOKED_MAX || page.allocations.len() >= question.limit {
                page.next = from.checked_sub(1).map(AllocationNo);
                break;
            }
            let end = (block + 1) << BLOCK_BITS;
            let mut found = InBlock { most: question.limit - page.allocations.len(), ..InBlock::default() };
            self.look_through(from.max(block << BLOCK_BITS)..end, &mut found, |one| question.takes(one) && sees(one))?;
            looked += found.looked;
            let last = found.stories.last_key_value().map(|(number, _)| AllocationNo(*number));
            page.allocations.extend(found.stories.into_values());
            if found.left_some {
                page.next = last;
                break;
            }
            // Higher numbers were submitted later.
            if question.window.is_some_and(|window| found.latest >= window.to) {
                break;
            }
            from = end;
        }
        Ok(page)
    }

    /// The next block, from a number on, that may contain matches.
    fn next_block(&self, from: u64, question: &AllocationQuestion) -> Option<u64> {
        let open = self.stories.open.range(AllocationNo(from)..).next().map(|(number, _)| number.0 >> BLOCK_BITS);
        let over = self.stories.blocks.range(from >> BLOCK_BITS..).find(|(_, head)| {
            question.window.is_none_or(|window| head.latest >= window.from)
                && head.owners.may_be(question.tenant, question.project, question.user)
        });
        over.map(|(block, _)| *block).into_iter().chain(open).min()
    }

    /// Examines all allocations with these numbers.
    fn look_through(
        &self,
        numbers: Range<u64>,
        found: &mut InBlock,
        takes: impl Fn(&Outline) -> bool,
    ) -> Result<(), BooksError> {
        let Range { start, end } = numbers;
        for (number, story) in self.stories.open.range(AllocationNo(start)..AllocationNo(end)) {
            if found.is_full_before(number.0) {
                break;
            }
            if found.look(&story.outline, &takes) {
                found.take(story.clone());
            }
        }
        let mut sound = true;
        let mut look = |number: u64, bytes: &[u8]| {
            if number >= end || found.is_full_before(number) {
                return ControlFlow::Break(());
            }
            match Outline::get(&mut Reader::new(bytes)) {
                Ok(outline) if found.look(&outline, &takes) => {
                    let mut r = Reader::new(bytes);
                    match Story::get(&mut r) {
                        Ok(story) if r.finish().is_ok() => found.take(story),
                        _ => sound = false,
                    }
                }
                Ok(_) => {}
                Err(_) => sound = false,
            }
            if sound { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let _ = self.stories.fresh.range(start..end).try_for_each(|(number, bytes)| look(*number, bytes));
        self.store.entries(STORIES, start, look)?;
        if sound { Ok(()) } else { Err(self.store.damage()) }
    }
}

/// The matches of one block, in order of number.
#[derive(Default)]
struct InBlock {
    stories: BTreeMap<u64, Story>,
    most: usize,
    looked: usize,
    /// When the last examined allocation was submitted.
    latest: Instant,
    left_some: bool,
}

impl InBlock {
    fn look(&mut self, outline: &Outline, takes: impl Fn(&Outline) -> bool) -> bool {
        self.looked += 1;
        self.latest = self.latest.max(outline.submitted_at);
        takes(outline)
    }

    /// Whether the page is full, so that this and higher numbers are not needed.
    fn is_full_before(&mut self, number: u64) -> bool {
        let is_full = self.stories.len() >= self.most;
        let full = is_full && self.stories.last_key_value().is_none_or(|(last, _)| *last < number);
        self.left_some |= full;
        full
    }

    fn take(&mut self, story: Story) {
        self.stories.insert(story.outline.number.0, story);
        if self.stories.len() > self.most {
            self.stories.pop_last();
            self.left_some = true;
        }
    }
}
