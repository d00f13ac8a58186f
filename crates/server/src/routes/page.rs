//! Pages of numbered items.

use crate::context::{Context, cursor_after};
use leasehold_api::Problem;

/// The items of one page, and the cursor of the next. `items` must be in order of their numbers.
pub(super) fn page<T>(
    context: &Context,
    items: impl Iterator<Item = (u64, T)>,
) -> Result<(Vec<T>, Option<String>), Problem> {
    let (after, limit) = (context.cursor()?, context.limit()?);
    let mut left = items.filter(|(number, _)| after.is_none_or(|after| *number > after));
    let mut shown = Vec::new();
    let mut last = 0;
    for (number, item) in left.by_ref().take(limit) {
        last = number;
        shown.push(item);
    }
    Ok((shown, left.next().map(|_| cursor_after(last))))
}
