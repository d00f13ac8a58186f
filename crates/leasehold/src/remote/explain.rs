//! `explain`: the checks, the scores and the deciding term of a decision.

use super::details::Details;
use super::figures::{self, one_amount};
use super::lease::short;
use super::session::Session;
use super::units::Classes;
use crate::table::{Align, Table};
use crate::term::Style;
use crate::time_format;
use leasehold_api::{DecidedEviction, Ending, Explanation, NodeExplanation, Ttl};
use leasehold_model::Span;

pub(super) fn text(session: &Session, explanation: &Explanation) -> String {
    let style = match explanation.outcome.as_str() {
        "granted" => Style::Green,
        "denied" | "evicted" | "failed" => Style::Red,
        _ => Style::Plain,
    };
    let profile =
        explanation.profile.iter().map(|(kind, level)| format!("{kind} {level}")).collect::<Vec<_>>().join(", ");
    let mut details = Details::new()
        .add("outcome", session.paint.paint(style, &explanation.outcome))
        .add("why", &explanation.why)
        .add("as of", time_format::to_the_second(explanation.as_of))
        .maybe("record", explanation.sequence)
        .maybe("replay", replay(explanation))
        .maybe("profile", Some(profile).filter(|profile| !profile.is_empty()));
    if let Some(standing) = &explanation.queue {
        details = details
            .add("queue position", standing.position)
            .add("budget factor", &standing.budget_factor)
            .add("fair-share deficit", &standing.fair_share_deficit)
            .maybe("starts by", standing.starts_by.map(time_format::to_the_second));
    }
    let mut out = match &explanation.ending {
        Some(ending) => ended(details, ending),
        None => details,
    }
    .text(session.paint);
    section(&mut out, session, "quotas", quotas(explanation));
    section(&mut out, session, "cost ceilings", ceilings(explanation));
    section(&mut out, session, "prepaid credit", prepaid(explanation));
    if let Some(decided) = &explanation.decided {
        let what = match explanation.outcome.as_str() {
            "evicted" | "evicts" => "victims",
            "waits" => "victims that free its capacity",
            _ => "victims that freed its capacity",
        };
        section(&mut out, session, &format!("{what}, decided in record {}", decided.sequence), Some(victims(decided)));
    }
    section(&mut out, session, &format!("replicas{}", more(explanation)), replicas(explanation));
    let winner = explanation.deciding.as_deref().map_or_else(String::new, |term| match term {
        "alone" => "; it was the only one".to_owned(),
        "number" => "; the first two have equal scores, the lower number wins".to_owned(),
        term => format!("; decided by {term}"),
    });
    let replica = explanation.replica.map_or_else(String::new, |replica| format!(" for replica {replica}"));
    let heading = format!("candidates{replica} ({} in total{winner})", explanation.candidate_count);
    section(&mut out, session, &heading, candidates(explanation));
    for line in weights(explanation) {
        out += &format!("{line}\n");
    }
    if !explanation.unfit.is_empty() {
        let unfit: Vec<String> =
            explanation.unfit.iter().map(|(why, count)| format!("{count} {}", because(why))).collect();
        out += &format!("not considered: {}\n", unfit.join(", "));
    }
    section(&mut out, session, "possible evictions, lowest cost first", evictions(explanation));
    out
}

/// The result of the replay.
fn replay(explanation: &Explanation) -> Option<String> {
    let verdict = match explanation.replayed.as_deref()? {
        "same" => "the same result",
        "differs" => "the result DIFFERS",
        _ => return Some("not possible: the decision was made by another version of the rules".to_owned()),
    };
    let again = format!("replayed from the journal: {verdict}");
    Some(match (explanation.part, explanation.sequence) {
        (Some(part), Some(first)) => format!("record {part} is part of the decision in record {first}: {again}"),
        _ => again,
    })
}

fn ended(details: Details, ending: &Ending) -> Details {
    let grace = ending.grace_ends_at.filter(|_| ending.ended_at.is_none()).map(|at| {
        format!("until {} ({})", time_format::to_the_second(at), time_format::distance(at, time_format::now()))
    });
    details
        .add(
            "end",
            format!(
                "{} (record {}, {})",
                ending.how.replace('_', " "),
                ending.sequence,
                time_format::to_the_second(ending.at)
            ),
        )
        .add("why it ended", &ending.why)
        .maybe("grace", grace)
        .maybe("ended", ending.ended_at.map(time_format::to_the_second))
}

/// Why nodes are not candidates, after their number.
fn because(word: &str) -> String {
    match word {
        "capacity" => "without enough capacity".to_owned(),
        "quota" => "excluded by a quota".to_owned(),
        "class" => "without the class".to_owned(),
        "labels" => "without the labels".to_owned(),
        "ttl" => "in pools with a shorter TTL limit".to_owned(),
        "elsewhere" => "outside the requested pool or node".to_owned(),
        "unclaimed" => "not claimed by the user".to_owned(),
        "wiping" => "being wiped".to_owned(),
        "promised" => "reserved for a higher-ranked allocation".to_owned(),
        "together" => "in another domain than the other replicas".to_owned(),
        "apart" => "in the same domain as another replica".to_owned(),
        word => word.to_owned(),
    }
}

/// The weights of the scores, once per pool.
fn weights(explanation: &Explanation) -> Vec<String> {
    let mut lines: Vec<(String, String)> = Vec::new();
    for one in &explanation.candidates {
        let w = &one.weighed;
        let text = format!(
            "{}: pressure {}, fit {}, locality {}, fragmentation {}",
            one.weights, w.pressure, w.fit, w.locality, w.fragmentation
        );
        if !lines.iter().any(|(pool, _)| *pool == one.pool) {
            lines.push((one.pool.clone(), text));
        }
    }
    lines.into_iter().map(|(pool, text)| format!("weights of {pool}, {text}")).collect()
}

/// How many replicas are not listed.
fn more(explanation: &Explanation) -> String {
    let all = explanation.replica_count.unwrap_or_default() as usize;
    match all.saturating_sub(explanation.replicas.len()) {
        0 => String::new(),
        rest => format!(" (and {rest} more)"),
    }
}

fn replicas(explanation: &Explanation) -> Option<Table> {
    let headings = [
        ("replica", Align::Right),
        ("node", Align::Left),
        ("pool", Align::Left),
        ("score", Align::Right),
        ("decided by", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["pool", "node"]);
    for one in &explanation.replicas {
        let node = one.node.clone().unwrap_or_else(|| "a node".to_owned());
        let deciding = one.deciding.clone().unwrap_or_default();
        table.row([one.replica.to_string(), node, one.pool.clone(), one.score.clone(), deciding]);
    }
    (!explanation.replicas.is_empty()).then_some(table)
}

fn victims(decided: &DecidedEviction) -> Table {
    let headings = [
        ("lease", Align::Left),
        ("holder", Align::Left),
        ("priority", Align::Left),
        ("class", Align::Left),
        ("capacity", Align::Right),
        ("node", Align::Left),
        ("remaining", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["class", "node", "holder"]);
    let ending = decided.awaited.iter().map(|one| (one, "was ending already"));
    for (one, note) in decided.victims.iter().map(|one| (one, "")).chain(ending) {
        table.row([
            one.lease_id.as_deref().map_or_else(|| "-".to_owned(), short),
            one.holder.clone(),
            one.priority.clone(),
            one.class.clone(),
            one.capacity.clone(),
            one.node.clone().unwrap_or_else(|| "a node".to_owned()),
            rounded(one.remaining).to_string(),
            if one.gone { "gone".to_owned() } else { note.to_owned() },
        ]);
    }
    table
}

/// Rounded to seconds.
fn rounded(left: Ttl) -> Ttl {
    if left.0.0 < 1_000_000_000 { left } else { Ttl(Span::from_secs(left.0.as_secs())) }
}

fn section(out: &mut String, session: &Session, heading: &str, table: Option<Table>) {
    if let Some(table) = table {
        *out += &format!("\n{}\n{}\n", session.paint.bold(heading), session.lines(&table).join("\n"));
    }
}

fn quotas(explanation: &Explanation) -> Option<Table> {
    let headings = [
        ("quota", Align::Left),
        ("used", Align::Right),
        ("requested", Align::Right),
        ("limit", Align::Right),
        ("", Align::Left),
        ("result", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["quota"]);
    for check in &explanation.quotas {
        let exact = [&check.used_exact, &check.requested_exact, &check.limit_exact];
        let [used, requested, limit] = exact.map(|amount| figures::quantity(amount));
        let limit = check.unit.as_ref().map_or(limit.clone(), |unit| format!("{limit} {unit}"));
        table.row([check.what.clone(), used, requested, limit, check.limit_type.clone(), check.said.replace('_', " ")]);
    }
    (!explanation.quotas.is_empty()).then_some(table)
}

fn ceilings(explanation: &Explanation) -> Option<Table> {
    let headings = [
        ("app instance", Align::Left),
        ("spent", Align::Right),
        ("reserved", Align::Right),
        ("requested", Align::Right),
        ("ceiling", Align::Right),
        ("", Align::Left),
        ("", Align::Left),
        ("result", Align::Left),
    ];
    let mut table = Table::new(&headings);
    for check in &explanation.ceilings {
        let of = check.app_instance.clone().unwrap_or_else(|| "all".to_owned());
        let [spent, reserved, requested, amount] = [&check.spent, &check.reserved, &check.requested, &check.amount]
            .map(|money| one_amount(&money.0, &check.currency));
        let (currency, mode, said) = (check.currency.clone(), check.mode.clone(), check.said.replace('_', " "));
        table.row([of, spent, reserved, requested, amount, currency, mode, said]);
    }
    (!explanation.ceilings.is_empty()).then_some(table)
}

fn prepaid(explanation: &Explanation) -> Option<Table> {
    let headings = [
        ("of the", Align::Left),
        ("state", Align::Left),
        ("available", Align::Right),
        ("requested", Align::Right),
        ("", Align::Left),
        ("result", Align::Left),
    ];
    let mut table = Table::new(&headings);
    for check in &explanation.prepaid {
        let [available, requested] =
            [&check.available.0, &check.requested.0].map(|money| one_amount(money, &check.currency));
        let (of, currency) = (check.of.clone(), check.currency.clone());
        table.row([of, check.state.to_string(), available, requested, currency, check.said.clone()]);
    }
    (!explanation.prepaid.is_empty()).then_some(table)
}

fn candidates(explanation: &Explanation) -> Option<Table> {
    let number = |name| (name, Align::Right);
    let headings = [
        ("node", Align::Left),
        ("pool", Align::Left),
        number("score"),
        number("pressure"),
        number("fit"),
        number("locality"),
        number("fragmentation"),
        number("heat"),
    ];
    let mut table = Table::new(&headings).shrink_first(&["node", "pool"]);
    for one in &explanation.candidates {
        let node = one.node.clone().unwrap_or_else(|| "a node".to_owned());
        let terms = [&one.score, &one.pressure, &one.fit, &one.locality, &one.fragmentation, &one.heat];
        let [score, pressure, fit, locality, fragmentation, heat] = terms.map(Clone::clone);
        table.row([node, one.pool.clone(), score, pressure, fit, locality, fragmentation, heat]);
    }
    (!explanation.candidates.is_empty()).then_some(table)
}

fn evictions(explanation: &Explanation) -> Option<Table> {
    let headings = [
        ("node", Align::Left),
        ("highest priority", Align::Left),
        ("gangs", Align::Right),
        ("quanta", Align::Right),
        ("victims", Align::Left),
    ];
    let mut table = Table::new(&headings).shrink_first(&["victims"]);
    for one in &explanation.evictions {
        let victims = one.victims.iter().map(|victim| {
            let (holder, capacity, left) = (&victim.holder, &victim.capacity, rounded(victim.remaining));
            format!("{holder} ({}, {capacity}, {left} left)", victim.priority)
        });
        table.row([
            one.node.clone().unwrap_or_else(|| "a node".to_owned()),
            one.highest_priority.clone(),
            one.gangs.to_string(),
            one.quanta.to_string(),
            victims.collect::<Vec<_>>().join(", "),
        ]);
    }
    (!explanation.evictions.is_empty()).then_some(table)
}

pub(super) fn node(session: &Session, explanation: &NodeExplanation, classes: &Classes) -> String {
    let style = if explanation.available { Style::Green } else { Style::Red };
    let assured = explanation
        .promised_to
        .iter()
        .map(|one| format!("{}, which starts by {}", one.allocation_id, time_format::to_the_second(one.starts_by)));
    let assured = assured.collect::<Vec<_>>().join("; ");
    let reserved = explanation.reserved_for.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let details = Details::new()
        .add("node", &explanation.node)
        .add("pool", &explanation.pool)
        .add("available", session.paint.paint(style, if explanation.available { "yes" } else { "no" }))
        .add("why", &explanation.why)
        .add("heat", explanation.heat)
        .add("leases", explanation.leases)
        .maybe("reserved for", Some(reserved).filter(|reserved| !reserved.is_empty()))
        .maybe("assured start of", Some(assured).filter(|assured| !assured.is_empty()));
    let names = ["capacity", "held", "tearing down", "reserved", "fenced", "offline", "idle", "evictable"];
    let headings: Vec<(&str, Align)> =
        [("class", Align::Left)].into_iter().chain(names.map(|name| (name, Align::Right))).collect();
    let mut table = Table::new(&headings).shrink_first(&["class"]);
    for c in &explanation.classes {
        let capacity = classes.with_unit(&c.class, &classes.display(&c.class, c.capacity));
        let numbers = [c.held, c.tearing_down, c.reserved, c.fenced, c.offline, c.idle, c.evictable];
        let cells = [c.class.clone(), capacity].into_iter().chain(numbers.map(|n| classes.display(&c.class, n)));
        table.row(cells.collect::<Vec<_>>());
    }
    format!("{}\n{}\n", details.text(session.paint), session.lines(&table).join("\n"))
}
