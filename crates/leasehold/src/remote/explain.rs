//! Why: the checks, the scores and the deciding term of a decision.

use super::details::Facts;
use super::lease::short;
use super::session::Session;
use super::units::Classes;
use crate::table::{Align, Table};
use crate::term::Style;
use crate::time_format;
use leasehold_api::{DecidedEviction, Ending, Explanation, NodeExplanation};

pub(super) fn text(session: &Session, told: &Explanation) -> String {
    let style = match told.outcome.as_str() {
        "granted" => Style::Green,
        "denied" | "evicted" | "failed" => Style::Red,
        _ => Style::Plain,
    };
    let profile = told.profile.iter().map(|(kind, level)| format!("{kind} {level}")).collect::<Vec<_>>().join(", ");
    let mut facts = Facts::new()
        .add("outcome", session.paint.paint(style, &told.outcome))
        .add("why", &told.why)
        .add("as of", time_format::to_the_second(told.as_of))
        .maybe("record", told.sequence)
        .maybe("replay", replay(told))
        .maybe("profile", Some(profile).filter(|profile| !profile.is_empty()));
    if let Some(place) = &told.queue {
        facts = facts
            .add("place in the queue", place.position)
            .add("budget factor", &place.budget_factor)
            .add("fair-share deficit", &place.fair_share_deficit)
            .maybe("starts by", place.starts_by.map(time_format::to_the_second));
    }
    let mut out = match &told.ending {
        Some(ending) => ended(facts, ending),
        None => facts,
    }
    .text(session.paint);
    section(&mut out, session, "quotas", quotas(told));
    section(&mut out, session, "cost ceilings", ceilings(told));
    if let Some(decided) = &told.decided {
        let what = match told.outcome.as_str() {
            "evicted" | "evicts" => "who falls",
            "waits" => "who makes room",
            _ => "who made room",
        };
        section(&mut out, session, &format!("{what}, decided in record {}", decided.sequence), Some(victims(decided)));
    }
    section(&mut out, session, &format!("replicas{}", more(told)), replicas(told));
    let winner = told.deciding.as_deref().map_or_else(String::new, |term| match term {
        "alone" => "; there was no other".to_owned(),
        "number" => "; the first two are worth the same, the lower number wins".to_owned(),
        term => format!("; decided by {term}"),
    });
    let replica = told.replica.map_or_else(String::new, |replica| format!(" for replica {replica}"));
    let heading = format!("candidates{replica} ({} in all{winner})", told.candidate_count);
    section(&mut out, session, &heading, candidates(told));
    for line in weights(told) {
        out += &format!("{line}\n");
    }
    if !told.unfit.is_empty() {
        let unfit: Vec<String> = told.unfit.iter().map(|(why, count)| format!("{count} {}", because(why))).collect();
        out += &format!("not considered: {}\n", unfit.join(", "));
    }
    section(&mut out, session, "evictions, what hurts least first", evictions(told));
    out
}

/// What deciding it again came to.
fn replay(told: &Explanation) -> Option<String> {
    let verdict = match told.replayed.as_deref()? {
        "same" => "the same",
        "differs" => "NOT the same",
        _ => return Some("decided under other rules than this daemon's".to_owned()),
    };
    let again = format!("decided again from the journal: {verdict}");
    Some(match (told.part, told.sequence) {
        (Some(part), Some(first)) => format!("record {part} is part of the decision in record {first}: {again}"),
        _ => again,
    })
}

fn ended(facts: Facts, ending: &Ending) -> Facts {
    let grace = ending.grace_ends_at.filter(|_| ending.ended_at.is_none()).map(|at| {
        format!("until {} ({})", time_format::to_the_second(at), time_format::distance(at, time_format::now()))
    });
    facts
        .add(
            "its end",
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

/// Why a node is no candidate.
fn because(word: &str) -> String {
    match word {
        "capacity" | "quota" => format!("for {word}"),
        "class" => "without the class".to_owned(),
        "labels" => "without the labels".to_owned(),
        "ttl" => "for so long a time".to_owned(),
        "promised" => "promised to one that goes first".to_owned(),
        "together" => "away from the other replicas".to_owned(),
        "apart" => "too near to other replicas".to_owned(),
        word => word.to_owned(),
    }
}

/// The weights behind the scores, once for each pool.
fn weights(told: &Explanation) -> Vec<String> {
    let mut said: Vec<(String, String)> = Vec::new();
    for one in &told.candidates {
        let w = &one.weighed;
        let text = format!(
            "{}: pressure {}, fit {}, locality {}, packed {}",
            one.weights, w.pressure, w.fit, w.locality, w.fragmentation
        );
        if !said.iter().any(|(pool, _)| *pool == one.pool) {
            said.push((one.pool.clone(), text));
        }
    }
    said.into_iter().map(|(pool, text)| format!("weights of {pool}, {text}")).collect()
}

/// How many replicas are not told one by one.
fn more(told: &Explanation) -> String {
    let all = told.replica_count.unwrap_or_default() as usize;
    match all.saturating_sub(told.replicas.len()) {
        0 => String::new(),
        rest => format!(" (and {rest} more)"),
    }
}

fn replicas(told: &Explanation) -> Option<Table> {
    let headings = [
        ("replica", Align::Right),
        ("node", Align::Left),
        ("pool", Align::Left),
        ("score", Align::Right),
        ("decided by", Align::Left),
    ];
    let mut table = Table::new(&headings).yielding(&["pool", "node"]);
    for one in &told.replicas {
        let node = one.node.clone().unwrap_or_else(|| "a node".to_owned());
        let deciding = one.deciding.clone().unwrap_or_default();
        table.row([one.replica.to_string(), node, one.pool.clone(), one.score.clone(), deciding]);
    }
    (!told.replicas.is_empty()).then_some(table)
}

fn victims(decided: &DecidedEviction) -> Table {
    let headings = [
        ("lease", Align::Left),
        ("tenant", Align::Left),
        ("priority", Align::Left),
        ("class", Align::Left),
        ("quanta", Align::Right),
        ("node", Align::Left),
        ("would have ended", Align::Left),
        ("", Align::Left),
    ];
    let mut table = Table::new(&headings).yielding(&["class", "node", "tenant"]);
    for one in &decided.victims {
        table.row([
            one.lease_id.as_deref().map_or_else(|| "-".to_owned(), short),
            one.tenant.clone(),
            one.priority.clone(),
            one.class.clone(),
            one.quanta.to_string(),
            one.node.clone().unwrap_or_else(|| "a node".to_owned()),
            time_format::to_the_second(one.expires_at),
            if one.gone { "gone".to_owned() } else { String::new() },
        ]);
    }
    table
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

pub(super) fn node(session: &Session, told: &NodeExplanation, classes: &Classes) -> String {
    let style = if told.available { Style::Green } else { Style::Red };
    let promised = told.promised_to.iter().map(|one| {
        format!("alloc-{}, which starts by {}", one.allocation_id, time_format::to_the_second(one.starts_by))
    });
    let promised = promised.collect::<Vec<_>>().join("; ");
    let kept = told.reserved_for.iter().map(|number| format!("alloc-{number}")).collect::<Vec<_>>().join(", ");
    let facts = Facts::new()
        .add("node", &told.node)
        .add("pool", &told.pool)
        .add("takes work", session.paint.paint(style, if told.available { "yes" } else { "no" }))
        .add("why", &told.why)
        .add("heat", told.heat)
        .add("leases", told.leases)
        .maybe("kept for", Some(kept).filter(|kept| !kept.is_empty()))
        .maybe("promised to", Some(promised).filter(|promised| !promised.is_empty()));
    let names = ["has", "held", "tearing down", "reserved", "fenced", "offline", "idle", "evictable"];
    let headings: Vec<(&str, Align)> =
        [("class", Align::Left)].into_iter().chain(names.map(|name| (name, Align::Right))).collect();
    let mut table = Table::new(&headings).yielding(&["class"]);
    for c in &told.classes {
        let has = classes.with_unit(&c.class, &classes.display(&c.class, c.capacity));
        let numbers = [c.held, c.tearing_down, c.reserved, c.fenced, c.offline, c.idle, c.evictable];
        let cells = [c.class.clone(), has].into_iter().chain(numbers.map(|n| classes.display(&c.class, n)));
        table.row(cells.collect::<Vec<_>>());
    }
    format!("{}\n{}\n", facts.text(session.paint), session.lines(&table).join("\n"))
}
