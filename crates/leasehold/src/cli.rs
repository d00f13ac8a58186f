//! What can be typed, and how a mistake in it is told.

pub(crate) mod alloc;
pub(crate) mod books;
pub(crate) mod capacity;
pub(crate) mod ceiling;
pub(crate) mod claim;
pub(crate) mod collect;
pub(crate) mod config;
#[cfg(test)]
mod documented;
pub(crate) mod events;
pub(crate) mod lease;
pub(crate) mod quota;
pub(crate) mod rate;
pub(crate) mod remote;
pub(crate) mod settings;
pub(crate) mod tenancy;
pub(crate) mod token;

pub(crate) use events::RecordsArgs;

use clap::{Args, Parser, Subcommand};
use leasehold_model::Body;
use leasehold_verify::cli::VerifyArgs;
use std::ffi::OsString;
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Start here:
  leasehold demo --exit-after 20s      a cluster under load, in a folder you can verify
  leasehold serve --data ./cluster     a daemon; its first start says how to speak to it

Data goes to stdout, everything else to stderr.
Exit codes: 0 ok, 1 refused or not found, 2 usage, 3 verification failed.";

/// The book-keeper of a shared GPU cluster: leases with deadlines, one sealed journal.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, about, after_help = AFTER_HELP, max_term_width = 120, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) daemon: remote::DaemonArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a believable cluster on a real journal, watch it, and verify what it wrote
    Demo(leasehold_demo::DemoArgs),
    /// Run the daemon: the HTTP API over a sealed journal
    Serve(ServeArgs),
    /// Look at the daemon's configuration file without starting it
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Speak for a node: end what ran under its leases, wipe what is left, confirm it
    Agent(leasehold_agent::AgentArgs),
    #[command(flatten)]
    Remote(Box<remote::RemoteCommand>),
    /// Read, prove and verify a journal: from its files, or over its daemon
    #[command(subcommand)]
    Audit(Audit),
    /// Measure this machine against the budgets
    Bench(BenchArgs),
    /// Print what a shell needs to complete these commands
    Completions(CompletionsArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Say whether a journal is whole: from its files alone, offline
    Verify(VerifyArgs),
    /// Print the trust file an auditor keeps: origin, key and newest checkpoint
    Trust(TrustArgs),
    /// Print the newest signed checkpoint
    Checkpoint(CheckpointArgs),
    /// Prove that a record is in the journal, or that the journal only grew; or check such a proof
    Prove(ProveArgs),
    /// Print the records as JSON, one per line
    Export(ExportArgs),
    /// Decide again what a record says was decided, and show that it is the same
    Replay(ReplayArgs),
    /// Show the records that a daemon keeps, one per line
    Records(RecordsArgs),
    /// Keep a verified copy of a daemon's journal
    Collect(collect::CollectArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold completions bash > ~/.local/share/bash-completion/completions/leasehold
  leasehold completions zsh > ~/.zfunc/_leasehold
  leasehold completions fish > ~/.config/fish/completions/leasehold.fish")]
pub(crate) struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold serve --data ./cluster                       on 127.0.0.1:8420, with the defaults
  leasehold serve --config /etc/leasehold.yaml           all that is not given here stands in the file

The first start prints an operator token and keeps it in operator.token in the data folder.
SIGTERM or Ctrl-C ends it cleanly: what was accepted is answered, the journal is closed with a last checkpoint.")]
pub(crate) struct ServeArgs {
    /// The folder for journal, anchor and key; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Address and port to listen on [default: 127.0.0.1:8420]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// The YAML file with everything else; `leasehold config example` prints one
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Start although the clock lies before the last record or far after it; that is sealed
    #[arg(long)]
    pub(crate) accept_clock: bool,
    /// Discard what follows the anchor in the journal and cannot be authenticated; that is sealed
    #[arg(long, conflicts_with = "accept_unproved_tail")]
    pub(crate) cut_unproved_tail: bool,
    /// Accept it, in a data directory of format version 1 or one whose local.secret was lost; that is sealed
    #[arg(long)]
    pub(crate) accept_unproved_tail: bool,
    /// Issue one more operator token, for one whose file was lost
    #[arg(long)]
    pub(crate) new_operator_token: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Figures against other systems need their code beside ours: `make bench` in the source tree.
Exit code 1 if a goal was missed.")]
pub(crate) struct BenchArgs {
    /// Only the benchmarks whose names begin with this
    #[arg(long, value_name = "PREFIX", default_value = "")]
    pub(crate) only: String,
    /// Where the figures go as JSON
    #[arg(long, value_name = "FILE", default_value = "target/bench.json")]
    pub(crate) out: PathBuf,
}

/// Where the files are. They are only read, also while a cell is writing them.
#[derive(Clone, Debug, Args)]
pub(crate) struct FolderArgs {
    /// The data folder: the one that holds `journal` and `anchor`; without it a daemon is asked
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// A folder with segments that were moved away; may be given more than once
    #[arg(long = "archive", value_name = "DIR", requires = "data")]
    pub(crate) archives: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Hand the file to the auditor over another channel than the journal, and compare the key:
  leasehold audit trust --data /var/lib/leasehold > cluster-1.trust
  leasehold audit verify /var/lib/leasehold --trust cluster-1.trust")]
pub(crate) struct TrustArgs {
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckpointArgs {
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("proof").required(true).args(["sequence", "consistency_from", "check"]),
    after_help = "\
Examples:
  leasehold audit prove --data DIR --sequence 4711 --out 4711.proof
  leasehold audit prove --data DIR --consistency-from 1000 --out grown.proof
  leasehold audit prove --check 4711.proof --trust cluster-1.trust

Proofs are C2SP texts (tlog-proof, and the request of tlog-witness). A proof of a record carries \
the record's own bytes beside it, so that it can be checked and shown without the journal. A proof \
of growth is checked against the checkpoint in the trust file: it must be of the size the proof \
starts from."
)]
pub(crate) struct ProveArgs {
    /// The data folder: the one that holds `journal` and `anchor`; without it a daemon is asked
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    pub(crate) data: Option<PathBuf>,
    /// A folder with segments that were moved away; may be given more than once
    #[arg(long = "archive", value_name = "DIR", requires = "data", conflicts_with = "check")]
    pub(crate) archives: Vec<PathBuf>,
    /// Prove that the record with this sequence is in the journal
    #[arg(long, value_name = "N")]
    pub(crate) sequence: Option<u64>,
    /// Prove that the journal of this size is the beginning of the one now
    #[arg(long, value_name = "SIZE")]
    pub(crate) consistency_from: Option<u64>,
    /// Write the proof to this file instead of stdout
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pub(crate) out: Option<PathBuf>,
    /// Check a proof instead of making one
    #[arg(long, value_name = "FILE", requires = "trust")]
    pub(crate) check: Option<PathBuf>,
    /// Your own trust file, to check against
    #[arg(long, value_name = "FILE", requires = "check")]
    pub(crate) trust: Option<PathBuf>,
    /// The hash of the record, where the proof does not carry the record itself
    #[arg(long, value_name = "HEX", requires = "check")]
    pub(crate) record_hash: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold audit export --data DIR --kind lease.denied --tenant students
  leasehold audit export --data DIR --from 1000 --to 2000 | jq -r .kind | sort | uniq -c")]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    /// The first sequence to print
    #[arg(long, value_name = "N")]
    pub(crate) from: Option<u64>,
    /// The last sequence to print
    #[arg(long, value_name = "N")]
    pub(crate) to: Option<u64>,
    /// Only records of the tenant with this name
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Only records of this kind, or of a family of kinds: `lease.granted`, `lease`
    #[arg(long, value_name = "WORD", value_parser = kind_words(), hide_possible_values = true)]
    pub(crate) kind: Option<String>,
    /// Changes nothing: what is printed is JSON anyway
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold audit export --data DIR --kind preemption.decided | jq .sequence
  leasehold audit replay --data DIR --sequence 4711

Grants, denials, placements, evictions and what follows from them by itself can be decided again: the state before \
the record is folded from the journal alone, and the rules are asked once more. Exit status 3 if the answer differs. \
Without --data the daemon does it.")]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    /// The record that seals the decision
    #[arg(long, value_name = "N")]
    pub(crate) sequence: u64,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Every kind, and every family of kinds.
fn kind_words() -> clap::builder::PossibleValuesParser {
    let words = Body::KINDS.iter().map(|(_, word)| *word);
    let mut all: Vec<&str> = words.clone().chain(words.filter_map(|w| Some(w.split_once('.')?.0))).collect();
    all.sort_unstable();
    all.dedup();
    clap::builder::PossibleValuesParser::new(all)
}

/// Prints what a shell needs to complete the command line.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), crate::problem::Problem> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut <Cli as clap::CommandFactory>::command(), "leasehold", &mut script);
    crate::output::print(&String::from_utf8_lossy(&script))
}

/// What was typed, with `--gpu -1` as `--gpu=-1`: no option is a digit, so it is meant as the value, and whoever takes
/// the value says what is wrong with it. What comes after `--` is somebody else's. By hand, because clap's
/// `allow_negative_numbers` takes `-1` and not `-8GiB` or `-5m`, and its `allow_hyphen_values` takes the next option.
pub(crate) fn typed(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let mut ours = true;
    for word in words {
        let negative =
            |word: &str| word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let option = |word: &str| word.strip_prefix("--").is_some_and(|name| !name.is_empty() && !name.contains('='));
        match all.last_mut() {
            Some(last) if ours && word.to_str().is_some_and(negative) && last.to_str().is_some_and(option) => {
                last.push("=");
                last.push(word);
            }
            _ => {
                ours &= word != "--";
                all.push(word);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_negative_number_is_the_value_of_the_option_before_it() {
        let typed = |line: &str| {
            let words = typed(line.split(' ').map(OsString::from));
            words.into_iter().map(|word| word.into_string().expect("UTF-8")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(typed("x --gpu -0 --ttl -5m --json"), "x --gpu=-0 --ttl=-5m --json");
        assert_eq!(typed("x --gpu=1 -5 --wait -h"), "x --gpu=1 -5 --wait -h");
        assert_eq!(typed("x --gpu 1 -- prog --x -5"), "x --gpu 1 -- prog --x -5");
    }

    #[test]
    fn kinds_and_families_are_known() {
        let parse = |kind: &str| Cli::try_parse_from(["leasehold", "audit", "export", "--data", "x", "--kind", kind]);
        assert!(parse("lease.granted").is_ok());
        assert!(parse("lease").is_ok());
        let wrong = parse("lease.grantd").unwrap_err().to_string();
        assert!(wrong.contains("lease.granted"), "{wrong}");
    }
}
