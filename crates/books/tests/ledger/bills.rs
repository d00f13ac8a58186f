//! Invoices that their payers prove, with every figure by hand.

#[path = "../accounts/ledger/evidence.rs"]
mod evidence;

use crate::world::{EUR, World, name, rate};
use evidence::evidences;
use leasehold_bill::{CheckedLine, Place, Report, Verdict, check};
use leasehold_engine::Command;
use leasehold_engine::command::{
    ClaimNodes, NodeService, PutAppInstance, PutAppType, PutSharing, PutTaxRate, RecordUsage, ShareCost,
};
use leasehold_model::body::{PolicyScope, Sharing, SharingBasis, UsageReport};
use leasehold_model::{
    AppInstanceNo, AppOrigin, AppTypeNo, Body, ControlPlaneScope, NodeNo, OperatingMode, ProjectNo, RuntimeBackend,
    TenantNo, UnitNo,
};

const REQUESTS: UnitNo = UnitNo(4);
/// Quanta × nanoseconds of a GPU in sevenths for an hour.
const GPU_HOUR: i128 = 7 * 3_600_000_000_000;

impl World {
    /// What is found about each invoice, in the order in which they were issued.
    fn proved(&self) -> Vec<Report> {
        let reports: Vec<Report> = evidences(&self.records).iter().map(check).collect();
        reports.iter().for_each(|report| assert!(report.is_proved(), "{:#?}", report.mismatches));
        reports
    }
}

/// Each line as its month, its usage, its amount and the verdict.
fn told(report: &Report) -> Vec<(String, i128, String, Verdict)> {
    let line = |line: &CheckedLine| (line.key.month.to_string(), line.usage, line.posted.to_string(), line.verdict);
    report.lines.iter().map(line).collect()
}

/// One GPU-hour at 36.00, and 0.015 for a second as guaranteed.
#[test]
fn an_invoice_is_proved_line_by_line() {
    let mut world = World::new();
    world.ok(Command::PutTaxRate(PutTaxRate { tenant: TenantNo(0), from: None, rate: rate("0.19") }));
    world.wait("10:00");
    world.lease(0, 0, 7, 3600, |_| {});
    world.lease(0, 1, 7, 1, |request| request.priority = leasehold_model::Priority::Guaranteed);
    world.lease(1, 1, 7, 60, |_| {});
    world.wait("12-01 00:05").close("2026-11");
    let [physics, biology] = &world.proved()[..] else { panic!("two invoices") };
    let line = |usage: i128, amount: &str| ("2026-11".to_owned(), usage, amount.to_owned(), Verdict::Proved);
    assert_eq!(told(physics), [line(GPU_HOUR, "36.000000"), line(GPU_HOUR / 3600, "0.015000")]);
    assert_eq!(told(biology), [line(GPU_HOUR / 60, "0.600000")]);
    assert_eq!((&physics.not_proved, &biology.not_proved), (&vec![], &vec![]));
    let (_, invoice) = physics.invoice.as_ref().expect("it is proved");
    assert_eq!(invoice.total.to_string(), "42.860000");
}

/// Half an hour of the last hour of November is given back in December. The lease was open when December began, because
/// its end was noticed later, so the proof of December tells all of it.
#[test]
fn an_adjustment_is_proved_by_the_file_of_its_own_month() {
    let mut world = World::new();
    world.wait("22:00");
    world.lease(0, 0, 7, 7200, |_| {});
    world.wait("12-01 00:05").close("2026-11");
    world.wait("12-01 00:10");
    world.lose(0, "23:30");
    world.wait("12-01 10:00");
    world.lease(0, 1, 7, 3600, |_| {});
    world.wait("01-01 00:05").close("2026-12");
    let [november, december] = &world.proved()[..] else { panic!("two invoices") };
    let line = |month: &str, usage: i128, amount: &str| (month.to_owned(), usage, amount.to_owned(), Verdict::Proved);
    assert_eq!(told(november), [line("2026-11", 2 * GPU_HOUR, "72.000000")]);
    let back = line("2026-11", -GPU_HOUR / 2, "-18.000000");
    assert_eq!(told(december), [back, line("2026-12", GPU_HOUR, "36.000000")]);
}

/// The same for a lease that was closed in November: its file tells that, and December's does not.
#[test]
fn an_adjustment_of_what_ended_before_is_left_to_the_earlier_file() {
    let mut world = World::new();
    world.wait("21:00");
    world.lease(0, 0, 7, 3600, |_| {});
    world.wait("23:00").wait("12-01 00:05").close("2026-11");
    world.wait("12-01 00:10");
    world.lose(0, "21:30");
    world.wait("12-01 10:00");
    world.lease(0, 1, 7, 3600, |_| {});
    world.wait("01-01 00:05").close("2026-12");
    let [_, december] = &world.proved()[..] else { panic!("two invoices") };
    let verdicts: Vec<Verdict> = december.lines.iter().map(|line| line.verdict).collect();
    assert_eq!(verdicts, [Verdict::NotProved, Verdict::Proved]);
    let [said] = &december.not_proved[..] else { panic!("one sentence: {:?}", december.not_proved) };
    assert!(said.0.contains("2026-11"), "{said}");
}

/// Two GPUs are claimed from 22:00 to 02:00, one of them is leased from 23:00 to 01:00, and the node is drained from 01:15
/// to 01:30. A claimed GPU-hour costs 54.00, leased or idle.
#[test]
fn a_claim_over_the_end_of_a_month_is_proved_on_both_sides() {
    let mut world = World::new();
    world.wait("22:00");
    world.as_holder(0, Command::ClaimNodes(ClaimNodes { nodes: vec![NodeNo(0)], until: None }));
    world.wait("23:00");
    world.lease(0, 0, 7, 7200, |request| request.sensitive = true);
    world.wait("12-01 01:15");
    world.ok(Command::DrainNode(NodeService { node: NodeNo(0), reason: None }));
    world.wait("12-01 01:30");
    world.ok(Command::ResumeNode(NodeService { node: NodeNo(0), reason: None }));
    world.wait("12-01 02:00");
    world.as_holder(0, Command::ReleaseNodes(vec![NodeNo(0)]));
    world.wait("12-01 03:00").close("2026-11");
    world.wait("01-01 00:05").close("2026-12");
    let all = evidences(&world.records);
    assert_eq!((all[0].claimed_nodes.nodes.len(), all[1].claimed_nodes.nodes.len()), (1, 0));
    assert_eq!((all[0].list_at_start.claims.len(), all[1].list_at_start.claims.len()), (0, 1));
    let [november, december] = &world.proved()[..] else { panic!("two invoices") };
    let line = |month: &str, halves: i128, amount: &str| {
        (month.to_owned(), halves * GPU_HOUR / 2, amount.to_owned(), Verdict::Proved)
    };
    // Standard priority comes before guaranteed, as which idle capacity is listed.
    assert_eq!(told(november), [line("2026-11", 2, "54.000000"), line("2026-11", 6, "162.000000")]);
    assert_eq!(told(december), [line("2026-12", 2, "54.000000"), line("2026-12", 5, "135.000000")]);
}

/// A runtime of the platform, owned by the first tenant and used by both, with a lease as its control plane.
fn shared_runtime() -> World {
    let mut world = World::new();
    let (slug, origin) = (name("serving"), AppOrigin::Internal);
    world.ok(Command::PutAppType(PutAppType { app_type: None, slug, origin, units: vec![REQUESTS] }));
    let put = PutAppInstance {
        app_instance: None,
        project: ProjectNo(0),
        name: name("models"),
        app_type: AppTypeNo(0),
        mode: OperatingMode::PlatformManaged,
        scope: ControlPlaneScope::Platform,
        backend: RuntimeBackend::Serving,
    };
    world.ok(Command::PutAppInstance(put));
    world.ok(Command::PutSharing(PutSharing {
        of: PolicyScope { app_type: AppTypeNo(0), tenant: None, app_instance: None },
        control_plane_billable: None,
        distributable: Some(true),
        sharing: Some(Sharing { basis: SharingBasis::ByUsage(REQUESTS), entries: true }),
    }));
    world
}

fn requests(tenant: u32, quantity: &str) -> RecordUsage {
    let report = UsageReport {
        reporter: None,
        source: name("adapter"),
        id: name(&format!("of-{tenant}")),
        app_instance: AppInstanceNo(0),
        unit: REQUESTS,
        quantity: quantity.parse().expect("a quantity"),
        from: crate::world::at("10:00"),
        to: crate::world::at("10:30"),
        correlation: 7,
        control_plane: false,
        attachment: None,
        allocation: None,
        supersedes: None,
    };
    RecordUsage {
        tenant: TenantNo(tenant),
        project: ProjectNo(tenant),
        user: None,
        report,
        replaces: None,
        replaced_creditor: None,
        named: None,
        known_to: u64::MAX,
    }
}

/// The control plane cost 36.00; of 20 requests five were the second tenant's, so that it bears 9.00.
#[test]
fn shares_are_checked_and_what_concerns_others_is_said_to_be_unproved() {
    let mut world = shared_runtime();
    world.wait("10:00");
    world.lease(0, 0, 7, 3600, |request| {
        (request.control_plane, request.app_instance) = (true, Some(AppInstanceNo(0)));
    });
    world.wait("12:00");
    for (tenant, quantity) in [(0, "15"), (1, "5")] {
        let mut usage = requests(tenant, quantity);
        usage.known_to = world.records.len() as u64;
        world.ok(Command::RecordUsage(usage));
    }
    world.wait("12-01 00:05").settle();
    let month = "2026-11".parse().expect("a month");
    world.ok(Command::ClosePeriod(month));
    world.ok(Command::ShareCost(ShareCost { app_instance: AppInstanceNo(0), currency: EUR }));
    world.finish(month);
    let reports = world.proved();
    let [owner, user] = &reports[..] else { panic!("two invoices: {}", reports.len()) };
    let line = |usage: i128, amount: &str, verdict| ("2026-11".to_owned(), usage, amount.to_owned(), verdict);
    let shares = line(0, "-9.000000", Verdict::Shared);
    let mut of_owner = told(owner);
    of_owner.sort_by_key(|line| line.1);
    assert_eq!(of_owner, [shares, line(GPU_HOUR, "36.000000", Verdict::Proved)]);
    assert_eq!(told(user), [line(0, "9.000000", Verdict::Shared)]);
    let open = |report: &Report| report.not_proved.iter().map(ToString::to_string).collect::<Vec<_>>();
    let total = "The total weight for app-0: the weights of other tenants are not in the file.";
    let by_others = "What projects of other tenants bear of the cost of app-0.";
    let cost = "What the control plane of app-0 cost: its owner is a project of another tenant.";
    assert_eq!((open(owner), open(user)), (vec![total.into(), by_others.into()], vec![total.into(), cost.into()]));

    // A share that is too large by a cent is not in proportion to its weight.
    let mut evidence = evidences(&world.records).remove(1);
    for evident in &mut evidence.records {
        if let Body::LedgerShared(shared) = &mut evident.record.body {
            shared.share.0 += 10_000;
            shared.booked.0 += 10_000;
        }
    }
    let report = check(&evidence);
    let entries = report.mismatches.iter().filter(|mismatch| matches!(mismatch.place, Place::Entry(_)));
    let differences: Vec<_> = entries.map(|mismatch| mismatch.difference.as_deref()).collect();
    assert_eq!(differences, [Some("0.010000")]);

    // Ten requests instead of five would make 18.00. They fit together, and not to what the tenant used.
    let mut evidence = evidences(&world.records).remove(1);
    for evident in &mut evidence.records {
        if let Body::LedgerShared(shared) = &mut evident.record.body {
            shared.weight.0 *= 2;
            (shared.share.0, shared.booked.0) = (shared.share.0 * 2, shared.booked.0 * 2);
        }
    }
    let report = check(&evidence);
    let why = "The weight of the project for app-0 is not what its records and the policy say.";
    assert!(report.mismatches.iter().any(|mismatch| mismatch.why == why), "{:#?}", report.mismatches);
    // Nor was another version of the policy in force.
    let mut evidence = evidences(&world.records).remove(1);
    for evident in &mut evidence.records {
        if let Body::LedgerShared(shared) = &mut evident.record.body {
            shared.version = 2;
        }
    }
    let report = check(&evidence);
    let [mismatch] = &report.mismatches[..] else { panic!("one mismatch: {:#?}", report.mismatches) };
    assert_eq!(mismatch.expected, "version 1 of the policy for app-type-0");
}
