//! Shared by the lists of leases and allocations: the filter, and scanning many items.

use super::books_query::{bad_window, word};
use super::capacity::optional_pool;
use super::times::Times;
use crate::access::Caller;
use crate::context::{Context, cursor_after};
use crate::names;
use leasehold_api::Problem;
use leasehold_engine::{Readers, State};
use leasehold_meter::Window;
use leasehold_model::{Instant, PoolNo, Priority, ProjectNo, TenantNo, UserNo, Words};

/// The filter in the query. `S` is the type of the state.
pub(super) struct ListQuery<S> {
    pub(super) tenant: Option<TenantNo>,
    pub(super) project: Option<ProjectNo>,
    pub(super) user: Option<UserNo>,
    pub(super) pool: Option<PoolNo>,
    pub(super) state: Option<S>,
    pub(super) priority: Option<Priority>,
    /// Only what existed in this window; if absent, what exists now.
    pub(super) window: Option<Window>,
}

/// The same properties of one item.
pub(super) struct Listed<S> {
    pub(super) tenant: TenantNo,
    pub(super) project: ProjectNo,
    pub(super) user: Option<UserNo>,
    pub(super) pool: Option<PoolNo>,
    pub(super) state: S,
    pub(super) priority: Priority,
}

impl<S: Words + PartialEq> ListQuery<S> {
    pub(super) fn read(context: &Context, state: &State) -> Result<Self, Problem> {
        let caller = context.caller();
        let tenant = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        Ok(Self {
            tenant,
            project: context.query("project").map(|text| names::project(state, caller, tenant, text)).transpose()?,
            user: context.query("user").map(|text| names::user(state, caller, tenant, text)).transpose()?,
            pool: optional_pool(state, context.query("pool"))?,
            state: word(context, "state")?,
            priority: word(context, "priority")?,
            window: window(context)?,
        })
    }

    /// The tenant and the project that the list is limited to, by the query or by what the caller may see.
    pub(super) fn confined(&self, caller: &Caller) -> (Option<TenantNo>, Option<ProjectNo>) {
        if caller.sees_all() {
            return (self.tenant, self.project);
        }
        (self.tenant.or(caller.tenant), self.project.or(caller.project))
    }

    pub(super) fn takes(&self, one: &Listed<S>) -> bool {
        self.tenant.is_none_or(|tenant| tenant == one.tenant)
            && self.project.is_none_or(|project| project == one.project)
            && self.user.is_none_or(|user| Some(user) == one.user)
            && self.pool.is_none_or(|pool| Some(pool) == one.pool)
            && self.state.as_ref().is_none_or(|state| *state == one.state)
            && self.priority.is_none_or(|wanted| wanted == one.priority)
    }
}

/// Either `at`, or `from` and `to`, or `window`.
fn window(context: &Context) -> Result<Option<Window>, Problem> {
    let times = Times::of(context)?;
    let (at, (from, to)) = (times.instant("at")?, times.window()?);
    match (at, from, to) {
        (None, None, None) => Ok(None),
        (Some(at), None, None) => Ok(Some(Window::new(at, Instant(at.0.saturating_add(1))))),
        (None, from, to) => {
            let window = Window::new(from.unwrap_or(Instant(0)), to.unwrap_or(Instant::MAX));
            let backwards = || bad_window("to", "`to` is before `from`.");
            if window.from <= window.to { Ok(Some(window)) } else { Err(backwards()) }
        }
        (Some(_), _, _) => Err(bad_window("at", "Give either `at`, or a window.")),
    }
}

/// Items that are read while the view is held; publishing waits that long at most.
const READ_AT_ONCE: usize = 5_000;

/// A page that is being filled.
pub(super) struct Walk<T> {
    /// The number of the last item that was read.
    pub(super) after: Option<u64>,
    found: Vec<T>,
    limit: usize,
    looked: usize,
}

impl<T> Walk<T> {
    /// Whether another item may be read before the view is released.
    pub(super) fn goes_on(&self) -> bool {
        self.found.len() < self.limit && self.looked < READ_AT_ONCE
    }

    /// Counts one item, and adds it to the page if it is to be shown.
    pub(super) fn pass(&mut self, number: u64, shown: Option<T>) {
        self.after = Some(number);
        self.looked += 1;
        self.found.extend(shown);
    }
}

/// Fills a page, releasing the view from time to time. `stretch` reads items after `after` and returns whether some are
/// left. At most `most` items are read, so a page may have fewer items than asked for.
pub(super) async fn page<T>(
    context: &Context,
    most: usize,
    stretch: impl Fn(&Readers, &mut Walk<T>) -> bool,
) -> Result<(Vec<T>, Option<String>), Problem> {
    let (after, limit) = (context.cursor()?, context.limit()?);
    let mut walk = Walk { after, found: Vec::new(), limit, looked: 0 };
    let mut looked = 0;
    let left_some = loop {
        let left_some = context.app.now.readers(|state| stretch(state, &mut walk));
        looked += std::mem::take(&mut walk.looked);
        if !left_some || walk.found.len() == limit || looked >= most {
            break left_some;
        }
        tokio::task::yield_now().await;
    };
    Ok((walk.found, walk.after.filter(|_| left_some).map(cursor_after)))
}
