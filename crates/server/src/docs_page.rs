//! The page at `/api/docs`: the OpenAPI document for people, made in the browser from the document itself.

use axum::http::header::{
    CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use leasehold_api::CodePage;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

pub(crate) const PAGE: &str = include_str!("docs_page.html");

/// What is between the tags of the page's only element of this kind.
fn inside(element: &str) -> &'static str {
    let (_, after) = PAGE.split_once(&format!("<{element}>")).expect("the page has this element");
    after.split_once(&format!("</{element}>")).expect("the element is closed").0
}

/// A token may be typed into the page. So it runs only its own script, talks only to this daemon, and is shown in no
/// frame.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = |element| BASE64_STANDARD.encode(Sha256::digest(inside(element)));
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        hash("script"),
        hash("style")
    );
    HeaderValue::from_str(&policy).expect("the policy is ASCII")
});

/// The page about a problem code, to which the `type` of a problem leads.
pub(crate) fn problem_page(code: &str, page: &CodePage) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{code}</title></head><body>\
         <h1><code>{code}</code></h1><h2>Cause</h2><p>{}</p><h2>What to do</h2><p>{}</p>\
         <p><a href=\"/api/docs#code-{code}\">All codes</a></p></body></html>\n",
        as_html(&page.cause),
        as_html(&page.what_to_do)
    )
}

/// Markdown of one line as HTML. Links of the reference lead to files and become plain words.
fn as_html(markdown: &str) -> String {
    let escaped = markdown.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut html = String::new();
    for (place, part) in escaped.split('`').enumerate() {
        match place % 2 {
            0 => html.push_str(&without_links(part)),
            _ => html.extend(["<code>", part, "</code>"]),
        }
    }
    html
}

fn without_links(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((name, (_, after))) = link.split_once("](").and_then(|(name, to)| Some((name, to.split_once(')')?)))
        else {
            break;
        };
        words.extend([before, name]);
        rest = after;
    }
    words + rest
}

/// The headers that restrict what a browser does with the page.
pub(crate) fn security_headers() -> [(HeaderName, HeaderValue); 4] {
    [
        (CONTENT_SECURITY_POLICY, POLICY.clone()),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        // For browsers that do not know `frame-ancestors`.
        (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_about_a_code_has_its_markdown_as_html() {
        let page = CodePage { cause: "`a` < b.".into(), what_to_do: "See [roles](roles.md), [all.".into() };
        let html = problem_page("bad_a", &page);
        for part in ["<h1><code>bad_a</code></h1>", "<p><code>a</code> &lt; b.</p>", "<p>See roles, [all.</p>"] {
            assert!(html.contains(part), "{html}");
        }
    }

    #[test]
    fn the_policy_covers_everything_that_the_page_runs() {
        for element in ["script", "style"] {
            assert_eq!(PAGE.matches(&format!("<{element}")).count(), 1, "one hash for one {element}");
        }
        for inline in [" style=\"", " onclick=", " onload=", "javascript:", "src=\"http"] {
            assert!(!PAGE.contains(inline), "{inline} would be blocked");
        }
    }
}
