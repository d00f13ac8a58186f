//! The command line, for `leasehold-verify` and for `leasehold audit verify`.
//!
//! The answer goes to stdout, all else to stderr. 0 is yes, 3 is no, 2 is a question that could not be answered.

use crate::progress::Bar;
use crate::receipt::{Colours, failure_json, receipt, refusal, report_json};
use crate::{Options, Report, Trust, verify};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The journal is in order.
pub const EXIT_YES: u8 = 0;
/// The question could not be answered: wrong arguments, or files that cannot be read.
pub const EXIT_USAGE: u8 = 2;
/// The journal is not in order.
pub const EXIT_NO: u8 = 3;

/// More than any trust file needs: a note alone is at most a mebibyte.
const TRUST_BYTES_MAX: u64 = 4 << 20;

const AFTER_HELP: &str = "\
Example:
  leasehold-verify /var/lib/leasehold --trust my.trust --update-trust my.trust

Keep the trust file where the operator cannot write. With --update-trust it
remembers the newest checkpoint, so that the next run also shows whether
anything before it was rewritten or cut since.

Exit codes:
  0  yes: every record is there and chained, and signed as far as the answer says
  3  no: the first thing that is wrong is named
  2  the question could not be answered (arguments, trust file, folder)";

/// Says whether a sealed journal is whole: from its files alone, offline.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct VerifyArgs {
    /// The data folder: the one that holds `journal` and `anchor`. Nothing in it is changed
    #[arg(value_name = "DATA_FOLDER")]
    pub data: PathBuf,
    /// Your own trust file: the origin, its key, and the checkpoint you saw last
    #[arg(long, value_name = "FILE")]
    pub trust: PathBuf,
    /// A folder with segments that were moved away; may be given more than once
    #[arg(long = "archive", value_name = "DIR")]
    pub archives: Vec<PathBuf>,
    /// How many threads to use [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Print one JSON object instead of a receipt
    #[arg(long)]
    pub json: bool,
    /// If the answer is yes, write a trust file that remembers the newest checkpoint; may be the same file
    #[arg(long, value_name = "FILE")]
    pub update_trust: Option<PathBuf>,
}

/// Why the question could not be answered, and what to do.
struct Unanswered(String);

/// Verifies, prints the answer, and returns the exit code.
pub fn run(args: &VerifyArgs) -> u8 {
    match answer(args) {
        Ok(code) => code,
        Err(Unanswered(sentence)) => {
            if args.json {
                print_json(&json!({ "verdict": "error", "sentence": sentence }));
            }
            complain(&sentence);
            EXIT_USAGE
        }
    }
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
                true => print_json(&report_json(&report)),
                false => print(&receipt(&report, colours)),
            }
            match &args.update_trust {
                Some(path) => Ok(update_trust(path, &report, &options.trust)),
                None => Ok(EXIT_YES),
            }
        }
        Err(failure) if failure.is_unreadable() => {
            let what = failure.file.as_ref().unwrap_or(&args.data).display();
            let why = &failure.why;
            Err(Unanswered(format!("{what}: {why}; check the path and that you may read it, or verify a copy")))
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

fn read_trust(path: &Path) -> Result<Trust, Unanswered> {
    let shown = path.display();
    let read = fs::metadata(path).and_then(|metadata| match metadata.is_file() && metadata.len() <= TRUST_BYTES_MAX {
        true => fs::read_to_string(path),
        false => Err(io::Error::other("not a file of a sensible size")),
    });
    let text = read.map_err(|error| {
        let advice =
            "get it from the operator over another channel than the journal (`leasehold audit trust` prints one)";
        Unanswered(format!("the trust file {shown} cannot be read: {error}; {advice}"))
    })?;
    Trust::parse(&text).map_err(|error| Unanswered(format!("the trust file {shown} is not in order: {error}")))
}

/// What lies at `path` is only replaced by something newer of its kind.
fn check_may_replace(path: &Path, trust: &Trust) -> Result<(), Unanswered> {
    if !path.try_exists().map_err(|error| Unanswered(format!("{}: {error}", path.display())))? {
        return Ok(());
    }
    let there = read_trust(path)?;
    let size = |trust: &Trust| trust.pinned().map_or(0, |pinned| pinned.checkpoint.size());
    let sentence = if there.origin() != trust.origin() {
        format!("{} is about {:?}; name another file for --update-trust", path.display(), there.origin())
    } else if size(&there) > size(trust) {
        format!("{} remembers a newer checkpoint; verify with --trust {0}", path.display())
    } else {
        return Ok(());
    };
    Err(Unanswered(sentence))
}

/// Replaces the file whole or not at all. The answer is out already, so that a failure here only adds a sentence.
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
    // It may never have been made.
    let _ = fs::remove_file(&temporary);
    let shown = path.display();
    complain(&format!("the trust file {shown} could not be written: {error}; what it held before still counts"));
    EXIT_USAGE
}

/// Nothing can be done where stderr is gone.
fn complain(sentence: &str) {
    let _ = writeln!(io::stderr(), "error: {sentence}");
}

fn print_json(value: &Value) {
    print(&format!("{value:#}\n"));
}

/// A reader that went away has seen enough.
fn print(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}
