//! The teardown of one lease, step by step; done only if every step was.

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

    /// Runs the hooks of the lease's class, and notes before and after that it does.
    pub(crate) async fn tear_down(self: Arc<Self>, work: Work) -> Result<(), Failure> {
        // What is not known to free the capacity must not be said to have freed it.
        let hooks = self.hooks_for(&work.class).cloned().ok_or_else(|| {
            let class = &work.class;
            Failure(format!("there are no hooks for class {class}; add `{class}` or `\"*\"` under `hooks` and restart"))
        })?;
        let unwritten = |error| Failure(format!("the state folder cannot be written: {error}"));
        let (tools, begun) = (Arc::clone(&self), work.clone());
        apart(move || tools.state.begin(&begun)).await.map_err(unwritten)?;
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
        apart(move || tools.state.done(&lease)).await.map_err(unwritten)
    }
}

/// A sync may take long: it is not to hold up heartbeats.
async fn apart(write: impl FnOnce() -> std::io::Result<()> + Send + 'static) -> std::io::Result<()> {
    let written = tokio::task::spawn_blocking(write).await;
    written.unwrap_or_else(|_| Err(std::io::Error::other("it was not finished")))
}
