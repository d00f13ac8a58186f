//! Records of the ledger as JSON. Amounts are strings with six decimals; exact amounts are fractions of steps.

use super::Directory;
use super::apps::unit_name;
use super::object::{Object, count, text};
use leasehold_model::body::{
    InvoiceIssued, LedgerAdjusted, LedgerCorrected, LedgerPosted, PaymentRecorded, PeriodClosed, PeriodStated,
    PostedLine, RecordSet, TaxLine,
};
use leasehold_model::ledger::{ExactSteps, Item, Leg, LineKey};
use leasehold_model::{Account, ProjectNo, UsageDelta, hex};
use serde_json::Value;

fn line_key<'d>(object: Object<'d>, directory: &Directory, key: &LineKey) -> Object<'d> {
    let (class, unit) = match key.item {
        Item::Class(class) => (Some(class), None),
        Item::Unit(unit) => (None, Some(unit)),
    };
    object
        .instant("hour", key.hour)
        .named("project", key.project)
        .named("pool", class.map(|_| key.pool))
        .named("class", class)
        .field("usage_unit", unit.map(|unit| unit_name(directory, unit)))
        .field("priority", class.map(|_| key.priority.word()))
        .field("priced_as", class.map(|_| key.priced.word()))
        .field("tag", text(key.tag.as_ref()))
        .named("app_instance", key.app_instance)
        .field("attachment_id", key.attachment.map(|attachment| count(attachment.0)))
        .field("control_plane", key.control_plane)
        .field("card_id", key.card)
}

fn amounts<'d>(object: Object<'d>, item: Item, usage: UsageDelta, exact: &ExactSteps) -> Object<'d> {
    let of = |is_it: bool| is_it.then(|| usage.0.to_string());
    let is_class = matches!(item, Item::Class(_));
    object
        .field("usage_quanta_ns", of(is_class))
        .field("usage_unit_parts", of(!is_class))
        .field("exact_steps", exact.to_string())
}

fn line(directory: &Directory, line: &PostedLine) -> Value {
    let object = line_key(Object::new(directory), directory, &line.key);
    amounts(object, line.key.item, line.usage, &line.exact).field("posted", line.posted.to_string()).done()
}

pub(super) fn posted<'d>(object: Object<'d>, directory: &'d Directory, posted: &LedgerPosted) -> Object<'d> {
    object
        .field("currency", posted.currency.as_str())
        .field("month", posted.month.to_string())
        .instant("through", posted.through)
        .field("complete", posted.complete)
        .count("as_of_size", posted.as_of_size)
        .field("previous_sequence", posted.previous.map(count))
        .field("lines", posted.lines.iter().map(|one| line(directory, one)).collect::<Value>())
        .field("residual", posted.residual.units().to_string())
}

fn leg(directory: &Directory, leg: &Leg) -> Value {
    let object = Object::new(directory).field("account", leg.account.word());
    let object = match leg.account {
        Account::Receivable(project) | Account::Adjustments(project) | Account::ProjectPrepaid(project) => {
            object.named("project", project)
        }
        Account::Invoiced(tenant) | Account::TenantPrepaid(tenant) => object.named("tenant", tenant),
        Account::Revenue(class) => object.named("class", class),
        Account::SharedRuntime(app_instance) => object.named("app_instance", app_instance),
        Account::UnitRevenue(unit) => object.field("usage_unit", unit_name(directory, unit)),
        Account::Rounding | Account::Tax | Account::CashClearing | Account::OperatorLoss | Account::ExpiredCredits => {
            object
        }
    };
    object.field("amount", leg.amount.to_string()).done()
}

fn legs(directory: &Directory, legs: &[Leg]) -> Value {
    legs.iter().map(|one| leg(directory, one)).collect()
}

pub(super) fn corrected<'d>(object: Object<'d>, directory: &'d Directory, put: &LedgerCorrected) -> Object<'d> {
    let of_line = put.line.as_ref().map(|line| {
        amounts(line_key(Object::new(directory), directory, &line.key), line.key.item, line.usage, &line.exact).done()
    });
    object
        .field("currency", put.currency.as_str())
        .field("month", put.month.to_string())
        .field("original_month", put.original_month.to_string())
        .field("corrects", put.corrects.to_string())
        .field("previous_sequence", put.previous.map(count))
        .field("line", of_line)
        .field("reversal", legs(directory, &put.reversal))
        .field("replacement", legs(directory, &put.replacement))
        .field("rounding", put.rounding.to_string())
        .field("residual", put.residual.units().to_string())
        .field("reason", put.reason.as_str())
}

pub(super) fn adjusted<'d>(object: Object<'d>, directory: &'d Directory, put: &LedgerAdjusted) -> Object<'d> {
    object
        .field("currency", put.currency.as_str())
        .field("month", put.month.to_string())
        .field("original_month", put.original_month.to_string())
        .field("previous_sequence", put.previous.map(count))
        .field("legs", legs(directory, &put.legs))
        .field("reason", put.reason.as_str())
}

pub(super) fn invoice<'d>(object: Object<'d>, directory: &'d Directory, issued: &InvoiceIssued) -> Object<'d> {
    let project = |(project, amount): &(ProjectNo, leasehold_model::Steps)| {
        Object::new(directory).named("project", *project).field("amount", amount.to_string()).done()
    };
    let tax = |line: &TaxLine| {
        Object::new(directory)
            .field("rate", line.rate.to_string())
            .field("posted", line.posted.to_string())
            .field("net", line.net.to_string())
            .field("tax", line.tax.to_string())
            .done()
    };
    object
        .field("number", issued.number.to_string())
        .field("month", issued.month.to_string())
        .field("currency", issued.currency.as_str())
        .field("projects", issued.projects.iter().map(project).collect::<Value>())
        .field("taxes", issued.taxes.iter().map(tax).collect::<Value>())
        .field("total", issued.total.to_string())
        .count("lines", issued.lines)
        .field("lines_hash", hex::encode(&issued.lines_hash))
        .instant("due_at", issued.due_at)
}

pub(super) fn stated<'d>(object: Object<'d>, directory: &'d Directory, stated: &PeriodStated) -> Object<'d> {
    let set =
        |set: &RecordSet| Object::new(directory).count("count", set.count).field("root", hex::encode(&set.root)).done();
    object
        .field("month", stated.month.to_string())
        .count("from_sequence", stated.from)
        .count("border_sequence", stated.border)
        .count("cut_sequence", stated.cut)
        .field("records", set(&stated.records))
        .field("common", set(&stated.common))
        .field("list_at_start", hex::encode(&stated.list_at_start))
        .field("list_at_border", hex::encode(&stated.list_at_border))
        .field("common_at_start", hex::encode(&stated.common_at_start))
        .field("common_at_border", hex::encode(&stated.common_at_border))
        .field("claimed_nodes", hex::encode(&stated.claimed_nodes))
}

pub(super) fn closed<'d>(object: Object<'d>, closed: &PeriodClosed) -> Object<'d> {
    object
        .field("month", closed.month.to_string())
        .count("invoices", closed.invoices)
        .count("credit_notes", closed.credit_notes)
        .field("statements", closed.statements.map(count))
}

pub(super) fn payment<'d>(object: Object<'d>, paid: &PaymentRecorded) -> Object<'d> {
    object
        .field("currency", paid.currency.as_str())
        .field("amount", paid.amount.to_string())
        .field("invoice", paid.invoice.map(|invoice| invoice.to_string()))
        .field("reference", paid.reference.as_str())
        .instant("received_at", paid.received_at)
}
