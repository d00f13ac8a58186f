//! Reports on capacity that was held and not used.

use super::books::{Naming, amounts, stretch, unit_seconds};
use super::books_query::{BooksQuery, word};
use crate::books::{ask, problem};
use crate::context::{Answer, Context, json};
use leasehold_api::{
    FragmentedNode, Of, Problem, Role, Stranded, Stretch, WasteClass, WasteReport, WasteSum, WastedCost, WastedLease,
    When, codes, limits,
};
use leasehold_books::{Books, FRAGMENTED_LEASE_COUNT, LeaseWaste};
use leasehold_engine::State;
use leasehold_meter::Window;
use leasehold_meter::exact::decimal_text;
use leasehold_model::rate::Currency;
use leasehold_model::{ClassNo, Quanta, quantity};
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq)]
enum SumBy {
    Class,
    Tenant,
    Project,
    Node,
}

fn sum_by(context: &Context) -> Result<SumBy, Problem> {
    match context.query("by") {
        None | Some("class") => Ok(SumBy::Class),
        Some("tenant") => Ok(SumBy::Tenant),
        Some("project") => Ok(SumBy::Project),
        Some("node") => Ok(SumBy::Node),
        Some(_) => Err(codes::BAD_GROUPING.problem("`by` must be tenant, project, node or class.").with("field", "by")),
    }
}

fn costs(sums: &BTreeMap<Currency, u128>) -> Vec<WastedCost> {
    let one = |(currency, billionths): (&Currency, &u128)| WastedCost {
        currency: currency.to_string(),
        amount: decimal_text((*billionths).into(), 9),
    };
    sums.iter().map(one).collect()
}

fn lease_of(naming: &Naming<'_>, lease: &LeaseWaste) -> Result<WastedLease, Problem> {
    let spec = naming.spec(lease.row.class)?;
    let mut of = Of {
        tenant: Some(naming.tenant(lease.row.tenant)),
        project: Some(naming.project(lease.row.project)),
        workload: lease.row.workload.as_ref().map(ToString::to_string),
        ..Of::default()
    };
    if naming.caller.sees_node(lease.row.node) {
        of.node = Some(naming.node(lease.row.node));
    }
    naming.name_class(&mut of, lease.row.class)?;
    let units = |amount| unit_seconds(spec, amount);
    Ok(WastedLease {
        lease: lease.row.lease.to_string(),
        of,
        stretch: Stretch { from: When(lease.row.held.from), to: When(lease.row.held.to) },
        live: lease.live,
        headline: lease.headline(),
        classes: lease.classes.to_vec(),
        unit: spec.kind.unit().to_owned(),
        held: units(lease.held)?,
        covered: units(lease.covered)?,
        busy: units(lease.busy)?,
        wasted: units(lease.wasted)?,
        wasted_cost: costs(&lease.wasted_money.iter().copied().collect()),
    })
}

#[derive(Default)]
struct Sum {
    leases: u64,
    held: u128,
    wasted: u128,
    cost: BTreeMap<Currency, u128>,
}

fn sums(naming: &Naming<'_>, by: SumBy, leases: &[LeaseWaste]) -> Result<Vec<WasteSum>, Problem> {
    let mut sums: BTreeMap<(u32, ClassNo, WasteClass), Sum> = BTreeMap::new();
    for lease in leases {
        let of = match by {
            SumBy::Class => 0,
            SumBy::Tenant => lease.row.tenant.0,
            SumBy::Project => lease.row.project.0,
            SumBy::Node => lease.row.node.0,
        };
        let sum = sums.entry((of, lease.row.class, lease.headline())).or_default();
        sum.leases += 1;
        sum.held += lease.held;
        sum.wasted += lease.wasted;
        for (currency, billionths) in &lease.wasted_money {
            *sum.cost.entry(*currency).or_default() += billionths;
        }
    }
    let mut out = Vec::with_capacity(sums.len());
    for ((number, class, headline), sum) in sums {
        let spec = naming.spec(class)?;
        let mut of = Of::default();
        match by {
            SumBy::Class => {}
            SumBy::Tenant => of.tenant = Some(naming.tenant(leasehold_model::TenantNo(number))),
            SumBy::Project => of.project = Some(naming.project(leasehold_model::ProjectNo(number))),
            SumBy::Node => of.node = Some(naming.node(leasehold_model::NodeNo(number))),
        }
        naming.name_class(&mut of, class)?;
        out.push(WasteSum {
            of,
            headline,
            leases: sum.leases,
            unit: spec.kind.unit().to_owned(),
            held: unit_seconds(spec, sum.held)?,
            wasted: unit_seconds(spec, sum.wasted)?,
            wasted_cost: costs(&sum.cost),
        });
    }
    Ok(out)
}

/// Idle capacity by pool and class, and what it would have earned at scavenger priority.
fn stranded(naming: &Naming<'_>, books: &Books, window: Window) -> Result<Vec<Stranded>, Problem> {
    let failed = |error| problem(&error);
    let mut out = Vec::new();
    for (key, line) in books.capacity(window, true, false, |_, _, _| true).map_err(failed)? {
        let Some(pool) = key.pool.filter(|_| line.idle > 0) else { continue };
        let spec = naming.spec(key.class)?;
        let earned = books.stranded(pool, key.class, window).map_err(failed)?;
        let mut of = Of { pool: Some(naming.pool(pool)), ..Of::default() };
        naming.name_class(&mut of, key.class)?;
        out.push(Stranded {
            of,
            unit: spec.kind.unit().to_owned(),
            idle: unit_seconds(spec, line.idle)?,
            capacity: unit_seconds(spec, line.capacity)?,
            could_have_earned: amounts(earned.iter().map(|(currency, money)| (*currency, money)))?,
        });
    }
    Ok(out)
}

/// Free parts of devices that are partly in use.
fn fragmented(state: &State) -> Vec<FragmentedNode> {
    let mut out = Vec::new();
    for node in state.nodes() {
        for (class, devices, free) in node.free_in_parts() {
            let Some(spec) = state.class(class).filter(|_| free > 0) else { continue };
            out.push(FragmentedNode {
                node: node.name.to_string(),
                class: spec.name.to_string(),
                unit: spec.kind.unit().to_owned(),
                free_in_parts: quantity::display(Quanta(free), spec),
                devices,
            });
        }
    }
    out
}

pub(super) async fn waste(context: Context) -> Answer {
    let (by, headline, limit) = (sum_by(&context)?, word::<WasteClass>(&context, "headline")?, context.limit()?);
    let asked = context.app.now.read(|state| {
        let mut asked = BooksQuery::read_window(&context)?;
        asked.read_filter(&context, state)?;
        Ok::<_, Problem>(asked)
    })?;
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let operator = matches!(caller.role, Role::Operator | Role::Auditor);
    if by == SumBy::Node && !operator {
        return Err(codes::ROLE_FORBIDS.problem("Only operators and auditors may see nodes."));
    }
    let now = app.now.clone();
    let report = ask(&app, context.caller(), move |books, known| {
        let window = asked.window(known.as_of)?;
        let question = asked.question(books, window)?;
        let found = books.waste(window, &question.filter, FRAGMENTED_LEASE_COUNT).map_err(|error| problem(&error))?;
        let mut leases = found.leases;
        leases.retain(|lease| headline.is_none_or(|wanted| lease.headline() == wanted));
        now.read(|state| {
            let naming = Naming { state, books, workloads: &[], caller: &caller };
            let sums = sums(&naming, by, &leases)?;
            leases.sort_by(|a, b| b.wasted.cmp(&a.wasted).then(a.row.lease.cmp(&b.row.lease)));
            leases.truncate(limit.min(limits::WASTE_LEASES_MAX));
            let leases = leases.iter().map(|lease| lease_of(&naming, lease)).collect::<Result<Vec<_>, _>>()?;
            let (stranded, fragmented) = match operator {
                true => (stranded(&naming, books, window)?, fragmented(state)),
                false => (Vec::new(), Vec::new()),
            };
            let (stretch, as_of, as_of_size) = (stretch(window), When(known.as_of), known.size);
            Ok(WasteReport { stretch, as_of, as_of_size, sums, leases, stranded, fragmented })
        })
    });
    json(200, &report.await?)
}
