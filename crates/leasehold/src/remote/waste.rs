//! `leasehold waste` and `leasehold sensitivity`.

use super::books::{filtered, print_with_ids};
use super::csv::{one_form, print_rows};
use super::details::{or_dash, word};
use super::failure::Failed;
use super::figures::{Scale, small_bar};
use super::figures::{
    amounts, bar_width, billionths, columns, field, money, percent, permille, quantity, say_as_of, shown,
};
use super::lease::short;
use super::session::Session;
use crate::cli::books::{Csv, SensitivityArgs, WasteArgs};
use crate::output::print;
use crate::table::{Align, Table};
use crate::term::Style;
use leasehold_api::{Sensitivity, SensitivityReport, WasteClass, WasteReport, WastedCost};
use leasehold_client::BookQuery;

fn style(class: WasteClass) -> Style {
    match class {
        WasteClass::PremiumWaste => Style::Red,
        WasteClass::Idle | WasteClass::Overprovisioned => Style::Yellow,
        WasteClass::Fragmented => Style::Cyan,
        WasteClass::Healthy => Style::Green,
        WasteClass::Unknown => Style::Dim,
    }
}

fn costs(all: &[WastedCost]) -> String {
    money(all.iter().map(|one| (one.amount.as_str(), one.currency.as_str())))
}

pub(super) async fn waste(session: &Session, args: &WasteArgs) -> Result<(), Failed> {
    let csv = one_form(session, args.csv)?;
    let by = args.group.by.clone();
    let (from, to) = session.times.window(&args.window)?;
    let asked = BookQuery { from, to, by: by.clone(), ..filtered(args.filter.clone()) };
    let call = session.client.waste().asking(&asked).maybe("headline", args.headline).query("limit", args.limit);
    let call = call.maybe("sort", args.sort).maybe("top", args.top);
    if session.json {
        return Ok(crate::output::print_json(&call.json().await?)?);
    }
    let report = call.await?;
    match csv {
        Some(csv) => waste_csv(csv, &report, &by)?,
        None => waste_tables(session, &report, &by)?,
    }
    say_as_of(report.as_of, report.as_of_size, &report.stretch);
    Ok(())
}

fn waste_tables(session: &Session, report: &WasteReport, by: &[String]) -> Result<(), Failed> {
    let parts = [
        ("Total", sums(report, by)),
        ("Leases, the most wasteful first", leases(report)),
        ("Idle capacity, and its price at the scavenger rate", stranded(report)),
        ("Free parts of partly used devices", fragmented(report)),
    ];
    if parts.iter().all(|(_, table)| table.is_empty()) {
        return session.print_table(&parts[0].1);
    }
    let shown = parts.iter().filter(|(_, table)| !table.is_empty());
    let texts: Vec<String> = shown
        .map(|(title, table)| format!("{}\n{}\n", session.paint.bold(title), session.lines(table).join("\n")))
        .collect();
    Ok(print(&texts.join("\n"))?)
}

fn sums(report: &WasteReport, by: &[String]) -> Table {
    let names = shown(by, report.sums.iter().map(|sum| &sum.of));
    let bars = bar_width().is_some();
    let mut headings: Vec<(&str, Align)> = names.iter().map(|name| (*name, Align::Left)).collect();
    headings.extend([("headline", Align::Left), ("leases", Align::Right), ("held", Align::Right)]);
    headings.extend([("busy", Align::Right), ("wasted", Align::Right), ("cost", Align::Right)]);
    headings.extend(bars.then_some(("share", Align::Left)));
    let mut table = Table::new(&headings).shrink_first(&["share", "leases", "held", "busy", "project"]);
    let scale = Scale::of(report.sums.iter().map(|sum| sum.held.as_str()));
    for sum in &report.sums {
        let plain = |text: String| (text, Style::Plain);
        let mut row: Vec<_> = names.iter().map(|name| plain(or_dash(field(&sum.of, name)))).collect();
        row.extend([(word(sum.headline), style(sum.headline)), plain(sum.leases.to_string())]);
        let busy = sum.utilisation.as_ref().and_then(|used| used.permille).map(|busy| permille(busy.into()));
        row.extend([plain(scale.show(&sum.held, &sum.unit)), plain(or_dash(busy))]);
        row.push(plain(scale.show(&sum.wasted, &sum.unit)));
        row.push(plain(costs(&sum.wasted_cost)));
        if bars {
            let part = |text: &str| billionths(text).unwrap_or(0);
            row.push((small_bar(part(&sum.wasted), part(&sum.held)), style(sum.headline)));
        }
        table.styled(row);
    }
    table
}

fn leases(report: &WasteReport) -> Table {
    let headings = [
        ("lease", Align::Left),
        ("headline", Align::Left),
        ("tenant", Align::Left),
        ("project", Align::Left),
        ("workload", Align::Left),
        ("class", Align::Left),
        ("held", Align::Right),
        ("reported", Align::Right),
        ("busy", Align::Right),
        ("wasted", Align::Right),
        ("cost", Align::Right),
    ];
    let mut table = Table::new(&headings)
        .shrink_first(&["workload", "project", "reported", "busy", "class", "held", "tenant", "cost"]);
    let scale = Scale::of(report.leases.iter().map(|lease| lease.held.as_str()));
    for lease in &report.leases {
        let plain = |text: String| (text, Style::Plain);
        table.styled([
            (short(&lease.lease), Style::Bold),
            (word(lease.headline), style(lease.headline)),
            plain(or_dash(lease.of.tenant.as_ref())),
            plain(or_dash(lease.of.project.as_ref())),
            plain(or_dash(lease.of.workload.as_ref())),
            plain(or_dash(lease.of.class.as_ref())),
            plain(scale.show(&lease.held, &lease.unit)),
            plain(percent(&lease.covered, &lease.held)),
            plain(percent(&lease.busy, &lease.covered)),
            plain(scale.show(&lease.wasted, &lease.unit)),
            plain(costs(&lease.wasted_cost)),
        ]);
    }
    table
}

fn stranded(report: &WasteReport) -> Table {
    let headings = [
        ("pool", Align::Left),
        ("class", Align::Left),
        ("idle", Align::Right),
        ("of capacity", Align::Right),
        ("could have earned", Align::Right),
    ];
    let mut table = Table::new(&headings).shrink_first(&["of capacity", "class"]);
    let scale = Scale::of(report.stranded.iter().map(|line| line.idle.as_str()));
    for line in &report.stranded {
        table.row([
            or_dash(line.of.pool.as_ref()),
            or_dash(line.of.class.as_ref()),
            scale.show(&line.idle, &line.unit),
            percent(&line.idle, &line.capacity),
            amounts(&line.could_have_earned),
        ]);
    }
    table
}

fn fragmented(report: &WasteReport) -> Table {
    let headings =
        [("node", Align::Left), ("class", Align::Left), ("free in parts", Align::Right), ("devices", Align::Right)];
    let mut table = Table::new(&headings);
    for line in &report.fragmented {
        let free = format!("{} {}", quantity(&line.free_in_parts), line.unit);
        table.row([line.node.clone(), line.class.clone(), free, line.devices.to_string()]);
    }
    table
}

/// The sums, one row per currency.
fn waste_csv(csv: Csv, report: &WasteReport, by: &[String]) -> Result<(), Failed> {
    let names = columns(by, report.sums.iter().map(|sum| &sum.of));
    let mut headings = vec!["from", "to"];
    headings.extend(&names);
    headings.extend(["headline", "leases", "unit", "held", "wasted", "currency", "wasted_cost", "covered", "busy"]);
    let mut rows = Vec::new();
    for sum in &report.sums {
        let mut row = vec![report.stretch.from.to_string(), report.stretch.to.to_string()];
        row.extend(names.iter().map(|name| field(&sum.of, name).unwrap_or_default()));
        row.extend([word(sum.headline), sum.leases.to_string(), sum.unit.clone()]);
        row.extend([sum.held.clone(), sum.wasted.clone()]);
        let used = sum.utilisation.as_ref().map(|used| vec![used.covered.clone(), used.busy.clone()]);
        let used = used.unwrap_or_else(|| vec![String::new(); 2]);
        let none = [WastedCost { currency: String::new(), amount: String::new() }];
        let costs = if sum.wasted_cost.is_empty() { &none[..] } else { &sum.wasted_cost };
        let with =
            |cost: &WastedCost| [row.clone(), vec![cost.currency.clone(), cost.amount.clone()], used.clone()].concat();
        rows.extend(costs.iter().map(|cost| (Some(&sum.of), with(cost))));
    }
    print_with_ids(csv, &names, headings, rows.into_iter())
}

pub(super) async fn sensitivity(session: &Session, args: &SensitivityArgs) -> Result<(), Failed> {
    let csv = one_form(session, args.csv)?;
    let (from, to) = session.times.window(&args.window)?;
    let asked = BookQuery { from, to, ..filtered(args.filter.clone()) };
    let call = session.client.sensitivity().asking(&asked);
    if session.json {
        return Ok(crate::output::print_json(&call.json().await?)?);
    }
    let report = call.await?;
    match csv {
        Some(csv) => {
            let rows = report.workloads.iter().flat_map(|workload| {
                workload.kinds.iter().map(|kind| {
                    let (cost, waiting) = (kind.cost_permille.to_string(), kind.waiting_permille.to_string());
                    vec![workload.workload.clone(), kind.kind.clone(), word(kind.level), cost, waiting]
                })
            });
            print_rows(csv, &["workload", "kind", "level", "cost_permille", "waiting_permille"], rows)?;
        }
        None => session.print_table(&depends_on(&report))?,
    }
    say_as_of(report.as_of, report.as_of_size, &report.stretch);
    Ok(())
}

fn depends_on(report: &SensitivityReport) -> Table {
    let headings = [
        ("workload", Align::Left),
        ("kind", Align::Left),
        ("sensitivity", Align::Left),
        ("share of cost", Align::Right),
        ("waiting", Align::Right),
    ];
    let mut table = Table::new(&headings).shrink_first(&["waiting", "share of cost", "workload"]);
    for workload in &report.workloads {
        for kind in &workload.kinds {
            let style = match kind.level {
                Sensitivity::Critical => Style::Red,
                Sensitivity::Moderate => Style::Yellow,
                Sensitivity::Low => Style::Plain,
                Sensitivity::Indifferent | Sensitivity::Unused => Style::Dim,
            };
            let plain = |text: String| (text, Style::Plain);
            table.styled([
                plain(workload.workload.clone()),
                plain(kind.kind.clone()),
                (word(kind.level), style),
                plain(permille(kind.cost_permille.into())),
                plain(permille(kind.waiting_permille.into())),
            ]);
        }
    }
    table
}
