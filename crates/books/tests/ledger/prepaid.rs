//! Prepaid credit: a worked example from the first credit to the invoice.

use crate::world::{EUR, World, at, name, rate, steps};
use leasehold_engine::command::{EndCredit, PutTaxRate, RenewOne, TopUp};
use leasehold_engine::{Command, Refusal};
use leasehold_model::{
    Account, Body, CreditSource, DenyCause, LeaseNo, PrepaidAction, PrepaidState, ProjectNo, Span, Steps, TenantNo,
};
use smallvec::smallvec;

fn top_up(amount: &str, expires: Option<&str>, reference: &str) -> Command {
    Command::TopUp(TopUp {
        tenant: TenantNo(0),
        project: None,
        currency: EUR,
        amount: steps(amount),
        priority: 0,
        expires_at: expires.map(at),
        source: CreditSource::Paid,
        reference: name(reference),
    })
}

fn renewal(lease: LeaseNo, ttl_s: u64) -> Command {
    Command::Renew(smallvec![RenewOne { lease, ttl: Span::from_secs(ttl_s), activity: None }])
}

impl World {
    /// What the last record about the state of the credit says.
    fn state(&self) -> (PrepaidState, String, PrepaidAction) {
        let said = |body: &Body| {
            let Body::PrepaidChanged(changed) = body else { return None };
            Some((changed.to, changed.balance.to_string(), changed.action))
        };
        self.records.iter().rev().find_map(|record| said(&record.body)).expect("the state has changed")
    }

    /// What denies a request for a GPU, and the figures: what is available and what it would cost.
    fn denied(&mut self, ttl_s: u64) -> (String, String) {
        let request = leasehold_engine::command::RequestLease::of(
            crate::world::GPU,
            leasehold_model::Quanta(7),
            Span::from_secs(ttl_s),
        );
        let sequence = self.as_holder(0, Command::Request(request));
        let record = &self.records[usize::try_from(sequence).expect("small")];
        let Body::Denied(denied) = &record.body else { panic!("not denied: {record:?}") };
        let DenyCause::Prepaid { available, requested, .. } = denied.cause else { panic!("{:?}", denied.cause) };
        (available.to_string(), requested.to_string())
    }
}

/// A GPU costs 0.01 a second. By hand:
///
/// | time | what happens | credited | posted | accrued | balance | reserved | available |
/// |---|---|---|---|---|---|---|---|
/// | 10:00:00 | 5.00 are paid | 5.00 | 0 | 0 | 5.00 | 0 | 5.00 |
/// | 10:00:00 | a GPU for 300 s: 3.00 | 5.00 | 0 | 0 | 5.00 | 3.00 | 2.00 |
/// | 10:00:00 | another for 201 s costs 2.01: denied | | | | | | 2.00 |
/// | 10:01:40 | after 100 s | 5.00 | 0 | 1.00 | 4.00 | 2.00 | 2.00 |
/// | 10:01:40 | renewed to 401 s from now, 201 s more: 2.01, refused | | | | | | 2.00 |
/// | 10:01:40 | renewed to 400 s from now, 200 s more: 2.00 | 5.00 | 0 | 1.00 | 4.00 | 4.00 | 0 |
/// | 10:05:00 | 1.00 is paid, to be used by 10:30 | 6.00 | 0 | 3.00 | 3.00 | 2.00 | 1.00 |
/// | 10:08:20 | the lease expires after 500 s | 6.00 | 0 | 5.00 | 1.00 | 0 | 1.00 |
/// | 10:30:00 | the second credit expires | 6.00 | 0 | 5.00 | see below | | |
///
/// At 10:05 the first credit is charged with 3.00, so 2.00 are left of it. The second one expires, so it is used before
/// the first: of the 2.00 that are spent until 10:30 it pays 1.00, and nothing of it is left. The first one has 1.00.
#[test]
fn five_euros_with_a_reservation_a_renewal_a_top_up_and_a_correction() {
    let mut world = World::new();
    world.ok(Command::PutTaxRate(PutTaxRate { tenant: TenantNo(0), from: None, rate: rate("0.19") }));
    world.wait("10:00");
    world.ok(top_up("5.00", None, "bank 1"));
    let lease = world.lease(0, 0, 7, 300, |_| {});
    assert_eq!(world.denied(201), ("2".into(), "2.01".into()));

    world.wait("10:01:40");
    let refusal = world.try_as_holder(0, renewal(lease, 401)).expect_err("it is not covered");
    let Refusal::PrepaidExhausted { requested, available, .. } = refusal else { panic!("{refusal}") };
    assert_eq!((requested.to_string(), available.to_string()), ("2.01".into(), "2".into()));
    world.as_holder(0, renewal(lease, 400));
    assert_eq!(world.denied(1), ("0".into(), "0.01".into()));

    world.wait("10:05");
    world.ok(top_up("1.00", Some("10:30"), "bank 2"));
    assert_eq!(world.denied(101), ("1".into(), "1.01".into()));
    assert_eq!(world.refused(top_up("2.00", None, "bank 2")), "top_up_exists");

    // The second credit is used up when it expires: it ends, and nothing lapses.
    world.wait("10:40");
    let lapsed = |record: &leasehold_model::Record| {
        let Body::PrepaidLapsed(lapsed) = &record.body else { return None };
        Some((lapsed.credit, lapsed.amount))
    };
    assert_eq!(world.records.iter().filter_map(lapsed).collect::<Vec<_>>(), [(2, Steps::ZERO)]);
    assert_eq!(world.denied(101), ("1".into(), "1.01".into()));

    // The hour is posted with 5.00: the balance stays 6.00 − 5.00 = 1.00.
    world.wait("11:01").settle();
    assert_eq!(world.owes(0), "5.000000");
    assert_eq!(world.denied(101), ("1".into(), "1.01".into()));

    // 100 s more cost 1.00: nothing is left at 11:02:40, which is said at the next whole minute.
    world.lease(0, 0, 7, 100, |_| {});
    world.wait("11:04");
    assert_eq!(world.state(), (PrepaidState::Depleted, "0".into(), PrepaidAction::Block));
    assert_eq!(world.denied(1), ("0".into(), "0.01".into()));

    // The 5.00 are corrected to 4.25: 0.75 are given back, and the correction says that there is enough.
    let entry = world.entries().into_iter().find(|entry| entry.amount() == steps("5.00")).expect("the posting");
    let correction = world.correction(entry.id, Some("4.25"));
    world.ok(Command::CorrectEntry(correction));
    assert_eq!(world.state(), (PrepaidState::Enough, "0.75".into(), PrepaidAction::Alert));
    assert_eq!(world.denied(76), ("0.75".into(), "0.76".into()));

    // November: 4.25 and 1.00 are posted, 5.25 in all. Credit pays 5.25 of the 6.00. The tax of 1.00 (0.9975, rounded) is
    // left to be paid, and 0.75 stay on the account.
    world.wait("12-01 00:05").close("2026-11");
    let balance = |world: &World, account| world.books.account_balance(account, EUR).to_string();
    let heads = world.books.invoices();
    assert_eq!(heads[0].total.to_string(), "6.250000");
    assert_eq!(world.books.prepaid_on(heads[0].number), steps("5.25"));
    assert_eq!(balance(&world, Account::Invoiced(TenantNo(0))), "1.000000");
    assert_eq!(balance(&world, Account::TenantPrepaid(TenantNo(0))), "-0.750000");
    assert_eq!(balance(&world, Account::CashClearing), "6.000000");
    assert_eq!(balance(&world, Account::Receivable(ProjectNo(0))), "0.000000");
    assert_eq!(balance(&world, Account::ExpiredCredits), "0.000000");
    world.check();
    assert_eq!(world.denied(76), ("0.75".into(), "0.76".into()));
}

/// The first credit pays first, being the one that expires. 3.00 of it are spent by then and 2.00 lapse, although
/// 1.00 of them is reserved: what is available is negative afterwards, and the lease goes on.
#[test]
fn a_credit_lapses_although_it_is_reserved() {
    let mut world = World::new();
    world.wait("10:00");
    world.ok(top_up("5.00", Some("10:05"), "bank 1"));
    world.lease(0, 0, 7, 400, |_| {});
    // At 10:05 exactly, noticed at 10:06: 300 s cost 3.00. The balance is 5.00 − 2.00 − 3.00 = 0.
    world.wait("10:06");
    let lapsed = world.records.iter().find_map(|record| {
        let Body::PrepaidLapsed(lapsed) = &record.body else { return None };
        Some((record.effective_at, lapsed.amount))
    });
    assert_eq!(lapsed, Some((at("10:05"), steps("2.00"))));
    assert_eq!(world.state(), (PrepaidState::Depleted, "0".into(), PrepaidAction::Block));
    // 60 s later 0.60 are accrued, and 0.40 are reserved: −1.00.
    assert_eq!(world.denied(1), ("-1".into(), "0.01".into()));
    let balance = |account| world.books.account_balance(account, EUR);
    assert_eq!(balance(Account::ExpiredCredits), steps("-2.00"));
    assert_eq!(balance(Account::TenantPrepaid(TenantNo(0))), steps("-3.00"));
    world.check();
}

/// An operator ends a credit: what is not spent of it is gone, once.
#[test]
fn an_ended_credit_is_gone() {
    let mut world = World::new();
    let end = || {
        let (tenant, project, currency) = (TenantNo(0), None, EUR);
        Command::EndCredit(EndCredit { tenant, project, currency, credit: 1 })
    };
    world.wait("10:00");
    assert_eq!(world.refused(end()), "unknown_credit");
    world.ok(top_up("5.00", None, "bank 1"));
    assert_eq!(world.refused(Command::DeleteTenant(TenantNo(0))), "tenant_has_balance");
    world.ok(end());
    assert_eq!(world.state(), (PrepaidState::Depleted, "0".into(), PrepaidAction::Block));
    assert_eq!(world.refused(end()), "unknown_credit");
    assert_eq!(world.books.account_balance(Account::TenantPrepaid(TenantNo(0)), EUR), Steps::ZERO);
    world.check();
}

/// November's 5.00 are paid by a credit of 6.00. In December 2.00 of them are given back: the credit note of December is
/// covered, and the credit has 6.00 − 5.00 + 2.00 = 3.00 again.
#[test]
fn what_is_given_back_returns_to_the_credit() {
    let mut world = World::new();
    world.wait("10:00");
    world.ok(top_up("6.00", None, "bank 1"));
    world.lease(0, 0, 7, 500, |_| {});
    world.wait("12-01 00:05").close("2026-11");
    let entry = world.entries().into_iter().find(|entry| entry.amount() == steps("5.00")).expect("the posting");
    let correction = world.correction(entry.id, Some("3.00"));
    world.ok(Command::CorrectEntry(correction));
    assert_eq!(world.denied(301), ("3".into(), "3.01".into()));
    world.wait("01-01 00:05").close("2026-12");
    let heads = world.books.invoices();
    assert_eq!([heads[0].total, heads[1].total], [steps("5.00"), steps("-2.00")]);
    assert_eq!(world.books.prepaid_on(heads[1].number), steps("-2.00"));
    let balance = |account| world.books.account_balance(account, EUR);
    assert_eq!(balance(Account::Invoiced(TenantNo(0))), Steps::ZERO);
    assert_eq!(balance(Account::TenantPrepaid(TenantNo(0))), steps("-3.00"));
    world.check();
    assert_eq!(world.denied(301), ("3".into(), "3.01".into()));
}

/// November's 5.00 are owed by the invoice. In December 1.00 is paid in advance, and 2.00 of November are given back. They
/// count on the account until December is closed (1.00 + 2.00). No invoice ever used the credit, so nothing returns to
/// it: the credit note lowers what is owed to 3.00, and the account has its 1.00.
#[test]
fn nothing_returns_to_a_credit_that_was_not_used() {
    let mut world = World::new();
    world.wait("10:00");
    world.lease(0, 0, 7, 500, |_| {});
    world.wait("12-01 00:05").close("2026-11");
    world.ok(top_up("1.00", None, "bank 1"));
    let entry = world.entries().into_iter().find(|entry| entry.amount() == steps("5.00")).expect("the posting");
    let correction = world.correction(entry.id, Some("3.00"));
    world.ok(Command::CorrectEntry(correction));
    assert_eq!(world.denied(301), ("3".into(), "3.01".into()));
    world.wait("01-01 00:05").close("2026-12");
    let heads = world.books.invoices();
    assert_eq!(world.books.prepaid_on(heads[1].number), Steps::ZERO);
    let balance = |account| world.books.account_balance(account, EUR);
    assert_eq!(balance(Account::Invoiced(TenantNo(0))), steps("3.00"));
    assert_eq!(balance(Account::TenantPrepaid(TenantNo(0))), steps("-1.00"));
    world.check();
    assert_eq!(world.denied(101), ("1".into(), "1.01".into()));
}
