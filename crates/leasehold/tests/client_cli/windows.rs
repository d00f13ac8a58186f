//! `leasehold node reserve`, `node windows` and `node unreserve`, against a real daemon.

use super::{Daemon, refuses, tells};

#[test]
fn a_rack_is_reserved_listed_and_given_back() {
    let daemon = Daemon::with_cluster();
    daemon.run("lease request --gpu 1 --ttl 4h --tenant physics --project lattice").ok();
    refuses(&daemon.run("node reserve --until 2h"), 2, "usage");
    refuses(&daemon.run("node reserve --rack nowhere --until 2h"), 1, "no_nodes");
    let made = daemon.run("node reserve --rack r7 --from 1h --until 2h --reason firmware").ok();
    tells(&made, &["maintenance window 0: 1 node from", "the holder of 1 lease was told"]);
    tells(&daemon.run("node windows").ok(), &["planned", "gpu-1", "firmware"]);
    let capped = daemon.run("lease request --gpu 1 --ttl 4h --tenant physics --project lattice").ok();
    tells(&capped, &["shortened by", "maintenance window 0"]);
    tells(&daemon.run("node show gpu-1").ok(), &["maintenance", "firmware"]);
    let gone = daemon.run("node unreserve 0").ok();
    assert_eq!(gone.out, "maintenance window 0 was cancelled\n");
    refuses(&daemon.run("node unreserve 0"), 1, "unknown_window");
    // One that begins at once drains the node.
    daemon.run("node reserve gpu-1 --until 2h").ok();
    tells(&daemon.run("node windows").ok(), &["begun"]);
    tells(&daemon.run("node list").ok(), &["drained"]);
    tells(&daemon.run("node explain gpu-1").ok(), &["reserved for maintenance"]);
}
