//! Worked examples with numbers by hand.

use super::story::{Shelf, Step, Story};
use leasehold_engine::Command;
use leasehold_engine::command::{
    LoseNode, OpenLedger, PutClass, PutNode, PutPool, PutProject, PutTenant, RecordPayment, ReleaseOne, RequestLease,
};
use leasehold_model::body::PerPriority;
use leasehold_model::rate::Currency;
use leasehold_model::{
    Account, ClassNo, ClassSpec, Identity, Instant, LeaseNo, Name, NodeNo, PoolNo, ProjectNo, Quanta, ResourceKind,
    Span, Steps, Strategy, TeardownMode, TenantNo, TenantSettings,
};
use smallvec::SmallVec;

/// 2026-04-01T00:00:00Z
pub(super) const APRIL: u64 = 1_775_001_600;

pub(super) fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

/// One node with seven GPUs, without an agent; one tenant with two projects.
pub(super) fn cluster(at: u64) -> Step<Story> {
    let mut story = Story::empty(Instant::from_secs(at), Shelf::Memory)?;
    let spec = ClassSpec { name: name("gpu"), kind: ResourceKind::Gpu, tier: None, quanta_per_unit: 1, premium: false };
    let none = PerPriority([None, None, None]);
    let pool = PutPool {
        pool: None,
        name: name("pool"),
        strategy: Strategy::Spread,
        ttl_max: none,
        lifetime_max: none,
        grace: None,
        weights: None,
        queue: None,
    };
    let node = PutNode {
        node: None,
        name: name("node"),
        pool: PoolNo(0),
        rack: None,
        zone: None,
        labels: Vec::new(),
        teardown: TeardownMode::Immediate,
        capacity: vec![(ClassNo(0), Quanta(7))],
    };
    let tenant = PutTenant { tenant: None, settings: TenantSettings::named(name("tenant")) };
    let project = |text| Command::PutProject(PutProject { project: None, tenant: TenantNo(0), name: name(text) });
    for command in [
        Command::PutClass(PutClass { class: None, spec }),
        Command::PutPool(pool),
        Command::PutNode(node),
        Command::PutTenant(tenant),
        project("a"),
        project("b"),
    ] {
        story.expect(command, &[])?;
    }
    Ok(story)
}

fn holder(project: u32) -> Identity {
    Identity { tenant: Some(TenantNo(0)), project: Some(ProjectNo(project)), ..Identity::default() }
}

pub(super) fn at(story: &mut Story, secs: u64) -> Step<()> {
    let span = Span(Instant::from_secs(secs).0 - story.now.0);
    story.pass(span)?;
    story.expect(Command::Heartbeat(leasehold_engine::command::Nothing {}), &[])
}

fn lease(story: &mut Story, project: u32, secs: u64) -> Step<()> {
    let request = RequestLease::of(ClassNo(0), Quanta(1), Span::from_secs(secs));
    story.submit(holder(project), Command::Request(request))?.map(drop).map_err(|refusal| refusal.to_string())
}

fn release(story: &mut Story, project: u32, lease: u64) -> Step<()> {
    let one = ReleaseOne { lease: LeaseNo(lease), activity: None };
    let released = story.submit(holder(project), Command::Release(SmallVec::from_buf([one])))?;
    released.map(drop).map_err(|refusal| refusal.to_string())
}

pub(super) fn owed(story: &Story, account: Account) -> String {
    story.books().account_balance(account, Currency::DEFAULT).to_string()
}

/// A lease of 40 minutes at 0.01 per second is posted and invoiced, and its project deleted. Then the node turns out to
/// have been lost after 20 minutes: the credit is posted for the project all the same, in the open month.
#[test]
fn a_deleted_project_gets_its_credit() {
    let told = || -> Step<()> {
        let mut story = cluster(APRIL - 7200)?;
        story.expect(Command::OpenLedger(OpenLedger { from: None }), &[])?;
        at(&mut story, APRIL - 3600)?;
        lease(&mut story, 1, 3000)?;
        at(&mut story, APRIL - 1200)?;
        release(&mut story, 1, 0)?;
        at(&mut story, APRIL + 600)?;
        story.settle(true)?;
        assert_eq!(owed(&story, Account::Receivable(ProjectNo(1))), "24.000000");
        story.expect(Command::DeleteProject(ProjectNo(1)), &["project_has_balance"])?;
        assert!(story.engine.state().projects().any(|(number, _)| number == ProjectNo(1)), "it owes something");
        story.close(true)?;
        assert_eq!(owed(&story, Account::Receivable(ProjectNo(1))), "0.000000");
        assert_eq!(owed(&story, Account::Invoiced(TenantNo(0))), "24.000000");
        story.expect(Command::DeleteProject(ProjectNo(1)), &[])?;
        let last_seen = Instant::from_secs(APRIL - 2400);
        story.expect(Command::LoseNode(LoseNode { node: NodeNo(0), last_seen }), &[])?;
        story.settle_losses()?;
        at(&mut story, APRIL + 3700)?;
        story.settle(true)?;
        assert_eq!(owed(&story, Account::Receivable(ProjectNo(1))), "-12.000000");
        story.check_books()?;
        story.check_recount()
    };
    told().unwrap_or_else(|what| panic!("{what}"));
}

/// The same without the deletion, up to the credit note of the next month.
#[test]
fn a_loss_is_credited_across_a_closed_month() {
    let told = || -> Step<()> {
        let mut story = cluster(APRIL - 7200)?;
        story.expect(Command::OpenLedger(OpenLedger { from: None }), &[])?;
        at(&mut story, APRIL - 3600)?;
        lease(&mut story, 0, 7200)?;
        at(&mut story, APRIL + 600)?;
        story.settle(true)?;
        story.close(true)?;
        assert_eq!(owed(&story, Account::Invoiced(TenantNo(0))), "36.000000");
        let last_seen = Instant::from_secs(APRIL - 1);
        story.expect(Command::LoseNode(LoseNode { node: NodeNo(0), last_seen }), &[])?;
        story.settle_losses()?;
        // The whole of April, hour by hour.
        at(&mut story, APRIL + 30 * 86_400 + 60)?;
        story.settle(true)?;
        assert_eq!(owed(&story, Account::Receivable(ProjectNo(0))), "-0.010000");
        story.close(true)?;
        let heads: Vec<(String, String)> =
            story.books().invoices().iter().map(|head| (head.number.to_string(), head.total.to_string())).collect();
        let expected = [("INV-000001", "36.000000"), ("CN-000001", "-0.010000")];
        assert_eq!(heads, expected.map(|(number, total)| (number.to_owned(), total.to_owned())));
        assert_eq!(owed(&story, Account::Invoiced(TenantNo(0))), "35.990000");
        story.check_books()?;
        story.check_recount()
    };
    told().unwrap_or_else(|what| panic!("{what}"));
}

/// A tenant that has paid is deleted, and its node turns out to have been lost before: the credit is posted, and the
/// month can be closed.
#[test]
fn a_deleted_tenant_gets_its_credit_note() {
    let told = || -> Step<()> {
        let mut story = cluster(APRIL - 7200)?;
        story.expect(Command::OpenLedger(OpenLedger { from: None }), &[])?;
        at(&mut story, APRIL - 3600)?;
        lease(&mut story, 1, 3000)?;
        at(&mut story, APRIL - 1200)?;
        release(&mut story, 1, 0)?;
        at(&mut story, APRIL + 600)?;
        story.settle(true)?;
        story.close(true)?;
        story.refuse(Some(Command::DeleteTenant(TenantNo(0))))?;
        let pay = RecordPayment {
            tenant: TenantNo(0),
            currency: Currency::DEFAULT,
            amount: Steps(24_000_000),
            invoice: None,
            reference: name("bank 1"),
            received_at: None,
        };
        story.expect(Command::RecordPayment(pay.clone()), &[])?;
        story.refuse(Some(Command::RecordPayment(pay.clone())))?;
        assert_eq!(owed(&story, Account::CashClearing), "24.000000");
        story.expect(Command::DeleteTenant(TenantNo(0)), &[])?;
        let last_seen = Instant::from_secs(APRIL - 2400);
        story.expect(Command::LoseNode(LoseNode { node: NodeNo(0), last_seen }), &[])?;
        story.settle_losses()?;
        at(&mut story, APRIL + 30 * 86_400 + 60)?;
        story.settle(true)?;
        assert_eq!(owed(&story, Account::Receivable(ProjectNo(1))), "-12.000000");
        story.close(true)?;
        assert_eq!(owed(&story, Account::Invoiced(TenantNo(0))), "-12.000000");
        // The credit note is paid back, and after that there is nobody to pay.
        let (amount, reference) = (Steps(-12_000_000), name("bank 2"));
        let back = RecordPayment { amount, reference, ..pay.clone() };
        story.expect(Command::RecordPayment(back.clone()), &[])?;
        assert_eq!(owed(&story, Account::Invoiced(TenantNo(0))), "0.000000");
        story.refuse(Some(Command::RecordPayment(RecordPayment { reference: name("bank 3"), ..back })))?;
        story.check_books()?;
        story.check_recount()
    };
    told().unwrap_or_else(|what| panic!("{what}"));
}
