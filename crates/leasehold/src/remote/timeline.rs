//! `leasehold timeline`.

use super::failure::Failed;
use super::session::Session;
use crate::cli::timeline::TimelineArgs;
use crate::table::{Align, Table};
use crate::term::Style;
use crate::time_format::to_the_second;
use leasehold_api::{TimelineKind, TimelineStep};

pub(super) async fn run(session: &Session, args: TimelineArgs) -> Result<(), Failed> {
    session.list(session.client.timeline(args.correlation_id), steps).await
}

fn style(kind: TimelineKind) -> Style {
    match kind {
        TimelineKind::Request | TimelineKind::Decision => Style::Bold,
        TimelineKind::Correction => Style::Yellow,
        TimelineKind::Usage => Style::Dim,
        TimelineKind::Lease | TimelineKind::Allocation | TimelineKind::Entry | TimelineKind::Invoice => Style::Plain,
    }
}

fn steps(steps: &[TimelineStep]) -> Table {
    let headings = [("at", Align::Left), ("record", Align::Right), ("step", Align::Left), ("what", Align::Left)];
    let mut table = Table::new(&headings).shrink_first(&["what", "record"]);
    for step in steps {
        let event = match step.count {
            0 | 1 => step.event.clone(),
            count => format!("{} ×{count}", step.event),
        };
        let sequence = step.sequence.map_or_else(String::new, |sequence| sequence.to_string());
        let cells = [to_the_second(step.at), sequence, event, step.text.clone()];
        table.styled(cells.map(|cell| (cell, style(step.kind))));
    }
    table
}
