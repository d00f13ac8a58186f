//! The page at `/api/docs`: the OpenAPI document for people, made in the browser from the document itself.

pub(crate) const PAGE: &str = include_str!("docs_page.html");
