//! Fields of a change: what is not named stays, what is cleared goes.

use crate::problem::Problem;
use clap::ValueEnum;
use leasehold_api::Patch;

/// A field that may be set or cleared, not both.
pub(super) fn patch<T, F: ValueEnum + PartialEq>(set: Option<T>, cleared: &[F], field: F) -> Result<Patch<T>, Problem> {
    match (set, cleared.contains(&field)) {
        (Some(_), true) => {
            let name = field.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
            Err(Problem::usage("usage", format!("--{name} is set and cleared at once")).advice("choose one"))
        }
        (Some(value), false) => Ok(Patch::Set(value)),
        (None, true) => Ok(Patch::Clear),
        (None, false) => Ok(Patch::Keep),
    }
}

/// A change that changes nothing is a mistake.
pub(super) fn something<T: Default + PartialEq>(change: T) -> Result<T, Problem> {
    if change == T::default() {
        return Err(Problem::usage("usage", "nothing is to be changed").advice("name what to set; --help lists it"));
    }
    Ok(change)
}
