//! Random maintenance windows.

use crate::requests::{name, small};
use leasehold_engine::command::ReserveNodes;
use leasehold_engine::{Command, State};
use leasehold_model::{Instant, NodeNo, WindowNo};
use leasehold_oracle::Dice;

/// A command about windows instead of another one, at times. It is drawn from a die of its own: another draw would change
/// what every kept seed does.
pub(crate) fn instead(state: &State, now: Instant) -> Option<Command> {
    let mut dice = Dice::new(now.0 ^ state.size() << 20);
    if !dice.one_in(40) {
        return None;
    }
    let windows: Vec<WindowNo> = state.windows().map(|window| window.number).collect();
    if dice.one_in(4) && !windows.is_empty() {
        let window = if dice.one_in(10) { WindowNo(small(&mut dice, 9)) } else { *dice.pick(&windows) };
        return Some(Command::UnreserveNodes(window));
    }
    let nodes = (0..1 + dice.below(3)).map(|_| NodeNo(small(&mut dice, 5))).collect();
    let soon = |dice: &mut Dice, from: Instant| {
        let later = Instant(from.0 + dice.below(150) * 1_000_000_000);
        if dice.one_in(12) { Instant(from.0.saturating_sub(dice.below(3))) } else { later }
    };
    let from = (!dice.one_in(4)).then(|| soon(&mut dice, now));
    let until = soon(&mut dice, from.unwrap_or(now));
    let reason = dice.one_in(2).then(|| name("firmware"));
    Some(Command::ReserveNodes(ReserveNodes { nodes, from, until, reason }))
}
