//! Proofs over the journal's tree, without hashing all of it for each.

/// What is kept between proofs.
#[derive(Default)]
pub(crate) struct Proofs {}
