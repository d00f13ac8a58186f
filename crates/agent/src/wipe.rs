//! The wipe of the whole node, once it was released after sensitive work.
//!
//! The daemon's answers say whether one is due. It is tried once: what fails is said to have failed, and the node is
//! quarantined. What was cut off, or could not be reported, begins again.

use super::config::Hook;
use super::failure::Failure;
use super::hook::{self, Runner};
use leasehold_client::Client;
use leasehold_client::api::ReportWipe;
use std::time::Duration;
use tokio::task::JoinSet;

/// Reported, with the sequence that sealed it, and whether the node is clean.
type Reported = Result<(u64, bool), leasehold_client::Error>;

pub(crate) struct Wipes {
    hook: Option<(Hook, Duration)>,
    running: JoinSet<Reported>,
    /// Answers that know of no more records are older than what was reported.
    reported_at: u64,
    told: bool,
}

impl Wipes {
    pub(crate) fn new(hook: Option<(Hook, Duration)>) -> Self {
        Self { hook, running: JoinSet::new(), reported_at: 0, told: false }
    }

    /// Begins a wipe if one is due and none runs.
    pub(crate) fn due(&mut self, due: bool, size: u64, (client, generation): (&Client, u64), runner: &Runner) {
        if !due {
            self.told = false;
            return;
        }
        if size <= self.reported_at || !self.running.is_empty() {
            return;
        }
        let Some((hook, limit)) = self.hook.clone() else {
            if !std::mem::replace(&mut self.told, true) {
                let node = &runner.node;
                tracing::error!(
                    "THE NODE IS TO BE WIPED and `wipe_node` names no command: wipe it by hand, then \
                     `leasehold node wiped {node}`; else it is quarantined"
                );
            }
            return;
        };
        tracing::info!("the node was released: wiping it");
        let (client, runner) = (client.clone(), runner.clone());
        self.running.spawn(async move {
            let wiped: Result<(), Failure> = hook::run("wipe_node", &hook.command, limit, None, &runner).await;
            if let Err(failure) = &wiped {
                tracing::error!("THE WIPE FAILED, the node is quarantined until an operator clears it: {failure}");
            }
            let clean = wiped.is_ok();
            let report = ReportWipe { clean, generation: Some(generation) };
            client.report_wipe(&runner.node, &report).await.map(|put| (put.sequence, clean))
        });
    }

    /// Waits for a wipe to end; for ever if none runs.
    pub(crate) async fn ended(&mut self) {
        let Some(ended) = self.running.join_next().await else { return std::future::pending().await };
        match ended {
            Ok(Ok((sequence, clean))) => {
                self.reported_at = sequence;
                if clean {
                    tracing::info!("the node is clean, and takes work again");
                }
            }
            Ok(Err(error)) => tracing::warn!("what came of the wipe could not be reported: {error}; it begins again"),
            Err(error) => tracing::error!("the wipe was cut off: {error}"),
        }
    }
}
