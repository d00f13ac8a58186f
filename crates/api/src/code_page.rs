//! The codes of problems with their explanations. `docs/reference/codes.md` declares them, once for the reference page,
//! the OpenAPI document and the daemon's own pages; tests compare it with the engine's refusals and with `codes.rs`.

use serde::Serialize;
use std::collections::BTreeMap;

const REFERENCE: &str = include_str!("../../../docs/reference/codes.md");

/// The parts of the reference page that list codes of HTTP answers.
const SECTIONS: [&str; 2] = ["Requests", "Over HTTP"];

/// What one code means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CodePage {
    /// Why a request is answered with it, in Markdown.
    pub cause: String,
    /// What to do about it, in Markdown.
    pub what_to_do: String,
}

/// Every code that a problem can have, with its page.
pub fn code_pages() -> BTreeMap<&'static str, CodePage> {
    let mut pages: BTreeMap<&str, CodePage> = BTreeMap::new();
    for section in REFERENCE.split("\n## ") {
        if !SECTIONS.iter().any(|name| section.lines().next() == Some(name)) {
            continue;
        }
        for row in section.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            // With a status in the second column, the words begin in the third.
            let words = if cells.get(1).is_some_and(|cell| cell.parse::<u16>().is_ok()) { 2 } else { 1 };
            for code in cells[0].split(", ").map(|code| code.trim_matches('`')) {
                let page = pages.entry(code).or_default();
                add(&mut page.cause, cells.get(words));
                add(&mut page.what_to_do, cells.get(words + 1));
            }
        }
    }
    pages
}

/// A code that both the engine and the HTTP layer use has two rows.
fn add(to: &mut String, text: Option<&&str>) {
    let text = text.copied().unwrap_or_default();
    if !to.contains(text) {
        to.push_str(if to.is_empty() { "" } else { " " });
        to.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_says_why_and_what_to_do() {
        let pages = code_pages();
        assert!(pages.len() > 150, "{} codes", pages.len());
        for (code, page) in &pages {
            assert!(code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{code}");
            assert!(page.cause.ends_with('.') && page.what_to_do.ends_with('.'), "{code}: {page:?}");
        }
        for (code, _) in crate::codes::ALL {
            assert!(pages.contains_key(code.code), "{}", code.code);
        }
        assert!(!pages.contains_key("journal_in_use"), "a code of the start is not one of a request");
    }
}
