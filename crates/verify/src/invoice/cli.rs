//! `leasehold-verify invoice FILE`.

use super::text::{judged_json, receipt, refusal, refusal_json};
use super::{NoProof, verify_invoice};
use crate::cli::{EXIT_NO, EXIT_YES, Unanswered, bad_trust, print, print_json, trust_text, unanswered};
use crate::receipt::Colours;
use crate::trust::{Trust, TrustError};
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

const AFTER_HELP: &str = "\
Examples:
  leasehold-verify invoice INV-000012.proof --trust my.trust
  leasehold-verify invoice INV-000012.proof --trust my.trust --with INV-000011.proof

`leasehold invoice prove` writes the file. Nothing else is needed: neither the
daemon nor a network. The answer says what is proved, and what is not.

Exit codes:
  0  yes: the invoice follows from records that the operator signed for
  3  no: the report says which line is wrong, or why the file proves nothing
  2  the question could not be answered (arguments, trust file, file)";

/// Check an invoice from its proof file, line by line
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct InvoiceArgs {
    /// Proof file, written by `leasehold invoice prove`
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Your own trust file: the origin, its key, and the last checkpoint you verified
    #[arg(long, value_name = "FILE")]
    pub trust: PathBuf,
    /// Proof file of an earlier invoice, to check that both fit together; may be given more than once
    #[arg(long, value_name = "EARLIER_FILE")]
    pub with: Vec<PathBuf>,
    /// Print the report as a JSON object
    #[arg(long)]
    pub json: bool,
}

/// Checks the invoice, prints the result, and returns the exit code.
pub fn run(args: &InvoiceArgs) -> u8 {
    answer(args).unwrap_or_else(|why| unanswered(&why, args.json))
}

fn answer(args: &InvoiceArgs) -> Result<u8, Unanswered> {
    let trust = trust_text(&args.trust)?;
    let file = read(&args.file)?;
    let earlier = args.with.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let colours = Colours(!args.json && io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    // Without a key no signature counts, which is as good an answer as one of an unknown key.
    let judged = match Trust::parse(&trust) {
        Ok(trust) => verify_invoice(&file, &earlier, &trust),
        Err(TrustError::NoKey) => Err((0, NoProof::NoKey)),
        Err(error) => return Err(bad_trust(&args.trust, &error)),
    };
    match judged {
        Ok(judged) => {
            match args.json {
                true => print_json(&judged_json(&judged)),
                false => print(&receipt(&judged, colours)),
            }
            Ok(if judged.is_proved() { EXIT_YES } else { EXIT_NO })
        }
        Err((at, why)) => {
            let path = at.checked_sub(1).map_or(&args.file, |earlier| &args.with[earlier]).display().to_string();
            match args.json {
                true => print_json(&refusal_json(&path, &why)),
                false => print(&refusal(&path, &why, colours)),
            }
            Ok(EXIT_NO)
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Unanswered> {
    let read = fs::metadata(path).and_then(|metadata| match metadata.is_file() {
        true => fs::read(path),
        false => Err(io::Error::other("not a regular file")),
    });
    read.map_err(|error| Unanswered(format!("{} cannot be read: {error}", path.display())))
}
