//! `leasehold usage …` and `cost …`.

use super::csv::{one_form, print_rows};
use super::details::or_dash;
use super::failure::Failed;
use super::figures::{
    Scale, SharedNames, bar_width, billionths, columns, field, id_columns, ids, is_cut, money_together, percents,
    permille, quantity, say_as_of, scaled, shown, small_bar,
};
use super::session::Session;
use super::times::Times;
use super::watch::watch;
use crate::cli::books::{
    AskedArgs, CapacityArgs, CostArgs, CostCommand, CostRateArgs, Csv, FilterArgs, UsageArgs, UsageCommand,
};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::term::{Paint, Part, Style, bar};
use crate::time_format;
use leasehold_api::{
    Amount, CapacityReport, CapacityUse, CostLine, CostRate, CostReport, Of, Stretch, UsageReport, When,
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
        control_plane: filter.control_plane,
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
        nothing_before(*asked == AskedArgs::default() && !args.peak && !args.utilisation, "capacity")?;
        return capacity(session, of).await;
    }
    let csv = one_form(session, asked.csv)?;
    let extra = Extra { peak: args.peak, utilisation: args.utilisation };
    let times = session.times.in_zone(asked.cut.zone.as_ref());
    let query = BookQuery { peak: extra.peak, utilisation: extra.utilisation, ..query(&times, asked)? };
    let call = session.client.usage().asking(&query);
    let by = &asked.group.by;
    if asked.watch.watch {
        return watch(session, async || Ok(usage_table(&call.clone().await?, by, extra))).await;
    }
    if session.json {
        return Ok(crate::output::print_json(&call.json().await?)?);
    }
    let report = call.await?;
    match csv {
        Some(csv) => usage_csv(csv, &report, by)?,
        None => {
            if !report.lines.is_empty() || report.reported.is_empty() {
                session.print_table(&usage_table(&report, by, extra))?;
            }
            if !report.reported.is_empty() {
                let apart = if report.lines.is_empty() { "" } else { "\n" };
                crate::output::print(&format!("{apart}Reported by apps\n\n"))?;
                session.print_table(&reported_table(&report, by))?;
            }
        }
    }
    say_as_of(report.as_of, report.as_of_size, &report.stretch);
    Ok(())
}

/// What apps reported.
fn reported_table(report: &UsageReport, by: &[String]) -> Table {
    let lines = &report.reported;
    let mut names = shown(by, lines.iter().map(|line| &line.of));
    // The unit stands beside the quantity.
    names.retain(|name| *name != "class");
    let shared = SharedNames::of(&names, lines.iter().map(|line| &line.of));
    let cut = is_cut(lines.iter().map(|line| &line.stretch));
    let figures = [("quantity", Align::Right), ("unit", Align::Left), ("charge", Align::Left)];
    let mut table = headed(cut, &names, &figures, false);
    for line in lines {
        let mut row = cells(cut.then(|| start(line.bucket.as_ref(), line.stretch.from)), &names, &line.of, &shared);
        let unit = line.of.usage_unit.clone().unwrap_or_default();
        row.extend([line.quantity.clone(), unit, super::details::word(line.charge)].map(|text| (text, Style::Plain)));
        table.styled(row);
    }
    table
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

/// The bucket of a line, by its name in the time zone that was asked for.
fn start(bucket: Option<&String>, from: When) -> String {
    bucket.cloned().unwrap_or_else(|| time_format::to_the_second(from))
}

fn cells(from: Option<String>, names: &[&'static str], of: &Of, shared: &SharedNames) -> Vec<(String, Style)> {
    let when = from.into_iter();
    when.chain(names.iter().map(|name| or_dash(shared.field(of, name)))).map(|text| (text, Style::Plain)).collect()
}

/// Columns of usage that are shown on request.
#[derive(Clone, Copy)]
struct Extra {
    peak: bool,
    utilisation: bool,
}

fn usage_table(report: &UsageReport, by: &[String], extra: Extra) -> Table {
    let names = shown(by, report.lines.iter().map(|line| &line.of));
    let shared = SharedNames::of(&names, report.lines.iter().map(|line| &line.of));
    let (cut, bars) = (is_cut(report.lines.iter().map(|line| &line.stretch)), bar_width().is_some());
    // Bars compare only lines of the same unit.
    let mut largest: BTreeMap<&str, u128> = BTreeMap::new();
    for line in &report.lines {
        let of_unit = largest.entry(&line.unit).or_default();
        *of_unit = billionths(&line.unit_seconds).unwrap_or(0).max(*of_unit);
    }
    let scale = Scale::of(report.lines.iter().map(|line| line.unit_seconds.as_str()));
    let mut figures = vec![("held", Align::Right)];
    figures.extend(extra.peak.then_some(("peak", Align::Right)));
    figures.extend(extra.utilisation.then_some(("busy", Align::Right)));
    let mut table = headed(cut, &names, &figures, bars);
    for line in &report.lines {
        let mut row = cells(cut.then(|| start(line.bucket.as_ref(), line.stretch.from)), &names, &line.of, &shared);
        row.push((scale.show(&line.unit_seconds, &line.unit), Style::Plain));
        if extra.peak {
            let peak = line.peak.as_ref().map(|peak| format!("{} {}", quantity(peak), line.unit));
            row.push((or_dash(peak), Style::Plain));
        }
        if extra.utilisation {
            let busy = line.utilisation.as_ref().and_then(|used| used.permille);
            row.push((or_dash(busy.map(|busy| permille(busy.into()))), Style::Plain));
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
    when.into_iter().chain(name_cells(names, of)).collect()
}

fn name_cells(names: &[&'static str], of: &Of) -> Vec<String> {
    names.iter().map(|name| field(of, name).unwrap_or_default()).collect()
}

/// Prints rows that end with the numbers of their objects.
pub(super) fn print_with_ids<'a>(
    csv: Csv,
    names: &[&'static str],
    mut headings: Vec<&'static str>,
    rows: impl Iterator<Item = (Option<&'a Of>, Vec<String>)>,
) -> Result<(), Failed> {
    let columns = id_columns(names);
    headings.extend(columns.iter().map(|(_, heading)| *heading));
    let rows = rows.map(|(of, mut row)| {
        match of {
            Some(of) => row.extend(ids(of, &columns)),
            None => row.extend(columns.iter().map(|_| String::new())),
        }
        row
    });
    print_rows(csv, &headings, rows)
}

fn usage_csv(csv: Csv, report: &UsageReport, by: &[String]) -> Result<(), Failed> {
    let reported = report.reported.iter().map(|line| &line.of);
    let names = columns(by, report.lines.iter().map(|line| &line.of).chain(reported));
    let mut headings = vec!["from", "to"];
    headings.extend(&names);
    headings.extend(["unit", "unit_seconds", "exact", "quanta_ns", "peak", "covered", "busy", "quantity", "charge"]);
    let rows = report.lines.iter().map(|line| {
        let mut row = exact_cells(&names, &line.of, &line.stretch);
        row.extend([line.unit.clone(), line.unit_seconds.clone(), line.exact.clone()]);
        row.extend([line.quanta_ns.clone().unwrap_or_default(), line.peak.clone().unwrap_or_default()]);
        let used = line.utilisation.as_ref();
        row.extend(
            [used.map(|used| used.covered.clone()), used.map(|used| used.busy.clone())].map(Option::unwrap_or_default),
        );
        row.extend([String::new(), String::new()]);
        (Some(&line.of), row)
    });
    let reported = report.reported.iter().map(|line| {
        let mut row = exact_cells(&names, &line.of, &line.stretch);
        row.push(line.of.usage_unit.clone().unwrap_or_default());
        row.extend(std::iter::repeat_n(String::new(), 6));
        row.extend([line.quantity.clone(), super::details::word(line.charge)]);
        (Some(&line.of), row)
    });
    print_with_ids(csv, &names, headings, rows.chain(reported))
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
    let shared = SharedNames::of(&names, report.lines.iter().map(|line| &line.of));
    let width = bar_width();
    let parts = ["held", "teardown", "reserved", "fenced", "offline", "idle"].map(|part| (part, Align::Right));
    let figures: Vec<_> = [("capacity", Align::Right)].into_iter().chain(parts).collect();
    let scale = Scale::of(report.lines.iter().map(|line| line.capacity.as_str()));
    let mut table = headed(false, &names, &figures, width.is_some()).shrink_first(CAPACITY_SHRINK_FIRST);
    for line in &report.lines {
        let mut row = cells(None, &names, &line.of, &shared);
        row.push((scale.show(&line.capacity, &line.unit), Style::Plain));
        let parts = capacity_parts(line);
        row.extend(percents(parts.map(|(_, amount, _, _)| amount)).map(|percent| (percent, Style::Plain)));
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
        (Some(&line.of), row)
    });
    print_with_ids(csv, &names, headings, rows)
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
            return super::forecast::forecast(session, of).await;
        }
        None => {}
    }
    let csv = one_form(session, asked.csv)?;
    let times = session.times.in_zone(asked.cut.zone.as_ref());
    let (call, by) = (session.client.costs().asking(&query(&times, asked)?), &asked.group.by);
    let table = |report: &CostReport| {
        let cut = is_cut(report.lines.iter().map(|line| &line.stretch));
        let from = |line: &CostLine| cut.then(|| start(line.bucket.as_ref(), line.stretch.from));
        let lines = report.lines.iter().map(|line| (&line.of, from(line), &line.cost)).collect::<Vec<_>>();
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
    say_credited(&report.total_credited);
    say_as_of(report.as_of, report.as_of_size, &report.stretch);
    Ok(())
}

/// Says what is taken off the cost.
fn say_credited(credited: &[Amount]) {
    for Amount { amount, currency, .. } in credited {
        crate::term::say(&format!(
            "leasehold: {amount} {currency} of it is credited, because others used capacity paid for here\n"
        ));
    }
}

/// Lines of cost, and their total.
fn cost_table(lines: &[(&Of, Option<String>, &Amount)], total: &[Amount], by: &[String], cut: bool) -> Table {
    let names = shown(by, lines.iter().map(|(of, _, _)| *of));
    let shared = SharedNames::of(&names, lines.iter().map(|(of, _, _)| *of));
    let bars = bar_width().is_some();
    let mut largest: BTreeMap<&str, u128> = BTreeMap::new();
    for (_, _, cost) in lines {
        let of_currency = largest.entry(&cost.currency).or_default();
        *of_currency = billionths(&cost.amount).unwrap_or(0).max(*of_currency);
    }
    // Lines and total are rounded each in itself; the lines add up to the total before, so they do afterwards.
    let all: Vec<(&str, &str)> =
        lines.iter().map(|(_, _, cost)| (cost.amount.as_str(), cost.currency.as_str())).collect();
    let mut money = money_together(&all).into_iter();
    let mut table = headed(cut, &names, &[("cost", Align::Right), ("", Align::Left)], bars);
    for (of, from, cost) in lines {
        let mut row = cells(from.clone(), &names, of, &shared);
        row.extend([(money.next().unwrap_or_default(), Style::Plain), (cost.currency.clone(), Style::Plain)]);
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
        let shown = money_together(&[(&sum.amount, &sum.currency)]).remove(0);
        row.extend([(shown, Style::Bold), (sum.currency.clone(), Style::Bold)]);
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
        row.extend(cost_cells(&line.cost));
        (Some(&line.of), row)
    });
    let totals = totals(2 + names.len(), &report.total).map(|row| (None, row));
    print_with_ids(csv, &names, headings, rows.chain(totals))
}

fn cost_cells(cost: &Amount) -> [String; 3] {
    [cost.currency.clone(), cost.amount.clone(), cost.exact.clone()]
}

/// One row per currency, with the word `total` in the first of the cells before the amounts.
fn totals(before: usize, total: &[Amount]) -> impl Iterator<Item = Vec<String>> + '_ {
    total.iter().map(move |sum| {
        let mut row = vec![String::new(); before];
        row.first_mut().into_iter().for_each(|first| *first = "total".into());
        row.extend(cost_cells(sum));
        row
    })
}

async fn rate(session: &Session, args: CostRateArgs) -> Result<(), Failed> {
    let csv = one_form(session, args.csv)?;
    let by = args.group.by;
    let call = session.client.cost_rate().asking(&BookQuery { by: by.clone(), ..filtered(args.filter) });
    let table = |report: &CostRate| {
        let lines = report.lines.iter().map(|line| (&line.of, None, &line.cost)).collect::<Vec<_>>();
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
            let mut row = name_cells(&names, &line.of);
            row.extend(cost_cells(&line.cost));
            (Some(&line.of), row)
        });
        // Without a column for the word, the only line of a currency is its total.
        let totals = totals(names.len(), &report.total).filter(|_| !names.is_empty()).map(|row| (None, row));
        print_with_ids(csv, &names, headings, rows.chain(totals))?;
    } else {
        session.print_table(&table(&report))?;
    }
    let as_of = time_format::to_the_second(report.as_of);
    crate::term::say(&format!("leasehold: cost per hour, as of {as_of}, journal size {}\n", report.as_of_size));
    Ok(())
}
