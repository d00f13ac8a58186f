//! A state together with the placement index over its nodes: what placing, quoting and explaining look at.

use crate::placement::Placement;
use crate::state::State;
use std::ops::Deref;

/// Looks, and changes nothing. Made by whoever keeps a placement index: [`crate::Engine::view`], [`crate::Readers::view`],
/// or [`Placement::of`] for a state that nobody follows.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub(crate) state: &'a State,
    pub(crate) placement: &'a Placement,
}

impl Deref for View<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        self.state
    }
}
