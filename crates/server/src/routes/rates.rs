//! Rate cards and charge policies.

use super::capacity::optional_pool;
use super::page::page;
use super::tenancy::changed;
use crate::context::{Answer, Context, json};
use crate::prices::{charges_over, prices_over};
use crate::{names, show_rates};
use leasehold_api::{
    ChargePolicyList, ChargePolicyPut, NewChargePolicy, NewRateCard, Problem, RateCardChange, RateCardList, RateCardPut,
};
use leasehold_engine::command::{PutChargePolicy, PutRateCard};
use leasehold_engine::{Command, State};
use leasehold_model::{Body, Instant};

/// The instant that decides what is in force: records may be stamped slightly ahead of the clock.
pub(super) fn now(context: &Context, state: &State) -> Instant {
    context.app.time().max(state.last_stamp())
}

/// The built-in card or policy comes before those with a number.
const BUILT_IN: u64 = 0;

fn place(number: u32) -> u64 {
    u64::from(number) + 1
}

pub(super) async fn list_rate_cards(context: Context) -> Answer {
    let listed = context.app.now.read(|state| {
        let (now, pool) = (now(&context, state), optional_pool(state, context.query("pool"))?);
        let built_in = pool.is_none().then(|| (BUILT_IN, show_rates::built_in_card(state, now)));
        let cards = state.rate_cards().filter(|card| pool.is_none() || card.pool == pool);
        let cards = cards.map(|card| (place(card.number), show_rates::card(state, card, now)));
        page(&context, built_in.into_iter().chain(cards))
    });
    let (rate_cards, next_cursor) = listed?;
    json(200, &RateCardList { rate_cards, next_cursor })
}

pub(super) async fn current_rate_card(context: Context) -> Answer {
    let card = context.app.now.read(|state| {
        let (now, pool) = (now(&context, state), optional_pool(state, context.query("pool"))?);
        Ok::<_, Problem>(match state.rate_card_at(pool, now) {
            Some(card) => show_rates::card(state, card, now),
            None => show_rates::built_in_card(state, now),
        })
    });
    json(200, &card?)
}

pub(super) async fn show_rate_card(context: Context) -> Answer {
    let card = context.app.now.read(|state| {
        let now = now(&context, state);
        if context.subject() == "built-in" {
            return Ok(show_rates::built_in_card(state, now));
        }
        names::rate_card(state, context.subject()).map(|card| show_rates::card(state, card, now))
    });
    json(200, &card?)
}

async fn put_card(context: &Context, status: u16, put: PutRateCard) -> Answer {
    let sealed = context.seal(Command::PutRateCard(put)).await?;
    let Body::RateCardPut(put) = &sealed.first().body else { unreachable!("a rate card was put") };
    let stamp = sealed.first().stamp;
    let rate_card = context.app.now.read(|state| show_rates::card_as_put(state, put, stamp, now(context, state)));
    json(status, &RateCardPut { sequence: sealed.sequence(), rate_card })
}

pub(super) async fn create_rate_card(context: Context) -> Answer {
    let new: NewRateCard = context.body()?;
    let put = context.app.now.read(|state| {
        let pool = optional_pool(state, new.pool.as_deref())?;
        let prices = prices_over(state, state.prices_at(pool, now(&context, state)), &new.prices)?;
        Ok::<_, Problem>(PutRateCard { card: None, pool, from: new.from.map(|from| from.0), prices })
    })?;
    put_card(&context, 201, put).await
}

pub(super) async fn change_rate_card(context: Context) -> Answer {
    let change: RateCardChange = context.body()?;
    let put = context.app.now.read(|state| {
        let old = names::rate_card(state, context.subject())?;
        let pool = change.pool.try_map(|text| names::pool(state, &text))?.over(old.pool);
        let prices = prices_over(state, &old.prices, &change.prices)?;
        let from = Some(change.from.map_or(old.from, |from| from.0));
        Ok::<_, Problem>(PutRateCard { card: Some(old.number), pool, from, prices })
    })?;
    put_card(&context, 200, put).await
}

pub(super) async fn delete_rate_card(context: Context) -> Answer {
    let card = context.app.now.read(|state| names::rate_card(state, context.subject()).map(|card| card.number));
    changed(&context, card.map(Command::DeleteRateCard)).await
}

pub(super) async fn list_charge_policies(context: Context) -> Answer {
    let listed = context.app.now.read(|state| {
        let now = now(&context, state);
        let built_in = (BUILT_IN, show_rates::built_in_policy(state, now));
        let policies = state.charge_policies();
        let policies = policies.map(|policy| (place(policy.number), show_rates::policy(state, policy, now)));
        page(&context, std::iter::once(built_in).chain(policies))
    });
    let (charge_policies, next_cursor) = listed?;
    json(200, &ChargePolicyList { charge_policies, next_cursor })
}

async fn put_policy(context: &Context, status: u16, put: PutChargePolicy) -> Answer {
    let sealed = context.seal(Command::PutChargePolicy(put)).await?;
    let Body::ChargePolicyPut(put) = &sealed.first().body else { unreachable!("a charge policy was put") };
    let stamp = sealed.first().stamp;
    let charge_policy = context.app.now.read(|state| show_rates::policy_as_put(state, put, stamp, now(context, state)));
    json(status, &ChargePolicyPut { sequence: sealed.sequence(), charge_policy })
}

pub(super) async fn create_charge_policy(context: Context) -> Answer {
    let new: NewChargePolicy = context.body()?;
    let charges = context.app.now.read(|state| charges_over(state.charges_at(now(&context, state)), &new.charges));
    put_policy(&context, 201, PutChargePolicy { policy: None, from: new.from.map(|from| from.0), charges }).await
}

pub(super) async fn change_charge_policy(context: Context) -> Answer {
    let change: NewChargePolicy = context.body()?;
    let put = context.app.now.read(|state| {
        let old = names::charge_policy(state, context.subject())?;
        let from = Some(change.from.map_or(old.from, |from| from.0));
        let charges = charges_over(&old.charges, &change.charges);
        Ok::<_, Problem>(PutChargePolicy { policy: Some(old.number), from, charges })
    })?;
    put_policy(&context, 200, put).await
}
