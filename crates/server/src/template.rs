//! Templates of pages that a site can replace: text with places for values.
//!
//! `{{name}}` is replaced by a value, which is always escaped for HTML. `{{#name}} … {{/name}}` is repeated for each
//! item of a list, and shown once for any other value that is not empty; `{{^name}} … {{/name}}` is shown if the value
//! is empty. Inside, names are looked up in the item first and then outside of it; `{{.}}` is the item itself.
//! `{{! … }}` is a comment. This is a small part of Mustache: there is no logic, no way to insert unescaped text, and
//! no access to files. Names that do not exist are refused when the template is read.

use serde_json::Value;
use std::fmt;

/// A template that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(String),
    Section { name: String, if_empty: bool, parts: Vec<Part> },
}

/// Why a template cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadTemplate {
    line: usize,
    what: String,
}

impl fmt::Display for BadTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}
impl std::error::Error for BadTemplate {}

/// The longest template.
pub(crate) const BYTES_MAX: usize = 1 << 20;
/// Sections within sections.
const DEPTH_MAX: usize = 8;

struct Parser<'t> {
    rest: &'t str,
    line: usize,
    known: &'t [&'t str],
}

impl Parser<'_> {
    fn bad(&self, what: impl Into<String>) -> BadTemplate {
        BadTemplate { line: self.line, what: what.into() }
    }

    fn check(&self, name: &str) -> Result<(), BadTemplate> {
        if name == "." || self.known.contains(&name) {
            return Ok(());
        }
        let scored = self.known.iter().map(|known| (strsim::jaro_winkler(known, name), known));
        let nearest = scored.filter(|(score, _)| *score > 0.75).max_by(|a, b| a.0.total_cmp(&b.0));
        let hint = nearest.map_or_else(String::new, |(_, known)| format!("; did you mean `{known}`?"));
        Err(self.bad(format!("there is no value `{name}`{hint}")))
    }

    /// The parts up to the end of the section, or of the text.
    fn parts(&mut self, section: Option<&str>, depth: usize) -> Result<Vec<Part>, BadTemplate> {
        if depth > DEPTH_MAX {
            return Err(self.bad(format!("more than {DEPTH_MAX} sections are inside each other")));
        }
        let mut parts = Vec::new();
        loop {
            let Some((text, after)) = self.rest.split_once("{{") else {
                if let Some(name) = section {
                    return Err(self.bad(format!("the section `{name}` is not closed")));
                }
                parts.push(Part::Text(self.rest.to_owned()));
                return Ok(parts);
            };
            self.line += text.matches('\n').count();
            if !text.is_empty() {
                parts.push(Part::Text(text.to_owned()));
            }
            let Some((tag, rest)) = after.split_once("}}") else {
                return Err(self.bad("`{{` is not closed by `}}`"));
            };
            self.line += tag.matches('\n').count();
            self.rest = rest;
            let tag = tag.trim();
            match tag.chars().next() {
                Some('!') => {}
                Some('/') => {
                    let name = tag[1..].trim();
                    if section != Some(name) {
                        return Err(self.bad(format!("`{{{{/{name}}}}}` closes no section")));
                    }
                    return Ok(parts);
                }
                Some(sign @ ('#' | '^')) => {
                    let name = tag[1..].trim();
                    self.check(name)?;
                    let inside = self.parts(Some(name), depth + 1)?;
                    parts.push(Part::Section { name: name.to_owned(), if_empty: sign == '^', parts: inside });
                }
                _ => {
                    self.check(tag)?;
                    parts.push(Part::Value(tag.to_owned()));
                }
            }
        }
    }
}

impl Template {
    /// Reads a template. `known` are the names that it may use.
    pub(crate) fn parse(text: &str, known: &[&str]) -> Result<Self, BadTemplate> {
        let mut parser = Parser { rest: text, line: 1, known };
        if text.len() > BYTES_MAX {
            return Err(parser.bad(format!("the template is longer than {BYTES_MAX} bytes")));
        }
        parser.parts(None, 0).map(Self)
    }

    /// The page for these values.
    pub(crate) fn render(&self, values: &Value) -> String {
        let mut out = String::new();
        write(&self.0, &mut vec![values], &mut out);
        out
    }
}

fn look_up<'v>(scopes: &[&'v Value], name: &str) -> &'v Value {
    if name == "." {
        return scopes.last().copied().unwrap_or(&Value::Null);
    }
    scopes.iter().rev().find_map(|scope| scope.get(name)).unwrap_or(&Value::Null)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn write(parts: &[Part], scopes: &mut Vec<&Value>, out: &mut String) {
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Value(name) => match look_up(scopes, name) {
                Value::Null => {}
                Value::String(text) => escape(text, out),
                other => escape(&other.to_string(), out),
            },
            Part::Section { name, if_empty: true, parts } => {
                if is_empty(look_up(scopes, name)) {
                    write(parts, scopes, out);
                }
            }
            Part::Section { name, if_empty: false, parts } => {
                let value = look_up(scopes, name);
                let items = match value {
                    Value::Array(items) => items.as_slice(),
                    value if is_empty(value) => &[],
                    value => std::slice::from_ref(value),
                };
                for item in items {
                    scopes.push(item);
                    write(parts, scopes, out);
                    scopes.pop();
                }
            }
        }
    }
}

/// Text as HTML, also inside attributes.
pub(crate) fn escape(text: &str, out: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const KNOWN: &[&str] = &["name", "lines", "amount", "note"];

    fn render(template: &str, values: &Value) -> String {
        Template::parse(template, KNOWN).expect("valid").render(values)
    }

    #[test]
    fn values_are_inserted_and_always_escaped() {
        let values = json!({ "name": "<b>\"A\" & 'B'</b>", "amount": 7 });
        assert_eq!(
            render("{{ name }}: {{amount}}{{note}}", &values),
            "&lt;b&gt;&quot;A&quot; &amp; &#39;B&#39;&lt;/b&gt;: 7"
        );
    }

    #[test]
    fn sections_repeat_lists_and_show_what_is_not_empty() {
        let values = json!({ "name": "x", "lines": [{ "amount": "1" }, { "amount": "2", "name": "y" }], "note": "" });
        assert_eq!(render("{{#lines}}{{name}}={{amount}};{{/lines}}", &values), "x=1;y=2;");
        assert_eq!(render("{{#note}}has{{/note}}{{^note}}none{{/note}}{{! ignored }}", &values), "none");
        assert_eq!(render("{{#lines}}{{.}}|{{/lines}}", &json!({ "lines": ["a", "<"] })), "a|&lt;|");
        assert_eq!(render("{{#name}}[{{.}}]{{/name}}", &values), "[x]");
    }

    #[test]
    fn mistakes_are_found_when_the_template_is_read() {
        for (template, why) in [
            ("a\n{{nmae}}", "line 2: there is no value `nmae`; did you mean `name`?"),
            ("{{#lines}}\n\n{{name}}", "line 1: the section `lines` is not closed"),
            ("{{/lines}}", "line 1: `{{/lines}}` closes no section"),
            ("{{#lines}}{{/name}}", "line 1: `{{/name}}` closes no section"),
            ("{{name", "line 1: `{{` is not closed by `}}`"),
        ] {
            let found = Template::parse(template, KNOWN).expect_err("a mistake").to_string();
            assert!(found.ends_with(&why[why.find(": ").unwrap_or(0)..]), "{found}");
        }
        let deep = "{{#name}}".repeat(9) + &"{{/name}}".repeat(9);
        assert!(Template::parse(&deep, KNOWN).is_err());
    }
}
