//! The document, health and metrics.

use super::Method::Get;
use super::roles::*;
use super::{Endpoint, endpoint};
use crate::*;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        endpoint::<()>("openapi", Get, "/api/v1/openapi.json", "This document", NOBODY_IN_PARTICULAR)
            .text("application/json"),
        endpoint::<()>("docs", Get, "/api/docs", "This document, for people", NOBODY_IN_PARTICULAR).text("text/html"),
        endpoint::<Health>("healthz", Get, "/healthz", "Whether the daemon lives", NOBODY_IN_PARTICULAR),
        endpoint::<Health>("readyz", Get, "/readyz", "Whether the daemon takes commands", NOBODY_IN_PARTICULAR),
        endpoint::<()>("metrics", Get, "/metrics", "Figures for Prometheus", READERS).text("text/plain"),
    ]
}
