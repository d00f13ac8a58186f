//! `leasehold period …`.

use super::details::{Details, or_dash};
use super::failure::Failed;
use super::ledger::money;
use super::session::{Session, keyed};
use crate::cli::ledger::{PeriodCloseArgs, PeriodCommand};
use crate::numbers::{counted, thousands};
use crate::output::{print, print_json};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::term::{self, Style};
use crate::time_format::to_the_second;
use leasehold_api::{InvoiceTotal, Period, PeriodDetail, PeriodState};
use serde_json::json;
use std::time::Duration;

/// How often the progress of a close is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

pub(super) async fn run(session: &Session, command: PeriodCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        PeriodCommand::List => session.list(client.list_periods(), periods).await,
        PeriodCommand::Show(args) => {
            session.show(client.show_period(args.month), |period| detail(session, period)).await
        }
        PeriodCommand::Close(args) => close(session, args).await,
    }
}

fn style(state: PeriodState) -> Style {
    match state {
        PeriodState::Open => Style::Green,
        PeriodState::Closing => Style::Yellow,
        PeriodState::Closed => Style::Dim,
    }
}

fn periods(periods: &[Period]) -> Table {
    let headings = [
        ("month", Align::Left),
        ("state", Align::Left),
        ("closed at", Align::Left),
        ("invoices", Align::Right),
        ("to be issued", Align::Right),
    ];
    let mut table = Table::new(&headings);
    for period in periods {
        table.styled([
            (period.month.to_string(), Style::Plain),
            (period.state.to_string(), style(period.state)),
            (or_dash(period.closed_at.map(to_the_second)), Style::Plain),
            (thousands(period.invoices_issued), Style::Plain),
            (thousands(period.invoices_due), Style::Plain),
        ]);
    }
    table
}

fn drafts(drafts: &[InvoiceTotal]) -> Table {
    let headings = [
        ("tenant", Align::Left),
        ("lines", Align::Right),
        ("posted", Align::Right),
        ("net", Align::Right),
        ("tax", Align::Right),
        ("total", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["posted", "lines"]);
    for draft in drafts {
        table.row([
            draft.tenant.clone(),
            thousands(draft.lines),
            money(&draft.posted),
            money(&draft.net),
            money(&draft.tax),
            money(&draft.total),
            draft.currency.clone(),
        ]);
    }
    table
}

fn refused(paint: crate::term::Paint, count: u64) -> String {
    let text =
        format!("{}, see `leasehold usage-record refused` for which were accepted later", counted(count, "report"));
    paint.paint(Style::Yellow, &text).to_string()
}

fn detail(session: &Session, period: &PeriodDetail) -> String {
    let paint = session.paint;
    let of = &period.period;
    let missing = period.missing.iter().map(|one| one.detail.trim_end_matches('.'));
    let disputes = match period.disputes.len() as u64 {
        0 => None,
        count => {
            let first = period.disputes.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
            let more = if count > 3 { ", …" } else { "" };
            Some(paint.paint(Style::Yellow, &format!("{} disputed: {first}{more}", entries(count))))
        }
    };
    let can_close = match (of.state, period.can_close) {
        (PeriodState::Closed, _) => None,
        (_, true) => Some(paint.paint(Style::Green, "yes")),
        (_, false) => Some("no".to_owned()),
    };
    let mut text = Details::new()
        .add("month", &of.month)
        .add("state", paint.paint(style(of.state), &of.state.to_string()))
        .maybe("closed at", of.closed_at.map(to_the_second))
        .maybe("can be closed", can_close)
        .maybe("settled through", (of.state == PeriodState::Open).then(|| to_the_second(period.settled_through)))
        .maybe("not settled yet", (period.hours_unsettled > 0).then(|| counted(period.hours_unsettled, "hour")))
        .maybe("disputes", disputes)
        .maybe("refused usage", (period.refused_usage > 0).then(|| refused(paint, period.refused_usage)))
        .add("invoices", format!("{} issued, {} to be issued", of.invoices_issued, of.invoices_due))
        .maybe("statements", (of.state != PeriodState::Open).then(|| thousands(of.statements)))
        .text(paint);
    for one in missing {
        text += &format!("  {}\n", paint.paint(Style::Yellow, &format!("missing: {one}")));
    }
    if !period.drafts.is_empty() {
        text += &format!("\nInvoices that would be issued\n\n{}\n", session.lines(&drafts(&period.drafts)).join("\n"));
    }
    text
}

fn entries(count: u64) -> String {
    if count == 1 { "1 entry".into() } else { format!("{} entries", thousands(count)) }
}

/// The progress of a close; draws nothing without a terminal.
struct Progress(bool);

impl Progress {
    const WIDTH: usize = 30;

    fn draw(&self, period: &Period) {
        if self.0 {
            let (done, all) = (period.invoices_issued, period.invoices_issued + period.invoices_due);
            let bar = term::fine_bar(done, all, Self::WIDTH);
            let then = match (period.invoices_due, period.statements) {
                (0, 0) => ", reading the records of the month".to_owned(),
                (0, statements) => format!(", {statements} statements"),
                _ => String::new(),
            };
            let text = format!("closing {}  {bar:<30}  {done} of {all} invoices{then}", period.month);
            term::say(&format!("\r{text}\x1b[K"));
        }
    }
    fn clear(&self) {
        if self.0 {
            term::say("\r\x1b[K");
        }
    }
}

async fn close(session: &Session, args: PeriodCloseArgs) -> Result<(), Failed> {
    let client = &session.client;
    let before = client.show_period(args.month).await?;
    if !args.yes {
        if session.json {
            let preview = serde_json::to_value(&before).map_err(|error| cannot_show(&error))?;
            return Ok(print_json(&json!({ "preview": true, "period": preview }))?);
        }
        print(&detail(session, &before))?;
        if before.can_close {
            term::say(&format!("leasehold: {} would be closed for ever; add --yes to do it\n", args.month));
        }
        return Ok(());
    }
    let closing = keyed(client.close_period(args.month), &args.change).await?;
    if args.no_wait {
        let shown = serde_json::to_value(&closing).map_err(|error| cannot_show(&error))?;
        match session.json {
            true => print_json(&shown)?,
            false => print(&format!("{} is being closed (record {})\n", args.month, closing.sequence))?,
        }
        return Ok(());
    }
    let progress = Progress(term::drawable().is_some());
    let mut period = closing.period;
    let mut said = None;
    while period.state == PeriodState::Closing {
        progress.draw(&period);
        tokio::time::sleep(LOOK_EVERY).await;
        // What stands in the way may pass: the close goes on by itself, and so does waiting for it.
        let trouble = client.ledger_status().await?.trouble;
        if trouble.is_some() && trouble != said {
            progress.clear();
            term::say(&format!("leasehold: {} is not closed yet: {}\n", args.month, trouble.as_deref().unwrap_or("")));
            said = trouble;
        }
        period = client.show_period(args.month).await?.period;
    }
    progress.clear();
    if session.json {
        return Ok(print_json(&client.show_period(args.month).json().await?)?);
    }
    let invoices = counted(period.invoices_issued, "invoice");
    Ok(print(&format!(
        "{} is closed; {invoices} issued; see `leasehold invoice list --month {}`\n",
        args.month, args.month
    ))?)
}

fn cannot_show(error: &serde_json::Error) -> Problem {
    Problem::refused("output_failed", format!("the answer cannot be shown: {error}"))
}
