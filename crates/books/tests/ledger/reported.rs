//! Usage that runtimes report: how it is divided, posted, superseded and invoiced. Every number by hand.

use crate::world::{World, at, name};
use leasehold_books::{Keeper, Opened};
use leasehold_engine::Command;
use leasehold_engine::command::{PutAppType, PutUnitPrice, RecordUsage};
use leasehold_journal::Secret;
use leasehold_model::body::{ReplacedUsage, UsageReport};
use leasehold_model::rate::Currency;
use leasehold_model::{
    Account, AppInstanceNo, AppOrigin, AppTypeNo, Body, ProjectNo, Steps, TenantNo, UnitNo, UsageDelta,
};

const JOB_HOURS: UnitNo = UnitNo(0);
const REQUESTS: UnitNo = UnitNo(4);
/// Parts of one unit on a line.
const ONE: i128 = 1_000_000_000_000_000_000;

/// A runtime of tenant 0, whose app reports job-hours and requests.
fn world() -> (World, AppInstanceNo) {
    let mut world = World::new();
    let instance = world.runtime(0);
    let units = vec![JOB_HOURS, REQUESTS];
    let (slug, origin) = (name("slurm"), AppOrigin::Internal);
    world.ok(Command::PutAppType(PutAppType { app_type: Some(AppTypeNo(0)), slug, origin, units }));
    (world, instance)
}

impl World {
    fn unit_price(&mut self, unit: UnitNo, price: &str) {
        let price = price.parse().expect("a price");
        let put = PutUnitPrice { unit, app_type: None, currency: Currency::DEFAULT, price, from: None };
        self.ok(Command::PutUnitPrice(put));
    }

    /// The command, as a server makes it that has asked the books.
    fn report(
        &self,
        instance: AppInstanceNo,
        (id, old): (&str, Option<&str>),
        (unit, quantity): (UnitNo, &str),
        (from, to): (&str, &str),
    ) -> Command {
        let report = UsageReport {
            reporter: None,
            source: name("adapter"),
            id: name(id),
            app_instance: instance,
            unit,
            quantity: quantity.parse().expect("a quantity"),
            from: at(from),
            to: at(to),
            correlation: 7,
            control_plane: false,
            attachment: None,
            allocation: None,
            supersedes: old.map(name),
        };
        let known = report.superseded_key().and_then(|key| self.books.known_usage(key).expect("readable"));
        let replaces = known.map(|known| {
            let record = &self.records[usize::try_from(known.sequence).expect("small")];
            let Body::UsageRecorded(old) = &record.body else { panic!("no usage record: {record:?}") };
            ReplacedUsage {
                sequence: known.sequence,
                project: record.identity.project.expect("usage has a project"),
                quantity: old.report.quantity,
                from: old.report.from,
                to: old.report.to,
                control_plane: false,
                attachment: None,
                charge: old.charge,
            }
        });
        let known_to = self.books.size();
        Command::RecordUsage(RecordUsage {
            tenant: TenantNo(0),
            project: ProjectNo(0),
            user: None,
            report,
            replaces,
            replaced_creditor: None,
            named: None,
            known_to,
        })
    }

    fn use_it(
        &mut self,
        instance: AppInstanceNo,
        ids: (&str, Option<&str>),
        what: (UnitNo, &str),
        when: (&str, &str),
    ) -> u64 {
        let command = self.report(instance, ids, what, when);
        self.ok(command)
    }
}

/// SEMANTICS 12: 100, superseded by 150, superseded by 120, posts +100, +50 and -30. A request costs half a cent.
#[test]
fn a_chain_of_records_posts_its_differences() {
    let (mut world, app) = world();
    world.unit_price(REQUESTS, "0.005");
    world.wait("10:30");
    world.use_it(app, ("1", None), (REQUESTS, "100"), ("10:00", "10:20"));
    world.wait("11:00").settle();
    world.use_it(app, ("2", Some("1")), (REQUESTS, "150"), ("10:00", "10:20"));
    world.wait("12:00").settle();
    world.use_it(app, ("3", Some("2")), (REQUESTS, "120"), ("10:00", "10:20"));
    let draft = world.books.unposted(at("12:30")).expect("the books can be read");
    assert_eq!(draft[0].parts[0].lines[0].usage, UsageDelta(-30 * ONE));
    world.wait("13:00").settle();
    assert_eq!(
        world.told(),
        "usage 11-30 10:00 2026-11 project-0 0.500000\n\
         usage 11-30 10:00 2026-11 project-0 0.250000\n\
         usage 11-30 10:00 2026-11 project-0 -0.150000\n"
    );
    assert_eq!(world.check().owes(0), "0.600000");
    assert_eq!(world.books.account_balance(Account::UnitRevenue(REQUESTS), Currency::DEFAULT), Steps(-600_000));
    let line = world.entries()[0].line.clone().expect("a line");
    let (behind, more) = world.books.line_records(ProjectNo(0), &line.key, 10).expect("the books can be read");
    assert_eq!((behind.len(), more), (3, false));
    assert!(world.books.unposted(at("13:30")).expect("the books can be read").is_empty());
}

/// Eight job-hours from 20:00 to 04:00 lie in two months and, from 22:00 on, have two prices. By hand: 2 × 0.30 and
/// 2 × 0.40 in November, booked in its last hour; 4 × 0.40 in December, booked in the hour before 04:00.
#[test]
fn time_is_divided_at_the_border_of_a_month_and_of_a_price() {
    let (mut world, app) = world();
    world.unit_price(JOB_HOURS, "0.3");
    world.wait("22:00");
    world.unit_price(JOB_HOURS, "0.4");
    world.wait("12-01 05:00");
    world.use_it(app, ("1", None), (JOB_HOURS, "8"), ("20:00", "12-01 04:00"));
    world.wait("12-01 06:00").settle();
    assert_eq!(
        world.told(),
        "usage 11-30 23:00 2026-11 project-0 0.600000\n\
         usage 11-30 23:00 2026-11 project-0 0.800000\n\
         usage 12-01 03:00 2026-12 project-0 1.600000\n"
    );
    // A record that comes after the month was closed is an adjustment of the next one.
    world.close("2026-11");
    world.use_it(app, ("2", None), (JOB_HOURS, "1"), ("21:00", "22:00"));
    world.wait("12-01 07:00").settle();
    let last = world.told().lines().last().map(str::to_owned);
    assert_eq!(last.as_deref(), Some("usage 11-30 21:00 2026-12 project-0 0.300000"));
    world.check();
}

/// What is reported between the cut of a month and its last settlement belongs to the next month.
#[test]
fn the_cut_of_a_month_divides_what_is_reported() {
    let (mut world, app) = world();
    world.unit_price(REQUESTS, "1");
    world.wait("12-01 00:10").settle();
    world.use_it(app, ("1", None), (REQUESTS, "1"), ("22:00", "23:00"));
    let month = "2026-11".parse().expect("a month");
    world.ok(Command::ClosePeriod(month));
    world.use_it(app, ("2", None), (REQUESTS, "10"), ("22:00", "23:00"));
    world.finish(month);
    world.wait("12-01 01:00").settle();
    assert_eq!(
        world.told(),
        "usage 11-30 23:00 2026-11 project-0 1.000000\n\
         invoice - 2026-11 project-0 1.000000\n\
         usage 11-30 23:00 2026-12 project-0 10.000000\n"
    );
    world.check();
}

/// Usage that was reported before the ledger was opened is posted for the hours of the ledger, and unpriced usage never.
#[test]
fn only_the_hours_of_the_ledger_are_posted_and_only_what_has_a_price() {
    let mut world = World::unopened(at("08:00"));
    let app = world.runtime(0);
    let (slug, origin, units) = (name("slurm"), AppOrigin::Internal, vec![JOB_HOURS, REQUESTS]);
    world.ok(Command::PutAppType(PutAppType { app_type: Some(AppTypeNo(0)), slug, origin, units }));
    world.unit_price(REQUESTS, "1");
    world.wait("10:30");
    world.use_it(app, ("1", None), (REQUESTS, "1"), ("08:00", "09:30"));
    world.use_it(app, ("2", None), (REQUESTS, "20"), ("08:00", "10:10"));
    world.use_it(app, ("3", None), (JOB_HOURS, "300"), ("08:00", "10:10"));
    world.ok(Command::OpenLedger(leasehold_engine::command::OpenLedger { from: Some(at("10:00")) }));
    world.use_it(app, ("4", None), (REQUESTS, "4000"), ("09:00", "09:59"));
    world.wait("11:00").settle();
    assert_eq!(world.told(), "usage 11-30 10:00 2026-11 project-0 20.000000\n");
    world.check();
}

/// A settlement that is interrupted goes on with the amounts of the records that it began with.
#[test]
fn an_interrupted_settlement_leaves_out_what_was_reported_since() {
    let (mut world, app) = world();
    world.unit_price(REQUESTS, "1");
    world.wait("10:00").settle();
    world.wait("10:10");
    world.use_it(app, ("1", None), (REQUESTS, "1"), ("10:00", "10:05"));
    world.lease(1, 0, 7, 600, |_| {});
    world.wait("11:00");
    let settlement = world.books.next_settlement().expect("readable").expect("an hour is over");
    assert_eq!(settlement.postings.len(), 2);
    let as_of_size = settlement.as_of_size;
    // One payer is posted, then the process ends, and more is reported of the same hour.
    let second = leasehold_books::Settlement { postings: vec![settlement.postings[1].clone()], ..settlement };
    assert!(world.post(second, usize::MAX));
    world.use_it(app, ("2", None), (REQUESTS, "10"), ("10:00", "10:06"));
    let again = world.books.next_settlement().expect("readable").expect("the hour is not settled");
    assert_eq!(again.as_of_size, as_of_size);
    let lines = &again.postings[0].parts[0].lines;
    assert_eq!(lines.iter().map(|line| line.usage.0).collect::<Vec<_>>(), [ONE]);
    world.settle();
    world.wait("12:00").settle();
    assert_eq!(world.owes(0), "11.000000");
    world.check();
}

/// The file has all of it: hours, what is not posted, and IDs in runs that were merged; a day that is over is forgotten.
#[test]
fn books_that_are_opened_again_know_everything() {
    let (mut world, app) = world();
    world.unit_price(REQUESTS, "1");
    world.wait("10:10");
    let ids: Vec<String> = (0..700).map(|number| format!("job-{number}")).collect();
    for id in &ids {
        world.use_it(app, (id, None), (REQUESTS, "1"), ("10:00", "10:05"));
    }
    world.use_it(app, ("newer", Some("job-7")), (REQUESTS, "5"), ("10:00", "10:05"));
    let key = |id: &str| UsageReport::key_for(None, &name("adapter"), &name(id));
    let (folder, secret) = (tempfile::tempdir().expect("a folder"), Secret::new([7; 32]));
    let check = |keeper: &Keeper, of: &World| {
        let draft = keeper.books.unposted(at("11:00")).expect("readable");
        assert_eq!(draft, of.books.unposted(at("11:00")).expect("readable"));
        assert_eq!(draft[0].parts[0].lines[0].usage, UsageDelta(704 * ONE));
        for id in ids.iter().map(String::as_str).chain(["newer", "none"]) {
            let known = keeper.books.known_usage(key(id)).expect("readable");
            assert_eq!(known, of.books.known_usage(key(id)).expect("readable"), "{id}");
            assert_eq!(known.is_some(), id != "none", "{id}");
        }
        let superseded = keeper.books.known_usage(key("job-7")).expect("readable").expect("known");
        assert_eq!(superseded.superseded_by, Some(of.records.len() as u64 - 1));
    };
    for at_once in [11, 100, 10_000] {
        let (path, journal) = (folder.path().join(at_once.to_string()), world.sealed());
        let (mut keeper, _) = Keeper::open(&path, &journal, secret.books()).expect("opened");
        while keeper.follow(&journal, at_once).expect("followed") > 0 {
            keeper.commit(&journal).expect("committed");
        }
        check(&keeper, &world);
        drop(keeper);
        let (keeper, opened) = Keeper::open(&path, &journal, secret.books()).expect("opened");
        assert_eq!(opened, Opened::Continued);
        check(&keeper, &world);
    }
    // 35 days after the end of the day, a commit forgets its IDs.
    world.wait("01-05 00:00").wait("01-05 00:01");
    let (path, journal) = (folder.path().join("11"), world.sealed());
    let (mut keeper, _) = Keeper::open(&path, &journal, secret.books()).expect("opened");
    assert_eq!(keeper.books.usage_ids(), 702, "with the mark of the superseded one");
    keeper.follow(&journal, 10_000).expect("followed");
    keeper.commit(&journal).expect("committed");
    assert_eq!(keeper.books.usage_ids(), 0);
    drop(keeper);
    let (keeper, opened) = Keeper::open(&path, &journal, secret.books()).expect("opened");
    assert_eq!((opened, keeper.books.usage_ids()), (Opened::Continued, 0));
    assert_eq!(keeper.books.known_usage(key("job-1")).expect("readable"), None);
}
