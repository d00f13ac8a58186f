//! The wipe of the whole node, after it was released from sensitive work.
//!
//! The daemon's answers tell whether a wipe is due. It is tried once: a failure is reported, and the node is
//! quarantined. A wipe that was interrupted, or whose result could not be reported, is repeated.

use super::config::Hook;
use super::failure::Failure;
use super::hook::{self, Runner};
use leasehold_client::Client;
use leasehold_client::api::ReportWipe;
use std::time::Duration;
use tokio::task::JoinSet;

/// The sequence of the report's record, and whether the node is clean.
type Reported = Result<(u64, bool), leasehold_client::Error>;

pub(crate) struct Wipes {
    hook: Option<(Hook, Duration)>,
    running: JoinSet<Reported>,
    /// The sequence of the last report; answers that do not include it are outdated.
    reported_at: u64,
    is_logged: bool,
}

impl Wipes {
    pub(crate) fn new(hook: Option<(Hook, Duration)>) -> Self {
        Self { hook, running: JoinSet::new(), reported_at: 0, is_logged: false }
    }

    /// Starts a wipe if one is due and none runs.
    pub(crate) fn due(&mut self, due: bool, size: u64, (client, generation): (&Client, u64), runner: &Runner) {
        if !due {
            self.is_logged = false;
            return;
        }
        if size <= self.reported_at || !self.running.is_empty() {
            return;
        }
        let Some((hook, limit)) = self.hook.clone() else {
            if !std::mem::replace(&mut self.is_logged, true) {
                let node = &runner.node;
                tracing::error!(
                    "THE NODE MUST BE WIPED, but `wipe_node` is not configured: wipe it by hand and run \
                     `leasehold node wiped {node}`, or it will be quarantined"
                );
            }
            return;
        };
        tracing::info!("the node was released; wiping it");
        let (client, runner) = (client.clone(), runner.clone());
        self.running.spawn(async move {
            let wiped: Result<(), Failure> = hook::run("wipe_node", &hook.command, limit, None, &runner).await;
            if let Err(failure) = &wiped {
                tracing::error!("THE WIPE FAILED; the node is quarantined until an operator clears it: {failure}");
            }
            let clean = wiped.is_ok();
            let report = ReportWipe { clean, generation: Some(generation) };
            client.report_wipe(&runner.node, &report).await.map(|put| (put.sequence, clean))
        });
    }

    /// Waits until a wipe ends; never returns if none runs.
    pub(crate) async fn ended(&mut self) {
        let Some(ended) = self.running.join_next().await else { return std::future::pending().await };
        match ended {
            Ok(Ok((sequence, clean))) => {
                self.reported_at = sequence;
                if clean {
                    tracing::info!("the node is wiped and in service again");
                }
            }
            Ok(Err(error)) => tracing::warn!("cannot report the result of the wipe, it will be repeated: {error}"),
            Err(error) => tracing::error!("the wipe was interrupted: {error}"),
        }
    }
}
