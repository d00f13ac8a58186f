//! `leasehold deliveries …` and `leasehold admin accounting …`.

use super::remote::ChangeArgs;
use super::webhook::WebhookArgs;
use clap::{Args, Subcommand};
use leasehold_api::Moment;

#[derive(Debug, Subcommand)]
pub(crate) enum DeliveriesCommand {
    /// List how far the deliveries to each webhook came
    #[command(after_help = "\
Examples:
  leasehold deliveries list
  leasehold deliveries list --json | jq '.deliveries[] | {name: .webhook.name, lag_events}'")]
    List,
    /// Send events again that were set aside
    Retry(RetryArgs),
    /// Send all events again from a record on
    Replay(ReplayArgs),
    /// Show how far a retry, replay or reconciliation is, or how the last one ended
    #[command(after_help = "\
Example:
  leasehold deliveries job biller")]
    Job(WebhookArgs),
}

/// What all of them have in common that send events again.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// Do not wait until it has ended; `leasehold deliveries job` shows how far it is
    #[arg(long)]
    pub(crate) no_wait: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold deliveries retry biller
  leasehold deliveries retry biller --event 9f2c01aa8806000000000000000010e1

The events keep their IDs. What is refused again is set aside again, and the exit code is 1. The daemon goes on if this
command is ended.")]
pub(crate) struct RetryArgs {
    #[command(flatten)]
    pub(crate) of: WebhookArgs,
    /// Only the event with this ID [default: all that were set aside]
    #[arg(long, value_name = "ID")]
    pub(crate) event: Option<String>,
    #[command(flatten)]
    pub(crate) job: JobArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold deliveries replay biller --from 48211
  leasehold deliveries replay biller --from 0 --no-wait

All events of the webhook from this record on are sent again, with the IDs that they had: a receiver that keeps IDs
takes each once. Ordinary deliveries go on meanwhile. The daemon goes on if this command is ended.")]
pub(crate) struct ReplayArgs {
    #[command(flatten)]
    pub(crate) of: WebhookArgs,
    /// Sequence number of the first record whose events are sent again
    #[arg(long, value_name = "SEQUENCE")]
    pub(crate) from: u64,
    #[command(flatten)]
    pub(crate) job: JobArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AccountingCommand {
    /// Show whether events are delivered, how far behind each webhook is, and which settings fit
    #[command(after_help = "\
Examples:
  leasehold admin accounting status
  leasehold admin accounting status --json | jq .advice")]
    Status,
    /// Compare what was due in a time with what was acknowledged, and send what is missing
    Reconcile(ReconcileArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold admin accounting reconcile --since 2026-03-01 --until 2026-03-02 --dry-run
  leasehold admin accounting reconcile --since 2026-03-01 --until 2026-03-02
  leasehold admin accounting reconcile biller --since yesterday

Events are missing if they were set aside, or skipped by a webhook that was too far behind. A second run sends nothing.
The result is recorded in the journal, also if nothing was missing. The daemon goes on if this command is ended.")]
pub(crate) struct ReconcileArgs {
    /// Name or number of the webhook [default: all that you may manage]
    pub(crate) webhook: Option<String>,
    /// Tenant of the webhook or webhooks
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Beginning of the time, such as 2026-03-01, yesterday, or 2h for two hours ago
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Moment,
    /// End of the time, exclusive, in the same formats [default: now]
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<Moment>,
    /// Only compare; nothing is sent or recorded
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not wait until it has ended; `leasehold deliveries job` shows how far it is
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) no_wait: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
