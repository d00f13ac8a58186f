//! `leasehold timeline`.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold timeline 5f0c1b3e-8a44-4d2e-9c55-0e6b7a1d2f33
  leasehold --json timeline 5f0c1b3e8a444d2e9c550e6b7a1d2f33

The ID is the one that a request was made with (--correlation-id). If it had none, `leasehold lease show` and
`leasehold alloc show` print the one that the daemon derived. Renewals are one row, at the last of them.")]
pub(crate) struct TimelineArgs {
    /// Correlation ID: a UUID, or its 32 hexadecimal digits
    #[arg(value_name = "CORRELATION_ID")]
    pub(crate) correlation_id: String,
}
