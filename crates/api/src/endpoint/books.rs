//! What can be asked of the books.

use super::Method::Get;
use super::roles::*;
use super::schemas::*;
use super::{Endpoint, endpoint};
use crate::*;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        endpoint::<UsageReport>("usage", Get, "/api/v1/usage", "What was held, by whom, exactly", BOOK_READERS)
            .of_books()
            .grouped()
            .bucketed()
            .query("peak", "Whether to tell the most that was held at once.", flag),
        endpoint::<CapacityReport>(
            "capacity",
            Get,
            "/api/v1/usage/capacity",
            "Where the cluster's capacity was: held, tearing down, reserved, fenced, offline or idle",
            READERS,
        )
        .query("from", "The first instant; the month's first if absent.", instant)
        .query("to", "The first instant after it; now if absent.", instant)
        .query("by", "Told apart by pool or node, beside class.", capacity_grouping)
        .query("pool", "Only in this pool: its name or number.", text)
        .query("node", "Only on this node: its name or number.", text)
        .query("class", "Only of this class: its name or number.", text),
        endpoint::<CostReport>(
            "costs",
            Get,
            "/api/v1/costs",
            "What it cost, by the prices of each second",
            BOOK_READERS,
        )
        .of_books()
        .grouped()
        .bucketed(),
        endpoint::<CostRate>(
            "cost_rate",
            Get,
            "/api/v1/costs/rate",
            "What the leases that are held now cost in an hour",
            BOOK_READERS,
        )
        .of_books()
        .grouped(),
        endpoint::<Forecast>(
            "forecast",
            Get,
            "/api/v1/costs/forecast",
            "What the month will have cost: up to now, to the deadlines, and to its end",
            BOOK_READERS,
        )
        .of_books()
        .query("zone", "The IANA time zone in which the month begins; UTC if absent.", text),
        endpoint::<WasteReport>(
            "waste",
            Get,
            "/api/v1/waste",
            "What was held and not used, what was idle, and what is in pieces",
            BOOK_READERS,
        )
        .of_books()
        .query("by", "How leases are summed up; by class if absent.", waste_grouping)
        .query("headline", "Only leases of this headline.", waste_class)
        .query("limit", "How many leases to name at most.", page_limit),
        endpoint::<SensitivityReport>(
            "sensitivity",
            Get,
            "/api/v1/sensitivity",
            "What workloads depend on, by their share of the cost and by what they wait for",
            BOOK_READERS,
        )
        .of_books(),
    ]
}
