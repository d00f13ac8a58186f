//! What of the ledger a caller may see, and the names in its requests.

use crate::access::Caller;
use crate::context::Context;
use crate::names;
use leasehold_api::{LedgerAmount, Problem, Role, codes};
use leasehold_books::{Books, Entry, NamedKind, NamedObject};
use leasehold_engine::State;
use leasehold_model::rate::Currency;
use leasehold_model::{EntryId, Month, Name, ProjectNo, Steps, TenantNo};

/// Whether the caller may see an entry. Members of a project see the entries that the project pays for.
pub(super) fn sees(caller: &Caller, entry: &Entry) -> bool {
    caller.sees_tenant(entry.tenant) && caller.project.is_none_or(|own| entry.project == Some(own))
}

/// Whether the caller sees the ledger of all tenants.
pub(super) fn sees_all(caller: &Caller) -> bool {
    match caller.role {
        Role::Operator | Role::Auditor => true,
        Role::BillingAuthority => caller.tenant.is_none(),
        _ => false,
    }
}

/// What concerns all tenants is not for a billing authority of one of them.
pub(super) fn for_all_tenants(context: &Context) -> Result<(), Problem> {
    if sees_all(context.caller()) {
        return Ok(());
    }
    Err(codes::ROLE_FORBIDS.problem("The token belongs to one tenant, and this concerns all of them."))
}

pub(super) fn unknown_entry(text: &str) -> Problem {
    names::not_found("entry", text, std::iter::empty())
}

/// An entry that the caller may see.
pub(super) fn entry(app: &crate::app::App, books: &Books, caller: &Caller, text: &str) -> Result<Entry, Problem> {
    let id = app.entry_id(text).ok_or_else(|| unknown_entry(text))?;
    entry_with(books, caller, id)?.ok_or_else(|| unknown_entry(text))
}

fn entry_with(books: &Books, caller: &Caller, id: EntryId) -> Result<Option<Entry>, Problem> {
    let found = books.entry(id).map_err(|error| crate::books::problem(&error))?;
    Ok(found.filter(|entry| sees(caller, entry)))
}

/// The tenant and the project that a query selects, limited to what the caller may see.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Owner {
    pub(super) tenant: Option<TenantNo>,
    pub(super) project: Option<ProjectNo>,
}

/// The tenant and the project in a query, before they are looked up.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnerText {
    tenant: Option<String>,
    project: Option<String>,
}

impl OwnerText {
    pub(super) fn of(context: &Context) -> Self {
        let text = |name| context.query(name).map(str::to_owned);
        Self { tenant: text("tenant"), project: text("project") }
    }

    /// Also finds what was deleted: its entries stay.
    pub(super) fn find(&self, state: &State, books: &Books, caller: &Caller) -> Result<Owner, Problem> {
        let own = |mut owner: Owner| {
            if !sees_all(caller) {
                owner.tenant = owner.tenant.or(caller.tenant);
                owner.project = owner.project.or(caller.project);
            }
            owner
        };
        let mut found = own(Owner::default());
        if let Some(text) = &self.tenant {
            let live = names::tenant(state, caller, text);
            let sees = |number: u32, _: &NamedObject| caller.sees_tenant(TenantNo(number));
            found.tenant =
                Some(live.or_else(|problem| deleted(books, NamedKind::Tenant, text, sees, problem).map(TenantNo))?);
        }
        if let Some(text) = &self.project {
            let live = names::project(state, caller, found.tenant, text);
            let sees = |number: u32, object: &NamedObject| {
                let of = object.tenant.filter(|of| found.tenant.is_none_or(|tenant| tenant == *of));
                of.is_some_and(|tenant| caller.sees_project(tenant, ProjectNo(number)))
            };
            let project =
                live.or_else(|problem| deleted(books, NamedKind::Project, text, sees, problem).map(ProjectNo));
            found.project = Some(project?);
        }
        Ok(found)
    }
}

/// The only deleted object of this name or number that the caller may see.
fn deleted(
    books: &Books,
    kind: NamedKind,
    text: &str,
    sees: impl Fn(u32, &NamedObject) -> bool,
    problem: Problem,
) -> Result<u32, Problem> {
    let is_meant = |number: u32, object: &NamedObject| match names::digits::<u32>(text) {
        Some(wanted) => wanted == number,
        None => object.name.as_str() == text,
    };
    let all = books.deleted(kind).filter_map(|(number, object)| Some((u32::try_from(number).ok()?, object)));
    let all = all.filter(|(number, object)| is_meant(*number, object) && sees(*number, object));
    let numbers: Vec<u32> = all.map(|(number, _)| number).collect();
    match numbers[..] {
        [number] if problem.status == 404 => Ok(number),
        [] | [_] => Err(problem),
        _ => {
            let shown: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            let detail = format!("Several deleted {kind}s were called so; give the number: {}.", shown.join(", "));
            Err(codes::BAD_QUERY.problem(detail).with("field", kind.word()))
        }
    }
}

pub(super) fn bad(field: &str, why: impl std::fmt::Display) -> Problem {
    codes::BAD_BODY.problem(format!("`{field}` {why}.")).with("field", field)
}

pub(super) fn currency(field: &str, text: &str) -> Result<Currency, Problem> {
    Currency::new(text).ok_or_else(|| bad(field, "must be three capital letters such as EUR"))
}

/// The currency in a query.
pub(super) fn asked_currency(context: &Context) -> Result<Option<Currency>, Problem> {
    let Some(text) = context.query("currency") else { return Ok(None) };
    let bad = || codes::BAD_QUERY.problem("`currency` must be three capital letters such as EUR.");
    Currency::new(text).map(Some).ok_or_else(|| bad().with("field", "currency"))
}

pub(super) fn month(text: &str) -> Result<Month, Problem> {
    text.parse().map_err(|why| codes::BAD_MONTH.problem(format!("{}.", crate::problem::sentence(&format!("{why}")))))
}

/// The month in a query.
pub(super) fn asked_month(context: &Context) -> Result<Option<Month>, Problem> {
    context.query("month").map(month).transpose()
}

/// An amount in a body, with up to six decimals.
pub(super) fn steps(field: &str, amount: &LedgerAmount) -> Result<Steps, Problem> {
    use leasehold_model::rate::BadDecimal;
    amount.0.parse().map_err(|why: BadDecimal| match why {
        BadDecimal::TooPrecise => bad(field, "has more than six decimals"),
        why => bad(field, why),
    })
}

/// The reason of a change: text of at most 128 bytes.
pub(super) fn reason(text: &str) -> Result<Name, Problem> {
    names::new_text("reason", text, None)
}
