//! `leasehold key …`.

use super::details::Details;
use super::failure::Failed;
use super::session::{Session, keyed, settings};
use crate::cli::key::{KeyCommand, KeyRotateArgs};
use crate::cli::remote::DaemonArgs;
use crate::numbers::thousands;
use crate::output::{print, print_json};
use crate::problem::{EXIT_OK, Problem};
use crate::term::Paint;
use leasehold_api::{KeyList, KeyRotated, KeyRotationFinished, SigningKey};

/// Runs a key command, with the daemon or on files.
pub(crate) fn run(daemon: &DaemonArgs, command: KeyCommand) -> Result<u8, Problem> {
    match command {
        KeyCommand::Show(args) if args.journal.data.is_some() => {
            let list = crate::audit::keys(&args.journal)?;
            match daemon.json {
                true => print_json(&serde_json::to_value(&list).unwrap_or_default())?,
                false => print(&text(&list, Paint::stdout()))?,
            }
        }
        KeyCommand::Show(_) => Session::with(settings(daemon)?, daemon.json)?
            .during(async |session| session.show(session.client.list_keys(), |list| text(list, session.paint)).await)?,
        KeyCommand::Rotate(args) => {
            Session::with(settings(daemon)?, daemon.json)?.during(async |session| rotate(session, &args).await)?;
        }
    }
    Ok(EXIT_OK)
}

async fn rotate(session: &Session, args: &KeyRotateArgs) -> Result<(), Failed> {
    let client = &session.client;
    match args.finish {
        false => session.show(keyed(client.rotate_key(), &args.change), rotated).await,
        true => session.show(keyed(client.finish_key_rotation(), &args.change), finished).await,
    }
}

fn rotated(rotated: &KeyRotated) -> String {
    let KeyRotated { sequence, old_key, new_key, verifier_key } = rotated;
    format!(
        "Key {new_key} is in force from record {sequence} on. Key {old_key} still signs with it.\n\
         key {verifier_key}\n\
         Collectors and verifiers that have the journal follow by themselves. When they have seen a newer checkpoint,\n\
         finish the rotation with  leasehold key rotate --finish\n"
    )
}

fn finished(finished: &KeyRotationFinished) -> String {
    match finished.retired.as_slice() {
        [] => format!("No rotation is in progress; key {} is in force. Nothing was changed.\n", finished.key),
        retired => {
            format!(
                "Key {} no longer signs, and was removed from the key file. Key {} is in force.\n",
                retired.join(", "),
                finished.key
            )
        }
    }
}

fn text(list: &KeyList, paint: Paint) -> String {
    let next = list.keys.iter().skip(1).map(Some).chain([None]);
    let keys: Vec<String> = list.keys.iter().zip(next).map(|(key, next)| one(key, next, paint)).collect();
    keys.join("\n")
}

/// A key, and how long it was in force before the next one.
fn one(key: &SigningKey, next: Option<&SigningKey>, paint: Paint) -> String {
    let until = next.and_then(|next| next.from_size).map(|size| size - 1);
    let from = match (key.from_size.map(thousands), key.since, until.map(thousands)) {
        (Some(from), Some(since), Some(until)) => format!("sizes {from} to {until}, since {since}"),
        (Some(from), Some(since), None) => format!("sizes from {from} on, since {since}"),
        _ => "unknown; that part of the journal was moved away or deleted".to_owned(),
    };
    let details = Details::new()
        .add("id", &key.id)
        .add("status", key.status)
        .add("in force for", from)
        .add("public key", &key.public_key)
        .add("fingerprint", &key.fingerprint);
    format!("key {}\n{}", key.verifier_key, details.text(paint))
}
