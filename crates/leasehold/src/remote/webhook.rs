//! `leasehold webhook …`.

use super::details::{Details, or_dash, word};
use super::failure::Failed;
use super::patch::something;
use super::secret_file::{SecretFile, show_once};
use super::session::{Session, keyed};
use crate::cli::remote::ChangeArgs;
use crate::cli::webhook::{RotateSecretArgs, WebhookArgs, WebhookCommand, WebhookCreateArgs, WebhookSetArgs};
use crate::numbers::thousands;
use crate::output::{print, print_json};
use crate::problem::{EXIT_OK, EXIT_REFUSED, Problem};
use crate::table::{Align, Table};
use crate::term::{Paint, Style};
use crate::time_format::to_the_second;
use leasehold_api::event_type::{ACCOUNTING, EVENT_FAMILIES, EVENT_TYPES};
use leasehold_api::{DeadLetter, DeliveryAttempt, NewWebhook, RotateWebhookSecret, Webhook, WebhookChange};
use leasehold_client::{Call, Json};
use leasehold_model::body::SinkSignature;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Duration;

/// A receiver may take its time; the daemon gives up before this.
const TEST_TIMEOUT: Duration = Duration::from_secs(90);

pub(super) async fn run(session: &Session, command: WebhookCommand) -> Result<u8, Failed> {
    let client = &session.client;
    match command {
        WebhookCommand::Create(args) => create(session, args).await?,
        WebhookCommand::List(args) => {
            session.list(client.list_webhooks().maybe("tenant", args.tenant), webhooks).await?;
        }
        WebhookCommand::Show(of) => {
            session.show(own(client.show_webhook(&of.webhook), &of), |webhook| one(session, webhook)).await?;
        }
        WebhookCommand::Set(args) => set(session, args).await?,
        WebhookCommand::Disable(args) => {
            let call = own(client.disable_webhook(&args.of.webhook), &args.of);
            session.change(call, &args.change, |_| format!("webhook {} is disabled\n", args.of.webhook)).await?;
        }
        WebhookCommand::Delete(args) => {
            let call = own(client.delete_webhook(&args.of.webhook), &args.of);
            session.change(call, &args.change, |_| format!("webhook {} is deleted\n", args.of.webhook)).await?;
        }
        WebhookCommand::RotateSecret(args) => rotate(session, args).await?,
        WebhookCommand::Test(of) => return test(session, &of).await,
        WebhookCommand::Attempts(of) => {
            let call = own(client.list_attempts(&of.webhook), &of);
            if session.json {
                print_json(&call.json().await?)?;
            } else {
                session.print_table(&attempts(&call.await?.attempts))?;
            }
        }
        WebhookCommand::DeadLetters(of) => {
            session.list(own(client.list_dead_letters(&of.webhook), &of), dead_letters).await?;
        }
        WebhookCommand::Events => events(session.json)?,
    }
    Ok(EXIT_OK)
}

/// The call about a webhook of this tenant.
pub(super) fn own<T: DeserializeOwned + Send + 'static>(call: Call<Json<T>>, of: &WebhookArgs) -> Call<Json<T>> {
    call.maybe("tenant", of.tenant.as_ref())
}

fn whose(webhook: &Webhook) -> String {
    or_dash(webhook.tenant.as_ref())
}

/// `enabled`, or why nothing is delivered.
fn state(webhook: &Webhook) -> (String, Style) {
    match (webhook.enabled, webhook.disabled_cause) {
        (true, _) => ("enabled".to_owned(), Style::Green),
        (false, Some(cause)) => (format!("disabled: {}", word(cause)), Style::Yellow),
        (false, None) => ("disabled".to_owned(), Style::Yellow),
    }
}

fn webhooks(webhooks: &[Webhook]) -> Table {
    let headings = [
        ("webhook", Align::Left),
        ("number", Align::Right),
        ("tenant", Align::Left),
        ("state", Align::Left),
        ("url", Align::Left),
        ("events", Align::Left),
        ("signature", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["signature", "number", "events", "url"]);
    for webhook in webhooks {
        let plain = |text: String| (text, Style::Plain);
        table.styled([
            plain(webhook.name.clone()),
            plain(webhook.webhook_id.to_string()),
            plain(whose(webhook)),
            state(webhook),
            plain(webhook.url.clone()),
            plain(webhook.events.join(",")),
            plain(word(webhook.signature)),
        ]);
    }
    table
}

fn one(session: &Session, webhook: &Webhook) -> String {
    let (state, style) = state(webhook);
    Details::new()
        .add("webhook", &webhook.name)
        .add("number", webhook.webhook_id)
        .maybe("tenant", webhook.tenant.as_ref())
        .add("url", &webhook.url)
        .add("events", webhook.events.join(", "))
        .add("signature", word(webhook.signature))
        .add("state", session.paint.paint(style, &state))
        .add("record", thousands(webhook.sequence))
        .text(session.paint)
}

async fn create(session: &Session, args: WebhookCreateArgs) -> Result<(), Failed> {
    let file = args.out.as_deref().map(SecretFile::create).transpose()?;
    let new = NewWebhook {
        name: args.name,
        tenant: args.tenant,
        url: args.to,
        events: (!args.events.is_empty()).then_some(args.events),
        signature: args.signature,
    };
    let (made, file) = with_secret(session.client.create_webhook(&new), &args.change, file).await?;
    let webhook: Webhook = serde_json::from_value(made["webhook"].clone()).map_err(|error| invalid(&error))?;
    Ok(hand_over(session, made, file, &webhook, &one(session, &webhook))?)
}

async fn rotate(session: &Session, args: RotateSecretArgs) -> Result<(), Failed> {
    let of = &args.of;
    let webhook = own(session.client.show_webhook(&of.webhook), of).await?;
    let file = args.out.as_deref().map(SecretFile::create).transpose()?;
    let call = session.client.rotate_webhook_secret(&of.webhook, &RotateWebhookSecret { overlap: args.overlap });
    let (made, file) = with_secret(own(call, of), &args.change, file).await?;
    let old = match args.overlap {
        Some(overlap) if overlap.0.0 == 0 => "the old secret is not used any more".to_owned(),
        Some(overlap) => format!("deliveries are signed with the old secret as well for {overlap}"),
        None => "deliveries are signed with the old secret as well for 24h".to_owned(),
    };
    Ok(hand_over(session, made, file, &webhook, &format!("webhook {}: {old}\n", webhook.name))?)
}

fn invalid(error: &serde_json::Error) -> Problem {
    Problem::refused("bad_answer", format!("the daemon's answer is invalid: {error}"))
}

/// Makes a call whose answer contains a secret. If it fails, the empty file is removed.
async fn with_secret<T: DeserializeOwned + Send + 'static>(
    call: Call<Json<T>>,
    change: &ChangeArgs,
    file: Option<SecretFile>,
) -> Result<(Value, Option<SecretFile>), Failed> {
    match keyed(call, change).json().await {
        Ok(made) => Ok((made, file)),
        Err(error) => {
            file.into_iter().for_each(SecretFile::abandon);
            Err(error.into())
        }
    }
}

/// Prints the secret of an answer, once, or writes it to the file.
fn hand_over(
    session: &Session,
    mut made: Value,
    file: Option<SecretFile>,
    webhook: &Webhook,
    about: &str,
) -> Result<(), Problem> {
    let again = || format!("run `leasehold webhook rotate-secret {}`", webhook.name);
    let Some(secret) = made["secret"].as_str().map(str::to_owned) else {
        file.into_iter().for_each(SecretFile::abandon);
        let what = format!(
            "webhook {} was made before with this idempotency key, and its secret was shown then",
            webhook.name
        );
        return Err(Problem::refused("secret_shown_before", what).advice(format!("if the secret is lost, {}", again())));
    };
    let what = match webhook.signature {
        SinkSignature::Hmac => "secret",
        SinkSignature::Ed25519 => "public key",
    };
    let Some(file) = file else {
        return if session.json { print_json(&made) } else { show_once(about, what, &secret) };
    };
    let path = file.path().display().to_string();
    file.write(&secret, again)?;
    if session.json {
        made["secret"] = Value::Null;
        return print_json(&made);
    }
    print(&format!("{about}The {what} is in {path}.\n"))
}

async fn set(session: &Session, args: WebhookSetArgs) -> Result<(), Failed> {
    let change =
        WebhookChange { name: args.name, url: args.to, events: (!args.events.is_empty()).then_some(args.events) };
    let change = if args.enable { change } else { something(change)? };
    let call = own(session.client.change_webhook(&args.of.webhook, &change), &args.of);
    session.change(call, &args.change, |put| one(session, &put.webhook)).await
}

/// Shows what the receiver answers. The exit code is 1 unless it took the event.
async fn test(session: &Session, of: &WebhookArgs) -> Result<u8, Failed> {
    let call = own(session.client.test_webhook(&of.webhook), of).patiently(TEST_TIMEOUT);
    let answer = call.json().await?;
    let tried: DeliveryAttempt = serde_json::from_value(answer.clone()).map_err(|error| invalid(&error))?;
    let is_taken = tried.status.is_some_and(|status| (200..300).contains(&status));
    if session.json {
        print_json(&answer)?;
        return Ok(if is_taken { EXIT_OK } else { EXIT_REFUSED });
    }
    let (result, style) = match is_taken {
        true => ("the receiver took the event", Style::Green),
        false => ("the receiver did not take the event", Style::Red),
    };
    let details = Details::new()
        .add("result", session.paint.paint(style, result))
        .maybe("status", tried.status)
        .maybe("error", tried.error.as_ref())
        .add("time taken", tried.took)
        .add("event", &tried.event_id);
    print(&details.text(session.paint))?;
    Ok(if is_taken { EXIT_OK } else { EXIT_REFUSED })
}

fn status(status: Option<u16>) -> (String, Style) {
    match status {
        Some(status @ 200..300) => (status.to_string(), Style::Green),
        Some(status) => (status.to_string(), Style::Yellow),
        None => ("-".to_owned(), Style::Red),
    }
}

fn attempts(attempts: &[DeliveryAttempt]) -> Table {
    let headings = [
        ("at", Align::Left),
        ("event", Align::Left),
        ("type", Align::Left),
        ("status", Align::Right),
        ("took", Align::Right),
        ("error", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["took", "error"]);
    for attempt in attempts {
        let plain = |text: String| (text, Style::Plain);
        table.styled([
            plain(to_the_second(attempt.at)),
            plain(attempt.event_id.clone()),
            plain(attempt.event_type.clone()),
            status(attempt.status),
            plain(crate::time_format::span(attempt.took.0)),
            plain(or_dash(attempt.error.as_ref())),
        ]);
    }
    table
}

fn dead_letters(letters: &[DeadLetter]) -> Table {
    let headings = [
        ("event", Align::Left),
        ("type", Align::Left),
        ("about", Align::Left),
        ("record", Align::Right),
        ("set aside", Align::Left),
        ("attempts", Align::Right),
        ("status", Align::Right),
        ("reason", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["attempts", "record", "set aside", "reason"]);
    for letter in letters {
        let plain = |text: String| (text, Style::Plain);
        table.styled([
            plain(letter.event_id.clone()),
            plain(letter.event_type.clone()),
            plain(letter.subject.clone()),
            plain(letter.sequence.to_string()),
            plain(to_the_second(letter.dead_at)),
            plain(letter.attempts.to_string()),
            status(letter.status),
            plain(letter.reason.clone()),
        ]);
    }
    table
}

/// Lists the types of events. The list is compiled in.
pub(super) fn events(json: bool) -> Result<(), Problem> {
    if json {
        let events = EVENT_TYPES
            .iter()
            .map(|one| json!({ "type": one.word, "about": one.about.word(), "meaning": one.meaning }));
        let events: Vec<Value> = events.collect();
        return print_json(&json!({ "events": events, "families": EVENT_FAMILIES, "others": [ACCOUNTING, "*"] }));
    }
    let mut table = Table::new(&[("type", Align::Left), ("payload", Align::Left), ("meaning", Align::Left)]);
    for one in EVENT_TYPES {
        table.row([one.word, one.about.word(), one.meaning]);
    }
    let lines = table.lines(Paint::stdout()).join("\n");
    let families = EVENT_FAMILIES.join(", ");
    print(&format!(
        "{lines}\n\n  Families: {families}\n  `{ACCOUNTING}` names all types with that payload, `*` names all types.\n"
    ))
}
