//! What the tests stand on: a world that is checked after every step, stories written as text,
//! and records told back as text.

mod apps;
mod custody;
pub(crate) mod invariants;
mod line;
mod pending;
mod prepaid;
mod prices;
mod random_scope;
mod script;
mod sharing;
mod sinks;
mod tell;
mod usage;
mod values;
mod world;

pub(crate) use apps::{lines, with_instances};
pub(crate) use random_scope::quota_scope;
pub(crate) use script::{STAGE, Story, check, check_on};
pub(crate) use world::{World, name};
