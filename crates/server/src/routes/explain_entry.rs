//! Where the amount of an entry comes from: leases, seconds, price, factors and arithmetic.

use super::books::stretch;
use super::explain_reports::OfReports;
use super::explain_share::of_share;
use super::ledger_scope::entry;
use crate::books::{consult, problem};
use crate::context::{Answer, Context, json};
use crate::show_ledger::{LedgerView, exact, too_large, unit_hours};
use leasehold_api::{ExplainedLease, ExplainedPrice, LedgerEntry, LedgerExplanation, Problem, codes};
use leasehold_books::{Books, Entry, EntryLine, LineLease, LineSource};
use leasehold_meter::Window;
use leasehold_model::ledger::{HOUR_NS, Item};
use leasehold_model::rate::{Decimal, Period, Prices};
use leasehold_model::{Account, ClassNo, ClassSpec, EntryId, EntryKind, Instant, Leg, Quanta, Steps, quantity};
use std::collections::BTreeSet;

/// The most leases that are listed.
const LEASES: usize = 1000;
const SECOND_NS: u64 = 1_000_000_000;

pub(super) async fn explain_entry(context: Context) -> Answer {
    let (text, caller) = (context.subject().to_owned(), context.caller().clone());
    let explained = consult(&context.app, context.caller(), move |app, books| {
        let found = entry(app, books, &caller, &text)?;
        let source = source(books, &found)?;
        let corrections = corrections(books, found.id)?;
        let is_share = found.kind == EntryKind::Share;
        let share = if is_share { books.share(found.id.sequence).map_err(|error| problem(&error))? } else { None };
        app.now.read(|state| {
            let view = LedgerView { app, state, books };
            let shown = view.entry(&found)?;
            let corrections = corrections.iter().map(|one| view.entry(one)).collect::<Result<Vec<_>, _>>()?;
            if let Some(line) = found.line.as_ref().filter(|line| matches!(line.key.item, Item::Unit(_))) {
                let payer = found.project.ok_or_else(|| codes::INTERNAL.problem("Usage without a project."))?;
                let reported = OfReports::new(app, books, payer, line)?;
                return reported.explain(&found, shown, corrections);
            }
            match (&found.line, source) {
                (Some(line), Some(source)) => {
                    let usage = OfUsage::new(books, line, &source)?;
                    usage.explain(&view, &found, shown, corrections, caller.sees_all())
                }
                _ => match share.as_ref().map(|share| view.share(share, false)) {
                    Some(share) => Ok(of_share(&found, shown, corrections, share)),
                    None => Ok(without_usage(&found, shown, corrections)),
                },
            }
        })
    });
    json(200, &explained.await?)
}

fn source(books: &Books, found: &Entry) -> Result<Option<LineSource>, Problem> {
    let (Some(line), Some(payer)) = (&found.line, found.project) else { return Ok(None) };
    books.line_source(payer, &line.key, LEASES).map(Some).map_err(|error| problem(&error))
}

/// The corrections that followed an entry: of itself, of what took it back or replaced it, and so on.
fn corrections(books: &Books, id: EntryId) -> Result<Vec<Entry>, Problem> {
    let mut all = Vec::new();
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        let Some(sequence) = books.correction_of(id) else { continue };
        for position in 0..3 {
            let id = EntryId { sequence, position };
            all.extend(books.entry(id).map_err(|error| problem(&error))?);
            open.push(id);
        }
    }
    all.sort_unstable_by_key(|entry| entry.id);
    Ok(all)
}

/// What an entry changes of prepaid credit: positive for what is added.
fn credit(found: &Entry) -> Steps {
    let is_credit = |leg: &&Leg| matches!(leg.account, Account::TenantPrepaid(_) | Account::ProjectPrepaid(_));
    found.legs.iter().find(is_credit).map_or(Steps::ZERO, |leg| -leg.amount)
}

/// Why an entry that does not come from usage has its amount.
fn reason_of(found: &Entry, shown: &LedgerEntry) -> String {
    let (amount, currency) = (&shown.amount, &shown.currency);
    let (invoice, corrects) = (shown.invoice.as_deref().unwrap_or("-"), shown.corrects.as_deref().unwrap_or("-"));
    match found.kind {
        EntryKind::Invoice => {
            format!("The project owes {amount} {currency} for the month; with {invoice} the tenant owes it.")
        }
        EntryKind::Tax => format!("Tax on the rounded net of {invoice}, rounded once: {amount} {currency}."),
        EntryKind::Rounding if shown.invoice.is_some() => {
            format!("The lines of {invoice} are rounded to the decimals of the currency: {amount} {currency}.")
        }
        EntryKind::Rounding => {
            format!(
                "The correction of {corrects} leaves less than one step of 0.000001 uncollected: {amount} {currency}."
            )
        }
        EntryKind::Payment => format!("A payment lowers what the tenant owes: {amount} {currency}."),
        EntryKind::Reversal => format!("The amount of {corrects}, taken back: {amount} {currency}."),
        EntryKind::Replacement => format!("Takes the place of {corrects}: {amount} {currency}."),
        EntryKind::TopUp => {
            format!("Credit of {} {currency} was added in advance. It pays for later invoices.", credit(found))
        }
        EntryKind::Lapse => {
            format!("{} {currency} of a credit were not spent when it ended, and are gone.", -credit(found))
        }
        EntryKind::PrepaidUse => {
            format!(
                "{} {currency} of prepaid credit pay for what was posted for the month of {invoice}. What is owed by it \
                 changes by {amount} {currency}, rounded to the decimals of the currency.",
                -credit(found)
            )
        }
        EntryKind::Usage | EntryKind::Share => format!("Posted: {amount} {currency}."),
        EntryKind::Adjustment => format!("Booked by hand: {amount} {currency}."),
    }
}

pub(super) fn without_usage(found: &Entry, shown: LedgerEntry, corrections: Vec<LedgerEntry>) -> LedgerExplanation {
    let arithmetic = reason_of(found, &shown);
    LedgerExplanation {
        entry: shown,
        hour: None,
        price: None,
        unit_price: None,
        usage_records: Vec::new(),
        more_usage_records: false,
        leases: Vec::new(),
        more_leases: false,
        charge_policies: Vec::new(),
        lease_unit_hours: "0.000000000".into(),
        other_unit_hours: "0.000000000".into(),
        arithmetic: vec![arithmetic],
        exact: None,
        share: None,
        corrections,
    }
}

/// The explanation of an entry that comes from usage.
struct OfUsage<'u> {
    line: &'u EntryLine,
    source: &'u LineSource,
    class: ClassNo,
    spec: &'u ClassSpec,
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / SECOND_NS, ns % SECOND_NS)
}

/// Without the zeros at its end.
fn short(decimal: &str) -> &str {
    match decimal.contains('.') {
        true => decimal.trim_end_matches('0').trim_end_matches('.'),
        false => decimal,
    }
}

fn per(period: Period) -> &'static str {
    match period {
        Period::Second => "second",
        Period::Hour => "hour",
        Period::Day => "day",
    }
}

impl<'u> OfUsage<'u> {
    fn new(books: &'u Books, line: &'u EntryLine, source: &'u LineSource) -> Result<Self, Problem> {
        let Item::Class(class) = line.key.item else {
            return Err(codes::INTERNAL.problem("A usage unit has no leases."));
        };
        let spec = books.class(class).ok_or_else(|| codes::INTERNAL.problem("The books lack a class."))?;
        Ok(Self { line, source, class, spec })
    }

    fn prices(&self) -> &Prices {
        &self.source.prices
    }
    fn unit_hours(&self, usage: i128) -> Result<String, Problem> {
        unit_hours(usage, self.spec.quanta_per_unit, 9)
    }
    fn price(&self) -> (Decimal, Period) {
        (self.prices().price(self.class, self.spec.kind), self.prices().period(self.class, self.spec.kind))
    }

    fn explain(
        &self,
        view: &LedgerView<'_>,
        found: &Entry,
        shown: LedgerEntry,
        corrections: Vec<LedgerEntry>,
        with_nodes: bool,
    ) -> Result<LedgerExplanation, Problem> {
        let key = &self.line.key;
        let of_leases = i128::try_from(self.source.usage).map_err(|_| too_large())?;
        // A reversal takes the usage of the line back.
        let sign = if found.kind == EntryKind::Reversal { -1 } else { 1 };
        let other = self.line.usage.0 * sign - of_leases;
        let leases = self.source.leases.iter().map(|lease| self.lease(view, lease, with_nodes));
        let (price, period) = self.price();
        Ok(LedgerExplanation {
            hour: Some(stretch(Window::new(key.hour, Instant(key.hour.0.saturating_add(HOUR_NS))))),
            price: Some(ExplainedPrice {
                rate_card: key.card,
                price: price.per(period),
                tier_factor: self.prices().tier_factor(self.spec.tier.as_ref()).to_string(),
                priority_factor: self.prices().priority_factor(key.priced).to_string(),
                currency: self.prices().currency.to_string(),
            }),
            unit_price: None,
            usage_records: Vec::new(),
            more_usage_records: false,
            leases: leases.collect::<Result<_, _>>()?,
            more_leases: self.source.has_more,
            charge_policies: self.policies().into_iter().collect(),
            lease_unit_hours: self.unit_hours(of_leases)?,
            other_unit_hours: self.unit_hours(other)?,
            arithmetic: self.arithmetic(found, &shown, of_leases, other)?,
            exact: Some(exact(&self.line.exact)),
            share: None,
            corrections,
            entry: shown,
        })
    }

    /// The charge policies under which these leases ended, or would end now.
    fn policies(&self) -> BTreeSet<u32> {
        self.source.leases.iter().filter_map(|lease| lease.policy_in_force).collect()
    }

    fn lease(&self, view: &LedgerView<'_>, lease: &LineLease, with_nodes: bool) -> Result<ExplainedLease, Problem> {
        let row = &lease.row;
        let from = lease.held.first().map_or(row.held.from, |part| part.from);
        let to = lease.held.last().map_or(row.held.from, |part| part.to);
        let usage = i128::from(row.quanta) * i128::from(lease.held_ns - lease.forgiven_ns);
        Ok(ExplainedLease {
            lease: row.lease.to_string(),
            node: with_nodes.then(|| view.node(row.node)),
            stretch: stretch(Window::new(from, to)),
            quantity: quantity::display(Quanta(row.quanta), self.spec),
            quanta: row.quanta,
            seconds: seconds(lease.held_ns),
            forgiven_seconds: seconds(lease.forgiven_ns),
            charge_policy: lease.charge_policy,
            end: row.end.word().to_owned(),
            unit_hours: self.unit_hours(usage)?,
        })
    }

    fn arithmetic(
        &self,
        found: &Entry,
        shown: &LedgerEntry,
        of_leases: i128,
        other: i128,
    ) -> Result<Vec<String>, Problem> {
        let (unit, key) = (self.spec.kind.unit(), &self.line.key);
        let (amount, currency) = (&shown.amount, &shown.currency);
        match (found.kind, &shown.corrects) {
            (EntryKind::Replacement, Some(corrects)) => {
                return Ok(vec![format!("Takes the place of {corrects}: {amount} {currency}.")]);
            }
            (EntryKind::Reversal, Some(corrects)) => {
                return Ok(vec![format!("The amount of {corrects}, taken back: {amount} {currency}.")]);
            }
            _ => {}
        }
        let count = self.source.leases.len();
        let leases = match (count, self.source.has_more) {
            (_, true) => format!("The first {count} leases"),
            (1, _) => "1 lease".into(),
            (count, _) => format!("{count} leases"),
        };
        let hours = |usage: i128| self.unit_hours(usage);
        let mut steps = vec![format!("{leases}: {} {unit}-hours are charged.", short(&hours(of_leases)?))];
        let policies: BTreeSet<u32> = self.source.leases.iter().filter_map(|lease| lease.charge_policy).collect();
        for policy in policies {
            steps.push(format!(
                "Charge policy {policy} was in force when leases of these ended, and does not charge all of their time."
            ));
        }
        if other != 0 {
            steps.push(format!(
                "The line has {} {unit}-hours more or less than that: idle capacity of claimed nodes, what was posted for \
                 the hour before, or what has changed since.",
                short(&hours(other)?)
            ));
        }
        let (price, period) = self.price();
        let all = hours(self.line.usage.0)?;
        let mut product = match period {
            Period::Hour => format!("{} {unit}-hours × {price} {currency} per hour", short(&all)),
            Period::Second => format!("{} {unit}-hours × 3600 s/h × {price} {currency} per second", short(&all)),
            Period::Day => format!("{} {unit}-hours ÷ 24 h/d × {price} {currency} per {}", short(&all), per(period)),
        };
        if let Some(tier) = &self.spec.tier {
            let factor = self.prices().tier_factor(Some(tier));
            product += &format!(" × {factor} (tier {tier})");
        }
        product += &format!(" × {} (priority {})", self.prices().priority_factor(key.priced), key.priced);
        steps.push(format!("{product} = {} {currency} exactly.", exact(&self.line.exact)));
        steps.push(format!(
            "Posted: {amount} {currency}. The lines of a posting are rounded together to six decimals, and what is left \
             is carried into the next posting of the payer."
        ));
        Ok(steps)
    }
}
