//! Reports from the books: usage, capacity, cost and sensitivity.

use super::books_query::{BooksQuery, By, named, shown_priority};
use crate::access::Caller;
use crate::books::{ask, problem};
use crate::context::{Answer, Context, json};
use leasehold_api::{
    Amount, CapacityReport, CapacityUse, CostLine, CostRate, CostRateLine, CostReport, Forecast, KindSensitivity, Of,
    Problem, SensitivityReport, Stretch, UsageLine, UsageReport, When, WorkloadSensitivity, codes, limits,
};
use leasehold_books::{Books, Dim, HeldAs, Key, NONE, Question, month_of};
use leasehold_engine::State;
use leasehold_meter::exact::SCALE;
use leasehold_meter::{Money, Overflow, Units, Window};
use leasehold_model::rate::Currency;
use leasehold_model::{AllocationNo, ClassNo, ClassSpec, Instant, Name, NodeNo, PoolNo, ProjectNo, TenantNo, UserNo};
use std::collections::BTreeMap;

fn overflow(_: Overflow) -> Problem {
    codes::OVERFLOW.problem(format!("{Overflow}."))
}

pub(super) fn stretch(window: Window) -> Stretch {
    Stretch { from: When(window.from), to: When(window.to) }
}

/// Names of the objects in the keys of a report.
pub(super) struct Naming<'n> {
    pub(super) state: &'n State,
    pub(super) books: &'n Books,
    pub(super) workloads: &'n [Name],
    pub(super) caller: &'n Caller,
}

impl Naming<'_> {
    fn number(value: u64) -> Option<u32> {
        u32::try_from(value).ok()
    }

    /// Sets the name of one dimension. Deleted objects are shown by number.
    fn put(&self, of: &mut Of, dim: Dim, value: u64) {
        if value == NONE {
            return;
        }
        let no = Self::number(value).unwrap_or(u32::MAX);
        let named = |name: Option<String>, kind: &str| Some(name.unwrap_or_else(|| format!("{kind}-{value}")));
        match dim {
            Dim::Tenant => of.tenant = Some(self.tenant(TenantNo(no))),
            Dim::Project => of.project = Some(self.project(ProjectNo(no))),
            Dim::User => {
                of.user = named(self.state.user(UserNo(no)).map(|user| user.name.to_string()), "user");
            }
            Dim::Pool => of.pool = Some(self.pool(PoolNo(no))),
            Dim::Node => of.node = Some(self.node(NodeNo(no))),
            Dim::Priority => of.priority = shown_priority(value),
            Dim::Tag => of.accounting_tag = named(self.books.tag(no).map(ToString::to_string), "tag"),
            Dim::Allocation => of.allocation = Some(AllocationNo(value).to_string()),
            Dim::AppInstance => of.app_instance = Some(value.to_string()),
            Dim::HeldAs => {
                of.held_as = HeldAs::ALL.iter().find(|one| **one as u64 == value).map(|one| one.word().to_owned())
            }
            Dim::Workload => {
                let place = usize::try_from(value).unwrap_or(usize::MAX);
                of.workload = self.workloads.get(place).map(ToString::to_string);
            }
        }
    }

    pub(super) fn tenant(&self, tenant: TenantNo) -> String {
        self.state.tenant(tenant).map_or_else(|| tenant.to_string(), |tenant| tenant.settings.name.to_string())
    }
    pub(super) fn project(&self, project: ProjectNo) -> String {
        self.state.project(project).map_or_else(|| project.to_string(), |project| project.name.to_string())
    }
    pub(super) fn pool(&self, pool: PoolNo) -> String {
        self.state.pool(pool).map_or_else(|| pool.to_string(), |pool| pool.name.to_string())
    }
    pub(super) fn node(&self, node: NodeNo) -> String {
        self.state.node(node).map_or_else(|| node.to_string(), |node| node.name.to_string())
    }

    fn of(&self, dims: &[Dim], key: &Key) -> Of {
        let mut of = Of::default();
        dims.iter().zip(key).for_each(|(dim, value)| self.put(&mut of, *dim, *value));
        of
    }

    pub(super) fn spec(&self, class: ClassNo) -> Result<&ClassSpec, Problem> {
        self.books.class(class).ok_or_else(|| codes::INTERNAL.problem("The books contain an unknown class."))
    }

    pub(super) fn name_class(&self, of: &mut Of, class: ClassNo) -> Result<(), Problem> {
        let spec = self.spec(class)?;
        of.class = Some(spec.name.to_string());
        of.kind = Some(spec.kind.word().to_owned());
        of.tier = spec.tier.as_ref().map(ToString::to_string);
        Ok(())
    }
}

pub(super) fn amount(currency: Currency, money: &Money) -> Result<Amount, Problem> {
    let (numerator, denominator) = money.fraction().map_err(overflow)?;
    Ok(Amount {
        currency: currency.to_string(),
        amount: money.decimal(SCALE).map_err(overflow)?,
        exact: format!("{numerator}/{denominator}"),
    })
}

pub(super) fn amounts<'m>(sums: impl Iterator<Item = (Currency, &'m Money)>) -> Result<Vec<Amount>, Problem> {
    let mut by_currency: BTreeMap<Currency, Money> = BTreeMap::new();
    for (currency, money) in sums {
        by_currency.entry(currency).or_default().add_all(money).map_err(overflow)?;
    }
    by_currency.iter().map(|(currency, money)| amount(*currency, money)).collect()
}

/// Unit-seconds of one class, with nine decimals.
pub(super) fn unit_seconds(spec: &ClassSpec, quanta_ns: u128) -> Result<String, Problem> {
    Units::of(quanta_ns, spec.quanta_per_unit).decimal(9).map_err(overflow)
}

fn too_many(lines: usize) -> Result<(), Problem> {
    if lines <= limits::BOOK_LINES_MAX {
        return Ok(());
    }
    Err(codes::TOO_MANY_LINES.problem(format!(
        "The answer would have {lines} lines, and the limit is {}; narrow the window, the filter or the grouping.",
        limits::BOOK_LINES_MAX
    )))
}

/// The key of lines that are added up across classes: the rest of the key, and kind or tier if asked for.
type Together = (Key, u8, Option<Name>, u32);

fn together(asked: &BooksQuery, spec: &ClassSpec, key: Key, bucket: u32) -> Together {
    (key, spec.kind as u8, asked.by_tier().then(|| spec.tier.clone()).flatten(), bucket)
}

pub(super) async fn usage(context: Context) -> Answer {
    let asked = context.app.now.read(|state| BooksQuery::read(&context, state))?;
    let peak = context.query("peak") == Some("true");
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let now = app.now.clone();
    let report = ask(&app, context.caller(), move |books, known| {
        let window = asked.window(known.as_of)?;
        let question = asked.question(books, window)?;
        let usage = books.usage(&question).map_err(|error| problem(&error))?;
        too_many(usage.len())?;
        let peaks = if peak { books.peaks(&question).map_err(|error| problem(&error))?.0 } else { Vec::new() };
        let lines = now.read(|state| {
            let naming = Naming { state, books, workloads: &usage.workloads, caller: &caller };
            usage_lines(&naming, &asked, &question, &usage, &peaks)
        })?;
        Ok(UsageReport { stretch: stretch(window), as_of: When(known.as_of), as_of_size: known.size, lines })
    });
    json(200, &report.await?)
}

fn usage_lines(
    naming: &Naming<'_>,
    asked: &BooksQuery,
    question: &Question,
    usage: &leasehold_books::Usage,
    peaks: &[leasehold_books::PeakLine],
) -> Result<Vec<UsageLine>, Problem> {
    let bucket = |bucket: u32| {
        let place = bucket as usize;
        stretch(Window::new(question.borders[place], question.borders[place + 1]))
    };
    let shown = |units: &Units| -> Result<(String, String), Problem> {
        let (numerator, denominator) = units.fraction().map_err(overflow)?;
        Ok((units.decimal(9).map_err(overflow)?, format!("{numerator}/{denominator}")))
    };
    let mut out = Vec::new();
    if asked.by_kind() {
        let mut sums: BTreeMap<Together, (Units, ClassNo)> = BTreeMap::new();
        for line in usage.lines() {
            let spec = naming.spec(line.class)?;
            let sum =
                sums.entry(together(asked, spec, line.key, line.bucket)).or_insert((Units::default(), line.class));
            sum.0.add_all(&Units::of(line.amount, spec.quanta_per_unit)).map_err(overflow)?;
        }
        for ((key, _, tier, place), (units, class)) in sums {
            let spec = naming.spec(class)?;
            let mut of = naming.of(&question.dims, &key);
            of.kind = Some(spec.kind.word().to_owned());
            of.tier = tier.map(|tier| tier.to_string());
            let (unit_seconds, exact) = shown(&units)?;
            let unit = spec.kind.unit().to_owned();
            out.push(UsageLine { of, stretch: bucket(place), unit, unit_seconds, exact, quanta_ns: None, peak: None });
        }
        return Ok(out);
    }
    let mut peaks = peaks.iter().peekable();
    for line in usage.lines() {
        let spec = naming.spec(line.class)?;
        let mut of = naming.of(&question.dims, &line.key);
        naming.name_class(&mut of, line.class)?;
        let here = (line.key, line.class, line.bucket);
        while peaks.next_if(|peak| (peak.key, peak.class, peak.bucket) < here).is_some() {}
        let peak = peaks.next_if(|peak| (peak.key, peak.class, peak.bucket) == here);
        let peak = peak.map(|peak| leasehold_model::quantity::display(leasehold_model::Quanta(peak.peak), spec));
        let (unit_seconds, exact) = shown(&Units::of(line.amount, spec.quanta_per_unit))?;
        out.push(UsageLine {
            of,
            stretch: bucket(line.bucket),
            unit: spec.kind.unit().to_owned(),
            unit_seconds,
            exact,
            quanta_ns: Some(line.amount.to_string()),
            peak,
        });
    }
    Ok(out)
}

pub(super) async fn capacity(context: Context) -> Answer {
    let by = context.query("by").map(str::to_owned);
    if by.as_deref().is_some_and(|by| !matches!(by, "pool" | "node")) {
        return Err(codes::BAD_GROUPING.problem("`by` must be pool or node.").with("field", "by"));
    }
    let asked = context.app.now.read(|state| {
        let mut asked = BooksQuery::read_window(&context)?;
        asked.filter.pool = named("pool", super::capacity::optional_pool(state, context.query("pool")))?;
        asked.filter.node =
            named("node", context.query("node").map(|text| crate::names::node_for_request(state, text)).transpose())?;
        let class = named("class", context.query("class").map(|text| crate::names::class(state, text)).transpose())?;
        asked.filter.classes = class.map(|class| std::iter::once(class).collect());
        Ok::<_, Problem>(asked)
    })?;
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let now = app.now.clone();
    let report = ask(&app, context.caller(), move |books, known| {
        let window = asked.window(known.as_of)?;
        let (by_pool, by_node) = (by.as_deref() == Some("pool"), by.as_deref() == Some("node"));
        let filter = &asked.filter;
        let lines = books.capacity(window, by_pool, by_node, |pool, node, class| {
            filter.pool.is_none_or(|wanted| wanted == pool)
                && filter.node.is_none_or(|wanted| wanted == node)
                && filter.classes.as_ref().is_none_or(|classes| classes.contains(&class))
        });
        let lines = lines.map_err(|error| problem(&error))?;
        too_many(lines.len())?;
        let lines = now.read(|state| {
            let naming = Naming { state, books, workloads: &[], caller: &caller };
            lines.into_iter().map(|(key, line)| capacity_line(&naming, &key, &line)).collect::<Result<Vec<_>, _>>()
        })?;
        Ok(CapacityReport { stretch: stretch(window), as_of: When(known.as_of), as_of_size: known.size, lines })
    });
    json(200, &report.await?)
}

fn capacity_line(
    naming: &Naming<'_>,
    key: &leasehold_books::CapacityKey,
    line: &leasehold_books::CapacityLine,
) -> Result<CapacityUse, Problem> {
    let spec = naming.spec(key.class)?;
    let mut of = Of { pool: key.pool.map(|pool| naming.pool(pool)), ..Of::default() };
    of.node = key.node.map(|node| naming.node(node));
    naming.name_class(&mut of, key.class)?;
    let shown = |amount| unit_seconds(spec, amount);
    Ok(CapacityUse {
        of,
        unit: spec.kind.unit().to_owned(),
        capacity: shown(line.capacity)?,
        held: shown(line.held)?,
        tearing_down: shown(line.tearing_down)?,
        reserved: shown(line.reserved)?,
        fenced: shown(line.fenced)?,
        offline: shown(line.offline)?,
        idle: shown(line.idle)?,
    })
}

/// The key of a cost line: key, class, kind, tier, bucket, currency.
type CostPlace = (Key, Option<ClassNo>, Option<u8>, Option<Name>, u32, Currency);

/// Cost lines, grouped as asked for. Unlike amounts of different units, money can be added up over all classes.
fn cost_lines(
    naming: &Naming<'_>,
    asked: &BooksQuery,
    question: &Question,
    lines: &[leasehold_books::CostLine],
) -> Result<Vec<(Of, u32, Currency, Money)>, Problem> {
    let by_class = asked.by.contains(&By::Class);
    let by_kind = asked.by.contains(&By::Kind);
    let mut sums: BTreeMap<CostPlace, (Money, ClassNo)> = BTreeMap::new();
    for line in lines {
        let spec = naming.spec(line.class)?;
        let tier = (asked.by_tier() && !by_class).then(|| spec.tier.clone()).flatten();
        let kind = (by_kind && !by_class).then_some(spec.kind as u8);
        let place = (line.key, by_class.then_some(line.class), kind, tier, line.bucket, line.currency);
        let sum = sums.entry(place).or_insert((Money::default(), line.class));
        sum.0.add_all(&line.money).map_err(overflow)?;
    }
    too_many(sums.len())?;
    let mut out = Vec::with_capacity(sums.len());
    for ((key, class, kind, tier, bucket, currency), (money, of_class)) in sums {
        let mut of = naming.of(&question.dims, &key);
        if let Some(class) = class {
            naming.name_class(&mut of, class)?;
        }
        if kind.is_some() {
            of.kind = Some(naming.spec(of_class)?.kind.word().to_owned());
        }
        if let Some(tier) = tier {
            of.tier = Some(tier.to_string());
        }
        out.push((of, bucket, currency, money));
    }
    Ok(out)
}

pub(super) async fn costs(context: Context) -> Answer {
    let asked = context.app.now.read(|state| BooksQuery::read(&context, state))?;
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let now = app.now.clone();
    let report = ask(&app, context.caller(), move |books, known| {
        let window = asked.window(known.as_of)?;
        let question = asked.question(books, window)?;
        let (lines, workloads) = books.cost(&question).map_err(|error| problem(&error))?;
        let total = amounts(lines.iter().map(|line| (line.currency, &line.money)))?;
        let lines = now.read(|state| {
            let naming = Naming { state, books, workloads: &workloads, caller: &caller };
            cost_lines(&naming, &asked, &question, &lines)
        })?;
        let border = |place: u32| question.borders[place as usize];
        let line = |(of, bucket, currency, money): (Of, u32, Currency, Money)| {
            let stretch = stretch(Window::new(border(bucket), border(bucket + 1)));
            Ok(CostLine { of, stretch, cost: amount(currency, &money)? })
        };
        let lines = lines.into_iter().map(line).collect::<Result<Vec<_>, Problem>>()?;
        Ok(CostReport { stretch: stretch(window), as_of: When(known.as_of), as_of_size: known.size, lines, total })
    });
    json(200, &report.await?)
}

pub(super) async fn cost_rate(context: Context) -> Answer {
    let asked = context.app.now.read(|state| BooksQuery::read(&context, state))?;
    let asked = asked.without_window("The hourly rate is always the current one")?;
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let now = app.now.clone();
    let report = ask(&app, context.caller(), move |books, known| {
        let question = asked.question(books, Window::new(known.as_of, known.as_of))?;
        let (lines, workloads) = books.live_rate(&question, known.as_of).map_err(|error| problem(&error))?;
        let total = amounts(lines.iter().map(|line| (line.currency, &line.money)))?;
        let lines = now.read(|state| {
            let naming = Naming { state, books, workloads: &workloads, caller: &caller };
            cost_lines(&naming, &asked, &question, &lines)
        })?;
        let line = |(of, _, currency, money): (Of, u32, Currency, Money)| {
            Ok(CostRateLine { of, cost: amount(currency, &money)? })
        };
        let lines = lines.into_iter().map(line).collect::<Result<Vec<_>, Problem>>()?;
        Ok(CostRate { as_of: When(known.as_of), as_of_size: known.size, lines, total })
    });
    json(200, &report.await?)
}

pub(super) async fn forecast(context: Context) -> Answer {
    let asked = context.app.now.read(|state| BooksQuery::read(&context, state))?;
    let asked = asked.without_window("A forecast is always for the current month")?;
    let app = context.app.clone();
    let report = ask(&app, context.caller(), move |books, known| {
        let as_of: Instant = known.as_of;
        let month = month_of(as_of, asked.zone.as_deref()).map_err(|why| super::books_query::bad_buckets(&why))?;
        let question = asked.question(books, Window::new(month.from, as_of))?;
        let failed = |error| problem(&error);
        let (accrued, _) = books.cost(&question).map_err(failed)?;
        let ahead = |renewed| books.cost_ahead(&question, as_of, month.to, renewed).map_err(failed);
        let with = |more: Vec<leasehold_books::CostLine>| {
            amounts(accrued.iter().chain(&more).map(|line| (line.currency, &line.money)))
        };
        Ok(Forecast {
            stretch: stretch(month),
            as_of: When(as_of),
            as_of_size: known.size,
            accrued: with(Vec::new())?,
            to_deadlines: with(ahead(false)?)?,
            to_month_end: with(ahead(true)?)?,
        })
    });
    json(200, &report.await?)
}

pub(super) async fn sensitivity(context: Context) -> Answer {
    let asked = context.app.now.read(|state| BooksQuery::read(&context, state))?;
    let app = context.app.clone();
    let report = ask(&app, context.caller(), move |books, known| {
        let window = asked.window(known.as_of)?;
        let question = asked.question(books, window)?;
        let profiles = books.sensitivity(window, &question.filter).map_err(|error| problem(&error))?;
        too_many(profiles.len())?;
        let kind = |profile: leasehold_books::KindProfile| KindSensitivity {
            kind: profile.kind.word().to_owned(),
            level: profile.level,
            cost_permille: profile.cost_permille,
            waiting_permille: profile.waiting_permille,
        };
        let workload = |profile: leasehold_books::WorkloadProfile| WorkloadSensitivity {
            workload: profile.workload.to_string(),
            kinds: profile.kinds.into_iter().map(kind).collect(),
        };
        let workloads = profiles.into_iter().map(workload).collect();
        Ok(SensitivityReport { stretch: stretch(window), as_of: When(known.as_of), as_of_size: known.size, workloads })
    });
    json(200, &report.await?)
}
