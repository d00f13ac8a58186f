//! `leasehold usage-record …`.

use clap::{Args, Subcommand};
use leasehold_api::{AllocationId, Moment};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum UsageRecordCommand {
    /// Report what was used of an app instance
    Report(Box<UsageReportArgs>),
    /// Send usage records from a file, as often as you like: each is recorded once
    Send(UsageSendArgs),
    /// Show a usage record by its ID
    Show(UsageShowArgs),
    /// List the usage of a month that entitlements refused
    Refused(UsageRefusedArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold usage-record report chat --id r1 --unit requests --quantity 10 --from 2h --to 1h --correlation UUID
  leasehold usage-record report chat --id r2 --unit requests --quantity 12 --from 2h --to 1h --correlation UUID
  leasehold usage-record report chat --id r3 --supersedes r1 --unit requests --quantity 0 --from 2h --to 1h --correlation UUID

The anchors (app, operating mode, scope, backend) are taken from the registry; a runtime states them itself.")]
pub(crate) struct UsageReportArgs {
    /// App instance: name or number
    pub(crate) app_instance: String,
    /// ID of the record, unique for the token; sent again, it is recorded once
    #[arg(long, value_name = "ID")]
    pub(crate) id: String,
    /// Usage unit
    #[arg(long, value_name = "NAME")]
    pub(crate) unit: String,
    /// How much was used
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub(crate) quantity: String,
    /// From when on it was used
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Moment,
    /// Until when it was used
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Moment,
    /// Correlation ID: a UUID, or 32 hexadecimal digits
    #[arg(long, value_name = "ID")]
    pub(crate) correlation: String,
    /// Tenant whose usage it is [default: that of the app instance]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Project whose usage it is [default: that of the app instance]
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// User who asked for it
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// The control plane used it, and not the work that it runs
    #[arg(long)]
    pub(crate) control_plane: bool,
    /// Attachment that lends the worker on which it was used
    #[arg(long, value_name = "NUMBER", requires = "allocation")]
    pub(crate) attachment: Option<u64>,
    /// Allocation that holds the lent worker
    #[arg(long, value_name = "ALLOCATION", requires = "attachment")]
    pub(crate) allocation: Option<AllocationId>,
    /// ID of the record that it supersedes
    #[arg(long, value_name = "ID")]
    pub(crate) supersedes: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold usage-record send records.json             # a list, or {\"records\": [...]}
  leasehold usage-record send records.jsonl            # one record on each line
  exporter | leasehold usage-record send -

Each record has the fields of POST /api/v1/usage-records. Records that were recorded before are counted and
left alone, so that a file can be sent again after an interruption. The exit code is 1 if a record was refused.")]
pub(crate) struct UsageSendArgs {
    /// File with usage records in JSON, or - for standard input
    pub(crate) file: PathBuf,
    /// Record all of them or none; at most 1,000
    #[arg(long)]
    pub(crate) atomic: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UsageShowArgs {
    /// ID of the record
    pub(crate) id: String,
    /// Who reported it: the name of its token [default: the token in use]
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// Tenant of that token, or - for an operator [default: that of the token in use]
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct UsageRefusedArgs {
    /// Month as YYYY-MM [default: the present one]
    #[arg(long, value_name = "MONTH")]
    pub(crate) month: Option<String>,
    /// Only that of this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}
