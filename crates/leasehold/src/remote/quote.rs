//! `leasehold lease quote`.

use super::details::Details;
use super::figures::{amounts, quantity};
use super::session::Session;
use crate::numbers::counted;
use crate::table::{Align, Table};
use crate::term::Style;
use crate::time_format;
use leasehold_api::Quote;

pub(super) fn text(session: &Session, quote: &Quote) -> String {
    let headings = [("class", Align::Left), ("quantity", Align::Right), ("cost", Align::Right)];
    let mut table = Table::new(&headings).shrink_first(&["class"]);
    for line in &quote.lines {
        table.row([line.class.clone(), format!("{} {}", quantity(&line.quantity), line.unit), amounts(&line.cost)]);
    }
    let (verdict, style) = match (quote.admitted, quote.evicts) {
        (true, None) => ("would be granted", Style::Green),
        (true, Some(_)) => ("would wait until evicted leases have ended", Style::Yellow),
        (false, _) => ("would be denied", Style::Red),
    };
    let why = quote.code.as_ref().map(|code| {
        let detail = quote.detail.as_deref().unwrap_or_default();
        format!("{} ({code})", detail.trim_end_matches('.'))
    });
    let details = Details::new()
        .add("request", session.paint.paint(style, verdict))
        .maybe("why", why)
        .maybe("evicts", quote.evicts.map(|leases| counted(leases, "lease")))
        .maybe("pool", quote.pool.as_ref())
        .maybe("node", quote.node.as_ref())
        .add("TTL", time_format::span(quote.ttl.0))
        .maybe("soft quota", quote.over_soft.then_some("would be exceeded"))
        .add("total", amounts(&quote.total))
        .text(session.paint);
    format!("{}\n{details}", session.lines(&table).join("\n") + "\n")
}
