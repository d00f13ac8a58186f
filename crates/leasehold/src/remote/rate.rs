//! `leasehold rate …`: rate cards and charge policies.

use super::details::{Details, or_dash, word};
use super::failure::Failed;
use super::pairs::{by_key, twice};
use super::patch::something;
use super::session::Session;
use crate::cli::rate::{PolicyCommand, PolicySetArgs, RateCommand, RateSetArgs};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::term::Style;
use crate::time_format;
use leasehold_api::{
    CardState, Charge, ChargePolicy, ChargesChange, Decimal, KindPriceChange, NewChargePolicy, NewRateCard, Patch,
    Price, PriceChange, PriorityFactorChange, RateCard, RateCardChange, When,
};
use std::collections::BTreeMap;

pub(super) async fn run(session: &Session, command: RateCommand) -> Result<(), Failed> {
    let client = &session.client;
    match command {
        RateCommand::List(args) => session.list(client.list_rate_cards().maybe("pool", args.pool), cards).await,
        RateCommand::Show(args) => session.show(client.show_rate_card(args.card), |card| one(session, card)).await,
        RateCommand::Current(args) => {
            session.show(client.current_rate_card().maybe("pool", args.pool), |card| one(session, card)).await
        }
        RateCommand::Set(args) => set(session, *args).await,
        RateCommand::Delete(args) => {
            let call = client.delete_rate_card(args.card);
            session.change(call, &args.change, |_| format!("rate card {} was withdrawn\n", args.card)).await
        }
        RateCommand::Policy(PolicyCommand::List) => session.list(client.list_charge_policies(), policies).await,
        RateCommand::Policy(PolicyCommand::Set(args)) => set_policy(session, args).await,
    }
}

async fn set(session: &Session, args: RateSetArgs) -> Result<(), Failed> {
    let client = &session.client;
    let prices = prices(&args)?;
    let from = session.times.future("--from", args.from.as_ref())?;
    let call = match args.card {
        Some(card) => {
            let pool = match (args.pool, args.all_pools) {
                (Some(pool), _) => Patch::Set(pool),
                (None, true) => Patch::Clear,
                (None, false) => Patch::Keep,
            };
            client.change_rate_card(card, &something(RateCardChange { pool, from, prices })?)
        }
        None => {
            // A card without prices would repeat the one in force.
            let prices = something(prices)?;
            client.create_rate_card(&NewRateCard { pool: args.pool, from, prices })
        }
    };
    session.change(call, &args.change, |put| one(session, &put.rate_card)).await
}

fn prices(args: &RateSetArgs) -> Result<PriceChange, Problem> {
    let price = |text: &Option<String>| text.clone().map(Price);
    let factors = by_key("--priority", &args.priorities, |factor| Decimal(factor.clone()))?;
    let factor = |word: &str| factors.get(word).cloned();
    Ok(PriceChange {
        currency: args.currency.clone(),
        kinds: KindPriceChange {
            gpu: price(&args.gpu),
            cpu: price(&args.cpu),
            mem: price(&args.mem),
            block: price(&args.block),
            net: price(&args.net),
        },
        classes: lines("--class", &args.classes, &args.no_classes, Price)?,
        tiers: lines("--tier", &args.tiers, &args.no_tiers, Decimal)?,
        priorities: PriorityFactorChange {
            scavenger: factor("scavenger"),
            standard: factor("standard"),
            guaranteed: factor("guaranteed"),
        },
    })
}

/// Prices or factors that are set, and those that are removed; each name may be given once.
fn lines<T>(
    option: &str,
    set: &[(String, String)],
    removed: &[String],
    read: impl Fn(String) -> T,
) -> Result<BTreeMap<String, Option<T>>, Problem> {
    let set = set.iter().map(|(name, value)| (name.clone(), Some(read(value.clone()))));
    let all = set.chain(removed.iter().map(|name| (name.clone(), None)));
    let mut lines = BTreeMap::new();
    for (name, value) in all {
        if lines.insert(name.clone(), value).is_some() {
            return Err(twice(option, &name));
        }
    }
    Ok(lines)
}

async fn set_policy(session: &Session, args: PolicySetArgs) -> Result<(), Failed> {
    let client = &session.client;
    let from = session.times.future("--from", args.from.as_ref())?;
    let charges = ChargesChange {
        preempted: args.preempted,
        fenced: args.fenced,
        node_lost: args.node_lost,
        failed_start: args.failed_start,
    };
    let call = match args.policy {
        Some(policy) => client.change_charge_policy(policy, &something(NewChargePolicy { from, charges })?),
        None => {
            let charges = something(charges)?;
            client.create_charge_policy(&NewChargePolicy { from, charges })
        }
    };
    session.change(call, &args.change, |put| policy(session, &put.charge_policy)).await
}

/// The number, or `built-in`, which has none.
fn number(id: Option<u32>) -> String {
    id.map_or_else(|| "built-in".into(), |id| id.to_string())
}

fn style(state: CardState) -> Style {
    match state {
        CardState::InForce => Style::Green,
        CardState::Waiting => Style::Yellow,
        CardState::Past => Style::Dim,
    }
}

fn from(from: When) -> String {
    format!("{} ({})", time_format::to_the_second(from), time_format::distance(from, time_format::now()))
}

fn cards(cards: &[RateCard]) -> Table {
    let headings = [
        ("card", Align::Right),
        ("pool", Align::Left),
        ("state", Align::Left),
        ("from", Align::Left),
        ("", Align::Left),
        ("gpu", Align::Right),
        ("cpu", Align::Right),
        ("mem", Align::Right),
        ("block", Align::Right),
        ("net", Align::Right),
        ("classes", Align::Right),
        ("tiers", Align::Right),
    ];
    let mut table = Table::new(&headings).shrink_first(&["tiers", "classes", "net", "block", "mem", "from"]);
    for card in cards {
        let (prices, plain) = (&card.prices, |text: String| (text, Style::Plain));
        table.styled([
            plain(number(card.id)),
            plain(card.pool.clone().unwrap_or_else(|| "all".into())),
            (word(card.state), style(card.state)),
            plain(or_dash(card.from.map(time_format::to_the_second))),
            plain(prices.currency.clone()),
            plain(prices.kinds.gpu.to_string()),
            plain(prices.kinds.cpu.to_string()),
            plain(prices.kinds.mem.to_string()),
            plain(prices.kinds.block.to_string()),
            plain(prices.kinds.net.to_string()),
            plain(prices.classes.len().to_string()),
            plain(prices.tiers.len().to_string()),
        ]);
    }
    table
}

/// `2 EUR per GPU-hour`.
fn in_words(price: &Price, currency: &str, unit: &str) -> String {
    let (number, period) = match price.0.split_once('/') {
        Some((number, "h")) => (number, "hour"),
        Some((number, "d")) => (number, "day"),
        Some((number, _)) => (number, "second"),
        None => (price.0.as_str(), "second"),
    };
    format!("{number} {currency} per {unit}-{period}")
}

fn one(session: &Session, card: &RateCard) -> String {
    let prices = &card.prices;
    let priced = |price: &Price, unit: &str| in_words(price, &prices.currency, unit);
    let mut details = Details::new()
        .add("rate card", number(card.id))
        .add("pool", card.pool.as_deref().unwrap_or("all pools without a card of their own"))
        .add("state", word(card.state))
        .maybe("from", card.from.map(from))
        .maybe("set", card.set_at.map(time_format::to_the_second))
        .add("gpu", priced(&prices.kinds.gpu, "GPU"))
        .add("cpu", priced(&prices.kinds.cpu, "core"))
        .add("mem", priced(&prices.kinds.mem, "GiB"))
        .add("block", priced(&prices.kinds.block, "GiB"))
        .add("net", priced(&prices.kinds.net, "Gb/s"));
    for (class, price) in &prices.classes {
        details = details.add(&format!("class {class}"), in_words(price, &prices.currency, "unit"));
    }
    for (tier, factor) in &prices.tiers {
        details = details.add(&format!("tier {tier}"), format!("× {factor}"));
    }
    let priorities = &prices.priorities;
    details
        .add("scavenger", format!("× {}", priorities.scavenger))
        .add("standard", format!("× {}", priorities.standard))
        .add("guaranteed", format!("× {}", priorities.guaranteed))
        .text(session.paint)
}

fn charge(charge: Charge) -> String {
    match charge {
        Charge::Full => "full".into(),
        Charge::None => "none".into(),
        Charge::MinusLast(span) => format!("all but the last {}", time_format::span(span.0)),
    }
}

fn policies(policies: &[ChargePolicy]) -> Table {
    let headings = ["policy", "state", "from", "preempted", "fenced", "node lost", "failed start"];
    let mut table = Table::new(&headings.map(|heading| (heading, Align::Left))).shrink_first(&["from"]);
    for policy in policies {
        let (charges, plain) = (&policy.charges, |text: String| (text, Style::Plain));
        table.styled([
            plain(number(policy.id)),
            (word(policy.state), style(policy.state)),
            plain(or_dash(policy.from.map(time_format::to_the_second))),
            plain(charge(charges.preempted)),
            plain(charge(charges.fenced)),
            plain(charge(charges.node_lost)),
            plain(charge(charges.failed_start)),
        ]);
    }
    table
}

fn policy(session: &Session, policy: &ChargePolicy) -> String {
    let charges = &policy.charges;
    Details::new()
        .add("charge policy", number(policy.id))
        .add("state", word(policy.state))
        .maybe("from", policy.from.map(from))
        .add("preempted", charge(charges.preempted))
        .add("fenced", charge(charges.fenced))
        .add("node lost", charge(charges.node_lost))
        .add("failed start", charge(charges.failed_start))
        .text(session.paint)
}
