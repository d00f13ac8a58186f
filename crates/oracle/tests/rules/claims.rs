//! What claims count in quotas, budgets and cost ceilings (SEMANTICS 11). Node 1 has 4 GPUs of 7 quanta and 100 GiB: at
//! guaranteed priority and the default prices it costs 0.21 a second.

use crate::language::{check, play};
use leasehold_model::{QuotaNo, TenantNo};

#[test]
fn quotas_on_quanta_count_the_whole_node() {
    for (quota, expected) in [
        ("class=1 hard=27", "claim"),
        ("class=1 hard=28", "ok"),
        ("class=2 hard=102399", "claim"),
        ("class=1 soft=27", "ok"),
        ("class=1 burst=27:99:100", "claim"),
        ("class=1 burst=28:99:100", "ok"),
        ("kind=gpu hard=3", "claim"),
        ("kind=gpu hard=4", "ok"),
        ("class=1 priority=guaranteed hard=0", "claim"),
        ("class=1 priority=standard above=1 hard=0", "claim"),
        ("class=1 priority=standard hard=0", "ok"),
        ("class=1 user=1 hard=27", "claim"),
        ("class=1 user=each hard=27", "claim"),
        ("class=1 app=each hard=0", "ok"),
        ("class=1 project=3 hard=0", "ok"),
        ("class=1 node=each hard=27", "claim"),
        ("class=1 node=2 hard=0", "ok"),
        ("measure=leases hard=0", "ok"),
        ("measure=nodes class=2 hard=0", "claim"),
    ] {
        check(&format!("5 quota 1 {quota} \n 10 claim 1 user=1"), expected);
        // Earlier rules counted claims in quotas on nodes without a class only.
        check(&format!("1 started rules=3 \n 5 quota 1 {quota} \n 10 claim 1 user=1"), "ok");
    }
    // A temporary limit is the one in force.
    let base = "5 quota 1 class=1 hard=99\n6 quota 1 class=1 hard=99 until=50";
    check(&format!("{base} temporary=27 \n 10 claim 1 user=1"), "claim");
    check(&format!("{base} temporary=28 \n 10 claim 1 user=1"), "ok");
    // For each node on its own, and together otherwise.
    check("5 quota 1 class=1 node=each hard=28\n10 claim 1 2 user=1", "ok");
    check("5 quota 1 class=1 hard=41\n10 claim 1 2 user=1", "claim");
    check("5 quota 1 class=1 hard=42\n10 claim 1 2 user=1", "ok");
}

#[test]
fn sensitive_leases_add_nothing() {
    let claimed = "5 quota 1 class=1 hard=28\n5 quota 2 measure=leases hard=0\n10 claim 1 user=1\n";
    check(&format!("{claimed} 20 grant 1 1:7:1 sensitive user=1"), "ok");
    check("5 quota 1 class=1 hard=28\n10 claim 1 user=1\n20 grant 1 1:1:1 node=2", "quota");
    check(
        "5 quota 1 class=1 hard=28\n10 drain 2\n10 claim 1 user=1\n15 drain 1\n16 resume 2\n20 grant 1 1:1:1 node=2",
        "quota",
    );
    // What is fenced no longer counts.
    let fenced = "5 quota 1 class=1 hard=28\n10 claim 1 user=1\n20 grant 1 1:7:1 sensitive user=1\n
        30 release 1 user=1 \n 130 fence 1 user=1\n";
    check(&format!("{fenced} 140 grant 2 1:7:1 node=2"), "ok");
    check(&format!("{fenced} 140 grant 2 1:14:11 node=2"), "quota");
    // They need no app instance for a quota that counts by app instance.
    let by_app = "5 quota 1 class=1 app=each hard=7\n10 claim 1 user=1\n";
    check(&format!("{by_app} 20 grant 1 1:7:1 sensitive user=1"), "ok");
    check(&format!("{by_app} 20 grant 1 1:7:1 node=2"), "grant-of-invalid");
}

#[test]
fn claims_alone_are_no_burst() {
    let claimed = "10 claim 1 user=1\n20 quota 1 class=1 burst=7:42:100\n";
    let episode = |history: &str| play(history).expect("legal").summary().quotas[&QuotaNo(1)].episode;
    assert_eq!(episode(&format!("{claimed} 30 heartbeat")), None);
    assert_eq!(episode(&format!("{claimed} 30 grant 1 1:7:1 sensitive user=1 ttl=500")), None);
    let over = format!("{claimed} 30 grant 1 1:7:1 node=2 ttl=100\n");
    assert!(episode(&over).is_some_and(|episode| episode.below_since.is_none()));
    // When only claims are left, the time below the base runs.
    assert!(episode(&format!("{over} 40 release 1 closed")).is_some_and(|episode| episode.below_since.is_some()));
    check(&format!("{claimed} 30 grant 1 1:7:1 node=2 ttl=101"), "burst");
    check(&format!("{over} 40 grant 2 1:7:1 sensitive user=1 ttl=5000"), "ok");
}

#[test]
fn budgets_count_the_node_while_it_is_in_service() {
    let spent = |history: &str| {
        let line = &play(history).expect("legal").summary().standings[&TenantNo(1)];
        let seconds = |time: u128| time / (1_000_000_000 << 20);
        (seconds(line.gpu_time), seconds(line.node_time), seconds(line.all_gpu_time))
    };
    assert_eq!(spent("60 claim 1 user=1\n240 heartbeat"), (4 * 180, 180, 4 * 180));
    assert_eq!(spent("1 started rules=3\n60 claim 1 user=1\n240 heartbeat"), (0, 0, 0));
    assert_eq!(
        spent("1 started rules=3\n60 claim 1 user=1\n120 started rules=4 epoch=2\n240 heartbeat"),
        (480, 120, 480)
    );
    assert_eq!(spent("60 claim 1 user=1\n120 drain 1\n180 resume 1\n240 heartbeat"), (480, 120, 480));
    assert_eq!(spent("60 claim 1 user=1\n150 lost 1 seen=120\n180 returned 1\n240 heartbeat"), (480, 120, 480));
    assert_eq!(spent("60 claim 1 user=1\n90 lost 1 seen=30\n240 heartbeat"), (0, 0, 0));
    // Sensitive leases add nothing, and what they fence is taken off.
    let fenced = "60 claim 1 user=1\n61 grant 1 1:7:1 sensitive user=1\n80 release 1 user=1\n180 fence 1 user=1\n";
    assert_eq!(spent(&format!("{fenced} 240 heartbeat")), (4 * 120 + 3 * 60, 180, 4 * 120 + 3 * 60));
    // A loss before the fence takes effect at the fence.
    assert_eq!(spent(&format!("{fenced} 190 lost 1 seen=100\n240 heartbeat")), (480, 120, 480));
}

#[test]
fn a_hard_ceiling_demands_an_end_that_is_paid_for() {
    let until = |amount: u64, until: &str| format!("5 ceiling 1 amount={amount} \n 10 claim 1 user=1 {until}");
    check(&until(21_000_000_000, "until=110"), "ok");
    check(&until(20_999_999_999, "until=110"), "claim");
    check(&until(21_000_000_000, ""), "claim");
    check("10 claim 1 user=1 until=10", "claim");
    check("5 ceiling 1 amount=1 soft\n10 claim 1 user=1", "ok");
    check("5 ceiling 1 amount=1\n10 claim 1 user=1 project=3", "ok");
}

/// Under a ceiling of 22; the cheap node 2 is left for a lease that costs 0.01 a second.
const CEILING: &str = "5 ceiling 1 amount=22000000000\n10 claim 1 user=1 until=110\n";

#[test]
fn a_claim_is_spent_by_the_minute_and_reserved_up_to_its_end() {
    let denied = |history: &str, spent: u64, reserved: u64| {
        let requested = 22_000_000_000 - spent - reserved + 10_000_000;
        let ttl = requested / 10_000_000;
        check(
            &format!(
                "{CEILING} {history} deny 1:7 ttl={ttl} because=ceiling:{spent}:{reserved}:{requested}:22000000000"
            ),
            "ok",
        );
        // Something that costs less passes, and other figures are wrong.
        check(
            &format!(
                "{CEILING} {history} deny 1:7 ttl={ttl} because=ceiling:{spent}:0:{}:22000000000",
                requested + reserved + 1
            ),
            "denial",
        );
    };
    denied("59", 0, 21_000_000_000);
    denied("70", 10_500_000_000, 10_500_000_000);
    // Out of service it costs nothing, and what it cost before is final.
    denied("65 drain 1\n130", 11_550_000_000, 0);
    denied("65 lost 1 seen=40\n130", 6_300_000_000, 0);
    denied("65 giveback 1 user=1\n130", 11_550_000_000, 0);
    // Back in service, it counts up to its end again.
    denied("65 drain 1\n70 resume 1\n75", 11_550_000_000, 8_400_000_000);
}

#[test]
fn a_claim_may_outlast_its_end_and_its_work_is_not_refused() {
    let over = format!("{CEILING} 130 deny 1:7 ttl=1 because=ceiling:23100000000:0:10000000:22000000000");
    check(&over, "ok");
    check(&format!("{CEILING} 130 grant 1 1:7:1 sensitive user=1 ttl=100000"), "ok");
    check(&format!("{CEILING} 130 grant 1 1:7:1 node=2 ttl=1"), "quota");
}
