//! The configuration: a YAML file; unknown keys are errors. `packaging/ray.example.yaml` shows every key.

use leasehold_adapter_kit::{Leasehold, Lent, span};
use leasehold_model::Span;
use leasehold_terminal::Problem;
use leasehold_yaml::Reader;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Part of every ID, which has at most 128 bytes.
const CLUSTER_BYTES_MAX: usize = 24;
const YAML: Reader = Reader { see: "docs/how-to/ray.md shows every key", section_of };

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    pub(crate) leasehold: Leasehold,
    pub(crate) ray: RaySection,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RaySection {
    /// The name of the cluster in IDs.
    pub(crate) cluster: String,
    /// The address of the dashboard.
    pub(crate) dashboard: String,
    #[serde(deserialize_with = "span")]
    pub(crate) timeout: Span,
    /// If the dashboard does not answer for so long, what was seen has ended.
    #[serde(deserialize_with = "span")]
    pub(crate) gone_after: Span,
    /// What is reported of the head node, as usage of the control plane.
    pub(crate) head: Vec<NodeUnit>,
    /// What is reported of the other nodes.
    pub(crate) workers: Vec<NodeUnit>,
    /// What is reported of submitted jobs.
    pub(crate) jobs: Vec<JobUnit>,
    /// The key in the metadata of a job that names its project, and the projects by its values.
    pub(crate) project_key: String,
    pub(crate) projects: BTreeMap<String, String>,
    /// The key in the metadata of a job that names its user.
    pub(crate) user_key: String,
    /// What is lent, by a label of the node: `lender=optics`.
    pub(crate) lent: BTreeMap<String, Lent>,
}

impl Default for RaySection {
    fn default() -> Self {
        Self {
            cluster: String::new(),
            dashboard: "http://127.0.0.1:8265".into(),
            timeout: Span::from_secs(30),
            gone_after: Span::from_secs(3600),
            head: vec![NodeUnit::Uptime],
            workers: vec![NodeUnit::Uptime],
            jobs: vec![JobUnit::JobHours],
            project_key: "project".into(),
            projects: BTreeMap::new(),
            user_key: "user".into(),
            lent: BTreeMap::new(),
        }
    }
}

/// What is reported of a node. Each is the time that it was up, times something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) enum NodeUnit {
    #[serde(rename = "uptime_hours")]
    Uptime,
    /// Times its GPUs, as Ray counts them.
    #[serde(rename = "gpu_hours")]
    Gpus,
    #[serde(rename = "cpu_hours")]
    Cpus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JobUnit {
    JobHours,
}

fn section_of(key: &str) -> Option<&'static str> {
    match key {
        "url" | "token_file" | "ca_file" | "app_instance" | "tenant" | "begin" | "state" | "every" | "patience"
        | "users" => Some("leasehold"),
        "cluster" | "dashboard" | "head" | "workers" | "jobs" | "projects" | "lent" => Some("ray"),
        _ => None,
    }
}

impl Config {
    pub(crate) fn load(file: &Path) -> Result<Self, Problem> {
        let config: Self = YAML.load(file).map_err(|error| Problem::told(error.code(), &error).is_usage())?;
        config.check().map_err(|wrong| Problem::usage("config_wrong", wrong).at(file))?;
        Ok(config)
    }

    /// Returns all problems, one per line.
    fn check(&self) -> Result<(), String> {
        let mut found = Vec::new();
        self.leasehold.check(&mut found);
        let (ray, cluster) = (&self.ray, &self.ray.cluster);
        if cluster.is_empty() || cluster.len() > CLUSTER_BYTES_MAX || cluster.contains(char::is_whitespace) {
            found.push(format!("`ray.cluster`: give a name of at most {CLUSTER_BYTES_MAX} bytes without spaces"));
        }
        for label in ray.lent.keys().filter(|label| !label.contains('=')) {
            found.push(format!("`ray.lent`: `{label}` is not a label; write it like lender=optics"));
        }
        if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_valid_and_mistakes_are_named() {
        let read = |text: &str| {
            let config: Config = YAML.parse(text, Path::new("ray.yaml")).map_err(|error| error.to_string())?;
            config.check().map(|()| config)
        };
        let example = include_str!("../../../packaging/ray.example.yaml");
        assert_eq!(read(example).unwrap().ray.workers, [NodeUnit::Uptime, NodeUnit::Gpus]);
        let misplaced = read("dashboard: http://x\n").unwrap_err();
        assert!(misplaced.contains("it belongs under `ray`"), "{misplaced}");
        let label =
            read("ray: { cluster: c, lent: { optics: { attachment: 0, allocation: alloc-1 } } }\n").unwrap_err();
        assert!(label.contains("`optics` is not a label"), "{label}");
    }
}
