//! The examples of the document that asked for the billing of app runtimes, on the command line: from the registry to the
//! invoice and the timeline. A core costs 0.002 EUR a second and a GPU 0.01, so that two hours of them are 14.40 and 72.00.

#[path = "examples/months.rs"]
mod months;
#[path = "examples/site.rs"]
mod site;

use site::{Site, row};

const STORY: &str = "7a0e1c52-90fd-4a51-8f7e-0a1f5c6b2d10";

#[test]
fn slurm_of_a_project() {
    let site = Site::open(&["dev"]);
    site.instance("dev", "--backend slurm");
    site.hold("dev", "--cpu 2 --control-plane");
    site.hold("dev", "--gpu 1");
    site.pass(2);
    site.report("dev", "job_hours", "2", "");
    let (invoice, story) = site.bill("bio");
    row(&invoice, &["dev", "control plane", "core", "28.800000"]);
    row(&invoice, &["dev", "workload", "h100", "72.000000"]);
    row(&invoice, &["dev", "workload", "job_hours", "0.500000"]);
    row(&invoice, &["total", "101.300000"]);
    for event in ["usage.recorded", "ledger.posted", "invoice.issued"] {
        row(&story, &[event]);
    }
}

/// The controller is shared by what was used: `c`, which lends nothing, used one GPU-hour and `a` two. The GPU that `a`
/// lends (72.00) stays with `a`, and the two that `b` lends (144.00) with `b`, which used nothing.
#[test]
fn slurm_that_a_tenant_shares() {
    let site = Site::open(&["hpc", "a", "b", "c"]);
    site.instance("hpc", "--backend slurm --scope tenant");
    site.hold("hpc", "--cpu 2 --control-plane");
    let lend = |project: &str, gpus: u32| {
        let lent =
            site.json(&format!("attachment make rt --project {project} --tenant bio"))["attachment"]["id"].to_string();
        let submit = format!(
            "alloc submit --gpu {gpus} --ttl 2h --tenant bio --project hpc --app-instance rt --attachment {lent}"
        );
        let held = site.json(&submit)["id"].as_str().expect("an allocation").to_owned();
        (lent, held)
    };
    let (lent, held) = lend("a", 1);
    lend("b", 2);
    site.run("sharing set app --tenant bio --app-instance rt --method by-usage --unit gpu_hours");
    site.pass(2);
    let worker = format!("--attachment {lent} --allocation {held}");
    row(&site.report("c", "gpu_hours", "1", &worker), &["reported"]);
    site.report("a", "gpu_hours", "2", &worker);
    let draft = site.run("sharing shares");
    row(&draft, &["draft"]);
    let (invoice, story) = site.bill("bio");
    row(&invoice, &["hpc", "control plane", "core", "28.800000"]);
    row(&invoice, &["hpc", "share", "rt", "-28.800000"]);
    row(&invoice, &["a", "share", "19.200000"]);
    row(&invoice, &["c", "share", "9.600000"]);
    row(&invoice, &["a", "workload", "h100", "rt, held by hpc", "72.000000"]);
    row(&invoice, &["b", "workload", "h100", "rt, held by hpc", "144.000000"]);
    row(&invoice, &["total", "244.800000"]);
    row(&story, &["usage.recorded"]);
    row(&site.run("ledger balances --account shared_runtime"), &["rt", "0.000000"]);
    let shares = site.json("sharing shares --month 2026-01");
    let entry = shares["shares"][2]["entry"].as_str().expect("an entry").to_owned();
    row(&site.run(&format!("ledger explain {entry}")), &["28.800000 EUR × 1 / 3", "9.600000"]);
}

/// The policy bills GPU-hours: `c` pays 10 × 0.50 for the GPU that `a` lends, and `a` gets it back.
#[test]
fn work_on_a_shared_slurm_is_charged() {
    let site = Site::open(&["hpc", "a", "c"]);
    site.instance("hpc", "--backend slurm --scope tenant");
    let lent = site.json("attachment make rt --project a --tenant bio")["attachment"]["id"].to_string();
    let submit =
        format!("alloc submit --gpu 1 --ttl 2h --tenant bio --project hpc --app-instance rt --attachment {lent}");
    let held = site.json(&submit)["id"].as_str().expect("an allocation").to_owned();
    site.run("policy set app --tenant bio --app-instance rt --billed-work gpu_hours");
    site.pass(2);
    let worker = format!("--attachment {lent} --allocation {held}");
    row(&site.report("c", "gpu_hours", "10", &worker), &["billed"]);
    let costs = site.json("cost --by project --tenant bio --from 2026-01-31T21:00:00Z");
    assert_eq!(costs["total_credited"][0]["amount"], "5.000000", "{costs}");
    let (invoice, story) = site.bill("bio");
    row(&invoice, &["a", "workload", "h100", "72.000000"]);
    row(&invoice, &["a", "gpu_hours", "-10", "-5.000000"]);
    row(&invoice, &["c", "gpu_hours", "5.000000"]);
    row(&invoice, &["total", "72.000000"]);
    row(&story, &["invoice.issued"]);
}

#[test]
fn private_model_serving() {
    let site = Site::open(&["chat"]);
    site.instance("chat", "--backend serving");
    site.hold("chat", "--gpu 1");
    site.pass(2);
    site.report("chat", "uptime_hours", "1", "");
    site.report("chat", "requests", "1000", "");
    let (invoice, story) = site.bill("bio");
    row(&invoice, &["chat", "h100", "72.000000"]);
    row(&invoice, &["chat", "uptime_hours", "1.000000"]);
    row(&invoice, &["chat", "requests", "5.000000"]);
    row(&invoice, &["total", "78.000000"]);
    row(&story, &["invoice.issued"]);
}

/// The overhead (57.60) is divided by service tiers: three parts for `chat` (gold), one for `map` of another tenant.
#[test]
fn platform_managed_inference() {
    let site = Site::open(&["ops", "chat"]);
    site.all(&["tenant create geo", "project create map --tenant geo"]);
    site.instance("ops", "--backend serving --mode platform-managed");
    site.hold("ops", "--cpu 4 --control-plane");
    site.run(
        "sharing set app --tenant bio --app-instance rt --method by-tier --tier gold=3 --tier bronze=1 \
         --project-tier bio/chat=gold --default-tier bronze",
    );
    site.pass(2);
    site.report("chat", "requests", "1000", "");
    site.run(&format!(
        "usage-record report rt --id m1 --tenant geo --project map --unit requests --quantity 200 \
         --from 2026-01-31T21:30:00Z --to 2026-01-31T22:30:00Z --correlation {STORY}"
    ));
    let (invoice, story) = site.bill("bio");
    row(&invoice, &["chat", "requests", "5.000000"]);
    row(&invoice, &["chat", "share", "43.200000"]);
    row(&invoice, &["ops", "control plane", "57.600000"]);
    row(&invoice, &["ops", "share", "-57.600000"]);
    row(&invoice, &["total", "48.200000"]);
    let (invoice, _) = site.bill("geo");
    row(&invoice, &["map", "requests", "1.000000"]);
    row(&invoice, &["map", "share", "14.400000"]);
    row(&invoice, &["total", "15.400000"]);
    row(&story, &["invoice.issued"]);
}

/// The overhead (57.60) is divided by quota: `chat` may make 2000 requests in a month and `map` of another tenant 1000.
#[test]
fn platform_overhead_by_quota() {
    let site = Site::open(&["ops", "chat"]);
    site.all(&["tenant create geo", "project create map --tenant geo"]);
    site.instance("ops", "--backend serving --mode platform-managed");
    site.hold("ops", "--cpu 4 --control-plane");
    site.run("entitlement set requests --project chat --tenant bio --hard 2000");
    site.run("entitlement set requests --project map --tenant geo --hard 1000");
    site.run("sharing set app --tenant bio --app-instance rt --method by-quota --unit requests");
    site.pass(2);
    site.report("chat", "requests", "200", "");
    let (invoice, _) = site.bill("bio");
    row(&invoice, &["chat", "requests", "1.000000"]);
    row(&invoice, &["chat", "share", "38.400000"]);
    row(&invoice, &["ops", "share", "-57.600000"]);
    row(&invoice, &["total", "39.400000"]);
    let (invoice, _) = site.bill("geo");
    row(&invoice, &["map", "share", "19.200000"]);
    row(&invoice, &["total", "19.200000"]);
    let shares = site.json("sharing shares --month 2026-01");
    let of_map = shares["shares"].as_array().expect("shares").iter().find(|one| one["project"] == "map");
    let entry = of_map.expect("a share")["entry"].as_str().expect("an entry").to_owned();
    row(&site.run(&format!("ledger explain {entry}")), &["57.600000 EUR × 1000 / 3000", "19.200000"]);
}

#[test]
fn the_head_of_a_ray_cluster_and_its_workers() {
    let site = Site::open(&["train"]);
    site.instance("train", "--backend ray");
    site.hold("train", "--cpu 4 --control-plane");
    site.hold("train", "--gpu 2");
    site.pass(2);
    site.report("train", "uptime_hours", "1", "--control-plane");
    site.report("train", "gpu_hours", "3", "");
    let (invoice, story) = site.bill("bio");
    row(&invoice, &["train", "control plane", "core", "57.600000"]);
    row(&invoice, &["train", "control plane", "uptime_hours", "1.000000"]);
    row(&invoice, &["train", "workload", "h100", "144.000000"]);
    row(&invoice, &["train", "workload", "gpu_hours", "1.500000"]);
    row(&invoice, &["total", "204.100000"]);
    row(&story, &["invoice.issued"]);
}
