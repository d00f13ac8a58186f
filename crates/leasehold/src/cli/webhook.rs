//! `leasehold webhook …`.

use super::remote::ChangeArgs;
use clap::{Args, Subcommand};
use leasehold_api::Ttl;
use leasehold_model::body::SinkSignature;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Make a webhook, to which events are delivered from now on, and print its secret, once
    Create(WebhookCreateArgs),
    /// List webhooks
    List(WebhookListArgs),
    /// Show one webhook
    #[command(after_help = "\
Examples:
  leasehold webhook show biller
  leasehold webhook show biller --tenant physics --json")]
    Show(WebhookArgs),
    /// Change a webhook, and enable it if it was disabled; options that are not given keep their values
    Set(WebhookSetArgs),
    /// Deliver nothing more until the webhook is changed; what happens meanwhile is delivered later
    #[command(after_help = "\
Examples:
  leasehold webhook disable biller
  leasehold webhook set biller --enable")]
    Disable(WebhookChangeArgs),
    /// Delete a webhook, and forget how far its deliveries came
    #[command(after_help = "\
Example:
  leasehold webhook delete biller --tenant physics")]
    Delete(WebhookChangeArgs),
    /// Give a webhook a new secret and print it, once; the old one is used as well for a while
    RotateSecret(RotateSecretArgs),
    /// Send one event that says nothing, and show what the receiver answers; the exit code is 1 unless that is a 2xx
    #[command(after_help = "\
Examples:
  leasehold webhook test biller
  leasehold webhook test biller --json | jq .status")]
    Test(WebhookArgs),
    /// List the last attempts to deliver, up to 100, the oldest first
    #[command(after_help = "\
Example:
  leasehold webhook attempts biller")]
    Attempts(WebhookArgs),
    /// List the events that could not be delivered and were set aside
    #[command(after_help = "\
Examples:
  leasehold webhook dead-letters biller
  leasehold deliveries retry biller         # send them again")]
    DeadLetters(WebhookArgs),
    /// List the types of events that can be delivered, and the words that name several of them
    #[command(after_help = "\
Examples:
  leasehold webhook events
  leasehold webhook events --json | jq -r .events[].type

The list is part of this program; no daemon is asked.")]
    Events,
}

/// One webhook.
#[derive(Clone, Debug, Args)]
pub(crate) struct WebhookArgs {
    /// Name or number of the webhook
    pub(crate) webhook: String,
    /// Tenant that it belongs to [default: the tenant of the token, or the operator]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

/// A change of one webhook that takes no further options.
#[derive(Debug, Args)]
pub(crate) struct WebhookChangeArgs {
    #[command(flatten)]
    pub(crate) of: WebhookArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold webhook create biller --to https://bills.example.com/hooks/leasehold --events accounting
  leasehold webhook create alerts --to https://example.com/hooks --events 'lease.fenced,node.*' --out alerts.secret
  leasehold webhook create own --to https://example.com/hooks --tenant physics --signature ed25519

A webhook of a tenant is delivered the events of this tenant only; one of the operator those of all tenants. With
hmac, what is printed is the secret that both sides share; with ed25519, it is the public key.")]
pub(crate) struct WebhookCreateArgs {
    /// Name of the webhook
    pub(crate) name: String,
    /// Where events are delivered to: an https address without user name and password
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    /// Types of events, families such as 'lease.*', or accounting; comma-separated [default: all events]
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub(crate) events: Vec<String>,
    /// How deliveries are signed [default: hmac]
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) signature: Option<SinkSignature>,
    /// Tenant that it belongs to [default: the tenant of the token, or the operator]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Write the secret to this new file, readable only by you, instead of printing it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold webhook list
  leasehold webhook list --tenant physics")]
pub(crate) struct WebhookListArgs {
    /// Only webhooks of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold webhook set biller --to https://bills.example.com/hooks/v2
  leasehold webhook set biller --events 'allocation.*,node.claimed'
  leasehold webhook set biller --enable                # it was disabled, by you or because the receiver answered 410")]
pub(crate) struct WebhookSetArgs {
    #[command(flatten)]
    pub(crate) of: WebhookArgs,
    /// New name
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// New address
    #[arg(long, value_name = "URL")]
    pub(crate) to: Option<String>,
    /// Types of events from now on, comma-separated
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub(crate) events: Vec<String>,
    /// Enable it again; every other change does so as well
    #[arg(long)]
    pub(crate) enable: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold webhook rotate-secret biller
  leasehold webhook rotate-secret biller --overlap 1h --out biller.secret
  leasehold webhook rotate-secret biller --overlap 0s      # the old secret is not used any more, at once")]
pub(crate) struct RotateSecretArgs {
    #[command(flatten)]
    pub(crate) of: WebhookArgs,
    /// How long deliveries are signed with the old secret as well [default: 24h]
    #[arg(long, value_name = "DURATION")]
    pub(crate) overlap: Option<Ttl>,
    /// Write the secret to this new file, readable only by you, instead of printing it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
