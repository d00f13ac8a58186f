//! Commands about rate cards and charge policies. The cost of the past never changes: a card begins now or later, and
//! once it has begun it can only be followed by another one (SEMANTICS 7).

use super::Draft;
use super::inventory::number;
use crate::command::{PutChargePolicy, PutRateCard};
use crate::refusal::Refusal;
use leasehold_model::body::{ChargePolicyPut, RateCardDeleted, RateCardPut};
use leasehold_model::limits::{CARDS_WAITING_MAX, TTL_MAX};
use leasehold_model::rate::Charge;
use leasehold_model::{Instant, Span};

impl Draft<'_> {
    pub(super) fn put_rate_card(&mut self, put: &PutRateCard) -> Result<(), Refusal> {
        let (state, now) = (self.state(), self.now);
        put.prices.check().map_err(|why| Refusal::BadPrices { why })?;
        if let Some((class, _)) = put.prices.classes.iter().find(|(class, _)| state.class(*class).is_none()) {
            return Err(Refusal::UnknownClass { class: *class });
        }
        if let Some(pool) = put.pool.filter(|pool| state.pool(*pool).is_none()) {
            return Err(Refusal::UnknownPool { pool });
        }
        if let Some(card) = put.card {
            self.waiting_card(card)?;
        }
        let card = number(put.card, state.rate_cards.len())?;
        let from = starts(put.from, now)?;
        if let Some(other) = state.card_twin(card, put.pool, from) {
            return Err(Refusal::SameStart { what: "rate card", number: other });
        }
        let others = state.rate_cards().filter(|other| other.number != card && !other.has_begun(now)).count();
        may_wait(from, now, others)?;
        self.plain(RateCardPut { card, pool: put.pool, from, prices: put.prices.clone() });
        Ok(())
    }

    pub(super) fn delete_rate_card(&mut self, card: u32) -> Result<(), Refusal> {
        self.waiting_card(card)?;
        self.plain(RateCardDeleted { card });
        Ok(())
    }

    fn waiting_card(&self, card: u32) -> Result<(), Refusal> {
        let found = self.state().rate_card(card).ok_or(Refusal::UnknownRateCard { card })?;
        if found.has_begun(self.now) {
            return Err(Refusal::RateCardInForce { card, from: found.from });
        }
        Ok(())
    }

    pub(super) fn put_charge_policy(&mut self, put: &PutChargePolicy) -> Result<(), Refusal> {
        let (state, now) = (self.state(), self.now);
        for (setting, charge) in put.charges.each() {
            if let Charge::MinusLast(span) = charge
                && !(Span(1)..=TTL_MAX).contains(&span)
            {
                return Err(Refusal::SettingOutOfRange { setting, min: Span(1), max: TTL_MAX });
            }
        }
        if let Some(policy) = put.policy {
            let found = state.charge_policy(policy).ok_or(Refusal::UnknownChargePolicy { policy })?;
            if found.has_begun(now) {
                return Err(Refusal::ChargePolicyInForce { policy, from: found.from });
            }
        }
        let policy = number(put.policy, state.charge_policies.len())?;
        let from = starts(put.from, now)?;
        if let Some(other) = state.policy_twin(policy, from) {
            return Err(Refusal::SameStart { what: "charge policy", number: other });
        }
        let others = state.charge_policies().filter(|other| other.number != policy && !other.has_begun(now)).count();
        may_wait(from, now, others)?;
        self.plain(ChargePolicyPut { policy, from, charges: put.charges.clone() });
        Ok(())
    }
}

/// The start of a card or policy: the given instant, or now if there is none.
pub(super) fn starts(from: Option<Instant>, now: Instant) -> Result<Instant, Refusal> {
    match from {
        Some(from) if from < now => Err(Refusal::StartInPast { now }),
        from => Ok(from.unwrap_or(now)),
    }
}

pub(super) fn may_wait(from: Instant, now: Instant, others: usize) -> Result<(), Refusal> {
    if from > now && others >= CARDS_WAITING_MAX {
        return Err(Refusal::TooManyCardsWaiting { limit: CARDS_WAITING_MAX });
    }
    Ok(())
}
