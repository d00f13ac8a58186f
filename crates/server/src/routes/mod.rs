//! Routes each endpoint of the table to its handler, and handles what all requests have in common.

mod agents;
mod allocations;
mod apps;
mod attachments;
mod audit;
mod batch;
mod books;
mod books_query;
mod budgets;
mod capacity;
mod ceilings;
mod claims;
mod corrections;
mod deliveries;
mod entitlements;
mod events;
mod explain;
mod explain_entry;
mod explain_reports;
mod explain_share;
mod forecast;
mod invoice_proof;
mod invoices;
mod keys;
mod leases;
mod ledger;
mod ledger_scope;
mod listing;
mod naming;
mod operation;
mod page;
mod payments;
mod periods;
mod policies;
mod prepaid;
mod quotas;
mod quote;
mod rates;
mod release_again;
mod resend;
mod shares;
mod sharing;
mod status;
mod submitted_again;
mod tenancy;
mod timeline;
mod times;
mod tokens;
mod usage;
mod usage_records;
mod waste;
mod webhooks;
mod windows;

use crate::app::App;
use crate::context::{Answer, Context, problem_response};
use crate::key_memory::KeyMemory;
use crate::logging::LoggedRequest;
use crate::metrics::UNROUTED;
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request};
use axum::http::Response;
use axum::routing::{MethodFilter, on};
use leasehold_api::endpoint::by_id;
use leasehold_api::{Endpoint, Method, Problem, codes};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

type Serving = Pin<Box<dyn Future<Output = Answer> + Send>>;
type Serve = fn(Context) -> Serving;

/// The handlers, each under the id of its endpoint.
mod handlers {
    pub(super) use super::{
        agents::*, allocations::*, apps::*, attachments::*, audit::*, batch::*, books::*, budgets::*, capacity::*,
        ceilings::*, claims::*, corrections::*, deliveries::*, entitlements::*, events::*, explain::*,
        explain_entry::*, forecast::*, invoice_proof::*, invoices::*, keys::*, leases::*, ledger::*, operation::*,
        payments::*, periods::*, policies::*, prepaid::*, quotas::*, quote::*, rates::*, resend::*, shares::*,
        sharing::*, status::*, tenancy::*, timeline::*, tokens::*, usage::*, usage_records::*, waste::*, webhooks::*,
        windows::*,
    };
}

macro_rules! served {
    ($($id:ident $row:tt)*) => {
        /// Every endpoint of the table with its handler. An endpoint without a handler does not compile.
        const SERVED: &[(&Endpoint, Serve)] =
            &[$((by_id::$id, |context| Box::pin(handlers::$id(context)))),*];
    };
}

leasehold_api::for_each_endpoint!(served);

/// A router for all endpoints of the table.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for (place, &(endpoint, serve)) in SERVED.iter().enumerate() {
        let filter = match endpoint.method {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
            Method::Put => MethodFilter::PUT,
            // Partial changes were made by PUT once; clients of that time are still served.
            Method::Patch if endpoint.id == by_id::update_tenant.id => MethodFilter::PATCH,
            Method::Patch => MethodFilter::PATCH.or(MethodFilter::PUT),
            Method::Delete => MethodFilter::DELETE,
        };
        let route = Arc::new(Route { place, endpoint, serve });
        let app = Arc::clone(app);
        let way = move |params: Result<RawPathParams, RawPathParamsRejection>, request: Request| {
            let (app, route) = (Arc::clone(&app), Arc::clone(&route));
            async move {
                match params {
                    Ok(params) => route.go(app, params, request).await,
                    Err(_) => {
                        unrouted(&app, &request, codes::BAD_REQUEST.problem("The path is not percent-encoded UTF-8."))
                    }
                }
            }
        };
        router = router.route(endpoint.path, on(filter, way));
    }
    let (nothing, not_so) = (Arc::clone(app), Arc::clone(app));
    router
        .fallback(|request: Request| async move {
            let path: String = request.uri().path().chars().take(128).collect();
            let problem = codes::NOT_FOUND.problem(format!("There is nothing at {path}; see /api/docs."));
            unrouted(&nothing, &request, problem)
        })
        .method_not_allowed_fallback(|request: Request| async move {
            let detail = "The path does not support this method; see the Allow header.";
            unrouted(&not_so, &request, codes::METHOD_NOT_ALLOWED.problem(detail))
        })
}

/// Answers, counts and logs a request that no endpoint matches.
fn unrouted(app: &App, request: &Request, mut problem: Problem) -> Response<Body> {
    let logged = LoggedRequest::of(request);
    problem.instance = Some(logged.id().to_owned());
    let mut response = problem_response(&problem);
    logged.set_request_id(response.headers_mut());
    app.metrics.served(UNROUTED, problem.status, logged.elapsed());
    let method = request.method().as_str();
    logged.log_as(app.settings.request_log(), method, "none", problem.status, Some(&problem.code));
    response
}

struct Route {
    /// Index in the table, for the metrics.
    place: usize,
    endpoint: &'static Endpoint,
    serve: Serve,
}

impl Route {
    async fn go(&self, app: Arc<App>, params: RawPathParams, request: Request) -> Response<Body> {
        let mut logged = LoggedRequest::of(&request);
        // The listener enforces the timeout and answers 408 itself (`listen/registry.rs`).
        let key_memory = KeyMemory::new();
        let served = async {
            let context = Context::read(Arc::clone(&app), self.endpoint, &params, request, key_memory.clone()).await?;
            context.token().into_iter().for_each(|token| logged.set_token(token));
            (self.serve)(context).await
        };
        let mut code = None;
        let mut response = served.await.unwrap_or_else(|mut problem| {
            problem.instance = Some(logged.id().to_owned());
            let response = problem_response(&problem);
            code = Some(problem.code);
            response
        });
        logged.set_request_id(response.headers_mut());
        key_memory.put(response.headers_mut());
        let status = response.status().as_u16();
        app.metrics.served(self.place, status, logged.elapsed());
        logged.log(app.settings.request_log(), self.endpoint, status, code.as_deref());
        response
    }
}
