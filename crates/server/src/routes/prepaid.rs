//! Prepaid credit of tenants and projects.

use super::ledger_scope::{OwnerText, asked_currency, currency, sees_all, steps};
use super::page::page;
use super::tenancy::find_owner_project;
use crate::access::Caller;
use crate::books::consult;
use crate::context::{Answer, Context, json};
use crate::names;
use crate::show_ledger::amount;
use leasehold_api as api;
use leasehold_api::{CreditEnd, FundsText, LedgerAmount, NewTopUp, PrepaidPolicyChange, Problem, Ttl, When, codes};
use leasehold_books::PrepaidEvent;
use leasehold_engine::command::{EndCredit, PutPrepaidPolicy, TopUp};
use leasehold_engine::{Command, Prepaid, PrepaidKey, PrepaidScope, Refusal, State};
use leasehold_model::rate::Currency;
use leasehold_model::{CreditSource, Funds, Instant, ProjectNo, TenantNo};

fn funds(funds: Funds) -> FundsText {
    FundsText(funds.to_string())
}

fn shown(state: &State, key: PrepaidKey, account: &Prepaid, now: Instant) -> Option<api::PrepaidAccount> {
    let used = state.prepaid_use(key, now)?;
    let project = key.0.project();
    let policy = &account.policy;
    let credit = |credit: leasehold_engine::Credit| api::PrepaidCredit {
        credit: credit.number,
        amount: amount(credit.amount),
        left: funds(credit.left),
        priority: credit.priority,
        expires_at: credit.expires_at.map(When),
    };
    Some(api::PrepaidAccount {
        tenant: state.tenant(account.tenant)?.settings.name.to_string(),
        tenant_id: account.tenant.0,
        project: project.and_then(|project| state.project(project)).map(|project| project.name.to_string()),
        project_id: project.map(|project| project.0),
        currency: key.1.to_string(),
        state: account.state,
        action: account.action(),
        credited: amount(account.credited),
        lapsed: amount(account.lapsed),
        spent: funds(used.spent),
        reserved: funds(used.reserved),
        balance: funds(used.balance),
        available: funds(used.available),
        policy: api::PrepaidPolicy {
            low_below: amount(policy.low_below),
            window: Ttl(policy.window),
            low: policy.low,
            pending: policy.pending,
            depleted: policy.depleted,
            grace: policy.grace.map(Ttl),
        },
        credits: state.credits_left(key, now).into_iter().map(credit).collect(),
    })
}

/// Members of a project see its account, and that of the tenant where their project has none of its own.
fn may_see(caller: &Caller, state: &State, key: PrepaidKey, account: &Prepaid) -> bool {
    let Some(own) = caller.project.filter(|_| !sees_all(caller)) else { return caller.sees_tenant(account.tenant) };
    match key.0 {
        PrepaidScope::Project(project) => project == own,
        PrepaidScope::Tenant(tenant) => {
            caller.sees_tenant(tenant) && state.prepaid_account((PrepaidScope::Project(own), key.1)).is_none()
        }
    }
}

pub(super) async fn list_prepaid(context: Context) -> Answer {
    let (wanted, asked) = (asked_currency(&context)?, OwnerText::of(&context));
    let caller = context.caller().clone();
    let app = std::sync::Arc::clone(&context.app);
    let listed = consult(&app, &caller.clone(), move |app, books| {
        app.now.read(|state| {
            let owner = asked.find(state, books, &caller)?;
            let project = context.query("project").and(owner.project);
            let is_asked = |(key, account): &(PrepaidKey, &Prepaid)| {
                may_see(&caller, state, *key, account)
                    && owner.tenant.is_none_or(|tenant| tenant == account.tenant)
                    && project.is_none_or(|project| key.0.project() == Some(project))
                    && wanted.is_none_or(|currency| currency == key.1)
            };
            let now = app.time().max(state.last_stamp());
            let mut all: Vec<_> = state.prepaid_accounts().filter(is_asked).collect();
            all.sort_by_key(|(key, account)| (account.tenant, key.0.project(), key.1));
            let numbered = (1u64..).zip(all);
            let items = numbered.filter_map(|(place, (key, account))| Some((place, shown(state, key, account, now)?)));
            let (accounts, next_cursor) = page(&context, items)?;
            Ok(api::PrepaidList { accounts, next_cursor })
        })
    })
    .await?;
    json(200, &listed)
}

/// Whose account a request is about.
struct Named {
    tenant: TenantNo,
    project: Option<ProjectNo>,
    currency: Currency,
}

impl Named {
    fn key(&self) -> PrepaidKey {
        let scope = self.project.map_or(PrepaidScope::Tenant(self.tenant), PrepaidScope::Project);
        (scope, self.currency)
    }
}

fn find(
    context: &Context,
    tenant: Option<&str>,
    project: Option<&str>,
    in_currency: Option<&str>,
) -> Result<Named, Problem> {
    let given = in_currency.map(|text| currency("currency", text)).transpose()?;
    context.app.now.read(|state| {
        let caller = context.caller();
        let project = project.map(|text| find_owner_project(state, caller, tenant, text)).transpose()?;
        let of_project = project.and_then(|project| state.project(project)).map(|project| project.tenant);
        let named = tenant.map(|text| names::tenant(state, caller, text)).transpose()?;
        let tenant = of_project.or(named).or(caller.tenant).ok_or_else(|| {
            codes::TENANT_NEEDED.problem("Give the tenant or the project whose prepaid credit is meant.")
        })?;
        let currency = given.unwrap_or_else(|| {
            let now = context.app.time().max(state.last_stamp());
            state.prices_at(None, now).currency
        });
        Ok(Named { tenant, project, currency })
    })
}

fn put(context: &Context, status: u16, named: &Named, sequence: u64) -> Answer {
    let shown = context.app.now.read(|state| {
        let now = context.app.time().max(state.last_stamp());
        shown(state, named.key(), state.prepaid_account(named.key())?, now)
    });
    let account = shown.ok_or_else(|| crate::show::gone_already("prepaid account"))?;
    json(status, &api::PrepaidPut { sequence, account })
}

pub(super) async fn top_up(context: Context) -> Answer {
    let new: NewTopUp = context.body()?;
    let named = find(&context, new.tenant.as_deref(), new.project.as_deref(), new.currency.as_deref())?;
    let top = TopUp {
        tenant: named.tenant,
        project: named.project,
        currency: named.currency,
        amount: steps("amount", &new.amount)?,
        priority: new.priority,
        expires_at: new.expires_at.map(|at| at.0),
        source: new.source.unwrap_or(CreditSource::Paid),
        reference: names::new_text("reference", &new.reference, None)?,
    };
    let exists = Refusal::TopUpExists { sequence: 0 }.code();
    match context.seal(Command::TopUp(top.clone())).await {
        Ok(sealed) => put(&context, 201, &named, sealed.sequence()),
        // The same credit again gets the first answer.
        Err(problem) if problem.code == exists => {
            let sequence = consult(&context.app, context.caller(), move |_, books| {
                Ok(books.prepaid().iter().find_map(|entry| match &entry.event {
                    PrepaidEvent::ToppedUp(added) => {
                        let is_same = entry.tenant == top.tenant
                            && entry.project == top.project
                            && added.reference == top.reference
                            && (added.currency, added.amount, added.priority)
                                == (top.currency, top.amount, top.priority)
                            && (added.expires_at, added.source) == (top.expires_at, top.source);
                        is_same.then_some(entry.sequence)
                    }
                    PrepaidEvent::Lapsed(_) | PrepaidEvent::Applied(_) => None,
                }))
            });
            match sequence.await? {
                Some(sequence) => put(&context, 201, &named, sequence),
                None => Err(problem),
            }
        }
        Err(problem) => Err(problem),
    }
}

pub(super) async fn put_prepaid_policy(context: Context) -> Answer {
    let change: PrepaidPolicyChange = context.body()?;
    let named = find(&context, change.tenant.as_deref(), change.project.as_deref(), change.currency.as_deref())?;
    let low_below = change.low_below.as_ref().map(|money| steps("low_below", &LedgerAmount(money.0.clone())));
    let low_below = low_below.transpose()?;
    let mut policy = context.app.now.read(|state| {
        state.prepaid_account(named.key()).map_or(leasehold_model::PrepaidPolicy::DEFAULT, |account| account.policy)
    });
    policy.low_below = low_below.unwrap_or(policy.low_below);
    policy.window = change.window.map_or(policy.window, |window| window.0);
    policy.low = change.low.unwrap_or(policy.low);
    policy.pending = change.pending.unwrap_or(policy.pending);
    policy.depleted = change.depleted.unwrap_or(policy.depleted);
    policy.grace = change.grace.map(|grace| grace.0).or(policy.grace);
    let (tenant, project, currency) = (named.tenant, named.project, named.currency);
    let command = Command::PutPrepaidPolicy(PutPrepaidPolicy { tenant, project, currency, policy });
    let sealed = context.seal(command).await?;
    put(&context, 200, &named, sealed.sequence())
}

pub(super) async fn end_credit(context: Context) -> Answer {
    let end: CreditEnd = context.body()?;
    let named = find(&context, end.tenant.as_deref(), end.project.as_deref(), end.currency.as_deref())?;
    let (tenant, project, currency) = (named.tenant, named.project, named.currency);
    let sealed = context.seal(Command::EndCredit(EndCredit { tenant, project, currency, credit: end.credit })).await?;
    put(&context, 200, &named, sealed.sequence())
}
