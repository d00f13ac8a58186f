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
    let (config, mistakes) = match std::fs::read_to_string(&args.file) {
        Ok(text) => Config::parse_all(&text, &args.file),
        Err(error) => (None, vec![LoadError::Unreadable { file: args.file.clone(), why: error.to_string() }]),
    };
    // The values of entries that could be read are checked as well.
    let checked = config.and_then(|config| config.check().err()).map(|problems| problems.0).unwrap_or_default();
    if !args.json {
        for mistake in &mistakes {
            term::say(&format!("leasehold: {}\n", Problem::told(mistake.code(), mistake)));
        }
        for problem in &checked {
            term::say(&format!("leasehold: {file}: {problem} (config_wrong)\n"));
        }
    }
    let checked = checked.iter().map(|p| json!({ "key": p.key, "what": p.what, "advice": p.advice }));
    let problems: Vec<Value> = mistakes.iter().map(unreadable).chain(checked).collect();
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
