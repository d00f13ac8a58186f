//! Quotas.

use super::capacity::optional_pool;
use super::leases::app_instance;
use super::page::page;
use super::tenancy::changed;
use crate::access::Caller;
use crate::context::{Answer, Context, json};
use crate::{names, show};
use leasehold_api::{
    AmountOrPercent, Holders, Limit, LimitChange, NewQuota, Nodes, Problem, QuotaChange, QuotaList, QuotaPut, When,
    codes,
};
use leasehold_engine::command::{Percent, PutQuota};
use leasehold_engine::{Command, Quota, State};
use leasehold_model::{Body, FurtherScope, HolderScope, LimitKind, NodeScope, QuotaNo, QuotaScope, TenantNo};

fn sealed_limit(limit: Limit) -> LimitKind {
    match limit {
        Limit::Hard { limit } => LimitKind::Hard { limit },
        Limit::Soft { limit } => LimitKind::Soft { limit },
        Limit::Burst { limit, burst_limit, burst_ttl } => {
            LimitKind::Burst { limit, burst_limit, burst_ttl: burst_ttl.0 }
        }
    }
}

/// The limit, and which of its amounts are percentages.
fn changed_limit(change: &LimitChange) -> Result<(LimitKind, Option<Percent>), Problem> {
    let parsed = |field: &'static str, amount: &AmountOrPercent| {
        amount.parse().map_err(|bad| codes::BAD_QUANTITY.problem(format!("{bad}.")).with("field", field))
    };
    let (limit, percent, burst_percent) = match change {
        LimitChange::Hard { limit } => {
            let (limit, percent) = parsed("limit.limit", limit)?;
            (LimitKind::Hard { limit }, percent, false)
        }
        LimitChange::Soft { limit } => {
            let (limit, percent) = parsed("limit.limit", limit)?;
            (LimitKind::Soft { limit }, percent, false)
        }
        LimitChange::Burst { limit, burst_limit, burst_ttl } => {
            let (limit, percent) = parsed("limit.limit", limit)?;
            let (burst_limit, burst_percent) = parsed("limit.burst_limit", burst_limit)?;
            (LimitKind::Burst { limit, burst_limit, burst_ttl: burst_ttl.0 }, percent, burst_percent)
        }
    };
    let is_percent = percent || burst_percent;
    Ok((limit, is_percent.then_some(Percent { limit: percent, burst_limit: burst_percent })))
}

fn further(state: &State, caller: &Caller, tenant: TenantNo, new: &NewQuota) -> Result<FurtherScope, Problem> {
    Ok(FurtherScope {
        kind: new.kind,
        user: match &new.user {
            None => None,
            Some(Holders::Each) => Some(HolderScope::Each),
            Some(Holders::One(text)) => Some(HolderScope::One(names::user(state, caller, Some(tenant), text)?)),
        },
        app_instance: match &new.app_instance {
            None => None,
            Some(Holders::Each) => Some(HolderScope::Each),
            Some(Holders::One(text)) => app_instance(state, caller, Some(tenant), Some(text))?.map(HolderScope::One),
        },
        and_above: new.and_above,
    })
}

pub(super) async fn list_quotas(context: Context) -> Answer {
    let caller = context.caller();
    let listed = context.app.now.read(|state| {
        let of = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        let visible = state
            .quotas()
            .filter(|quota| of.is_none_or(|tenant| tenant == quota.scope.tenant) && names::sees_quota(caller, quota));
        page(&context, visible.map(|quota| (u64::from(quota.number.0), show::quota(state, quota, context.app.time()))))
    });
    let (quotas, next_cursor) = listed?;
    json(200, &QuotaList { quotas, next_cursor })
}

fn find(context: &Context) -> Result<QuotaNo, Problem> {
    context.app.now.read(|state| names::quota(state, context.caller(), context.subject()))
}

pub(super) async fn show_quota(context: Context) -> Answer {
    let number = find(&context)?;
    let quota =
        context.app.now.read(|state| state.quota(number).map(|quota| show::quota(state, quota, context.app.time())));
    json(200, &quota.ok_or_else(|| show::gone_already("quota"))?)
}

async fn put(context: &Context, status: u16, put: PutQuota) -> Answer {
    let sealed = context.seal(Command::PutQuota(put)).await?;
    let Body::QuotaPut(put) = &sealed.first().body else { unreachable!("a quota was put") };
    let quota =
        context.app.now.read(|state| state.quota(put.quota).map(|quota| show::quota(state, quota, context.app.time())));
    json(status, &QuotaPut { sequence: sealed.sequence(), quota: quota.ok_or_else(|| show::gone_already("quota"))? })
}

pub(super) async fn create_quota(context: Context) -> Answer {
    let new: NewQuota = context.body()?;
    let caller = context.caller();
    let scope = context.app.now.read(|state| {
        let tenant = names::tenant(state, caller, &new.tenant)?;
        Ok::<_, Problem>(QuotaScope {
            tenant,
            project: new
                .project
                .as_deref()
                .map(|text| names::project(state, caller, Some(tenant), text))
                .transpose()?,
            class: new.class.as_deref().map(|text| names::class(state, text)).transpose()?,
            pool: optional_pool(state, new.pool.as_deref())?,
            node: match &new.nodes {
                None | Some(Nodes::All) => NodeScope::All,
                Some(Nodes::Each) => NodeScope::Each,
                Some(Nodes::One(text)) => NodeScope::One(names::node_for_request(state, text)?),
            },
            priority: new.priority,
            further: further(state, caller, tenant, &new)?,
        })
    })?;
    let limit = sealed_limit(new.limit);
    let evict_own_lower = new.evict_own_lower.then_some(true);
    put(&context, 201, PutQuota { evict_own_lower, ..PutQuota::new(None, scope, new.measure, limit) }).await
}

pub(super) async fn change_quota(context: Context) -> Answer {
    let change: QuotaChange = context.body()?;
    let number = find(&context)?;
    let old = context.app.now.read(|state| {
        let until = |quota: &Quota| quota.temporary.map(|temporary| temporary.until);
        state.quota(number).map(|quota| (quota.scope.clone(), quota.measure, (quota.limit, until(quota))))
    });
    let (scope, measure, present) = old.ok_or_else(|| show::gone_already("quota"))?;
    let evict_own_lower = change.evict_own_lower;
    let (limit, percent, until) = match &change.limit {
        Some(limit) => {
            let (limit, percent) = changed_limit(limit)?;
            (limit, percent, change.until.map(|When(until)| until))
        }
        None if change.until.is_some() || evict_own_lower.is_none() => {
            return Err(codes::BAD_BODY.problem("The change names no limit.").with("field", "limit"));
        }
        None => (present.0, None, present.1),
    };
    put(&context, 200, PutQuota { quota: Some(number), scope, measure, limit, until, percent, evict_own_lower }).await
}

pub(super) async fn delete_quota(context: Context) -> Answer {
    let quota = find(&context);
    changed(&context, quota.map(Command::DeleteQuota)).await
}
