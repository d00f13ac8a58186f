//! Fields of a change: each is kept, set or cleared.

use crate::problem::Problem;
use clap::ValueEnum;
use leasehold_api::Patch;

/// A field that may be set or cleared, but not both.
pub(super) fn patch<T, F: ValueEnum + PartialEq>(set: Option<T>, cleared: &[F], field: F) -> Result<Patch<T>, Problem> {
    match (set, cleared.contains(&field)) {
        (Some(_), true) => {
            let name = field.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
            Err(Problem::usage("usage", format!("--{name} and --clear {name} cannot be combined"))
                .advice("choose one of them"))
        }
        (Some(value), false) => Ok(Patch::Set(value)),
        (None, true) => Ok(Patch::Clear),
        (None, false) => Ok(Patch::Keep),
    }
}

/// Refuses a change that changes nothing.
pub(super) fn something<T: Default + PartialEq>(change: T) -> Result<T, Problem> {
    if change == T::default() {
        return Err(Problem::usage("usage", "nothing to change").advice("give at least one option; see --help"));
    }
    Ok(change)
}
