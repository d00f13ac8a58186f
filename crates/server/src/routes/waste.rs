//! Reports on capacity that was held and not used.

use super::books::{amounts, stretch, too_many, unit_seconds};
use super::books_query::{BooksQuery, By, word};
use super::naming::Naming;
use super::usage::utilisation;
use crate::books::{ask, problem};
use crate::context::{Answer, Context, json};
use leasehold_api::{
    FragmentedNode, Of, Problem, Role, Stranded, Stretch, WasteClass, WasteOrder, WasteReport, WasteSum, WastedCost,
    WastedLease, When, codes, limits,
};
use leasehold_books::{Activity, Books, Dim, FRAGMENTED_LEASE_COUNT, Filter, Key, LeaseWaste};
use leasehold_engine::State;
use leasehold_meter::Window;
use leasehold_meter::exact::decimal_text;
use leasehold_model::rate::Currency;
use leasehold_model::{ClassNo, NodeNo, PoolNo, Quanta, quantity};
use std::collections::{BTreeMap, BTreeSet};

fn costs(sums: &BTreeMap<Currency, u128>) -> Vec<WastedCost> {
    let one = |(currency, billionths): (&Currency, &u128)| WastedCost {
        currency: currency.to_string(),
        amount: decimal_text((*billionths).into(), 9),
    };
    sums.iter().map(one).collect()
}

fn lease_of(naming: &Naming<'_>, lease: &LeaseWaste) -> Result<WastedLease, Problem> {
    let spec = naming.spec(lease.row.class)?;
    let mut of = Of { workload: lease.row.workload.as_ref().map(ToString::to_string), ..Of::default() };
    naming.put_tenant(&mut of, lease.row.tenant);
    naming.put_project(&mut of, lease.row.project);
    lease.row.user.into_iter().for_each(|user| naming.put_user(&mut of, user));
    if naming.caller.sees_node(lease.row.node) {
        naming.put_node(&mut of, lease.row.node);
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
    activity: Activity,
    wasted: u128,
    cost: BTreeMap<Currency, u128>,
}

impl Sum {
    fn add(&mut self, lease: &LeaseWaste) {
        self.leases += 1;
        self.activity.add(lease.activity());
        self.wasted += lease.wasted;
        for (currency, billionths) in &lease.wasted_money {
            *self.cost.entry(*currency).or_default() += billionths;
        }
    }
}

/// The groups in their order, at most `top`.
fn ranked(groups: &BTreeMap<Key, Sum>, order: WasteOrder, top: usize) -> Vec<Key> {
    let mut keys: Vec<Key> = groups.keys().copied().collect();
    let currencies: BTreeSet<Currency> = groups.values().flat_map(|sum| sum.cost.keys().copied()).collect();
    // Amounts of different currencies are not added: the first currency decides, then the next.
    let cost = |key: &Key| -> Vec<u128> {
        currencies.iter().map(|currency| groups[key].cost.get(currency).copied().unwrap_or(0)).collect()
    };
    match order {
        WasteOrder::Name => {}
        WasteOrder::Cost => keys.sort_by_key(|key| std::cmp::Reverse(cost(key))),
        WasteOrder::Leases => keys.sort_by_key(|key| std::cmp::Reverse(groups[key].leases)),
    }
    keys.truncate(top);
    keys
}

/// The sums of the groups, by class and headline.
fn sums(
    naming: &Naming<'_>,
    dims: &[Dim],
    keyed: &[(Key, &LeaseWaste)],
    (order, top): (WasteOrder, usize),
) -> Result<Vec<WasteSum>, Problem> {
    let mut groups: BTreeMap<Key, Sum> = BTreeMap::new();
    let mut sums: BTreeMap<Key, BTreeMap<(ClassNo, WasteClass), Sum>> = BTreeMap::new();
    for (key, lease) in keyed {
        groups.entry(*key).or_default().add(lease);
        sums.entry(*key).or_default().entry((lease.row.class, lease.headline())).or_default().add(lease);
    }
    let mut out = Vec::new();
    for key in ranked(&groups, order, top) {
        for ((class, headline), sum) in &sums[&key] {
            let spec = naming.spec(*class)?;
            let mut of = naming.of(dims, &key);
            naming.name_class(&mut of, *class)?;
            out.push(WasteSum {
                of,
                headline: *headline,
                leases: sum.leases,
                unit: spec.kind.unit().to_owned(),
                held: unit_seconds(spec, sum.activity.held)?,
                wasted: unit_seconds(spec, sum.wasted)?,
                utilisation: utilisation(&[(spec.quanta_per_unit, sum.activity)])?,
                wasted_cost: costs(&sum.cost),
            });
        }
    }
    Ok(out)
}

/// Idle capacity by pool and class, and what it would have earned at scavenger priority.
fn stranded(naming: &Naming<'_>, books: &Books, window: Window, filter: &Filter) -> Result<Vec<Stranded>, Problem> {
    let failed = |error| problem(&error);
    let mut out = Vec::new();
    let takes = |pool: PoolNo, node: NodeNo, class: ClassNo| {
        filter.pool.is_none_or(|wanted| wanted == pool)
            && filter.node.is_none_or(|wanted| wanted == node)
            && filter.classes.as_ref().is_none_or(|classes| classes.contains(&class))
    };
    for (key, line) in books.capacity(window, true, false, takes).map_err(failed)? {
        let Some(pool) = key.pool.filter(|_| line.idle > 0) else { continue };
        let spec = naming.spec(key.class)?;
        let earned = books.stranded(pool, key.class, filter.node, window).map_err(failed)?;
        let mut of = Of::default();
        naming.put_pool(&mut of, pool);
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
fn fragmented(state: &State, filter: &Filter) -> Vec<FragmentedNode> {
    let mut out = Vec::new();
    let is_asked = |node: &&leasehold_engine::Node| {
        filter.pool.is_none_or(|pool| pool == node.pool) && filter.node.is_none_or(|number| number == node.number)
    };
    for node in state.nodes().filter(is_asked) {
        for (class, devices, free) in node.free_in_parts() {
            let is_asked = filter.classes.as_ref().is_none_or(|classes| classes.contains(&class));
            let Some(spec) = state.class(class).filter(|_| free > 0 && is_asked) else { continue };
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
    let (headline, limit) = (word::<WasteClass>(&context, "headline")?, context.limit()?);
    let order = word::<WasteOrder>(&context, "sort")?.unwrap_or(WasteOrder::Name);
    let top = match context.number("top")? {
        None => usize::MAX,
        Some(top @ 1..=1000) => usize::try_from(top).expect("at most a thousand"),
        Some(_) => {
            let detail = format!("`top` must be between 1 and {}.", limits::PAGE_MAX);
            return Err(codes::BAD_QUERY.problem(detail).with("field", "top"));
        }
    };
    let asked = context.app.now.read(|state| BooksQuery::read(&context, state))?;
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let operator = matches!(caller.role, Role::Operator | Role::Auditor);
    if asked.by.contains(&By::Dim(Dim::Node)) && !operator {
        return Err(codes::ROLE_FORBIDS.problem("Only operators and auditors may see nodes."));
    }
    let now = app.now.clone();
    let report = ask(&app, context.caller(), move |books, known| {
        let window = asked.window(known.as_of)?;
        let question = asked.question(books, window)?;
        let filter = &question.filter;
        let found = books.waste(window, filter, FRAGMENTED_LEASE_COUNT).map_err(|error| problem(&error))?;
        let mut leases = found.leases;
        leases.retain(|lease| headline.is_none_or(|wanted| lease.headline() == wanted));
        let mut workloads = books.workloads();
        let key = |lease: &LeaseWaste| books.row_key(&question, &lease.row, &mut workloads);
        let keys: Vec<Key> = leases.iter().map(key).collect();
        now.read(|state| {
            let naming = Naming { state, books, workloads: &workloads.names, caller: &caller };
            let keyed: Vec<(Key, &LeaseWaste)> = keys.into_iter().zip(&leases).collect();
            let sums = sums(&naming, &question.dims, &keyed, (order, top))?;
            too_many(sums.len())?;
            leases.sort_by(|a, b| b.wasted.cmp(&a.wasted).then(a.row.lease.cmp(&b.row.lease)));
            leases.truncate(limit.min(limits::WASTE_LEASES_MAX));
            let leases = leases.iter().map(|lease| lease_of(&naming, lease)).collect::<Result<Vec<_>, _>>()?;
            let (stranded, fragmented) = match operator {
                true => (stranded(&naming, books, window, filter)?, fragmented(state, filter)),
                false => (Vec::new(), Vec::new()),
            };
            let (stretch, as_of, as_of_size) = (stretch(window), When(known.as_of), known.size);
            Ok(WasteReport { stretch, as_of, as_of_size, sums, leases, stranded, fragmented })
        })
    });
    json(200, &report.await?)
}
