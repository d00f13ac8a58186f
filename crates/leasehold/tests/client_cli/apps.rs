//! `leasehold unit …`, `app …`, `app-instance …` and `attachment …`, against a real daemon.

use super::{Daemon, refuses, tells};
use serde_json::json;

#[test]
fn runtimes_are_registered_lent_to_and_deleted() {
    let daemon = Daemon::with_cluster();
    daemon.run("unit create images --measure count").ok();
    refuses(&daemon.run("unit create images --measure count"), 1, "name_taken");
    refuses(&daemon.run("unit create x --measure length"), 2, "usage");
    tells(&daemon.run("unit price images 0.5").ok(), &["images", "0.5 EUR", "all that have no price of their own"]);
    refuses(&daemon.run("unit price imges 0.5"), 1, "unknown_usage_unit");
    tells(&daemon.run("unit list").ok(), &["job_hours", "time", "images", "count"]);
    tells(&daemon.run("unit prices").ok(), &["images", "0.5", "in force"]);
    tells(&daemon.run("app create slurm --origin third-party --unit images").ok(), &["slurm", "third_party", "images"]);
    refuses(&daemon.run("app set slurm"), 2, "usage");
    tells(&daemon.run("app set slurm --origin internal").ok(), &["internal", "images"]);
    tells(&daemon.run("app list").ok(), &["slurm", "internal"]);
    let of = "--project lattice --tenant physics --app slurm --backend slurm";
    let private = daemon.run(&format!("app-instance create slurm-dev {of}")).ok();
    tells(&private, &["slurm-dev", "tenant_dedicated", "of the project"]);
    daemon.run(&format!("app-instance create slurm-shared {of} --scope tenant")).ok();
    refuses(&daemon.run(&format!("app-instance create other {of} --scope platform")), 1, "bad_mode_and_scope");
    tells(&daemon.run("app-instance list --tenant physics").ok(), &["slurm-dev", "slurm-shared", "tenant"]);
    tells(&daemon.run("app-instance set slurm-dev --name slurm-test --tenant physics").ok(), &["slurm-test"]);
    refuses(&daemon.run("app-instance show slurm-dev --tenant physics"), 1, "unknown_app_instance");

    daemon.run("project create plasma --tenant physics").ok();
    let lend = "--project plasma --tenant physics";
    refuses(&daemon.run(&format!("attachment make slurm-test {lend}")), 1, "app_not_shared");
    let made = daemon.run(&format!("attachment make slurm-shared {lend}")).ok();
    tells(&made, &["slurm-shared", "held by", "lattice", "paid by", "plasma"]);
    tells(&daemon.run("attachment list").ok(), &["slurm-shared", "lattice", "plasma"]);
    let submit = "alloc submit --gpu 1 --walltime 10m --project lattice --tenant physics --attachment 0";
    refuses(&daemon.run(submit), 2, "usage");
    daemon.run(&format!("{submit} --app-instance slurm-shared")).ok();
    let allocation = &daemon.json("alloc list")["allocations"][0];
    assert_eq!((&allocation["source_project"], &allocation["attachment"]), (&json!("plasma"), &json!(0)));
    let usage = daemon.json("usage --by project,app_instance --from 1h");
    assert_eq!(
        (&usage["lines"][0]["project"], &usage["lines"][0]["app_instance"]),
        (&json!("plasma"), &json!("slurm-shared"))
    );
    refuses(&daemon.run("project delete plasma --tenant physics"), 1, "project_has_leases");
    refuses(&daemon.run("app-instance delete slurm-shared --tenant physics"), 1, "app_instance_in_use");
    assert_eq!(daemon.run("attachment end attachment-0").ok().out, "attachment attachment-0 has ended\n");
    refuses(&daemon.run("attachment show 0"), 1, "unknown_attachment");
    refuses(&daemon.run("attachment show zero"), 1, "unknown_attachment");
    tells(&daemon.run("app-instance delete slurm-test --tenant physics").ok(), &["was deleted"]);
}
