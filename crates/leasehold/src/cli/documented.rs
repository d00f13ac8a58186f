//! Tests that every command shown in the documentation and in help texts parses.

use super::{Cli, join_negative_values};
use clap::Parser;
use clap::error::ErrorKind;
use leasehold_tidy::{check_allowed, code_blocks, files, inline_code, read};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Splits a line into words as a shell does, up to a comment, a pipe, a redirection or the next command.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, begun) = (Some(c), true),
            (None, '#') if word.is_empty() && !begun => break,
            (None, '|' | '>' | '<' | '&' | ';') => break,
            (None, c) if c.is_whitespace() => {
                if begun || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (None, c) => word.push(c),
        }
    }
    if begun || !word.is_empty() {
        words.push(word);
    }
    words
}

/// The commands of a block: one per line or several joined by `&&`; a backslash continues a line.
fn commands(block: &str) -> Vec<Vec<String>> {
    let joined = block.replace("\\\n", " ");
    let lines = joined.lines().flat_map(|line| line.split("&&")).map(|line| line.trim().trim_start_matches("$ "));
    lines.filter(|line| line.starts_with("leasehold ")).map(words).collect()
}

/// Why the command line does not parse; `None` if it does, or if it asks for help.
fn mistake(words: &[String]) -> Option<String> {
    match Cli::try_parse_from(join_negative_values(words.iter().map(OsString::from))) {
        Ok(_) => None,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => None,
        Err(error) => Some(error.to_string().lines().next().unwrap_or("").to_owned()),
    }
}

#[test]
fn commands_in_code_blocks_can_be_typed() {
    let (mut wrong, mut checked) = (BTreeMap::new(), 0);
    for page in files("md") {
        for block in code_blocks(&read(&page)) {
            for words in commands(&block.text) {
                checked += 1;
                if let Some(why) = mistake(&words) {
                    println!("{page}, block at line {}: {}\n    {why}", block.line, words.join(" "));
                    *wrong.entry(page.clone()).or_insert(0) += 1;
                }
            }
        }
    }
    assert!(checked > 100, "only {checked} commands were found");
    check_allowed("commands", &wrong, "the commands above do not parse");
}

/// A command that is named in prose exists, and so do its options. Required arguments may be missing there.
#[test]
fn commands_in_prose_exist() {
    let (mut wrong, mut checked) = (BTreeMap::new(), 0);
    for page in files("md") {
        for (line, code) in inline_code(&read(&page)) {
            // One text in the journal format begins like a command.
            if !code.starts_with("leasehold ") || code.contains('\\') {
                continue;
            }
            checked += 1;
            // Skip placeholders and choices.
            let named = words(&code).into_iter().filter(|word| !word.contains(['…', '[', '{']) && word != "...");
            let parsed = Cli::try_parse_from(join_negative_values(named.map(OsString::from)));
            let unknown =
                |error: &clap::Error| matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand);
            if let Some(why) = parsed.err().filter(unknown) {
                println!("{page}:{line}: {code}\n{why}");
                *wrong.entry(page.clone()).or_insert(0) += 1;
            }
        }
    }
    assert!(checked > 50, "only {checked} commands were found");
    check_allowed("commands-in-prose", &wrong, "the commands above do not exist");
}

/// The examples at the end of each command's own help.
#[test]
fn commands_in_help_can_be_typed() {
    use clap::CommandFactory;
    fn walk(command: &clap::Command, wrong: &mut Vec<String>, checked: &mut usize) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in help.lines().map(str::trim).filter(|line| line.starts_with("leasehold ")) {
            *checked += 1;
            // An explanation may follow after at least two spaces.
            let line = line.split("  ").next().unwrap_or(line);
            wrong.extend(mistake(&words(line)).map(|why| format!("{line}\n    {why}")));
        }
        command.get_subcommands().for_each(|inner| walk(inner, wrong, checked));
    }
    let (mut wrong, mut checked) = (Vec::new(), 0);
    walk(&Cli::command(), &mut wrong, &mut checked);
    assert!(checked > 20, "only {checked} examples were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
