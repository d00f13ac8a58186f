//! What a request would come to, if it were made.

use super::books::{Naming, amounts};
use super::leases::to_known_request;
use crate::books::{ask, problem};
use crate::context::{Answer, Context, json};
use crate::problem::{denial, refused};
use leasehold_api::{Problem, Quote, QuoteLine, RequestLease, Ttl, When};
use leasehold_engine::Command;
use leasehold_meter::{Money, Window};
use leasehold_model::rate::Currency;
use leasehold_model::{PoolNo, quantity};

pub(super) async fn quote_lease(context: Context) -> Answer {
    let asked: RequestLease = context.body()?;
    let app = &context.app;
    let (identity, command) = app.now.read(|state| to_known_request(app, state, context.caller(), &asked))?;
    let Command::Request(request) = command else { unreachable!("a request was made of it") };
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let now = app.now.clone();
    let quote = ask(&app, move |books, known| {
        now.read(|state| {
            let at = known.as_of.max(state.last_stamp());
            let judged = state.quote(at, &identity, &request).map_err(|refusal| refused(&refusal))?;
            let naming = Naming { state, books, workloads: &[], caller: &caller };
            // Where it would not go anywhere, it is priced where it wanted to go.
            let pool = judged.as_ref().map_or(request.pool, |quote| Some(quote.pool));
            let ttl = judged.as_ref().map_or(request.ttl, |quote| quote.ttl);
            let held = Window::new(at, at.saturating_add(ttl));
            let mut all: Vec<(Currency, Money)> = Vec::new();
            let mut lines = Vec::new();
            for (class, quanta) in &request.asks {
                let what = (*class, pool.unwrap_or(PoolNo(u32::MAX)), request.priority);
                let cost = books.price(what, quanta.0, held).map_err(|error| problem(&error))?;
                let spec = naming.spec(*class)?;
                lines.push(QuoteLine {
                    class: spec.name.to_string(),
                    quantity: quantity::display(*quanta, spec),
                    unit: spec.kind.unit().to_owned(),
                    cost: amounts(cost.iter().map(|(currency, money)| (*currency, money)))?,
                });
                all.extend(cost);
            }
            let total = amounts(all.iter().map(|(currency, money)| (*currency, money)))?;
            let why: Option<Problem> = judged.as_ref().err().map(|cause| denial(state, identity.tenant, cause));
            let placed = judged.as_ref().ok();
            Ok(Quote {
                as_of: When(at),
                admitted: placed.is_some(),
                code: why.as_ref().map(|why| why.code.clone()),
                detail: why.map(|why| why.detail),
                pool: pool.map(|pool| naming.pool(pool)),
                node: placed.filter(|quote| caller.sees_node(quote.node)).map(|quote| naming.node(quote.node)),
                ttl: Ttl(ttl),
                over_soft: placed.is_some_and(|quote| !quote.over_soft.is_empty()),
                lines,
                total,
            })
        })
    });
    json(200, &quote.await?)
}
