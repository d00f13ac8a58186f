//! `leasehold lease …`.

use super::alloc::wait_for_lease;
use super::details::{Details, or_dash, word};
use super::failure::Failed;
use super::lease_request;
use super::record_lines;
use super::select::{self, Change, Changed, apply, keyed_for};
use super::session::{Session, keyed, whose};
use super::units::Classes;
use super::watch::watch;
use super::{explain, quote};
use crate::cli::lease::{LeaseCommand, LeaseListArgs};
use crate::cli::select::{LeasesArgs, YesArgs};
use crate::output::{print, print_json};
use crate::problem::EXIT_OK;
use crate::table::{Align, Table};
use crate::term::Style;
use crate::time_format;
use leasehold_api::{
    Granted, Lease, LeaseState, Release, Renew, Requested, Revocation, Revoke, Revoked, Ttl, When, WithReason,
};
use leasehold_client::Error;
use leasehold_model::LeaseNo;

pub(super) async fn run(session: &Session, command: LeaseCommand) -> Result<u8, Failed> {
    let client = &session.client;
    match command {
        LeaseCommand::Run(args) => return super::run::run(session, args).await,
        LeaseCommand::Request(args) => {
            let (request, classes) = lease_request::request(client, &args.asks, &args.holder, args.ttl).await?;
            let granted = match keyed(client.request_lease(&request), &args.change).await? {
                Requested::Granted(granted) => granted,
                Requested::Waiting(submitted) => wait_for_lease(session, &submitted).await?,
            };
            if session.json {
                print_json(&serde_json::to_value(&granted).unwrap_or_default())?;
            } else {
                print(&grant(session, &granted, &classes))?;
            }
        }
        LeaseCommand::Explain(args) => {
            session.show(client.explain_lease(&args.lease), |explanation| explain::text(session, explanation)).await?;
        }
        LeaseCommand::Quote(args) => {
            let (request, _) = lease_request::request(client, &args.asks, &args.holder, args.ttl).await?;
            session.show(client.quote_lease(&request), |quote| quote::text(session, quote)).await?;
        }
        LeaseCommand::Renew(args) => {
            let call = client.renew_lease(&args.lease, &Renew { ttl: args.ttl, activity: None });
            let text = |renewed: &leasehold_api::Renewed| {
                format!("{} is held until {}\n", short(&renewed.id), deadline(renewed.expires_at))
            };
            session.change(call, &args.change, text).await?;
        }
        LeaseCommand::Release(args) => {
            let call = client.release_lease(&args.lease, &Release::default());
            let text = |done: &leasehold_api::Released| {
                let how = match done.state {
                    LeaseState::Closed => "its capacity is free",
                    _ => "its capacity is free when the node has confirmed the teardown",
                };
                format!("{} was released; {how}\n", short(&done.id))
            };
            session.change(call, &args.change, text).await?;
        }
        LeaseCommand::Revoke(args) => {
            let revoke = Revoke { reason: args.reason, grace: args.grace };
            match &args.of.leases[..] {
                [lease] => session.change(client.revoke_lease(lease, &revoke), &args.of.change, revoked).await?,
                _ => revoke_some(session, &args.of, &revoke).await?,
            }
        }
        LeaseCommand::Ready(args) => {
            let text = |done: &leasehold_api::ReadyAnswer| {
                let at = time_format::to_the_second(done.ended_at);
                format!("{} is ready for teardown; its billing ended at {at}\n", short(&done.id))
            };
            session.change(client.lease_ready(&args.lease), &args.change, text).await?;
        }
        LeaseCommand::Unfence(args) => {
            let text = |done: &leasehold_api::Unfenced| format!("{} is no longer fenced\n", short(&done.id));
            let reason = WithReason { reason: args.reason };
            match &args.of.leases[..] {
                [lease] => session.change(client.unfence_lease(lease, &reason), &args.of.change, text).await?,
                _ => unfence_some(session, &args.of, &reason).await?,
            }
        }
        LeaseCommand::List(args) => list(session, &args).await?,
        LeaseCommand::Show(args) => {
            let call = client.show_lease(&args.lease);
            let classes = if session.json { Classes::none() } else { Classes::load(client).await? };
            session.show(call, |lease| one(session, lease, &classes)).await?;
        }
        LeaseCommand::History(args) => record_lines::print_all(session, client.lease_history(&args.lease)).await?,
    }
    Ok(EXIT_OK)
}

/// `lease-42`: the second half of an ID is its number (`docs/reference/json-view.md`). Accepted wherever the ID is.
pub(super) fn short(id: &str) -> String {
    let number = id.get(16..).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.map_or_else(|| id.to_owned(), |number| LeaseNo(number).to_string())
}

fn deadline(at: When) -> String {
    format!("{} ({})", time_format::to_the_second(at), time_format::distance(at, time_format::now()))
}

pub(super) fn devices(devices: &[u32]) -> String {
    if devices.is_empty() {
        return "-".into();
    }
    devices.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

fn grant(session: &Session, granted: &Granted, classes: &Classes) -> String {
    let headings = [
        ("lease", Align::Left),
        ("class", Align::Left),
        ("quantity", Align::Right),
        ("devices", Align::Left),
        ("id", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["id", "class"]);
    for lease in &granted.leases {
        let quantity = classes.with_unit(&lease.class, &lease.quantity);
        table.row([short(&lease.id), lease.class.clone(), quantity, devices(&lease.devices), lease.uid.clone()]);
    }
    let details = Details::new()
        .add("node", &granted.node)
        .add("pool", &granted.pool)
        .add("priority", word(granted.priority))
        .add("until", deadline(granted.expires_at))
        .maybe("shortened by", granted.capped_by_window_id.map(|window| format!("maintenance window {window}")))
        .maybe("shortened by", granted.capped_by_quota_id.map(|quota| format!("the burst limit of quota {quota}")));
    let over: Vec<String> = granted.over_soft_quota_ids.iter().map(u32::to_string).collect();
    let details = details.maybe("over soft quota", (!over.is_empty()).then(|| over.join(", ")));
    format!("{}\n{}", session.lines(&table).join("\n") + "\n", details.text(session.paint))
}

/// `preempted (decided in record 45)`.
pub(super) fn revocation(revoked: &Revocation) -> String {
    let by = revoked.preempted_by.map_or_else(String::new, |by| format!(" (decided in record {by})"));
    format!("{}{by}", revoked.reason.replace('_', " "))
}

fn revoked(revoked: &Revoked) -> String {
    let leases: Vec<String> = revoked.ids.iter().map(|id| short(id)).collect();
    let (verb, holder) = if leases.len() == 1 { ("was", "its holder") } else { ("were", "their holder") };
    let grace = match revoked.grace {
        Ttl(leasehold_model::Span::ZERO) => "no grace period".to_owned(),
        grace => format!("a grace period of {}", time_format::span(grace.0)),
    };
    format!("{} {verb} revoked; {holder} has {grace}\n", leases.join(", "))
}

/// Revokes several leases. Revoking one lease revokes its gang, by one record.
async fn revoke_some(session: &Session, args: &LeasesArgs, revoke: &Revoke) -> Result<(), Failed> {
    let change = Change { noun: "lease", done: "revoked", also: ", with the other leases of their gangs" };
    let make = async |lease: &str| {
        let call = session.client.revoke_lease(lease, revoke);
        let revoked = keyed_for(call, &args.change, &short(lease), true).await?;
        Ok(Changed { sequence: revoked.sequence, names: revoked.ids.iter().map(|id| short(id)).collect() })
    };
    if !args.leases.is_empty() {
        return each_named(session, &change, args, make).await;
    }
    let chosen = select::leases(session, args, LeaseState::Active).await?;
    each_selected(session, &change, args, &chosen, make).await
}

async fn unfence_some(session: &Session, args: &LeasesArgs, reason: &WithReason) -> Result<(), Failed> {
    let change = Change { noun: "lease", done: "unfenced", also: "" };
    let make = async |lease: &str| {
        let done = keyed_for(session.client.unfence_lease(lease, reason), &args.change, &short(lease), true).await?;
        Ok(Changed { sequence: done.sequence, names: vec![short(&done.id)] })
    };
    if !args.leases.is_empty() {
        return each_named(session, &change, args, make).await;
    }
    let chosen = select::leases(session, args, LeaseState::Fenced).await?;
    each_selected(session, &change, args, &chosen, make).await
}

/// Those that were named are changed at once.
async fn each_named(
    session: &Session,
    change: &Change,
    args: &LeasesArgs,
    make: impl AsyncFn(&str) -> Result<Changed, Error>,
) -> Result<(), Failed> {
    let table = |_: &[String]| Table::new(&[]);
    let at_once = YesArgs { yes: true };
    apply(session, change, &args.leases, at_once, |lease| short(lease), table, async |lease| make(lease).await).await
}

async fn each_selected(
    session: &Session,
    change: &Change,
    args: &LeasesArgs,
    chosen: &[Lease],
    make: impl AsyncFn(&str) -> Result<Changed, Error>,
) -> Result<(), Failed> {
    let classes = if session.json { Classes::none() } else { Classes::load(&session.client).await? };
    let table = |chosen: &[Lease]| leases(chosen, &classes);
    let name = |lease: &Lease| short(&lease.id);
    apply(session, change, chosen, args.yes, name, table, async |lease| make(&lease.id).await).await
}

async fn list(session: &Session, args: &LeaseListArgs) -> Result<(), Failed> {
    let call = session
        .past(whose(session.client.list_leases(), &args.whose), &args.past)?
        .maybe("allocation", args.alloc.as_ref())
        .maybe("node", args.node.as_ref())
        .maybe("pool", args.pool.as_ref())
        .maybe("class", args.class.as_ref())
        .maybe("state", args.state);
    let classes = if session.json { Classes::none() } else { Classes::load(&session.client).await? };
    if args.watch.watch {
        let call = call.query("limit", leasehold_api::limits::PAGE_MAX);
        return watch(session, async || Ok(leases(&call.clone().all().await?, &classes))).await;
    }
    session.list(call, |items| leases(items, &classes)).await
}

fn style(state: LeaseState) -> Style {
    match state {
        LeaseState::Active => Style::Green,
        LeaseState::Revoking => Style::Yellow,
        LeaseState::Releasing | LeaseState::Expired | LeaseState::TearingDown => Style::Cyan,
        LeaseState::Fenced => Style::Red,
        LeaseState::Closed => Style::Dim,
    }
}

fn leases(leases: &[Lease], classes: &Classes) -> Table {
    let headings = [
        ("lease", Align::Left),
        ("state", Align::Left),
        ("tenant", Align::Left),
        ("project", Align::Left),
        ("user", Align::Left),
        ("class", Align::Left),
        ("quantity", Align::Right),
        ("node", Align::Left),
        ("devices", Align::Left),
        ("priority", Align::Left),
        ("ends", Align::Left),
    ];
    let mut table = Table::new(&headings)
        .shrink_first(&["user", "priority", "devices", "project", "class", "node", "tenant", "quantity", "state"]);
    let now = time_format::now();
    for lease in leases {
        let plain = |text: String| (text, Style::Plain);
        table.styled([
            (short(&lease.id), Style::Bold),
            (word(lease.state), style(lease.state)),
            plain(lease.tenant.clone()),
            plain(lease.project.clone()),
            plain(or_dash(lease.user.as_ref())),
            plain(lease.class.clone()),
            plain(classes.with_unit(&lease.class, &lease.quantity)),
            plain(lease.node.clone()),
            plain(devices(&lease.devices)),
            plain(word(lease.priority)),
            plain(time_format::distance(lease.ended_at.or(lease.grace_ends_at).unwrap_or(lease.expires_at), now)),
        ]);
    }
    table
}

fn one(session: &Session, lease: &Lease, classes: &Classes) -> String {
    let gang = (lease.gang_id != lease.id).then(|| short(&lease.gang_id));
    let labels: Vec<String> = lease.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let ended = lease.ended_at.map(|at| match lease.end {
        Some(end) => format!("{}: {}", deadline(at), word(end).replace('_', " ")),
        None => deadline(at),
    });
    Details::new()
        .add("lease", short(&lease.id))
        .add("id", &lease.uid)
        .maybe("granted with", gang)
        .maybe("allocation", lease.allocation_id.map(|allocation| allocation.to_string()))
        .maybe("app instance", lease.app_instance.as_ref())
        .add("state", session.paint.paint(style(lease.state), &word(lease.state)))
        .add("tenant", &lease.tenant)
        .add("project", &lease.project)
        .maybe("user", lease.user.as_ref())
        .maybe("workload", lease.workload.as_ref())
        .maybe("accounting tag", lease.accounting_tag.as_ref())
        .add("class", &lease.class)
        .add("quantity", classes.with_unit(&lease.class, &lease.quantity))
        .add("node", &lease.node)
        .add("pool", &lease.pool)
        .add("devices", devices(&lease.devices))
        .add("priority", word(lease.priority))
        .maybe("labels", (!labels.is_empty()).then(|| labels.join(", ")))
        .maybe("correlation ID", lease.correlation_id.as_ref())
        .maybe("sensitive", lease.sensitive.then_some("yes"))
        .maybe("over soft quota", lease.over_soft.then_some("yes"))
        .add("granted", deadline(lease.granted_at))
        .add("expires", deadline(lease.expires_at))
        .maybe("revoked", lease.revocation.as_ref().map(revocation))
        .maybe("grace ends", lease.grace_ends_at.map(deadline))
        .maybe("ended", ended)
        .maybe("fenced", lease.fenced_at.map(deadline))
        .maybe("closed", lease.closed_at.map(deadline))
        .text(session.paint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_have_a_short_name() {
        assert_eq!(short("6c1a81facf030000000000000000002a"), "lease-42");
        assert_eq!(short("lease-42"), "lease-42");
        assert_eq!(short(""), "");
    }
}
