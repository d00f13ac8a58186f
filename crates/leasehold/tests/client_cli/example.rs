//! The example program of `leasehold-client`, against a real daemon.

use super::Daemon;
use leasehold_client::{Client, Config, Secret};
use std::fs;

#[allow(dead_code, reason = "the test calls the example's function, not its main")]
#[path = "../../../client/examples/hold_a_gpu.rs"]
mod hold_a_gpu;

fn client(daemon: &Daemon) -> Client {
    let token = fs::read_to_string(daemon.path("ci.token")).expect("a token");
    Client::new(&Config::new(&daemon.url).token(Secret::new(token.trim()))).expect("a client")
}

fn active_leases(daemon: &Daemon) -> usize {
    daemon.json("lease list --state active")["leases"].as_array().expect("a list").len()
}

#[tokio::test]
async fn the_example_holds_a_gpu_while_it_works_and_releases_it() {
    let daemon = Daemon::with_cluster();
    let client = client(&daemon);
    let done = hold_a_gpu::hold_a_gpu(&client, "gpu-h100", async |node| {
        assert_eq!(node, "gpu-1");
        assert_eq!(active_leases(&daemon), 1);
    });
    assert_eq!(done.await.as_deref(), Ok("The work on gpu-1 is done, and the lease was released."));
    assert_eq!(active_leases(&daemon), 0);
}

#[tokio::test]
async fn the_example_reports_a_denial() {
    let daemon = Daemon::with_cluster();
    daemon.run("quota create --tenant physics --class gpu-h100 --hard 0").ok();
    let client = client(&daemon);
    let denied = hold_a_gpu::hold_a_gpu(&client, "gpu-h100", async |_| panic!("nothing was granted")).await;
    let message = denied.expect_err("a denial");
    assert!(message.starts_with("no lease: ") && message.ends_with("(quota_exceeded)"), "{message}");
}
