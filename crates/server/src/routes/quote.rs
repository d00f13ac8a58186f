//! Quotes: what a request would cost, and whether it would be granted.

use super::books::amounts;
use super::leases::to_known_request;
use super::naming::Naming;
use crate::books::{ask, problem};
use crate::context::{Answer, Context, json};
use crate::explain::may_name_node;
use crate::problem::{denial, refusal_for};
use crate::unavailable_node::explain_unavailable_node;
use leasehold_api::{Problem, Quote, QuoteLine, RequestLease, Ttl, When, codes};
use leasehold_engine::{Command, Quoted};
use leasehold_meter::{Money, Window};
use leasehold_model::rate::Currency;
use leasehold_model::{DenyCause, PoolNo, quantity};

pub(super) async fn quote_lease(context: Context) -> Answer {
    let asked: RequestLease = context.body()?;
    let app = &context.app;
    let (identity, command) = app.now.read(|state| to_known_request(app, state, context.caller(), &asked))?;
    let Command::Request(request) = command else { unreachable!("to_known_request returns a request") };
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let now = app.now.clone();
    let quote = ask(&app, context.caller(), move |books, known| {
        now.readers(|state| {
            let at = known.as_of.max(state.last_stamp());
            let judged = state.view(|view| view.quote(at, &identity, &request));
            let judged = judged.map_err(|refusal| refusal_for(state, &caller, &refusal))?;
            // A quote leaves no record, so repeated quotes must not show what others hold on a node of which the caller
            // sees nothing.
            let hidden = request.node.is_some_and(|node| !may_name_node(state, &caller, node));
            let naming = Naming { state, books, workloads: &[], caller: &caller };
            // A request that would be denied is priced for the pool that it asked for.
            let (place, ttl) = match &judged {
                Quoted::Granted(quote) => (Some((quote.pool, quote.node)), quote.ttl),
                Quoted::Evicts(_) if hidden => (None, request.ttl),
                Quoted::Evicts(evicts) => (Some((evicts.pool, evicts.node)), request.ttl),
                Quoted::Denied(_) => (None, request.ttl),
            };
            let pool = place.map(|(pool, _)| pool).or(request.pool);
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
            let why: Option<Problem> = match &judged {
                Quoted::Denied(DenyCause::Capacity { .. }) | Quoted::Evicts(_) if hidden => Some(
                    codes::NO_CAPACITY
                        .problem("The requested node cannot take this request now; name another node, or none."),
                ),
                Quoted::Denied(cause @ DenyCause::Capacity { .. }) => {
                    let denied = denial(state, &identity, cause);
                    Some(explain_unavailable_node(state, &identity, request.sensitive, request.node, denied))
                }
                Quoted::Denied(cause) => Some(denial(state, &identity, cause)),
                Quoted::Granted(_) | Quoted::Evicts(_) => None,
            };
            Ok(Quote {
                as_of: When(at),
                admitted: place.is_some(),
                evicts: match &judged {
                    Quoted::Evicts(evicts) if !hidden => Some(evicts.leases as u64),
                    Quoted::Granted(_) | Quoted::Evicts(_) | Quoted::Denied(_) => None,
                },
                code: why.as_ref().map(|why| why.code.clone()),
                detail: why.map(|why| why.detail),
                pool: pool.map(|pool| naming.pool(pool)),
                node: place.map(|(_, node)| node).filter(|node| caller.sees_node(*node)).map(|node| naming.node(node)),
                ttl: Ttl(ttl),
                over_soft: matches!(&judged, Quoted::Granted(quote) if !quote.over_soft.is_empty()),
                lines,
                total,
            })
        })
    });
    json(200, &quote.await?)
}
