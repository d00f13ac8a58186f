//! The document that is checked in is the one the code makes. `UPDATE_EXPECT=1 cargo test -p leasehold-api` writes it.

use expect_test::expect_file;
use leasehold_api::codes;
use serde_json::Value;

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
