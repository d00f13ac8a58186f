//! The document that is checked in is the one the code makes. `UPDATE_EXPECT=1 cargo test -p leasehold-api` writes it.

#[path = "support/schema.rs"]
mod schema;

use expect_test::expect_file;
use leasehold_api::codes;
use schema::Schemas;
use serde_json::{Value, json};

#[test]
fn the_document_is_checked_in() {
    let mut text = serde_json::to_string_pretty(&leasehold_api::openapi()).expect("the document can be written");
    text.push('\n');
    expect_file!["../../../docs/reference/openapi.json"].assert_eq(&text);
}

#[test]
fn every_reference_leads_somewhere() {
    let document = leasehold_api::openapi();
    let schemas = &document["components"]["schemas"];
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"").skip(1) {
        let path = reference.split('"').next().expect("a reference ends");
        let name = path.strip_prefix("#/components/schemas/").expect("references point at schemas");
        assert!(schemas.get(name).is_some(), "{name}");
    }
}

#[test]
fn every_code_is_on_the_reference_page() {
    let page = include_str!("../../../docs/reference/codes.md");
    for (code, _) in codes::ALL {
        let row = format!("| `{}` | {} |", code.code, code.status);
        assert!(page.contains(&row), "{row} is missing in docs/reference/codes.md");
    }
}

/// Collects the properties without a description. The description of a variant counts for its only property, and for its
/// tag.
fn undescribed(path: &str, schema: &Value, found: &mut Vec<String>) {
    let described = |schema: &Value| schema["description"].as_str().is_some_and(|text| !text.trim().is_empty());
    let properties = schema["properties"].as_object().into_iter().flatten();
    let alone = schema["properties"].as_object().is_some_and(|all| all.len() == 1);
    for (name, property) in properties {
        let by_variant = (alone || property.get("const").is_some()) && described(schema);
        if !described(property) && !by_variant {
            found.push(format!("{path}.{name}"));
        }
        undescribed(&format!("{path}.{name}"), property, found);
    }
    for within in ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|choice| schema[choice].as_array()).flatten() {
        undescribed(path, within, found);
    }
    for nested in [&schema["items"], &schema["additionalProperties"]].into_iter().filter(|nested| nested.is_object()) {
        undescribed(path, nested, found);
    }
}

#[test]
fn every_property_has_a_description() {
    let document = leasehold_api::openapi();
    let mut found = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        undescribed(name, schema, &mut found);
    }
    assert!(found.is_empty(), "{} properties without a description: {}", found.len(), found.join(", "));
}

/// Collects every schema or media type that has examples, with them.
fn with_examples<'d>(within: &'d Value, found: &mut Vec<(&'d Value, &'d Value)>) {
    match within {
        Value::Object(members) => {
            let schema = members.get("schema").unwrap_or(within);
            let several = members.get("examples").and_then(Value::as_array).into_iter().flatten();
            let one = members.get("example").filter(|_| members.contains_key("schema"));
            found.extend(several.chain(one).map(|example| (schema, example)));
            members.values().for_each(|member| with_examples(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| with_examples(item, found)),
        _ => {}
    }
}

#[test]
fn every_example_is_what_its_schema_describes() {
    let schemas = Schemas::new(leasehold_api::openapi());
    let mut found = Vec::new();
    with_examples(schemas.document(), &mut found);
    assert!(found.len() > 50, "{} examples", found.len());
    for (schema, example) in found {
        schemas.check(schema, example).unwrap_or_else(|why| panic!("{example}: {why}"));
    }
}

/// Generators of clients refuse a schema that is only `true`.
fn anything(path: &str, within: &Value, found: &mut Vec<String>) {
    match within {
        Value::Object(members) => {
            if members.get("items") == Some(&json!(true)) || members.get("schema") == Some(&json!(true)) {
                found.push(path.to_owned());
            }
            let properties = members.get("properties").and_then(Value::as_object).into_iter().flatten();
            found.extend(properties.filter(|(_, of)| of.is_boolean()).map(|(name, _)| format!("{path}/{name}")));
            members.iter().for_each(|(name, member)| anything(&format!("{path}/{name}"), member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| anything(path, item, found)),
        _ => {}
    }
}

#[test]
fn every_schema_says_something() {
    let mut found = Vec::new();
    anything("", &leasehold_api::openapi(), &mut found);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn every_day_of_a_leap_year_is_an_instant() {
    let schemas = Schemas::new(leasehold_api::openapi());
    let when = &schemas.document()["components"]["schemas"]["Granted"]["properties"]["granted_at"];
    let days = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    for (month, days) in (1..).zip(days) {
        for day in 1..=days {
            let instant = json!(format!("2028-{month:02}-{day:02}T23:59:59.000000001Z"));
            schemas.check(when, &instant).unwrap_or_else(|why| panic!("{why}"));
        }
        let late = json!(format!("2028-{month:02}-{:02}T00:00:00Z", days + 1));
        assert!(schemas.check(when, &late).is_err(), "{late}");
    }
    for instant in ["1970-01-01T00:00:00Z", "2554-07-21T23:34:33.709551615Z"] {
        schemas.check(when, &json!(instant)).unwrap_or_else(|why| panic!("{why}"));
    }
}

/// The reference page shows what the view writes (a test of the model compares them).
#[test]
fn the_records_of_the_reference_page_are_what_their_schemas_describe() {
    let schemas = Schemas::new(leasehold_api::openapi());
    let page = include_str!("../../../docs/reference/json-view.md");
    let examples = page.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    let records = examples.filter_map(|text| serde_json::from_str::<Value>(text).ok());
    let records: Vec<Value> = records.filter(|record| record.get("kind").is_some()).collect();
    assert!(records.len() > 25, "{} records", records.len());
    for record in records {
        let schema = &schemas.document()["components"]["schemas"]["Record"];
        schemas.check(schema, &record).unwrap_or_else(|why| panic!("{why}: {record}"));
    }
}
