//! Budget use of a tenant, from the numbers that the queue uses.

use crate::context::{Answer, Context, json};
use crate::{names, show};
use leasehold_api::{BudgetUse, Problem, TenantUsage, When, codes, limits};
use leasehold_engine::Spending;
use leasehold_meter::Units;
use leasehold_model::Instant;

const MINUTE: u64 = 60_000_000_000;
const HOUR: u64 = 60 * MINUTE;
/// One in the fixed-point format of standings.
const ONE: i64 = 1 << 20;

pub(super) async fn tenant_usage(context: Context) -> Answer {
    let asked = context.number("days")?;
    let usage = context.app.now.read(|state| {
        let number = names::tenant(state, context.caller(), context.subject())?;
        let tenant = state.tenant(number).ok_or_else(|| show::gone_already("tenant"))?;
        let budgets = &tenant.budgets;
        let days = asked.map_or(Some(budgets.period_days), |days| u32::try_from(days).ok());
        let days = days.filter(|days| (1..=limits::USAGE_DAYS_MAX).contains(days)).ok_or_else(|| {
            codes::BAD_QUERY.problem(format!("`days` must be between 1 and {}.", limits::USAGE_DAYS_MAX))
        })?;
        let now = context.app.time().max(state.last_stamp());
        let used = state.spending(number, now, days).ok_or_else(|| show::gone_already("tenant"))?;
        let standing = state.standing(number, now);
        Ok::<_, Problem>(TenantUsage {
            tenant: tenant.settings.name.to_string(),
            tenant_id: number.0,
            days,
            from: When(Instant((now.0 / HOUR).saturating_sub(u64::from(days) * 24) * HOUR)),
            to: When(Instant(now.0 / MINUTE * MINUTE)),
            gpu_hours: budget_use(used.gpu, budgets.gpu_hours)?,
            node_hours: budget_use(used.node, budgets.node_hours)?,
            burst_allowance: budgets.burst_allowance,
            budget_period_days: budgets.period_days,
            factor: millionths(i64::from(standing.factor)),
            fair_share_target: budgets.fair_share.map(show::fair_share),
            fair_share_deficit: millionths(standing.deficit),
        })
    });
    json(200, &usage?)
}

/// `used` is in 2^-20ths of a GPU or a node, times nanoseconds.
fn budget_use(used: u128, budget: Option<u64>) -> Result<BudgetUse, Problem> {
    const PARTS: u64 = 3600 << 20;
    let overflow = |_| codes::OVERFLOW.problem("The number does not fit into 256 bits.");
    let hours = Units::of(used, PARTS);
    let (numerator, denominator) = hours.fraction().map_err(overflow)?;
    let fraction = |hours: &u64| {
        let whole = Spending::HOUR.checked_mul(u128::from(*hours)).filter(|whole| *whole > 0)?;
        Some(decimal(used.checked_mul(MILLION)? / whole))
    };
    Ok(BudgetUse {
        used: hours.decimal(9).map_err(overflow)?,
        exact: format!("{numerator}/{denominator}"),
        budget,
        fraction: budget.as_ref().and_then(fraction),
    })
}

const MILLION: u128 = 1_000_000;

fn decimal(millionths: u128) -> String {
    format!("{}.{:06}", millionths / MILLION, millionths % MILLION)
}

fn millionths(fixed: i64) -> String {
    // A fixed-point number is rounded down, so that it stands for what lies half a step above it; the least factor, 1/20,
    // lies between two of them.
    let one = u128::from(ONE.unsigned_abs());
    let shown = decimal(((2 * u128::from(fixed.unsigned_abs()) + 1) * MILLION + one) / (2 * one));
    if fixed < 0 { format!("-{shown}") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_exact_and_a_budget_has_its_fraction() {
        let used = budget_use(Spending::HOUR * 3 / 2, Some(100)).expect("it fits");
        assert_eq!((used.used.as_str(), used.exact.as_str()), ("1.500000000", "3/2"));
        assert_eq!(used.fraction.as_deref(), Some("0.015000"));
        assert_eq!(budget_use(0, None).expect("it fits").fraction, None);
        assert_eq!(millionths(-(ONE / 4)), "-0.250000");
        assert_eq!(millionths(ONE / 20), "0.050000");
        assert_eq!([millionths(0), millionths(ONE), millionths(ONE / 2)], ["0.000000", "1.000000", "0.500000"]);
    }
}
