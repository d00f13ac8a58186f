//! For operators and their tools: identity, health, metrics, settings, the OpenAPI document.

use super::capacity::span;
use super::tenancy::changed;
use crate::context::{Answer, Context, json};
use crate::metrics::Sources;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Response};
use bytes::Bytes;
use leasehold_api::{About, Health, Settings, SettingsChange, Ttl, When, codes};
use leasehold_engine::Command;
use leasehold_model::hex;

pub(super) async fn about(context: Context) -> Answer {
    let app = &context.app;
    let (public_key, size) = app.now.read(|state| (hex::encode(state.public_key()), state.size()));
    json(
        200,
        &About {
            origin: app.journal.origin().to_owned(),
            public_key,
            genesis: hex::encode(&app.genesis),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            size,
            now: When(app.time()),
        },
    )
}

pub(super) async fn healthz(_: Context) -> Answer {
    json(200, &Health { status: "ok".to_owned() })
}

/// Ready while commands are accepted: not if the cell has failed or is stopping, or if the disk is full.
pub(super) async fn readyz(context: Context) -> Answer {
    let app = &context.app;
    if let Some(why) = app.cell.failure() {
        return Err(codes::STOPPING.problem(format!("The journal has failed: {why}.")));
    }
    if app.live.is_stopping() {
        return Err(codes::STOPPING.problem("The daemon is stopping."));
    }
    if let Some(why) = app.cell.full() {
        return Err(codes::DISK_FULL.problem(format!("Commands are refused, and reads continue: {why}.")));
    }
    json(200, &Health { status: "ok".to_owned() })
}

fn typed(media: &'static str, bytes: Bytes) -> Answer {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    Ok(response)
}

pub(super) async fn metrics(context: Context) -> Answer {
    let app = std::sync::Arc::clone(&context.app);
    // With a million leases, the page takes some milliseconds.
    let page = tokio::task::spawn_blocking(move || {
        let deliveries = app.deliveries.figures(&app);
        let sources = Sources {
            cell: &app.cell,
            limiter: &app.rate,
            streams: app.live.streams(),
            books: app.books.size(),
            data: &app.data,
            scrub: app.scrub.figures(),
            ledger: app.settlement.figures(&app),
            deliveries: &deliveries,
        };
        app.metrics.render(&sources)
    });
    let text = page
        .await
        .map_err(|_| codes::INTERNAL.problem("Cannot make the metrics page; the daemon's log has the details."))?;
    typed("text/plain; version=0.0.4; charset=utf-8", text.into())
}

pub(super) async fn openapi(context: Context) -> Answer {
    typed("application/json", context.app.openapi.clone())
}

pub(super) async fn docs(_: Context) -> Answer {
    let mut response = typed("text/html; charset=utf-8", Bytes::from_static(crate::docs_page::PAGE.as_bytes()))?;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response.headers_mut().extend(crate::docs_page::security_headers());
    Ok(response)
}

pub(super) async fn problem_page(context: Context) -> Answer {
    let code = context.subject();
    let pages = leasehold_api::code_pages();
    let Some((code, page)) = pages.get_key_value(code) else {
        return Err(crate::names::not_found("code", code, pages.keys().copied()));
    };
    let mut response = typed("text/html; charset=utf-8", crate::docs_page::problem_page(code, page).into())?;
    response.headers_mut().extend(crate::docs_page::security_headers());
    Ok(response)
}

pub(super) async fn show_settings(context: Context) -> Answer {
    let settings = context.app.now.read(|state| state.settings().clone());
    json(
        200,
        &Settings {
            ttl_max: Ttl(settings.ttl_max),
            grace_default: Ttl(settings.grace_default),
            teardown_deadline: Ttl(settings.teardown_deadline),
            node_timeout: Ttl(settings.node_timeout),
            idempotency_window: Ttl(settings.idempotency_window),
            heat_half_life: Ttl(settings.heat_half_life),
            sensitive_pool_size: settings.sensitive_pool_size,
            head_wait_max: Ttl(settings.head_wait_max),
        },
    )
}

pub(super) async fn change_settings(context: Context) -> Answer {
    let change: SettingsChange = context.body()?;
    let old = context.app.now.read(|state| state.settings().clone());
    let settings = leasehold_engine::Settings {
        ttl_max: span(change.ttl_max, old.ttl_max),
        grace_default: span(change.grace_default, old.grace_default),
        teardown_deadline: span(change.teardown_deadline, old.teardown_deadline),
        node_timeout: span(change.node_timeout, old.node_timeout),
        idempotency_window: span(change.idempotency_window, old.idempotency_window),
        heat_half_life: span(change.heat_half_life, old.heat_half_life),
        sensitive_pool_size: change.sensitive_pool_size.over(old.sensitive_pool_size),
        head_wait_max: span(change.head_wait_max, old.head_wait_max),
    };
    changed(&context, Ok(Command::ChangeSettings(settings))).await
}
