//! `leasehold config`: checks the daemon's configuration file, or prints an example.

use crate::cli::config::{CheckArgs, ConfigCommand};
use crate::output;
use crate::problem::{EXIT_OK, EXIT_REFUSED, Problem};
use crate::term;
use leasehold_server::config::{Config, EXAMPLE, LoadError};
use serde_json::{Value, json};

pub(crate) fn run(command: &ConfigCommand) -> Result<u8, Problem> {
    match command {
        ConfigCommand::Example => output::print(EXAMPLE).map(|()| EXIT_OK),
        ConfigCommand::Check(args) => check(args),
    }
}

fn check(args: &CheckArgs) -> Result<u8, Problem> {
    let file = args.file.display();
    let problems = match Config::load(&args.file) {
        Err(error) if !args.json => return Err(Problem::told(error.code(), &error)),
        Err(error) => vec![unreadable(&error)],
        Ok(config) => {
            let problems = config.check().err().map(|problems| problems.0).unwrap_or_default();
            if !args.json {
                for problem in &problems {
                    term::say(&format!("leasehold: {file}: {problem} (config_wrong)\n"));
                }
            }
            problems.iter().map(|p| json!({ "key": p.key, "what": p.what, "advice": p.advice })).collect()
        }
    };
    let fine = problems.is_empty();
    if args.json {
        output::print_json(&json!({ "file": file.to_string(), "ok": fine, "problems": problems }))?;
    } else if fine {
        term::say(&format!("{file}: the configuration is valid\n"));
    }
    Ok(if fine { EXIT_OK } else { EXIT_REFUSED })
}

fn unreadable(error: &LoadError) -> Value {
    match error {
        LoadError::Unreadable { why, .. } => json!({ "what": why }),
        LoadError::Wrong { line, what, advice, .. } => json!({ "line": line, "what": what, "advice": advice }),
    }
}
