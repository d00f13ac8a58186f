//! `leasehold unit …`, `app …`, `app-instance …` and `attachment …`.

use super::details::{Details, or_dash, word};
use super::failure::Failed;
use super::session::Session;
use super::tenancy::gone;
use crate::cli::apps::{AppCommand, AppInstanceCommand, AttachmentCommand, UnitCommand};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::time_format;
use leasehold_api::{
    App, AppChange, AppInstance, AppInstanceChange, Attachment, Decimal, NewApp, NewAppInstance, NewAttachment,
    NewUnitPrice, NewUsageUnit, UnitPrice, UsageUnit,
};

pub(super) async fn unit(session: &Session, command: UnitCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        UnitCommand::List => session.list(client.list_usage_units(), units).await,
        UnitCommand::Create(args) => {
            let call = client.create_usage_unit(&NewUsageUnit { name: args.name, measure: args.measure });
            session.change(call, &args.change, |put| format!("unit {} was defined\n", put.usage_unit.name)).await
        }
        UnitCommand::Prices => session.list(client.list_unit_prices(), prices).await,
        UnitCommand::Price(args) => {
            let new = NewUnitPrice {
                usage_unit: args.unit,
                app: args.app,
                price: Decimal(args.price),
                currency: args.currency,
                from: session.times.future("--from", args.from.as_ref())?,
            };
            let call = client.create_unit_price(&new);
            session.change(call, &args.change, |put| one_price(session, &put.unit_price)).await
        }
    }
}

fn units(units: &[UsageUnit]) -> Table {
    let mut table = Table::new(&[("unit", Align::Left), ("measure", Align::Left)]);
    units.iter().for_each(|unit| table.row([unit.name.clone(), word(unit.measure)]));
    table
}

fn prices(prices: &[UnitPrice]) -> Table {
    let headings = [
        ("number", Align::Right),
        ("unit", Align::Left),
        ("app", Align::Left),
        ("price", Align::Right),
        ("", Align::Left),
        ("from", Align::Left),
        ("", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["number"]);
    for price in prices {
        table.row([
            price.id.to_string(),
            price.usage_unit.clone(),
            price.app.clone().unwrap_or_else(|| "all".into()),
            price.price.to_string(),
            price.currency.clone(),
            time_format::to_the_second(price.from),
            if price.in_force { "in force".into() } else { String::new() },
        ]);
    }
    table
}

fn one_price(session: &Session, price: &UnitPrice) -> String {
    Details::new()
        .add("unit", &price.usage_unit)
        .add("app", price.app.as_deref().unwrap_or("all that have no price of their own"))
        .add("price", format!("{} {}", price.price, price.currency))
        .add("from", time_format::to_the_second(price.from))
        .text(session.paint)
}

pub(super) async fn app(session: &Session, command: AppCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        AppCommand::List => session.list(client.list_apps(), apps).await,
        AppCommand::Show(one) => session.show(client.show_app(&one.name), |app| one_app(session, app)).await,
        AppCommand::Create(args) => {
            let new = NewApp { slug: args.slug, origin: args.origin, usage_units: args.units };
            let call = client.create_app(&new);
            session.change(call, &args.change, |put| one_app(session, &put.app)).await
        }
        AppCommand::Set(args) => {
            if args.origin.is_none() && args.units.is_empty() {
                let nothing = Problem::usage("usage", "nothing is to be changed");
                return Err(nothing.advice("give --origin or --unit").into());
            }
            let usage_units = (!args.units.is_empty()).then_some(args.units);
            let call = client.change_app(&args.app, &AppChange { origin: args.origin, usage_units });
            session.change(call, &args.change, |put| one_app(session, &put.app)).await
        }
        AppCommand::Delete(args) => {
            let call = client.delete_app(&args.name);
            session.change(call, &args.change, |_| gone("app", &args.name)).await
        }
    }
}

fn apps(apps: &[App]) -> Table {
    let headings = [("app", Align::Left), ("number", Align::Right), ("origin", Align::Left), ("units", Align::Left)];
    let mut table = Table::new(&headings).shrink_first(&["number", "units"]);
    for app in apps {
        table.row([app.slug.clone(), app.id.to_string(), word(app.origin), app.usage_units.join(", ")]);
    }
    table
}

fn one_app(session: &Session, app: &App) -> String {
    Details::new()
        .add("app", &app.slug)
        .add("number", app.id)
        .add("origin", word(app.origin))
        .maybe("units", (!app.usage_units.is_empty()).then(|| app.usage_units.join(", ")))
        .text(session.paint)
}

pub(super) async fn app_instance(session: &Session, command: AppInstanceCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        AppInstanceCommand::List(args) => {
            let call = client.list_app_instances().maybe("tenant", args.of.tenant).maybe("project", args.project);
            session.list(call, instances).await
        }
        AppInstanceCommand::Show(args) => {
            let call = client.show_app_instance(&args.name).maybe("tenant", args.tenant);
            session.show(call, |instance| one_instance(session, instance)).await
        }
        AppInstanceCommand::Create(args) => {
            let new = NewAppInstance {
                name: args.member.name,
                project: args.project,
                tenant: args.member.tenant,
                app: args.app,
                operating_mode: args.mode,
                control_plane_scope: args.scope,
                runtime_backend: args.backend,
            };
            let call = client.create_app_instance(&new);
            session.change(call, &args.change, |put| one_instance(session, &put.app_instance)).await
        }
        AppInstanceCommand::Set(args) => {
            let change = AppInstanceChange { name: args.new_name };
            let call = client.change_app_instance(&args.member.name, &change).maybe("tenant", args.member.tenant);
            session.change(call, &args.change, |put| one_instance(session, &put.app_instance)).await
        }
        AppInstanceCommand::Delete(args) => {
            let call = client.delete_app_instance(&args.member.name).maybe("tenant", args.member.tenant);
            session.change(call, &args.change, |_| gone("app instance", &args.member.name)).await
        }
    }
}

fn instances(instances: &[AppInstance]) -> Table {
    let headings = [
        ("app instance", Align::Left),
        ("tenant", Align::Left),
        ("project", Align::Left),
        ("app", Align::Left),
        ("mode", Align::Left),
        ("scope", Align::Left),
        ("backend", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["mode", "tenant"]);
    for one in instances {
        table.row([
            one.name.clone(),
            one.tenant.clone(),
            one.project.clone(),
            one.app.clone(),
            word(one.operating_mode),
            word(one.control_plane_scope),
            word(one.runtime_backend),
        ]);
    }
    table
}

fn one_instance(session: &Session, one: &AppInstance) -> String {
    Details::new()
        .add("app instance", &one.name)
        .add("number", one.id)
        .add("tenant", &one.tenant)
        .add("project", &one.project)
        .add("app", &one.app)
        .add("mode", word(one.operating_mode))
        .add("control plane", format!("of the {}", word(one.control_plane_scope)))
        .add("backend", word(one.runtime_backend))
        .text(session.paint)
}

pub(super) async fn attachment(session: &Session, command: AttachmentCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        AttachmentCommand::List(args) => {
            let call = client.list_attachments().maybe("tenant", args.of.tenant).maybe("project", args.project);
            session.list(call, attachments).await
        }
        AttachmentCommand::Show(args) => {
            session.show(client.show_attachment(&args.attachment), |one| one_attachment(session, one)).await
        }
        AttachmentCommand::Make(args) => {
            let new = NewAttachment {
                app_instance: args.app_instance,
                source_project: args.project,
                tenant: args.tenant,
                allocation_id: args.allocation,
            };
            let call = client.create_attachment(&new);
            session.change(call, &args.change, |put| one_attachment(session, &put.attachment)).await
        }
        AttachmentCommand::End(args) => {
            let call = client.end_attachment(&args.attachment);
            session.change(call, &args.change, |_| format!("attachment {} has ended\n", args.attachment)).await
        }
    }
}

fn attachments(attachments: &[Attachment]) -> Table {
    let headings = [
        ("attachment", Align::Right),
        ("app instance", Align::Left),
        ("held by", Align::Left),
        ("paid by", Align::Left),
        ("allocation", Align::Left),
        ("since", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["since"]);
    for one in attachments {
        table.row([
            one.id.to_string(),
            one.app_instance.clone(),
            one.owner_project.clone(),
            one.source_project.clone(),
            or_dash(one.allocation_id),
            time_format::to_the_second(one.made_at),
        ]);
    }
    table
}

fn one_attachment(session: &Session, one: &Attachment) -> String {
    Details::new()
        .add("attachment", one.id)
        .add("tenant", &one.tenant)
        .add("app instance", &one.app_instance)
        .add("held by", &one.owner_project)
        .add("paid by", &one.source_project)
        .maybe("allocation", one.allocation_id)
        .add("since", time_format::to_the_second(one.made_at))
        .text(session.paint)
}
