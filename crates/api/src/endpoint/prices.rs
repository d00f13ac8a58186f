//! Rate cards and charge policies.

use super::Method::{Delete, Get, Post, Put};
use super::roles::*;
use super::schemas::*;
use super::{Endpoint, endpoint};
use crate::*;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        endpoint::<RateCardList>(
            "list_rate_cards",
            Get,
            "/api/v1/rate-cards",
            "Rate cards, the built-in one first, then by number",
            PRICE_READERS,
        )
        .query("pool", "Only of this pool: its name or number.", text)
        .page(),
        endpoint::<RateCardPut>(
            "create_rate_card",
            Post,
            "/api/v1/rate-cards",
            "Set prices from now or from a later day on; what is not named is as in the card in force",
            OPERATOR,
        )
        .body::<NewRateCard>()
        .status(201),
        endpoint::<RateCard>(
            "current_rate_card",
            Get,
            "/api/v1/rate-cards/current",
            "The card by which this second is rated",
            PRICE_READERS,
        )
        .query("pool", "In this pool: its name or number.", text),
        endpoint::<RateCard>(
            "show_rate_card",
            Get,
            "/api/v1/rate-cards/{card}",
            "One rate card, by number, or `built-in`",
            PRICE_READERS,
        ),
        endpoint::<RateCardPut>(
            "change_rate_card",
            Put,
            "/api/v1/rate-cards/{card}",
            "Change a rate card that waits: absent keeps, null clears",
            OPERATOR,
        )
        .body::<RateCardChange>(),
        endpoint::<Changed>(
            "delete_rate_card",
            Delete,
            "/api/v1/rate-cards/{card}",
            "Withdraw a rate card that waits",
            OPERATOR,
        ),
        endpoint::<ChargePolicyList>(
            "list_charge_policies",
            Get,
            "/api/v1/charge-policies",
            "What is charged for leases that end badly: the built-in policy first, then by number",
            CHARGE_READERS,
        )
        .page(),
        endpoint::<ChargePolicyPut>(
            "create_charge_policy",
            Post,
            "/api/v1/charge-policies",
            "Set what is charged from now or from a later day on; what is not named is as in the policy in force",
            OPERATOR,
        )
        .body::<NewChargePolicy>()
        .status(201),
        endpoint::<ChargePolicyPut>(
            "change_charge_policy",
            Put,
            "/api/v1/charge-policies/{policy}",
            "Change a charge policy that waits",
            OPERATOR,
        )
        .body::<NewChargePolicy>(),
    ]
}
