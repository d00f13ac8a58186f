//! Histories as text: one record a line, so that a rule and its breach fit on a screen.
//!
//! `SECONDS [>] verb words… [option=value…] [@EFFECTIVE]`; `>` marks a record that continues the
//! command of the one before. Instants and spans are in seconds. A member of a grant is
//! `class:quanta` or `class:quanta:devices`, the devices in binary.

use leasehold_model::body::{self, Leases, PerPriority, Renewal, Reported, ReportedLeases};
use leasehold_model::policy::TeardownCause;
use leasehold_model::rate::{Charge, Charges, Currency, Decimal, Prices};
use leasehold_model::{
    Activity, Amount, AppInstanceNo, Body, CeilingMode, ClassNo, ClassSpec, DenyCause, FurtherScope, HolderScope,
    Idempotency, Instant, LeaseNo, Level, LimitKind, Measure, Name, NodeNo, NodeScope, PoolNo, Priority, ProjectNo,
    Quanta, QuarantineCause, QuotaNo, QuotaScope, Reason, Record, ResourceKind, Role, Span, Strategy, TeardownMode,
    TemporaryLimit, TenantNo, TenantSettings, TokenNo, TokenScope, UserNo, WindowNo,
};
use leasehold_oracle::{Oracle, Violation};
use std::collections::BTreeMap;
use std::str::FromStr;

/// Two tenants with a project each, two nodes of GPUs and memory: node 1 confirms teardown, node
/// 2 has no agent. A GPU has 7 quanta. Teardown may take 100 s.
pub(crate) const STAGE: &str = "
    0 genesis
    0 settings ttl_max=1000000 teardown=100 window=1000
    0 class 1 gpu 7
    0 class 2 mem 1024
    0 pool 1
    0 tenant 1 max=guaranteed tag=cost-centre-9
    0 tenant 2
    0 project 1 tenant=1
    0 project 2 tenant=2
    0 project 3 tenant=1
    0 user 1 tenant=1
    0 node 1 1:28 2:102400
    0 node 2 immediate 1:14 2:102400
";

/// One line, taken apart.
pub(crate) struct Line<'a> {
    words: Vec<&'a str>,
    options: BTreeMap<&'a str, &'a str>,
}

impl<'a> Line<'a> {
    fn flag(&self, word: &str) -> bool {
        self.words.contains(&word)
    }
    fn option<T: FromStr>(&self, name: &str) -> Option<T> {
        let text = self.options.get(name)?;
        Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} does not read")))
    }
    fn or<T: FromStr>(&self, name: &str, default: T) -> T {
        self.option(name).unwrap_or(default)
    }
    fn secs(&self, name: &str) -> Option<Span> {
        self.option(name).map(Span::from_secs)
    }
    fn number<T: FromStr + Default>(&self) -> T {
        self.words.iter().find_map(|word| word.parse().ok()).expect("a number")
    }
    fn name(&self, noun: &str) -> Name {
        let made = format!("{noun}-{}", self.number::<u64>());
        Name::new(self.options.get("name").copied().unwrap_or(&made)).expect("a name")
    }
    fn tenant(&self) -> TenantNo {
        TenantNo(self.or("tenant", 1))
    }
    fn priority(&self) -> Priority {
        self.options.get("priority").map_or(Priority::Standard, |w| Priority::from_word(w).expect("a priority"))
    }
    fn leases(&self) -> Leases {
        self.words.iter().filter_map(|word| word.parse().ok()).map(LeaseNo).collect()
    }
    fn nodes(&self) -> body::Nodes {
        self.words.iter().filter_map(|word| word.parse().ok()).map(NodeNo).collect()
    }
    /// Words like `1:7` or `1:7:11`, as lists of texts.
    fn groups(&self) -> impl Iterator<Item = Vec<&'a str>> + '_ {
        self.words.iter().filter(|word| word.contains(':')).map(|word| word.split(':').collect())
    }
    fn pairs(&self) -> impl Iterator<Item = (ClassNo, Quanta)> + '_ {
        self.groups().map(|g| (ClassNo(g[0].parse().expect("a class")), Quanta(g[1].parse().expect("quanta"))))
    }
    fn per_priority(&self, name: &str) -> PerPriority {
        PerPriority([self.secs(name); 3])
    }
    fn activity(&self) -> Option<Activity> {
        let covered = self.secs("covered")?;
        let waiting = [self.secs("waiting").unwrap_or_default(); 5];
        let busy = self.or("busy", 0) * 1_000_000_000;
        Some(Activity { covered, busy, active: self.secs("active").unwrap_or_default(), waiting })
    }
    fn reported(&self) -> ReportedLeases {
        let activity = self.activity();
        ReportedLeases(self.leases().0.into_iter().map(|lease| Reported { lease, activity }).collect())
    }
    fn reason(&self) -> Option<Reason> {
        match self.options.get("reason").copied() {
            None => Some(Reason::Operator),
            Some("none") => None,
            Some("node_lost") => Some(Reason::NodeLost),
            Some(other) => panic!("no reason {other}"),
        }
    }
}

fn numbers(text: &str) -> Vec<u64> {
    text.split(':').map(|n| n.parse().unwrap_or_else(|_| panic!("{n} in {text}"))).collect()
}

fn catalog_body(verb: &str, line: &Line<'_>) -> Option<Body> {
    Some(match verb {
        "genesis" => {
            let name = Name::new("origin").expect("a name");
            body::Genesis { format_version: 1, origin: name.clone(), public_key: [1; 32], software: name }.into()
        }
        "started" => body::Started {
            epoch: line.or("epoch", 1),
            software: Name::new("test").expect("a name"),
            rules_version: line.or("rules", 1),
            clock_accepted: None,
        }
        .into(),
        "heartbeat" => body::Heartbeat {}.into(),
        "rotate" => body::KeyRotated { old_key: [line.or("old", 1); 32], new_key: [line.or("new", 2); 32] }.into(),
        "settings" => body::SettingsChanged {
            ttl_max: line.secs("ttl_max").unwrap_or(Span::from_secs(1_000_000)),
            grace_default: Span::from_secs(60),
            teardown_deadline: line.secs("teardown").unwrap_or(Span::from_secs(100)),
            node_timeout: Span::from_secs(60),
            idempotency_window: line.secs("window").unwrap_or(Span::from_secs(1000)),
        }
        .into(),
        "class" => body::ClassPut {
            class: ClassNo(line.number()),
            spec: ClassSpec {
                name: line.name("class"),
                kind: ResourceKind::from_word(line.words[1]).expect("a kind"),
                tier: None,
                quanta_per_unit: line.words[2].parse().expect("quanta per unit"),
                premium: false,
            },
        }
        .into(),
        "pool" => body::PoolPut {
            pool: PoolNo(line.number()),
            name: line.name("pool"),
            strategy: Strategy::BinPack,
            ttl_max: line.per_priority("ttl_max"),
            lifetime_max: line.per_priority("lifetime_max"),
            grace: None,
        }
        .into(),
        "tenant" => body::TenantPut {
            tenant: TenantNo(line.number()),
            settings: TenantSettings {
                accounting_tag: line.option::<String>("tag").map(|tag| Name::new(&tag).expect("a name")),
                max_priority: line
                    .options
                    .get("max")
                    .map_or(Priority::Standard, |w| Priority::from_word(w).expect("max")),
                ..TenantSettings::named(line.name("tenant"))
            },
        }
        .into(),
        "project" => {
            body::ProjectPut { project: ProjectNo(line.number()), tenant: line.tenant(), name: line.name("project") }
                .into()
        }
        "user" => body::UserPut { user: UserNo(line.number()), tenant: line.tenant(), name: line.name("user") }.into(),
        "node" => body::NodePut {
            node: NodeNo(line.number()),
            name: line.name("node"),
            pool: PoolNo(line.or("pool", 1)),
            rack: None,
            zone: None,
            labels: Vec::new(),
            teardown: if line.flag("immediate") { TeardownMode::Immediate } else { TeardownMode::Confirmed },
            capacity: line.pairs().collect(),
        }
        .into(),
        "quota" => quota(line).into(),
        "delete" => match line.words[0] {
            "tenant" => body::TenantDeleted { tenant: TenantNo(line.number()) }.into(),
            "project" => body::ProjectDeleted { project: ProjectNo(line.number()) }.into(),
            "user" => body::UserDeleted { user: UserNo(line.number()) }.into(),
            "pool" => body::PoolDeleted { pool: PoolNo(line.number()) }.into(),
            "node" => body::NodeDeleted { node: NodeNo(line.number()) }.into(),
            "quota" => body::QuotaDeleted { quota: QuotaNo(line.number()) }.into(),
            other => panic!("cannot delete {other}"),
        },
        "drain" => body::NodeDrained { node: NodeNo(line.number()), reason: None }.into(),
        "resume" => body::NodeResumed { node: NodeNo(line.number()), reason: None }.into(),
        "lost" => {
            let last_seen = Instant::from_secs(line.option("seen").expect("seen="));
            body::NodeLost { node: NodeNo(line.number()), last_seen }.into()
        }
        "agent" => body::AgentRegistered {
            node: NodeNo(line.number()),
            generation: line.or("generation", 1),
            instance: line.or("instance", 7),
        }
        .into(),
        "detach" => body::AgentDetached { node: NodeNo(line.number()) }.into(),
        "condition" => {
            let level = line.options.get("load").map_or(Level::Normal, |word| Level::from_word(word).expect("a level"));
            let (node, throttled) = (NodeNo(line.number()), line.flag("throttled"));
            body::NodeCondition { node, load: level, errors: Level::Normal, throttled }.into()
        }
        "token" => token(line).into(),
        "card" => {
            let mut prices = Prices::default_card();
            prices.kinds.0[0] = Decimal(line.or("gpu", 10_000_000));
            prices.classes = line.groups().map(|g| (ClassNo(g[0].parse().expect("a class")), Decimal::ONE)).collect();
            let from = Instant::from_secs(line.option("from").expect("an instant"));
            body::RateCardPut { card: line.number(), pool: line.option("pool").map(PoolNo), from, prices }.into()
        }
        "uncard" => body::RateCardDeleted { card: line.number() }.into(),
        "policy" => {
            let from = Instant::from_secs(line.option("from").expect("an instant"));
            let less = line.secs("less").map_or(Charge::Full, Charge::MinusLast);
            let charges = Charges { fenced: less, ..Charges::DEFAULT };
            body::ChargePolicyPut { policy: line.number(), from, charges }.into()
        }
        "withdraw" => body::TokenRevoked { token: TokenNo(line.number()) }.into(),
        "sensitive" => body::SensitiveChanged { pool_size: line.option("size") }.into(),
        "claim" => {
            body::NodesClaimed { nodes: line.nodes(), until: line.option("until").map(Instant::from_secs) }.into()
        }
        "claim_end" => body::ClaimEndCorrected {
            loss: line.or("loss", 0),
            node: NodeNo(line.number()),
            claim: line.or("claim", 0),
        }
        .into(),
        "settled" => body::LossSettled { loss: line.or("loss", 0), node: NodeNo(line.number()) }.into(),
        "ceiling" => body::CeilingPut {
            project: ProjectNo(line.number()),
            app_instance: None,
            amount: Amount(line.or("amount", 1)),
            currency: Currency::DEFAULT,
            mode: if line.flag("soft") { CeilingMode::Soft } else { CeilingMode::Hard },
        }
        .into(),
        "giveback" => body::NodesReleased { nodes: line.nodes(), claim: None }.into(),
        "wiped" => body::NodeWiped { node: NodeNo(line.number()), claim: None }.into(),
        "quarantine" => {
            let late = line.flag("late");
            let cause = if late { QuarantineCause::WipeTimedOut } else { QuarantineCause::WipeFailed };
            body::NodeQuarantined { node: NodeNo(line.number()), cause, claim: None }.into()
        }
        "cleared" => body::QuarantineCleared { node: NodeNo(line.number()) }.into(),
        "returned" => body::NodeReturned { node: NodeNo(line.number()) }.into(),
        _ => return None,
    })
}

/// The hash of a token's secret is one byte again and again: 1 unless `hash=` says otherwise.
fn token(line: &Line<'_>) -> body::TokenIssued {
    let apps = line.options.get("apps").map_or(Vec::new(), |text| numbers(text));
    body::TokenIssued {
        token: TokenNo(line.number()),
        name: line.name("token"),
        hash: [line.or("hash", 1); 32],
        role: Role::from_word(line.options["role"]).expect("a role"),
        scope: TokenScope {
            tenant: line.option("tenant").map(TenantNo),
            project: line.option("project").map(ProjectNo),
            user: line.option("user").map(UserNo),
            node: line.option("node").map(NodeNo),
            app_instances: apps.into_iter().map(AppInstanceNo).collect(),
        },
        expires_at: line.option("expires").map(Instant::from_secs),
    }
}

fn quota(line: &Line<'_>) -> body::QuotaPut {
    let burst = |text: &str| {
        let n = numbers(text);
        LimitKind::Burst { limit: n[0], burst_limit: n[1], burst_ttl: Span::from_secs(n[2]) }
    };
    let hard = line.option("hard").map(|limit| LimitKind::Hard { limit });
    let soft = line.option("soft").map(|limit| LimitKind::Soft { limit });
    body::QuotaPut {
        quota: QuotaNo(line.number()),
        scope: QuotaScope {
            tenant: line.tenant(),
            project: line.option("project").map(ProjectNo),
            class: line.option("class").map(ClassNo),
            pool: line.option("pool").map(PoolNo),
            node: match line.options.get("node").copied() {
                None => NodeScope::All,
                Some("each") => NodeScope::Each,
                Some(_) => NodeScope::One(NodeNo(line.or("node", 0))),
            },
            priority: line.options.get("priority").map(|w| Priority::from_word(w).expect("a priority")),
            further: FurtherScope {
                kind: line.options.get("kind").map(|w| ResourceKind::from_word(w).expect("a kind")),
                user: holder(line, "user", UserNo),
                app_instance: holder(line, "app", AppInstanceNo),
                and_above: line.options.contains_key("above"),
            },
        },
        measure: line.options.get("measure").map_or(Measure::Quanta, |w| Measure::from_word(w).expect("a measure")),
        limit: hard.or(soft).unwrap_or_else(|| burst(line.options["burst"])),
        temporary: line.option("until").map(|until| TemporaryLimit {
            limit: LimitKind::Hard { limit: line.or("temporary", 0) },
            until: Instant::from_secs(until),
        }),
        evict_own_lower: line.options.contains_key("evicts"),
    }
}

/// `user=each`, or `user=2`.
fn holder<N: FromStr, T>(line: &Line<'_>, name: &str, one: impl Fn(N) -> T) -> Option<HolderScope<T>> {
    match line.options.get(name).copied()? {
        "each" => Some(HolderScope::Each),
        _ => line.option(name).map(|number| HolderScope::One(one(number))),
    }
}

fn lease_body(verb: &str, line: &Line<'_>) -> Option<Body> {
    let (leases, closed) = (line.leases(), line.flag("closed"));
    Some(match verb {
        "grant" => granted(line).into(),
        "deny" => denied(line).into(),
        "renew" => {
            let activity = line.activity();
            let renewal = |(lease, until): (u64, u64)| Renewal {
                lease: LeaseNo(lease),
                expires_at: Instant::from_secs(until),
                activity,
            };
            let pairs = line.groups().map(|g| (g[0].parse().expect("a lease"), g[1].parse().expect("a deadline")));
            body::Renewed { renewals: pairs.map(renewal).collect() }.into()
        }
        "release" => body::Released { leases: line.reported(), closed }.into(),
        "activity" => body::ActivityReported { leases: line.reported() }.into(),
        "expire" => body::Expired { leases, closed, belongs_to: None }.into(),
        "revoke" => body::Revoked { leases, grace: line.secs("grace").unwrap_or(Span::ZERO), belongs_to: None }.into(),
        "ready" => body::TeardownStarted { leases, cause: TeardownCause::Ready, closed, belongs_to: None }.into(),
        "grace_ended" => {
            body::TeardownStarted { leases, cause: TeardownCause::GraceEnded, closed, belongs_to: None }.into()
        }
        "torn_down" => body::TornDown { node: NodeNo(line.or("node", 1)), leases, belongs_to: None }.into(),
        "fence" => body::Fenced { leases, belongs_to: None }.into(),
        "unfence" => body::Unfenced { leases, belongs_to: None, reason: None }.into(),
        "ends" => {
            let correlation = body::Correlation::Derived(line.or("correlation", 0));
            let belongs_to = body::BelongsTo { allocation: None, correlation };
            body::EndsCorrected { loss: line.or("loss", 0), leases, belongs_to }.into()
        }
        "burst_ended" => body::BurstEnded { quota: QuotaNo(line.number()) }.into(),
        _ => return None,
    })
}

fn granted(line: &Line<'_>) -> body::Granted {
    let member = |g: Vec<&str>| body::Member {
        class: ClassNo(g[0].parse().expect("a class")),
        quanta: Quanta(g[1].parse().expect("quanta")),
        devices: g.get(2).map_or(0, |bits| u64::from_str_radix(bits, 2).expect("devices in binary")),
    };
    let over_soft = line.options.get("over").map_or(Vec::new(), |text| numbers(text));
    body::Granted {
        first_lease: LeaseNo(line.number()),
        node: NodeNo(line.or("node", 1)),
        pool: PoolNo(line.or("pool", 1)),
        ttl: line.secs("ttl").unwrap_or(Span::from_secs(1000)),
        priority: line.priority(),
        rules_version: 1,
        members: line.groups().map(member).collect(),
        sensitive: line.flag("sensitive"),
        control_plane: false,
        correlation: None,
        allocation: None,
        app_instance: None,
        attachment: None,
        source_project: None,
        over_soft: over_soft.into_iter().map(|n| QuotaNo(u32::try_from(n).expect("a quota"))).collect(),
        capped_by: line.option("capped_by").map(QuotaNo),
        profile: None,
        weighing: line.flag("chosen").then_some(leasehold_model::Weighing::Strategy(Strategy::BinPack)),
        labels: Vec::new(),
        capped_by_window: line.option("capped_by_window").map(WindowNo),
    }
}

fn denied(line: &Line<'_>) -> body::Denied {
    let small = |n: u64| u32::try_from(n).expect("a small number");
    let (cause, text) = line.options["because"].split_once(':').expect("because=cause:numbers");
    let n = numbers(text);
    let cause = match cause {
        "quota" => DenyCause::Quota { quota: QuotaNo(small(n[0])), used: n[1], requested: n[2], limit: n[3] },
        "ceiling" => DenyCause::Ceiling {
            app_instance: None,
            spent: Amount(n[0].into()),
            reserved: Amount(n[1].into()),
            requested: Amount(n[2].into()),
            amount: Amount(n[3].into()),
        },
        "burst" => DenyCause::BurstOver { quota: QuotaNo(small(n[0])), ends_at: Instant::from_secs(n[1]) },
        _ => DenyCause::Capacity {
            class: ClassNo(u16::try_from(n[0]).expect("a class")),
            requested: Quanta(n[1]),
            most_free: Quanta(n[2]),
        },
    };
    body::Denied {
        pool: line.option("pool").map(PoolNo),
        asks: line.pairs().collect(),
        ttl: line.secs("ttl").unwrap_or(Span::from_secs(1000)),
        priority: line.priority(),
        rules_version: 1,
        cause,
        particulars: body::Particulars::default(),
    }
}

/// The record a line stands for, as the one with that sequence.
pub(crate) fn record(text: &str, sequence: u64) -> Record {
    let mut words = text.split_whitespace().peekable();
    let stamp = Instant::from_secs(words.next().and_then(|w| w.parse().ok()).expect("a stamp"));
    let continues = words.next_if_eq(&">").is_some();
    let verb = words.next().expect("a verb");
    let (mut line, mut effective_at) = (Line { words: Vec::new(), options: BTreeMap::new() }, stamp);
    for word in words {
        if let Some(at) = word.strip_prefix('@') {
            effective_at = Instant::from_secs(at.parse().expect("an instant"));
        } else if let Some((name, value)) = word.split_once('=') {
            line.options.insert(name, value);
        } else {
            line.words.push(word);
        }
    }
    let of_leases = lease_body(verb, &line);
    let names_tenant = of_leases.is_some() && verb != "burst_ended";
    let body = of_leases.or_else(|| catalog_body(verb, &line)).unwrap_or_else(|| panic!("no verb {verb}"));
    let mut record = Record::new(line.or("sequence", sequence), stamp, body);
    record.effective_at = effective_at;
    record.continues = continues;
    record.reason = if verb == "revoke" { line.reason() } else { None };
    if names_tenant {
        record.identity.tenant = Some(line.tenant());
        record.identity.project = line.option("project").map(ProjectNo);
        record.identity.user = line.option("user").map(UserNo);
        if matches!(verb, "grant" | "deny") {
            record.identity.project = Some(ProjectNo(line.or("project", line.tenant().0)));
        }
    }
    if matches!(verb, "claim" | "giveback" | "claim_end") {
        record.identity.tenant = Some(line.tenant());
        record.identity.project = Some(ProjectNo(line.or("project", line.tenant().0)));
        record.identity.user = line.option("user").map(UserNo);
    }
    if matches!(verb, "token" | "withdraw") {
        record.identity.tenant = line.option("tenant").map(TenantNo);
    }
    record.identity.token = line.option("token").map(TokenNo);
    record.idempotency = line.option::<String>("key").map(|key| Idempotency {
        owner: Some(line.tenant()),
        key: leasehold_model::Key::new(key.as_bytes()).expect("a key"),
        payload: [0; 16],
    });
    if verb == "rotate" {
        record.signers = [line.or("old", 1), line.or("new", 2)].map(|byte| [byte; 32]).into_iter().collect();
    }
    record
}

/// The oracle after the stage and a history, or the first violation with the line that caused it.
pub(crate) fn play(history: &str) -> Result<Oracle, (Violation, String)> {
    let mut oracle = Oracle::new();
    let lines = STAGE.lines().chain(history.lines()).map(str::trim).filter(|line| !line.is_empty());
    for (sequence, line) in (0u64..).zip(lines) {
        oracle.observe(&record(line, sequence)).map_err(|violation| (violation, line.to_owned()))?;
        oracle.check_invariants().expect("legal records keep the invariants");
    }
    Ok(oracle)
}

/// Every line but the last is legal; the last is `ok`, or breaks the rule of that name.
#[track_caller]
pub(crate) fn check(history: &str, expected: &str) {
    let last = history.lines().map(str::trim).rfind(|line| !line.is_empty()).expect("a line");
    let heard = match play(history) {
        Ok(_) => "ok",
        Err((violation, line)) => {
            assert_eq!(line, last, "broken too early: {violation}");
            assert_eq!(violation.rule, expected, "{violation}");
            violation.rule
        }
    };
    assert_eq!(heard, expected, "{history}");
}
