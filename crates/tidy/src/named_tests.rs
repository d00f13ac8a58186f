//! Tables of proofs: pages that map statements to the tests that show them to hold.
//!
//! A page that says "Tests are named by file and function" is such a page. It abbreviates folders ("`http` is
//! `crates/server/tests/http`"), and the last cell of a row names tests: a file, and then functions in it. A name may end
//! in `…` if what is left of it is clear.

use crate::markdown::prose;
use std::collections::BTreeMap;

/// The sentence by which a page says that it has a table of proofs.
const MARK: &str = "Tests are named by file and function";

/// A test that a page names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTest {
    pub line: usize,
    /// The file from the root; none if the row names a function before any file.
    pub file: Option<String>,
    /// The function; none if the row names the file as a whole.
    pub function: Option<String>,
}

/// The tests that a page names; none if the page has no table of proofs.
pub fn named_tests(page: &str) -> Option<Vec<NamedTest>> {
    let lines = prose(page);
    let whole: String = lines.iter().map(|(_, line)| format!("{line} ")).collect();
    whole.contains(MARK).then(|| {
        let folders = folders(&whole);
        let rows = lines.into_iter().filter(|(_, line)| line.starts_with('|'));
        rows.flat_map(|(line, row)| tests_of(line, last_cell(row), &folders)).collect()
    })
}

/// "`http` is `crates/server/tests/http`" gives a folder a short name.
fn folders(text: &str) -> BTreeMap<String, String> {
    let parts: Vec<&str> = text.split('`').collect();
    let named = parts.windows(3).filter(|window| window[1] == " is " && window[2].contains("/tests/"));
    named.map(|window| (window[0].to_owned(), window[2].to_owned())).collect()
}

fn last_cell(row: &str) -> &str {
    row.trim_end().trim_end_matches('|').rsplit('|').next().unwrap_or_default()
}

fn tests_of(line: usize, cell: &str, folders: &BTreeMap<String, String>) -> Vec<NamedTest> {
    let (mut found, mut file) = (Vec::new(), None);
    let parts: Vec<&str> = cell.split('`').collect();
    for pair in parts.chunks_exact(2) {
        let (before, code) = (pair[0], pair[1]);
        if code.ends_with(".rs") {
            let word = before.split_whitespace().last().map(|word| word.trim_start_matches('('));
            let short = word.and_then(|word| folders.get(word));
            file = Some(short.map_or_else(|| code.to_owned(), |folder| format!("{folder}/{code}")));
            found.push(NamedTest { line, file: file.clone(), function: None });
        } else if is_function(code) {
            found.push(NamedTest { line, file: file.clone(), function: Some(code.to_owned()) });
        }
    }
    found
}

/// Tests have names of several words.
fn is_function(code: &str) -> bool {
    let name = code.trim_end_matches('…');
    name.contains('_') && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// The tests of a source file: the functions that follow an attribute such as `#[test]` or `#[tokio::test]`.
pub fn tests_in(source: &str) -> Vec<&str> {
    let (mut found, mut is_test) = (Vec::new(), false);
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(rest) = line.trim_start_matches("async ").strip_prefix("fn ") {
            if is_test {
                found.extend(rest.split(['(', '<']).next());
            }
            is_test = false;
        }
    }
    found
}

impl NamedTest {
    /// What is wrong with it, given the source of its file, if there is such a file.
    pub fn wrong(&self, source: Option<&str>) -> Option<String> {
        let Some(file) = &self.file else {
            return Some(format!("no file is named before {}", self.function.as_deref().unwrap_or_default()));
        };
        let Some(source) = source else { return Some(format!("there is no {file}")) };
        let function = self.function.as_ref()?;
        let all = tests_in(source);
        let meant = match function.strip_suffix('…') {
            Some(beginning) => all.iter().filter(|name| name.starts_with(beginning)).count(),
            None => all.iter().filter(|name| *name == function).count(),
        };
        match meant {
            1 => None,
            0 => Some(format!("{file} has no test {function}")),
            several => Some(format!("{file} has {several} tests that {function} may mean")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{named_tests, tests_in};

    const PAGE: &str = "# Proofs\n\nTests are named by file and function: `http` is\n`crates/server/tests/http`.\n\n\
        | statement | proved by |\n|---|---|\n\
        | `usage_source` is stated | http `one.rs`: `it_is_stated`, `it_is_al…`; `no_such_test` |\n\
        | it works | `crates/x/tests/two.rs` |\n| it shines | `it_shines` |\n";
    const ONE: &str = "#[test]\nfn it_is_stated() {}\n\n#[tokio::test(flavor = \"multi_thread\")]\nasync fn it_is_also() {}\n\
        fn no_such_test() {}\n";

    #[test]
    fn what_a_page_names_is_looked_for() {
        assert_eq!(tests_in(ONE), ["it_is_stated", "it_is_also"]);
        assert_eq!(named_tests("no such sentence"), None);
        let wrong: Vec<String> = named_tests(PAGE)
            .expect("a table of proofs")
            .iter()
            .filter_map(|test| {
                let is_there = test.file.as_deref() == Some("crates/server/tests/http/one.rs");
                Some(format!("{}: {}", test.line, test.wrong(is_there.then_some(ONE))?))
            })
            .collect();
        let expected = [
            "8: crates/server/tests/http/one.rs has no test no_such_test",
            "9: there is no crates/x/tests/two.rs",
            "10: no file is named before it_shines",
        ];
        assert_eq!(wrong, expected);
    }
}
