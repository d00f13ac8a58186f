//! Reports an invalid command line.

use crate::problem::{EXIT_OK, EXIT_USAGE};
use crate::term;
use clap::error::ErrorKind;

/// Prints the requested help, or the error; returns the exit code.
pub fn report(program: &str, error: &clap::Error) -> u8 {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // The reader may have closed the pipe.
        let _ = error.print();
        return EXIT_OK;
    }
    let text = error.render().to_string();
    match text.strip_prefix("error: ") {
        Some(rest) => {
            let (what, rest) = rest.split_once('\n').unwrap_or((rest, ""));
            let (what, colon) = what.strip_suffix(':').map_or((what, ""), |what| (what, ":"));
            term::say(&format!("{program}: {what} (usage){colon}\n{rest}"));
        }
        None => term::say(&text),
    }
    EXIT_USAGE
}
