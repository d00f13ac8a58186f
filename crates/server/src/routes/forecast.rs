//! The forecast of the current month, for leases and for claims.

use super::books::{amounts, amounts_together, stretch};
use super::books_query::{BooksQuery, bad_buckets};
use crate::books::{ask, problem};
use crate::context::{Answer, Context, json};
use leasehold_api::{Amount, Forecast, ForecastPart, Problem, When};
use leasehold_books::{CostLine, Dim, HeldAs, month_of};
use leasehold_meter::{Money, Window};
use leasehold_model::Instant;
use leasehold_model::rate::Currency;

/// The cost of everything, of leases, and of claims; the last two add up to the first.
struct Parts {
    all: Vec<Amount>,
    leases: Vec<Amount>,
    claims: Vec<Amount>,
}

/// The first dimension of the lines is what capacity is held as.
fn parts(lines: &[&CostLine]) -> Result<Parts, Problem> {
    let money = |wanted: Option<HeldAs>| {
        let of = lines.iter().filter(move |line| wanted.is_none_or(|wanted| line.key[0] == wanted as u64));
        of.map(|line| (line.currency, &line.money))
    };
    let sums = |wanted: HeldAs| -> Result<Vec<(Currency, Money)>, Problem> {
        let mut sums: std::collections::BTreeMap<Currency, Money> = std::collections::BTreeMap::new();
        for (currency, money) in money(Some(wanted)) {
            sums.entry(currency).or_default().add_all(money).map_err(super::books::overflow)?;
        }
        Ok(sums.into_iter().collect())
    };
    let (leases, claims) = (sums(HeldAs::Lease)?, sums(HeldAs::IdleClaim)?);
    let both: Vec<(Currency, &Money)> =
        leases.iter().chain(&claims).map(|(currency, money)| (*currency, money)).collect();
    let mut rounded = amounts_together(&both)?;
    let claims = rounded.split_off(leases.len());
    Ok(Parts { all: amounts(money(None))?, leases: rounded, claims })
}

pub(super) async fn forecast(context: Context) -> Answer {
    let asked = context.app.now.read(|state| BooksQuery::read(&context, state))?;
    let asked = asked.without_window("A forecast is always for the current month")?;
    let app = context.app.clone();
    let report = ask(&app, context.caller(), move |books, known| {
        let as_of: Instant = known.as_of;
        let month = month_of(as_of, asked.zone.as_deref()).map_err(|why| bad_buckets(&why))?;
        let mut question = asked.question(books, Window::new(month.from, as_of))?;
        let failed = |error| problem(&error);
        // Telling claims from leases takes a pass over the leases of the month; most clusters have no claims.
        let has_claims = books.has_claims();
        if has_claims {
            question.dims = [Dim::HeldAs].into_iter().collect();
        }
        let (mut accrued, _) = books.cost(&question).map_err(failed)?;
        if !has_claims {
            accrued.iter_mut().for_each(|line| line.key[0] = HeldAs::Lease as u64);
            question.dims = [Dim::HeldAs].into_iter().collect();
        }
        let ahead = |renewed| books.cost_ahead(&question, as_of, month.to, renewed).map_err(failed);
        let with = |more: &[CostLine]| parts(&accrued.iter().chain(more).collect::<Vec<_>>());
        let (accrued, to_deadlines, to_month_end) = (with(&[])?, with(&ahead(false)?)?, with(&ahead(true)?)?);
        Ok(Forecast {
            stretch: stretch(month),
            as_of: When(as_of),
            as_of_size: known.size,
            accrued: accrued.all,
            to_deadlines: to_deadlines.all,
            to_month_end: to_month_end.all,
            leases: ForecastPart {
                accrued: accrued.leases,
                to_deadlines: to_deadlines.leases,
                to_month_end: to_month_end.leases,
            },
            claims: ForecastPart {
                accrued: accrued.claims,
                to_deadlines: to_deadlines.claims,
                to_month_end: to_month_end.claims,
            },
        })
    });
    json(200, &report.await?)
}
