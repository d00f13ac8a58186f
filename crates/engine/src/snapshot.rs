//! x
#[derive(Debug)]
pub struct BadSnapshot;
