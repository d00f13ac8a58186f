//! Counting the balances of the ledger again, from the records of its entries alone.

use leasehold_model::body::{Body, InvoiceIssued, LedgerCorrected, LedgerPosted, SharingMethod};
use leasehold_model::rate::Currency;
use leasehold_model::{Account, CreditSource, Item, Leg, ProjectNo, Record, TenantNo};
use std::collections::BTreeMap;

/// What the entries so far sum to, in steps. Balances of zero are left out.
pub(crate) type Accounts = BTreeMap<(Account, Currency), i128>;

fn add(accounts: &mut Accounts, account: Account, currency: Currency, amount: i128) {
    let sum = accounts.entry((account, currency)).or_default();
    *sum += amount;
    if *sum == 0 {
        accounts.remove(&(account, currency));
    }
}

fn post(accounts: &mut Accounts, payer: ProjectNo, posted: &LedgerPosted) {
    for line in &posted.lines {
        let revenue = match line.key.item {
            Item::Class(class) => Account::Revenue(class),
            Item::Unit(unit) => Account::UnitRevenue(unit),
        };
        add(accounts, Account::Receivable(payer), posted.currency, line.posted.0);
        add(accounts, revenue, posted.currency, -line.posted.0);
    }
}

fn book(accounts: &mut Accounts, currency: Currency, legs: &[Leg]) {
    legs.iter().for_each(|leg| add(accounts, leg.account, currency, leg.amount.0));
}

fn correct(accounts: &mut Accounts, payer: ProjectNo, corrected: &LedgerCorrected) {
    book(accounts, corrected.currency, &corrected.reversal);
    book(accounts, corrected.currency, &corrected.replacement);
    add(accounts, Account::Receivable(payer), corrected.currency, corrected.rounding.0);
    add(accounts, Account::Rounding, corrected.currency, -corrected.rounding.0);
}

fn invoice(accounts: &mut Accounts, tenant: TenantNo, issued: &InvoiceIssued) {
    let currency = issued.currency;
    let mut projects = 0;
    for (project, amount) in &issued.projects {
        add(accounts, Account::Receivable(*project), currency, -amount.0);
        projects += amount.0;
    }
    let tax: i128 = issued.taxes.iter().map(|line| line.tax.0).sum();
    add(accounts, Account::Invoiced(tenant), currency, issued.total.0);
    add(accounts, Account::Tax, currency, -tax);
    // What is neither a project's nor tax is rounding.
    add(accounts, Account::Rounding, currency, projects + tax - issued.total.0);
}

/// The account of prepaid credit that a record is about.
fn prepaid(record: &Record) -> Result<Account, &'static str> {
    let tenant = record.identity.tenant.ok_or("prepaid credit without an owner")?;
    Ok(record.identity.project.map_or(Account::TenantPrepaid(tenant), Account::ProjectPrepaid))
}

/// Counts the entries of a record, if it has any.
pub(crate) fn take(accounts: &mut Accounts, record: &Record) -> Result<(), &'static str> {
    let payer = || record.identity.project.ok_or("an entry without a project");
    let tenant = || record.identity.tenant.ok_or("an entry without a tenant");
    if let Body::LedgerPosted(posted) = &record.body {
        post(accounts, payer()?, posted);
    } else if let Body::LedgerCorrected(corrected) = &record.body {
        correct(accounts, payer()?, corrected);
    } else if let Body::LedgerAdjusted(adjusted) = &record.body {
        book(accounts, adjusted.currency, &adjusted.legs);
    } else if let Body::LedgerShared(shared) = &record.body {
        let other = match shared.method == SharingMethod::NotBillable {
            true => Account::OperatorLoss,
            false => Account::SharedRuntime(shared.app_instance),
        };
        add(accounts, Account::Receivable(payer()?), shared.currency, shared.booked.0);
        add(accounts, other, shared.currency, -shared.booked.0);
    } else if let Body::InvoiceIssued(issued) = &record.body {
        invoice(accounts, tenant()?, issued);
    } else if let Body::PaymentRecorded(payment) = &record.body {
        add(accounts, Account::CashClearing, payment.currency, payment.amount.0);
        add(accounts, Account::Invoiced(tenant()?), payment.currency, -payment.amount.0);
    } else if let Body::PrepaidToppedUp(topped) = &record.body {
        let from = if topped.source == CreditSource::Paid { Account::CashClearing } else { Account::OperatorLoss };
        add(accounts, from, topped.currency, topped.amount.0);
        add(accounts, prepaid(record)?, topped.currency, -topped.amount.0);
    } else if let Body::PrepaidLapsed(lapsed) = &record.body {
        add(accounts, prepaid(record)?, lapsed.currency, lapsed.amount.0);
        add(accounts, Account::ExpiredCredits, lapsed.currency, -lapsed.amount.0);
    } else if let Body::PrepaidApplied(applied) = &record.body {
        add(accounts, prepaid(record)?, applied.currency, applied.amount.0);
        add(accounts, Account::Invoiced(tenant()?), applied.currency, -applied.credited.0);
        add(accounts, Account::Rounding, applied.currency, applied.credited.0 - applied.amount.0);
    }
    Ok(())
}
