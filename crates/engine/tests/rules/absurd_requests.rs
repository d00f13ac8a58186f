//! Requests with idempotency keys that no client should send: they are refused, and stop nothing.

use crate::support::{STAGE, Story, World};
use leasehold_engine::command::{IssueToken, LeaseList, Nothing, ReleaseOne, RenewOne, RequestLease};
use leasehold_engine::{Command, Request};
use leasehold_model::{
    Activity, AppInstanceNo, ClassNo, Identity, Instant, LeaseNo, Name, ProjectNo, Quanta, Role, Span, TenantNo,
    TokenScope,
};

/// Regression: hashing a keyed command stopped the engine where a list was longer than any record may hold.
#[test]
fn absurdly_long_lists_are_refused_with_a_key_too() {
    let operator = Identity::default;
    let leases = || (0..5000).map(LeaseNo);
    let release = leases().map(|lease| ReleaseOne { lease, activity: None });
    let renew = leases().map(|lease| RenewOne { lease, ttl: Span(1), activity: None });
    let mut ask = RequestLease::of(ClassNo(0), Quanta(1), Span(1));
    ask.asks = (0..5000).map(|_| (ClassNo(0), Quanta(1))).collect();
    let scope = TokenScope { app_instances: (0..5000).map(AppInstanceNo).collect(), ..TokenScope::default() };
    let (hash, role) = ([0; 32], Role::AppOperator);
    let issue = IssueToken { name: Name::new("t").expect("a name"), hash, role, scope, expires_at: None };
    let commands = [
        (Command::Release(release.clone().collect()), "too_many_leases"),
        (Command::ReportActivity(release.collect()), "too_many_leases"),
        (Command::Renew(renew.collect()), "too_many_leases"),
        (Command::Ready(leases().collect()), "too_many_leases"),
        (Command::Unfence(leases().collect::<LeaseList>().into()), "too_many_leases"),
        (Command::Request(ask), "too_many_classes"),
        (Command::IssueToken(issue), "bad_token_scope"),
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
