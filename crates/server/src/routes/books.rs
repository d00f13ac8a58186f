//! Reports from the books: usage, capacity, cost and sensitivity.

use super::books_query::{BooksQuery, By, named};
use super::naming::Naming;
use crate::books::{ask, problem};
use crate::context::{Answer, Context, json};
use leasehold_api::{
    Amount, CapacityReport, CapacityUse, CostLine, CostRate, CostRateLine, CostReport, ExactCapacity, KindSensitivity,
    Of, Problem, SensitivityReport, Stretch, When, WorkloadSensitivity, codes, limits,
};
use leasehold_books::{Key, Question, UnitLine};
use leasehold_meter::exact::{SCALE, decimal_text};
use leasehold_meter::{Money, Overflow, Units, Window};
use leasehold_model::rate::Currency;
use leasehold_model::{ClassNo, ClassSpec, Name, UnitNo};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn overflow(_: Overflow) -> Problem {
    codes::OVERFLOW.problem(format!("{Overflow}."))
}

pub(super) fn stretch(window: Window) -> Stretch {
    Stretch { from: When(window.from), to: When(window.to) }
}

pub(super) fn amount(currency: Currency, money: &Money) -> Result<Amount, Problem> {
    let (numerator, denominator) = money.fraction().map_err(overflow)?;
    Ok(Amount {
        currency: currency.to_string(),
        amount: money.decimal(SCALE).map_err(overflow)?,
        exact: format!("{numerator}/{denominator}"),
    })
}

/// Amounts that are rounded so that those of one currency add up to their total.
pub(super) fn amounts_together(lines: &[(Currency, &Money)]) -> Result<Vec<Amount>, Problem> {
    let currencies: BTreeSet<Currency> = lines.iter().map(|(currency, _)| *currency).collect();
    let mut shown: Vec<Option<Amount>> = vec![None; lines.len()];
    for wanted in currencies {
        let places: Vec<usize> = (0..lines.len()).filter(|place| lines[*place].0 == wanted).collect();
        let sums: Vec<&Money> = places.iter().map(|place| lines[*place].1).collect();
        let rounded = Money::rounded_together(&sums, SCALE).map_err(overflow)?;
        for (place, steps) in places.into_iter().zip(rounded) {
            shown[place] = Some(Amount { amount: decimal_text(steps, SCALE), ..amount(wanted, lines[place].1)? });
        }
    }
    Ok(shown.into_iter().flatten().collect())
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

pub(super) fn too_many(lines: usize) -> Result<(), Problem> {
    if lines <= limits::BOOK_LINES_MAX {
        return Ok(());
    }
    Err(codes::TOO_MANY_LINES.problem(format!(
        "The answer would have {lines} lines, and the limit is {}; narrow the window, the filter or the grouping.",
        limits::BOOK_LINES_MAX
    )))
}

pub(super) async fn capacity(context: Context) -> Answer {
    let by = context.query("by").map(str::to_owned);
    if by.as_deref().is_some_and(|by| !matches!(by, "pool" | "node")) {
        return Err(codes::BAD_GROUPING.problem("`by` must be pool or node.").with("field", "by"));
    }
    let asked = context.app.now.read(|state| {
        let mut asked = BooksQuery::read_window(&context)?;
        asked.read_places(&context, state)?;
        let class = named("class", context.query("class").map(|text| crate::names::class(state, text)).transpose())?;
        asked.filter.classes = class.map(|class| std::iter::once(class).collect());
        Ok::<_, Problem>(asked)
    })?;
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let now = app.now.clone();
    let report = ask(&app, context.caller(), move |books, known| {
        let window = asked.window(known.as_of)?;
        let (by_pool, by_node) = (by.as_deref() == Some("pool"), by.as_deref() == Some("node"));
        let filter = asked.filter(books, window)?;
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
    let mut of = Of::default();
    key.pool.into_iter().for_each(|pool| naming.put_pool(&mut of, pool));
    key.node.into_iter().for_each(|node| naming.put_node(&mut of, node));
    naming.name_class(&mut of, key.class)?;
    let parts = [line.held, line.tearing_down, line.reserved, line.fenced, line.offline, line.idle];
    let parts = parts.map(|amount| Units::of(amount, spec.quanta_per_unit));
    let rounded = Units::rounded_together(&parts.each_ref(), 9).map_err(overflow)?;
    let [held, tearing_down, reserved, fenced, offline, idle] = std::array::from_fn(|i| decimal_text(rounded[i], 9));
    let exact = |units: &Units| -> Result<String, Problem> {
        let (numerator, denominator) = units.fraction().map_err(overflow)?;
        Ok(format!("{numerator}/{denominator}"))
    };
    let capacity = Units::of(line.capacity, spec.quanta_per_unit);
    Ok(CapacityUse {
        of,
        unit: spec.kind.unit().to_owned(),
        capacity: capacity.decimal(9).map_err(overflow)?,
        held,
        tearing_down,
        reserved,
        fenced,
        offline,
        idle,
        exact: ExactCapacity {
            capacity: exact(&capacity)?,
            held: exact(&parts[0])?,
            tearing_down: exact(&parts[1])?,
            reserved: exact(&parts[2])?,
            fenced: exact(&parts[3])?,
            offline: exact(&parts[4])?,
            idle: exact(&parts[5])?,
        },
    })
}

/// What a cost line is about: key, class, usage unit, kind, tier, bucket, currency.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CostPlace {
    key: Key,
    class: Option<ClassNo>,
    unit: Option<UnitNo>,
    kind: Option<u8>,
    tier: Option<Name>,
    bucket: u32,
    currency: Currency,
}

/// Cost lines, grouped as asked for. Unlike amounts of different units, money can be added up over all classes.
fn cost_lines(
    naming: &Naming<'_>,
    asked: &BooksQuery,
    question: &Question,
    lines: &[leasehold_books::CostLine],
    units: &[UnitLine],
) -> Result<Vec<(Of, u32, Currency, Money)>, Problem> {
    let by_class = asked.by.contains(&By::Class);
    let by_kind = asked.by.contains(&By::Kind);
    // The class is any of those of the group, which have its kind.
    let mut sums: BTreeMap<CostPlace, (Money, Option<ClassNo>)> = BTreeMap::new();
    for line in lines {
        let spec = naming.spec(line.class)?;
        let tier = (asked.by_tier() && !by_class).then(|| spec.tier.clone()).flatten();
        let kind = (by_kind && !by_class).then_some(spec.kind as u8);
        let class = by_class.then_some(line.class);
        let (key, bucket, currency) = (line.key, line.bucket, line.currency);
        let place = CostPlace { key, class, unit: None, kind, tier, bucket, currency };
        let sum = sums.entry(place).or_insert((Money::default(), Some(line.class)));
        sum.0.add_all(&line.money).map_err(overflow)?;
    }
    for line in units {
        for (currency, money) in &line.costs {
            let (key, bucket, currency) = (line.key, line.bucket, *currency);
            let unit = by_class.then_some(line.unit);
            let place = CostPlace { key, class: None, unit, kind: None, tier: None, bucket, currency };
            sums.entry(place).or_insert((Money::default(), None)).0.add_all(money).map_err(overflow)?;
        }
    }
    too_many(sums.len())?;
    let mut out = Vec::with_capacity(sums.len());
    for (CostPlace { key, class, unit, kind, tier, bucket, currency }, (money, of_class)) in sums {
        let mut of = naming.of(&question.dims, &key);
        if let Some(class) = class {
            naming.name_class(&mut of, class)?;
        }
        of.usage_unit = unit.map(|unit| naming.unit(unit));
        if let Some(of_class) = of_class.filter(|_| kind.is_some()) {
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
        let units = books.unit_usage(&question).map_err(|error| problem(&error))?;
        let credited = books.unit_credits(&question).map_err(|error| problem(&error))?;
        let of_units = units.iter().flat_map(|line| &line.costs).map(|(currency, money)| (*currency, money));
        let total = amounts(lines.iter().map(|line| (line.currency, &line.money)).chain(of_units))?;
        let of_credits = credited.iter().flat_map(|line| &line.costs).map(|(currency, money)| (*currency, money));
        let total_credited = amounts(of_credits)?;
        let (lines, credits) = now.read(|state| {
            let naming = Naming { state, books, workloads: &workloads, caller: &caller };
            let credits = cost_lines(&naming, &asked, &question, &[], &credited)?;
            Ok::<_, Problem>((cost_lines(&naming, &asked, &question, &lines, &units)?, credits))
        })?;
        let border = |place: u32| question.borders[place as usize];
        let labels = asked.labels(&question)?;
        let line = |((of, bucket, _, _), cost): ((Of, u32, Currency, Money), Amount)| {
            let stretch = stretch(Window::new(border(bucket), border(bucket + 1)));
            CostLine { of, stretch, bucket: labels.get(bucket as usize).cloned(), cost }
        };
        let shown = |lines: Vec<(Of, u32, Currency, Money)>| {
            let costs = lines.iter().map(|(_, _, currency, money)| (*currency, money)).collect::<Vec<_>>();
            let costs = amounts_together(&costs)?;
            Ok::<_, Problem>(lines.into_iter().zip(costs).map(line).collect())
        };
        Ok(CostReport {
            stretch: stretch(window),
            as_of: When(known.as_of),
            as_of_size: known.size,
            lines: shown(lines)?,
            total,
            credits: shown(credits)?,
            total_credited,
        })
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
            cost_lines(&naming, &asked, &question, &lines, &[])
        })?;
        let costs =
            amounts_together(&lines.iter().map(|(_, _, currency, money)| (*currency, money)).collect::<Vec<_>>())?;
        let lines = lines.into_iter().zip(costs).map(|((of, ..), cost)| CostRateLine { of, cost }).collect();
        Ok(CostRate { as_of: When(known.as_of), as_of_size: known.size, lines, total })
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
