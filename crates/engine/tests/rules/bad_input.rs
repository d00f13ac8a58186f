//! What cannot stand: each has its own code, says what to do, and leaves no trace (`World::decide`
//! checks the last after every refusal).

use crate::support::{STAGE, Story, World};
use expect_test::expect;
use leasehold_engine::command::{Nothing, ReleaseOne, RenewOne, RequestLease};
use leasehold_engine::{Command, Engine, Refusal, Request, State};
use leasehold_model::codec::{Field, put_varint};
use leasehold_model::limits::IDEMPOTENCY_KEYS_PER_TENANT_MAX;
use leasehold_model::{Activity, Batch, ClassNo, Identity, Instant, LeaseNo, ProjectNo, Quanta, Span, TenantNo};
use std::collections::BTreeSet;

/// Before each: at 0 tenant a holds `#0` (a core on n1), at 10 it is what the case says.
const HELD: &str = "
    0 op user a/u
    0 op user b/v
    0 op project a/p
    0 a grant core 5 node=n1 ttl=100s
";

fn many(word: &str, n: usize) -> String {
    vec![word; n].join(" ")
}

/// What happened before, and what is asked.
fn cases() -> Vec<(&'static str, String, String)> {
    let leases: Vec<String> = (0..1025).map(|n| format!("#{n}")).collect();
    let labels: Vec<String> = (0..65).map(|n| format!("l{n}")).collect();
    let quotas: Vec<String> = (0..256).map(|n| format!("0 op quota q{n} a core hard={n}")).collect();
    let classes: Vec<String> = (0..1021).map(|n| format!("0 op class c{n}")).collect();
    let plain = |what, line: &str| (what, String::new(), line.to_owned());
    let after = |what, before: &str, line: &str| (what, before.to_owned(), line.to_owned());
    vec![
        plain("an empty idempotency key", "10 a grant core 1 key="),
        ("a long idempotency key", String::new(), format!("10 a grant core 1 key={}", "k".repeat(65))),
        after("a key used for something else", "1 a grant core 1 key=k", "10 a grant core 2 key=k"),
        plain("an unknown tenant", "10 nobody grant core 1"),
        plain("an unknown project", "10 a/nothing grant core 1"),
        plain("a project of another tenant as source", "10 a grant core 1 source=b"),
        plain("an unknown user", "10 a grant core 1 user=a/nobody"),
        plain("a user of another tenant", "10 a grant core 1 user=b/v"),
        plain("an unknown pool", "10 a grant core 1 pool=nowhere"),
        plain("an unknown node", "10 a grant core 1 node=n9"),
        plain("a node of another pool", "10 a grant core 1 node=n1 pool=other"),
        plain("an unknown class", "10 a grant x 1"),
        plain("an unknown quota", "10 op delete quota q9"),
        plain("an unknown lease", "10 a release #7"),
        plain("a lease of another tenant", "10 b release #0"),
        after("an ended lease of another tenant", "1 a release #0\n 2 op confirm n1 #0", "10 b release #0"),
        plain("no tenant", "10 op grant core 1"),
        plain("no project", "10 a/ grant core 1"),
        plain("a lease of another project", "10 a/p release #0"),
        plain("nothing asked for", "10 a grant"),
        ("seventeen classes", String::new(), format!("10 a grant {}", many("x 1", 17))),
        plain("a class twice", "10 a grant core 1 gpu 1 core 1"),
        plain("zero capacity", "10 a grant core 0q"),
        plain("absurd capacity", "10 a grant core 281474976710657"),
        plain("a device and a half", "10 a grant gpu 10q"),
        plain("a ttl of zero", "10 a grant core 1 ttl=0s"),
        plain("a ttl beyond the limit", "10 a grant core 1 ttl=25h"),
        plain("the longest ttl there is", "10 a grant core 1 ttl=18446744073709551615ns"),
        plain("a priority above the tenant's", "10 a grant core 1 prio=guaranteed"),
        plain("sensitive work of nobody", "10 a grant core 1 sensitive"),
        plain("sensitive work without a claim", "10 a grant core 1 sensitive user=a/u"),
        plain("renewing after expiry", "100 a renew #0 ttl=10s"),
        plain("renewing for no time", "10 a renew #0 ttl=0s"),
        plain("renewing for too long", "10 a renew #0 ttl=25h"),
        after("releasing twice", "1 a release #0", "10 a release #0"),
        after("releasing twice, torn down", "1 a release #0\n 2 op confirm n1 #0", "10 a release #0"),
        after("renewing what was revoked", "1 op revoke #0 grace=0s\n 1", "10 a renew #0 ttl=10s"),
        after("renewing what is being revoked", "1 op revoke #0 grace=60s", "10 a renew #0 ttl=10s"),
        after("releasing what is fenced", "1 a release #0", "130 a release #0"),
        after("releasing what was fenced", "1 a release #0\n 130 op unfence #0", "131 a release #0"),
        plain("ready without a revocation", "10 a ready #0"),
        plain("confirming what is held", "10 op confirm n1 #0"),
        plain("clearing what is not fenced", "10 op unfence #0"),
        after("confirming another node's", "1 a release #0", "10 op confirm n2 #0"),
        after("past the lifetime", "1 op pool main lifetime=50s", "10 a renew #0 ttl=60s"),
        after("past the burst", "1 op quota q a core burst=1..9/20s", "10 a renew #0 ttl=200s"),
        plain("no lease at all", "10 a release"),
        ("1025 leases", String::new(), format!("10 a release {}", leases.join(" "))),
        plain("a lease twice", "10 a release #0 #0"),
        plain("a grace of eight days", "10 op revoke #0 grace=8d"),
        plain("a report of nothing", "10 a report #0(0s)"),
        plain("no report", "10 a report #0"),
        plain("a taken name", "10 op tenant c name=a"),
        plain("deleting a tenant that holds something", "10 op delete tenant a"),
        plain("deleting a project that holds something", "10 op delete project a/a"),
        plain("deleting a node that holds something", "10 op delete node n1"),
        plain("moving a node that holds something", "10 op node n1 pool=other core 200"),
        plain("deleting a pool with nodes", "10 op delete pool main"),
        plain("a node smaller than what it has leased", "10 op node n1 gpu 2 cpu 8 core 4"),
        plain("a node without what it has leased", "10 op node n1 gpu 2 cpu 8"),
        plain("sixty-five devices", "10 op node n9 gpu 65"),
        ("sixty-five classes", String::new(), format!("10 op node n9 {}", many("x 1", 65))),
        plain("a node with zero of a class", "10 op node n9 core 0q"),
        plain("a node with half a device", "10 op node n9 gpu 3/7"),
        plain("a node with a class twice", "10 op node n9 core 1 core 1"),
        plain("a node of absurd size", "10 op node n9 core 281474976710657"),
        ("sixty-five labels", String::new(), format!("10 op node n9 core 1 labels={}", labels.join(","))),
        plain("a label twice", "10 op node n9 core 1 labels=l,l"),
        plain("another quantum for a class in use", "10 op class core kind=cpu per=2"),
        plain("no quanta to a unit", "10 op class c kind=cpu per=0"),
        plain("too many quanta to a unit", "10 op class c kind=cpu per=4294967297"),
        ("1025 classes", classes.join("\n"), "10 op class c".to_owned()),
        plain("resuming what was not drained", "10 op resume n1"),
        plain("a node seen in the future", "10 op lose n1 seen=11"),
        ("257 quotas", quotas.join("\n"), "10 op quota q a core hard=1".to_owned()),
        plain("a burst ceiling below its base", "10 op quota q a core burst=10..9/60s"),
        plain("a burst of no length", "10 op quota q a core burst=9..10/0s"),
        plain("quanta of no class", "10 op quota q a hard=1"),
        plain("a burst on each node", "10 op quota q a core burst=9..10/60s node=each"),
        plain("a quota of no tenant", "10 op quota q nobody core hard=1"),
        plain("a quota of another tenant's project", "10 op quota q a/b core hard=1"),
        after("a quota moved elsewhere", "1 op quota q a core hard=1", "10 op quota q a gpu hard=1 no=0"),
        plain("a setting of nothing", "10 op settings teardown=0s"),
        plain("a setting of too much", "10 op settings ttl=367d"),
        plain("a default grace of too much", "10 op settings grace=8d"),
        plain("a pool's ttl of nothing", "10 op pool main ttl=0s"),
        plain("a pool's grace of too much", "10 op pool main grace=8d"),
        plain("a project moved to another tenant", "10 op project b/x no=0"),
        plain("a user moved to another tenant", "10 op user b/x no=0"),
        plain("the key in use", "10 op key 1"),
        // To a tenant, what belongs to others does not exist.
        plain("another tenant's project, by number", "10 a project a/x no=1"),
        plain("another tenant's user, by number", "10 a user a/x no=1"),
        after("another tenant's quota, by number", "1 op quota q b core hard=1", "10 a quota q a core hard=1 no=0"),
        plain("deleting another tenant", "10 a delete tenant b"),
        plain("deleting another tenant's project", "10 a delete project b/b"),
        plain("deleting another tenant's user", "10 a delete user b/v"),
        after("deleting another tenant's quota", "1 op quota q b core hard=1", "10 a delete quota q"),
        plain("a project in another tenant", "10 a project b/x"),
        plain("a user in another tenant", "10 a user b/x"),
        plain("a quota for another tenant", "10 a quota q b core hard=1"),
        plain("another tenant's name", "10 a tenant b"),
    ]
}

#[test]
fn each_has_its_code_and_its_sentence() {
    let mut told = String::new();
    let mut seen = BTreeSet::new();
    for (what, before, line) in cases() {
        let mut story = Story::on(STAGE);
        story.play("0 op pool other");
        story.play(HELD);
        story.play(&before);
        let answer = story.line(&line).expect("a decision");
        let refusal = answer.expect_err(what);
        seen.insert(refusal.code());
        told.push_str(&format!("{what}\n    {}: {refusal}\n", refusal.code()));
    }
    // Reached below, and by no number of commands that anyone could send.
    seen.extend(["too_many_idempotency_keys", "numbers_exhausted"]);
    let missing: Vec<_> = Refusal::CODES.iter().filter(|code| !seen.contains(*code)).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
    expect![[""]].assert_eq(&told);
}

/// A state whose tenant 0 holds as many keys as it may, the oldest claimed at second 100.
fn full_of_keys() -> State {
    let story = Story::on(STAGE);
    let mut bytes = story.world.state().to_snapshot();
    // The claims come last, and there are none yet.
    assert_eq!(bytes.pop(), Some(0));
    put_varint(u64::from(IDEMPOTENCY_KEYS_PER_TENANT_MAX), &mut bytes);
    for n in 0..IDEMPOTENCY_KEYS_PER_TENANT_MAX {
        Instant::from_secs(if n == 0 { 100 } else { 200 }).put(&mut bytes);
        u128::from(n).put(&mut bytes);
        Some(TenantNo(0)).put(&mut bytes);
        [0u8; 16].put(&mut bytes);
        1u64.put(&mut bytes);
    }
    State::from_snapshot(&bytes).expect("a state with many keys")
}

fn ask(tenant: u32, project: u32) -> Request {
    let identity =
        Identity { tenant: Some(TenantNo(tenant)), project: Some(ProjectNo(project)), ..Identity::default() };
    let command = Command::Request(RequestLease::of(ClassNo(2), Quanta(1), Span::from_secs(60)));
    Request::once(identity, command, b"one more").expect("a key")
}

#[test]
fn a_million_keys_are_the_most_and_only_those_within_the_window_count() {
    let state = full_of_keys();
    let at = |secs| Instant::from_secs(secs);
    let mut engine = Engine::new(state);
    let before = engine.state().digest();
    let mut batch = Batch::new(engine.state().size());
    let refusal = engine.decide(at(300), &ask(0, 0), &mut batch).expect_err("one too many");
    assert_eq!(
        refusal.to_string(),
        "the tenant has 1000000 idempotency keys within the window; wait until some have passed out of it"
    );
    assert_eq!(refusal.code(), "too_many_idempotency_keys");
    assert!(batch.is_empty() && engine.state().digest() == before);
    // Others are not held up by it.
    assert!(engine.decide(at(300), &ask(1, 1), &mut batch).is_ok());
    // A day after the oldest was claimed there is room for one, though no record has swept it out yet.
    assert!(engine.decide(at(100 + 86_400), &ask(0, 0), &mut batch).is_ok());
}

/// Regression: hashing a keyed command stopped the engine where a list was longer than any record may hold.
#[test]
fn absurdly_long_lists_are_refused_with_a_key_too() {
    let operator = Identity::default;
    let leases = || (0..5000).map(LeaseNo);
    let release = leases().map(|lease| ReleaseOne { lease, activity: None });
    let renew = leases().map(|lease| RenewOne { lease, ttl: Span(1), activity: None });
    let mut ask = RequestLease::of(ClassNo(0), Quanta(1), Span(1));
    ask.asks = (0..5000).map(|_| (ClassNo(0), Quanta(1))).collect();
    let commands = [
        (Command::Release(release.clone().collect()), "too_many_leases"),
        (Command::ReportActivity(release.collect()), "too_many_leases"),
        (Command::Renew(renew.collect()), "too_many_leases"),
        (Command::Ready(leases().collect()), "too_many_leases"),
        (Command::Unfence(leases().collect()), "too_many_leases"),
        (Command::Request(ask), "too_many_classes"),
    ];
    for (command, code) in commands {
        let refusal = Request::once(operator(), command, b"k").expect_err("a list of 5000");
        assert_eq!(refusal.code(), code);
    }
}

/// Regression: the same for a report of more busy time than the format can write.
#[test]
fn absurdly_busy_reports_are_refused_alone_with_a_key_too() {
    let mut story = Story::on(STAGE);
    story.play("0 a grant core 1");
    let identity = Identity { tenant: Some(TenantNo(0)), project: Some(ProjectNo(0)), ..Identity::default() };
    let activity = Some(Activity { covered: Span(1), busy: u128::MAX, ..Activity::default() });
    let renew = RenewOne { lease: LeaseNo(0), ttl: Span::from_secs(60), activity };
    let request = Request::once(identity, Command::Renew([renew].into_iter().collect()), b"k").expect("a request");
    let (answer, records) = story.world.step(Instant::from_secs(10), &request);
    let text = format!("{answer:?}");
    assert!(text.contains("BusierThanHeld"), "{text}");
    assert_eq!(records.len(), 1);
}

/// Regression: a key of a tenant that nobody has heard of made room for all tenants before it.
#[test]
fn a_key_of_an_unknown_tenant_claims_nothing() {
    let mut world = World::new();
    let identity = Identity { tenant: Some(TenantNo(u32::MAX)), ..Identity::default() };
    let request = Request::once(identity, Command::Heartbeat(Nothing {}), b"k").expect("a key");
    let (answer, _) = world.step(Instant(0), &request);
    assert_eq!(answer.expect_err("no such tenant").code(), "unknown_tenant");
}
