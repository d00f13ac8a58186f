//! The command line, for `leasehold-verify` and for `leasehold audit verify`.
//!
//! The result goes to stdout, everything else to stderr. The exit code is 0 for yes, 3 for no, and 2 if verification was
//! not possible.

use crate::progress::Bar;
use crate::receipt::{Colours, failure_json, receipt, refusal, report_json};
use crate::trust::TrustError;
use crate::{Options, Report, Trust, verify};
use leasehold_model::Instant;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The journal is intact.
pub const EXIT_YES: u8 = 0;
/// Verification was not possible: invalid arguments, or files that cannot be read.
pub const EXIT_USAGE: u8 = 2;
/// The journal is not intact.
pub const EXIT_NO: u8 = 3;

/// More than any trust file needs: a note alone is at most a mebibyte.
const TRUST_BYTES_MAX: u64 = 4 << 20;

const AFTER_HELP: &str = "\
Example:
  leasehold-verify /var/lib/leasehold --trust my.trust --update-trust my.trust

Keep the trust file where the operator cannot write to it. --update-trust
stores the newest checkpoint in it, so that the next run also detects whether
earlier records were changed or removed in the meantime.

Exit codes:
  0  yes: all records are present and chained, and signed as far as the report says
  3  no: the report names the first problem that was found
  2  verification was not possible (arguments, trust file, data directory)";

/// Verify a sealed journal offline, from its files alone
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct VerifyArgs {
    /// Data directory, which contains `journal` and `anchor`. Nothing in it is changed
    #[arg(value_name = "DATA_DIRECTORY")]
    pub data: PathBuf,
    /// Your own trust file: the origin, its key, and the last checkpoint you verified
    #[arg(long, value_name = "FILE")]
    pub trust: PathBuf,
    /// Directory with archived segments; may be given more than once
    #[arg(long = "archive", value_name = "DIR")]
    pub archives: Vec<PathBuf>,
    /// Number of threads [default: number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Print the report as a JSON object
    #[arg(long)]
    pub json: bool,
    /// If the journal is intact, write a trust file with the newest checkpoint; may be the same file as --trust
    #[arg(long, value_name = "FILE")]
    pub update_trust: Option<PathBuf>,
}

/// Why verification was not possible, and what to do.
pub(crate) struct Unanswered(pub(crate) String);

/// Verifies, prints the result, and returns the exit code.
pub fn run(args: &VerifyArgs) -> u8 {
    answer(args).unwrap_or_else(|why| unanswered(&why, args.json))
}

/// Says why there is no answer, and returns the exit code.
pub(crate) fn unanswered(Unanswered(sentence): &Unanswered, as_json: bool) -> u8 {
    if as_json {
        print_json(&json!({ "verdict": "error", "sentence": sentence }));
    }
    complain(sentence);
    EXIT_USAGE
}

fn answer(args: &VerifyArgs) -> Result<u8, Unanswered> {
    let trust = read_trust(&args.trust)?;
    if let Some(path) = &args.update_trust {
        check_may_replace(path, &trust)?;
    }
    let bar = Bar::new();
    let draw = |progress| bar.draw(progress);
    let options = Options {
        data: args.data.clone(),
        archives: args.archives.clone(),
        trust,
        threads: args.threads.map_or(0, usize::from),
        progress: Some(&draw),
    };
    let verified = verify(&options);
    bar.clear();
    let colours = Colours(!args.json && io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    match verified {
        Ok(report) => {
            match args.json {
                true => print_json(&report_json(&report, now())),
                false => print(&receipt(&report, now(), colours)),
            }
            match &args.update_trust {
                Some(path) => Ok(update_trust(path, &report, &options.trust)),
                None => Ok(EXIT_YES),
            }
        }
        Err(failure) if failure.is_unreadable() => {
            let what = failure.file.as_ref().unwrap_or(&args.data).display();
            let why = &failure.why;
            Err(Unanswered(format!("{what}: {why}; check the path and its permissions, or verify a copy")))
        }
        Err(failure) => {
            match args.json {
                true => print_json(&failure_json(&failure)),
                false => print(&refusal(&failure, colours)),
            }
            Ok(EXIT_NO)
        }
    }
}

/// The clock of this machine. One that stands before 1970 is not compared with anything.
fn now() -> Instant {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    Instant(since_1970.and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or(u64::MAX))
}

pub(crate) fn read_trust(path: &Path) -> Result<Trust, Unanswered> {
    Trust::parse(&trust_text(path)?).map_err(|error| bad_trust(path, &error))
}

pub(crate) fn bad_trust(path: &Path, error: &TrustError) -> Unanswered {
    Unanswered(format!("invalid trust file {}: {error}", path.display()))
}

pub(crate) fn trust_text(path: &Path) -> Result<String, Unanswered> {
    let shown = path.display();
    let read = fs::metadata(path).and_then(|metadata| match metadata.is_file() && metadata.len() <= TRUST_BYTES_MAX {
        true => fs::read_to_string(path),
        false => Err(io::Error::other("not a regular file, or too large")),
    });
    read.map_err(|error| {
        let advice = "get it from the operator, but not together with the journal (`leasehold audit trust` prints one)";
        Unanswered(format!("the trust file {shown} cannot be read: {error}; {advice}"))
    })
}

/// An existing file is only replaced if it is a trust file of the same origin with no newer checkpoint.
fn check_may_replace(path: &Path, trust: &Trust) -> Result<(), Unanswered> {
    if !path.try_exists().map_err(|error| Unanswered(format!("{}: {error}", path.display())))? {
        return Ok(());
    }
    let there = read_trust(path)?;
    let size = |trust: &Trust| trust.pinned().map_or(0, |pinned| pinned.checkpoint.size());
    let sentence = if there.origin() != trust.origin() {
        format!("{} is the trust file of {:?}; choose another file for --update-trust", path.display(), there.origin())
    } else if size(&there) > size(trust) {
        format!("{} contains a newer checkpoint; verify with --trust {0}", path.display())
    } else {
        return Ok(());
    };
    Err(Unanswered(sentence))
}

/// Replaces the file atomically. The result has been printed already: a failure here only adds an error message.
fn update_trust(path: &Path, report: &Report, trust: &Trust) -> u8 {
    let updated = report.updated_trust(trust).expect("the report is about this origin");
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    let temporary = PathBuf::from(name);
    let written = (|| {
        let mut file = File::create(&temporary)?;
        file.write_all(updated.to_text().as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    let Err(error) = written else {
        return EXIT_YES;
    };
    // It may not have been created.
    let _ = fs::remove_file(&temporary);
    let shown = path.display();
    complain(&format!("the trust file {shown} could not be written: {error}; its previous content is unchanged"));
    EXIT_USAGE
}

/// If stderr is closed, the message is lost.
fn complain(sentence: &str) {
    let _ = writeln!(io::stderr(), "error: {sentence}");
}

pub(crate) fn print_json(value: &Value) {
    print(&format!("{value:#}\n"));
}

/// If stdout was closed, the reader needs no more.
pub(crate) fn print(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}
