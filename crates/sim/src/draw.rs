//! The simulator's cluster and requests, for tests that drive an engine of their own.

use crate::{prepaid, requests};
use leasehold_engine::command::TopUp;
use leasehold_engine::{Command, Request, State};
use leasehold_model::Instant;
use leasehold_oracle::Dice;

/// The commands that create a small cluster.
pub fn world(dice: &mut Dice) -> Vec<Command> {
    requests::world(dice)
}

/// A request without an idempotency key: mostly valid, sometimes invalid.
pub fn request(state: &State, now: Instant, dice: &mut Dice) -> Request {
    let (identity, command, _) = requests::any(state, now, dice);
    Request::new(identity, command)
}

/// Something about prepaid credit, at times; `before` is the last credit that was asked for.
pub fn about_prepaid(state: &State, before: &mut Option<TopUp>, now: Instant) -> Option<Command> {
    prepaid::any(state, before, now)
}
