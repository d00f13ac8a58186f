//! The command line: commands, options and their help.

pub(crate) mod alloc;
pub(crate) mod apps;
pub(crate) mod backup;
pub(crate) mod books;
pub(crate) mod capacity;
pub(crate) mod ceiling;
pub(crate) mod claim;
pub(crate) mod collect;
pub(crate) mod config;
pub(crate) mod deliveries;
#[cfg(test)]
mod documented;
pub(crate) mod entitlement;
pub(crate) mod events;
#[cfg(test)]
mod filters;
pub(crate) mod journal;
pub(crate) mod key;
pub(crate) mod lease;
pub(crate) mod ledger;
pub(crate) mod policy;
pub(crate) mod prepaid;
pub(crate) mod quota;
pub(crate) mod rate;
pub(crate) mod remote;
pub(crate) mod select;
pub(crate) mod settings;
pub(crate) mod sharing;
pub(crate) mod status;
pub(crate) mod tenancy;
pub(crate) mod timeline;
pub(crate) mod times;
pub(crate) mod token;
pub(crate) mod usage_record;
pub(crate) mod webhook;
pub(crate) mod window;

pub(crate) use events::RecordsArgs;

use clap::{Args, Parser, Subcommand};
use leasehold_model::Body;
use leasehold_verify::cli::VerifyArgs;
use leasehold_verify::evidence::EvidenceArgs;
use std::ffi::OsString;
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Start here:
  leasehold demo --exit-after 20s      # run a simulated cluster whose journal you can verify
  leasehold serve --data ./cluster     # run the daemon; its first start prints how to connect to it

Data goes to stdout, everything else to stderr.
Exit codes: 0 success, 1 refused or not found, 2 wrong command line, 3 verification failed, 4 a log was proved to be forked.";

/// The book-keeper of a shared GPU cluster: leases with deadlines, recorded in a verifiable journal.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, about, after_help = AFTER_HELP, max_term_width = 120, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) daemon: remote::DaemonArgs,
    #[command(flatten)]
    pub(crate) times: times::TimeZoneArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a simulated cluster on a real journal, show it, and verify the journal
    Demo(leasehold_demo::DemoArgs),
    /// Run the daemon, which serves the HTTP API
    Serve(ServeArgs),
    /// Check the daemon's configuration file, or print an example
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Move old segments of the journal to an archive, and delete them there
    #[command(subcommand)]
    Journal(journal::JournalCommand),
    /// Make a verified copy of the journal, also while the daemon runs
    Backup(backup::BackupArgs),
    /// Create a data directory from a backup, and begin a new epoch of its journal
    Restore(backup::RestoreArgs),
    /// Run the agent of a node: send heartbeats, end processes of ended leases, confirm teardowns and wipes
    Agent(leasehold_agent::AgentArgs),
    #[command(flatten)]
    Remote(Box<remote::RemoteCommand>),
    /// Read, prove and verify the journal, from its files or through the daemon
    #[command(subcommand)]
    Audit(Audit),
    /// Show and rotate the key that signs the journal
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Run the benchmarks on this machine and compare them with the performance goals
    Bench(BenchArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Verify a journal offline, from its files alone
    Verify(VerifyArgs),
    /// Confirm evidence that a log signed two conflicting histories
    Evidence(EvidenceArgs),
    /// Print a trust file for an auditor: origin, keys and newest checkpoint
    Trust(TrustArgs),
    /// Show what is signed and what the scrub found; the exit code is 3 if there is damage
    Status(ScrubArgs),
    /// Begin a pass of the scrub now: read the whole journal again and compare the books with it
    Scrub(ScrubArgs),
    /// Print the newest signed checkpoint
    Checkpoint(CheckpointArgs),
    /// Prove that a record is in the journal or that the journal only grew, or check such a proof
    Prove(ProveArgs),
    /// Export records as JSON, one object per line
    Export(ExportArgs),
    /// Repeat a recorded decision and compare the result with the record
    Replay(ReplayArgs),
    /// List the daemon's records, one per line, oldest first
    Records(RecordsArgs),
    /// Copy a daemon's journal and verify it
    Collect(collect::CollectArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold completions bash > ~/.local/share/bash-completion/completions/leasehold
  leasehold completions zsh > ~/.zfunc/_leasehold
  leasehold completions fish > ~/.config/fish/completions/leasehold.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell to print the script for
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold serve --data ./cluster                       # listen on 127.0.0.1:8420, with the default settings
  leasehold serve --config /etc/leasehold.yaml           # take all settings from a file

The first start writes an operator token to the file operator.token in the data directory, and prints it on a terminal.
SIGTERM or Ctrl-C shuts the daemon down: it answers the requests in flight and closes the journal with a checkpoint.
SIGHUP reads the configuration again: what can change at run time takes effect, and the log says what needs a restart.")]
pub(crate) struct ServeArgs {
    /// Data directory for the journal, anchor and signing key; created if it does not exist. Required unless --config
    /// sets it
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Address and port to listen on [default: 127.0.0.1:8420]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// YAML configuration file; `leasehold config example` prints one. Options given here override it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Start even if the clock is behind the last record or far ahead of it; this is recorded in the journal
    #[arg(long)]
    pub(crate) accept_clock: bool,
    /// Discard records after the last checkpoint that cannot be authenticated; this is recorded in the journal
    #[arg(long, conflicts_with = "accept_unproved_tail")]
    pub(crate) cut_unproved_tail: bool,
    /// Accept them if the data directory has format version 1 or lost its local.secret; this is recorded in the journal
    #[arg(long)]
    pub(crate) accept_unproved_tail: bool,
    /// Issue another operator token, for example if the first one was lost
    #[arg(long)]
    pub(crate) new_operator_token: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
To compare with other systems, run `make bench` in the source tree.
The exit code is 1 if a goal was missed.")]
pub(crate) struct BenchArgs {
    /// Run only the benchmarks whose names begin with this prefix
    #[arg(long, value_name = "PREFIX", default_value = "")]
    pub(crate) only: String,
    /// Write the results to this file as JSON
    #[arg(long, value_name = "FILE", default_value = "target/bench.json")]
    pub(crate) out: PathBuf,
}

/// The journal to read. Its files are opened read-only, so that a daemon may write them at the same time.
#[derive(Clone, Debug, Args)]
pub(crate) struct JournalArgs {
    /// Data directory that contains `journal` and `anchor` [default: ask the daemon]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Directory with archived segments; repeatable
    #[arg(long = "archive", value_name = "DIR", requires = "data")]
    pub(crate) archives: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Give the file to the auditor through another channel than the journal, and let them compare the key:
  leasehold audit trust --data /var/lib/leasehold > cluster-1.trust
  leasehold audit verify /var/lib/leasehold --trust cluster-1.trust")]
pub(crate) struct TrustArgs {
    #[command(flatten)]
    pub(crate) journal: JournalArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckpointArgs {
    #[command(flatten)]
    pub(crate) journal: JournalArgs,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold audit status
  leasehold audit scrub --wait

The scrub reads every segment of the journal again, computes chain and tree against a signed checkpoint, and compares \
the books with the records. The exit code is 3 if the last pass, or the one that runs, found damage.")]
pub(crate) struct ScrubArgs {
    /// Wait until the pass has ended, then show the status
    #[arg(long)]
    pub(crate) wait: bool,
}

#[derive(Debug, Args)]
#[command(
    group = clap::ArgGroup::new("proof").required(true).args(["sequence", "consistency_from", "check"]),
    after_help = "\
Examples:
  leasehold audit prove --data DIR --sequence 4711 --out 4711.proof
  leasehold audit prove --data DIR --consistency-from 1000 --out grown.proof
  leasehold audit prove --check 4711.proof --trust cluster-1.trust

Proofs use the C2SP text formats (tlog-proof, and the request of tlog-witness). An inclusion proof contains \
the record itself, so that it can be checked and shown without the journal. A consistency proof is checked against \
the checkpoint in the trust file, which must have the size that the proof starts from."
)]
pub(crate) struct ProveArgs {
    /// Data directory that contains `journal` and `anchor` [default: ask the daemon]
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    pub(crate) data: Option<PathBuf>,
    /// Directory with archived segments; repeatable
    #[arg(long = "archive", value_name = "DIR", requires = "data", conflicts_with = "check")]
    pub(crate) archives: Vec<PathBuf>,
    /// Prove that the record with this sequence number is in the journal
    #[arg(long, value_name = "N")]
    pub(crate) sequence: Option<u64>,
    /// Prove that the first SIZE records have not changed since the journal had that size
    #[arg(long, value_name = "SIZE")]
    pub(crate) consistency_from: Option<u64>,
    /// Write the proof to this file instead of stdout
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    pub(crate) out: Option<PathBuf>,
    /// Check the proof in this file instead of creating one
    #[arg(long, value_name = "FILE", requires = "trust")]
    pub(crate) check: Option<PathBuf>,
    /// Trust file to check the proof against
    #[arg(long, value_name = "FILE", requires = "check")]
    pub(crate) trust: Option<PathBuf>,
    /// SHA-256 hash of the record, needed if the proof does not contain the record
    #[arg(long, value_name = "HEX", requires = "check")]
    pub(crate) record_hash: Option<String>,
    /// Print one JSON object instead of text
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
    pub(crate) journal: JournalArgs,
    /// First sequence number to print [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) from: Option<u64>,
    /// Last sequence number to print [default: the newest]
    #[arg(long, value_name = "N")]
    pub(crate) to: Option<u64>,
    /// Only records of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Only records of this kind (`lease.granted`) or family of kinds (`lease`)
    #[arg(long, value_name = "KIND", value_parser = kind_words(), hide_possible_values = true)]
    pub(crate) kind: Option<String>,
    /// Has no effect; the output is always JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold audit export --data DIR --kind preemption.decided | jq .sequence
  leasehold audit replay --data DIR --sequence 4711

Grants, denials, placements and evictions can be replayed, and so can the records that follow from them. The state \
before the decision is rebuilt from the journal, and the same rules are applied to it. The exit code is 3 if the \
result differs. Without --data, the daemon replays the decision.")]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) journal: JournalArgs,
    /// Sequence number of a record of the decision
    #[arg(long, value_name = "N")]
    pub(crate) sequence: u64,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Every kind of record, and every family of kinds.
fn kind_words() -> clap::builder::PossibleValuesParser {
    let words = Body::KINDS.iter().map(|(_, word)| *word);
    let mut all: Vec<&str> = words.clone().chain(words.filter_map(|w| Some(w.split_once('.')?.0))).collect();
    all.sort_unstable();
    all.dedup();
    clap::builder::PossibleValuesParser::new(all)
}

/// Prints a completion script.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), crate::problem::Problem> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut <Cli as clap::CommandFactory>::command(), "leasehold", &mut script);
    crate::output::print(&String::from_utf8_lossy(&script))
}

/// Rewrites `--gpu -1` to `--gpu=-1`. No option is a digit, so the number is meant as the value, and the parser of that
/// value reports what is wrong with it. Arguments after `--` stay as they are. This is not left to clap, because its
/// `allow_negative_numbers` accepts `-1` but not `-8GiB` or `-5m`, and `allow_hyphen_values` accepts the next option.
pub(crate) fn join_negative_values(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let mut before_separator = true;
    for word in words {
        let negative =
            |word: &str| word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let option = |word: &str| word.strip_prefix("--").is_some_and(|name| !name.is_empty() && !name.contains('='));
        match all.last_mut() {
            Some(last)
                if before_separator && word.to_str().is_some_and(negative) && last.to_str().is_some_and(option) =>
            {
                last.push("=");
                last.push(word);
            }
            _ => {
                before_separator &= word != "--";
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
            let words = join_negative_values(line.split(' ').map(OsString::from));
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
