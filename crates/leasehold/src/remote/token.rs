//! `leasehold token …`.

use super::details::{Details, or_dash};
use super::failure::Failed;
use super::secret_file::{SecretFile, show_once};
use super::session::{Session, keyed};
use crate::cli::token::{TokenCommand, TokenIssueArgs};
use crate::output::{print, print_json};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::time_format;
use leasehold_api::{NewToken, Token, When};

pub(super) async fn run(session: &Session, command: TokenCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        TokenCommand::Issue(args) => issue(session, *args).await,
        TokenCommand::List(args) => session.list(client.list_tokens().maybe("tenant", args.tenant), tokens).await,
        TokenCommand::Show(args) => session.show(client.show_token(args.token), |token| one(session, token)).await,
        TokenCommand::Revoke(args) => {
            let call = client.revoke_token(args.token);
            session.change(call, &args.change, |_| format!("token {} was revoked\n", args.token)).await
        }
        TokenCommand::Whoami => session.show(client.whoami(), |who| one(session, &who.token)).await,
    }
}

async fn issue(session: &Session, args: TokenIssueArgs) -> Result<(), Failed> {
    let expires_at = session.times.future("--expires-at", args.expires_at.as_ref())?;
    let file = args.out.as_deref().map(SecretFile::create).transpose()?;
    let expires_in = args.expires_in.map(|ttl| When(time_format::now().saturating_add(ttl.0)));
    let new = NewToken {
        name: args.name,
        role: args.role,
        tenant: args.tenant,
        project: args.project,
        user: args.user,
        node: args.node,
        app_instances: args.app_instances,
        expires_at: expires_at.or(expires_in),
    };
    let call = keyed(session.client.issue_token(&new), &args.change);
    let issued = match call.json().await {
        Ok(issued) => issued,
        Err(error) => {
            file.into_iter().for_each(SecretFile::abandon);
            return Err(error.into());
        }
    };
    let secret = issued.get("secret").and_then(|secret| secret.as_str()).map(str::to_owned);
    let token: Token = serde_json::from_value(issued["token"].clone())
        .map_err(|error| Problem::refused("bad_answer", format!("the daemon's answer is invalid: {error}")))?;
    let Some(secret) = secret else {
        let what =
            format!("token {} was issued before with this idempotency key, and its secret was shown then", token.id);
        let advice =
            format!("if the secret is lost, run `leasehold token revoke {}` and issue another token", token.id);
        return Err(Problem::refused("secret_shown_before", what).advice(advice).into());
    };
    let Some(file) = file else {
        return match session.json {
            true => Ok(print_json(&issued)?),
            false => Ok(show_once(&one(session, &token), "secret", &secret)?),
        };
    };
    let path = file.path().display().to_string();
    file.write(&secret, || format!("run `leasehold token revoke {}` and issue another token", token.id))?;
    if session.json {
        let mut shown = issued;
        shown["secret"] = serde_json::Value::Null;
        return Ok(print_json(&shown)?);
    }
    Ok(print(&format!("{}  secret       in {path}\n", one(session, &token)))?)
}

/// The scope of a token: `physics/lattice`, `node gpu-17`.
fn scope(token: &Token) -> String {
    let mut parts: Vec<String> = Vec::new();
    match (&token.tenant, &token.project) {
        (Some(tenant), Some(project)) => parts.push(format!("{tenant}/{project}")),
        (Some(tenant), None) => parts.push(tenant.clone()),
        _ => {}
    }
    parts.extend(token.user.iter().map(|user| format!("user {user}")));
    parts.extend(token.node.iter().map(|node| format!("node {node}")));
    parts.extend(token.app_instances.iter().map(|app| format!("app instance {app}")));
    if parts.is_empty() { "-".into() } else { parts.join(", ") }
}

fn tokens(tokens: &[Token]) -> Table {
    let headings = [
        ("token", Align::Right),
        ("name", Align::Left),
        ("role", Align::Left),
        ("scope", Align::Left),
        ("expires", Align::Left),
        ("fingerprint", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["fingerprint", "expires", "scope"]);
    let now = time_format::now();
    for token in tokens {
        table.row([
            token.id.to_string(),
            token.name.clone(),
            token.role.to_string(),
            scope(token),
            or_dash(token.expires_at.map(|at| time_format::distance(at, now))),
            token.fingerprint.clone(),
        ]);
    }
    table
}

fn one(session: &Session, token: &Token) -> String {
    let expires = token
        .expires_at
        .map(|at| format!("{} ({})", time_format::to_the_second(at), time_format::distance(at, time_format::now())));
    Details::new()
        .add("token", token.id)
        .add("name", &token.name)
        .add("role", token.role)
        .add("scope", scope(token))
        .add("expires", expires.unwrap_or_else(|| "never".into()))
        .add("fingerprint", &token.fingerprint)
        .text(session.paint)
}
