//! Cost ceilings of projects and their app instances.

use super::leases::app_instance;
use super::page::page;
use super::tenancy::{changed, find_project};
use crate::context::{Answer, Context, json};
use crate::show;
use leasehold_api::{CeilingChange, CeilingList, CeilingMode, CeilingPut, Problem};
use leasehold_engine::command::{DeleteCeiling, PutCeiling};
use leasehold_engine::{Ceiling, CeilingScope, Command, State};
use leasehold_model::Amount;
use leasehold_model::limits::CEILING_AMOUNT_MAX;
use leasehold_model::rate::Currency;

fn scope(context: &Context) -> Result<CeilingScope, Problem> {
    let project = find_project(context)?;
    let app_instance = context.app.now.read(|state| {
        let of = state.project(project).map(|project| project.tenant);
        app_instance(state, context.caller(), of, context.query("app_instance"))
    })?;
    Ok(CeilingScope { project, app_instance })
}

fn unknown() -> Problem {
    Problem::new(404, "unknown_ceiling", "There is no such cost ceiling.")
}

/// Sort key: the ceiling of the project first, then those of its app instances by number.
fn place(ceiling: &Ceiling) -> u64 {
    ceiling.scope.app_instance.map_or(0, |app| app.0.saturating_add(1))
}

pub(super) async fn list_ceilings(context: Context) -> Answer {
    let project = find_project(&context)?;
    let listed = context.app.now.read(|state| {
        let own = state.ceilings().filter(|ceiling| ceiling.scope.project == project);
        page(
            &context,
            own.filter_map(|ceiling| Some((place(ceiling), show::ceiling(state, ceiling, context.app.time())?))),
        )
    });
    let (ceilings, next_cursor) = listed?;
    json(200, &CeilingList { ceilings, next_cursor })
}

pub(super) async fn show_ceiling(context: Context) -> Answer {
    let scope = scope(&context)?;
    let shown = context.app.now.read(|state| show::ceiling(state, state.ceiling(scope)?, context.app.time()));
    json(200, &shown.ok_or_else(unknown)?)
}

/// Currency of the prices for pools without a rate card of their own.
fn currency_of_prices(state: &State, context: &Context) -> Currency {
    state.prices_at(None, context.app.time().max(state.last_stamp())).currency
}

fn bad(field: &str, why: impl std::fmt::Display) -> Problem {
    Problem::new(422, "bad_ceiling", format!("`{field}` {why}.")).with("field", field)
}

pub(super) async fn put_ceiling(context: Context) -> Answer {
    let change: CeilingChange = context.body()?;
    let scope = scope(&context)?;
    let amount: Amount = change.amount.0.parse().map_err(|why| bad("amount", why))?;
    if !leasehold_model::ceiling::can_be_a_ceiling(amount) {
        return Err(bad("amount", format!("must be above zero and at most {CEILING_AMOUNT_MAX}")));
    }
    let given = change
        .currency
        .as_deref()
        .map(|text| Currency::new(text).ok_or_else(|| bad("currency", "must be three capital letters such as EUR")));
    let given = given.transpose()?;
    let put = context.app.now.read(|state| {
        let old = state.ceiling(scope);
        let currency = given.or(old.map(|old| old.currency));
        let mode = change.mode.or(old.map(|old| old.mode));
        PutCeiling {
            project: scope.project,
            app_instance: scope.app_instance,
            amount,
            currency: currency.unwrap_or_else(|| currency_of_prices(state, &context)),
            mode: mode.unwrap_or(CeilingMode::Hard),
        }
    });
    let sealed = context.seal(Command::PutCeiling(put)).await?;
    let shown = context.app.now.read(|state| show::ceiling(state, state.ceiling(scope)?, context.app.time()));
    let ceiling = shown.ok_or_else(|| show::gone_already("ceiling"))?;
    json(200, &CeilingPut { sequence: sealed.sequence(), ceiling })
}

pub(super) async fn delete_ceiling(context: Context) -> Answer {
    let scope = scope(&context)?;
    let (project, app_instance) = (scope.project, scope.app_instance);
    changed(&context, Ok(Command::DeleteCeiling(DeleteCeiling { project, app_instance }))).await
}
