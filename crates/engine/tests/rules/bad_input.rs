//! What cannot stand: each has its own code, says what to do, and leaves no trace (`World::decide`
//! checks the last after every refusal).

use crate::support::{STAGE, Story, lines, with_instances};
use expect_test::expect;
use leasehold_engine::Refusal;
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
    let cards: Vec<String> = (100..164).map(|from| format!("1 op card from={from}")).collect();
    let quotas = with_instances(256) + &lines(256, |n| format!("0 op quota q{n} a core hard={n} by-app={n}"));
    let ceilings = with_instances(1000) + &lines(1000, |app| format!("0 op ceiling a hard=1 app={app}"));
    let classes: Vec<String> = (0..1021).map(|n| format!("0 op class c{n}")).collect();
    let plain = |what, line: &str| (what, String::new(), line.to_owned());
    let after = |what, before: &str, line: &str| (what, before.to_owned(), line.to_owned());
    let apps: Vec<String> = (0..65).map(|n| n.to_string()).collect();
    vec![
        plain("a token that never was", "10 a grant core 1 token=7"),
        after("a token that has expired", "1 op issue t role=operator expires=9", "10 a grant core 1 token=0"),
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
        plain("an unknown token", "10 op withdraw 7"),
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
        plain("labels that no node has", "10 a grant core 1 labels=ssd,gold"),
        plain("weights that do not add up", "10 op pool main weights=500,200,200,101"),
        plain("a half-life of no length", "10 op settings half_life=999ms"),
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
        after("a second agent", "1 op agent n1 instance=1", "10 op agent n1 instance=2"),
        after(
            "a replaced agent",
            "1 op agent n1 instance=1\n 2 op agent n1 instance=1",
            "10 op condition n1 generation=1",
        ),
        plain("an agent of a node without one", "10 op confirm n1 #0 generation=1"),
        after("no change", "1 op agent n1 instance=1", "10 op condition n1 generation=1"),
        plain("detaching nobody", "10 op detach n1"),
        plain("a node seen in the future", "10 op lose n1 seen=11"),
        ("257 quotas", quotas, "10 op quota q a core hard=1".to_owned()),
        plain("a burst ceiling below its base", "10 op quota q a core burst=10..9/60s"),
        plain("a burst of no length", "10 op quota q a core burst=9..10/0s"),
        plain("quanta of no class", "10 op quota q a hard=1"),
        plain("a burst on each node", "10 op quota q a core burst=9..10/60s node=each"),
        plain("nodes counted on each node", "10 op quota q a count=nodes hard=1 node=each"),
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
        plain("an operator confined to a tenant", "10 op issue t role=operator tenant=a"),
        plain("an admin of no tenant", "10 op issue t role=tenant_admin"),
        plain("an admin of a project", "10 op issue t role=tenant_admin tenant=a project=a"),
        plain("a member of no project", "10 op issue t role=project_member tenant=a"),
        plain("a member of a node", "10 op issue t role=project_member tenant=a project=a node=n1"),
        plain("an agent of no node", "10 op issue t role=node_agent"),
        plain("an agent of a tenant", "10 op issue t role=node_agent node=n1 tenant=a"),
        plain("an operator of no app", "10 op issue t role=app_operator tenant=a"),
        plain("an app operator of a project", "10 op issue t role=app_operator tenant=a apps=1 project=a"),
        plain("an app instance twice", "10 op issue t role=app_operator tenant=a apps=1,2,1"),
        (
            "65 app instances",
            String::new(),
            format!("10 op issue t role=app_operator tenant=a apps={}", apps.join(",")),
        ),
        plain("billing of a project", "10 op issue t role=billing_authority tenant=a project=a"),
        plain("a tenant that makes operators", "10 a issue t role=operator"),
        plain("a tenant that makes another's admins", "10 a issue t role=tenant_admin tenant=b"),
        plain("a token of no tenant", "10 op issue t role=tenant_admin tenant=nobody"),
        plain("a token of another tenant's project", "10 op issue t role=project_member tenant=a project=b"),
        plain("a token of another tenant's user", "10 op issue t role=tenant_admin tenant=a of=b/v"),
        plain("a token of no node", "10 op issue t role=node_agent node=n9"),
        plain("a token that has expired already", "10 op issue t role=operator expires=10"),
        after("a token twice", "1 op issue t role=operator", "10 op issue t role=auditor"),
        after("another tenant's token", "1 op issue t role=tenant_admin tenant=b", "10 a withdraw 0"),
        after(
            "a tenant's token that is the operator's",
            "1 op issue t role=billing_authority tenant=a",
            "10 a withdraw 0",
        ),
        plain("an update of another tenant", "10 a update b tag=t"),
        plain("an update to a taken name", "10 op update a name=b"),
        plain("the key in use", "10 op key 1"),
        plain("a rate card that never was", "10 op card no=7"),
        plain("a charge policy that never was", "10 op policy no=7"),
        plain("a price that is too high", "10 op card gpu=1000000.5"),
        plain("a factor that is too high", "10 op card tier.h100=1001"),
        plain("a price of no class", "10 op card class.nothing=1"),
        plain("prices of no pool", "10 op card pool=nothing"),
        plain("a card from yesterday", "10 op card from=9"),
        after("two cards at once", "1 op card from=20", "10 op card from=20"),
        after("two policies at once", "1 op policy from=20", "10 op policy from=20"),
        after("a card in force, changed", "1 op card", "10 op card no=0 from=20"),
        after("a card in force, deleted", "1 op card", "10 op delete card 0"),
        after("a policy in force, changed", "1 op policy", "10 op policy no=0 from=20"),
        plain("a charge without the last nothing", "10 op policy preempted=0s"),
        ("65 cards that wait", cards.join("\n"), "10 op card from=1000".to_owned()),
        plain("an allocation that never was", "10 a cancel @7"),
        after("an allocation of another tenant", "1 a submit core 1", "10 b cancel @1"),
        after("an allocation of another project", "1 a submit core 1", "10 a/p complete @1"),
        after("an allocation that is over", "1 a submit core 1\n 2 a complete @1", "10 a cancel @1"),
        after("a checkpoint of what waits", "1 a submit core 200 x=2", "10 a checkpoint @1 bytes=1 took=1s"),
        after("the start of what runs", "1 a submit core 1", "10 a start @1"),
        after("a checkpoint longer than the work", "1 a submit core 1", "10 a checkpoint @1 bytes=1 took=20s"),
        after("an exit status of no process", "1 a submit core 1", "10 a complete @1 exit=256"),
        after("one lease of a gang", "1 a submit core 1 x=2", "10 a release #1"),
        plain("no replicas", "10 a submit core 1 x=0"),
        plain("1025 replicas", "10 a submit core 1 x=1025"),
        plain("a gang larger than the cluster", "10 a submit core 200 x=3"),
        plain("labels that no node has", "10 a submit core 1 labels=ssd"),
        ("17 labels", String::new(), format!("10 a submit core 1 labels={}", labels[..17].join(","))),
        plain("together on a node and apart by rack", "10 a submit core 1 x=2 together=node apart=rack"),
        after("a walltime that no pool allows", "1 op pool main lifetime=50s", "10 a submit gpu 2 pool=main wall=1h"),
        plain("a walltime of zero", "10 a submit core 1 wall=0s"),
        plain("a walltime longer than anything may be", "10 a submit core 1 wall=367d"),
        after("one that a burst never lets start", "1 op quota q a core burst=5..9/60s", "10 a submit core 6 wall=1h"),
        after(
            "one too many that wait",
            "1 op update a pending=1\n 2 a submit core 200 x=2",
            "10 a submit core 200 x=2",
        ),
        after(
            "a tenant whose work waits",
            "1 op tenant c\n 1 op project c/c\n 2 c submit core 200 x=2",
            "10 op delete tenant c",
        ),
        after(
            "a project whose work waits",
            "1 op tenant c\n 1 op project c/c\n 2 c submit core 200 x=2",
            "10 op delete project c/c",
        ),
        plain("a quota on allocations of a class", "10 op quota q a core count=allocations hard=1"),
        plain("a budget of nothing", "10 op update a gpuh=0"),
        plain("a budget over more than a year", "10 op update a days=367"),
        plain("a share of more than all", "10 op update a share=1001"),
        // To a tenant, what belongs to others does not exist.
        plain("another tenant's project, by number", "10 a project a/x no=1"),
        plain("another tenant's user, by number", "10 a user a/x no=1"),
        after("another tenant's quota, by number", "1 op quota q b core hard=1", "10 a quota q a core hard=1 no=0"),
        plain("deleting another tenant", "10 a delete tenant b"),
        plain("deleting another tenant's project", "10 a delete project b/b"),
        plain("deleting another tenant's user", "10 a delete user b/v"),
        after("deleting another tenant's quota", "1 op quota q b core hard=1", "10 a delete quota q"),
        plain("a project in another tenant", "10 a project b/x"),
        plain("a ceiling of nothing", "10 op ceiling a hard=0"),
        plain("a ceiling beyond all measure", "10 op ceiling a soft=1000000000000001"),
        plain("a ceiling on another tenant", "10 a ceiling b hard=1"),
        after("a ceiling in another currency", "1 op ceiling a hard=1", "10 op ceiling a hard=1 currency=CHF"),
        plain("deleting a ceiling that is not there", "10 op uncap a app=4"),
        ("1001 ceilings", ceilings, "10 op ceiling a hard=1".to_owned()),
        after("a renewal beyond the ceiling", "1 op ceiling a hard=0.5", "10 a renew #0 ttl=4000s"),
        plain("a user in another tenant", "10 a user b/x"),
        plain("a quota for another tenant", "10 a quota q b core hard=1"),
        plain("another tenant's name", "10 a tenant b"),
    ]
}

#[test]
fn each_has_its_code_and_its_sentence() {
    let mut told = String::new();
    let mut seen = BTreeSet::new();
    for (what, before, line) in cases().into_iter().chain(crate::custody::bad_claims()) {
        let mut story = Story::on(STAGE);
        story.play(&format!("0 op pool other\n{HELD}"));
        story.play(&before);
        let answer = story.line(&line).expect("a decision");
        let refusal = answer.expect_err(what);
        seen.insert(refusal.code());
        told.push_str(&format!("{what}\n    {}: {refusal}\n", refusal.code()));
    }
    // Reached in other files of this folder, and by no number of commands that anyone could send.
    seen.extend(["too_many_idempotency_keys", "too_many_tokens", "numbers_exhausted", "pool_paused"]);
    seen.extend(crate::codes_elsewhere());
    let missing: Vec<_> = Refusal::CODES.iter().filter(|code| !seen.contains(*code)).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
    expect![[r#"
        a token that never was
            token_not_live: token-7 was revoked or has expired, or its tenant, project, user or node was deleted; authenticate with another token
        a token that has expired
            token_not_live: token-0 was revoked or has expired, or its tenant, project, user or node was deleted; authenticate with another token
        an empty idempotency key
            bad_idempotency_key: an idempotency key must have 1 to 64 bytes; this one has 0
        a long idempotency key
            bad_idempotency_key: an idempotency key must have 1 to 64 bytes; this one has 65
        a key used for something else
            idempotency_mismatch: this idempotency key was used for another request, sealed as record 16; use a new key
        an unknown tenant
            unknown_tenant: there is no tenant-99
        an unknown project
            unknown_project: there is no project-99 of this tenant
        a project of another tenant as source
            unknown_project: there is no project-1 of this tenant
        an unknown user
            unknown_user: there is no user-99 of this tenant
        a user of another tenant
            unknown_user: there is no user-1 of this tenant
        an unknown pool
            unknown_pool: there is no pool-99
        an unknown node
            unknown_node: there is no node-99
        a node of another pool
            node_not_in_pool: node-0 is not in pool-1; name one of the two, or a node of that pool
        an unknown class
            unknown_class: there is no class-99
        an unknown quota
            unknown_quota: there is no quota-99
        an unknown token
            unknown_token: there is no token-7
        an unknown lease
            lease_not_found: there is no lease-7 here
        a lease of another tenant
            lease_not_found: there is no lease-0 here
        an ended lease of another tenant
            lease_not_found: there is no lease-0 here
        no tenant
            tenant_required: a lease request needs a tenant; name one
        no project
            project_required: every charge belongs to a project; name one
        a lease of another project
            wrong_holder: lease-0 is held by another project, not by project-2
        nothing asked for
            nothing_asked: the request names no class; request at least one
        seventeen classes
            too_many_classes: the request names 17 classes; at most 16 are allowed
        a class twice
            duplicate_class: class-2 is requested twice; add up the two amounts
        zero capacity
            zero_quantity: the quantity of class-2 is zero; request at least one quantum
        absurd capacity
            quantity_too_large: no node can hold that much of class-2; at most 281474976710656 quanta can be requested
        a device and a half
            not_whole_devices: more than one device of class-0 can be requested only as whole devices: a multiple of 7 quanta
        a ttl of zero
            zero_ttl: the TTL is zero; give a positive duration
        a ttl beyond the limit
            ttl_too_long: the TTL is longer than the 1d allowed here
        the longest ttl there is
            ttl_too_long: the TTL is longer than the 1d allowed here
        a priority above the tenant's
            priority_above_max: the highest priority that the tenant may request is standard
        sensitive work of nobody
            sensitive_needs_user: sensitive work must name its user
        sensitive work without a claim
            sensitive_needs_claim: sensitive work runs only on nodes that its user has claimed
        labels that no node has
            impossible_labels: no node that the request may use has all of these labels; remove some, or label a node
        weights that do not add up
            bad_weights: the weights add up to 1.001, not to one; give four weights that add up to one
        a half-life of no length
            setting_out_of_range: heat_half_life must be between 1s and 7d
        renewing after expiry
            lease_expired: lease-0 expired at 1970-01-01T00:01:40Z; request a new lease
        renewing for no time
            zero_ttl: the TTL is zero; give a positive duration
        renewing for too long
            ttl_too_long: the TTL is longer than the 1d allowed here
        releasing twice
            lease_released: lease-0 was released at 1970-01-01T00:00:01Z
        releasing twice, torn down
            lease_released: lease-0 was released at 1970-01-01T00:00:01Z
        renewing what was revoked
            lease_revoked: lease-0 was revoked and ended at 1970-01-01T00:00:01Z
        renewing what is being revoked
            lease_revoking: lease-0 is being revoked; it can be released, not renewed or revoked again
        releasing what is fenced
            lease_fenced: lease-0 is fenced; only an operator can clear it
        releasing what was fenced
            lease_closed: lease-0 ended at 1970-01-01T00:00:01Z; it was fenced and an operator has cleared it
        ready without a revocation
            lease_not_revoking: lease-0 is not being revoked, so its holder cannot report that it is ready
        confirming what is held
            lease_not_tearing_down: lease-0 is not being torn down
        clearing what is not fenced
            lease_not_fenced: lease-0 is not fenced
        confirming another node's
            lease_elsewhere: lease-0 is not on node-1
        past the lifetime
            lifetime_reached: lease-0 reaches its maximum lifetime at 1970-01-01T00:00:50Z; request a new lease
        past the burst
            burst_over: lease-0 cannot be renewed past 1970-01-01T00:00:21Z while quota-0 is over its base limit
        no lease at all
            no_leases: the command names no lease
        1025 leases
            too_many_leases: the command names 1025 leases; at most 1024 are allowed
        a lease twice
            duplicate_lease: lease-0 is named twice
        a grace of eight days
            grace_too_long: the grace period is longer than 7d
        a report of nothing
            bad_activity: the report on lease-0 covers no time
        no report
            bad_activity: the report on lease-0 covers no time
        a taken name
            name_taken: that name is taken; choose another
        deleting a tenant that holds something
            tenant_has_leases: tenant-0 still has live leases; release or revoke them first
        deleting a project that holds something
            project_has_leases: project-0 still has live leases; release or revoke them first
        deleting a node that holds something
            node_has_leases: node-0 still has live leases; drain it and wait, or revoke them
        moving a node that holds something
            node_has_leases: node-0 still has live leases; drain it and wait, or revoke them
        deleting a pool with nodes
            pool_has_nodes: pool-0 still has nodes; move or delete them first
        a node smaller than what it has leased
            node_smaller_than_leased: 5 quanta of class-2 are in use on the node; its capacity cannot become 4
        a node without what it has leased
            node_smaller_than_leased: 5 quanta of class-2 are in use on the node; its capacity cannot become 0
        sixty-five devices
            too_many_devices: a node has at most 64 devices of class-0
        sixty-five classes
            too_many_node_classes: a node has at most 64 classes
        a node with zero of a class
            zero_quantity: the quantity of class-2 is zero; request at least one quantum
        a node with half a device
            not_whole_devices: more than one device of class-0 can be requested only as whole devices: a multiple of 7 quanta
        a node with a class twice
            duplicate_class: class-2 is requested twice; add up the two amounts
        a node of absurd size
            quantity_too_large: no node can hold that much of class-2; at most 281474976710656 quanta can be requested
        sixty-five labels
            too_many_labels: a node has at most 64 labels
        a label twice
            duplicate_label: a label key is given twice
        another quantum for a class in use
            class_in_use: class-2 is on a node or was leased; its kind, tier and quanta_per_unit cannot change
        no quanta to a unit
            bad_class: quanta_per_unit is 0; it must be 1 to 4294967296
        too many quanta to a unit
            bad_class: quanta_per_unit is 4294967297; it must be 1 to 4294967296
        1025 classes
            too_many_resource_classes: there are at most 1024 classes
        resuming what was not drained
            node_already: node-0 is already in service
        a second agent
            agent_already_running: another agent is registered on node-0, as generation 1; stop it, or take over from it
        a replaced agent
            stale_generation: generation 1 is no longer the agent of node-0: generation 2 is registered; register again
        an agent of a node without one
            stale_generation: generation 1 is no longer the agent of node-0: no agent is registered; register again
        no change
            condition_unchanged: node-0 already has this condition; report changes only
        detaching nobody
            node_already: node-0 is already without an agent
        a node seen in the future
            last_seen_in_future: a node cannot have been last seen in the future
        257 quotas
            too_many_quotas: a tenant has at most 256 quotas
        a burst ceiling below its base
            burst_below_base: the burst limit 9 is below the base limit 10; it is a total, not an addition to the base limit
        a burst of no length
            zero_burst_ttl: burst_ttl is zero; give a positive duration
        quanta of no class
            quanta_need_class: a quota on quanta must name a class or a kind, because quanta of different kinds do not add up
        a burst on each node
            burst_per_node: a burst quota counts all nodes together or one node; it cannot count each node separately
        nodes counted on each node
            nodes_per_node: a quota on nodes counts all nodes together; it cannot count each node separately
        a quota of no tenant
            unknown_tenant: there is no tenant-99
        a quota of another tenant's project
            unknown_project: there is no project-99 of this tenant
        a quota moved elsewhere
            scope_fixed: the scope and the measure of quota-0 cannot change; delete it and create another
        a setting of nothing
            setting_out_of_range: teardown_deadline must be between 1ns and 7d
        a setting of too much
            setting_out_of_range: ttl_max must be between 1ns and 366d
        a default grace of too much
            grace_too_long: the grace period is longer than 7d
        a pool's ttl of nothing
            setting_out_of_range: ttl_max must be between 1ns and 366d
        a pool's grace of too much
            grace_too_long: the grace period is longer than 7d
        a project moved to another tenant
            tenant_fixed: projects and users cannot move to another tenant
        a user moved to another tenant
            tenant_fixed: projects and users cannot move to another tenant
        an operator confined to a tenant
            bad_token_scope: a token for the role operator must have an empty scope
        an admin of no tenant
            bad_token_scope: a token for the role tenant_admin needs a tenant
        an admin of a project
            bad_token_scope: a token for the role tenant_admin may be limited to a tenant and a user, nothing else
        a member of no project
            bad_token_scope: a token for the role project_member needs a tenant and a project
        a member of a node
            bad_token_scope: a token for the role project_member may be limited to a tenant, a project and a user, nothing else
        an agent of no node
            bad_token_scope: a token for the role node_agent needs a node
        an agent of a tenant
            bad_token_scope: a token for the role node_agent may be limited to a node, nothing else
        an operator of no app
            bad_token_scope: a token for the role app_operator needs a tenant and at least one app instance
        an app operator of a project
            bad_token_scope: a token for the role app_operator may be limited to a tenant and app instances, nothing else
        an app instance twice
            bad_token_scope: a token for the role app_operator must not name an app instance twice
        65 app instances
            bad_token_scope: a token for the role app_operator may name at most 64 app instances
        billing of a project
            bad_token_scope: a token for the role billing_authority may be limited to a tenant, nothing else
        a tenant that makes operators
            bad_token_scope: a token for the role operator can be issued and revoked only by an operator
        a tenant that makes another's admins
            bad_token_scope: a token for the role tenant_admin must be limited to the tenant that issues it
        a token of no tenant
            unknown_tenant: there is no tenant-99
        a token of another tenant's project
            unknown_project: there is no project-1 of this tenant
        a token of another tenant's user
            unknown_user: there is no user-1 of this tenant
        a token of no node
            unknown_node: there is no node-99
        a token that has expired already
            token_expiry_past: the expiry of the token is not after the current time, 1970-01-01T00:00:10Z
        a token twice
            token_exists: a token with that hash exists; generate a new secret
        another tenant's token
            unknown_token: there is no token-0
        a tenant's token that is the operator's
            bad_token_scope: a token for the role billing_authority can be issued and revoked only by an operator
        an update of another tenant
            unknown_tenant: there is no tenant-1
        an update to a taken name
            name_taken: that name is taken; choose another
        the key in use
            same_key: the new key is already the current key
        a rate card that never was
            unknown_rate_card: there is no rate card 7
        a charge policy that never was
            unknown_charge_policy: there is no charge policy 7
        a price that is too high
            bad_prices: invalid prices: kinds.gpu is above 1000000
        a factor that is too high
            bad_prices: invalid prices: tiers.h100 is above 1000
        a price of no class
            unknown_class: there is no class-99
        prices of no pool
            unknown_pool: there is no pool-99
        a card from yesterday
            start_in_past: it would take effect in the past, but past usage is never rated again; the current time is 1970-01-01T00:00:10Z
        two cards at once
            same_start: rate card 0 takes effect at the same instant; replace it, or choose another instant
        two policies at once
            same_start: charge policy 0 takes effect at the same instant; replace it, or choose another instant
        a card in force, changed
            rate_card_in_force: rate card 0 took effect at 1970-01-01T00:00:01Z; it cannot be changed or deleted, only replaced by a new one
        a card in force, deleted
            rate_card_in_force: rate card 0 took effect at 1970-01-01T00:00:01Z; it cannot be changed or deleted, only replaced by a new one
        a policy in force, changed
            charge_policy_in_force: charge policy 0 took effect at 1970-01-01T00:00:01Z; it cannot be changed, only replaced by a new one
        a charge without the last nothing
            setting_out_of_range: preempted must be between 1ns and 366d
        65 cards that wait
            too_many_cards_waiting: 64 of these have not taken effect yet, which is the limit; replace one of them
        an allocation that never was
            allocation_not_found: there is no alloc-9999 here
        an allocation of another tenant
            allocation_not_found: there is no alloc-16 here
        an allocation of another project
            allocation_not_found: there is no alloc-16 here
        an allocation that is over
            allocation_over: alloc-16 is over: completed at 1970-01-01T00:00:02Z
        a checkpoint of what waits
            allocation_not_running: alloc-16 is pending; this is possible only while it is running
        the start of what runs
            allocation_not_staging: alloc-16 is running, not staging, so it cannot start running
        a checkpoint longer than the work
            checkpoint_too_long: alloc-16 has run for 9s; a checkpoint cannot have taken longer
        an exit status of no process
            bad_exit_status: an exit status must be between 0 and 255
        one lease of a gang
            lease_of_allocation: lease-1 belongs to alloc-16; complete or cancel the allocation instead
        no replicas
            no_replicas: an allocation needs at least one replica
        1025 replicas
            gang_too_many_leases: the gang would have 1025 leases; an allocation can have at most 1024
        a gang larger than the cluster
            gang_too_large: the allocation has 3 replicas, but the nodes that it may use could hold only 2, even if they were empty
        labels that no node has
            impossible_labels: no node that the request may use has all of these labels; remove some, or label a node
        17 labels
            too_many_labels: a node has at most 16 labels
        together on a node and apart by rack
            contradictory_affinity: `together` and `apart` contradict each other; remove one of them, or widen `together`
        a walltime that no pool allows
            walltime_too_long: the walltime is longer than the maximum lifetime in every pool that the allocation may use
        a walltime of zero
            zero_ttl: the TTL is zero; give a positive duration
        a walltime longer than anything may be
            walltime_too_long: the walltime is longer than the maximum lifetime in every pool that the allocation may use
        one that a burst never lets start
            walltime_beyond_burst: it exceeds the base limit of quota-0 all by itself, and its walltime is longer than a burst lasts; request less, or a shorter walltime
        one too many that wait
            too_many_pending: the tenant already has 1 waiting allocations, which is its limit; wait until some have started, or cancel some
        a tenant whose work waits
            tenant_has_allocations: tenant-2 still has allocations; complete or cancel them first
        a project whose work waits
            project_has_allocations: project-3 still has allocations; complete or cancel them first
        a quota on allocations of a class
            allocations_scope: a quota on allocations can be limited to a project or a priority, but not to a class, a pool or a node
        a budget of nothing
            bad_budget: gpu_hours_budget must be between 1 and 1000000000000
        a budget over more than a year
            bad_budget: budget_period_days must be between 1 and 366
        a share of more than all
            bad_budget: fair_share_target must be between 1 and 1000
        another tenant's project, by number
            unknown_project: there is no project-1 of this tenant
        another tenant's user, by number
            unknown_user: there is no user-1 of this tenant
        another tenant's quota, by number
            unknown_quota: there is no quota-0
        deleting another tenant
            unknown_tenant: there is no tenant-1
        deleting another tenant's project
            unknown_project: there is no project-1 of this tenant
        deleting another tenant's user
            unknown_user: there is no user-1 of this tenant
        deleting another tenant's quota
            unknown_quota: there is no quota-0
        a project in another tenant
            unknown_tenant: there is no tenant-1
        a ceiling of nothing
            bad_ceiling: a ceiling must be above zero and at most 1000000000000000
        a ceiling beyond all measure
            bad_ceiling: a ceiling must be above zero and at most 1000000000000000
        a ceiling on another tenant
            unknown_project: there is no project-1 of this tenant
        a ceiling in another currency
            currency_fixed: the ceiling and the amount spent under it are in EUR; delete it and create another
        deleting a ceiling that is not there
            unknown_ceiling: project-0 has no such cost ceiling
        1001 ceilings
            too_many_ceilings: a tenant has at most 1000 cost ceilings
        a renewal beyond the ceiling
            ceiling_exceeded: renewing lease-0 would cost 39.1 EUR more; the cost ceiling of project-0 is 0.5 EUR, and 0.99 EUR are already spent or reserved
        a user in another tenant
            unknown_tenant: there is no tenant-1
        a quota for another tenant
            unknown_tenant: there is no tenant-1
        another tenant's name
            unknown_tenant: there is no tenant-1
        a claim on nothing
            no_nodes: the command names no node
        a claim on a node twice
            duplicate_node: node-1 is named twice
        a claim on what another has claimed
            node_claimed: node-1 is already claimed, and claims are not queued; claim another node
        a claim on a node that is lost
            node_not_ready: node-1 is lost; claim another node, or wait until it is ready
        a claim on a node that runs others' work
            node_in_use: node-0 runs other work or has capacity reserved; drain it first, or claim an empty node
        the release of another tenant's node
            node_not_claimed: node-1 is not claimed by the caller
        the release of two users' nodes at once
            claims_differ: the nodes are claimed by different users or projects; release them one holder at a time
        a claim beyond the sensitive pool
            sensitive_pool_full: the system would exceed sensitive_pool_size (used 0, requested 1, limit 0)
        a claim beyond max_nodes
            claim_over_quota: tenant-0 would exceed quota-0 (used 1, requested 1, limit 1)
        the wipe of a node that was not released
            node_not_wiping: node-1 is not being wiped
        clearing a node that is not quarantined
            node_not_quarantined: node-1 is not quarantined
        deleting a claimed node
            node_in_custody: node-1 is claimed; until that ends, its pool and capacity cannot change and it cannot be deleted
        deleting a tenant with claims
            tenant_has_claims: tenant-1 still has claimed nodes; release them first
        deleting a project with claims
            project_has_claims: project-1 still pays for claimed nodes; release them first
        deleting a user with claims
            user_has_claims: user-1 still has claimed nodes; release them first
        a claim on too many
            too_many_nodes: the command names 257 nodes; at most 256 are allowed
    "#]]
    .assert_eq(&told);
}
