//! Webhooks as objects: made, changed, disabled and deleted. What is delivered to them is in `deliveries.rs`.

use super::page::page;
use super::tenancy::changed;
use crate::access::Caller;
use crate::app::App;
use crate::context::{Answer, Context, json};
use crate::deliveries::signature_kind;
use crate::{names, show};
use leasehold_api as api;
use leasehold_api::event_type::{event_names, event_words};
use leasehold_api::{NewWebhook, Problem, RotateWebhookSecret, WebhookChange, codes};
use leasehold_deliver::{Deliveries, Endpoint, OVERLAP, SinkId, WebhookSecretsError};
use leasehold_engine::command::{DisableSink, PutSink};
use leasehold_engine::{Command, Sink, State};
use leasehold_model::body::{SinkDisabledCause, SinkSignature};
use leasehold_model::{Body, Name, SinkNo, Span, TenantNo, WebAddress};

pub(super) fn shown(state: &State, sink: &Sink) -> api::Webhook {
    let put = &sink.put;
    let tenant = put.tenant.and_then(|tenant| state.tenant(tenant));
    api::Webhook {
        webhook_id: put.sink.0,
        name: put.name.to_string(),
        tenant: tenant.map(|tenant| tenant.settings.name.to_string()),
        tenant_id: put.tenant.map(|tenant| tenant.0),
        url: put.url.to_string(),
        events: put.events.iter().map(ToString::to_string).collect(),
        signature: put.signature,
        sequence: sink.made_by,
        enabled: sink.disabled.is_none(),
        disabled_cause: sink.disabled,
    }
}

/// Whether the caller may see a webhook: those without a tenant see all, others those of their own.
pub(super) fn sees(caller: &Caller, sink: &Sink) -> bool {
    caller.tenant.is_none() || sink.put.tenant == caller.tenant
}

/// The webhook that the path names, by number or by name.
pub(super) fn find<'s>(context: &Context, state: &'s State) -> Result<&'s Sink, Problem> {
    let (caller, text) = (context.caller(), context.subject());
    let owner = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?.or(caller.tenant);
    let by_number = || {
        let number = text.strip_prefix("sink-").unwrap_or(text);
        names::digits(number).and_then(|sink| state.sink(SinkNo(sink)))
    };
    let found = state.sink_named(owner, text).or_else(by_number).filter(|sink| sees(caller, sink));
    found.ok_or_else(|| {
        let visible = state.sinks().filter(|sink| sees(caller, sink));
        names::not_found("webhook", text, visible.map(|sink| sink.put.name.as_str()))
    })
}

pub(super) fn number(context: &Context) -> Result<SinkNo, Problem> {
    context.app.now.read(|state| find(context, state).map(|sink| sink.put.sink))
}

pub(super) fn id(sink: SinkNo) -> SinkId {
    SinkId(sink.0.into())
}

/// The running deliveries.
pub(super) fn running(app: &App) -> Result<&Deliveries, Problem> {
    app.deliveries.running().ok_or_else(|| {
        let why = app.deliveries.trouble().map(|why| format!("Deliveries of events could not be started: {why}."));
        let off = || "Deliveries of events are off; an operator turns them on with `accounting.enabled: true`.".into();
        codes::ACCOUNTING_DISABLED.problem(why.unwrap_or_else(off))
    })
}

pub(super) async fn list_webhooks(context: Context) -> Answer {
    let caller = context.caller();
    let listed = context.app.now.read(|state| {
        let of = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        let visible = |sink: &&Sink| sees(caller, sink) && (of.is_none() || sink.put.tenant == of);
        page(&context, state.sinks().filter(visible).map(|sink| (sink.put.sink.0.into(), shown(state, sink))))
    });
    let (webhooks, next_cursor) = listed?;
    json(200, &api::WebhookList { webhooks, next_cursor })
}

pub(super) async fn show_webhook(context: Context) -> Answer {
    let webhook = context.app.now.read(|state| find(&context, state).map(|sink| shown(state, sink)))?;
    json(200, &webhook)
}

/// An address to which something can be delivered. Names are resolved, and checked, with each attempt.
fn address(context: &Context, text: &str) -> Result<WebAddress, Problem> {
    let bad = |why: String| codes::BAD_WEBHOOK_URL.problem(format!("The address cannot be used: {why}."));
    let url = WebAddress::new(text).map_err(|why| bad(why.to_string()))?;
    let endpoint = Endpoint::parse(text).map_err(|why| bad(why.to_string()))?;
    if let Some(literal) = endpoint.literal() {
        let checked = context.app.deliveries.guard().check(endpoint.is_tls, &[literal]);
        checked.map_err(|why| bad(why.to_string()))?;
    }
    Ok(url)
}

fn events(given: &[String]) -> Result<Vec<Name>, Problem> {
    let words = event_words(given).map_err(|word| {
        let shown: String = word.chars().take(128).collect();
        let shown = shown.escape_debug();
        match names::nearest(&word, event_names()) {
            Some(nearest) => codes::UNKNOWN_EVENT_TYPE
                .problem(format!("There is no event of the type \"{shown}\"; did you mean \"{nearest}\"?"))
                .with("nearest", nearest),
            None => codes::UNKNOWN_EVENT_TYPE.problem(format!(
                "There is no event of the type \"{shown}\"; use one such as lease.granted, a family such as lease.*, \
                 accounting, or *."
            )),
        }
    })?;
    Ok(words.iter().filter_map(|word| Name::new(word).ok()).collect())
}

fn secret_problem(error: &WebhookSecretsError) -> Problem {
    match error {
        WebhookSecretsError::TooMany => codes::DELIVERY_BUSY.problem(crate::problem::sentence(&error.to_string())),
        _ => codes::INTERNAL.problem(crate::problem::sentence(&error.to_string())),
    }
}

/// A new secret of a webhook. Blocks for a moment: a small file is written.
async fn new_secret(
    context: &Context,
    sink: SinkNo,
    signature: SinkSignature,
    overlap: Span,
) -> Result<String, Problem> {
    running(&context.app)?;
    let app = std::sync::Arc::clone(&context.app);
    let made = tokio::task::spawn_blocking(move || {
        let secrets = app.deliveries.secrets().expect("deliveries run");
        secrets.rotate(id(sink), signature_kind(signature), app.time(), overlap)
    });
    let made = made.await.map_err(|_| codes::INTERNAL.problem("The secret could not be written."))?;
    made.map(|secret| secret.0.expose().to_owned()).map_err(|error| secret_problem(&error))
}

async fn put(context: &Context, put: PutSink, status: u16) -> Answer {
    running(&context.app)?;
    let is_new = put.sink.is_none();
    let signature = put.signature;
    // Nothing is sent before there is a secret.
    let whole = context.app.deliveries.making.lock().await;
    let sealed = context.seal(Command::PutSink(put)).await?;
    let Body::SinkPut(put) = &sealed.first().body else { unreachable!("a webhook was put") };
    let has_secret = || {
        let secrets = context.app.deliveries.secrets();
        secrets.is_some_and(|secrets| !secrets.signers(id(put.sink), context.app.time()).is_empty())
    };
    let secret = match is_new && !has_secret() {
        true => Some(new_secret(context, put.sink, signature, Span::ZERO).await?),
        false => None,
    };
    context.app.deliveries.sync(&context.app);
    drop(whole);
    let webhook = context.app.now.read(|state| state.sink(put.sink).map(|sink| shown(state, sink)));
    let webhook = webhook.ok_or_else(|| show::gone_already("webhook"))?;
    json(status, &api::WebhookPut { sequence: sealed.sequence(), webhook, secret })
}

pub(super) async fn create_webhook(context: Context) -> Answer {
    let new: NewWebhook = context.body()?;
    let all = vec!["*".to_owned()];
    let caller = context.caller();
    let tenant: Option<TenantNo> = context.app.now.read(|state| {
        let named = new.tenant.as_deref().map(|text| names::tenant(state, caller, text)).transpose()?;
        Ok::<_, Problem>(named.or(caller.tenant))
    })?;
    let command = PutSink {
        sink: None,
        tenant,
        name: names::new_name(&new.name, None)?,
        url: address(&context, &new.url)?,
        events: events(new.events.as_ref().unwrap_or(&all))?,
        signature: new.signature.unwrap_or(SinkSignature::Hmac),
    };
    put(&context, command, 201).await
}

pub(super) async fn change_webhook(context: Context) -> Answer {
    let change: WebhookChange = context.body()?;
    let old = context.app.now.read(|state| find(&context, state).map(|sink| sink.put.clone()))?;
    let command = PutSink {
        sink: Some(old.sink),
        tenant: old.tenant,
        name: match &change.name {
            Some(name) => names::new_name(name, Some(&old.name))?,
            None => old.name,
        },
        url: change.url.as_deref().map(|url| address(&context, url)).transpose()?.unwrap_or(old.url),
        events: change.events.as_deref().map(events).transpose()?.unwrap_or(old.events),
        signature: old.signature,
    };
    put(&context, command, 200).await
}

pub(super) async fn delete_webhook(context: Context) -> Answer {
    let sink = number(&context)?;
    changed(&context, Ok(Command::DeleteSink(sink))).await
}

pub(super) async fn disable_webhook(context: Context) -> Answer {
    let sink = number(&context)?;
    changed(&context, Ok(Command::DisableSink(DisableSink { sink, cause: SinkDisabledCause::Requested }))).await
}

pub(super) async fn rotate_webhook_secret(context: Context) -> Answer {
    let rotate: RotateWebhookSecret = context.body()?;
    let put = context.app.now.read(|state| find(&context, state).map(|sink| sink.put.clone()))?;
    let overlap = rotate.overlap.map_or(OVERLAP, |overlap| overlap.0);
    let secret = new_secret(&context, put.sink, put.signature, overlap).await?;
    json(201, &api::WebhookSecret { secret })
}
