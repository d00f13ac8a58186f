//! The document that is checked in is the one the code makes. `UPDATE_EXPECT=1 cargo test -p leasehold-api` writes it.

use expect_test::expect_file;
use leasehold_api::codes;

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
