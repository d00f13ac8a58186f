//! Records that somebody else than the holder caused carry whose leases they are, and one correlation ID follows a
//! request through everything (SEMANTICS 11, "Identity and correlation").

use crate::support::{STAGE, Story};
use expect_test::{Expect, expect};
use leasehold_model::body::{BelongsTo, Body, Correlation};
use leasehold_model::{LeaseNo, Record};
use std::fmt::Write;

/// The leases of a record, and what it says they belong to.
fn about(record: &Record) -> Option<(Vec<LeaseNo>, Option<BelongsTo>)> {
    let (leases, belongs_to) = match &record.body {
        Body::Expired(body) => (&body.leases, body.belongs_to),
        Body::Revoked(body) => (&body.leases, body.belongs_to),
        Body::TeardownStarted(body) => (&body.leases, body.belongs_to),
        Body::TornDown(body) => (&body.leases, body.belongs_to),
        Body::Fenced(body) => (&body.leases, body.belongs_to),
        Body::Unfenced(body) => (&body.leases, body.belongs_to),
        _ => return None,
    };
    Some((leases.0.to_vec(), belongs_to))
}

fn correlation(correlation: Correlation) -> String {
    match correlation {
        Correlation::Given(id) => format!("given {id}"),
        Correlation::Derived(sequence) => format!("record {sequence}"),
    }
}

/// One line a record that ends leases: its kind, its leases, whose it says they are, and what they belong to.
#[track_caller]
fn check(story: &str, expected: Expect) {
    let mut told = Story::on(&format!("{STAGE}\n 0 op user a/ann\n 0 op user a/bob"));
    told.play(story);
    let mut text = String::new();
    for record in &told.world.records {
        let Some((leases, belongs_to)) = about(record) else { continue };
        let leases: Vec<String> = leases.iter().map(|lease| format!("#{}", lease.0)).collect();
        let of = &record.identity;
        write!(text, "{} {}:", record.body.word(), leases.join(" ")).unwrap();
        write!(text, " tenant {:?} project {:?}", of.tenant.map(|no| no.0), of.project.map(|no| no.0)).unwrap();
        write!(text, " user {:?} {:?};", of.user.map(|no| no.0), of.workload.as_ref().map(ToString::to_string))
            .unwrap();
        match belongs_to {
            None => writeln!(text, " -").unwrap(),
            Some(BelongsTo { allocation, correlation: id }) => {
                let allocation = allocation.map_or_else(|| "no allocation".to_owned(), |number| number.to_string());
                writeln!(text, " {allocation}, {}", correlation(id)).unwrap();
            }
        }
    }
    expected.assert_eq(&text);
}

/// Leases that end together are in one record only if everything about their holder is the same. A fence and its end
/// say the same as the expiry.
#[test]
fn a_timer_says_whose_leases_it_ends() {
    check(
        "
        1 a grant core 1 cpu 1 node=n1 ttl=10s user=a/ann work=train
        1 a grant core 1 node=n1 ttl=10s user=a/ann work=train corr=7
        1 a grant core 1 node=n1 ttl=10s user=a/ann work=train corr=7
        1 a grant core 1 node=n1 ttl=10s user=a/bob work=train corr=7
        1 a grant core 1 node=n1 ttl=10s user=a/bob corr=7
        11
        500
        501 op unfence #0 #1 #2 #3
        ",
        expect![[r#"
            lease.expired #0 #1: tenant Some(0) project Some(0) user Some(0) Some("train"); no allocation, record 13
            lease.expired #2 #3: tenant Some(0) project Some(0) user Some(0) Some("train"); no allocation, given 7
            lease.expired #4: tenant Some(0) project Some(0) user Some(1) Some("train"); no allocation, given 7
            lease.expired #5: tenant Some(0) project Some(0) user Some(1) None; no allocation, given 7
            lease.fenced #0 #1: tenant Some(0) project Some(0) user Some(0) Some("train"); no allocation, record 13
            lease.fenced #2 #3: tenant Some(0) project Some(0) user Some(0) Some("train"); no allocation, given 7
            lease.fenced #4: tenant Some(0) project Some(0) user Some(1) Some("train"); no allocation, given 7
            lease.fenced #5: tenant Some(0) project Some(0) user Some(1) None; no allocation, given 7
            lease.unfenced #2 #3: tenant Some(0) project Some(0) user Some(0) Some("train"); no allocation, given 7
            lease.unfenced #0 #1: tenant Some(0) project Some(0) user Some(0) Some("train"); no allocation, record 13
        "#]],
    );
}

#[test]
fn an_operator_says_whose_leases_are_revoked_and_torn_down() {
    check(
        "
        1 a grant core 1 node=n1 ttl=1h user=a/ann corr=7
        1 a grant core 1 node=n1 ttl=1h user=a/bob corr=7
        1 a grant core 1 node=n1 ttl=1h user=a/ann corr=7
        2 op revoke #0 #1 #2 grace=5s
        20 op confirm n1 #0 #1 #2
        ",
        expect![[r#"
            lease.revoked #0 #2: tenant Some(0) project Some(0) user Some(0) None; no allocation, given 7
            lease.revoked #1: tenant Some(0) project Some(0) user Some(1) None; no allocation, given 7
            lease.teardown_started #0: tenant Some(0) project Some(0) user Some(0) None; no allocation, given 7
            lease.teardown_started #1: tenant Some(0) project Some(0) user Some(1) None; no allocation, given 7
            lease.teardown_started #2: tenant Some(0) project Some(0) user Some(0) None; no allocation, given 7
            lease.torn_down #0 #2: tenant Some(0) project Some(0) user Some(0) None; no allocation, given 7
            lease.torn_down #1: tenant Some(0) project Some(0) user Some(1) None; no allocation, given 7
        "#]],
    );
}

/// What a holder does itself stays in one record for all of its leases.
#[test]
fn the_loss_of_a_node_says_whose_leases_end_and_a_holder_does_not() {
    check(
        "
        1 a grant core 1 node=n1 ttl=1h user=a/ann corr=7
        1 a grant core 1 node=n1 ttl=1h user=a/bob
        1 a grant core 1 node=n1 ttl=1h
        2 op revoke #2 grace=50s
        3 a ready #2
        4 op lose n1 seen=4
        ",
        expect![[r#"
            lease.revoked #2: tenant Some(0) project Some(0) user None None; no allocation, record 15
            lease.teardown_started #2: tenant Some(0) project Some(0) user None None; -
            lease.revoked #0: tenant Some(0) project Some(0) user Some(0) None; no allocation, given 7
            lease.teardown_started #0: tenant Some(0) project Some(0) user Some(0) None; no allocation, given 7
            lease.revoked #1: tenant Some(0) project Some(0) user Some(1) None; no allocation, record 14
            lease.teardown_started #1: tenant Some(0) project Some(0) user Some(1) None; no allocation, record 14
        "#]],
    );
}

/// The allocation that a request becomes, its attempts, leases and records share the correlation ID of the request.
#[test]
fn one_correlation_id_for_a_request_and_everything_that_follows() {
    let mut story = Story::on(&format!("{STAGE}\n 0 op update b max=guaranteed"));
    story.play(
        "
        1 a grant gpu 2 node=n1 ttl=1h prio=scavenger work=low
        2 b grant gpu 1 ttl=1h prio=guaranteed hcl=entry-1 dra=claim-1
        3
        70
        71 op confirm n1 #0
        72
        79 b submit gpu 1 ttl=1h wall=1h hcl=entry-2 dra=claim-2 corr=9
        ",
    );
    let grants: Vec<(&Record, Correlation)> = story
        .world
        .records
        .iter()
        .filter_map(|record| match &record.body {
            Body::Granted(granted) => Some((record, granted.correlation_of(record.sequence))),
            _ => None,
        })
        .collect();
    let submitted = story.world.records.iter().find(|record| matches!(record.body, Body::AllocationSubmitted(_)));
    let submitted = submitted.expect("the request of b waits for its victim");
    assert_eq!(grants.len(), 3, "{}", story.text);
    assert_eq!(grants[0].1, Correlation::Derived(grants[0].0.sequence));
    assert_eq!(grants[1].1, Correlation::Derived(submitted.sequence), "the request became this allocation");
    assert_eq!(grants[2].1, Correlation::Given(9));
    let state = story.world.state();
    assert_eq!(state.lease(LeaseNo(1)).map(leasehold_engine::Lease::correlation), Some(grants[1].1));
    // The references of the caller survive the wait for the eviction, and allocations take them as well.
    for (record, number) in [(grants[1].0, 1), (grants[2].0, 2)] {
        let said = |name: &Option<leasehold_model::Name>| name.as_ref().map(ToString::to_string);
        assert_eq!(said(&record.hcl_entry), Some(format!("entry-{number}")));
        assert_eq!(said(&record.dra_claim_id), Some(format!("claim-{number}")));
    }
}

/// Released, wiped and quarantined: each names the claimer and the record that made the claim.
#[test]
fn records_that_end_a_claim_name_the_claimer_and_the_claim() {
    let mut story = Story::on(&format!("{STAGE}\n 0 op user a/ann\n 0 op node n3 core 5\n 0 op node n4 core 5"));
    story.play(
        "
        1 a claim n1 n3 user=a/ann
        1 a claim n4 user=a/ann
        2 op giveback n1 n3 n4
        3 op wiped n1
        4 op unclean n4
        4000
        ",
    );
    let claims: Vec<u64> = story
        .world
        .records
        .iter()
        .filter(|record| matches!(record.body, Body::NodesClaimed(_)))
        .map(|record| record.sequence)
        .collect();
    let mut ends = Vec::new();
    for record in &story.world.records {
        let (word, claim) = match &record.body {
            Body::NodesReleased(body) => ("released", body.claim),
            Body::NodeWiped(body) => ("wiped", body.claim),
            Body::NodeQuarantined(body) => ("quarantined", body.claim),
            _ => continue,
        };
        let of = &record.identity;
        assert_eq!((of.tenant, of.project), (Some(leasehold_model::TenantNo(0)), Some(leasehold_model::ProjectNo(0))));
        assert!(of.user.is_some(), "{record:?}");
        let place = claims.iter().position(|sequence| Some(*sequence) == claim);
        ends.push((word, place.expect("a claim that was made")));
    }
    let quarantined = [("quarantined", 1), ("quarantined", 0)];
    assert_eq!(ends, [[("released", 0), ("released", 1)].as_slice(), &[("wiped", 0)], &quarantined].concat());
}
