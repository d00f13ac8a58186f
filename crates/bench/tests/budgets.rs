//! How many instructions the calls that matter take, compared with a table that is kept.
//!
//! Times on shared machines mean little; instruction counts do not. This program starts itself under valgrind, which
//! counts what happens inside [`measured`] and nothing else, and compares each count with `budgets.txt`. A count more than
//! 5 % above fails. The table is keyed by compiler: with another one the counts are printed and nothing is compared.
//! `UPDATE_BUDGETS=1 cargo test -p leasehold-bench --test budgets` writes the table.

use leasehold_bench::work::{Workload, cluster, engine_with_cluster, fill, large_cluster, name};
use leasehold_books::{Books, Dim, Keeper, Question};
use leasehold_engine::command::{OpenLedger, PostUsage, RatedLine, RequestLease, SettleHour};
use leasehold_engine::{Command, Engine, Request, Sealed, State};
use leasehold_ledger::Amount;
use leasehold_meter::Window;
use leasehold_model::body::Genesis;
use leasehold_model::ledger::{HOUR_NS, Item};
use leasehold_model::rate::Currency;
use leasehold_model::{
    Batch, ClassNo, Identity, Instant, LeaseNo, LineKey, Month, PoolNo, Priority, ProjectNo, Quanta, Record, Span,
    Steps, TenantNo, UsageDelta,
};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::{env, fs};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/budgets.txt");
/// Set in the process that valgrind watches.
const WATCHED: &str = "LEASEHOLD_BUDGETS_WATCHED";
/// By how many hundredths a count may lie above its budget.
const TOLERANCE_PERCENT: u64 = 5;

fn main() -> ExitCode {
    if env::var_os(WATCHED).is_some() {
        run(&mut |_, count, work| measured(count, work));
        return ExitCode::SUCCESS;
    }
    // A run of other tests names them, or asks for a list.
    let asked = env::args().skip(1).find(|word| !word.starts_with('-'));
    if asked.is_some_and(|word| !"budgets".contains(&word)) || env::args().any(|word| word == "--list") {
        return ExitCode::SUCCESS;
    }
    match compare() {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// The only function that valgrind counts in: it looks for this name.
#[inline(never)]
fn measured(count: u64, work: &mut dyn FnMut(u64)) {
    (0..count).for_each(work);
}

/// Told the name of an operation, how often it is to be done, and how.
type Measure<'a> = dyn FnMut(&'static str, u64, &mut dyn FnMut(u64)) + 'a;

const T0: Instant = leasehold_bench::work::T0;
const NODES: u32 = 1000;
const TENANTS: u32 = 100;
const LIVE: usize = 10_000;
/// How often the cheap operations are done, so that a hash table that grows once does not show.
const COUNT: u64 = 400;

/// An engine, the requests that it decides and what became of them.
struct Desk {
    engine: Engine,
    batch: Batch,
    now: Instant,
}

impl Desk {
    fn decide(&mut self, request: &Request) {
        self.now = Instant(self.now.0 + 1000);
        self.engine.advance(self.now, &mut self.batch, 1000);
        let decided = self.engine.decide(self.now, request, &mut self.batch);
        assert!(matches!(decided, Ok(Sealed { repeated: false, .. })), "the work is valid: {decided:?}");
    }

    /// What was sealed since this was asked last.
    fn records(&mut self) -> Vec<Record> {
        let records = self.batch.frames().map(|frame| frame.expect("a whole frame").decode().expect("a record"));
        let records = records.collect();
        self.batch.reset(self.engine.state().size());
        records
    }
}

/// Without its idempotency key: hashing it would count for more than the rest.
fn unkeyed(request: Request) -> Request {
    Request::new(request.identity, request.command)
}

fn run(measure: &mut Measure<'_>) {
    let mut work = Workload::new(1, TENANTS);
    let mut engine = engine_with_cluster(NODES, TENANTS);
    fill(&mut engine, &mut work, LIVE);
    let mut folded = engine.state().clone();
    let mut desk = Desk { batch: Batch::new(engine.state().size()), engine, now: T0 };

    // One after the other: what is granted is renewed, and then released.
    let grants: Vec<Request> = (0..COUNT).map(|_| unkeyed(work.request().0)).collect();
    let first = LIVE as u64;
    let held: Vec<(LeaseNo, u32)> =
        (first..).map(LeaseNo).zip(grants.iter().map(|request| request.identity.tenant.expect("a tenant").0)).collect();
    work.live.clone_from(&held);
    let renewals: Vec<Request> = (0..COUNT).map(|_| unkeyed(work.renew())).collect();
    let releases: Vec<Request> = (0..COUNT).map(|_| unkeyed(work.release())).collect();
    let denials: Vec<Request> = (0..COUNT).map(|_| too_much()).collect();
    let parts = [
        ("grant", "fold of a grant", grants),
        ("renewal", "fold of a renewal", renewals),
        ("release", "fold of a release", releases),
        ("denial", "fold of a denial", denials),
    ];
    for (name, name_of_fold, requests) in parts {
        measure(name, COUNT, &mut |n| desk.decide(&requests[usize::try_from(n).expect("small")]));
        let records = desk.records();
        assert_eq!(records.len() as u64, COUNT, "one record for each {name}");
        measure(name_of_fold, COUNT, &mut |n| {
            folded.apply(&records[usize::try_from(n).expect("small")]).expect("it fits");
        });
    }
    placement(measure);
    books(measure);
    ledger(measure);
}

/// More than a node has.
fn too_much() -> Request {
    let mut ask = RequestLease::of(ClassNo(0), Quanta(4_000_001), Span::from_secs(3600));
    ask.pool = Some(PoolNo(0));
    let identity = Identity { tenant: Some(TenantNo(3)), project: Some(ProjectNo(3)), ..Identity::default() };
    Request::new(identity, Command::Request(ask))
}

/// One GPU on the best of ten thousand nodes of three kinds, each used differently.
fn placement(measure: &mut Measure<'_>) {
    const PLACED: u64 = 50;
    let mut engine = Engine::new(State::new());
    let mut batch = Batch::new(0);
    let genesis =
        Genesis { format_version: 1, origin: name("budgets"), public_key: [0; 32], software: name("budgets") };
    engine.genesis(T0, genesis, &mut batch);
    for command in large_cluster(10_000, 4) {
        batch.reset(engine.state().size());
        engine.decide(T0, &Request::new(Identity::default(), command), &mut batch).expect("the cluster is valid");
    }
    batch.reset(engine.state().size());
    let mut desk = Desk { batch, engine, now: T0 };
    let ask = |quanta: u64| {
        let mut ask = RequestLease::of(ClassNo(0), Quanta(quanta), Span::from_secs(3600));
        ask.pool = Some(PoolNo(0));
        let identity = Identity { tenant: Some(TenantNo(1)), project: Some(ProjectNo(1)), ..Identity::default() };
        Request::new(identity, Command::Request(ask))
    };
    (0..200).for_each(|n| desk.decide(&ask(1 + n % 7)));
    let request = ask(7);
    measure("placement among 10,000 nodes", PLACED, &mut |_| desk.decide(&request));
}

/// A month of leases in the books: what the next record costs, and one question about a window.
fn books(measure: &mut Measure<'_>) {
    let (records, window) = history();
    let (old, new) = records.split_at(records.len() - 2 * usize::try_from(COUNT).expect("small"));
    let mut books: Books = Keeper::in_memory().books;
    old.iter().for_each(|record| books.apply(record).expect("it fits"));
    measure("book update", 2 * COUNT, &mut |n| books.apply(&new[usize::try_from(n).expect("small")]).expect("it fits"));
    let question = Question::over(window, &[Dim::Tenant]);
    measure("window question", 20, &mut |_| {
        let usage = books.usage(&question).expect("an answer");
        assert!(!usage.is_empty());
    });
}

const EARLY_FOLD: &str = "fold of a posted hour";
const LATE_FOLD: &str = "the same after 20,000 entries";

/// One payer is posted for every hour of a month, with thirty lines each: the fold of an hour costs the same at the end
/// of the month, after twenty thousand entries.
fn ledger(measure: &mut Measure<'_>) {
    const HOURS: u64 = 700;
    const MEASURED: u64 = 50;
    let mut engine = engine_with_cluster(2, 2);
    let mut folded = engine.state().clone();
    let mut batch = Batch::new(engine.state().size());
    let mut decide = |engine: &mut Engine, now: Instant, command: Command| {
        engine.decide(now, &Request::new(Identity::default(), command), &mut batch).expect("it is valid");
        let records = batch.frames().map(|frame| frame.expect("a whole frame").decode().expect("a record"));
        let records: Vec<Record> = records.collect();
        batch.reset(engine.state().size());
        records
    };
    let mut records = decide(&mut engine, T0, Command::OpenLedger(OpenLedger { from: None }));
    for hour in 0..HOURS {
        let through = Instant(T0.0 + (hour + 1) * HOUR_NS);
        let post = posted_hour(engine.state(), Instant(T0.0 + hour * HOUR_NS), through);
        records.extend(decide(&mut engine, through, Command::PostUsage(post)));
        let as_of_size = engine.state().size();
        records.extend(decide(&mut engine, through, Command::SettleHour(SettleHour { through, as_of_size })));
    }
    // One record opened the ledger, and every hour has two.
    let mut rest = records.into_iter();
    let mut fold = |state: &mut State, count: u64| {
        let some = rest.by_ref().take(usize::try_from(count).expect("small"));
        some.for_each(|record| state.apply(&record).expect("it fits"));
    };
    fold(&mut folded, 1);
    measure(EARLY_FOLD, MEASURED, &mut |_| fold(&mut folded, 2));
    fold(&mut folded, 2 * (HOURS - 2 * MEASURED));
    measure(LATE_FOLD, MEASURED, &mut |_| fold(&mut folded, 2));
}

/// Thirty lines of the first project.
fn posted_hour(state: &State, hour: Instant, through: Instant) -> PostUsage {
    let line = |card: u32| RatedLine {
        key: LineKey {
            hour,
            project: ProjectNo(0),
            pool: PoolNo(0),
            item: Item::Class(ClassNo(0)),
            priority: Priority::Standard,
            priced: Priority::Standard,
            tag: None,
            app_instance: None,
            attachment: None,
            control_plane: false,
            card: Some(card),
        },
        usage: UsageDelta(1),
        exact: Amount::from(Steps(1_234_567)).encoded().expect("short"),
    };
    PostUsage {
        tenant: TenantNo(0),
        project: ProjectNo(0),
        currency: Currency::DEFAULT,
        month: Month::of(hour),
        through,
        complete: true,
        as_of_size: state.size(),
        previous: state.ledger().payer(ProjectNo(0), Currency::DEFAULT).and_then(|payer| payer.last),
        lines: (0..30).map(line).collect(),
    }
}

/// Grants and releases in turn, a minute apart, on a small cluster; and the middle third of them.
fn history() -> (Vec<Record>, Window) {
    const LEASES: u64 = 4000;
    let mut engine = Engine::new(State::new());
    let mut batch = Batch::new(0);
    let mut now = T0;
    let genesis =
        Genesis { format_version: 1, origin: name("budgets"), public_key: [0; 32], software: name("budgets") };
    engine.genesis(now, genesis, &mut batch);
    let mut records = Vec::new();
    let mut take = |batch: &mut Batch, engine: &Engine| {
        records.extend(batch.frames().map(|frame| frame.expect("a whole frame").decode().expect("a record")));
        batch.reset(engine.state().size());
    };
    for command in cluster(50, 20) {
        engine.decide(now, &Request::new(Identity::default(), command), &mut batch).expect("the cluster is valid");
    }
    take(&mut batch, &engine);
    let mut work = Workload::new(2, 20);
    work.ttl = Span::from_secs(20 * 3600);
    for lease in 0..LEASES {
        now = Instant(now.0 + 60_000_000_000);
        let (request, tenant) = work.request();
        work.live.push((LeaseNo(lease), tenant));
        engine.decide(now, &unkeyed(request), &mut batch).expect("there is room");
        if work.live.len() > 100 {
            let release = unkeyed(work.release());
            engine.decide(now, &release, &mut batch).expect("it is held");
        }
        take(&mut batch, &engine);
    }
    let third = (now.0 - T0.0) / 3;
    (records, Window::new(Instant(T0.0 + third), Instant(T0.0 + 2 * third)))
}

/// Runs this program under valgrind; what each operation takes, once.
fn count() -> Result<Vec<(&'static str, u64)>, String> {
    let mut names = Vec::new();
    run(&mut |name, count, work| {
        names.push((name, count));
        measured(count, work);
    });
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("budgets-{}", process::id()));
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let this = env::current_exe().map_err(|error| error.to_string())?;
    let out = folder.join("counts");
    let mut valgrind = process::Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--quiet", "--collect-atstart=no"]);
    valgrind.args(["--toggle-collect=budgets::measured", "--dump-after=budgets::measured"]);
    valgrind.arg(format!("--callgrind-out-file={}", out.display())).arg(this).env(WATCHED, "1");
    let done = valgrind.output().map_err(|error| format!("valgrind does not run ({error}); try make need-valgrind"))?;
    if !done.status.success() {
        return Err(format!("under valgrind: {}", String::from_utf8_lossy(&done.stderr)));
    }
    let counts = names.iter().enumerate().map(|(place, (name, count))| {
        let dump = PathBuf::from(format!("{}.{}", out.display(), place + 1));
        let text = fs::read_to_string(&dump).map_err(|error| format!("{}: {error}", dump.display()))?;
        let total = text.lines().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
        let total = total.and_then(|total| total.trim().parse::<u64>().ok());
        let total = total.ok_or_else(|| format!("{} has no total", dump.display()))?;
        Ok((*name, total / count))
    });
    let counts: Result<Vec<_>, String> = counts.collect();
    let _ = fs::remove_dir_all(&folder);
    counts
}

/// The compiler and the processor that the counts belong to.
fn compiler() -> Result<String, String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = process::Command::new(rustc).arg("-V").output().map_err(|error| format!("rustc -V: {error}"))?;
    Ok(format!("{}, {}", String::from_utf8_lossy(&said.stdout).trim(), env::consts::ARCH))
}

/// The budgets of one compiler; none if the table does not know it.
fn budgets(table: &str, compiler: &str) -> Option<Vec<(String, u64)>> {
    let mut lines = table.lines().skip_while(|line| *line != format!("[{compiler}]"));
    lines.next()?;
    let rows = lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.trim().is_empty());
    let rows = rows.filter_map(|line| {
        let (count, name) = line.trim().split_once(' ')?;
        Some((name.trim().to_owned(), count.replace(',', "").parse().ok()?))
    });
    Some(rows.collect())
}

fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn section(compiler: &str, counts: &[(&'static str, u64)]) -> String {
    let mut text = format!("[{compiler}]\n");
    for (name, count) in counts {
        writeln!(text, "{:>10} {name}", thousands(*count)).expect("text grows");
    }
    text
}

fn compare() -> Result<String, String> {
    let counts = count()?;
    let compiler = compiler()?;
    let table = fs::read_to_string(TABLE).map_err(|error| format!("{TABLE}: {error}"))?;
    let found = section(&compiler, &counts);
    if env::var_os("UPDATE_BUDGETS").is_some() {
        let others = table
            .split("\n[")
            .enumerate()
            .filter(|(place, part)| *place == 0 || !part.starts_with(&format!("{compiler}]")));
        let mut text: String =
            others.map(|(place, part)| if place == 0 { part.to_owned() } else { format!("\n[{part}") }).collect();
        text = format!("{}\n\n{found}", text.trim_end());
        fs::write(TABLE, text).map_err(|error| format!("{TABLE}: {error}"))?;
        return Ok(format!("written:\n{found}"));
    }
    let Some(budgets) = budgets(&table, &compiler) else {
        return Ok(format!("{TABLE} has no budgets for this compiler; nothing is compared:\n{found}"));
    };
    let mut wrong = String::new();
    for (name, count) in &counts {
        let budget = budgets.iter().find(|(known, _)| known == name).map(|(_, budget)| *budget);
        match budget {
            None => writeln!(wrong, "{name}: {} instructions, and no budget in the table", thousands(*count)),
            Some(budget) if count * 100 > budget * (100 + TOLERANCE_PERCENT) => {
                let above = (count - budget) * 100 / budget.max(1);
                let (count, budget) = (thousands(*count), thousands(budget));
                writeln!(wrong, "{name}: {count} instructions, {above} % above its budget of {budget}")
            }
            Some(_) => Ok(()),
        }
        .expect("text grows");
    }
    let of = |wanted: &str| counts.iter().find(|(name, _)| *name == wanted).map_or(0, |(_, count)| *count);
    if of(LATE_FOLD) * 100 > of(EARLY_FOLD) * (100 + TOLERANCE_PERCENT) {
        let (late, early) = (thousands(of(LATE_FOLD)), thousands(of(EARLY_FOLD)));
        writeln!(
            wrong,
            "{LATE_FOLD}: {late} instructions, and {early} at the beginning: folding grows with the entries"
        )
        .expect("text grows");
    }
    if budgets.len() > counts.len() {
        writeln!(wrong, "the table has budgets for operations that are not measured").expect("text grows");
    }
    if wrong.is_empty() {
        return Ok(format!("instructions, all within {TOLERANCE_PERCENT} % of their budgets:\n{found}"));
    }
    Err(format!(
        "{wrong}\nMake it cheaper, or change crates/bench/budgets.txt and say why in the commit. Found:\n{found}"
    ))
}
