//! Journals of earlier rules that this version takes over.

use crate::support::{STAGE, Story};
use expect_test::expect;
use leasehold_model::{AppInstanceNo, AttachmentNo, Body, ProjectNo, Record};

fn start(story: &mut Story, at: &str) {
    let at = story.names.read_time(at);
    story.world.started(at);
}

/// Before rules version 6 an allocation could name any source project, attachment and app instance, and its own project
/// paid. This one waits, and names a/lab.
fn waiting_since_rules_5() -> Story {
    let mut story = Story::on(STAGE);
    story.play("0 op project a/lab");
    start(&mut story, "1");
    story.play(
        "
        2 a grant core 200 node=n1 ttl=1000s
        2 a grant core 200 node=n2 ttl=1000s
        3 a submit core 5
        ",
    );
    let lab = story.world.state().project_named(leasehold_model::TenantNo(0), "lab").expect("a project");
    let of_rules_5 = |record: &mut Record| {
        if let Body::Started(started) = &mut record.body {
            started.rules_version = 5;
        } else if let Body::Granted(granted) = &mut record.body {
            granted.rules_version = 5;
        } else if let Body::AllocationSubmitted(submitted) = &mut record.body {
            submitted.spec.source_project = Some(lab);
            submitted.spec.attachment = Some(AttachmentNo(1));
            submitted.spec.app_instance = Some(AppInstanceNo(7));
        }
    };
    story.world = story.world.rewritten(of_rules_5);
    story.text.clear();
    story
}

/// It is admitted, placed and paid for by its own project, whatever becomes of the one that it names.
#[test]
fn what_waited_before_payers_counted_is_paid_by_its_own_project() {
    let mut story = waiting_since_rules_5();
    start(&mut story, "4");
    story.play(
        "
        5 op delete project a/lab
        6 a release #1
        7 op tenant c
        ",
    );
    expect![[r#"
        5 a project.deleted
        6 a released #1, closed
        7 a @1 placed, attempt 1
        7 a granted #2 core 5 on n2 to 86407
        7 c tenant.put
    "#]]
    .assert_eq(&story.text);
    let state = story.world.state();
    let lease = state.lease(leasehold_model::LeaseNo(2)).expect("it was placed");
    assert_eq!(lease.payer, ProjectNo(0));
}

/// New attachments and app instances have numbers that nothing of earlier rules names.
#[test]
fn numbers_of_earlier_records_are_not_given_again() {
    let mut story = waiting_since_rules_5();
    start(&mut story, "4");
    story.play(
        "
        5 op app slurm
        5 op instance shared b/b app=slurm scope=tenant
        5 op project b/lab
        5 op lend shared b/lab
        6 op unlend 2
        7 a release #1
        8 op tenant c
        ",
    );
    expect![[r#"
        5 - app_type.put
        5 b app_instance.put
        5 b project.put
        5 b attachment.made
        6 b attachment.ended
        7 a released #1, closed
        8 a @1 placed, attempt 1
        8 a granted #2 core 5 on n2 to 86408
        8 c tenant.put
    "#]]
    .assert_eq(&story.text);
    assert_eq!(story.world.state().app_instances_after(None).next().map(|one| one.number), Some(AppInstanceNo(8)));
}
