//! A state together with the placement index over its nodes, as placing, quoting and explaining need it.

use crate::placement::Placement;
use crate::state::State;
use std::ops::Deref;

/// A read-only view, from [`crate::Engine::view`] or [`crate::Readers::view`], or from an index that [`Placement::of`]
/// builds for a single state.
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
