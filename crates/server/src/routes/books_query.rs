//! Turns the query of a request into a question for the books.

use super::times::Times;
use crate::access::Caller;
use crate::context::Context;
use crate::names;
use crate::problem::sentence;
use leasehold_api::{Problem, Role, codes};
use leasehold_books::{BadBuckets, Books, Bucket, Buckets, Dim, Filter, NamedKind, NamedObject, Question, month_of};
use leasehold_engine::State;
use leasehold_meter::Window;
use leasehold_model::{
    AppInstanceNo, ClassNo, Instant, Name, NodeNo, PoolNo, Priority, ProjectNo, ResourceKind, TenantNo, UserNo, Words,
};
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
    /// Objects of the filter that do not exist now. They may have existed in the window.
    absent: Vec<Absent>,
    caller: Caller,
    pub(super) from: Option<Instant>,
    pub(super) to: Option<Instant>,
    pub(super) bucket: Option<Bucket>,
    pub(super) zone: Option<String>,
}

/// An object of the filter that does not exist now.
#[derive(Clone, Debug)]
struct Absent {
    kind: NamedKind,
    text: String,
    problem: Problem,
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
        filter.payer = filter.payer.or(caller.project);
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
            absent: Vec::new(),
            caller: context.caller().clone(),
            from,
            to,
            bucket: word(context, "bucket")?,
            zone: Some(times.zone_name()),
        })
    }

    /// Parses the filter and limits it to what the caller may see.
    pub(super) fn read_filter(&mut self, context: &Context, state: &State) -> Result<(), Problem> {
        use NamedKind as K;
        let caller = context.caller();
        let asked = |name: &'static str| context.query(name);
        let tenant = asked("tenant").map(|text| (text, names::tenant(state, caller, text)));
        self.filter.tenant = self.found(K::Tenant, tenant)?;
        let of = self.filter.tenant;
        let project = asked("project").map(|text| (text, names::project(state, caller, of, text)));
        self.filter.payer = self.found(K::Project, project)?;
        let users = asked("user").map(|text| (text, names::users(state, caller, of, text)));
        self.filter.users = self.found(K::User, users)?;
        let apps = asked("app_instance").map(|text| (text, names::app_instance(state, caller, of, text)));
        self.filter.app_instance = self.found(K::AppInstance, apps)?;
        self.read_places(context, state)?;
        let filter = &mut self.filter;
        filter.priority = word(context, "priority")?;
        filter.allocation = context.query("allocation").map(super::allocations::number).transpose()?;
        filter.workload = names::optional_name("workload", context.query("workload"))?;
        filter.classes = classes(context, state)?;
        filter.control_plane = match context.query("control_plane") {
            None => None,
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(_) => {
                let detail = "`control_plane` must be true or false.";
                return Err(codes::BAD_QUERY.problem(detail).with("field", "control_plane"));
            }
        };
        self.tag = context.query("tag").map(str::to_owned);
        confine(caller, &mut self.filter)
    }

    /// Parses the pool and the node of the filter.
    pub(super) fn read_places(&mut self, context: &Context, state: &State) -> Result<(), Problem> {
        let pool = context.query("pool").map(|text| (text, names::pool(state, text)));
        self.filter.pool = self.found(NamedKind::Pool, pool)?;
        let node = context.query("node").map(|text| (text, names::node_for_request(state, text)));
        self.filter.node = self.found(NamedKind::Node, node)?;
        Ok(())
    }

    /// What was found, unless nothing is asked for. An object that does not exist now is looked up in the books later.
    fn found<T>(&mut self, kind: NamedKind, found: Option<(&str, Result<T, Problem>)>) -> Result<Option<T>, Problem> {
        let Some((text, found)) = found else { return Ok(None) };
        match named(kind.word(), found) {
            Ok(found) => Ok(Some(found)),
            Err(problem) if problem.status == 404 => {
                self.absent.push(Absent { kind, text: text.to_owned(), problem });
                Ok(None)
            }
            Err(problem) => Err(problem),
        }
    }

    /// The filter, with the deleted objects that it names.
    pub(super) fn filter(&self, books: &Books, window: Window) -> Result<Filter, Problem> {
        let mut filter = self.filter.clone();
        for absent in &self.absent {
            let long = self.deleted(books, absent, filter.tenant, window)?;
            // Only app instances have longer numbers.
            let number = u32::try_from(long).unwrap_or(u32::MAX);
            match absent.kind {
                NamedKind::Tenant => filter.tenant = Some(TenantNo(number)),
                NamedKind::Project => filter.payer = Some(ProjectNo(number)),
                NamedKind::User => filter.users = Some([UserNo(number)].into()),
                NamedKind::Pool => filter.pool = Some(PoolNo(number)),
                NamedKind::Node => filter.node = Some(NodeNo(number)),
                NamedKind::AppInstance => filter.app_instance = Some(AppInstanceNo(long)),
                // No filter names them.
                NamedKind::AppType | NamedKind::Unit => return Err(absent.problem.clone()),
            }
        }
        if let Some(tag) = &self.tag {
            // An unknown tag matches nothing.
            filter.tag = Some(books.tag_named(tag).unwrap_or(u32::MAX));
        }
        Ok(filter)
    }

    /// The deleted object that the filter names. Among several of one name, the one that existed in the window.
    fn deleted(&self, books: &Books, absent: &Absent, of: Option<TenantNo>, window: Window) -> Result<u64, Problem> {
        let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let visible = |number: u64, object: &NamedObject| match (absent.kind, object.tenant) {
            (NamedKind::Tenant, _) => self.caller.sees_tenant(TenantNo(short(number))),
            (NamedKind::Project, Some(tenant)) => {
                of.is_none_or(|of| of == tenant) && self.caller.sees_project(tenant, ProjectNo(short(number)))
            }
            (NamedKind::User | NamedKind::AppInstance, Some(tenant)) => {
                of.is_none_or(|of| of == tenant) && self.caller.sees_tenant(tenant)
            }
            (NamedKind::Pool | NamedKind::Node | NamedKind::AppType | NamedKind::Unit, _) => true,
            (NamedKind::Project | NamedKind::User | NamedKind::AppInstance, None) => false,
        };
        let is_meant = |number: u64, object: &NamedObject| match names::digits::<u64>(&absent.text) {
            Some(wanted) => wanted == number,
            None => object.name.as_str() == absent.text,
        };
        let mut found: Vec<(u64, &NamedObject)> = books
            .deleted(absent.kind)
            .filter(|(number, object)| is_meant(*number, object) && visible(*number, object))
            .collect();
        if found.len() > 1 {
            found.retain(|(_, object)| object.deleted_at.is_some_and(|at| at > window.from));
        }
        match found[..] {
            [] => Err(absent.problem.clone()),
            [(number, _)] => Ok(number),
            _ => {
                let numbers: Vec<String> = found.iter().map(|(number, _)| number.to_string()).collect();
                let (kind, numbers) = (absent.kind.word(), numbers.join(", "));
                let detail = format!(
                    "Several deleted {kind}s were called \"{}\" in this window; give the number: {numbers}.",
                    absent.text.escape_debug()
                );
                Err(codes::BAD_QUERY.problem(detail).with("field", kind))
            }
        }
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
    pub(super) fn question(&self, books: &Books, window: Window) -> Result<Question, Problem> {
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
        Ok(Question { dims, filter: self.filter(books, window)?, borders })
    }

    /// The names of the buckets in the time zone that was asked for; none without buckets.
    pub(super) fn labels(&self, question: &Question) -> Result<Vec<String>, Problem> {
        let Some(bucket) = self.bucket else { return Ok(Vec::new()) };
        let buckets = Buckets::new(bucket, self.zone.as_deref());
        buckets.and_then(|buckets| buckets.labels(&question.borders)).map_err(|why| bad_buckets(&why))
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

    /// Whether the classes of one kind, or of one kind and tier, are added up.
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
