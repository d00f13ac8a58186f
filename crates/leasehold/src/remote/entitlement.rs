//! `leasehold entitlement …`.

use super::details::or_dash;
use super::failure::Failed;
use super::session::Session;
use crate::cli::entitlement::{EntitlementArgs, EntitlementCommand};
use crate::table::{Align, Table};
use crate::term::Style;
use leasehold_api::{Entitlement, EntitlementChange, UnitQuantityText};

pub(super) async fn run(session: &Session, command: EntitlementCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        EntitlementCommand::List(args) => {
            let call = client.list_entitlements().maybe("tenant", args.tenant).maybe("project", args.project);
            session.list(call, entitlements).await
        }
        EntitlementCommand::Set(args) => {
            let of = args.of.clone();
            let change = EntitlementChange {
                tenant: of.tenant,
                project: of.project,
                app_instance: of.app_instance,
                usage_unit: of.unit,
                soft: args.limits.soft.map(UnitQuantityText::Text),
                hard: args.limits.hard.map(UnitQuantityText::Text),
            };
            let told = |put: &leasehold_api::EntitlementPut| {
                session.lines(&entitlements(std::slice::from_ref(&put.entitlement))).join("\n") + "\n"
            };
            session.change(client.put_entitlement(&change), &args.change, told).await
        }
        EntitlementCommand::Delete(args) => {
            let of = args.of.clone();
            let call = client.delete_entitlement().query("usage_unit", of.unit);
            let call =
                call.maybe("tenant", of.tenant).maybe("project", of.project).maybe("app_instance", of.app_instance);
            session
                .change(call, &args.change, |_| format!("the entitlement for {} was deleted\n", name(&args.of)))
                .await
        }
    }
}

fn name(args: &EntitlementArgs) -> String {
    match (&args.project, &args.app_instance) {
        (Some(project), Some(app)) => format!("{} of {project} on {app}", args.unit),
        (Some(project), None) => format!("{} of {project}", args.unit),
        (None, app) => format!("{} on {}", args.unit, app.as_deref().unwrap_or("all app instances")),
    }
}

/// One row for each month, or one if nothing was used.
fn entitlements(all: &[Entitlement]) -> Table {
    let headings = [
        ("unit", Align::Left),
        ("tenant", Align::Left),
        ("project", Align::Left),
        ("app instance", Align::Left),
        ("month", Align::Left),
        ("used", Align::Right),
        ("soft", Align::Right),
        ("hard", Align::Right),
    ];
    let mut table = Table::new(&headings).shrink_first(&["project", "app instance"]);
    for one in all {
        let months: Vec<(String, String, bool)> = match one.months.is_empty() {
            true => vec![("-".into(), "0".into(), false)],
            false => one.months.iter().map(|of| (of.month.to_string(), of.used.clone(), of.warned)).collect(),
        };
        for (month, used, warned) in months {
            let plain = |text: String| (text, Style::Plain);
            table.styled([
                plain(one.usage_unit.clone()),
                plain(one.tenant.clone()),
                plain(one.project.clone().unwrap_or_else(|| "all".into())),
                plain(one.app_instance.clone().unwrap_or_else(|| "all".into())),
                plain(month),
                (used, if warned { Style::Yellow } else { Style::Plain }),
                plain(or_dash(one.soft.as_ref())),
                plain(or_dash(one.hard.as_ref())),
            ]);
        }
    }
    table
}
