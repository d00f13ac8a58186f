//! Tokens: the secret is shown once, when the token is issued; the journal contains only its hash.

use super::leases::app_instance;
use super::page::page;
use super::tenancy::changed;
use crate::access::{new_secret, secret_hash};
use crate::context::{Answer, Context, json};
use crate::{names, show};
use leasehold_api::{IssuedToken, NewToken, Problem, Role, TokenList, WhoAmI, codes};
use leasehold_engine::Command;
use leasehold_engine::command::IssueToken;
use leasehold_model::{Body, TokenNo, TokenScope};
use zeroize::Zeroize;

pub(super) async fn whoami(context: Context) -> Answer {
    let number = context.caller().token;
    let token = context.app.now.read(|state| state.token(number).map(|token| show::token(state, token)));
    json(200, &WhoAmI { token: token.ok_or_else(|| show::gone_already("token"))? })
}

pub(super) async fn list_tokens(context: Context) -> Answer {
    let caller = context.caller();
    let listed = context.app.now.read(|state| {
        let of = context.query("tenant").map(|text| names::tenant(state, caller, text)).transpose()?;
        let visible = state.tokens().filter(|token| {
            of.is_none_or(|tenant| token.scope.tenant == Some(tenant)) && names::sees_token(caller, token)
        });
        page(&context, visible.map(|token| (u64::from(token.number.0), show::token(state, token))))
    });
    let (tokens, next_cursor) = listed?;
    json(200, &TokenList { tokens, next_cursor })
}

fn find(context: &Context) -> Result<TokenNo, Problem> {
    context.app.now.read(|state| names::token(state, context.caller(), context.subject()))
}

pub(super) async fn show_token(context: Context) -> Answer {
    let number = find(&context)?;
    let token = context.app.now.read(|state| state.token(number).map(|token| show::token(state, token)));
    json(200, &token.ok_or_else(|| show::gone_already("token"))?)
}

fn scope(context: &Context, new: &NewToken) -> Result<TokenScope, Problem> {
    let caller = context.caller();
    context.app.now.read(|state| {
        let named = new.tenant.as_deref().map(|text| names::tenant(state, caller, text)).transpose()?;
        let of_a_tenant = matches!(new.role, Role::TenantAdmin | Role::ProjectMember | Role::AppOperator);
        let tenant = named.or(caller.tenant.filter(|_| of_a_tenant));
        Ok(TokenScope {
            tenant,
            project: new.project.as_deref().map(|text| names::project(state, caller, tenant, text)).transpose()?,
            user: new.user.as_deref().map(|text| names::user(state, caller, tenant, text)).transpose()?,
            node: new.node.as_deref().map(|text| names::node(state, caller, text)).transpose()?,
            app_instances: new
                .app_instances
                .iter()
                .filter_map(|text| app_instance(state, caller, tenant, Some(text)).transpose())
                .collect::<Result<_, _>>()?,
        })
    })
}

pub(super) async fn issue_token(context: Context) -> Answer {
    let new: NewToken = context.body()?;
    let name = names::new_name(&new.name, None)?;
    let scope = scope(&context, &new)?;
    let secret =
        new_secret().map_err(|_| codes::INTERNAL.problem("The system provides no random bytes for a secret."))?;
    let expires_at = new.expires_at.map(|when| when.0);
    let issue = IssueToken { name, hash: secret_hash(&secret), role: new.role, scope, expires_at };
    let sealed = context.seal(Command::IssueToken(issue)).await?;
    let Body::TokenIssued(issued) = &sealed.first().body else { unreachable!("a token was issued") };
    let token = context.app.now.read(|state| state.token(issued.token).map(|token| show::token(state, token)));
    let token = token.ok_or_else(|| show::gone_already("token"))?;
    let shown = (!sealed.repeated).then(|| secret.to_string());
    let mut issued = IssuedToken { sequence: sealed.sequence(), token, secret: shown };
    let answer = json(201, &issued);
    issued.secret.zeroize();
    answer
}

pub(super) async fn revoke_token(context: Context) -> Answer {
    let token = find(&context);
    changed(&context, token.map(Command::RevokeToken)).await
}
