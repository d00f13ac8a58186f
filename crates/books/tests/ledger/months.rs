//! Closing months, invoices, tax and payments.

use crate::world::{EUR, World, at, name, rate, steps};
use leasehold_engine::Command;
use leasehold_engine::command::{IssueInvoice, PutTaxRate, RecordPayment};
use leasehold_model::{Account, InvoiceNo, Month, ProjectNo, Steps, TenantNo};

fn tax(tenant: u32, from: Option<&str>, text: &str) -> Command {
    let from = from.map(|month| month.parse().expect("a month"));
    Command::PutTaxRate(PutTaxRate { tenant: TenantNo(tenant), from, rate: rate(text) })
}

fn november() -> Month {
    "2026-11".parse().expect("a month")
}

/// One GPU-hour at 36.00 and one at 0.015 a second for one second more: 36.015; with 19 % tax.
/// By hand: posted 36.015000, net 36.02 (half to even: 36.015 lies between 36.01 and 36.02, and 2 is even), rounding
/// 0.005000, tax 6.8438 is 6.84, total 42.86.
#[test]
fn an_invoice_with_every_figure_by_hand() {
    let mut world = World::new();
    world.ok(tax(0, None, "0.19"));
    world.wait("10:00");
    world.lease(0, 0, 7, 3600, |_| {});
    world.lease(0, 1, 7, 1, |request| request.priority = leasehold_model::Priority::Guaranteed);
    world.lease(1, 1, 7, 60, |_| {});
    world.wait("12-01 00:05").close("2026-11");
    let heads = world.books.invoices();
    let told: Vec<String> =
        heads.iter().map(|head| format!("{} {} {} {}", head.number, head.tenant, head.month, head.total)).collect();
    assert_eq!(told, ["INV-000001 tenant-0 2026-11 42.860000", "INV-000002 tenant-1 2026-11 0.600000"]);
    let invoice = world.books.invoice(heads[0].number).expect("readable").expect("it is there");
    let lines: Vec<String> = invoice.lines.iter().map(|(_, line)| line.posted.to_string()).collect();
    assert_eq!(lines, ["36.000000", "0.015000"]);
    let [line] = &invoice.taxes[..] else { panic!("one rate") };
    let figures = [line.posted, line.net, line.tax].map(|amount| amount.to_string());
    assert_eq!(figures, ["36.015000", "36.020000", "6.840000"]);
    let balance = |account| world.books.account_balance(account, EUR).to_string();
    assert_eq!(balance(Account::Invoiced(TenantNo(0))), "42.860000");
    assert_eq!(balance(Account::Tax), "-6.840000");
    assert_eq!(balance(Account::Rounding), "-0.005000");
    assert_eq!(balance(Account::Receivable(ProjectNo(0))), "0.000000");
    world.check();
}

/// What is given back of November carries the tax of November, though December has another rate.
#[test]
fn adjustments_carry_the_tax_of_their_month() {
    let mut world = World::new();
    world.ok(tax(0, None, "0.19"));
    world.ok(tax(0, Some("2026-12"), "0.07"));
    world.wait("22:00");
    world.lease(0, 0, 7, 7200, |_| {});
    world.wait("12-01 00:05").close("2026-11");
    world.wait("12-01 00:10");
    world.lose(0, "23:30");
    world.wait("12-01 10:00");
    world.lease(0, 1, 7, 3600, |_| {});
    world.wait("01-01 00:05").close("2026-12");
    let head = world.books.invoices().last().expect("two").clone();
    let invoice = world.books.invoice(head.number).expect("readable").expect("it is there");
    let taxes: Vec<String> =
        invoice.taxes.iter().map(|line| format!("{} {} {} {}", line.rate, line.posted, line.net, line.tax)).collect();
    assert_eq!(taxes, ["0.07 36.000000 36.000000 2.520000", "0.19 -18.000000 -18.000000 -3.420000"]);
    assert_eq!(head.total.to_string(), "17.100000");
    world.check();
}

#[test]
fn months_are_closed_in_order_once_and_when_they_are_over() {
    let mut world = World::new();
    world.wait("10:00");
    world.lease(0, 0, 7, 3600, |_| {});
    world.wait("11:00").settle();
    let close = |month: &str| Command::ClosePeriod(month.parse().expect("a month"));
    assert_eq!(world.refused(close("2026-11")), "period_not_over");
    assert_eq!(world.refused(close("2026-10")), "no_such_period");
    world.wait("12-01 00:05");
    assert_eq!(world.refused(close("2026-11")), "period_not_settled");
    world.wait("01-02 00:00").settle();
    assert_eq!(world.refused(close("2026-12")), "period_out_of_order");
    world.ok(close("2026-11"));
    assert_eq!(world.refused(close("2026-11")), "period_is_closing");
    assert_eq!(world.refused(Command::FinishPeriod(november())), "invoice_missing");
    assert_eq!(world.refused(Command::FinishPeriod(november().next())), "no_period_closing");
    let good = world.books.invoices_to_issue(leasehold_model::Span::ZERO).expect("readable").remove(0);
    for change in [
        |invoice: &mut IssueInvoice| invoice.projects[0].1 = Steps(1),
        |invoice: &mut IssueInvoice| invoice.taxed[0].1 = Steps(1),
        |invoice: &mut IssueInvoice| invoice.projects.clear(),
        |invoice: &mut IssueInvoice| invoice.lines = 0,
    ] {
        let mut wrong = good.clone();
        change(&mut wrong);
        assert_eq!(world.refused(Command::IssueInvoice(wrong)), "invoice_mismatch");
    }
    world.ok(Command::IssueInvoice(good.clone()));
    assert_eq!(world.refused(Command::IssueInvoice(good)), "invoice_exists");
    // A successor finishes it.
    world.finish(november());
    assert_eq!(world.refused(close("2026-11")), "period_closed");
    world.close("2026-12");
    assert_eq!(world.books.invoices().len(), 1, "an empty month has no invoices");
    world.check();
}

/// What is recorded after the cut belongs to the next month, though the month is not finished yet.
#[test]
fn the_cut_divides_the_months() {
    let mut world = World::new();
    world.wait("23:00");
    world.lease(0, 0, 7, 3600, |_| {});
    world.wait("12-01 00:05").settle();
    world.ok(Command::ClosePeriod(november()));
    world.lose(0, "23:30");
    assert_eq!(world.books.closing_settlement().expect("readable").expect("it is closing").postings, []);
    world.finish(november());
    assert_eq!(world.books.invoices()[0].total.to_string(), "36.000000");
    world.wait("12-01 01:00").settle();
    assert_eq!(world.check().owes(0), "-18.000000");
}

#[test]
fn payments_lower_what_is_owed() {
    let mut world = World::new();
    world.wait("10:00");
    world.lease(0, 0, 7, 3600, |_| {});
    world.wait("12-01 00:05").close("2026-11");
    let pay = |amount: &str, reference: &str, invoice: Option<&str>| {
        Command::RecordPayment(RecordPayment {
            tenant: TenantNo(0),
            currency: EUR,
            amount: steps(amount),
            invoice: invoice.map(|number| InvoiceNo::parse(number).expect("a number")),
            reference: name(reference),
            received_at: None,
        })
    };
    let Command::RecordPayment(early) = pay("1", "r1", None) else { panic!("a payment") };
    let early = Command::RecordPayment(RecordPayment { received_at: Some(at("12-02 00:00")), ..early });
    for (code, command) in [
        ("payment_in_future", early),
        ("bad_payment_amount", pay("0", "r1", None)),
        ("unknown_invoice", pay("1", "r1", Some("INV-7"))),
        ("unknown_invoice", pay("1", "r1", Some("CN-1"))),
    ] {
        assert_eq!(world.refused(command), code);
    }
    world.ok(pay("30", "r1", Some("INV-1")));
    assert_eq!(world.refused(pay("30", "r1", None)), "payment_exists");
    let owed = |world: &World| {
        let (owed, rest) = world.books.owed(TenantNo(0), EUR);
        (owed.values().map(ToString::to_string).collect::<Vec<_>>(), rest.to_string())
    };
    assert_eq!(owed(&world), (vec!["6.000000".to_owned()], "0.000000".to_owned()));
    world.ok(pay("10", "r2", None));
    assert_eq!(owed(&world), (vec!["0.000000".to_owned()], "4.000000".to_owned()));
    assert_eq!(world.books.account_balance(Account::Invoiced(TenantNo(0)), EUR).to_string(), "-4.000000");
    world.check();
}

/// A project is deleted when it owes nothing; a tenant when it has paid.
#[test]
fn what_owes_is_not_deleted() {
    let mut world = World::new();
    world.wait("10:00");
    world.lease(0, 0, 7, 3600, |_| {});
    world.wait("11:05").settle();
    world.lease(1, 1, 7, 60, |_| {});
    world.wait("11:10");
    assert_eq!(world.refused(Command::DeleteProject(ProjectNo(1))), "unposted_usage");
    assert_eq!(world.refused(Command::DeleteTenant(TenantNo(1))), "unposted_usage");
    world.wait("12:00").settle();
    assert_eq!(world.refused(Command::DeleteProject(ProjectNo(1))), "project_has_balance");
    assert_eq!(world.refused(Command::DeleteProject(ProjectNo(0))), "project_has_balance");
    assert_eq!(world.refused(Command::DeleteTenant(TenantNo(0))), "tenant_has_balance");
    world.wait("12-01 00:05").close("2026-11");
    world.ok(Command::DeleteProject(ProjectNo(0)));
    assert_eq!(world.refused(Command::DeleteTenant(TenantNo(0))), "tenant_has_balance");
    world.ok(Command::RecordPayment(RecordPayment {
        tenant: TenantNo(0),
        currency: EUR,
        amount: steps("36"),
        invoice: None,
        reference: name("all of it"),
        received_at: Some(at("12-01 00:01")),
    }));
    world.ok(Command::DeleteTenant(TenantNo(0)));
    assert_eq!(world.refused(tax(0, None, "0.19")), "unknown_tenant");
    assert_eq!(world.refused(tax(1, Some("2026-11"), "0.19")), "period_closed");
    assert_eq!(world.refused(tax(1, None, "1.5")), "bad_tax_rate");
}

/// Usage whose cost rounds to nothing makes no invoice.
#[test]
fn an_invoice_without_an_amount_is_none() {
    let mut world = World::new();
    world.price("0.000000001");
    world.wait("10:00");
    world.lease(0, 0, 1, 10, |_| {});
    world.wait("12-01 00:05").close("2026-11");
    assert_eq!(world.told(), "usage 11-30 10:00 2026-11 project-0 0.000000\n");
    assert!(world.books.invoices().is_empty());
    world.check();
}

/// A month is not cut while an hour is being settled: the rest of the hour would be computed from fewer records.
#[test]
fn a_month_is_not_cut_in_the_middle_of_an_hour() {
    let mut world = World::new();
    world.wait("12-01 00:00").settle();
    world.lease(0, 0, 7, 7200, |_| {});
    world.lease(1, 1, 7, 7200, |_| {});
    world.wait("12-01 01:00");
    let settlement = world.books.next_settlement().expect("readable").expect("an hour is over");
    assert!(!world.post(settlement, 1));
    assert_eq!(world.refused(Command::ClosePeriod(november())), "posting_incomplete");
    world.close("2026-11").check();
}
