//! Records and states as text, a line each.

use super::values::read_time;
use leasehold_engine::{Custody, Phase, Protection, State, View, WaitReason};
use leasehold_model::body::{AllocationDenied, Body, Denied, Granted, Leases, Nodes};
use leasehold_model::rate::Charge;
use leasehold_model::{
    AllocationNo, AppInstanceNo, ClassNo, DenyCause, Instant, LeaseNo, LimitKind, NodeNo, PoolNo, Priority, QuotaNo,
    Record, TenantNo, UserNo,
};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What a story calls things, and whether it speaks in seconds or by the clock.
#[derive(Default)]
pub(crate) struct Names {
    pub(super) quotas: BTreeMap<QuotaNo, String>,
    /// In the order in which they were submitted.
    pub(super) allocations: Vec<AllocationNo>,
    pub(super) users: BTreeMap<String, UserNo>,
    /// The label of the quota that is being made.
    coming: Option<String>,
    by_clock: bool,
}

impl Names {
    pub(crate) fn read_time(&mut self, text: &str) -> Instant {
        let (at, by_clock) = read_time(text);
        self.by_clock |= by_clock;
        at
    }

    pub(super) fn time(&self, at: Instant) -> String {
        let (secs, ns) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000);
        let decimals = if ns == 0 { String::new() } else { format!(".{ns:09}").trim_end_matches('0').to_owned() };
        if !self.by_clock {
            return format!("{secs}{decimals}");
        }
        let clock = format!("{:02}:{:02}", secs / 3600, secs / 60 % 60);
        if secs % 60 == 0 && ns == 0 { clock } else { format!("{clock}:{:02}{decimals}", secs % 60) }
    }

    /// The next quota to be made is called so.
    pub(super) fn expect_quota(&mut self, label: &str) {
        self.coming = Some(label.to_owned());
    }

    /// A quota that is told of for the first time is the one that was expected.
    pub(super) fn meet(&mut self, record: &Record) {
        if let Body::AllocationSubmitted(_) = &record.body {
            self.allocations.push(AllocationNo(record.sequence));
        }
        if let (Body::QuotaPut(put), Some(label)) = (&record.body, self.coming.take()) {
            self.quotas.entry(put.quota).or_insert(label);
        }
    }

    fn quota(&self, number: QuotaNo) -> String {
        self.quotas.get(&number).cloned().unwrap_or_else(|| number.to_string())
    }

    fn allocation(&self, number: AllocationNo) -> String {
        let place = self.allocations.iter().position(|known| *known == number);
        place.map_or_else(|| number.to_string(), |place| format!("@{}", place + 1))
    }

    /// The state, as far as it was asked for.
    pub(super) fn show(&self, view: View<'_>, what: &str) -> String {
        let state: &State = &view;
        let mut text = String::new();
        let line = |text: &mut String, line: String| writeln!(text, "  {line}").expect("text grows");
        match what {
            "leases" => {
                for lease in state.leases() {
                    let class = class(state, lease.class);
                    let (from, to) = (self.time(lease.granted_at), self.time(lease.expires_at));
                    let mut about =
                        format!("#{} {} {class} {} {from}..{to}", lease.number.0, lease.phase, lease.quanta);
                    match lease.phase {
                        Phase::Active => {}
                        Phase::Revoking => write!(about, " grace to {}", self.time(lease.limit_at)).expect("text"),
                        Phase::Fenced => write!(about, " ended {}", self.time(lease.ended_at)).expect("text"),
                        _ => write!(
                            about,
                            " ended {}, teardown to {}",
                            self.time(lease.ended_at),
                            self.time(lease.limit_at)
                        )
                        .expect("text"),
                    }
                    if let Some(tag) = lease.tag.and_then(|tag| state.tag(tag)) {
                        write!(about, " tag {tag}").expect("text");
                    }
                    if lease.over_soft {
                        about.push_str(" over_soft");
                    }
                    line(&mut text, about);
                }
            }
            "allocs" => {
                for found in state.allocations_after(None) {
                    let mut about = format!("{} {}", self.allocation(found.number), found.state);
                    if found.state.is_placed() {
                        write!(about, " attempt {}, holds {}", found.attempt, found.held).expect("text");
                    }
                    for node in found.reserved_on() {
                        write!(about, ", kept on {}", self::node(state, node)).expect("text");
                    }
                    line(&mut text, about);
                }
            }
            "waits" => {
                for found in state.allocations_after(None) {
                    let Some(waits) = view.waiting_for(found, state.last_stamp()) else { continue };
                    let reason = match waits.reason {
                        WaitReason::Quota(DenyCause::Quota { used, requested, limit, .. }) => {
                            format!("quota used {used}, requested {requested}, limit {limit}")
                        }
                        WaitReason::Quota(DenyCause::Ceiling { spent, reserved, requested, amount, .. }) => {
                            format!("money: spent {spent}, reserved {reserved}, requested {requested} of {amount}")
                        }
                        WaitReason::Quota(DenyCause::Prepaid { available, requested, .. }) => {
                            format!("prepaid: available {available}, requested {requested}")
                        }
                        WaitReason::Quota(_) => "burst".to_owned(),
                        WaitReason::Victims { nodes } => {
                            let names: Vec<String> = nodes.iter().map(|n| self::node(state, *n).to_string()).collect();
                            format!("victims on {}", names.join(" "))
                        }
                        WaitReason::Room { fits, class: of, short } => {
                            format!("{} {} short, {fits} would fit", short.0, class(state, of))
                        }
                        WaitReason::Behind { ahead, start } => {
                            let by = start.map_or_else(|| "some time".to_owned(), |start| self.time(start).to_string());
                            format!("behind {}, which starts by {by}", self.allocation(ahead))
                        }
                        WaitReason::Evictions { used, limit } => format!("evicted {used} of {limit}"),
                        WaitReason::Paused => "paused".to_owned(),
                        WaitReason::Hold(hold) if hold.by_operator => "held by an operator".to_owned(),
                        WaitReason::Hold(_) => "on hold".to_owned(),
                        WaitReason::Due => "due".to_owned(),
                    };
                    let by =
                        waits.assured_start.map_or_else(String::new, |p| format!(", starts by {}", self.time(p.start)));
                    let number = self.allocation(found.number);
                    let protection = match waits.protection {
                        None => String::new(),
                        Some(Protection::On(nodes)) => {
                            let names: Vec<String> = nodes.iter().map(|n| self::node(state, *n).to_string()).collect();
                            format!(", protected on {}", names.join(" "))
                        }
                        Some(Protection::EndlessLease(lease)) => format!(", unprotected because of #{}", lease.0),
                    };
                    line(&mut text, format!("{number} place {}: {reason}{by}{protection}", waits.position));
                }
            }
            "prepaid" => super::prepaid::show(state).into_iter().for_each(|one| line(&mut text, one)),
            "ceilings" => {
                for ceiling in state.ceilings() {
                    let project = state.project(ceiling.scope.project).map_or("?", |project| project.name.as_str());
                    let used = state.ceiling_use(ceiling, state.last_stamp());
                    let over = if state.is_exceeded(ceiling, state.last_stamp()) { ", exceeded" } else { "" };
                    line(
                        &mut text,
                        format!(
                            "{project}{}: {} {}, spent {}, reserved {}{over}",
                            app(ceiling.scope.app_instance),
                            ceiling.mode,
                            ceiling.amount,
                            used.spent,
                            used.reserved,
                        ),
                    );
                }
            }
            "capacity" => {
                for node in state.nodes() {
                    for of in &node.classes {
                        let split = node.split(of.class);
                        let parts = [
                            ("held", split.held),
                            ("tearing down", split.tearing_down),
                            ("reserved", split.reserved),
                            ("fenced", split.fenced),
                            ("offline", split.offline),
                            ("idle", split.idle),
                        ];
                        let parts = parts.iter().filter(|(_, quanta)| *quanta > 0);
                        let parts: Vec<String> = parts.map(|(part, quanta)| format!("{part} {quanta}")).collect();
                        let mut about = format!("{} {}: {}", node.name, class(state, of.class), parts.join(", "));
                        if !of.devices.is_empty() {
                            write!(about, " devices {:?}", of.devices).expect("text");
                        }
                        line(&mut text, about);
                    }
                }
            }
            "quotas" => {
                for quota in state.quotas() {
                    let limit = match quota.limit {
                        LimitKind::Hard { limit } => format!("hard {limit}"),
                        LimitKind::Soft { limit } => format!("soft {limit}"),
                        LimitKind::Burst { limit, burst_limit, burst_ttl } => {
                            format!("burst {limit}..{burst_limit} for {burst_ttl}")
                        }
                    };
                    let mut about = format!("{} used {} of {limit}", self.quota(quota.number), quota.used());
                    if let Some(episode) = quota.episode {
                        write!(about, ", episode since {}", self.time(episode.started_at)).expect("text");
                        if let Some(since) = episode.below_since {
                            write!(about, ", below since {}", self.time(since)).expect("text");
                        }
                    }
                    line(&mut text, about);
                }
            }
            "tenancy" => {
                for tenant in state.tenants() {
                    line(&mut text, format!("tenant {} leases {}", tenant.settings.name, tenant.leases));
                }
                for (_, project) in state.projects() {
                    line(&mut text, format!("project {} leases {}", project.name, project.leases));
                }
                for quota in state.quotas() {
                    line(&mut text, format!("quota {}", self.quota(quota.number)));
                }
                let users = self.users.iter().filter(|(_, user)| state.user(**user).is_some());
                users.for_each(|(label, _)| line(&mut text, format!("user {label}")));
            }
            "tenants" => {
                for tenant in state.tenants() {
                    let tag = tenant.tag.and_then(|tag| state.tag(tag)).map_or("none", |tag| tag.as_str());
                    let evicted = tenant.settings.max_evicted_quanta_per_hour;
                    let quotas: Vec<String> = state.quotas_of(tenant.number).map(|q| q.number.to_string()).collect();
                    let about = format!(
                        "{}: tag {tag}, max {}, evicted {evicted:?}",
                        tenant.settings.name, tenant.settings.max_priority
                    );
                    line(&mut text, format!("{about}, quotas [{}]", quotas.join(", ")));
                }
            }
            "tokens" => {
                for token in state.tokens() {
                    let live = if token.is_live(state, state.last_stamp()) { "live" } else { "dead" };
                    assert_eq!(state.token_by_hash(&token.hash), Some(token.number));
                    line(&mut text, format!("{} {} {} {live}", token.number, token.name, token.role));
                }
            }
            "prices" => {
                for card in state.rate_cards() {
                    let (from, set, gpu) = (self.time(card.from), self.time(card.set_at), card.prices.kinds.0[0]);
                    line(
                        &mut text,
                        format!("card {}{} from {from} set {set}: gpu {gpu}", card.number, of(state, card.pool)),
                    );
                }
                for policy in state.charge_policies() {
                    let (from, set) = (self.time(policy.from), self.time(policy.set_at));
                    let charge = match policy.charges.preempted {
                        Charge::Full => "full".to_owned(),
                        Charge::None => "none".to_owned(),
                        Charge::MinusLast(span) => format!("less the last {span}"),
                    };
                    line(&mut text, format!("policy {} from {from} set {set}: preempted {charge}", policy.number));
                }
            }
            "custody" => {
                for node in state.nodes() {
                    let about = match node.custody {
                        Custody::Open | Custody::Quarantined { .. } => String::new(),
                        Custody::Claimed(claim) => {
                            format!(" by {} since {}", tenant(state, claim.by.tenant), self.time(claim.since))
                        }
                        Custody::Wiping { limit_at, .. } => format!(" to {}", self.time(limit_at)),
                    };
                    line(&mut text, format!("{} {}{about}", node.name, node.custody.word()));
                }
            }
            "agents" => {
                for node in state.nodes() {
                    let agent = node.agent.map_or("none".to_owned(), |agent| {
                        format!("instance {} as generation {}", agent.instance, agent.generation)
                    });
                    let (last, now) = (node.last_generation, node.condition);
                    let throttled = if now.throttled { ", throttled" } else { "" };
                    let condition = format!("load {}, errors {}{throttled}", now.load, now.errors);
                    line(&mut text, format!("{} agent {agent}, last {last}; {condition}", node.name));
                }
            }
            _ => panic!("nothing shows {what}"),
        }
        text
    }
}

fn app(app: Option<AppInstanceNo>) -> String {
    app.map_or_else(String::new, |app| format!(" of {app}"))
}
fn class(state: &State, class: ClassNo) -> String {
    state.class(class).map_or_else(|| class.to_string(), |spec| spec.name.to_string())
}
fn node(state: &State, node: NodeNo) -> String {
    state.node(node).map_or_else(|| node.to_string(), |node| node.name.to_string())
}
fn tenant(state: &State, tenant: TenantNo) -> String {
    state.tenant(tenant).map_or_else(|| tenant.to_string(), |tenant| tenant.settings.name.to_string())
}
fn of(state: &State, pool: Option<PoolNo>) -> String {
    pool.map_or_else(String::new, |no| {
        format!(" of {}", state.pool(no).map_or("a pool that is gone", |pool| pool.name.as_str()))
    })
}
fn nodes(state: &State, of: &Nodes) -> String {
    of.0.iter().map(|number| node(state, *number)).collect::<Vec<_>>().join(" ")
}
fn list(leases: impl Iterator<Item = LeaseNo>) -> String {
    leases.map(|lease| format!("#{}", lease.0)).collect::<Vec<_>>().join(" ")
}
fn all(leases: &Leases) -> String {
    list(leases.0.iter().copied())
}

/// `TIME tenant what happened (since WHEN)`.
pub(super) fn tell(record: &Record, names: &Names, state: &State) -> String {
    let closed = |closed: bool| if closed { ", closed" } else { "" };
    let what = match &record.body {
        Body::Granted(granted) => grant(granted, record.stamp, names, state),
        Body::Denied(Denied { cause, .. }) | Body::AllocationDenied(AllocationDenied { cause, .. }) => match *cause {
            DenyCause::Quota { quota, used, requested, limit } => {
                format!("denied: {} used {used}, requested {requested}, limit {limit}", names.quota(quota))
            }
            DenyCause::KindQuota { quota, used, requested, limit } => {
                format!("denied: {} used {used}, requested {requested}, limit {limit} units", names.quota(quota))
            }
            DenyCause::BurstOver { quota, ends_at } => {
                format!("denied: burst of {} over at {}", names.quota(quota), names.time(ends_at))
            }
            DenyCause::Capacity { class: of, requested, most_free } => {
                format!("denied: {} requested {requested}, most free {most_free}", class(state, of))
            }
            DenyCause::Prepaid { of_tenant, state, available, requested } => {
                let of = if of_tenant { " of the tenant" } else { "" };
                format!("denied: prepaid{of} {state}, available {available}, requested {requested}")
            }
            DenyCause::Ceiling { app_instance, spent, reserved, requested, amount } => {
                let of = app_instance.map_or_else(String::new, |app| format!(" of {app}"));
                format!("denied: ceiling{of} {amount}, spent {spent}, reserved {reserved}, requested {requested}")
            }
        },
        Body::Renewed(renewed) => {
            let one = |r: &leasehold_model::body::Renewal| {
                let reported = if r.activity.is_some() { " with report" } else { "" };
                format!("#{} to {}{reported}", r.lease.0, names.time(r.expires_at))
            };
            format!("renewed {}", renewed.renewals.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        Body::Released(r) => {
            let reported = if r.leases.0.iter().any(|r| r.activity.is_some()) { " with report" } else { "" };
            format!("released {}{reported}{}", list(r.leases.leases()), closed(r.closed))
        }
        Body::Expired(e) => format!("expired {}{}", all(&e.leases), closed(e.closed)),
        Body::Revoked(r) => format!("revoked {}, grace {}", all(&r.leases), r.grace),
        Body::TeardownStarted(t) => format!("teardown of {}, {}{}", all(&t.leases), t.cause, closed(t.closed)),
        Body::TornDown(t) => format!("torn down {} on {}", all(&t.leases), node(state, t.node)),
        Body::Fenced(f) => format!("fenced {}", all(&f.leases)),
        Body::Unfenced(u) => format!("unfenced {}", all(&u.leases)),
        Body::ActivityReported(r) => format!("report on {}", list(r.leases.leases())),
        Body::BurstEnded(ended) => format!("burst of {} ended", names.quota(ended.quota)),
        Body::NodeLost(lost) => format!("lost {}, last seen {}", node(state, lost.node), names.time(lost.last_seen)),
        Body::NodesClaimed(of) => format!("claimed {}", nodes(state, &of.nodes)),
        Body::NodesReleased(of) => format!("gave back {}", nodes(state, &of.nodes)),
        Body::NodeWiped(of) => format!("{} is clean", node(state, of.node)),
        Body::NodeQuarantined(of) => format!("{} quarantined: {}", node(state, of.node), of.cause),
        Body::QuarantineCleared(of) => format!("{} cleared", node(state, of.node)),
        Body::NodeDrained(n) => format!("drained {}", node(state, n.node)),
        Body::NodeResumed(n) => format!("resumed {}", node(state, n.node)),
        Body::NodeReturned(n) => format!("returned {}", node(state, n.node)),
        Body::QuotaPut(q) => {
            let limit = |limit: LimitKind| format!("{} {}", limit.word(), limit.limit());
            let until = q.temporary.map_or_else(String::new, |temporary| {
                format!(", {} until {}", limit(temporary.limit), names.time(temporary.until))
            });
            let evicts = if q.evict_own_lower { ", evicts" } else { "" };
            format!("quota {}: {}{until}{evicts}", names.quota(q.quota), limit(q.limit))
        }
        Body::WindowPut(w) => {
            let (from, until) = (names.time(w.from), names.time(w.until));
            format!("{} on {} from {from} until {until}", w.window, nodes(state, &w.nodes))
        }
        Body::WindowStarted(w) => format!("{} began", w.window),
        Body::WindowEnded(w) if w.cancelled => format!("{} cancelled", w.window),
        Body::WindowEnded(w) => format!("{} ended", w.window),
        Body::WindowAnnounced(w) if w.cancelled == Some(true) => {
            format!("told that {} is cancelled: {}", w.window, all(&w.leases))
        }
        Body::WindowAnnounced(w) => format!("told of {}: {}", w.window, all(&w.leases)),
        Body::EndsCorrected(c) => format!("billed to last seen only: {}", all(&c.leases)),
        Body::ClaimEndCorrected(c) => format!("claim of {} billed to last seen only", node(state, c.node)),
        Body::LossSettled(s) => format!("loss of {} settled", node(state, s.node)),
        Body::QuotaUntilReached(q) => format!("temporary limit of {} ended", names.quota(q.quota)),
        Body::AgentRegistered(agent) => {
            let (node, generation) = (node(state, agent.node), agent.generation);
            format!("agent {} on {node} as generation {generation}", agent.instance)
        }
        Body::AgentDetached(agent) => format!("detached {}", node(state, agent.node)),
        Body::NodeEmpty(empty) => format!("{} empty since {}", node(state, empty.node), names.time(empty.since)),
        Body::NodeCondition(c) => {
            let throttled = if c.throttled { ", throttled" } else { "" };
            format!("{}: load {}, errors {}{throttled}", node(state, c.node), c.load, c.errors)
        }
        Body::TokenIssued(issued) => format!("{} {} issued to {}", issued.token, issued.name, issued.role),
        Body::CeilingPut(put) => {
            format!("ceiling{} {} {} {}", app(put.app_instance), put.mode, put.amount, put.currency)
        }
        Body::UsageRecorded(recorded) => {
            let of = project_name(state, record);
            let replaced = recorded.replaces.map_or_else(String::new, |old| format!(" in place of {}", old.quantity));
            let owner = if recorded.no_submitter { ", no submitter" } else { "" };
            let creditor = recorded.creditor.and_then(|project| state.project(project));
            let credited = creditor.map_or_else(String::new, |project| format!(", credited to {}", project.name));
            format!("{} of {of} {}{replaced}{owner}{credited}", recorded.report.quantity, recorded.charge)
        }
        Body::UsageRefused(refused) => {
            format!("{} not entitled: {} of {} used", refused.report.quantity, refused.used, refused.hard)
        }
        Body::EntitlementWarned(warned) => {
            format!("{} used in {}, more than {}", warned.used, warned.month, warned.soft)
        }
        Body::AppPolicyPut(put) => format!("policy version {}", put.version),
        Body::SharingPut(put) => format!("sharing version {}", put.version),
        Body::LedgerShared(shared) => super::sharing::tell(&project_name(state, record), shared),
        Body::PeriodStated(stated) => {
            let distances = [stated.from, stated.border].map(|at| stated.cut.abs_diff(at));
            format!("stated {} from {} and {} before the cut", stated.month, distances[0], distances[1])
        }
        Body::SinkPut(put) => {
            let events: Vec<&str> = put.events.iter().take(3).map(leasehold_model::Name::as_str).collect();
            format!("{} {} gets {} by {}", put.sink, put.name, events.join(","), put.signature)
        }
        Body::SinkDeleted(gone) => format!("{} deleted", gone.sink),
        Body::SinkDisabled(disabled) => format!("{} disabled: {}", disabled.sink, disabled.cause),
        Body::PeriodClosed(closed) => {
            let (invoices, statements) = (closed.invoices + closed.credit_notes, closed.statements);
            format!("{} closed, {invoices} invoices, {statements:?} statements", closed.month)
        }
        Body::CeilingDeleted(gone) => format!("ceiling{} gone", app(gone.app_instance)),
        Body::RateCardPut(put) => format!("card {}{} from {}", put.card, of(state, put.pool), names.time(put.from)),
        Body::RateCardDeleted(gone) => format!("card {} withdrawn", gone.card),
        Body::ChargePolicyPut(put) => format!("policy {} from {}", put.policy, names.time(put.from)),
        Body::TokenRevoked(revoked) => format!("{} revoked", revoked.token),
        Body::AllocationSubmitted(submitted) => {
            let number = names.allocation(AllocationNo(record.sequence));
            let gang = if submitted.spec.replicas > 1 {
                format!(", {} replicas", submitted.spec.replicas)
            } else {
                String::new()
            };
            format!("{number} submitted{gang}")
        }
        Body::AllocationPlaced(placed) => {
            format!("{} placed, attempt {}", names.allocation(placed.allocation), placed.attempt)
        }
        Body::AllocationStarted(of) => format!("{} runs", names.allocation(of.allocation)),
        Body::AllocationCheckpointing(of) => format!("{} checkpoints", names.allocation(of.allocation)),
        Body::AllocationCheckpointed(of) => {
            format!("{} checkpointed {} bytes in {}", names.allocation(of.allocation), of.bytes, of.took)
        }
        Body::AllocationSuspended(of) => format!("{} suspended: {}", names.allocation(of.allocation), of.end),
        Body::AllocationRequeued(of) => format!("{} requeued: {}", names.allocation(of.allocation), of.end),
        Body::AllocationCompleted(of) => format!("{} completed", names.allocation(of.allocation)),
        Body::AllocationFailed(of) => format!("{} failed: {}", names.allocation(of.allocation), of.end),
        Body::AllocationHoldSet(of) => format!("{} on hold", names.allocation(of.allocation)),
        Body::AllocationHoldCleared(of) => format!("{} no longer on hold", names.allocation(of.allocation)),
        Body::AllocationChanged(of) => format!("{} changed: {}", names.allocation(of.allocation), of.spec.priority),
        Body::AllocationCancelled(of) => format!("{} cancelled", names.allocation(of.allocation)),
        Body::PreemptionDecided(of) => {
            let places: Vec<String> = of.places.iter().map(|place| node(state, place.node)).collect();
            let headroom =
                of.headroom.map_or_else(String::new, |quota| format!(", headroom in {}", names.quota(quota)));
            let (victims, who) = (all(&of.victims), names.allocation(of.allocation));
            format!("evicts {victims} for {who} on {}{headroom}", places.join(" "))
        }
        Body::ReservationTakenOver(of) => {
            let places: Vec<String> = of.places.iter().map(|place| node(state, place.node)).collect();
            let dropped: Vec<String> = of.dropped.iter().map(|number| names.allocation(*number)).collect();
            let mut told = format!("{} takes over from {}", names.allocation(of.allocation), dropped.join(" "));
            for (what, leases) in [("evicts", &of.victims), ("waits for", &of.awaited)] {
                if !leases.0.is_empty() {
                    let _ = write!(told, ", {what} {}", all(leases));
                }
            }
            format!("{told} on {}", places.join(" "))
        }
        Body::HeadProtected(of) => {
            let nodes: Vec<String> = of.nodes.0.iter().map(|number| node(state, *number)).collect();
            format!("{} is protected on {}", names.allocation(of.allocation), nodes.join(" "))
        }
        Body::ReservationDropped(of) => format!("nothing is kept for {} any more", names.allocation(of.allocation)),
        other => super::prepaid::tell(other).unwrap_or_else(|| other.word().to_owned()),
    };
    let who = record.identity.tenant.map_or("-".to_owned(), |no| tenant(state, no));
    let why = record.reason.map_or(String::new(), |reason| format!(" ({})", reason.word()));
    let since = if record.effective_at == record.stamp {
        String::new()
    } else {
        format!(" since {}", names.time(record.effective_at))
    };
    format!("{} {who} {what}{why}{since}", names.time(record.stamp))
}

fn grant(granted: &Granted, stamp: Instant, names: &Names, state: &State) -> String {
    let mut text = "granted".to_owned();
    for (number, member) in (granted.first_lease.0..).zip(&granted.members) {
        write!(text, " #{number} {} {}", class(state, member.class), member.quanta).expect("text grows");
        if member.devices != 0 {
            let indexes: Vec<String> =
                (0..64).filter(|i| member.devices >> i & 1 == 1).map(|i| i.to_string()).collect();
            write!(text, "[{}]", indexes.join(",")).expect("text grows");
        }
    }
    let until = stamp.saturating_add(granted.ttl);
    write!(text, " on {} to {}", node(state, granted.node), names.time(until)).expect("text grows");
    if granted.priority != Priority::Standard {
        write!(text, " {}", granted.priority).expect("text grows");
    }
    for quota in &granted.over_soft {
        write!(text, ", over soft {}", names.quota(*quota)).expect("text grows");
    }
    if let Some(window) = granted.capped_by_window {
        write!(text, ", capped by {window}").expect("text grows");
    }
    if let Some(quota) = granted.capped_by {
        write!(text, ", capped by {}", names.quota(quota)).expect("text grows");
    }
    text
}

/// The project in the head of a record.
fn project_name(state: &State, record: &Record) -> String {
    let of = record.identity.project.and_then(|project| state.project(project));
    of.map_or("nobody", |project| project.name.as_str()).to_owned()
}
