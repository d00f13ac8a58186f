//! Stories: one command a line, `TIME WHO VERB words… [option=value…]`.
//!
//! TIME is in seconds (`130`, `130.5`) or by the clock (`10:30`, `10:30:15`); what comes due by then
//! is applied first. WHO is `op`, a tenant (`a`, in its project of the same name) or a tenant and a
//! project (`a/p`). Leases are `#0`, `#1`, … in the order they were granted; `#0(60s,20s,140)` reports
//! 60 s covered, 20 s active and 140 busy quantum-seconds. Quantities are written as people do.
//! Allocations are `@1`, `@2`, … in the order they were submitted; `token=0` asks under the first token that was issued. `show leases|capacity|quotas|ceilings|tenants|tokens|agents|prices` prints the state; a line with only a time lets it pass.

use super::World;
use super::line::Line;
use super::tell::{Names, tell};
use super::values::{labels, limit, weights};
use super::world::{Decided, name};
use expect_test::Expect;
use leasehold_engine::command::{
    Command, CompleteAllocation, ConfirmTeardown, IssueToken, LoseNode, NodeService, Percent, PutClass, PutNode,
    PutPool, PutProject, PutQuota, PutTenant, PutUser, RegisterAgent, ReleaseOne, RenewOne, ReportCheckpoint,
    ReportCondition, ReportWipe, RequestLease, ReserveNodes, Revoke, SetPoolAccess, SubmitAllocation, Unfence,
    UpdateTenant,
};
use leasehold_engine::{Refusal, Request, Settings};
use leasehold_model::{
    AllocationNo, AllocationSpec, AppInstanceNo, ClassNo, ClassSpec, Domain, FurtherScope, HolderScope, Identity,
    Level, Measure, NodeNo, NodeScope, PoolAccess, PoolNo, Priority, ProjectNo, Quanta, QuotaNo, QuotaScope, Reason,
    ResourceKind, Role, Span, Strategy, TeardownMode, TenantNo, TenantSettings, TenantSettingsChange, TokenNo,
    TokenScope, UserNo, WhenOverQuota, WindowNo, quantity,
};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Tenants a and b, each with a project of its name; `n1` confirms teardowns and has two GPUs of
/// seven slices, `n2` has no agent. One `core` is one quantum, so that numbers read as they are.
pub(crate) const STAGE: &str = "
    0 op class gpu kind=gpu per=7
    0 op class cpu kind=cpu per=1000
    0 op class core kind=cpu per=1
    0 op pool main
    0 op node n1 gpu 2 cpu 8 core 200
    0 op node n2 immediate core 200
    0 op tenant a
    0 op tenant b
    0 op project a/a
    0 op project b/b
";

/// Runs a story on the stage and compares what it tells.
#[track_caller]
pub(crate) fn check(story: &str, expected: Expect) {
    check_on(STAGE, story, expected);
}

/// The same, on another stage.
#[track_caller]
pub(crate) fn check_on(stage: &str, story: &str, expected: Expect) {
    let mut told = Story::on(stage);
    told.play(story);
    expected.assert_eq(&told.text);
}

pub(crate) struct Story {
    pub(crate) world: World,
    pub(crate) names: Names,
    pub(crate) text: String,
    quotas: BTreeMap<String, PutQuota>,
}

impl Story {
    pub(crate) fn on(stage: &str) -> Self {
        let mut story =
            Self { world: World::new(), names: Names::default(), text: String::new(), quotas: BTreeMap::new() };
        story.play(stage);
        story.text.clear();
        story
    }

    pub(crate) fn play(&mut self, story: &str) {
        for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
            self.line(line);
        }
    }

    /// Plays one line and answers what was decided, if it asked for a decision.
    pub(crate) fn line(&mut self, line: &str) -> Option<Decided> {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let now = self.names.read_time(words.remove(0));
        if words == ["op", "started"] {
            // A process that takes over says so before anything else, also before what is due.
            let records = self.world.started(now);
            self.tell(&records);
            return None;
        }
        let records = self.world.advance(now, u32::MAX);
        self.tell(&records);
        match words.as_slice() {
            [] => return None,
            ["show", what] => {
                self.text.push_str(&self.names.show(self.world.engine.view(), what));
                return None;
            }
            _ => {}
        }
        let request = self.request(&words);
        let (answer, records) = match request {
            Ok(request) => self.world.decide(now, &request),
            Err(refusal) => (Err(refusal), Vec::new()),
        };
        self.tell(&records);
        let at = self.names.time(now);
        match &answer {
            Ok(sealed) if sealed.repeated => writeln!(self.text, "{at} repeated: record {}", sealed.records.first),
            Ok(sealed) => sealed
                .refused
                .iter()
                .try_for_each(|(lease, why)| writeln!(self.text, "{at}   but #{}: {}", lease.0, why.code())),
            Err(refusal) => writeln!(self.text, "{at} refused: {}", refusal.code()),
        }
        .expect("text grows");
        Some(answer)
    }

    fn tell(&mut self, records: &[leasehold_model::Record]) {
        for record in records {
            self.names.meet(record);
            let line = tell(record, &self.names, self.world.state());
            writeln!(self.text, "{line}").expect("text grows");
        }
    }

    /// The request that the words after the time ask for.
    pub(crate) fn request(&mut self, words: &[&str]) -> Result<Request, Refusal> {
        let (who, verb) = (words[0], words[1]);
        let (options, rest): (Vec<&str>, Vec<&str>) = words[2..].iter().partition(|word| word.contains('='));
        let options = options.iter().map(|word| word.split_once('=').expect("an option")).collect();
        let line = Line { words: rest, options };
        let mut identity = self.identity(who);
        identity.user = line.options.get("user").map(|user| self.user(user));
        identity.workload = line.options.get("work").map(|text| name(text));
        identity.token = line.options.get("token").map(|no| TokenNo(no.parse().expect("a token")));
        let command = self.command(verb, &line);
        match line.options.get("key") {
            Some(key) => Request::once(identity, command, key.as_bytes()),
            None => Ok(Request::new(identity, command)),
        }
    }

    /// `@2` is the second allocation that was submitted.
    pub(super) fn allocation(&self, text: &str) -> AllocationNo {
        let place: usize = text.trim_start_matches('@').parse().expect("@ and a number");
        self.names.allocations.get(place - 1).copied().unwrap_or(AllocationNo(9999))
    }

    fn identity(&self, who: &str) -> Identity {
        if who == "op" {
            return Identity::default();
        }
        let (tenant, project) = who.split_once('/').unwrap_or((who, who));
        let project = Some(project).filter(|p| !p.is_empty()).map(|_| self.project(who));
        Identity { tenant: Some(self.tenant(tenant)), project, ..Identity::default() }
    }

    // What does not exist gets a number that nothing has.
    pub(super) fn tenant(&self, text: &str) -> TenantNo {
        self.world.state().tenant_named(text).unwrap_or(TenantNo(99))
    }
    pub(super) fn project(&self, text: &str) -> ProjectNo {
        let (tenant, project) = text.split_once('/').unwrap_or((text, text));
        self.world.state().project_named(self.tenant(tenant), project).unwrap_or(ProjectNo(99))
    }
    pub(super) fn user(&self, text: &str) -> UserNo {
        self.names.users.get(text).copied().unwrap_or(UserNo(99))
    }
    pub(super) fn pool(&self, text: &str) -> PoolNo {
        self.world.state().pool_named(text).unwrap_or(PoolNo(99))
    }
    pub(super) fn node(&self, text: &str) -> NodeNo {
        self.world.state().node_named(text).unwrap_or(NodeNo(99))
    }
    pub(super) fn class(&self, text: &str) -> ClassNo {
        self.world.state().class_named(text).unwrap_or(ClassNo(99))
    }
    fn quota(&self, label: &str) -> QuotaNo {
        let numbers = self.names.quotas.iter();
        numbers.rev().find(|(_, known)| *known == label).map_or(QuotaNo(99), |(number, _)| *number)
    }

    /// Pairs of a class and a quantity; a class that does not exist takes quanta.
    fn asks(&self, line: &Line<'_>) -> Vec<(ClassNo, Quanta)> {
        let mut words = line.words.iter().skip_while(|w| self.world.state().class_named(w).is_none() && **w != "x");
        let mut asks = Vec::new();
        while let (Some(class), Some(amount)) = (words.next(), words.next()) {
            let number = self.class(class);
            let quanta = match (self.world.state().class(number), amount.strip_suffix('q')) {
                (Some(spec), None) => quantity::parse(amount, spec).expect("a quantity"),
                (_, raw) => Quanta(raw.unwrap_or(amount).parse().expect("quanta")),
            };
            asks.push((number, quanta));
        }
        asks
    }

    fn command(&mut self, verb: &str, line: &Line<'_>) -> Command {
        let first = line.words.first().copied().unwrap_or("");
        match verb {
            "grant" => Command::Request(RequestLease {
                pool: line.options.get("pool").map(|pool| self.pool(pool)),
                node: line.options.get("node").map(|node| self.node(node)),
                asks: self.asks(line).into_iter().collect(),
                priority: line.priority("prio").unwrap_or(Priority::Standard),
                sensitive: line.flag("sensitive"),
                labels: line.labels(),
                attachment: self.lent(line).0,
                source_project: self.lent(line).1,
                app_instance: line.number("app").map(AppInstanceNo),
                correlation: line.number("corr").map(|number: u64| u128::from(number)),
                hcl_entry: line.name("hcl"),
                dra_claim_id: line.name("dra"),
                ..RequestLease::of(ClassNo(0), Quanta(0), line.span("ttl").unwrap_or(Span::from_secs(3600)))
            }),
            "submit" => {
                let domain =
                    |option: &str| line.options.get(option).map(|word| Domain::from_word(word).expect("a domain"));
                let spec = AllocationSpec {
                    correlation: line.number("corr").map(|number: u64| u128::from(number)),
                    pool: line.options.get("pool").map(|pool| self.pool(pool)),
                    replicas: line.number("x").unwrap_or(1),
                    priority: line.priority("prio").unwrap_or(Priority::Standard),
                    walltime: line.span("wall"),
                    ttl: line.span("ttl"),
                    staged: line.flag("staged"),
                    requeue: line.flag("requeue"),
                    labels: labels(line.options.get("labels")),
                    together: domain("together"),
                    apart: domain("apart"),
                    sensitive: line.flag("sensitive"),
                    app_instance: line.number("app").map(AppInstanceNo),
                    attachment: self.lent(line).0,
                    source_project: self.lent(line).1,
                    ..AllocationSpec::of(self.asks(line).into_iter().collect())
                };
                let over = line.options.get("over");
                Command::SubmitAllocation(SubmitAllocation {
                    hcl_entry: line.name("hcl"),
                    dra_claim_id: line.name("dra"),
                    when_over_quota: over.map(|word| WhenOverQuota::from_word(word).expect("a word")),
                    ..spec.into()
                })
            }
            "start" => Command::StartAllocation(self.allocation(first)),
            "checkpointing" => Command::BeginCheckpoint(self.allocation(first)),
            "checkpoint" => Command::ReportCheckpoint(ReportCheckpoint {
                allocation: self.allocation(first),
                bytes: line.number("bytes").unwrap_or(0),
                took: line.span("took").unwrap_or(Span::ZERO),
            }),
            "complete" => Command::CompleteAllocation(CompleteAllocation {
                allocation: self.allocation(first),
                exit_status: line.number("exit"),
                storage_written: line.number("wrote").unwrap_or(0),
            }),
            "cancel" => Command::CancelAllocation(self.allocation(first)),
            "hold" | "unhold" | "change" | "empty" => self.pending(verb, first, line),
            "renew" => {
                let ttl = line.span("ttl").expect("a ttl");
                let one = |one: ReleaseOne| RenewOne { lease: one.lease, ttl, activity: one.activity };
                Command::Renew(line.reports().into_iter().map(one).collect())
            }
            "release" => Command::Release(line.reports().into_iter().collect()),
            "report" => Command::ReportActivity(line.reports().into_iter().collect()),
            "revoke" => Command::Revoke(Revoke {
                leases: line.leases().into(),
                reason: Reason::Operator,
                grace: line.span("grace"),
            }),
            "ready" => Command::Ready(line.leases().into()),
            "confirm" => {
                let (node, leases) = (self.node(first), line.leases().into());
                Command::ConfirmTeardown(ConfirmTeardown { node, leases, generation: line.number("generation") })
            }
            "unfence" => Command::Unfence(Unfence { leases: line.leases().into(), reason: line.name("reason") }),
            "drain" => Command::DrainNode(NodeService { node: self.node(first), reason: line.name("reason") }),
            "resume" => Command::ResumeNode(NodeService { node: self.node(first), reason: line.name("reason") }),
            "return" => Command::ReturnNode(self.node(first)),
            "lose" => Command::LoseNode(LoseNode {
                node: self.node(first),
                last_seen: self.names.read_time(line.options["seen"]),
            }),
            "claim" | "claim-for" | "fail-start" | "settle" => self.custody(verb, first, line),
            "reserve" => {
                let nodes = line.words.iter().map(|node| self.node(node)).collect();
                let [from, until] = ["from", "until"].map(|at| line.options.get(at).map(|at| self.names.read_time(at)));
                let until = until.expect("an end");
                Command::ReserveNodes(ReserveNodes { nodes, from, until, reason: line.name("reason") })
            }
            "unreserve" => Command::UnreserveNodes(WindowNo(first.parse().expect("the number of a window"))),
            "giveback" => Command::ReleaseNodes(line.words.iter().map(|node| self.node(node)).collect()),
            "wiped" | "unclean" => {
                let (node, generation, clean) = (self.node(first), line.number("generation"), verb == "wiped");
                Command::ReportWipe(ReportWipe { node, generation, clean })
            }
            "access" => {
                let access = PoolAccess::from_word(line.words[2]).expect("an access");
                let (project, pool) = (self.project(first), self.pool(line.words[1]));
                Command::SetPoolAccess(SetPoolAccess { project, pool, access })
            }
            "unquarantine" => Command::ClearQuarantine(self.node(first)),
            "beat" => Command::Heartbeat(leasehold_engine::command::Nothing {}),
            "key" => Command::RotateKey(leasehold_engine::command::RotateKey {
                new_key: [first.parse().expect("a byte"); 32],
            }),
            "agent" => {
                let (instance, takeover) = (line.number("instance").expect("an instance"), line.flag("takeover"));
                Command::RegisterAgent(RegisterAgent { node: self.node(first), instance, takeover })
            }
            "detach" => Command::DetachAgent(self.node(first)),
            "condition" => {
                let level = |option: &str| {
                    line.options.get(option).map_or(Level::Normal, |word| Level::from_word(word).expect("a level"))
                };
                Command::ReportCondition(ReportCondition {
                    node: self.node(first),
                    generation: line.number("generation").expect("a generation"),
                    load: level("load"),
                    errors: level("errors"),
                    throttled: line.flag("throttled"),
                })
            }
            "issue" => Command::IssueToken(self.issue(first, line)),
            "withdraw" => Command::RevokeToken(TokenNo(first.parse().expect("a token"))),
            "update" => Command::UpdateTenant(self.update(first, line)),
            "card" => Command::PutRateCard(self.put_card(line)),
            "policy" => Command::PutChargePolicy(self.put_policy(line)),
            "ceiling" => Command::PutCeiling(self.put_ceiling(line)),
            verb if super::prepaid::VERBS.contains(&verb) => self.prepaid(verb, line),
            verb if super::apps::VERBS.contains(&verb) => self.registry(verb, line),
            verb if super::usage::VERBS.contains(&verb) => self.usage(verb, line),
            verb if super::sinks::VERBS.contains(&verb) => self.sinks(verb, line),
            "uncap" => Command::DeleteCeiling(self.delete_ceiling(line)),
            "settings" => Command::ChangeSettings(self.settings(line)),
            "delete" => self.deletion(first, line.words[1]),
            _ => self.put(verb, first, line),
        }
    }

    /// `issue ci role=project_member tenant=a project=a/p user=a/u node=n1 apps=1,2 expires=100`. The hash of
    /// its secret is its name, or `hash=`.
    fn issue(&mut self, label: &str, line: &Line<'_>) -> IssueToken {
        let mut hash = [0; 32];
        let text = line.options.get("hash").copied().unwrap_or(label);
        hash[..text.len()].copy_from_slice(text.as_bytes());
        let app = |no: &str| AppInstanceNo(no.parse().expect("an app instance"));
        let apps = line.options.get("apps").map_or(Vec::new(), |apps| apps.split(',').map(app).collect());
        IssueToken {
            name: name(label),
            hash,
            role: Role::from_word(line.options["role"]).expect("a role"),
            scope: TokenScope {
                tenant: line.options.get("tenant").map(|tenant| self.tenant(tenant)),
                project: line.options.get("project").map(|project| self.project(project)),
                user: line.options.get("of").map(|user| self.user(user)),
                node: line.options.get("node").map(|node| self.node(node)),
                app_instances: apps,
            },
            expires_at: line.options.get("expires").map(|at| self.names.read_time(at)),
        }
    }

    /// `update a name=c tag=- nodes=5 leases=-`: what is absent is kept, `-` clears.
    fn update(&self, label: &str, line: &Line<'_>) -> UpdateTenant {
        let cleared_or = |text: &&str| Some(*text).filter(|text| *text != "-").map(str::to_owned);
        let number = |option: &str| {
            let given = line.options.get(option).map(cleared_or);
            given.map(|text| text.map(|text| text.parse().expect("a number")))
        };
        UpdateTenant {
            tenant: self.tenant(label),
            max_nodes: number("nodes"),
            max_leases: number("leases"),
            max_concurrent_allocations: number("allocs"),
            gpu_hours_budget: number("gpuh"),
            node_hours_budget: number("nodeh"),
            budget_period_days: number("days"),
            fair_share_target: number("share"),
            burst_allowance: number("allowance"),
            max_pending: number("pending"),
            settings: TenantSettingsChange {
                name: line.name("name"),
                accounting_tag: line.options.get("tag").map(cleared_or).map(|tag| tag.map(|tag| name(&tag))),
                max_priority: line.priority("max"),
                max_evicted_quanta_per_hour: number("evicted"),
                contact: line.options.get("contact").map(cleared_or).map(|text| text.map(|text| name(&text))),
                when_over_quota: line
                    .options
                    .get("over")
                    .map(cleared_or)
                    .map(|word| word.map(|word| WhenOverQuota::from_word(&word).expect("a word"))),
                ..TenantSettingsChange::default()
            },
        }
    }

    fn deletion(&self, noun: &str, which: &str) -> Command {
        match noun {
            "tenant" => Command::DeleteTenant(self.tenant(which)),
            "project" => Command::DeleteProject(self.project(which)),
            "user" => Command::DeleteUser(self.user(which)),
            "pool" => Command::DeletePool(self.pool(which)),
            "node" => Command::DeleteNode(self.node(which)),
            "quota" => Command::DeleteQuota(self.quota(which)),
            "card" => Command::DeleteRateCard(which.parse().expect("a card")),
            _ => panic!("nothing deletes a {noun}"),
        }
    }

    /// Makes something, or changes what has that name; `no=` names a number outright.
    fn put(&mut self, noun: &str, label: &str, line: &Line<'_>) -> Command {
        let state = self.world.state();
        let given: Option<u32> = line.options.get("no").map(|no| no.parse().expect("a number"));
        let (tenant, last) = label.split_once('/').unwrap_or((label, label));
        let called = name(line.options.get("name").copied().unwrap_or(last));
        match noun {
            "tenant" => Command::PutTenant(PutTenant {
                tenant: given.map(TenantNo).or(state.tenant_named(label)),
                settings: TenantSettings {
                    accounting_tag: line.options.get("tag").map(|tag| name(tag)),
                    max_priority: line.priority("max").unwrap_or(Priority::Standard),
                    ..TenantSettings::named(called)
                },
            }),
            "project" => Command::PutProject(PutProject {
                project: given.map(ProjectNo),
                tenant: self.tenant(tenant),
                name: called,
            }),
            "user" => {
                let number = UserNo(u32::try_from(self.names.users.len()).expect("few users"));
                if given.is_none() {
                    self.names.users.entry(label.to_owned()).or_insert(number);
                }
                Command::PutUser(PutUser { user: given.map(UserNo), tenant: self.tenant(tenant), name: called })
            }
            "class" => {
                let kind = line
                    .options
                    .get("kind")
                    .map_or(ResourceKind::Gpu, |kind| ResourceKind::from_word(kind).expect("a kind"));
                let quanta_per_unit = line.options.get("per").map_or(1, |per| per.parse().expect("quanta"));
                let spec = ClassSpec { name: called, kind, tier: None, quanta_per_unit, premium: false };
                let class = given.map(|no| ClassNo(u16::try_from(no).expect("a class"))).or(state.class_named(label));
                Command::PutClass(PutClass { class, spec })
            }
            "pool" => Command::PutPool(PutPool {
                pool: given.map(PoolNo).or(state.pool_named(label)),
                name: called,
                strategy: if line.flag("spread") { Strategy::Spread } else { Strategy::BinPack },
                ttl_max: line.per_priority("ttl"),
                lifetime_max: line.per_priority("lifetime"),
                grace: line.span("grace"),
                weights: line.options.get("weights").map(|text| weights(text)),
                queue: line.pool_queue(),
            }),
            "node" => Command::PutNode(PutNode {
                node: given.map(NodeNo).or(state.node_named(label)),
                name: called,
                pool: self.pool(line.options.get("pool").unwrap_or(&"main")),
                rack: line.name("rack"),
                zone: line.name("zone"),
                labels: line.labels(),
                teardown: if line.flag("immediate") { TeardownMode::Immediate } else { TeardownMode::Confirmed },
                capacity: self.asks(line),
            }),
            "quota" => Command::PutQuota(self.put_quota(label, line)),
            _ => panic!("no such verb: {noun}"),
        }
    }

    fn settings(&self, line: &Line<'_>) -> Settings {
        let now = self.world.state().settings();
        Settings {
            ttl_max: line.span("ttl").unwrap_or(now.ttl_max),
            grace_default: line.span("grace").unwrap_or(now.grace_default),
            teardown_deadline: line.span("teardown").unwrap_or(now.teardown_deadline),
            node_timeout: line.span("silence").unwrap_or(now.node_timeout),
            idempotency_window: line.span("window").unwrap_or(now.idempotency_window),
            heat_half_life: line.span("half_life").unwrap_or(now.heat_half_life),
            sensitive_pool_size: line.number("sensitive").or(now.sensitive_pool_size),
            head_wait_max: line.span("head_wait").unwrap_or(now.head_wait_max),
        }
    }

    /// `quota q1 a core hard=10`: a new one. `quota q1 soft=12`: the same with another limit.
    fn put_quota(&mut self, label: &str, line: &Line<'_>) -> PutQuota {
        let limit = limit(&line.options);
        if let (Some(old), true) = (self.quotas.get(label), line.words.len() == 1) {
            let until = line.options.get("until").map(|at| self.names.read_time(at));
            let percent = line.options.get("percent").map(|_| Percent { limit: true, burst_limit: true });
            let evict_own_lower = line.number("evicts");
            return PutQuota { quota: Some(self.quota(label)), limit, until, percent, evict_own_lower, ..old.clone() };
        }
        let (who, class) = (line.words[1], line.words.get(2));
        let tenant = who.split_once('/').map_or(who, |(tenant, _)| tenant);
        let put = PutQuota {
            quota: line.options.get("no").map(|no| QuotaNo(no.parse().expect("a number"))),
            scope: QuotaScope {
                tenant: self.tenant(tenant),
                project: who.contains('/').then(|| self.project(who)),
                class: class.filter(|class| **class != "-").map(|class| self.class(class)),
                pool: line.options.get("pool").map(|pool| self.pool(pool)),
                node: match line.options.get("node") {
                    None => NodeScope::All,
                    Some(&"each") => NodeScope::Each,
                    Some(node) => NodeScope::One(self.node(node)),
                },
                priority: line.priority("prio").or(line.priority("from")),
                further: FurtherScope {
                    kind: line.options.get("kind").map(|word| ResourceKind::from_word(word).expect("a kind")),
                    user: line.options.get("by-user").map(|word| match *word {
                        "each" => HolderScope::Each,
                        user => HolderScope::One(self.user(user)),
                    }),
                    app_instance: line.options.get("by-app").map(|word| match *word {
                        "each" => HolderScope::Each,
                        app => HolderScope::One(AppInstanceNo(app.parse().expect("a number"))),
                    }),
                    and_above: line.options.contains_key("from") || line.options.contains_key("above"),
                },
            },
            measure: line
                .options
                .get("count")
                .map_or(Measure::Quanta, |word| Measure::from_word(word).expect("a measure")),
            limit,
            until: line.options.get("until").map(|at| self.names.read_time(at)),
            percent: line.options.get("percent").map(|_| Percent { limit: true, burst_limit: true }),
            evict_own_lower: line.number("evicts"),
        };
        self.quotas.insert(label.to_owned(), put.clone());
        self.names.expect_quota(label);
        put
    }
}
