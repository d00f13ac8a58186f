//! A minimal parser of Markdown: prose, code, links, and the headings that links may point at.

use std::collections::{BTreeMap, BTreeSet};

/// Maximum width of a line of prose.
const WIDTH_MAX: usize = 120;

/// A fenced block of code, by the number of its first line.
pub struct Fenced {
    pub line: usize,
    pub text: String,
}

/// Walks over the lines, each with its number and whether it is inside a fence.
fn lines(text: &str) -> Vec<(usize, &str, bool)> {
    let mut fenced = false;
    let mut out = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        out.push((number + 1, line, fenced || fence));
        if fence {
            fenced = !fenced;
        }
    }
    out
}

/// The lines outside fences.
pub fn prose(text: &str) -> Vec<(usize, &str)> {
    lines(text).into_iter().filter(|(.., fenced)| !fenced).map(|(number, line, _)| (number, line)).collect()
}

pub fn code_blocks(text: &str) -> Vec<Fenced> {
    let mut blocks: Vec<Fenced> = Vec::new();
    let mut open = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            open = !open;
            if open {
                blocks.push(Fenced { line: number + 2, text: String::new() });
            }
        } else if open {
            let block = blocks.last_mut().expect("the open block");
            block.text.push_str(line);
            block.text.push('\n');
        }
    }
    blocks
}

/// Whether a line of prose is too wide. Rows of tables and targets of links cannot be wrapped and do not count.
pub fn is_too_long(line: &str) -> bool {
    if line.trim_start().starts_with('|') || line.chars().count() <= WIDTH_MAX {
        return false;
    }
    let mut rest = line.to_owned();
    for target in targets(line) {
        rest = rest.replacen(&format!("]({target})"), "]", 1);
    }
    let bare = |word: &&str| word.starts_with("http://") || word.starts_with("https://") || word.starts_with("<http");
    let urls: usize = rest.split_whitespace().filter(bare).map(|word| word.chars().count()).sum();
    rest.chars().count() - urls > WIDTH_MAX
}

fn targets(line: &str) -> Vec<&str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target).collect()
}

/// Every `[text](target)` outside code, with its line.
pub fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let without_code: String =
            line.split('`').enumerate().filter(|(place, _)| place % 2 == 0).map(|(_, part)| part).collect();
        found.extend(targets(&without_code).into_iter().map(|target| (number, target.to_owned())));
    }
    found
}

/// Every `code` within a line of prose, with its line.
pub fn inline_code(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let parts: Vec<&str> = line.split('`').collect();
        let codes = parts.iter().enumerate().filter(|(place, _)| place % 2 == 1 && place + 1 < parts.len());
        found.extend(codes.map(|(_, code)| (number, (*code).to_owned())));
    }
    found
}

/// The anchors that a page has, made from its headings as GitHub makes them, and those written as HTML.
pub fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for (_, line) in prose(text) {
        for part in line.split("<a id=\"").skip(1).chain(line.split("<a name=\"").skip(1)) {
            found.extend(part.split('"').next().map(str::to_owned));
        }
        let level = line.chars().take_while(|c| *c == '#').count();
        if !(1..=6).contains(&level) || !line[level..].starts_with(' ') {
            continue;
        }
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
        let mut heading = line[level..].trim().to_owned();
        for target in targets(line) {
            heading = heading.replacen(&format!("]({target})"), "]", 1);
        }
        let slug: String = heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-");
        let times = seen.entry(slug.clone()).or_insert(0);
        found.insert(if *times == 0 { slug } else { format!("{slug}-{times}") });
        *times += 1;
    }
    found
}
