//! The teardown of one lease. It succeeds only if every step succeeds.

use super::config::{Builtin, Hooks};
use super::failure::Failure;
use super::hook::{self, Runner};
use super::state::State;
use super::work::Work;
use super::{cgroup, group};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a teardown needs.
pub(crate) struct Tools {
    pub(crate) state: State,
    pub(crate) hooks: BTreeMap<String, Hooks>,
    pub(crate) runner: Runner,
}

impl Tools {
    pub(crate) fn hooks_for(&self, class: &str) -> Option<&Hooks> {
        self.hooks.get(class).or_else(|| self.hooks.get("*"))
    }

    /// Runs the hooks of the lease's class, and records the start and the end on disk.
    pub(crate) async fn tear_down(self: Arc<Self>, work: Work) -> Result<(), Failure> {
        // Without hooks it is not known whether the capacity is free, so the teardown must not be confirmed.
        let hooks = self.hooks_for(&work.class).cloned().ok_or_else(|| {
            let class = &work.class;
            Failure(format!("no hooks for class {class}; add `{class}` or `\"*\"` under `hooks` and restart"))
        })?;
        let unwritten = |error| Failure(format!("cannot write the state directory: {error}"));
        let (tools, begun) = (Arc::clone(&self), work.clone());
        in_background(move || tools.state.begin(&begun)).await.map_err(unwritten)?;
        let term_wait = hooks.term_wait.into();
        match hooks.builtin() {
            Builtin::None => {}
            Builtin::Cgroup => cgroup::end(&hooks.cgroup_root, &work.lease, term_wait).await?,
            Builtin::ProcessGroup => group::end(&hooks.pid_dir, &work.lease, term_wait).await?,
        }
        for (name, hook, limit) in hooks.commands() {
            hook::run(name, &hook.command, limit, Some(&work), &self.runner).await?;
        }
        let (tools, lease) = (Arc::clone(&self), work.lease);
        in_background(move || tools.state.done(&lease)).await.map_err(unwritten)
    }
}

/// Runs a write in another thread, because an fsync can take long and must not delay heartbeats.
async fn in_background(write: impl FnOnce() -> std::io::Result<()> + Send + 'static) -> std::io::Result<()> {
    let written = tokio::task::spawn_blocking(write).await;
    written.unwrap_or_else(|_| Err(std::io::Error::other("the write did not finish")))
}
