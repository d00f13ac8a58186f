//! The simulator's cluster and requests, for tests that drive an engine of their own.

use crate::{apps, prepaid, requests, sharing, usage};
use leasehold_engine::command::TopUp;
use leasehold_engine::{Command, Request, State};
use leasehold_model::{Instant, Record};
use leasehold_oracle::Dice;

/// The commands that create a small cluster.
pub fn world(dice: &mut Dice) -> Vec<Command> {
    requests::world(dice)
}

/// The commands that register the first runtimes, each by the state before it. Some are left out.
pub fn founding(state: &State, step: u64) -> Option<Command> {
    apps::founding(state, step)
}

/// How many of those there are.
pub const FOUNDING: u64 = apps::FOUNDING;

/// Something about app runtimes and what is lent to them, at times.
pub fn about_apps(state: &State, now: Instant) -> Option<Request> {
    apps::any(state, now).map(|(identity, command)| Request::new(identity, command))
}

/// A policy that shares the cost of control planes, often.
pub fn about_sharing(state: &State, records: &[Record], now: Instant) -> Option<Request> {
    let drawn = sharing::any(state, records, now, true);
    let policy = drawn.filter(|(_, command)| matches!(command, Command::PutSharing(_)));
    policy.map(|(identity, command)| Request::new(identity, command))
}

/// A usage record of a runtime, or a price, at times, as sent by a server whose books have these records or fewer.
pub fn about_usage(state: &State, records: &[Record], now: Instant) -> Option<Request> {
    usage::any(state, records, now).map(|(identity, command)| Request::new(identity, command))
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
