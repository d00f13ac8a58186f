//! `leasehold settings …`.

use super::details::Details;
use super::failure::Failed;
use super::patch::something;
use super::session::{Session, keyed};
use crate::cli::settings::SettingsCommand;
use crate::output::print_json;
use leasehold_api::{Settings, SettingsChange};

pub(super) async fn run(session: &Session, command: SettingsCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        SettingsCommand::Show => session.show(client.show_settings(), |settings| all(session, settings)).await,
        SettingsCommand::Set(args) => {
            let change = something(SettingsChange {
                ttl_max: args.ttl_max,
                grace_default: args.grace_default,
                teardown_deadline: args.teardown_deadline,
                node_timeout: args.node_timeout,
                idempotency_window: args.idempotency_window,
                heat_half_life: args.heat_half_life,
                sensitive_pool_size: args.sensitive_pool_size.unwrap_or_default(),
                head_wait_max: args.head_wait_max,
            })?;
            let changed = keyed(client.change_settings(&change), &args.change).json().await?;
            if session.json {
                return Ok(print_json(&changed)?);
            }
            session.show(client.show_settings(), |settings| all(session, settings)).await
        }
    }
}

fn all(session: &Session, settings: &Settings) -> String {
    Details::new()
        .add("ttl_max", settings.ttl_max)
        .add("grace_default", settings.grace_default)
        .add("teardown_deadline", settings.teardown_deadline)
        .add("node_timeout", settings.node_timeout)
        .add("idempotency_window", settings.idempotency_window)
        .add("heat_half_life", settings.heat_half_life)
        .add(
            "sensitive_pool_size",
            settings.sensitive_pool_size.map_or_else(|| "none".to_owned(), |size| size.to_string()),
        )
        .add("head_wait_max", settings.head_wait_max)
        .text(session.paint)
}
