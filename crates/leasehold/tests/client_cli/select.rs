//! Commands for several nodes or leases: preview, `--yes`, exact counts, one record for each.

use super::{Daemon, granted, tells};

fn with_racks() -> Daemon {
    let daemon = Daemon::with_cluster();
    for (node, rack, zone) in [("gpu-2", "r7", "z1"), ("gpu-3", "r8", "z1"), ("gpu-4", "r7", "z2")] {
        let place = format!("--rack {rack} --zone {zone} --label driver=570");
        let line = format!("node create {node} --pool training {place} --class gpu-h100=4 --teardown immediate");
        daemon.run(&line).ok();
    }
    daemon
}

fn records(daemon: &Daemon, kind: &str) -> usize {
    daemon.run(&format!("audit export --kind {kind}")).ok().out.lines().count()
}

#[test]
fn a_rack_is_drained_and_resumed() {
    let daemon = with_racks();
    let preview = daemon.run("node drain --rack r7").ok();
    tells(&preview, &["gpu-1", "gpu-2", "gpu-4"]);
    assert!(
        !preview.out.contains("gpu-3") && preview.err.contains("3 nodes would be drained; add --yes"),
        "{preview:?}"
    );
    assert_eq!(records(&daemon, "node.drained"), 0, "a preview changes nothing");
    let shown = daemon.json("node drain --rack r7 --zone z1");
    assert_eq!((&shown["preview"], &shown["selected"][0]), (&true.into(), &"gpu-2".into()));

    daemon.run("node drain gpu-2").ok();
    let drained = daemon.run("node drain --rack r7 --reason power --yes").ok();
    tells(&drained, &["gpu-1 drained (record ", "gpu-4 drained (record "]);
    assert!(drained.err.contains("2 nodes selected: 2 drained\n"), "those that are drained are left out: {drained:?}");
    assert_eq!(records(&daemon, "node.drained"), 3, "one record for each node");
    let records = daemon.run("audit export --kind node.drained").ok().out;
    assert_eq!(records.matches(r#""operator_reason":"power""#).count(), 2, "{records}");
    tells(&daemon.run("node show gpu-4").ok(), &["drained because", "power"]);
    assert_eq!(daemon.json("node show gpu-2")["drain_reason"], serde_json::Value::Null);
    let none = daemon.run("node drain --rack r7 --yes").ok();
    assert!(none.out.is_empty() && none.err.contains("nothing found"), "{none:?}");

    let resumed = daemon.json("node resume --state drained --label driver=570 --yes");
    assert_eq!((&resumed["selected"], &resumed["changed"], &resumed["failed"]), (&2.into(), &2.into(), &0.into()));
    tells(&daemon.run("node resume gpu-1 gpu-3"), &["gpu-1 resumed"]);
    // What is misspelt is reported, and the rest is done.
    let partly = daemon.run("node drain gpu-1 gpu-9 gpu-3");
    assert!(partly.code == 1 && partly.err.contains("partly_failed"), "{partly:?}");
    assert!(partly.out.contains("gpu-1 drained") && partly.out.contains("gpu-3 drained"), "{partly:?}");
    assert!(partly.err.contains("3 nodes selected: 2 drained, 1 failed"), "{partly:?}");
    for line in ["node drain", "node drain gpu-1 --rack r7", "lease revoke", "lease revoke lease-1 --tenant physics"] {
        assert_eq!(daemon.run(line).code, 2, "{line}");
    }
}

#[test]
fn the_leases_of_a_tenant_are_revoked() {
    let daemon = with_racks();
    let first = granted(daemon.by("ci.token", "lease request --gpu 1 --mem 1GiB --ttl 10m --node gpu-1 --json"));
    granted(daemon.by("ci.token", "lease request --gpu 1 --ttl 10m --node gpu-3 --json"));
    let preview = daemon.run("lease revoke --tenant physics --rack r7 --grace 0s").ok();
    tells(&preview, &[&first, "gpu-1"]);
    assert!(!preview.out.contains("gpu-3") && preview.err.contains("2 leases would be revoked"), "{preview:?}");
    assert_eq!(records(&daemon, "lease.revoked"), 0);
    // Both leases of the gang, by one record.
    let revoked = daemon.json("lease revoke --tenant physics --project lattice --rack r7 --grace 0s --yes");
    assert_eq!((&revoked["selected"], &revoked["changed"]), (&2.into(), &2.into()), "{revoked}");
    assert_eq!(records(&daemon, "lease.revoked"), 1);
    let rest = daemon.run("lease revoke --node gpu-3 --grace 0s --yes").ok();
    assert!(rest.err.contains("1 lease selected: 1 revoked\n"), "{rest:?}");
    assert!(daemon.run("lease unfence --zone z1 --yes").ok().err.contains("nothing found"));
}
