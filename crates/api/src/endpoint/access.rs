//! Tokens.

use super::Method::{Delete, Get, Post};
use super::roles::*;
use super::schemas::*;
use super::{Endpoint, endpoint};
use crate::*;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let tenant = "Only of this tenant: its name or number.";
    vec![
        endpoint::<TokenList>(
            "list_tokens",
            Get,
            "/api/v1/tokens",
            "Tokens, by number, without their secrets",
            TOKEN_READERS,
        )
        .query("tenant", tenant, text)
        .page(),
        endpoint::<IssuedToken>(
            "issue_token",
            Post,
            "/api/v1/tokens",
            "Issue a token; its secret is shown once",
            ADMINS,
        )
        .body::<NewToken>()
        .status(201),
        endpoint::<Token>("show_token", Get, "/api/v1/tokens/{token}", "One token, by number", TOKEN_READERS),
        endpoint::<Changed>("revoke_token", Delete, "/api/v1/tokens/{token}", "Revoke a token", ADMINS),
    ]
}
