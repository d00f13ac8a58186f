//! Agents: one process speaks for a node, and is known by its generation.

use crate::support::check;
use expect_test::expect;

#[test]
fn each_registration_is_a_generation() {
    check(
        "
        0 op agent n1 instance=7
        1 op agent n1 instance=7
        2 op agent n1 instance=8
        3 op agent n1 instance=8 takeover
        4 op agent n2 instance=8
        4 show agents
        5 op detach n1
        5 show agents
        6 op detach n1
        7 op agent n1 instance=9
        8 op agent n9 instance=9
        ",
        expect![[r#"
            0 - agent 7 on n1 as generation 1
            1 - agent 7 on n1 as generation 2
            2 refused: agent_already_running
            3 - agent 8 on n1 as generation 3
            4 - agent 8 on n2 as generation 1
              n1 agent instance 8 as generation 3, last 3; load normal, errors normal
              n2 agent instance 8 as generation 1, last 1; load normal, errors normal
            5 - detached n1
              n1 agent none, last 3; load normal, errors normal
              n2 agent instance 8 as generation 1, last 1; load normal, errors normal
            6 refused: node_already
            7 - agent 9 on n1 as generation 4
            8 refused: unknown_node
        "#]],
    );
}

#[test]
fn only_changes_of_condition_are_sealed_and_only_the_registered_agents() {
    check(
        "
        0 op condition n1 generation=1 load=high
        1 op agent n1 instance=7
        1 op condition n1 generation=1
        1 op condition n1 generation=1 load=high
        2 op condition n1 generation=1 load=high
        3 op condition n1 generation=1 load=high throttled
        4 op agent n1 instance=7
        5 op condition n1 generation=1
        5 op condition n1 generation=3
        5 op condition n1 generation=2 errors=critical
        5 show agents
        ",
        expect![[r#"
            0 refused: stale_generation
            1 - agent 7 on n1 as generation 1
            1 refused: condition_unchanged
            1 - n1: load high, errors normal
            2 refused: condition_unchanged
            3 - n1: load high, errors normal, throttled
            4 - agent 7 on n1 as generation 2
            5 refused: stale_generation
            5 refused: stale_generation
            5 - n1: load normal, errors critical
              n1 agent instance 7 as generation 2, last 2; load normal, errors critical
              n2 agent none, last 0; load normal, errors normal
        "#]],
    );
}

/// A process that was cut off and replaced must not free capacity that its successor is tearing down.
#[test]
fn a_predecessor_cannot_confirm_a_teardown() {
    check(
        "
        0 op agent n1 instance=7
        0 a grant gpu 1
        0 a grant gpu 1
        1 a release #0 #1
        2 op agent n1 instance=8 takeover
        3 op confirm n1 #0 generation=1
        3 op confirm n1 #0 generation=2
        4 op detach n1
        5 op confirm n1 #1 generation=2
        6 op confirm n1 #1
        ",
        expect![[r#"
            0 - agent 7 on n1 as generation 1
            0 a granted #0 gpu 7[0] on n1 to 3600
            0 a granted #1 gpu 7[1] on n1 to 3600
            1 a released #0 #1
            2 - agent 8 on n1 as generation 2
            3 refused: stale_generation
            3 a torn down #0 on n1
            4 - detached n1
            5 refused: stale_generation
            6 a torn down #1 on n1
        "#]],
    );
}

/// What the node is called or holds changes; who speaks for it does not.
#[test]
fn a_changed_node_keeps_its_agent() {
    check(
        "
        0 op agent n1 instance=7
        0 op condition n1 generation=1 load=critical
        1 op node n1 gpu 2 cpu 8 core 300
        2 op started
        2 show agents
        3 op condition n1 generation=1
        ",
        expect![[r#"
            0 - agent 7 on n1 as generation 1
            0 - n1: load critical, errors normal
            1 - node.put
            2 - journal.started
              n1 agent instance 7 as generation 1, last 1; load critical, errors normal
              n2 agent none, last 0; load normal, errors normal
            3 - n1: load normal, errors normal
        "#]],
    );
}
