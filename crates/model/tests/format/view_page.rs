//! The examples in `docs/reference/json-view.md` are what the view really shows.
//!
//! A line `<!-- shown: KIND -->` on the page stands before the record of that kind in the story.
//! After a change run the test with `UPDATE_EXPECT=1`, and read what became of the page.

use crate::story::{records, show};
use serde_json::Value;
use std::path::Path;

const WIDTH: usize = 116;

/// Lays a value out for a reader: what fits a line stays on it, small fields share one.
fn lay_out(value: &Value, indent: usize) -> String {
    let compact = one_line(value);
    if indent + compact.len() <= WIDTH {
        return compact;
    }
    let inner = indent + 2;
    let (open, close, items): (_, _, Vec<(bool, String)>) = match value {
        Value::Object(fields) => {
            ("{", "}", fields.iter().map(|(key, value)| lay_out_field(key, value, inner)).collect())
        }
        Value::Array(items) => ("[", "]", items.iter().map(|item| (true, lay_out(item, inner))).collect()),
        _ => return compact,
    };
    let margin = " ".repeat(inner);
    let mut text = format!("{open}\n{margin}");
    let mut column = inner;
    let last = items.len() - 1;
    let mut alone = true;
    for (i, (wants_line, item)) in items.into_iter().enumerate() {
        let comma = if i < last { "," } else { "" };
        let fits = column + item.len() + 2 <= WIDTH;
        if i > 0 && (wants_line || alone || !fits) {
            text.push_str(&format!("\n{margin}"));
            column = inner;
        } else if i > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(&item);
        text.push_str(comma);
        column += item.len() + 1;
        alone = wants_line;
    }
    format!("{text}\n{}{close}", " ".repeat(indent))
}

/// A field, and whether it is large enough to want lines of its own.
fn lay_out_field(key: &str, value: &Value, indent: usize) -> (bool, String) {
    let text = format!("{}: {}", Value::from(key), lay_out(value, indent + key.len() + 4));
    let text = if text.contains('\n') { format!("{}: {}", Value::from(key), lay_out(value, indent)) } else { text };
    (value.is_object() && text.len() > 40 || text.contains('\n'), text)
}

fn one_line(value: &Value) -> String {
    match value {
        Value::Object(fields) if fields.is_empty() => "{}".into(),
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), one_line(value)))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(one_line).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

/// The page with every example replaced by what the view shows.
fn fill_in(page: &str) -> String {
    let story = show(&records());
    let example = |kind: &str| {
        let found = story.iter().find(|shown| shown["kind"] == kind);
        lay_out(found.unwrap_or_else(|| panic!("the story has no record of kind {kind}")), 0)
    };
    let mut filled = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        filled.push_str(&format!("{line}\n"));
        if let Some(kind) = line.strip_prefix("<!-- shown: ").and_then(|rest| rest.strip_suffix(" -->")) {
            assert_eq!(lines.next(), Some("```json"), "after {line}");
            lines.find(|line| *line == "```").expect("the example ends");
            filled.push_str(&format!("```json\n{}\n```\n", example(kind)));
        }
    }
    filled
}

#[test]
fn the_page_shows_what_the_view_shows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/json-view.md");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    assert!(page.contains("<!-- shown: lease.granted -->"), "the page has lost its examples");
    expect_test::expect_file![path].assert_eq(&fill_in(&page));
}

#[test]
fn laying_out_changes_nothing() {
    for shown in show(&records()) {
        let again: Value = serde_json::from_str(&lay_out(&shown, 0)).expect("JSON");
        assert_eq!(again, shown);
    }
}
