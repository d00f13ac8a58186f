//! What rules version 6 added, field by field: app runtimes and who pays in the state, and reported usage in the books.

use crate::further::add;
use crate::money::item;
use crate::state::{at, text};
use leasehold_books::{
    Books, Dim, EntryQuestion, LeaseQuestion, NamedKind, PayerPosting, Question, UnitLine, UnitSeries,
};
use leasehold_engine::{AppInstance, State, UnitPrice};
use leasehold_meter::Window;
use leasehold_model::{Body, Instant, Item, Name, Record};
use serde_json::{Value, json};

/// Adds the fields of rules version 6 to the view of a state.
pub(crate) fn extend(view: &mut Value, state: &State) {
    let now = state.last_stamp();
    add(view, "leases", state.leases().into_iter().map(|lease| json!({ "payer": lease.payer.0 })));
    add(view, "allocations", state.allocations_after(None).map(|found| json!({ "payer": found.payer.0 })));
    let units =
        state.units().map(|unit| json!({ "unit": unit.number.0, "name": unit.name, "measure": text(unit.measure) }));
    view["units"] = units.collect();
    view["unit_prices"] = state.unit_prices().iter().map(unit_price).collect();
    let apps = state.app_types().map(|app| {
        let in_force = app.units.iter().map(|unit| {
            let price = state.unit_price_for(unit, app.number, now);
            json!([unit.0, price.map(|price| price.number)])
        });
        json!({
            "app": app.number.0,
            "slug": app.slug.as_str(),
            "origin": text(app.origin),
            "units_and_prices": in_force.collect::<Vec<_>>(),
        })
    });
    view["apps"] = apps.collect();
    view["app_instances"] = state.app_instances_after(None).map(app_instance).collect();
    // What each tenant means by a name.
    let named = state.tenants().flat_map(|tenant| {
        state.app_instances_after(None).map(move |named| {
            let meant = state.app_instance_named(tenant.number, &named.name).map(|meant| meant.number.0);
            json!([tenant.number.0, named.name.as_str(), meant])
        })
    });
    view["app_instances_by_name"] = named.collect();
    let attachments = state.attachments_after(None).map(|made| {
        json!({
            "attachment": made.number.0,
            "tenant": made.tenant.0,
            "app_instance": made.app_instance.0,
            "source_project": made.source_project.0,
            "allocation": made.allocation.map(|allocation| allocation.0),
            "made_at": at(made.made_at),
        })
    });
    view["attachments"] = attachments.collect();
}

fn unit_price(price: &UnitPrice) -> Value {
    json!({
        "price_no": price.number,
        "unit": price.unit.0,
        "app": price.app_type.map(|app| app.0),
        "currency": price.currency.as_str(),
        "price": price.price.0.to_string(),
        "from": at(price.from),
    })
}

fn app_instance(instance: &AppInstance) -> Value {
    json!({
        "app_instance": instance.number.0,
        "tenant": instance.tenant.0,
        "project": instance.project.0,
        "name": instance.name.as_str(),
        "app": instance.app_type.0,
        "mode": text(instance.mode),
        "scope": text(instance.scope),
        "backend": text(instance.backend),
    })
}

/// Adds what the books say of reported usage and of payers to their view.
pub(crate) fn extend_books(view: &mut Value, books: &Books, records: &[Record]) {
    let last = records[records.len() - 1].stamp;
    let page = books.leases(&LeaseQuestion { limit: usize::MAX, ..LeaseQuestion::default() }, |_| true);
    let rows = page.expect("a page of leases").leases;
    let paid = rows.iter().map(|(row, _)| {
        let app_instance = row.app_instance.map(|app| app.0);
        json!({ "payer": row.payer.0, "app_instance": app_instance })
    });
    add(view, "leases", paid);
    let window = Window::new(Instant(0), Instant(last.0 + 1));
    let question = Question::over(window, &[Dim::Project, Dim::AppInstance, Dim::ControlPlane]);
    let leased = books.usage(&question).expect("usage");
    view["usage_by_control_plane"] =
        leased.lines().map(|line| json!([line.key[..3], line.class.0, line.amount.to_string()])).collect();
    let dims = [Dim::Tenant, Dim::Project, Dim::AppInstance, Dim::ControlPlane];
    let used = books.unit_usage(&Question::over(window, &dims)).expect("reported usage");
    view["unit_usage"] = used.iter().map(unit_line).collect();
    view["unit_series"] = (0..).map_while(|number| books.unit_series(number)).map(series).collect();
    let reported = records.iter().filter_map(|record| match &record.body {
        Body::UsageRecorded(recorded) => Some(recorded.no_submitter),
        _ => None,
    });
    let (mut count, mut without_submitter) = (0_u64, 0_u64);
    reported.for_each(|is_without| (count, without_submitter) = (count + 1, without_submitter + u64::from(is_without)));
    view["usage_records"] = json!([count, without_submitter, books.usage_ids()]);
    view["usage_ids"] = records.iter().filter_map(|record| usage_id(books, record)).collect();
    let question = EntryQuestion { limit: usize::MAX, ..EntryQuestion::default() };
    let entries = books.entries(&question).expect("all entries").entries;
    let lines = entries.iter().filter_map(|entry| Some((entry.id, entry.project?, entry.line.as_ref()?)));
    let of_units = lines.filter(|(_, _, line)| matches!(line.key.item, Item::Unit(_)));
    let behind = of_units.map(|(id, payer, line)| {
        let (records, has_more) = books.line_records(payer, &line.key, 100).expect("the books can be read");
        json!([id.to_string(), records, has_more])
    });
    view["records_behind_units"] = behind.collect();
    let due = books.ledger_opened().map(|_| books.unposted(last).expect("what is not posted"));
    view["unposted"] = due.iter().flatten().map(unposted).collect();
    let named = [NamedKind::AppInstance, NamedKind::AppType, NamedKind::Unit].into_iter().flat_map(|kind| {
        let named = (0..128_u64).filter_map(move |number| Some((number, books.named(kind, number)?)));
        named.map(move |(number, object)| {
            let tenant = object.tenant.map(|tenant| tenant.0);
            json!([text(kind), number, object.name.as_str(), tenant, object.deleted_at.map(at)])
        })
    });
    view["names_of_apps"] = named.collect();
}

fn unit_line(line: &UnitLine) -> Value {
    let costs = line.costs.iter().map(|(currency, cost)| {
        let (numerator, denominator) = cost.fraction().expect("far from overflow");
        json!([currency.as_str(), format!("{numerator}/{denominator}")])
    });
    json!({
        "tenant": line.key[0],
        "project": line.key[1],
        "app_instance": line.key[2],
        "control_plane": line.key[3],
        "unit": line.unit.0,
        "charge": text(line.charge),
        "quantity": line.quantity.to_string(),
        "costs": costs.collect::<Vec<_>>(),
    })
}

fn series(series: &UnitSeries) -> Value {
    json!({
        "tenant": series.tenant.0,
        "project": series.project.0,
        "app_instance": series.app_instance.0,
        "attachment": series.attachment.map(|attachment| attachment.0),
        "control_plane": series.control_plane,
        "unit": series.unit.0,
        "price": series.price,
        "charge": text(series.charge),
    })
}

/// The record that the books know under the ID of a usage record, and the one that superseded it.
fn usage_id(books: &Books, record: &Record) -> Option<Value> {
    let Body::UsageRecorded(recorded) = &record.body else { return None };
    let report = &recorded.report;
    let known = books.known_usage(report.key()).expect("the books can be read");
    let known = known.map(|known| json!([known.sequence, known.superseded_by, format!("{:016x}", known.payload)]));
    let reporter = report.reporter.map(|tenant| tenant.0);
    Some(json!([reporter, report.source.as_str(), report.id.as_str(), known]))
}

fn unposted(posting: &PayerPosting) -> Value {
    let payer = posting.parts.first().map(|part| json!([part.project.0, part.currency.as_str()]));
    let lines = posting.parts.iter().flat_map(|part| &part.lines).map(|line| {
        let (tag, usage) = (line.key.tag.as_ref().map(Name::as_str), line.usage.0.to_string());
        json!([at(line.key.hour), line.key.project.0, item(line.key.item), tag, usage, line.exact.to_string()])
    });
    json!([payer, lines.collect::<Vec<_>>()])
}
