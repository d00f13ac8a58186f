//! Turns the query of a request into a question for the books.

use super::times::Times;
use crate::access::Caller;
use crate::context::Context;
use crate::names;
use crate::problem::sentence;
use leasehold_api::{Problem, Role, codes};
use leasehold_books::{BadBuckets, Bucket, Buckets, Dim, Filter, Question, month_of};
use leasehold_engine::State;
use leasehold_meter::Window;
use leasehold_model::{AppInstanceNo, ClassNo, Instant, Name, Priority, ResourceKind, Words};
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// A dimension to group by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Dim(Dim),
    Class,
    Kind,
    Tier,
}

/// The parsed query. `tag` is looked up in the books.
#[derive(Clone, Debug)]
pub(super) struct BooksQuery {
    pub(super) by: Vec<By>,
    pub(super) filter: Filter,
    pub(super) tag: Option<String>,
    pub(super) from: Option<Instant>,
    pub(super) to: Option<Instant>,
    pub(super) bucket: Option<Bucket>,
    pub(super) zone: Option<String>,
}

pub(super) fn bad_window(field: &str, detail: impl Into<String>) -> Problem {
    codes::BAD_WINDOW.problem(detail).with("field", field)
}

pub(super) fn bad_buckets(error: &BadBuckets) -> Problem {
    let field = if matches!(error, BadBuckets::UnknownZone(_)) { "time_zone" } else { "bucket" };
    bad_window(field, format!("{}.", sentence(&error.to_string())))
}

/// A query parameter that must be one of a fixed list of words.
pub(super) fn word<T: Words>(context: &Context, name: &str) -> Result<Option<T>, Problem> {
    let Some(text) = context.query(name) else { return Ok(None) };
    T::from_word(text).map(Some).ok_or_else(|| {
        codes::BAD_QUERY.problem(format!("`{name}` must be one of {}.", T::WORDS.join(", "))).with("field", name)
    })
}

fn by(text: &str) -> Result<By, Problem> {
    match text {
        "class" => Ok(By::Class),
        "kind" => Ok(By::Kind),
        "tier" => Ok(By::Tier),
        text => Dim::from_word(text).map(By::Dim).ok_or_else(|| {
            let dims: Vec<&str> = Dim::ALL.iter().map(|dim| dim.word()).collect();
            let detail = format!("`by` must be a comma-separated list of {}, class, kind and tier.", dims.join(", "));
            codes::BAD_GROUPING.problem(detail).with("field", "by")
        }),
    }
}

/// Adds the parameter to the problem of a name.
pub(super) fn named<T>(field: &str, found: Result<T, Problem>) -> Result<T, Problem> {
    found.map_err(|problem| problem.with("field", field))
}

/// Limits the filter to what the caller may see.
fn confine(caller: &Caller, filter: &mut Filter) -> Result<(), Problem> {
    let own = match caller.role {
        Role::TenantAdmin | Role::ProjectMember | Role::AppOperator => true,
        Role::BillingAuthority => caller.tenant.is_some(),
        _ => false,
    };
    if own {
        filter.tenant = filter.tenant.or(caller.tenant);
        filter.project = filter.project.or(caller.project);
        if filter.tenant.is_none() {
            return Err(codes::TENANT_NEEDED.problem("The token belongs to no tenant."));
        }
    }
    Ok(())
}

impl BooksQuery {
    /// Parses the query. Names are looked up among the objects that the caller may see.
    pub(super) fn read(context: &Context, state: &State) -> Result<Self, Problem> {
        let mut asked = Self::read_window(context)?;
        asked.read_filter(context, state)?;
        if let Some(text) = context.query("by") {
            asked.by = text.split(',').map(by).collect::<Result<_, _>>()?;
        }
        Ok(asked)
    }

    /// Parses the window and the buckets.
    pub(super) fn read_window(context: &Context) -> Result<Self, Problem> {
        let times = Times::of(context)?;
        let (from, to) = times.window()?;
        Ok(Self {
            by: Vec::new(),
            filter: Filter::default(),
            tag: None,
            from,
            to,
            bucket: word(context, "bucket")?,
            zone: Some(times.zone_name()),
        })
    }

    /// Parses the filter and limits it to what the caller may see.
    pub(super) fn read_filter(&mut self, context: &Context, state: &State) -> Result<(), Problem> {
        let (caller, filter) = (context.caller(), &mut self.filter);
        if let Some(text) = context.query("tenant") {
            filter.tenant = Some(named("tenant", names::tenant(state, caller, text))?);
        }
        if let Some(text) = context.query("project") {
            filter.project = Some(named("project", names::project(state, caller, filter.tenant, text))?);
        }
        if let Some(text) = context.query("user") {
            filter.user = Some(named("user", names::user(state, caller, filter.tenant, text))?);
        }
        filter.pool = named("pool", super::capacity::optional_pool(state, context.query("pool")))?;
        if let Some(text) = context.query("node") {
            filter.node = Some(named("node", names::node_for_request(state, text))?);
        }
        filter.priority = word(context, "priority")?;
        filter.allocation = context.query("allocation").map(super::allocations::number).transpose()?;
        filter.app_instance = context.number("app_instance")?.map(AppInstanceNo);
        filter.workload = names::optional_name("workload", context.query("workload"))?;
        filter.classes = classes(context, state)?;
        self.tag = context.query("tag").map(str::to_owned);
        confine(caller, filter)
    }

    /// The window: the month so far unless given, up to the last known instant.
    pub(super) fn window(&self, as_of: Instant) -> Result<Window, Problem> {
        // The zone is checked even if it is not needed.
        let month = month_of(as_of, self.zone.as_deref()).map_err(|why| bad_buckets(&why))?;
        let from = self.from.unwrap_or_else(|| month.from.min(self.to.unwrap_or(as_of)));
        if self.to.is_some_and(|to| to < from) {
            return Err(bad_window("to", "The window ends before it begins."));
        }
        if from > as_of {
            return Err(bad_window("from", format!("The window is in the future: the books end at {as_of}.")));
        }
        Ok(Window::new(from, self.to.unwrap_or(as_of).min(as_of).max(from)))
    }

    /// The question for the books. Class is added to the grouping unless it contains class or kind.
    pub(super) fn question(&self, books: &leasehold_books::Books, window: Window) -> Result<Question, Problem> {
        let mut dims: SmallVec<[Dim; leasehold_books::DIMS_MAX]> = SmallVec::new();
        for by in &self.by {
            if let By::Dim(dim) = by
                && !dims.contains(dim)
            {
                dims.push(*dim);
            }
        }
        if dims.len() > leasehold_books::DIMS_MAX {
            let detail = format!(
                "`by` may contain at most {} dimensions in addition to class, kind and tier.",
                leasehold_books::DIMS_MAX
            );
            return Err(codes::BAD_GROUPING.problem(detail).with("field", "by"));
        }
        let borders = match self.bucket {
            None => vec![window.from, window.to],
            Some(bucket) => Buckets::new(bucket, self.zone.as_deref())
                .and_then(|buckets| buckets.borders(window))
                .map_err(|why| bad_buckets(&why))?,
        };
        let mut filter = self.filter.clone();
        if let Some(tag) = &self.tag {
            // An unknown tag matches nothing.
            filter.tag = Some(books.tag_named(tag).unwrap_or(u32::MAX));
        }
        Ok(Question { dims, filter, borders })
    }

    /// For reports on the present or the current month, which take no window.
    pub(super) fn without_window(self, what: &str) -> Result<Self, Problem> {
        let field = match (self.from, self.to) {
            (None, None) => return Ok(self),
            (Some(_), _) => "from",
            (None, Some(_)) => "to",
        };
        Err(bad_window(field, format!("{what}; remove `from`, `to` and `window`.")))
    }

    /// Whether the classes of one kind are added up.
    pub(super) fn by_kind(&self) -> bool {
        self.by.contains(&By::Kind) && !self.by.contains(&By::Class)
    }
    pub(super) fn by_tier(&self) -> bool {
        self.by.contains(&By::Tier)
    }
}

/// The classes that the parameters class, kind and tier select.
fn classes(context: &Context, state: &State) -> Result<Option<BTreeSet<ClassNo>>, Problem> {
    let class = named("class", context.query("class").map(|text| names::class(state, text)).transpose())?;
    let kind = word::<ResourceKind>(context, "kind")?;
    let tier = names::optional_name("tier", context.query("tier"))?;
    if class.is_none() && kind.is_none() && tier.is_none() {
        return Ok(None);
    }
    let takes = |number: ClassNo, of: ResourceKind, has: Option<&Name>| {
        class.is_none_or(|class| class == number)
            && kind.is_none_or(|kind| kind == of)
            && tier.as_ref().is_none_or(|tier| Some(tier) == has)
    };
    let all = state.classes().filter(|(number, spec)| takes(*number, spec.kind, spec.tier.as_ref()));
    Ok(Some(all.map(|(number, _)| number).collect()))
}

pub(super) fn shown_priority(code: u64) -> Option<Priority> {
    Priority::ALL.iter().copied().find(|one| *one as u64 == code)
}
