//! The shares of the cost of control planes: as they were recorded, or as they would be now.

use super::ledger_scope::{OwnerText, asked_month};
use super::page::page;
use crate::books::{consult, problem};
use crate::context::{Answer, Context, json};
use crate::names;
use crate::show_apps::slug;
use crate::show_ledger::{LedgerView, amount, month, too_large, unit_quantity};
use leasehold_api::{CostShare, CostShareList, Problem};
use leasehold_books::Share;
use leasehold_model::body::{LedgerShared, ShareWeight, SharingMethod};
use leasehold_model::{AppInstanceNo, EntryId, Month, Steps, UnitQuantity};
use std::sync::Arc;

/// A weight in the measure of its method.
fn weight_text(method: SharingMethod, ShareWeight(weight): ShareWeight) -> String {
    match method {
        SharingMethod::ByUsage => unit_quantity(weight.cast_signed()),
        SharingMethod::ByQuota | SharingMethod::Fixed | SharingMethod::ByTier => UnitQuantity(weight).to_string(),
        SharingMethod::None | SharingMethod::Owner | SharingMethod::Even | SharingMethod::NotBillable => {
            weight.to_string()
        }
    }
}

impl LedgerView<'_> {
    pub(super) fn share(&self, share: &Share, is_draft: bool) -> CostShare {
        let Share { sequence, tenant, project, shared, .. } = share;
        let is_booked = !is_draft && shared.booked != Steps::ZERO;
        CostShare {
            sequence: (!is_draft).then_some(*sequence),
            entry: is_booked.then(|| EntryId { sequence: *sequence, position: 0 }.to_string()),
            app_instance: self.app_instance(shared.app_instance),
            app_instance_id: shared.app_instance.0,
            tenant: self.tenant(*tenant),
            project: self.project(*project),
            project_id: project.0,
            owner: *project == shared.owner,
            month: month(shared.month),
            currency: shared.currency.to_string(),
            method: shared.method,
            policy_app: slug(self.state, shared.policy.app_type),
            policy_tenant: shared.policy.tenant.map(|tenant| self.tenant(tenant)),
            policy_app_instance: shared.policy.app_instance.map(|app| self.app_instance(app)),
            policy_version: shared.version,
            usage_unit: shared.unit.map(|unit| self.unit(unit)),
            tier: shared.tier.as_ref().map(ToString::to_string),
            weight: weight_text(shared.method, shared.weight),
            total_weight: weight_text(shared.method, shared.total_weight),
            pool: amount(shared.pool).0,
            share: amount(shared.share).0,
            booked: amount(shared.booked).0,
        }
    }

    /// What the shares of a month would be if it were closed now.
    fn draft(&self, of: Month, app: Option<AppInstanceNo>) -> Result<Vec<Share>, Problem> {
        let mut shares = Vec::new();
        for (number, currency) in self.state.shared_pools(of).filter(|(number, _)| app.is_none_or(|app| app == *number))
        {
            let Some(instance) = self.state.app_instance(number) else { continue };
            let divided = self.state.divided(instance, (of, currency), self.state.sharing_rules(instance));
            let Some(divided) = divided.map_err(|_| too_large())? else { continue };
            for one in divided.shares {
                let shared = LedgerShared {
                    app_instance: number,
                    owner: instance.project,
                    month: of,
                    currency,
                    previous: None,
                    policy: divided.policy.of,
                    version: divided.policy.version,
                    method: divided.method,
                    unit: divided.unit,
                    tier: one.tier,
                    weight: one.weight,
                    total_weight: divided.total_weight,
                    pool: divided.pool,
                    share: one.share,
                    booked: one.booked,
                };
                let (tenant, project) = (one.tenant, one.project);
                shares.push(Share { sequence: 0, at: self.state.last_stamp(), tenant, project, shared });
            }
        }
        Ok(shares)
    }
}

pub(super) async fn list_shares(context: Context) -> Answer {
    let (asked, caller) = (asked_month(&context)?, context.caller().clone());
    let owner = OwnerText::of(&context);
    let app_instance = context.query("app_instance").map(str::to_owned);
    let (app, asking) = (Arc::clone(&context.app), caller.clone());
    let listed = consult(&app, &asking, move |app, books| {
        app.now.read(|state| {
            let owner = owner.find(state, books, &caller)?;
            let instance =
                app_instance.map(|text| names::app_instance(state, &caller, owner.tenant, &text)).transpose()?;
            let of = asked.unwrap_or_else(|| books.first_open_month());
            let takes = |share: &Share| {
                caller.sees_project(share.tenant, share.project)
                    && owner.tenant.is_none_or(|tenant| tenant == share.tenant)
            };
            let view = LedgerView { app, state, books };
            let recorded = books.shares(of, instance, takes).map_err(|error| problem(&error))?;
            let is_draft = recorded.is_empty() && books.ledger_opened().is_some() && of >= books.first_open_month();
            let shares = if is_draft { view.draft(of, instance)? } else { recorded };
            let visible = shares.iter().filter(|share| takes(share)).map(|share| view.share(share, is_draft));
            let (shares, next_cursor) = page(&context, (1..).zip(visible))?;
            Ok(CostShareList { month: month(of), draft: is_draft, shares, next_cursor })
        })
    });
    json(200, &listed.await?)
}
