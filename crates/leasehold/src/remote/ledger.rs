//! `leasehold ledger …`.

use super::details::{Details, or_dash, word};
use super::failure::Failed;
use super::session::Session;
use crate::cli::ledger::{CorrectArgs, DisputeArgs, LedgerCommand, LegArg, OpenArgs, OwnerArgs, PostArgs};
use crate::numbers::{counted, thousands};
use crate::table::{Align, Table};
use crate::term::{self, Paint, Style};
use crate::time_format::to_the_second;
use leasehold_api::{
    AccountKind, CorrectionPut, DraftPayer, EntryKind, ExplainedLease, ExplainedUsage, LedgerAmount, LedgerBalance,
    LedgerDraft, LedgerEntry, LedgerExplanation, LedgerLeg, LedgerLine, LedgerStatus, MonthText, NewCorrection,
    NewDispute, NewLedgerEntry, NewLeg, OpenLedger, When,
};
use leasehold_client::{Answer, Call};

pub(super) async fn run(session: &Session, command: LedgerCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        LedgerCommand::Status => session.show(client.ledger_status(), |status| status_text(session, status)).await,
        LedgerCommand::Open(args) => open(session, args).await,
        LedgerCommand::Settle(args) => {
            let text = |settled: &leasehold_api::LedgerSettled| {
                let left = match settled.hours_unsettled {
                    0 => String::new(),
                    left => format!("; {} could not be settled yet", counted(left, "hour")),
                };
                format!(
                    "{} settled{left}; usage before {} is posted\n",
                    counted(settled.hours, "hour"),
                    to_the_second(settled.settled_through)
                )
            };
            session.change(client.settle_ledger(), &args.change, text).await
        }
        LedgerCommand::Draft(args) => {
            session.show(of(client.ledger_draft(), &args.of), |draft| draft_text(session, draft)).await
        }
        LedgerCommand::Entries(args) => {
            let call = of(client.list_entries(), &args.of).maybe("month", args.month);
            session.list(call.maybe("kind", args.kind).maybe("account", args.account), entries).await
        }
        LedgerCommand::Show(args) => session.show(client.show_entry(args.entry), |entry| one(session, entry)).await,
        LedgerCommand::Explain(args) => {
            session.show(client.explain_entry(args.entry), |explained| explanation(session, explained)).await
        }
        LedgerCommand::Post(args) => post(session, args).await,
        LedgerCommand::Balances(args) => {
            session.list(of(client.list_balances(), &args.of).maybe("account", args.account), balances).await
        }
        LedgerCommand::Correct(args) => correct(session, args).await,
        LedgerCommand::Dispute(args) => dispute(session, args).await,
        LedgerCommand::Disputes(args) => {
            session.list(client.list_disputes().maybe("tenant", args.tenant), entries).await
        }
    }
}

fn of<A: Answer>(call: Call<A>, args: &OwnerArgs) -> Call<A> {
    call.maybe("tenant", args.tenant.as_ref())
        .maybe("project", args.project.as_ref())
        .maybe("currency", args.currency.as_ref())
}

/// An amount with commas between thousands.
pub(super) fn money(amount: &LedgerAmount) -> String {
    let (sign, digits) = amount.0.strip_prefix('-').map_or(("", amount.0.as_str()), |digits| ("-", digits));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    match whole.parse() {
        Ok(number) => format!("{sign}{}.{part}", thousands(number)),
        Err(_) => amount.0.clone(),
    }
}

fn status_text(session: &Session, status: &LedgerStatus) -> String {
    let paint = session.paint;
    if !status.open {
        return "The ledger is not open; `leasehold ledger open` opens it.\n".into();
    }
    let when = |at: Option<When>| or_dash(at.map(to_the_second));
    let unsettled = match (status.hours_unsettled, status.lagging) {
        (0, _) => "none".into(),
        (hours, false) => counted(hours, "hour"),
        (hours, true) => paint.paint(Style::Red, &format!("{}, settlement lags", counted(hours, "hour"))),
    };
    Details::new()
        .add("posts usage since", when(status.opened_from))
        .add("settled through", when(status.settled_through))
        .add("not settled yet", unsettled)
        .maybe("trouble", status.trouble.as_ref().map(|why| paint.paint(Style::Red, why)))
        .add("first open month", or_dash(status.first_open_month.as_ref()))
        .maybe("being closed", status.closing_month.as_ref())
        .maybe("entries", status.entries.map(thousands))
        .add("disputed entries", thousands(status.disputes))
        .maybe("changed after correction", changed(paint, &status.changed_after_correction))
        .text(paint)
}

/// Entries that somebody should look at.
fn changed(paint: Paint, entries: &[String]) -> Option<String> {
    let first = entries.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
    let more = if entries.len() > 3 { ", …" } else { "" };
    (!entries.is_empty()).then(|| paint.paint(Style::Yellow, &format!("{first}{more}")).to_string())
}

async fn open(session: &Session, args: OpenArgs) -> Result<(), Failed> {
    let from = session.times.past("--from", args.from.as_ref())?;
    let call = session.client.open_ledger(&OpenLedger { from });
    let text = |opened: &leasehold_api::LedgerOpened| {
        format!("the ledger is open; usage is posted from {} on\n", to_the_second(opened.from))
    };
    session.change(call, &args.change, text).await
}

/// What a line is about, in a few words.
fn about(line: &LedgerLine) -> String {
    let mut words = match (&line.class, &line.pool, line.priority) {
        (Some(class), Some(pool), Some(priority)) => format!("{class} in {pool}, {priority}"),
        _ => line.unit.clone(),
    };
    if let Some(priced_as) = line.priced_as.filter(|_| line.priced_as != line.priority) {
        words += &format!(" priced as {priced_as}");
    }
    if let Some(app) = &line.app_instance {
        words += &format!(", app {app}");
    }
    if line.control_plane {
        words += ", control plane";
    }
    words
}

/// How much it is: unit-hours, or the quantity of a usage unit.
fn amount_of(line: &LedgerLine) -> String {
    let hours = line.unit_hours.as_deref().map(six);
    hours.or_else(|| line.quantity.clone()).unwrap_or_default()
}

fn draft_text(session: &Session, draft: &LedgerDraft) -> String {
    term::say(&format!(
        "leasehold: as of {}; usage before {} is posted already\n",
        to_the_second(draft.as_of),
        to_the_second(draft.settled_through)
    ));
    if draft.payers.is_empty() {
        return "Nothing is waiting to be posted.\n".into();
    }
    let headings = [
        ("tenant", Align::Left),
        ("payer", Align::Left),
        ("hour", Align::Left),
        ("usage", Align::Left),
        ("unit-hours", Align::Right),
        ("amount", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["tenant", "hour"]);
    for payer in &draft.payers {
        for line in &payer.lines {
            table.row([
                payer.tenant.clone(),
                payer.payer.clone(),
                to_the_second(line.line.hour),
                about(&line.line),
                amount_of(&line.line),
                money(&line.amount),
                payer.currency.clone(),
            ]);
        }
        let DraftPayer { tenant, payer: name, currency, amount, .. } = payer;
        let bold = |text: String| (text, Style::Bold);
        table.styled([
            bold(tenant.clone()),
            bold(name.clone()),
            bold("total".into()),
            bold(String::new()),
            bold(String::new()),
            bold(money(amount)),
            bold(currency.clone()),
        ]);
    }
    let totals = draft.totals.iter().map(|total| format!("{} {}", money(&total.amount), total.currency));
    let totals = totals.collect::<Vec<_>>().join(", ");
    format!("{}\n\n  in all  {totals}\n", session.lines(&table).join("\n"))
}

/// Six decimals are enough for people.
fn six(decimal: &str) -> String {
    match decimal.split_once('.') {
        Some((_, part)) if part.len() > 6 => decimal[..decimal.len() - (part.len() - 6)].to_owned(),
        _ => decimal.to_owned(),
    }
}

fn kind_style(entry: &LedgerEntry) -> Style {
    match (entry.disputed, &entry.corrected_by) {
        (true, _) => Style::Red,
        (false, Some(_)) => Style::Dim,
        (false, None) => Style::Plain,
    }
}

fn entries(entries: &[LedgerEntry]) -> Table {
    let headings = [
        ("entry", Align::Left),
        ("at", Align::Left),
        ("kind", Align::Left),
        ("tenant", Align::Left),
        ("project", Align::Left),
        ("about", Align::Left),
        ("month", Align::Left),
        ("amount", Align::Right),
        ("", Align::Left),
        ("", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["at", "about", "tenant", "month", "project"]);
    for entry in entries {
        let style = kind_style(entry);
        let mark = match (entry.disputed, &entry.corrected_by) {
            (true, _) => "disputed",
            (false, Some(_)) => "corrected",
            (false, None) => "",
        };
        let about = match (&entry.line, &entry.invoice, &entry.reference, &entry.reason) {
            (Some(line), ..) => format!("{} {}", hour(line.hour), about(line)),
            (None, _, Some(reference), _) => match credit(entry) {
                Some(credit) => format!("{reference}, credit of {credit}"),
                None => reference.clone(),
            },
            (None, None, None, None) if entry.kind == EntryKind::Lapse => {
                format!("credit of {}", or_dash(credit(entry)))
            }
            (None, Some(invoice), ..) => invoice.clone(),
            (None, None, None, reason) => or_dash(reason.as_ref()),
        };
        let cells = [
            entry.id.clone(),
            to_the_second(entry.at),
            entry.kind.to_string(),
            entry.tenant.clone(),
            or_dash(entry.project.as_ref()),
            about,
            or_dash(entry.month.as_ref()),
            money(&entry.amount),
            entry.currency.clone(),
            mark.to_owned(),
        ];
        table.styled(cells.map(|cell| (cell, style)));
    }
    table
}

/// What an entry adds to prepaid credit, or takes off; what is owed may stay as it is.
fn credit(entry: &LedgerEntry) -> Option<String> {
    let leg = entry.legs.iter().find(|leg| leg.account == AccountKind::Prepaid)?;
    Some(money(&LedgerAmount(match leg.amount.0.strip_prefix('-') {
        Some(added) => added.to_owned(),
        None => format!("-{}", leg.amount.0),
    })))
}

/// `11-17 14:00`
fn hour(at: When) -> String {
    let text = to_the_second(at);
    text.get(5..16).map_or(text.clone(), |part| part.replace('T', " "))
}

fn legs(legs: &[LedgerLeg]) -> Table {
    let mut table = Table::new(&[("account", Align::Left), ("of", Align::Left), ("amount", Align::Right)]);
    for leg in legs {
        let of = leg.project.as_ref().or(leg.tenant.as_ref()).or(leg.class.as_ref());
        let of = of.or(leg.usage_unit.as_ref()).or(leg.app_instance.as_ref());
        table.row([leg.account.to_string(), or_dash(of), money(&leg.amount)]);
    }
    table
}

fn one(session: &Session, entry: &LedgerEntry) -> String {
    let amount = format!("{} {}", money(&entry.amount), entry.currency);
    let month = entry.month.as_ref().map(|month| match &entry.original_month {
        Some(original) if original != month => format!("{month} (about {original})"),
        _ => month.to_string(),
    });
    let mut details = Details::new()
        .add("entry", &entry.id)
        .add("kind", entry.kind)
        .add("amount", amount)
        .add("booked at", to_the_second(entry.at))
        .maybe("booked in", month)
        .add("tenant", &entry.tenant)
        .maybe("project", entry.project.as_ref());
    if let Some(line) = &entry.line {
        details = details
            .add("hour", to_the_second(line.hour))
            .maybe("usage", line.unit_hours.as_ref().map(|hours| format!("{hours} {}-hours", line.unit)))
            .maybe("usage", line.quantity.as_ref().map(|quantity| format!("{quantity} {}", line.unit)))
            .add("of", about(line))
            .maybe("app", anchors(line))
            .maybe("held by", (Some(&line.project) != entry.project.as_ref()).then_some(&line.project))
            .maybe("accounting tag", line.accounting_tag.as_ref())
            .maybe("unit price", line.unit_price.map(|price| price.to_string()))
            .maybe("rate card", line.class.as_ref().map(|_| rate_card(line.rate_card)))
            .add("exact cost", format!("{} {}", line.exact, entry.currency));
    }
    let text = details
        .maybe("corrects", entry.corrects.as_ref())
        .maybe("corrected by", entry.corrected_by.as_ref())
        .maybe("reason", entry.reason.as_ref())
        .maybe("invoice", entry.invoice.as_ref())
        .maybe("reference", entry.reference.as_ref())
        .maybe("idempotency key", entry.idempotency_key.as_ref())
        .maybe("idempotency key", entry.idempotency_key_hex.as_ref().map(|hex| format!("{hex} (hexadecimal)")))
        .maybe("disputed", entry.disputed.then(|| session.paint.paint(Style::Red, "yes")))
        .text(session.paint);
    format!("{text}\n{}\n", session.lines(&legs(&entry.legs)).join("\n"))
}

/// What the app instance of a line is.
fn anchors(line: &LedgerLine) -> Option<String> {
    let slug = line.app_slug.as_ref()?;
    let words = [line.operating_mode.map(word), line.control_plane_scope.map(word), line.runtime_backend.map(word)];
    let [mode, scope, backend] = words.map(|word| word.unwrap_or_default());
    Some(format!("{slug} on {backend}, {mode}, scope {scope}"))
}

fn rate_card(card: Option<u32>) -> String {
    card.map_or_else(|| "built-in".to_owned(), |card| card.to_string())
}

/// The usage records behind a line.
fn reports(unit: &str, records: &[ExplainedUsage]) -> Table {
    let headings = [
        ("record", Align::Right),
        ("source", Align::Left),
        ("id", Align::Left),
        ("from", Align::Left),
        ("to", Align::Left),
        (unit, Align::Right),
        ("supersedes", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["id", "source", "supersedes"]);
    for record in records {
        table.row([
            record.sequence.to_string(),
            record.source.clone(),
            record.id.clone(),
            to_the_second(record.stretch.from),
            to_the_second(record.stretch.to),
            record.quantity.clone(),
            or_dash(record.supersedes.as_ref()),
        ]);
    }
    table
}

fn leases(unit: &str, leases: &[ExplainedLease]) -> Table {
    let headings = [
        ("lease", Align::Left),
        ("from", Align::Left),
        ("to", Align::Left),
        (unit, Align::Right),
        ("seconds", Align::Right),
        ("not charged", Align::Right),
        ("unit-hours", Align::Right),
        ("end", Align::Left),
        ("node", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["node", "end", "not charged"]);
    for lease in leases {
        table.row([
            lease.lease.clone(),
            to_the_second(lease.stretch.from),
            to_the_second(lease.stretch.to),
            lease.quantity.clone(),
            six(&lease.seconds),
            match lease.charge_policy {
                Some(policy) => format!("{} by policy {policy}", six(&lease.forgiven_seconds)),
                None => "-".into(),
            },
            six(&lease.unit_hours),
            lease.end.clone(),
            or_dash(lease.node.as_ref()),
        ]);
    }
    table
}

fn explanation(session: &Session, explained: &LedgerExplanation) -> String {
    let mut text = one(session, &explained.entry);
    if !explained.leases.is_empty() {
        let unit = explained.entry.line.as_ref().map_or("quantity", |line| line.unit.as_str());
        text += &format!("\nLeases\n\n{}\n", session.lines(&leases(unit, &explained.leases)).join("\n"));
        if explained.more_leases {
            text += "  There are more leases; these are the first.\n";
        }
        if !explained.charge_policies.is_empty() {
            let all: Vec<String> = explained.charge_policies.iter().map(u32::to_string).collect();
            text += &format!("\n  Charge policies in force when these ended: {}\n", all.join(", "));
        }
    }
    if !explained.usage_records.is_empty() {
        let unit = explained.entry.line.as_ref().map_or("quantity", |line| line.unit.as_str());
        text += &format!("\nUsage records\n\n{}\n", session.lines(&reports(unit, &explained.usage_records)).join("\n"));
        if explained.more_usage_records {
            text += "  There are more usage records; these are the first.\n";
        }
    }
    text += "\nArithmetic\n\n";
    for step in &explained.arithmetic {
        text += &format!("  {step}\n");
    }
    if !explained.corrections.is_empty() {
        text += &format!("\nCorrections\n\n{}\n", session.lines(&entries(&explained.corrections)).join("\n"));
    }
    text
}

/// What follows the colon of a revenue account is a class, or a usage unit after `unit:`.
fn new_leg(leg: LegArg) -> NewLeg {
    let usage_unit = leg.class.as_deref().and_then(|class| class.strip_prefix("unit:")).map(str::to_owned);
    let class = leg.class.filter(|_| usage_unit.is_none());
    NewLeg { account: leg.account, class, usage_unit, amount: LedgerAmount(leg.amount) }
}

async fn post(session: &Session, args: PostArgs) -> Result<(), Failed> {
    let legs = args.legs.into_iter();
    let new = NewLedgerEntry {
        project: args.project,
        tenant: args.tenant,
        currency: args.currency,
        original_month: args.month.map(|month| MonthText(month.to_string())),
        legs: legs.map(new_leg).collect(),
        reason: args.reason,
    };
    session.change(session.client.post_entry(&new), &args.change, |put| one(session, &put.entry)).await
}

fn balances(balances: &[LedgerBalance]) -> Table {
    let headings = [
        ("account", Align::Left),
        ("tenant", Align::Left),
        ("project", Align::Left),
        ("class, unit or runtime", Align::Left),
        ("balance", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["class, unit or runtime", "tenant"]);
    for balance in balances {
        table.row([
            word(balance.account),
            or_dash(balance.tenant.as_ref()),
            or_dash(balance.project.as_ref()),
            or_dash(balance.class.as_ref().or(balance.usage_unit.as_ref()).or(balance.app_instance.as_ref())),
            money(&balance.balance),
            balance.currency.clone(),
        ]);
    }
    table
}

async fn correct(session: &Session, args: CorrectArgs) -> Result<(), Failed> {
    let new = NewCorrection { entry: args.entry, amount: args.amount.map(LedgerAmount), reason: args.reason };
    let text = |put: &CorrectionPut| {
        let currency = put.entries.first().map_or("", |entry| entry.currency.as_str());
        let change = format!("{} was corrected; the change is {} {currency}\n\n", put.corrects, money(&put.change));
        change + &session.lines(&entries(&put.entries)).join("\n") + "\n"
    };
    session.change(session.client.correct_entry(&new), &args.change, text).await
}

async fn dispute(session: &Session, args: DisputeArgs) -> Result<(), Failed> {
    let new = NewDispute { entry: args.entry, reason: args.reason };
    let (call, done) = match args.close {
        false => (session.client.dispute_entry(&new), "is disputed"),
        true => (session.client.close_dispute(&new), "is no longer disputed"),
    };
    session.change(call, &args.change, |put| format!("{} {done}\n", put.entry.id)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_grouped_and_keep_their_decimals() {
        let shown = |text: &str| money(&LedgerAmount(text.into()));
        assert_eq!([shown("1234567.500000"), shown("-0.000001")], ["1,234,567.500000", "-0.000001"]);
        assert_eq!([six("1.123456789"), six("-2.500000"), six("7")], ["1.123456", "-2.500000", "7"]);
    }
}
