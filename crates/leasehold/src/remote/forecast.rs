//! `leasehold cost forecast`.

use super::books::filtered;
use super::csv::{one_form, print_rows};
use super::details::Details;
use super::failure::Failed;
use super::figures::{amounts, say_as_of};
use super::session::Session;
use crate::cli::books::ForecastArgs;
use crate::output::print;
use leasehold_api::ForecastPart;
use leasehold_client::BookQuery;

pub(super) async fn forecast(session: &Session, args: ForecastArgs) -> Result<(), Failed> {
    let csv = one_form(session, args.csv)?;
    let time_zone = session.times.in_zone(args.zone.as_ref()).zone_name();
    let call = session.client.forecast().asking(&BookQuery { time_zone, ..filtered(args.filter) });
    if session.json {
        return Ok(crate::output::print_json(&call.json().await?)?);
    }
    let report = call.await?;
    let all = ForecastPart {
        accrued: report.accrued.clone(),
        to_deadlines: report.to_deadlines.clone(),
        to_month_end: report.to_month_end.clone(),
    };
    if let Some(csv) = csv {
        let parts = [("all", &all), ("leases", &report.leases), ("claims", &report.claims)];
        let rows = parts.into_iter().flat_map(|(of, part)| {
            let sums = [
                ("accrued", &part.accrued),
                ("to_deadlines", &part.to_deadlines),
                ("to_month_end", &part.to_month_end),
            ];
            sums.into_iter().flat_map(move |(what, sums)| {
                sums.iter()
                    .cloned()
                    .map(move |sum| vec![what.to_owned(), sum.currency, sum.amount, sum.exact, of.to_owned()])
            })
        });
        print_rows(csv, &["what", "currency", "amount", "exact", "of"], rows)?;
    } else {
        let mut details = Details::new()
            .add("so far", amounts(&all.accrued))
            .add("if every lease ends at its deadline", amounts(&all.to_deadlines))
            .add("if every lease is held to the end of the month", amounts(&all.to_month_end));
        let claims = &report.claims;
        if !claims.to_month_end.is_empty() {
            details = details
                .add("of this, for claimed nodes so far", amounts(&claims.accrued))
                .add("for claimed nodes to the end of the month", amounts(&claims.to_month_end));
        }
        print(&details.text(session.paint))?;
    }
    say_as_of(report.as_of, report.as_of_size, &report.stretch);
    Ok(())
}
