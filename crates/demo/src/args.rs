//! What can be typed after `leasehold demo`.

use clap::Args;
use leasehold_model::Span;
use leasehold_model::instant::BadSpan;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct DemoArgs {
    /// The folder to use; one made by an earlier demo is gone on with [default: a new temporary folder]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Stop after this time, such as 20s or 5m [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = demo_length)]
    pub exit_after: Option<Span>,
    /// How much of a past a new folder gets; 0s is none
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = demo_history)]
    pub history: Span,
    /// Draw the same work again [default: a new seed, which is printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print the final report as one JSON object
    #[arg(long)]
    pub json: bool,
}

fn demo_length(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: BadSpan| error.to_string())?;
    let range = Span::from_millis(500)..=Span::from_secs(30 * 86_400);
    if range.contains(&span) { Ok(span) } else { Err("a demo runs for 500ms to 30d".into()) }
}

fn demo_history(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: BadSpan| error.to_string())?;
    if span <= Span::from_secs(7 * 86_400) { Ok(span) } else { Err("a demo looks back 7d at most".into()) }
}
