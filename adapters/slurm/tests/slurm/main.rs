//! The adapter as a process, a real daemon, and a program in the place of sacct that prints what a real one printed.

#[path = "../../../kit/tests/site/mod.rs"]
mod site;

use leasehold_model::{ControlPlaneScope, Instant, RuntimeBackend};
use site::{Said, Site};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

const PROGRAM: &str = env!("CARGO_BIN_EXE_leasehold-slurm");
const FIRST: &str = include_str!("../recorded/first-pass.txt");
const SECOND: &str = include_str!("../recorded/second-pass.txt");
const COMMENTS: &str = include_str!("../recorded/comments.txt");
/// As `first_totals`, and 15 s with two GPUs: .004166667 and .008333333.
const SECOND_JOB_HOURS: &str = "0.015833334";
const SECOND_GPU_HOURS: &str = "0.015277778";
const UNITS: [&str; 4] = ["job_hours", "gpu_hours", "cpu_hours", "node_hours"];

/// When the tests began: what one test computes from it stays the same.
fn now() -> u64 {
    static NOW: OnceLock<u64> = OnceLock::new();
    *NOW.get_or_init(|| SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs())
}

/// What was recorded, as if the last run had ended an hour ago: old usage is not accepted.
fn shifted(recorded: &str) -> String {
    let times = |line: &str| line.split('|').skip(7).take(2).filter_map(|time| time.parse::<u64>().ok()).max();
    let latest = SECOND.lines().filter_map(times).max().expect("a run that ended");
    let base = now() - 3600;
    let shift = |place: usize, field: &str| match field.parse::<u64>() {
        Ok(time) if place == 7 || place == 8 => (time + base - latest).to_string(),
        _ => field.to_owned(),
    };
    let lines = recorded.lines().map(|line| {
        let fields: Vec<String> = line.split('|').enumerate().map(|(place, field)| shift(place, field)).collect();
        fields.join("|") + "\n"
    });
    lines.collect()
}

/// A site whose runtime is a Slurm cluster, with this table and these further lines in the section `slurm`.
async fn slurm(scope: ControlPlaneScope, table: &str, more: &str) -> Site {
    let site = Site::new(RuntimeBackend::Slurm, scope, &UNITS).await;
    let at = site.folder.path().display().to_string();
    let script = format!(
        "#!/bin/sh\n[ \"$TZ $SLURM_TIME_FORMAT\" = 'UTC %s' ] || exit 9\necho \"$@\" >> {at}/asked\n\
         if [ -e {at}/down ]; then echo 'sacct: error: slurmdbd: Connection refused' >&2; exit 1; fi\n\
         case \"$*\" in *Comment*) cat {at}/comments;; *) cat {at}/table;; esac\n"
    );
    site.write("sacct", &script);
    fs::set_permissions(site.path("sacct"), fs::Permissions::from_mode(0o755)).unwrap();
    site.write("table", table);
    site.write("comments", COMMENTS);
    let begin = Instant::from_secs(now() - 86_400).to_string();
    let section = site.section(&begin, "  users: { root: ada }\n");
    site.write("config.yaml", &format!("{section}slurm:\n  cluster: box\n  sacct: {at}/sacct\n{more}"));
    site
}

impl Said {
    #[track_caller]
    fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
    #[track_caller]
    fn fails(self, code: &str) -> Self {
        assert!(self.code == 1 && self.err.contains(&format!("({code})")), "no ({code}) in {self:?}");
        self
    }
}

fn totals(lines: &[(&str, &str)]) -> BTreeMap<String, String> {
    lines.iter().map(|(what, quantity)| ((*what).to_owned(), (*quantity).to_owned())).collect()
}

/// The first recorded table by hand, in seconds: jobs 1 (5, one GPU), 2 (10, two GPUs, requeued), 3 (13 of 21, suspended in
/// between), 6 (2), 7 (0, failed at once) and the array 4 (3 × 4). Each quantity is rounded by itself:
/// 5 → .001388889, 10 → .002777778, 13 → .003611111, 2 → .000555556, 4 → .001111111; 2 × 10 → .005555556.
fn first_totals() -> BTreeMap<String, String> {
    totals(&[("lattice job_hours billed", "0.011666667"), ("lattice gpu_hours billed", "0.006944445")])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_real_slurm_printed_is_counted_once() {
    let site = slurm(ControlPlaneScope::Project, &shifted(FIRST), "").await;
    let first = site.run(PROGRAM, "--once").await.ok();
    assert!(first.err.contains("recorded=9"), "{first:?}");
    assert_eq!(site.totals().await, first_totals());
    // The same again says nothing and sends nothing.
    let again = site.run(PROGRAM, "--once").await.ok();
    assert!(!again.err.contains("reported usage"), "{again:?}");
    // Without the state, which is also how it is after a kill between sending and keeping the state.
    fs::remove_dir_all(site.path("state")).unwrap();
    let lost = site.run(PROGRAM, "--once").await.ok();
    assert!(lost.err.contains("recorded=0 repeated=9"), "{lost:?}");
    assert_eq!(site.totals().await, first_totals());
    // The requeued job ran again, under another index: 15 s with two GPUs.
    site.write("table", &shifted(SECOND));
    site.run(PROGRAM, "--once").await.ok();
    let after = site.totals().await;
    assert_eq!(after["lattice job_hours billed"], SECOND_JOB_HOURS);
    assert_eq!(after["lattice gpu_hours billed"], SECOND_GPU_HOURS);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_state_is_as_good_as_a_new_one() {
    let site = slurm(ControlPlaneScope::Project, &shifted(FIRST), "").await;
    site.run(PROGRAM, "--once").await.ok();
    let old = fs::read(site.path("state/state.json")).unwrap();
    site.write("table", &shifted(SECOND));
    site.run(PROGRAM, "--once").await.ok();
    // Killed after sending, before the state was kept.
    fs::write(site.path("state/state.json"), old).unwrap();
    let again = site.run(PROGRAM, "--once").await.ok();
    assert!(again.err.contains("recorded=0"), "{again:?}");
    assert_eq!(site.totals().await["lattice job_hours billed"], SECOND_JOB_HOURS);
}

#[tokio::test(flavor = "multi_thread")]
async fn outages_of_either_side_lose_nothing() {
    let mut site = slurm(ControlPlaneScope::Project, &shifted(FIRST), "").await;
    site.write("down", "");
    site.run(PROGRAM, "--once").await.fails("sacct_failed");
    fs::remove_file(site.path("down")).unwrap();
    site.stop_daemon().await;
    site.run(PROGRAM, "--once").await.fails("unreachable");
    assert!(!site.path("state/state.json").exists());
    site.start_daemon().await;
    site.run(PROGRAM, "--once").await.ok();
    // Half a table is no table.
    let whole = shifted(SECOND);
    site.write("table", &whole[..whole.len() - 9]);
    site.run(PROGRAM, "--once").await.fails("sacct_unreadable");
    assert_eq!(site.totals().await, first_totals());
    site.write("table", &whole);
    site.run(PROGRAM, "--once").await.ok();
    assert_eq!(site.totals().await["lattice job_hours billed"], SECOND_JOB_HOURS);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_goes_on_by_itself_after_outages_and_ends_when_it_is_asked_to() {
    let mut site = slurm(ControlPlaneScope::Project, &shifted(FIRST), "").await;
    let mut adapter = site.begin(PROGRAM, "--every 100ms");
    site.until(&first_totals()).await;
    site.stop_daemon().await;
    site.write("table", &shifted(SECOND));
    site.start_daemon().await;
    let second =
        totals(&[("lattice job_hours billed", SECOND_JOB_HOURS), ("lattice gpu_hours billed", SECOND_GPU_HOURS)]);
    site.until(&second).await;
    // A second one would not be wrong, but useless.
    site.run(PROGRAM, "--once").await.fails("state_in_use");
    let asked = std::process::Command::new("kill").args(["-TERM", &adapter.id().to_string()]).status();
    assert!(asked.expect("kill runs").success());
    let ended = tokio::task::spawn_blocking(move || adapter.wait()).await.expect("it ends").expect("it ran");
    assert!(ended.success(), "{ended}");
}

/// A table with one finished run of an hour that ended an hour ago.
fn one(seconds: u64, more: &str) -> String {
    let end = now() - 3600;
    let row = format!("box|5|5|COMPLETED|lattice|root|batch|{}|{end}|{seconds}|cpu=2,node=1{more}\n", end - 7200);
    FIRST.lines().next().expect("a header").to_owned() + "\n" + &row
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_changes_is_superseded_also_without_the_state() {
    let site = slurm(ControlPlaneScope::Project, &one(3600, ""), "").await;
    let total = async || site.totals().await["lattice job_hours billed"].clone();
    site.run(PROGRAM, "--once").await.ok();
    assert_eq!(total().await, "1");
    site.write("table", &one(5400, ""));
    let changed = site.run(PROGRAM, "--once").await.ok();
    assert!(changed.err.contains("corrected=1"), "{changed:?}");
    assert_eq!(total().await, "1.5");
    // The chain is found again: first its end, then one more link, then the first content once more.
    for (seconds, expected) in [(5400, "1.5"), (7200, "2"), (3600, "1"), (3600, "1")] {
        fs::remove_dir_all(site.path("state")).unwrap();
        site.write("table", &one(seconds, ""));
        site.run(PROGRAM, "--once").await.ok();
        assert_eq!(total().await, expected);
    }
    let newest = site.client.show_usage_record("slurm/box/5/job_hours/4").query("source", "adapter");
    let newest = newest.query("tenant", "physics").await.expect("the chain has four records");
    assert_eq!((newest.quantity.as_str(), newest.superseded_by), ("1", None));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_of_another_run_is_not_replaced() {
    let site = slurm(ControlPlaneScope::Project, &one(3600, ""), "").await;
    site.run(PROGRAM, "--once").await.ok();
    fs::remove_dir_all(site.path("state")).unwrap();
    let end = now() - 3600;
    site.write("table", &one(1800, "").replace(&(end - 7200).to_string(), &(end - 1800).to_string()));
    site.run(PROGRAM, "--once").await.fails("usage_refused");
    assert_eq!(site.totals().await["lattice job_hours billed"], "1");
    assert!(fs::read_to_string(site.path("state/refused.jsonl")).unwrap().contains("id_of_other_usage"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_refused_does_not_hold_up_the_others() {
    let more = "  accounts: { lattice: lattice, optics: nowhere }\n";
    let site = slurm(ControlPlaneScope::Tenant, &shifted(FIRST), more).await;
    let first = site.run(PROGRAM, "--once").await.fails("usage_refused");
    assert!(first.err.contains("recorded=7") && first.err.contains("refused=2"), "{first:?}");
    let refused = fs::read_to_string(site.path("state/refused.jsonl")).unwrap();
    assert_eq!(refused.lines().count(), 2, "{refused}");
    assert!(refused.contains("unknown_anchor") && refused.contains("slurm/box/3/gpu_hours"), "{refused}");
    // It is named once.
    site.run(PROGRAM, "--once").await.ok();
    // After the mistake was corrected, everything is read again.
    let config = fs::read_to_string(site.path("config.yaml")).unwrap().replace("nowhere", "optics");
    site.write("config.yaml", &config);
    let since = Instant::from_secs(now() - 80_000).to_string();
    site.run(PROGRAM, &format!("--once --since {since}")).await.ok();
    let expected = totals(&[
        ("lattice job_hours reported", "0.008888889"),
        ("lattice gpu_hours reported", "0.001388889"),
        ("optics job_hours reported", "0.002777778"),
        ("optics gpu_hours reported", "0.005555556"),
    ]);
    assert_eq!(site.totals().await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn users_accounts_comments_and_units() {
    let more = "  units: [job_hours, cpu_hours, node_hours, gpu_hours]\n  accounts: { optics: optics }\n  \
                correlation_from_comment: true\n";
    let site = slurm(ControlPlaneScope::Tenant, &shifted(FIRST), more).await;
    let dry = site.run(PROGRAM, "--once --dry-run").await.ok();
    assert_eq!(dry.out.lines().count(), 23, "{}", dry.out);
    assert!(site.totals().await.is_empty() && !site.path("state").exists(), "nothing was done");
    site.run(PROGRAM, "--once").await.ok();
    let show = async |id: &str| {
        let call = site.client.show_usage_record(id).query("source", "adapter").query("tenant", "physics");
        call.await.expect("it was recorded")
    };
    let of_optics = show("slurm/box/3/gpu_hours").await;
    assert_eq!((of_optics.project_id.as_str(), of_optics.requested_by_user_id.as_deref()), ("optics", Some("ada")));
    assert_eq!(of_optics.quantity, "0.005555556");
    // Nobody is known to have asked for what an account without a project did.
    let stray = show("slurm/box/1/cpu_hours").await;
    assert_eq!((stray.project_id.as_str(), stray.no_submitter), ("lattice", true));
    assert_eq!(stray.correlation_id, "0b9f4e9c-52d8-4a43-9a3d-1f3a4d1e9f10");
    let tasks = (show("slurm/box/5/job_hours").await, show("slurm/box/12/job_hours").await);
    assert_eq!(tasks.0.correlation_id, tasks.1.correlation_id, "one array, one story");
    // A user whom Leasehold does not know does not hold up usage.
    let config = fs::read_to_string(site.path("config.yaml")).unwrap().replace("root: ada", "root: nobody");
    site.write("config.yaml", &config.replace("box\n", "box\n  id_name: other\n"));
    fs::remove_dir_all(site.path("state")).unwrap();
    let unknown = site.run(PROGRAM, "--once").await.ok();
    assert!(unknown.err.contains("is no user of the tenant"), "{unknown:?}");
    assert_eq!(show("slurm/other/3/gpu_hours").await.requested_by_user_id, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_can_be_lent() {
    let more = "  accounts: { lattice: lattice }\n  partitions: { batch: { attachment: 0, allocation: alloc-1 } }\n";
    let site = slurm(ControlPlaneScope::Tenant, &one(3600, ",gres/gpu=2"), more).await;
    let (attachment, worker) = site.lend().await;
    assert_eq!(attachment, 0);
    site.run(PROGRAM, "--once").await.fails("usage_refused");
    let refused = fs::read_to_string(site.path("state/refused.jsonl")).unwrap();
    assert!(refused.contains("allocation_not_lent"), "{refused}");
    fs::remove_dir_all(site.path("state")).unwrap();
    site.reconfigure("alloc-1 ", &format!("{worker} "));
    site.run(PROGRAM, "--once").await.ok();
    let call = site.client.show_usage_record("slurm/box/5/gpu_hours").query("source", "adapter");
    let record = call.query("tenant", "physics").await.expect("it was recorded");
    assert_eq!((record.attachment_id, record.quantity.as_str(), record.no_submitter), (Some(0), "2", false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_end_becomes_known_late_is_asked_for_by_its_number() {
    let site = slurm(ControlPlaneScope::Project, &one(3600, "").replace("COMPLETED", "RUNNING"), "").await;
    site.run(PROGRAM, "--once").await.ok();
    assert!(site.totals().await.is_empty(), "it runs");
    site.write("table", &(FIRST.lines().next().unwrap().to_owned() + "\n"));
    site.run(PROGRAM, "--once").await.ok();
    let asked = fs::read_to_string(site.path("asked")).unwrap();
    assert!(asked.lines().last().unwrap().contains("--jobs=5 --starttime="), "{asked}");
}

/// What was not reported before the runtime was deleted is refused and kept; passes go on.
#[tokio::test(flavor = "multi_thread")]
async fn usage_of_a_deleted_runtime_is_refused_record_by_record() {
    let header = FIRST.lines().next().expect("a header").to_owned() + "\n";
    let site = slurm(ControlPlaneScope::Project, &header, "").await;
    site.run(PROGRAM, "--once").await.ok();
    site.client.delete_app_instance("rt").query("tenant", "physics").await.expect("it owes nothing");
    site.run(PROGRAM, "--once").await.ok();
    site.write("table", &one(3600, ""));
    site.run(PROGRAM, "--once").await.fails("usage_refused");
    let refused = fs::read_to_string(site.path("state/refused.jsonl")).unwrap();
    assert!(refused.contains("slurm/box/5/job_hours") && refused.contains("unknown_anchor"), "{refused}");
    // It is refused once. Without anything known of it, a runtime that was deleted cannot be reported for.
    site.run(PROGRAM, "--once").await.ok();
    fs::remove_dir_all(site.path("state")).unwrap();
    site.run(PROGRAM, "--once").await.fails("app_instance_deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wrong_runtime_is_refused() {
    let site = slurm(ControlPlaneScope::Project, FIRST, "").await;
    let config = fs::read_to_string(site.path("config.yaml")).unwrap();
    site.write("config.yaml", &config.replace("app_instance: rt", "app_instance: other"));
    site.run(PROGRAM, "--once").await.fails("unknown_app_instance");
    site.write("config.yaml", &config.replace("cluster: box", "cluster: box\n  colour: red"));
    let said = site.run(PROGRAM, "--once").await;
    assert!(said.code == 2 && said.err.contains("unknown key `colour`"), "{said:?}");
    assert!(site.run(PROGRAM, "--help").await.out.contains("Examples:"));
}
