//! The agent's configuration: a YAML file; unknown keys are errors. `packaging/agent.example.yaml` shows every key.

mod check;

use leasehold_client::api::Quantity;
use leasehold_model::Span;
use leasehold_yaml::{LoadError, Reader};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const TEARDOWN_TIMEOUT: Span = Span::from_secs(60);
const WIPE_TIMEOUT: Span = Span::from_secs(600);
/// For the wipe of the whole node. It is shorter than the time after which the daemon quarantines the node.
const WIPE_NODE_TIMEOUT: Span = Span::from_secs(25 * 60);

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The node's name at the daemon.
    pub(crate) node: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) ca_file: Option<PathBuf>,
    /// The state directory.
    pub(crate) state: PathBuf,
    /// The capacity of the node by class. If absent, the daemon's figures are kept.
    pub(crate) capacity: Option<BTreeMap<String, Amount>>,
    pub(crate) labels: Option<BTreeMap<String, String>>,
    /// The time between heartbeats; by default a third of the daemon's node timeout.
    #[serde(deserialize_with = "maybe_span")]
    pub(crate) heartbeat: Option<Span>,
    /// The most teardowns that run at the same time.
    pub(crate) parallel: u32,
    /// How long hooks may continue after the agent was asked to stop.
    #[serde(deserialize_with = "span")]
    pub(crate) stop_timeout: Span,
    /// The node counts as throttled while this file exists and is neither empty nor `0`.
    pub(crate) throttled_file: Option<PathBuf>,
    /// The command that wipes the whole node after sensitive work.
    pub(crate) wipe_node: Option<Hook>,
    /// By class; `*` applies to all other classes.
    pub(crate) hooks: BTreeMap<String, Hooks>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            node: None,
            url: None,
            token_file: None,
            ca_file: None,
            state: "/var/lib/leasehold-agent".into(),
            capacity: None,
            labels: None,
            heartbeat: None,
            parallel: 8,
            stop_timeout: Span::from_secs(20),
            throttled_file: None,
            wipe_node: None,
            hooks: BTreeMap::new(),
        }
    }
}

/// How much of a class the node has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    /// Measured on this machine: cores or memory.
    Auto,
    Given(Quantity),
}

impl<'de> serde::Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        Ok(if text == "auto" { Self::Auto } else { Self::Given(Quantity(text.into_owned())) })
    }
}

/// How the leases of a class are torn down.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Hooks {
    /// How the processes of the lease are ended, before the hooks run.
    builtin: Option<Builtin>,
    /// The directory with the cgroups of leases, named by lease ID.
    pub(crate) cgroup_root: PathBuf,
    /// The directory with one file per lease, named by lease ID, that contains the ID of a process group.
    pub(crate) pid_dir: PathBuf,
    /// The time between SIGTERM and SIGKILL.
    #[serde(deserialize_with = "span")]
    pub(crate) term_wait: Span,
    teardown: Option<Hook>,
    wipe: Option<Hook>,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            builtin: None,
            cgroup_root: "/sys/fs/cgroup/leasehold".into(),
            pid_dir: "/run/leasehold/jobs".into(),
            term_wait: Span::from_secs(10),
            teardown: None,
            wipe: None,
        }
    }
}

impl Hooks {
    pub(crate) fn builtin(&self) -> Builtin {
        self.builtin.unwrap_or_default()
    }

    /// The commands in order, each with its name and timeout.
    pub(crate) fn commands(&self) -> impl Iterator<Item = (&'static str, &Hook, Duration)> {
        let all = [("teardown", &self.teardown, TEARDOWN_TIMEOUT), ("wipe", &self.wipe, WIPE_TIMEOUT)];
        all.into_iter().filter_map(|(name, hook, default)| {
            let hook = hook.as_ref()?;
            Some((name, hook, hook.timeout.unwrap_or(default).into()))
        })
    }

    /// The longest time that all steps together can take.
    pub(crate) fn longest(&self) -> Duration {
        let ending = if self.builtin() == Builtin::None { Duration::ZERO } else { self.term_wait.into() };
        self.commands().map(|(_, _, limit)| limit).sum::<Duration>() + ending
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Builtin {
    Cgroup,
    ProcessGroup,
    #[default]
    None,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hook {
    /// The program and its arguments. No shell is involved.
    pub(crate) command: Vec<String>,
    #[serde(default, deserialize_with = "maybe_span")]
    timeout: Option<Span>,
}

impl Hook {
    /// The timeout if this is the wipe of the whole node.
    pub(crate) fn node_limit(&self) -> Duration {
        self.timeout.unwrap_or(WIPE_NODE_TIMEOUT).into()
    }
}

fn span<'de, D: Deserializer<'de>>(from: D) -> Result<Span, D::Error> {
    Cow::<str>::deserialize(from)?.parse().map_err(D::Error::custom)
}

fn maybe_span<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Span>, D::Error> {
    let text = Option::<Cow<str>>::deserialize(from)?;
    text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
}

const YAML: Reader = Reader { see: "docs/how-to/agent.md shows every key", section_of: |_| None };

impl Config {
    pub(crate) fn load(path: &Path) -> Result<Self, LoadError> {
        YAML.load(path)
    }

    #[cfg(test)]
    fn parse(text: &str, file: &Path) -> Result<Self, LoadError> {
        YAML.parse(text, file)
    }
}

#[cfg(test)]
mod tests;
