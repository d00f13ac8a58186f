//! The commands that call a daemon. Each prints the answer as text or as the daemon's own JSON.

mod accounting;
mod alloc;
mod apps;
mod audit;
mod books;
mod capacity;
mod ceiling;
mod child;
mod claim;
mod csv;
mod deliveries;
mod delivery_job;
mod details;
mod entitlement;
mod events;
mod explain;
mod failure;
mod figures;
mod forecast;
mod foreground;
mod interrupt;
mod invoice;
mod invoice_diff;
mod invoice_prove;
mod key;
mod lease;
mod lease_request;
mod ledger;
mod node;
mod pairs;
mod patch;
mod period;
mod policy;
mod prepaid;
mod quota;
mod quote;
mod rate;
mod record_lines;
mod run;
mod scrub;
mod secret_file;
mod select;
mod session;
mod settings;
mod sharing;
mod status;
mod tenancy;
mod timeline;
mod times;
mod token;
mod units;
mod usage_record;
mod waste;
mod watch;
mod webhook;
mod window;

pub(crate) use audit::run as audit;
pub(crate) use failure::plain;
pub(crate) use key::run as key;

use crate::cli::remote::{AdminCommand, DaemonArgs, RemoteCommand};
use crate::cli::times::TimeZoneArgs;
use crate::cli::webhook::WebhookCommand;
use crate::problem::{EXIT_OK, Problem};
use failure::Failed;
use session::Session;

pub(crate) fn run(daemon: &DaemonArgs, times: &TimeZoneArgs, command: RemoteCommand) -> Result<u8, Problem> {
    // Known without a daemon.
    if let RemoteCommand::Webhook(webhook) = &command
        && matches!(**webhook, WebhookCommand::Events)
    {
        return webhook::events(daemon.json).map(|()| EXIT_OK);
    }
    Session::open(daemon, times)?.during(async |session| dispatch(session, command).await)
}

async fn dispatch(session: &Session, command: RemoteCommand) -> Result<u8, Failed> {
    match command {
        RemoteCommand::Status(args) => return status::run(session, &args).await,
        RemoteCommand::Lease(command) => return lease::run(session, command).await,
        RemoteCommand::Alloc(command) => return alloc::run(session, command).await,
        RemoteCommand::Claim(command) => claim::run(session, command).await?,
        RemoteCommand::Tenant(command) => tenancy::tenant(session, command).await?,
        RemoteCommand::Project(command) => tenancy::project(session, command).await?,
        RemoteCommand::User(command) => tenancy::user(session, command).await?,
        RemoteCommand::Unit(command) => apps::unit(session, command).await?,
        RemoteCommand::App(command) => apps::app(session, command).await?,
        RemoteCommand::AppInstance(command) => apps::app_instance(session, command).await?,
        RemoteCommand::Attachment(command) => apps::attachment(session, command).await?,
        RemoteCommand::UsageRecord(command) => usage_record::usage_record(session, command).await?,
        RemoteCommand::Class(command) => capacity::class(session, command).await?,
        RemoteCommand::Pool(command) => capacity::pool(session, command).await?,
        RemoteCommand::Node(command) | RemoteCommand::Admin(AdminCommand::Node(command)) => {
            node::run(session, command).await?;
        }
        RemoteCommand::Quota(command) => quota::run(session, command).await?,
        RemoteCommand::Ceiling(command) => ceiling::run(session, command).await?,
        RemoteCommand::Entitlement(command) => entitlement::run(session, command).await?,
        RemoteCommand::Policy(command) => policy::run(session, command).await?,
        RemoteCommand::Sharing(command) => sharing::run(session, command).await?,
        RemoteCommand::Rate(command) => rate::run(session, command).await?,
        RemoteCommand::Token(command) => token::run(session, command).await?,
        RemoteCommand::Usage(args) => books::usage(session, *args).await?,
        RemoteCommand::Cost(args) => books::cost(session, *args).await?,
        RemoteCommand::Waste(args) => waste::waste(session, &args).await?,
        RemoteCommand::Sensitivity(args) => waste::sensitivity(session, &args).await?,
        RemoteCommand::Ledger(command) => ledger::run(session, *command).await?,
        RemoteCommand::Period(command) => period::run(session, command).await?,
        RemoteCommand::Invoice(command) => invoice::invoice(session, command).await?,
        RemoteCommand::Payment(command) => invoice::payment(session, command).await?,
        RemoteCommand::Prepaid(command) => prepaid::run(session, *command).await?,
        RemoteCommand::Tax(command) => invoice::tax(session, command).await?,
        RemoteCommand::Timeline(args) => timeline::run(session, args).await?,
        RemoteCommand::Settings(command) => settings::run(session, command).await?,
        RemoteCommand::Webhook(command) => return webhook::run(session, *command).await,
        RemoteCommand::Deliveries(command) => deliveries::run(session, command).await?,
        RemoteCommand::Admin(AdminCommand::Accounting(command)) => accounting::run(session, command).await?,
        RemoteCommand::Events(args) => events::run(session, &args).await?,
    }
    Ok(EXIT_OK)
}
