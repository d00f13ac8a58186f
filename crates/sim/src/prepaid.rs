//! Random commands about prepaid credit: so little that a few leases use it up, with policies of every kind. They are
//! drawn from dice of their own: other draws would change what every kept seed does.

use crate::requests::{name, small};
use leasehold_cell::{Reply, Unsealed};
use leasehold_engine::command::{EndCredit, PutPrepaidPolicy, TopUp};
use leasehold_engine::{Command, Refusal, State};
use leasehold_model::limits::{PREPAID_AMOUNT_MAX, PREPAID_WINDOW_MAX};
use leasehold_model::rate::Currency;
use leasehold_model::{
    Body, CreditSource, Funds, Instant, PrepaidAction, PrepaidPolicy, ProjectNo, Span, Steps, TenantNo,
};
use leasehold_oracle::{Caller, Dice, Oracle, Wish};

const SECOND: u64 = 1_000_000_000;

/// Something about prepaid credit, at times: sometimes the same credit as before, so that nothing is added twice.
pub(crate) fn any(state: &State, before: &mut Option<TopUp>, now: Instant) -> Option<Command> {
    let mut dice = Dice::new(now.0 << 11 ^ state.size() << 13);
    if !dice.one_in(4) {
        return None;
    }
    if let Some(command) = of_lender(state, now, &mut dice) {
        return Some(command);
    }
    let (tenant, project) = owner(state, &mut dice);
    let currency = Currency::new(["EUR", "EUR", "EUR", "EUR", "CHF", "JPY"][dice.index(6)]).expect("three letters");
    Some(match dice.below(11) {
        0..6 => {
            let put = top_up(tenant, project, currency, now, &mut dice);
            *before = Some(put.clone());
            Command::TopUp(put)
        }
        6..9 => {
            let policy = policy(&mut dice);
            Command::PutPrepaidPolicy(PutPrepaidPolicy { tenant, project, currency, policy })
        }
        9 => Command::EndCredit(EndCredit { tenant, project, currency, credit: dice.below(5) }),
        _ => {
            let mut again = before.clone()?;
            again.amount.0 += i128::from(dice.one_in(3));
            Command::TopUp(again)
        }
    })
}

/// Often little credit, or a strict policy, for a project that pays for work of another one.
fn of_lender(state: &State, now: Instant, dice: &mut Dice) -> Option<Command> {
    let lent = state.allocations_after(None).filter_map(|found| Some((found.tenant, found.spec.source_project?)));
    let lent: Vec<(TenantNo, ProjectNo)> = lent.collect();
    if lent.is_empty() || dice.one_in(2) {
        return None;
    }
    let (tenant, payer) = *dice.pick(&lent);
    let (project, currency) = ((!dice.one_in(4)).then_some(payer), Currency::DEFAULT);
    if dice.one_in(2) {
        let amount = Steps(1 + i128::from(dice.below(3_000_000)));
        return Some(Command::TopUp(TopUp { amount, ..top_up(tenant, project, currency, now, dice) }));
    }
    let action = *dice.pick(&[PrepaidAction::Drain, PrepaidAction::Drain, PrepaidAction::Downgrade]);
    let strict = PrepaidPolicy { window: Span::from_secs(300), low: action, pending: action, ..policy(dice) };
    Some(Command::PutPrepaidPolicy(PutPrepaidPolicy { tenant, project, currency, policy: strict }))
}

/// A tenant or one of its projects, often one that lends; sometimes one that is not.
fn owner(state: &State, dice: &mut Dice) -> (TenantNo, Option<ProjectNo>) {
    let projects: Vec<_> = state.projects().map(|(number, project)| (project.tenant, number)).collect();
    if projects.is_empty() || dice.one_in(30) {
        return (TenantNo(small(dice, 4)), dice.one_in(2).then(|| ProjectNo(small(dice, 8))));
    }
    let lent: Vec<_> = state.attachments_after(None).map(|lent| (lent.tenant, lent.source_project)).collect();
    if !lent.is_empty() && dice.one_in(2) {
        let (tenant, project) = *dice.pick(&lent);
        return (tenant, (!dice.one_in(3)).then_some(project));
    }
    let (tenant, project) = *dice.pick(&projects);
    (tenant, dice.one_in(3).then_some(project))
}

fn top_up(tenant: TenantNo, project: Option<ProjectNo>, currency: Currency, now: Instant, dice: &mut Dice) -> TopUp {
    let amount = match dice.below(20) {
        0 => Steps(-i128::from(dice.below(2))),
        1 if dice.one_in(4) => Steps(PREPAID_AMOUNT_MAX.0 + i128::from(dice.below(2))),
        1..8 => Steps(1 + i128::from(dice.below(500_000))),
        8..12 => Steps(1 + i128::from(dice.below(9_000_000))),
        // So much that it pays whole invoices.
        12..16 => Steps(1 + i128::from(dice.below(4_000_000_000))),
        _ => Steps(1 + i128::from(dice.below(60_000_000))),
    };
    let expires_at = match dice.below(8) {
        0..4 => None,
        4 if dice.one_in(3) => Some(Instant(now.0.saturating_sub(dice.below(SECOND)))),
        4 => Some(Instant((now.0 / (60 * SECOND) + 1 + dice.below(4)) * 60 * SECOND)),
        5 => Some(Instant(now.0 + 1 + dice.below(120 * SECOND))),
        _ => Some(Instant(now.0 + 1 + dice.below(3000 * SECOND))),
    };
    TopUp {
        tenant,
        project,
        currency,
        amount,
        priority: small(dice, 3),
        expires_at,
        source: *dice.pick(CreditSource::ALL),
        reference: name(&format!("credit {}", dice.below(60))),
    }
}

fn policy(dice: &mut Dice) -> PrepaidPolicy {
    let low_below = match dice.below(12) {
        0 => Steps(-1),
        1 => Steps(PREPAID_AMOUNT_MAX.0 + 1),
        2..5 => Steps::ZERO,
        _ => Steps(i128::from(dice.below(12_000_000))),
    };
    let window = match dice.below(12) {
        0 => Span(PREPAID_WINDOW_MAX.0 + 1),
        1..5 => Span::ZERO,
        _ => Span::from_secs(1 + dice.below(600)),
    };
    let mut action = || *dice.pick(PrepaidAction::ALL);
    let (low, pending, depleted) = (action(), action(), action());
    let grace = dice.one_in(2).then(|| Span::from_secs(dice.below(40)));
    PrepaidPolicy { low_below, window, low, pending, depleted, grace }
}

/// Whether a record says that a command has changed the state of prepaid credit. The oracle checks it and what follows.
pub(crate) fn is_change(body: &Body) -> bool {
    matches!(body, Body::PrepaidChanged(_))
}

/// Checks the figures of a refusal for which there is not enough prepaid credit. A renewal of several leases is refused
/// with the figures of one of them. Returns the code of the refusal, if it was checked.
pub(crate) fn check_refusal(
    oracle: &Oracle,
    (caller, wish, is_single_renewal): (&Caller, &Wish, bool),
    reply: &Reply,
    now: Instant,
) -> Result<Option<&'static str>, String> {
    let Err(Unsealed::Refused(refusal)) = reply else { return Ok(None) };
    if let Refusal::PrepaidExhausted { lease, requested, available, currency } = refusal
        && is_single_renewal
    {
        let left = oracle.credit_against(*lease, *currency, now);
        if left != Some(*available) || Funds::from(*requested) <= *available {
            return Err(format!("there is credit for {lease}: {left:?}, {refusal:?}"));
        }
        return Ok(Some("prepaid_exhausted"));
    }
    if let Refusal::ClaimNotCovered { requested, available, currency } = refusal
        && let (Wish::ClaimNodes { nodes, until: Some(until), .. }, Some(project)) = (wish, caller.project)
    {
        let short = oracle.credit_against_claim(project, (nodes, *until), now);
        if short != Some((*requested, *available, *currency)) {
            return Err(format!("{short:?} stands against {wish:?}: {refusal:?}"));
        }
    }
    Ok(None)
}
