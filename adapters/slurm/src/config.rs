//! The configuration: a YAML file; unknown keys are errors. `packaging/slurm.example.yaml` shows every key.

use leasehold_adapter_kit::{Leasehold, Lent, span};
use leasehold_model::Span;
use leasehold_terminal::Problem;
use leasehold_yaml::Reader;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const LOOK_BACK: (Span, Span) = (Span::from_secs(60), Span::from_secs(35 * 86_400));
/// Part of every ID, which has at most 128 bytes.
const CLUSTER_BYTES_MAX: usize = 40;
const YAML: Reader = Reader { see: "docs/how-to/slurm.md shows every key", section_of };

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    pub(crate) leasehold: Leasehold,
    pub(crate) slurm: SlurmSection,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SlurmSection {
    /// The name of the cluster in Slurm.
    pub(crate) cluster: String,
    /// The name of the cluster in IDs, if it differs: a new one is needed when the accounting database starts anew.
    pub(crate) id_name: Option<String>,
    pub(crate) units: Vec<Unit>,
    /// Projects by Slurm account, for a runtime that projects share.
    pub(crate) accounts: BTreeMap<String, String>,
    /// What is lent, by partition.
    pub(crate) partitions: BTreeMap<String, Lent>,
    /// Use a UUID after `leasehold:` in a job's comment as its correlation ID.
    pub(crate) correlation_from_comment: bool,
    /// How late the database may learn of a run, and runs still be found.
    #[serde(deserialize_with = "span")]
    pub(crate) look_back: Span,
    /// The program.
    pub(crate) sacct: PathBuf,
    #[serde(deserialize_with = "span")]
    pub(crate) sacct_timeout: Span,
}

impl Default for SlurmSection {
    fn default() -> Self {
        Self {
            cluster: String::new(),
            id_name: None,
            units: vec![Unit::Jobs, Unit::Gpus],
            accounts: BTreeMap::new(),
            partitions: BTreeMap::new(),
            correlation_from_comment: false,
            look_back: Span::from_secs(86_400),
            sacct: "sacct".into(),
            sacct_timeout: Span::from_secs(120),
        }
    }
}

impl SlurmSection {
    pub(crate) fn id_name(&self) -> &str {
        self.id_name.as_deref().unwrap_or(&self.cluster)
    }
}

/// What is reported of a run. Each is the time that it ran, times something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) enum Unit {
    /// Times one.
    #[serde(rename = "job_hours")]
    Jobs,
    /// Times its GPUs.
    #[serde(rename = "gpu_hours")]
    Gpus,
    /// Times its CPUs, as Slurm counts them.
    #[serde(rename = "cpu_hours")]
    Cpus,
    /// Times its nodes.
    #[serde(rename = "node_hours")]
    Nodes,
}

impl Unit {
    /// The name of the usage unit at Leasehold.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Jobs => "job_hours",
            Self::Gpus => "gpu_hours",
            Self::Cpus => "cpu_hours",
            Self::Nodes => "node_hours",
        }
    }
}

fn section_of(key: &str) -> Option<&'static str> {
    match key {
        "url" | "token_file" | "ca_file" | "app_instance" | "tenant" | "begin" | "state" | "every" | "patience"
        | "users" => Some("leasehold"),
        "cluster" | "units" | "accounts" | "partitions" | "look_back" | "sacct" => Some("slurm"),
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
        let slurm = &self.slurm;
        if slurm.cluster.is_empty() {
            found.push("`slurm.cluster`: missing; `sacctmgr show cluster` shows the name".into());
        }
        let id_name = slurm.id_name();
        if id_name.len() > CLUSTER_BYTES_MAX || id_name.contains(char::is_whitespace) {
            found.push(format!("`slurm.id_name`: give at most {CLUSTER_BYTES_MAX} bytes without spaces"));
        }
        if slurm.units.is_empty() {
            found.push("`slurm.units`: empty; give at least one of job_hours, gpu_hours, cpu_hours, node_hours".into());
        }
        if !(LOOK_BACK.0..=LOOK_BACK.1).contains(&slurm.look_back) {
            found.push(format!(
                "`slurm.look_back`: {} is out of range; give {} to {}",
                slurm.look_back, LOOK_BACK.0, LOOK_BACK.1
            ));
        }
        if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        let config: Config = YAML.parse(text, Path::new("slurm.yaml")).map_err(|error| error.to_string())?;
        config.check().map(|()| config)
    }

    #[test]
    fn mistakes_are_named() {
        let unknown = read("leasehold:\n  app_instnce: x\n").unwrap_err();
        assert!(unknown.contains("at line 2") && unknown.contains("did you mean `app_instance`"), "{unknown}");
        let misplaced = read("cluster: box\n").unwrap_err();
        assert!(misplaced.contains("it belongs under `slurm`"), "{misplaced}");
        let unit = read("slurm: { units: [gpus] }\n").unwrap_err();
        assert!(unit.contains("unknown value `gpus`"), "{unit}");
        let empty = read("").unwrap_err();
        for key in ["leasehold.app_instance", "leasehold.begin", "slurm.cluster"] {
            assert!(empty.contains(key), "{empty}");
        }
    }

    #[test]
    fn the_example_has_every_key() {
        let text = include_str!("../../../packaging/slurm.example.yaml");
        // What stands behind a `#` without a space is the default, or an example.
        let all: String = text.lines().map(|line| uncommented(line) + "\n").collect();
        let config = read(&all).unwrap();
        assert_eq!(config.slurm.partitions["lent"].attachment, 0);
        assert!(read(text).is_ok());
    }

    fn uncommented(line: &str) -> String {
        let indent = line.len() - line.trim_start().len();
        match line.trim_start().strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') && !rest.is_empty() => format!("{}{rest}", &line[..indent]),
            _ => line.to_owned(),
        }
    }
}
