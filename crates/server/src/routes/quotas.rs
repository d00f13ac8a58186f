//! Quotas.

use super::capacity::optional_pool;
use super::page::page;
use super::tenancy::changed;
use crate::context::{Answer, Context, json};
use crate::{names, show};
use leasehold_api::{Limit, NewQuota, Nodes, Problem, QuotaChange, QuotaList, QuotaPut};
use leasehold_engine::Command;
use leasehold_engine::command::PutQuota;
use leasehold_model::{Body, LimitKind, NodeScope, QuotaNo, QuotaScope};

fn sealed_limit(limit: Limit) -> LimitKind {
    match limit {
        Limit::Hard { limit } => LimitKind::Hard { limit },
        Limit::Soft { limit } => LimitKind::Soft { limit },
        Limit::Burst { limit, burst_limit, burst_ttl } => {
            LimitKind::Burst { limit, burst_limit, burst_ttl: burst_ttl.0 }
        }
    }
}

pub(super) async fn list_quotas(context: Context) -> Answer {
    let caller = context.caller();
    let listed = context.app.now.read(|state| {
        let of = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        let visible = state
            .quotas()
            .filter(|quota| of.is_none_or(|tenant| tenant == quota.scope.tenant) && names::sees_quota(caller, quota));
        page(&context, visible.map(|quota| (u64::from(quota.number.0), show::quota(state, quota))))
    });
    let (quotas, next_cursor) = listed?;
    json(200, &QuotaList { quotas, next_cursor })
}

fn find(context: &Context) -> Result<QuotaNo, Problem> {
    context.app.now.read(|state| names::quota(state, context.caller(), context.subject()))
}

pub(super) async fn show_quota(context: Context) -> Answer {
    let number = find(&context)?;
    let quota = context.app.now.read(|state| state.quota(number).map(|quota| show::quota(state, quota)));
    json(200, &quota.ok_or_else(|| show::gone_already("quota"))?)
}

async fn put(context: &Context, status: u16, put: PutQuota) -> Answer {
    let sealed = context.seal(Command::PutQuota(put)).await?;
    let Body::QuotaPut(put) = &sealed.first().body else { unreachable!("a quota was put") };
    let quota = context.app.now.read(|state| state.quota(put.quota).map(|quota| show::quota(state, quota)));
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
        })
    })?;
    put(&context, 201, PutQuota { quota: None, scope, measure: new.measure, limit: sealed_limit(new.limit) }).await
}

pub(super) async fn change_quota(context: Context) -> Answer {
    let change: QuotaChange = context.body()?;
    let number = find(&context)?;
    let old = context.app.now.read(|state| state.quota(number).map(|quota| (quota.scope.clone(), quota.measure)));
    let (scope, measure) = old.ok_or_else(|| show::gone_already("quota"))?;
    put(&context, 200, PutQuota { quota: Some(number), scope, measure, limit: sealed_limit(change.limit) }).await
}

pub(super) async fn delete_quota(context: Context) -> Answer {
    let quota = find(&context);
    changed(&context, quota.map(Command::DeleteQuota)).await
}
