//! The options of `leasehold demo`.

use clap::Args;
use leasehold_model::Span;
use leasehold_model::instant::BadSpan;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Data directory; the demo continues if it contains an earlier one [default: a new temporary directory]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Stop after this time, such as 20s or 5m [default: run until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = demo_length)]
    pub exit_after: Option<Span>,
    /// Length of the generated history in a new data directory; 0s for none
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = demo_history)]
    pub history: Span,
    /// Seed of the generated workload [default: random; it is printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print the final report as a JSON object
    #[arg(long)]
    pub json: bool,
}

fn demo_length(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: BadSpan| error.to_string())?;
    let range = Span::from_millis(500)..=Span::from_secs(30 * 86_400);
    if range.contains(&span) { Ok(span) } else { Err("the time must be between 500ms and 30d".into()) }
}

fn demo_history(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: BadSpan| error.to_string())?;
    if span <= Span::from_secs(7 * 86_400) { Ok(span) } else { Err("the history can be at most 7d long".into()) }
}
