//! Random commands about cost ceilings: low enough that a few leases reach them.

use crate::requests::small;
use leasehold_engine::command::{DeleteCeiling, PutCeiling};
use leasehold_engine::{Command, State};
use leasehold_model::limits::CEILING_AMOUNT_MAX;
use leasehold_model::rate::Currency;
use leasehold_model::{Amount, AppInstanceNo, CeilingMode, Instant, ProjectNo};
use leasehold_oracle::Dice;

/// One of a few app instances, so that requests and ceilings match.
pub(crate) fn some_app(dice: &mut Dice) -> Option<AppInstanceNo> {
    dice.one_in(3).then(|| AppInstanceNo(dice.below(2)))
}

/// At times a ceiling on a project that pays for claimed nodes. From a die of
/// its own: another draw would change what every kept seed does.
pub(crate) fn instead(state: &State, now: Instant) -> Option<Command> {
    let mut dice = Dice::new(now.0 << 9 ^ state.size() << 17);
    let claims: Vec<ProjectNo> = state.nodes().filter_map(|node| Some(node.custody.claim()?.project)).collect();
    if claims.is_empty() || !dice.one_in(40) {
        return None;
    }
    let (project, amount) = (*dice.pick(&claims), Amount(u128::from(1 + dice.below(60_000_000_000))));
    let mode = if dice.one_in(6) { CeilingMode::Soft } else { CeilingMode::Hard };
    Some(Command::PutCeiling(PutCeiling { project, app_instance: None, amount, currency: Currency::DEFAULT, mode }))
}

pub(crate) fn any(state: &State, dice: &mut Dice) -> Command {
    let known: Vec<_> = state.ceilings().collect();
    let drawn = (ProjectNo(small(dice, 8)), some_app(dice));
    // Often an existing ceiling: it is raised, lowered or deleted.
    let (project, app_instance) = match known.len() {
        n if n > 0 && dice.one_in(2) => {
            let scope = known[dice.index(n)].scope;
            (scope.project, scope.app_instance)
        }
        _ => drawn,
    };
    if dice.one_in(5) {
        return Command::DeleteCeiling(DeleteCeiling { project, app_instance });
    }
    let amount = match dice.below(16) {
        0 => Amount::ZERO,
        1 => Amount(CEILING_AMOUNT_MAX.0 + u128::from(dice.below(2))),
        2..6 => Amount(u128::from(dice.below(2_000_000_000))),
        _ => Amount(u128::from(dice.below(60_000_000_000))),
    };
    let currency = Currency::new(if dice.one_in(6) { "CHF" } else { "EUR" }).expect("three letters");
    let mode = if dice.one_in(4) { CeilingMode::Soft } else { CeilingMode::Hard };
    Command::PutCeiling(PutCeiling { project, app_instance, amount, currency, mode })
}
