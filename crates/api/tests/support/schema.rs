//! Checks JSON against the schemas of the OpenAPI document, for tests only.
//!
//! It knows the keywords that our document uses and panics at any other, so that a new one cannot pass unchecked. It is
//! stricter than JSON Schema in one way: a member that no schema declares is an error, because an answer should not
//! contain what the document does not describe.

use regex_lite::Regex;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

pub(crate) struct Schemas {
    document: Value,
    patterns: Mutex<BTreeMap<String, Regex>>,
}

/// The members of an object that a schema knows.
#[derive(Default)]
struct Known {
    all: bool,
    names: BTreeSet<String>,
}

impl Known {
    fn add(&mut self, other: Self) {
        self.all |= other.all;
        self.names.extend(other.names);
    }
}

/// Keywords that say nothing about which values are valid.
const WORDS: [&str; 8] =
    ["description", "title", "default", "examples", "format", "discriminator", "writeOnly", "deprecated"];

impl Schemas {
    pub(crate) fn new(document: Value) -> Self {
        Self { document, patterns: Mutex::default() }
    }

    pub(crate) fn document(&self) -> &Value {
        &self.document
    }

    /// Whether the value is what the schema describes; otherwise where and why it is not.
    pub(crate) fn check(&self, schema: &Value, value: &Value) -> Result<(), String> {
        self.at(schema, value, "$")
    }

    fn at(&self, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
        let known = self.parts(schema, value, path)?;
        let members = value.as_object().into_iter().flatten();
        match members.map(|(name, _)| name).find(|name| !known.all && !known.names.contains(*name)) {
            Some(name) => Err(format!("{path}.{name} is not declared")),
            None => Ok(()),
        }
    }

    /// As `at`, but members that this schema does not know may be known to another one beside it.
    fn parts(&self, schema: &Value, value: &Value, path: &str) -> Result<Known, String> {
        let schema = match schema {
            Value::Bool(true) => return Ok(Known { all: true, ..Known::default() }),
            Value::Object(schema) => schema,
            other => return Err(format!("{path}: {other} is no schema")),
        };
        let mut known = Known::default();
        if !["$ref", "properties", "allOf", "anyOf", "oneOf"].iter().any(|keyword| schema.contains_key(*keyword)) {
            known.all = !schema.contains_key("additionalProperties");
        }
        for (keyword, of) in schema {
            let wrong = || Err(format!("{path}: {value} is not {keyword} {of}"));
            match keyword.as_str() {
                "$ref" => known.add(self.parts(self.resolve(of), value, path)?),
                "type" if !has_type(of, value) => return wrong(),
                "const" if of != value => return wrong(),
                "enum" if !of.as_array().is_some_and(|words| words.contains(value)) => return wrong(),
                "pattern" if value.as_str().is_some_and(|text| !self.matches(of, text)) => return wrong(),
                "minimum" if value.as_f64() < of.as_f64() && value.is_number() => return wrong(),
                "maximum" if value.as_f64() > of.as_f64() && value.is_number() => return wrong(),
                "minLength" if value.as_str().is_some_and(|text| length(text) < of.as_u64()) => return wrong(),
                "maxLength" if value.as_str().is_some_and(|text| length(text) > of.as_u64()) => return wrong(),
                "minItems" if value.as_array().is_some_and(|items| items.len() < count(of)) => return wrong(),
                "maxItems" if value.as_array().is_some_and(|items| items.len() > count(of)) => return wrong(),
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.at(of, item, &format!("{path}[{index}]"))?;
                    }
                }
                "required" => {
                    for name in of.as_array().into_iter().flatten().filter_map(Value::as_str) {
                        if value.as_object().is_some_and(|members| !members.contains_key(name)) {
                            return Err(format!("{path}.{name} is missing"));
                        }
                    }
                }
                "properties" | "additionalProperties" => {}
                "allOf" => {
                    for part in of.as_array().into_iter().flatten() {
                        known.add(self.parts(part, value, path)?);
                    }
                }
                "oneOf" if schema.contains_key("discriminator") => {
                    known.add(self.parts(self.by_discriminator(schema, value, path)?, value, path)?);
                }
                "anyOf" | "oneOf" => known.add(self.one_of(keyword == "oneOf", of, value, path)?),
                "type" | "const" | "enum" | "pattern" | "minimum" | "maximum" | "minLength" | "maxLength"
                | "minItems" | "maxItems" => {}
                other if other.starts_with("x-") => {}
                other => assert!(WORDS.contains(&other), "{path}: the keyword {other} is not checked"),
            }
        }
        if let Some(members) = value.as_object() {
            self.members(schema, members, path, &mut known)?;
        }
        Ok(known)
    }

    fn members(
        &self,
        schema: &Map<String, Value>,
        members: &Map<String, Value>,
        path: &str,
        known: &mut Known,
    ) -> Result<(), String> {
        let declared = schema.get("properties").and_then(Value::as_object);
        for (name, member) in members {
            let place = format!("{path}.{name}");
            if let Some(of) = declared.and_then(|declared| declared.get(name)) {
                self.at(of, member, &place)?;
                known.names.insert(name.clone());
            } else if let Some(rest) = schema.get("additionalProperties") {
                if *rest == Value::Bool(false) {
                    return Err(format!("{place} is not allowed"));
                }
                self.at(rest, member, &place)?;
                known.all = true;
            }
        }
        Ok(())
    }

    fn one_of(&self, exactly_one: bool, of: &Value, value: &Value, path: &str) -> Result<Known, String> {
        let choices = of.as_array().into_iter().flatten().map(|choice| self.parts(choice, value, path));
        let (right, wrong): (Vec<_>, Vec<_>) = choices.partition(Result::is_ok);
        if right.is_empty() || (exactly_one && right.len() > 1) {
            let why: Vec<String> = wrong.into_iter().filter_map(Result::err).collect();
            return Err(format!("{path}: {} choices are right; {}", right.len(), why.join("; or ")));
        }
        let mut known = Known::default();
        right.into_iter().flatten().for_each(|one| known.add(one));
        Ok(known)
    }

    /// The one choice that the discriminator selects.
    fn by_discriminator(&self, schema: &Map<String, Value>, value: &Value, path: &str) -> Result<&Value, String> {
        let by = &schema["discriminator"];
        let word = by["propertyName"].as_str().and_then(|property| value[property].as_str()).unwrap_or_default();
        match by["mapping"].get(word) {
            Some(reference) => Ok(self.resolve(reference)),
            None => Err(format!("{path}: there is no choice for {word:?}")),
        }
    }

    fn resolve(&self, reference: &Value) -> &Value {
        let path = reference.as_str().and_then(|text| text.strip_prefix('#')).expect("references stay in the document");
        self.document.pointer(path).unwrap_or_else(|| panic!("{path} leads nowhere"))
    }

    fn matches(&self, pattern: &Value, text: &str) -> bool {
        let pattern = pattern.as_str().expect("a pattern is text");
        let mut patterns = self.patterns.lock().expect("no one panics with patterns");
        let regex = || Regex::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        patterns.entry(pattern.to_owned()).or_insert_with(regex).is_match(text)
    }
}

fn length(text: &str) -> Option<u64> {
    u64::try_from(text.chars().count()).ok()
}

fn count(of: &Value) -> usize {
    of.as_u64().and_then(|n| usize::try_from(n).ok()).expect("a small number")
}

fn has_type(of: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    };
    match of {
        Value::String(one) => is(one),
        Value::Array(several) => several.iter().filter_map(Value::as_str).any(is),
        other => panic!("{other} is no type"),
    }
}
