//! `leasehold prepaid …`.

use super::details::{Details, word};
use super::failure::Failed;
use super::session::Session;
use crate::cli::prepaid::{PrepaidCommand, PrepaidOwnerArgs, PrepaidPolicyArgs, TopUpArgs};
use crate::table::{Align, Table};
use crate::term::Style;
use crate::time_format::to_the_second;
use leasehold_api::{
    CreditEnd, LedgerAmount, Money, NewTopUp, PrepaidAccount, PrepaidList, PrepaidPolicyChange, PrepaidPut,
    PrepaidState,
};

pub(super) async fn run(session: &Session, command: PrepaidCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        PrepaidCommand::List(args) => {
            let call = client.list_prepaid().maybe("tenant", args.tenant).maybe("project", args.project);
            session.list(call.maybe("currency", args.currency), accounts).await
        }
        PrepaidCommand::Show(args) => show(session, args).await,
        PrepaidCommand::TopUp(args) => top_up(session, args).await,
        PrepaidCommand::Policy(args) => policy(session, args).await,
        PrepaidCommand::End(args) => {
            let PrepaidOwnerArgs { tenant, project, currency } = args.of;
            let end = CreditEnd { tenant, project, currency, credit: args.credit };
            session.change(client.end_credit(&end), &args.change, |put| changed(session, put)).await
        }
    }
}

async fn show(session: &Session, args: PrepaidOwnerArgs) -> Result<(), Failed> {
    let whole_tenant = args.project.is_none();
    let call = session.client.list_prepaid().maybe("tenant", args.tenant).maybe("project", args.project);
    let text = |list: &PrepaidList| {
        let own = list.accounts.iter().filter(|account| !whole_tenant || account.project.is_none());
        let all: Vec<String> = own.map(|account| one(session, account)).collect();
        if all.is_empty() { "There is no prepaid credit.\n".into() } else { all.join("\n") }
    };
    session.show(call.maybe("currency", args.currency), text).await
}

async fn top_up(session: &Session, args: TopUpArgs) -> Result<(), Failed> {
    let expires_at = session.times.future("--expires", args.expires.as_ref())?;
    let PrepaidOwnerArgs { tenant, project, currency } = args.of;
    let new = NewTopUp {
        tenant,
        project,
        currency,
        amount: LedgerAmount(args.amount),
        priority: args.priority,
        expires_at,
        source: args.source,
        reference: args.reference,
    };
    session.change(session.client.top_up(&new), &args.change, |put| changed(session, put)).await
}

async fn policy(session: &Session, args: PrepaidPolicyArgs) -> Result<(), Failed> {
    let PrepaidOwnerArgs { tenant, project, currency } = args.of;
    let change = PrepaidPolicyChange {
        tenant,
        project,
        currency,
        low_below: args.low_below.map(Money),
        window: args.window,
        low: args.low,
        pending: args.pending,
        depleted: args.depleted,
        grace: args.grace,
    };
    session.change(session.client.put_prepaid_policy(&change), &args.change, |put| changed(session, put)).await
}

fn style(state: PrepaidState) -> Style {
    match state {
        PrepaidState::Enough => Style::Green,
        PrepaidState::Low | PrepaidState::Pending => Style::Yellow,
        PrepaidState::Depleted => Style::Red,
    }
}

fn owner(account: &PrepaidAccount) -> String {
    account.project.clone().unwrap_or_else(|| "all without their own".into())
}

fn accounts(accounts: &[PrepaidAccount]) -> Table {
    let headings = [
        ("tenant", Align::Left),
        ("project", Align::Left),
        ("state", Align::Left),
        ("credited", Align::Right),
        ("balance", Align::Right),
        ("reserved", Align::Right),
        ("available", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["project", "tenant"]);
    for account in accounts {
        let plain = |text: String| (text, Style::Plain);
        table.styled([
            plain(account.tenant.clone()),
            plain(owner(account)),
            (word(account.state), style(account.state)),
            plain(figure(&account.credited.0)),
            plain(figure(&account.balance.0)),
            plain(figure(&account.reserved.0)),
            plain(figure(&account.available.0)),
            plain(account.currency.clone()),
        ]);
    }
    table
}

/// With at least two decimals and at most six, like the amounts of the ledger; the rest is left to JSON.
fn figure(text: &str) -> String {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part = part.get(..6).unwrap_or(part);
    format!("{whole}.{:0<2}", part.trim_end_matches('0'))
}

fn changed(session: &Session, put: &PrepaidPut) -> String {
    one(session, &put.account)
}

fn one(session: &Session, account: &PrepaidAccount) -> String {
    let money = |text: &str| format!("{} {}", figure(text), account.currency);
    let state = match account.state {
        PrepaidState::Enough => word(account.state),
        state => format!("{}: {}", word(state), word(account.action)),
    };
    let policy = &account.policy;
    let (low, pending, depleted) = (word(policy.low), word(policy.pending), word(policy.depleted));
    let grace = policy.grace.map_or_else(|| "that of the pool".into(), |grace| grace.to_string());
    let head = Details::new()
        .add("tenant", &account.tenant)
        .add("project", owner(account))
        .add("state", session.paint.paint(style(account.state), &state))
        .add("credited", money(&account.credited.0))
        .maybe("lapsed", (account.lapsed.0 != "0.000000").then(|| money(&account.lapsed.0)))
        .add("spent", money(&account.spent.0))
        .add("balance", money(&account.balance.0))
        .add("reserved", money(&account.reserved.0))
        .add("available", money(&account.available.0))
        .add("low", format!("below {}: {low}", money(&policy.low_below.0)))
        .add("pending", format!("used up within {}: {pending}", policy.window))
        .add("depleted", format!("{depleted}, grace {grace}"));
    let mut credits = Table::new(&[
        ("credit", Align::Right),
        ("amount", Align::Right),
        ("left", Align::Right),
        ("priority", Align::Right),
        ("expires", Align::Left),
    ]);
    for credit in &account.credits {
        credits.row([
            credit.credit.to_string(),
            figure(&credit.amount.0),
            figure(&credit.left.0),
            credit.priority.to_string(),
            credit.expires_at.map_or_else(|| "never".into(), to_the_second),
        ]);
    }
    let list =
        if account.credits.is_empty() { String::new() } else { format!("\n{}\n", session.lines(&credits).join("\n")) };
    format!("{}{list}", head.text(session.paint))
}
