//! Says that capacity is reserved, where a request is denied because of that.

use leasehold_api::Problem;
use leasehold_engine::{Node, State};
use leasehold_model::body::Denied;
use leasehold_model::{DenyCause, quantity};

/// Replaces the detail of a capacity denial if the request would fit without what is reserved for others.
pub(crate) fn explain_reserved(state: &State, denied: &Denied, problem: Problem) -> Problem {
    let DenyCause::Capacity { class, requested, most_free } = denied.cause else { return problem };
    let asked = &denied.particulars;
    let may_use = |node: &&Node| {
        node.is_available()
            && denied.pool.is_none_or(|pool| pool == node.pool)
            && asked.node.is_none_or(|named| named == node.number)
            && asked.labels.iter().all(|label| node.labels.contains(label))
    };
    let on = |node: &Node| {
        let found = node.class(class)?;
        (found.reserved > 0 && found.free() + found.reserved >= requested.0).then_some(found.reserved)
    };
    let reserved = state.nodes().filter(may_use).filter_map(on).max();
    let (Some(reserved), Some(spec)) = (reserved.filter(|_| most_free < requested), state.class(class)) else {
        return problem;
    };
    let amount = quantity::display(leasehold_model::Quanta(reserved), spec);
    let (unit, are) = (spec.kind.unit(), if amount == "1" { "is" } else { "are" });
    let wanted = quantity::display(requested, spec);
    let most = quantity::display(most_free, spec);
    let detail = format!(
        "No node has {wanted} of {} available: {amount} {unit} {are} reserved for a higher-ranked allocation. The most \
         on one node is {most}.",
        spec.name
    );
    Problem { detail, ..problem }.with("reserved", amount)
}
