//! Why: the checks, the scores and the deciding term of a decision.

use super::facts::Facts;
use super::session::Session;
use crate::humane;
use crate::table::{Align, Table};
use crate::term::Style;
use leasehold_api::{Explanation, NodeExplanation};

pub(super) fn text(session: &Session, told: &Explanation) -> String {
    let replayed = told.replayed.as_deref().map(|word| match word {
        "same" => "decided again from the journal: the same",
        "differs" => "decided again from the journal: NOT the same",
        _ => "decided under other rules than this daemon's",
    });
    let style = match told.outcome.as_str() {
        "granted" => Style::Green,
        "denied" => Style::Red,
        _ => Style::Plain,
    };
    let mut facts = Facts::new()
        .add("outcome", session.paint.paint(style, &told.outcome))
        .add("why", &told.why)
        .add("as of", humane::to_the_second(told.as_of))
        .maybe("record", told.sequence)
        .maybe("replay", replayed);
    if let Some(place) = &told.queue {
        facts = facts
            .add("place in the queue", place.position)
            .add("budget factor", &place.budget_factor)
            .add("fair-share deficit", &place.fair_share_deficit)
            .maybe("starts by", place.starts_by.map(humane::to_the_second));
    }
    let mut out = facts.text(session.paint);
    section(&mut out, session, "quotas", quotas(told));
    section(&mut out, session, "cost ceilings", ceilings(told));
    let winner = told.deciding.as_deref().map_or_else(String::new, |term| match term {
        "alone" => "; there was no other".to_owned(),
        "number" => "; the first two are worth the same, the lower number wins".to_owned(),
        term => format!("; decided by {term}"),
    });
    section(&mut out, session, &format!("candidates ({} in all{winner})", told.candidate_count), candidates(told));
    if !told.unfit.is_empty() {
        let unfit: Vec<String> = told.unfit.iter().map(|(why, count)| format!("{count} {why}")).collect();
        out += &format!("no candidates: {}\n", unfit.join(", "));
    }
    section(&mut out, session, "evictions, what hurts least first", evictions(told));
    out
}

fn section(out: &mut String, session: &Session, heading: &str, table: Option<Table>) {
    if let Some(table) = table {
        *out += &format!("\n{}\n{}\n", session.paint.bold(heading), session.lines(&table).join("\n"));
    }
}

fn quotas(told: &Explanation) -> Option<Table> {
    let headings = [
        ("quota", Align::Left),
        ("used", Align::Right),
        ("requested", Align::Right),
        ("limit", Align::Right),
        ("", Align::Left),
        ("said", Align::Left),
    ];
    let mut table = Table::new(&headings).yielding(&["quota"]);
    for check in &told.quotas {
        let numbers = [check.used, check.requested, check.limit].map(|n| n.to_string());
        let [used, requested, limit] = numbers;
        table.row([check.what.clone(), used, requested, limit, check.limit_type.clone(), check.said.replace('_', " ")]);
    }
    (!told.quotas.is_empty()).then_some(table)
}

fn ceilings(told: &Explanation) -> Option<Table> {
    let headings = [
        ("app instance", Align::Left),
        ("spent", Align::Right),
        ("reserved", Align::Right),
        ("requested", Align::Right),
        ("ceiling", Align::Right),
        ("", Align::Left),
        ("", Align::Left),
        ("said", Align::Left),
    ];
    let mut table = Table::new(&headings);
    for check in &told.ceilings {
        let of = check.app_instance.map_or_else(|| "all".to_owned(), |app| app.to_string());
        let [spent, reserved, requested, amount] =
            [&check.spent, &check.reserved, &check.requested, &check.amount].map(ToString::to_string);
        let (currency, mode, said) = (check.currency.clone(), check.mode.clone(), check.said.replace('_', " "));
        table.row([of, spent, reserved, requested, amount, currency, mode, said]);
    }
    (!told.ceilings.is_empty()).then_some(table)
}

fn candidates(told: &Explanation) -> Option<Table> {
    let number = |name| (name, Align::Right);
    let headings = [
        ("node", Align::Left),
        ("pool", Align::Left),
        number("score"),
        number("pressure"),
        number("fit"),
        number("locality"),
        number("packed"),
        number("heat"),
    ];
    let mut table = Table::new(&headings).yielding(&["node", "pool"]);
    for one in &told.candidates {
        let node = one.node.clone().unwrap_or_else(|| "a node".to_owned());
        let terms = [&one.score, &one.pressure, &one.fit, &one.locality, &one.fragmentation, &one.heat];
        let [score, pressure, fit, locality, packed, heat] = terms.map(Clone::clone);
        table.row([node, one.pool.clone(), score, pressure, fit, locality, packed, heat]);
    }
    (!told.candidates.is_empty()).then_some(table)
}

fn evictions(told: &Explanation) -> Option<Table> {
    let headings = [
        ("node", Align::Left),
        ("highest", Align::Left),
        ("gangs", Align::Right),
        ("quanta", Align::Right),
        ("victims", Align::Left),
    ];
    let mut table = Table::new(&headings).yielding(&["victims"]);
    for one in &told.evictions {
        let victims = one.victims.iter().map(|victim| format!("{} ({})", victim.tenant, victim.priority));
        table.row([
            one.node.clone().unwrap_or_else(|| "a node".to_owned()),
            one.highest_priority.clone(),
            one.gangs.to_string(),
            one.quanta.to_string(),
            victims.collect::<Vec<_>>().join(", "),
        ]);
    }
    (!told.evictions.is_empty()).then_some(table)
}

pub(super) fn node(session: &Session, told: &NodeExplanation) -> String {
    let style = if told.available { Style::Green } else { Style::Red };
    let promised = told
        .promised_to
        .iter()
        .map(|one| format!("alloc-{}, which starts by {}", one.allocation_id, humane::to_the_second(one.starts_by)));
    let promised = promised.collect::<Vec<_>>().join("; ");
    let kept = told.reserved_for.iter().map(|number| format!("alloc-{number}")).collect::<Vec<_>>().join(", ");
    let facts = Facts::new()
        .add("node", &told.node)
        .add("pool", &told.pool)
        .add("takes work", session.paint.paint(style, if told.available { "yes" } else { "no" }))
        .add("why", &told.why)
        .add("heat", &told.heat)
        .add("leases", told.leases)
        .maybe("kept for", Some(kept).filter(|kept| !kept.is_empty()))
        .maybe("promised to", Some(promised).filter(|promised| !promised.is_empty()));
    let names = ["capacity", "held", "tearing down", "reserved", "fenced", "offline", "idle", "evictable"];
    let headings: Vec<(&str, Align)> =
        [("class", Align::Left)].into_iter().chain(names.map(|name| (name, Align::Right))).collect();
    let mut table = Table::new(&headings).yielding(&["class"]);
    for c in &told.classes {
        let numbers = [c.capacity, c.held, c.tearing_down, c.reserved, c.fenced, c.offline, c.idle, c.evictable];
        let cells = [c.class.clone()].into_iter().chain(numbers.map(|n| n.to_string()));
        table.row(cells.collect::<Vec<_>>());
    }
    format!("{}\n{}\n", facts.text(session.paint), session.lines(&table).join("\n"))
}
