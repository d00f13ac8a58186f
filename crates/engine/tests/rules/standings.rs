//! Budget factor and fair share, to the last integer (SEMANTICS 4).

use crate::support::{STAGE, Story};
use leasehold_engine::Standing;
use leasehold_model::{Instant, Span, TenantNo};

const MINUTE: u64 = 60;

/// One GPU from the beginning on, against a budget of one GPU hour; how the tenant stands after so many minutes.
fn after(story: &str, minutes: u64) -> Standing {
    let mut told = Story::on(STAGE);
    told.play(story);
    let state = told.world.state();
    state.standing(TenantNo(0), state.last_stamp().saturating_add(Span::from_secs(minutes * MINUTE)))
}

const HOUR_LONG: &str = "
    0 op update a gpuh=1
    0 a grant gpu 1 ttl=10h node=n1
";

#[test]
fn the_factor_falls_from_four_fifths_to_six_fifths() {
    let factor = |minutes| after(HOUR_LONG, minutes).factor;
    let full = 1 << 20;
    assert_eq!([factor(0), factor(47), factor(48)], [full; 3]);
    assert!(factor(49) < full && factor(50) < factor(49));
    // Half-way: 1 − 0.95 ÷ 2.
    assert!(factor(60).abs_diff(full * 525 / 1000) < 8, "{}", factor(60));
    assert_eq!([factor(72), factor(73), factor(600)], [full / 20; 3]);
}

#[test]
fn a_burst_allowance_widens_the_budget_and_the_worse_of_two_counts() {
    let factor = |story: &str, minutes| after(story, minutes).factor;
    let wider = "
        0 op update a gpuh=1 allowance=1
        0 a grant gpu 1 ttl=10h node=n1
    ";
    assert_eq!(factor(wider, 96), 1 << 20);
    assert!(factor(wider, 97) < 1 << 20);
    let nodes = "
        0 op update a gpuh=100 nodeh=1
        0 a grant gpu 1 ttl=10h node=n1
        0 a grant core 5 ttl=10h node=n1
    ";
    assert_eq!(factor(nodes, 48), 1 << 20);
    assert_eq!(factor(nodes, 72), (1 << 20) / 20);
}

#[test]
fn standings_are_taken_at_the_whole_minute_and_shares_are_of_all_gpu_time() {
    let shared = "
        0 op update a share=250
        0 a grant gpu 1 ttl=10h node=n1
        0 b grant gpu 1 ttl=10h node=n1
    ";
    let quarter = i64::from(1 << 20) / 4;
    assert_eq!(after(shared, 0).deficit, quarter);
    assert_eq!(after(shared, 1).deficit, -quarter);
    let mut told = Story::on(STAGE);
    told.play(shared);
    let state = told.world.state();
    let just_before = Instant(state.last_stamp().0 + MINUTE * 1_000_000_000 - 1);
    assert_eq!(state.standing(TenantNo(0), just_before).deficit, quarter);
}
