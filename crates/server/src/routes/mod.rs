//! From an endpoint of the table to the function that serves it; and the way every request goes.

mod agents;
mod allocations;
mod asking;
mod audit;
mod batch;
mod books;
mod budgets;
mod capacity;
mod ceilings;
mod claims;
mod events;
mod explain;
mod leases;
mod listing;
mod operation;
mod page;
mod quotas;
mod quote;
mod rates;
mod tenancy;
mod tokens;
mod waste;

use crate::app::App;
use crate::context::{Answer, Context, problem_response};
use crate::logging::Seen;
use crate::metrics::UNROUTED;
use axum::Router;
use axum::body::Body;
use axum::extract::{RawPathParams, Request};
use axum::http::Response;
use axum::routing::{MethodFilter, on};
use leasehold_api::endpoint::endpoints;
use leasehold_api::{Endpoint, Method, Problem, codes};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

type Serving = Pin<Box<dyn Future<Output = Answer> + Send>>;
type Serve = fn(Context) -> Serving;

macro_rules! serving {
    ($($id:literal => $serve:path,)*) => {
        /// The function that serves an endpoint.
        fn serve_by(id: &str) -> Option<Serve> {
            match id {
                $($id => Some(|context| Box::pin($serve(context))),)*
                _ => None,
            }
        }
    };
}

serving! {
    "about" => operation::about,
    "whoami" => tokens::whoami,
    "list_tenants" => tenancy::list_tenants,
    "create_tenant" => tenancy::create_tenant,
    "show_tenant" => tenancy::show_tenant,
    "change_tenant" => tenancy::change_tenant,
    "tenant_usage" => budgets::tenant_usage,
    "delete_tenant" => tenancy::delete_tenant,
    "list_projects" => tenancy::list_projects,
    "create_project" => tenancy::create_project,
    "show_project" => tenancy::show_project,
    "change_project" => tenancy::change_project,
    "delete_project" => tenancy::delete_project,
    "list_ceilings" => ceilings::list_ceilings,
    "show_ceiling" => ceilings::show_ceiling,
    "put_ceiling" => ceilings::put_ceiling,
    "delete_ceiling" => ceilings::delete_ceiling,
    "list_users" => tenancy::list_users,
    "create_user" => tenancy::create_user,
    "show_user" => tenancy::show_user,
    "change_user" => tenancy::change_user,
    "delete_user" => tenancy::delete_user,
    "list_classes" => capacity::list_classes,
    "create_class" => capacity::create_class,
    "show_class" => capacity::show_class,
    "change_class" => capacity::change_class,
    "list_pools" => capacity::list_pools,
    "create_pool" => capacity::create_pool,
    "show_pool" => capacity::show_pool,
    "change_pool" => capacity::change_pool,
    "delete_pool" => capacity::delete_pool,
    "list_nodes" => capacity::list_nodes,
    "create_node" => capacity::create_node,
    "show_node" => capacity::show_node,
    "change_node" => capacity::change_node,
    "delete_node" => capacity::delete_node,
    "drain_node" => capacity::drain_node,
    "resume_node" => capacity::resume_node,
    "lose_node" => capacity::lose_node,
    "return_node" => capacity::return_node,
    "claim_nodes" => claims::claim_nodes,
    "release_nodes" => claims::release_nodes,
    "list_claims" => claims::list_claims,
    "report_wipe" => claims::report_wipe,
    "clear_quarantine" => claims::clear_quarantine,
    "register_agent" => agents::register_agent,
    "detach_agent" => agents::detach_agent,
    "heartbeat" => agents::heartbeat,
    "confirm_teardowns" => leases::confirm_teardowns,
    "list_quotas" => quotas::list_quotas,
    "create_quota" => quotas::create_quota,
    "show_quota" => quotas::show_quota,
    "change_quota" => quotas::change_quota,
    "delete_quota" => quotas::delete_quota,
    "usage" => books::usage,
    "capacity" => books::capacity,
    "costs" => books::costs,
    "cost_rate" => books::cost_rate,
    "forecast" => books::forecast,
    "waste" => waste::waste,
    "sensitivity" => books::sensitivity,
    "list_rate_cards" => rates::list_rate_cards,
    "create_rate_card" => rates::create_rate_card,
    "current_rate_card" => rates::current_rate_card,
    "show_rate_card" => rates::show_rate_card,
    "change_rate_card" => rates::change_rate_card,
    "delete_rate_card" => rates::delete_rate_card,
    "list_charge_policies" => rates::list_charge_policies,
    "create_charge_policy" => rates::create_charge_policy,
    "change_charge_policy" => rates::change_charge_policy,
    "list_leases" => leases::list_leases,
    "request_lease" => leases::request_lease,
    "quote_lease" => quote::quote_lease,
    "explain_lease" => explain::explain_lease,
    "explain_allocation" => explain::explain_allocation,
    "explain_node" => explain::explain_node,
    "explain_decision" => explain::explain_decision,
    "batch" => batch::batch,
    "show_lease" => leases::show_lease,
    "lease_history" => leases::lease_history,
    "renew_lease" => leases::renew_lease,
    "release_lease" => leases::release_lease,
    "revoke_lease" => leases::revoke_lease,
    "lease_ready" => leases::lease_ready,
    "report_activity" => leases::report_activity,
    "confirm_teardown" => leases::confirm_teardown,
    "unfence_lease" => leases::unfence_lease,
    "list_allocations" => allocations::list_allocations,
    "submit_allocation" => allocations::submit_allocation,
    "show_allocation" => allocations::show_allocation,
    "start_allocation" => allocations::start_allocation,
    "begin_checkpoint" => allocations::begin_checkpoint,
    "report_checkpoint" => allocations::report_checkpoint,
    "complete_allocation" => allocations::complete_allocation,
    "cancel_allocation" => allocations::cancel_allocation,
    "list_tokens" => tokens::list_tokens,
    "issue_token" => tokens::issue_token,
    "show_token" => tokens::show_token,
    "revoke_token" => tokens::revoke_token,
    "list_records" => audit::list_records,
    "checkpoint" => audit::checkpoint,
    "prove_inclusion" => audit::prove_inclusion,
    "prove_consistency" => audit::prove_consistency,
    "export" => audit::export,
    "batches" => audit::batches,
    "events" => events::events,
    "show_settings" => operation::show_settings,
    "change_settings" => operation::change_settings,
    "openapi" => operation::openapi,
    "docs" => operation::docs,
    "healthz" => operation::healthz,
    "readyz" => operation::readyz,
    "metrics" => operation::metrics,
}

/// All endpoints of the table, served.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for (place, endpoint) in endpoints().into_iter().enumerate() {
        let serve = serve_by(endpoint.id).expect("every endpoint of the table is served");
        let filter = match endpoint.method {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
            Method::Put => MethodFilter::PUT,
            Method::Delete => MethodFilter::DELETE,
        };
        let route = Arc::new(Route { place, endpoint, serve });
        let (app, path) = (Arc::clone(app), route.endpoint.path);
        let way = move |params: RawPathParams, request: Request| {
            let (app, route) = (Arc::clone(&app), Arc::clone(&route));
            async move { route.go(app, params, request).await }
        };
        router = router.route(path, on(filter, way));
    }
    let (nothing, not_so) = (Arc::clone(app), Arc::clone(app));
    router
        .fallback(|request: Request| async move {
            let path: String = request.uri().path().chars().take(128).collect();
            let problem =
                codes::NOT_FOUND.problem(format!("There is nothing at {path}; /api/docs says what there is."));
            unrouted(&nothing, &request, problem)
        })
        .method_not_allowed_fallback(|request: Request| async move {
            let detail = "The path exists, but not with this method; see the Allow header.";
            unrouted(&not_so, &request, codes::METHOD_NOT_ALLOWED.problem(detail))
        })
}

/// Answers a request that no endpoint takes; it is counted and logged like the others.
fn unrouted(app: &App, request: &Request, mut problem: Problem) -> Response<Body> {
    let seen = Seen::of(request);
    problem.instance = Some(seen.id().to_owned());
    let mut response = problem_response(&problem);
    seen.name(response.headers_mut());
    app.metrics.served(UNROUTED, problem.status, seen.elapsed());
    let method = request.method().as_str();
    seen.log_as(app.request_log, method, "none", problem.status, Some(&problem.code));
    response
}

struct Route {
    /// Its place in the table, by which it is counted.
    place: usize,
    endpoint: Endpoint,
    serve: Serve,
}

impl Route {
    async fn go(&self, app: Arc<App>, params: RawPathParams, request: Request) -> Response<Body> {
        let mut seen = Seen::of(&request);
        let limit = app.limits.request_timeout + app.limits.body_timeout;
        let served = async {
            let context = Context::read(Arc::clone(&app), &self.endpoint, &params, request).await?;
            context.token().into_iter().for_each(|token| seen.by(token));
            (self.serve)(context).await
        };
        let answer = match tokio::time::timeout(limit, served).await {
            Ok(answer) => answer,
            Err(_) => Err(codes::BUSY.problem(
                "The answer took too long; whether a change was sealed is not known. Send it again with its key.",
            )),
        };
        let mut code = None;
        let mut response = answer.unwrap_or_else(|mut problem| {
            problem.instance = Some(seen.id().to_owned());
            let response = problem_response(&problem);
            code = Some(problem.code);
            response
        });
        seen.name(response.headers_mut());
        let status = response.status().as_u16();
        app.metrics.served(self.place, status, seen.elapsed());
        seen.log(app.request_log, &self.endpoint, status, code.as_deref());
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_of_the_table_is_served() {
        for endpoint in endpoints() {
            assert!(serve_by(endpoint.id).is_some(), "{}", endpoint.id);
        }
    }
}
