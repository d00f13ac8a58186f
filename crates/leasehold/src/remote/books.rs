//! `leasehold usage …` and `cost …`.

use super::csv::{one_form, print_rows};
use super::details::{Details, or_dash};
use super::failure::Failed;
use super::figures::{
    MoneyFormat, Scale, amounts, bar_width, billionths, columns, field, is_cut, percent, say_as_of, scaled, shown,
    small_bar,
};
use super::session::Session;
use super::times::Times;
use super::watch::watch;
use crate::cli::books::{
    AskedArgs, CapacityArgs, CostArgs, CostCommand, CostRateArgs, Csv, FilterArgs, ForecastArgs, UsageArgs,
    UsageCommand,
};
use crate::output::print;
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::term::{Paint, Part, Style, bar};
use crate::time_format;
use leasehold_api::{
    Amount, CapacityReport, CapacityUse, CostRate, CostReport, Forecast, Of, Stretch, UsageReport, When,
};
use leasehold_client::BookQuery;
use std::collections::BTreeMap;

/// Columns that are cut first on a narrow terminal.
const SHRINK_FIRST: &[&str] = &["share", "tier", "kind", "workload", "user", "tag", "peak", "pool", "node", "project"];

const CAPACITY_SHRINK_FIRST: &[&str] = &["share", "reserved", "teardown", "capacity", "offline", "fenced", "class"];

pub(super) fn filtered(filter: FilterArgs) -> BookQuery {
    BookQuery {
        tenant: filter.whose.tenant,
        project: filter.whose.project,
        user: filter.whose.user,
        priority: filter.whose.priority,
        pool: filter.pool,
        node: filter.node,
        class: filter.class,
        kind: filter.kind,
        tier: filter.tier,
        tag: filter.tag,
        allocation: filter.allocation,
        app_instance: filter.app_instance,
        workload: filter.workload,
        ..BookQuery::default()
    }
}

fn query(times: &Times, asked: &AskedArgs) -> Result<BookQuery, Problem> {
    let (from, to) = times.window(&asked.window)?;
    Ok(BookQuery {
        from,
        to,
        by: asked.group.by.clone(),
        bucket: asked.cut.bucket.clone(),
        time_zone: times.zone_name(),
        ..filtered(asked.filter.clone())
    })
}

/// Refuses options before a subcommand, which would be ignored silently.
fn nothing_before(is_nothing: bool, what: &str) -> Result<(), Problem> {
    if is_nothing {
        return Ok(());
    }
    Err(Problem::usage("usage", format!("there are options before `{what}`"))
        .advice(format!("write them after `{what}`")))
}

pub(super) async fn usage(session: &Session, args: UsageArgs) -> Result<(), Failed> {
    let asked = &args.asked;
    if let Some(UsageCommand::Capacity(of)) = args.of {
        nothing_before(*asked == AskedArgs::default() && !args.peak, "capacity")?;
        return capacity(session, of).await;
    }
    let csv = one_form(session, asked.csv)?;
    let times = session.times.in_zone(asked.cut.zone.as_ref());
    let call = session.client.usage().asking(&BookQuery { peak: args.peak, ..query(&times, asked)? });
    let by = &asked.group.by;
    if asked.watch.watch {
        return watch(session, async || Ok(usage_table(&call.clone().await?, by, args.peak))).await;
    }
    if session.json {
        return Ok(crate::output::print_json(&call.json().await?)?);
    }
    let report = call.await?;
    match csv {
        Some(csv) => usage_csv(csv, &report, by)?,
        None => session.print_table(&usage_table(&report, by, args.peak))?,
    }
    say_as_of(report.as_of, report.as_of_size, &report.stretch);
    Ok(())
}

/// The headings: the start of the bucket if there are several, the dimensions, then the figures.
fn headed(cut: bool, names: &[&'static str], figures: &[(&'static str, Align)], bars: bool) -> Table {
    let mut headings: Vec<(&str, Align)> = Vec::new();
    headings.extend(cut.then_some(("from", Align::Left)));
    headings.extend(names.iter().map(|name| (*name, Align::Left)));
    headings.extend(figures);
    headings.extend(bars.then_some(("share", Align::Left)));
    Table::new(&headings).shrink_first(SHRINK_FIRST)
}

fn cells(cut: bool, names: &[&'static str], of: &Of, from: When) -> Vec<(String, Style)> {
    let when = cut.then(|| time_format::to_the_second(from)).into_iter();
    when.chain(names.iter().map(|name| or_dash(field(of, name)))).map(|text| (text, Style::Plain)).collect()
}

fn usage_table(report: &UsageReport, by: &[String], peak: bool) -> Table {
    let names = shown(by, report.lines.iter().map(|line| &line.of));
    let (cut, bars) = (is_cut(report.lines.iter().map(|line| &line.stretch)), bar_width().is_some());
    // Bars compare only lines of the same unit.
    let mut largest: BTreeMap<&str, u128> = BTreeMap::new();
    for line in &report.lines {
        let of_unit = largest.entry(&line.unit).or_default();
        *of_unit = billionths(&line.unit_seconds).unwrap_or(0).max(*of_unit);
    }
    let scale = Scale::of(report.lines.iter().map(|line| line.unit_seconds.as_str()));
    let mut figures = vec![("held", Align::Right)];
    figures.extend(peak.then_some(("peak", Align::Right)));
    let mut table = headed(cut, &names, &figures, bars);
    for line in &report.lines {
        let mut row = cells(cut, &names, &line.of, line.stretch.from);
        row.push((scale.show(&line.unit_seconds, &line.unit), Style::Plain));
        if peak {
            let peak = line.peak.as_ref().map(|peak| format!("{peak} {}", line.unit));
            row.push((or_dash(peak), Style::Plain));
        }
        if bars {
            let amount = billionths(&line.unit_seconds).unwrap_or(0);
            row.push((small_bar(amount, largest[line.unit.as_str()]), Style::Green));
        }
        table.styled(row);
    }
    table
}

/// The first cells of every CSV row.
fn exact_cells(names: &[&'static str], of: &Of, stretch: &Stretch) -> Vec<String> {
    let when = [stretch.from.to_string(), stretch.to.to_string()];
    when.into_iter().chain(names.iter().map(|name| field(of, name).unwrap_or_default())).collect()
}

fn usage_csv(csv: Csv, report: &UsageReport, by: &[String]) -> Result<(), Failed> {
    let names = columns(by, report.lines.iter().map(|line| &line.of));
    let mut headings = vec!["from", "to"];
    headings.extend(&names);
    headings.extend(["unit", "unit_seconds", "exact", "quanta_ns", "peak"]);
    let rows = report.lines.iter().map(|line| {
        let mut row = exact_cells(&names, &line.of, &line.stretch);
        row.extend([line.unit.clone(), line.unit_seconds.clone(), line.exact.clone()]);
        row.extend([line.quanta_ns.clone().unwrap_or_default(), line.peak.clone().unwrap_or_default()]);
        row
    });
    print_rows(csv, &headings, rows)
}

async fn capacity(session: &Session, args: CapacityArgs) -> Result<(), Failed> {
    let csv = one_form(session, args.csv)?;
    let (from, to) = session.times.window(&args.window)?;
    let asked = BookQuery {
        from,
        to,
        by: args.by.clone().into_iter().collect(),
        pool: args.pool,
        node: args.node,
        class: args.class,
        ..BookQuery::default()
    };
    let call = session.client.capacity().asking(&asked);
    if session.json {
        return Ok(crate::output::print_json(&call.json().await?)?);
    }
    let report = call.await?;
    match csv {
        Some(csv) => capacity_csv(csv, &report, &asked.by)?,
        None => session.print_table(&capacity_table(&report, &asked.by, session.paint))?,
    }
    say_as_of(report.as_of, report.as_of_size, &report.stretch);
    Ok(())
}

fn capacity_parts(line: &CapacityUse) -> [(&'static str, &str, char, Style); 6] {
    [
        ("held", &line.held, '█', Style::Green),
        ("teardown", &line.tearing_down, '▓', Style::Blue),
        ("reserved", &line.reserved, '▚', Style::Cyan),
        ("fenced", &line.fenced, '▒', Style::Red),
        ("offline", &line.offline, '░', Style::Magenta),
        ("idle", &line.idle, '·', Style::Dim),
    ]
}

fn capacity_table(report: &CapacityReport, by: &[String], paint: Paint) -> Table {
    let names = shown(by, report.lines.iter().map(|line| &line.of));
    let width = bar_width();
    let parts = ["held", "teardown", "reserved", "fenced", "offline", "idle"].map(|part| (part, Align::Right));
    let figures: Vec<_> = [("capacity", Align::Right)].into_iter().chain(parts).collect();
    let scale = Scale::of(report.lines.iter().map(|line| line.capacity.as_str()));
    let mut table = headed(false, &names, &figures, width.is_some()).shrink_first(CAPACITY_SHRINK_FIRST);
    for line in &report.lines {
        let mut row = cells(false, &names, &line.of, report.stretch.from);
        row.push((scale.show(&line.capacity, &line.unit), Style::Plain));
        let parts = capacity_parts(line);
        row.extend(parts.map(|(_, amount, _, _)| (percent(amount, &line.capacity), Style::Plain)));
        if let Some(width) = width {
            let total = billionths(&line.capacity).unwrap_or(0);
            let part = |(_, amount, glyph, style): (&str, &str, char, Style)| {
                let amount = scaled(billionths(amount).unwrap_or(0), total);
                Part { amount, glyph, style }
            };
            // Idle capacity is the rest of the bar.
            let [busy @ .., _] = parts;
            row.push((bar(&busy.map(part), 1 << 20, width, paint), Style::Plain));
        }
        table.styled(row);
    }
    table
}

fn capacity_csv(csv: Csv, report: &CapacityReport, by: &[String]) -> Result<(), Failed> {
    let names = columns(by, report.lines.iter().map(|line| &line.of));
    let mut headings = vec!["from", "to"];
    headings.extend(&names);
    headings.extend(["unit", "capacity", "held", "tearing_down", "reserved", "fenced", "offline", "idle"]);
    let rows = report.lines.iter().map(|line| {
        let mut row = exact_cells(&names, &line.of, &report.stretch);
        row.extend([line.unit.clone(), line.capacity.clone()]);
        row.extend(capacity_parts(line).map(|(_, amount, _, _)| amount.to_owned()));
        row
    });
    print_rows(csv, &headings, rows)
}

pub(super) async fn cost(session: &Session, args: CostArgs) -> Result<(), Failed> {
    let asked = &args.asked;
    let unasked = *asked == AskedArgs::default();
    match args.of {
        Some(CostCommand::Rate(of)) => {
            nothing_before(unasked, "rate")?;
            return rate(session, of).await;
        }
        Some(CostCommand::Forecast(of)) => {
            nothing_before(unasked, "forecast")?;
            return forecast(session, of).await;
        }
        None => {}
    }
    let csv = one_form(session, asked.csv)?;
    let times = session.times.in_zone(asked.cut.zone.as_ref());
    let (call, by) = (session.client.costs().asking(&query(&times, asked)?), &asked.group.by);
    let table = |report: &CostReport| {
        let cut = is_cut(report.lines.iter().map(|line| &line.stretch));
        let lines = report.lines.iter().map(|line| (&line.of, line.stretch.from, &line.cost)).collect::<Vec<_>>();
        cost_table(&lines, &report.total, by, cut)
    };
    if asked.watch.watch {
        return watch(session, async || Ok(table(&call.clone().await?))).await;
    }
    if session.json {
        return Ok(crate::output::print_json(&call.json().await?)?);
    }
    let report = call.await?;
    match csv {
        Some(csv) => cost_csv(csv, &report, by)?,
        None => session.print_table(&table(&report))?,
    }
    say_as_of(report.as_of, report.as_of_size, &report.stretch);
    Ok(())
}

/// Lines of cost, and their total.
fn cost_table(lines: &[(&Of, When, &Amount)], total: &[Amount], by: &[String], cut: bool) -> Table {
    let names = shown(by, lines.iter().map(|(of, _, _)| *of));
    let bars = bar_width().is_some();
    let mut largest: BTreeMap<&str, u128> = BTreeMap::new();
    for (_, _, cost) in lines {
        let of_currency = largest.entry(&cost.currency).or_default();
        *of_currency = billionths(&cost.amount).unwrap_or(0).max(*of_currency);
    }
    let all = lines.iter().map(|(_, _, cost)| *cost).chain(total);
    let money = MoneyFormat::of(all.map(|cost| cost.amount.as_str()));
    let mut table = headed(cut, &names, &[("cost", Align::Right), ("", Align::Left)], bars);
    for (of, from, cost) in lines {
        let mut row = cells(cut, &names, of, *from);
        row.extend([(money.show(&cost.amount), Style::Plain), (cost.currency.clone(), Style::Plain)]);
        if bars {
            let amount = billionths(&cost.amount).unwrap_or(0);
            row.push((small_bar(amount, largest[cost.currency.as_str()]), Style::Green));
        }
        table.styled(row);
    }
    // The total is a row of its own only if there is a column for its name.
    let before = usize::from(cut) + names.len();
    for sum in total.iter().filter(|_| before > 0) {
        let mut row = vec![(String::new(), Style::Plain); before];
        row[0] = ("total".into(), Style::Bold);
        row.extend([(money.show(&sum.amount), Style::Bold), (sum.currency.clone(), Style::Bold)]);
        row.extend(bars.then(|| (String::new(), Style::Plain)));
        table.styled(row);
    }
    table
}

fn cost_csv(csv: Csv, report: &CostReport, by: &[String]) -> Result<(), Failed> {
    let names = columns(by, report.lines.iter().map(|line| &line.of));
    let mut headings = vec!["from", "to"];
    headings.extend(&names);
    headings.extend(["currency", "amount", "exact"]);
    let rows = report.lines.iter().map(|line| {
        let mut row = exact_cells(&names, &line.of, &line.stretch);
        row.extend([line.cost.currency.clone(), line.cost.amount.clone(), line.cost.exact.clone()]);
        row
    });
    print_rows(csv, &headings, rows)
}

async fn rate(session: &Session, args: CostRateArgs) -> Result<(), Failed> {
    let csv = one_form(session, args.csv)?;
    let by = args.group.by;
    let call = session.client.cost_rate().asking(&BookQuery { by: by.clone(), ..filtered(args.filter) });
    let table = |report: &CostRate| {
        let lines = report.lines.iter().map(|line| (&line.of, report.as_of, &line.cost)).collect::<Vec<_>>();
        cost_table(&lines, &report.total, &by, false)
    };
    if args.watch.watch {
        return watch(session, async || Ok(table(&call.clone().await?))).await;
    }
    if session.json {
        return Ok(crate::output::print_json(&call.json().await?)?);
    }
    let report = call.await?;
    if let Some(csv) = csv {
        let names = columns(&by, report.lines.iter().map(|line| &line.of));
        let mut headings = names.clone();
        headings.extend(["currency", "amount_per_hour", "exact"]);
        let rows = report.lines.iter().map(|line| {
            let mut row: Vec<String> = names.iter().map(|name| field(&line.of, name).unwrap_or_default()).collect();
            row.extend([line.cost.currency.clone(), line.cost.amount.clone(), line.cost.exact.clone()]);
            row
        });
        print_rows(csv, &headings, rows)?;
    } else {
        session.print_table(&table(&report))?;
    }
    let as_of = time_format::to_the_second(report.as_of);
    crate::term::say(&format!("leasehold: cost per hour, as of {as_of}, journal size {}\n", report.as_of_size));
    Ok(())
}

async fn forecast(session: &Session, args: ForecastArgs) -> Result<(), Failed> {
    let csv = one_form(session, args.csv)?;
    let time_zone = session.times.in_zone(args.zone.as_ref()).zone_name();
    let call = session.client.forecast().asking(&BookQuery { time_zone, ..filtered(args.filter) });
    if session.json {
        return Ok(crate::output::print_json(&call.json().await?)?);
    }
    let report = call.await?;
    let parts = |report: &Forecast| {
        let Forecast { accrued, to_deadlines, to_month_end, .. } = report.clone();
        [("accrued", accrued), ("to_deadlines", to_deadlines), ("to_month_end", to_month_end)]
    };
    if let Some(csv) = csv {
        let rows = parts(&report).into_iter().flat_map(|(what, sums)| {
            sums.into_iter().map(move |sum| vec![what.to_owned(), sum.currency, sum.amount, sum.exact])
        });
        print_rows(csv, &["what", "currency", "amount", "exact"], rows)?;
    } else {
        let text = Details::new()
            .add("so far", amounts(&report.accrued))
            .add("if every lease ends at its deadline", amounts(&report.to_deadlines))
            .add("if every lease is held to the end of the month", amounts(&report.to_month_end))
            .text(session.paint);
        print(&text)?;
    }
    say_as_of(report.as_of, report.as_of_size, &report.stretch);
    Ok(())
}
