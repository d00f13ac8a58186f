//! Worked examples of reported usage with numbers by hand.

use super::directed::{APRIL, at, cluster, name, owed};
use super::story::{Step, Story};
use leasehold_engine::command::{OpenLedger, PutAppInstance, PutAppType, PutUnitPrice, RecordUsage};
use leasehold_engine::{Command, Refusal};
use leasehold_model::body::{Body, ReplacedUsage, UsageReport};
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{
    Account, AppInstanceNo, AppOrigin, AppTypeNo, ControlPlaneScope, Identity, Instant, Item, OperatingMode, ProjectNo,
    RuntimeBackend, TenantNo, UnitNo, UnitQuantity,
};

const JOB_HOURS: UnitNo = UnitNo(0);
const REQUESTS: UnitNo = UnitNo(4);

/// A runtime of the platform, 0.01 for a request and 2.00 for an hour of a job; the ledger is open.
fn runtime(start: u64) -> Step<Story> {
    let mut story = cluster(start)?;
    story.expect(Command::OpenLedger(OpenLedger { from: None }), &[])?;
    let app = PutAppType {
        app_type: None,
        slug: name("vllm"),
        origin: AppOrigin::Internal,
        units: vec![JOB_HOURS, REQUESTS],
    };
    story.expect(Command::PutAppType(app), &[])?;
    let instance = PutAppInstance {
        app_instance: None,
        project: ProjectNo(0),
        name: name("serving"),
        app_type: AppTypeNo(0),
        mode: OperatingMode::PlatformManaged,
        scope: ControlPlaneScope::Platform,
        backend: RuntimeBackend::Serving,
    };
    story.expect(Command::PutAppInstance(instance), &[])?;
    for (unit, price) in [(REQUESTS, 10_000_000), (JOB_HOURS, 2_000_000_000)] {
        let (currency, price) = (Currency::DEFAULT, Decimal(price));
        story.expect(Command::PutUnitPrice(PutUnitPrice { unit, app_type: None, currency, price, from: None }), &[])?;
    }
    Ok(story)
}

/// Something to be reported for a project.
fn used(project: u32, id: &str, unit: UnitNo, units: u64, between: (u64, u64)) -> RecordUsage {
    let report = UsageReport {
        reporter: None,
        source: name("token"),
        id: name(id),
        app_instance: AppInstanceNo(0),
        unit,
        quantity: UnitQuantity::of_whole(units),
        from: Instant::from_secs(between.0),
        to: Instant::from_secs(between.1),
        correlation: 7,
        control_plane: false,
        attachment: None,
        allocation: None,
        supersedes: None,
    };
    let (tenant, project) = (TenantNo(0), ProjectNo(project));
    RecordUsage {
        tenant,
        project,
        user: None,
        report,
        replaces: None,
        replaced_creditor: None,
        named: None,
        known_to: 0,
    }
}

impl Story {
    /// Sends a report as a server does that has asked the books.
    fn record(&mut self, mut usage: RecordUsage, supersedes: Option<&str>) -> Step<Result<u64, Refusal>> {
        usage.known_to = self.size();
        usage.report.supersedes = supersedes.map(name);
        let key = usage.report.superseded_key();
        let known = key.map(|key| self.books().known_usage(key)).transpose().map_err(|error| error.to_string())?;
        usage.replaces = known.flatten().and_then(|known| {
            let record = self.records.get(usize::try_from(known.sequence).ok()?)?;
            let Body::UsageRecorded(old) = &record.body else { return None };
            let UsageReport { quantity, from, to, control_plane, attachment, .. } = old.report;
            let (sequence, project, charge) = (record.sequence, record.identity.project?, old.charge);
            Some(ReplacedUsage { sequence, project, quantity, from, to, control_plane, attachment, charge })
        });
        self.submit(Identity::default(), Command::RecordUsage(usage))
    }

    fn accept(&mut self, usage: RecordUsage, supersedes: Option<&str>) -> Step<()> {
        self.record(usage, supersedes)?.map(drop).map_err(|refusal| refusal.to_string())
    }

    fn decline(&mut self, usage: RecordUsage, supersedes: Option<&str>, code: &str) -> Step<()> {
        match self.record(usage, supersedes)? {
            Err(refusal) if refusal.code() == code => Ok(()),
            other => Err(format!("{code} was expected: {other:?}")),
        }
    }

    /// The amounts of all postings of units, in order, with their hours after the start of April.
    fn unit_postings(&self) -> Vec<(i64, i128)> {
        let mut posted = Vec::new();
        for record in &self.records {
            let Body::LedgerPosted(one) = &record.body else { continue };
            for line in one.lines.iter().filter(|line| matches!(line.key.item, Item::Unit(_))) {
                let hour = (line.key.hour.0 / 1_000_000_000).cast_signed() - APRIL.cast_signed();
                posted.push((hour / 3600, line.posted.0));
            }
        }
        posted
    }
}

fn told(story: impl FnOnce() -> Step<()>) {
    story().unwrap_or_else(|what| panic!("{what}"));
}

/// 100 requests, superseded by 150 and then by 120: 1.00, 0.50 and −0.30 are posted, each in the hour of the usage.
#[test]
fn differences_are_posted() {
    told(|| {
        let mut story = runtime(APRIL)?;
        let used = |id, units| used(0, id, REQUESTS, units, (APRIL, APRIL + 600));
        at(&mut story, APRIL + 601)?;
        story.accept(used("a", 100), None)?;
        at(&mut story, APRIL + 3660)?;
        story.settle(true)?;
        story.accept(used("b", 150), Some("a"))?;
        at(&mut story, APRIL + 7260)?;
        story.settle(true)?;
        story.decline(used("c", 120), Some("a"), "usage_superseded")?;
        story.decline(used("b", 120), None, "usage_id_taken")?;
        let mut never = used("c", 120);
        never.report.to = Instant(u64::MAX);
        story.decline(never, None, "usage_in_future")?;
        story.decline(used("c", 120), Some("x"), "unknown_usage_record")?;
        story.accept(used("c", 120), Some("b"))?;
        at(&mut story, APRIL + 10_860)?;
        story.settle(true)?;
        assert_eq!(story.unit_postings(), [(0, 1_000_000), (0, 500_000), (0, -300_000)]);
        assert_eq!(owed(&story, Account::Receivable(ProjectNo(0))), "1.200000");
        story.check_books()?;
        story.check_recount()
    });
}

/// Four hours around the end of March: half of them are booked in its last hour, and half in the hour before `to`.
#[test]
fn time_is_divided_at_the_end_of_a_month() {
    told(|| {
        let mut story = runtime(APRIL - 3 * 3600)?;
        at(&mut story, APRIL + 2 * 3600 + 1)?;
        story.accept(used(0, "a", JOB_HOURS, 4, (APRIL - 7200, APRIL + 7200)), None)?;
        // A count ends in the hour that contains its end.
        story.accept(used(0, "b", REQUESTS, 100, (APRIL - 7200, APRIL + 7200)), None)?;
        at(&mut story, APRIL + 4 * 3600)?;
        story.settle(true)?;
        assert_eq!(story.unit_postings(), [(-1, 4_000_000), (1, 4_000_000), (2, 1_000_000)]);
        story.close(true)?;
        story.check_books()?;
        story.check_recount()
    });
}

/// A thousand records of 10^12 are what a project can use in a month; less than before passes, and makes room.
#[test]
fn a_month_has_a_limit() {
    told(|| {
        let mut story = runtime(APRIL)?;
        at(&mut story, APRIL + 601)?;
        let (most, between) = (1_000_000_000_000, (APRIL, APRIL + 600));
        for place in 0..1000 {
            story.accept(used(0, &format!("use-{place}"), REQUESTS, most, between), None)?;
        }
        let one = |id| used(0, id, REQUESTS, 1, between);
        story.decline(one("x"), None, "too_much_usage")?;
        story.accept(used(1, "other project", REQUESTS, 1, between), None)?;
        story.accept(used(0, "other unit", JOB_HOURS, 1, between), None)?;
        story.accept(used(0, "as much", REQUESTS, most, between), Some("use-0"))?;
        story.accept(used(0, "less", REQUESTS, most - 1, between), Some("as much"))?;
        story.accept(one("x"), None)?;
        story.decline(one("y"), None, "too_much_usage")
    });
}

/// What was posted and invoiced for a project that was deleted then is superseded by usage of another one.
#[test]
fn a_deleted_project_is_given_back_what_was_superseded() {
    told(|| {
        let mut story = runtime(APRIL - 3600)?;
        let used = |project, id, units| used(project, id, REQUESTS, units, (APRIL - 3600, APRIL - 60));
        at(&mut story, APRIL - 30)?;
        story.accept(used(1, "a", 100), None)?;
        at(&mut story, APRIL + 60)?;
        story.settle(true)?;
        story.close(true)?;
        story.expect(Command::DeleteProject(ProjectNo(1)), &[])?;
        story.accept(used(0, "b", 150), Some("a"))?;
        at(&mut story, APRIL + 3660)?;
        story.settle(true)?;
        assert_eq!(owed(&story, Account::Receivable(ProjectNo(0))), "1.500000");
        assert_eq!(owed(&story, Account::Receivable(ProjectNo(1))), "-1.000000");
        story.check_books()?;
        story.check_recount()
    });
}
