//! The query parameters of reports on usage and cost.

use crate::call::{Answer, Call};
use leasehold_api::{Kind, Priority, When};

/// The window, the filters and the grouping of a report. A filter that is not set matches everything; without `from` the
/// window is the month so far.
///
/// An endpoint refuses parameters that it does not support: a forecast has no window, and only usage has peaks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookQuery {
    pub from: Option<When>,
    pub to: Option<When>,
    pub tenant: Option<String>,
    pub project: Option<String>,
    pub user: Option<String>,
    pub pool: Option<String>,
    pub node: Option<String>,
    pub class: Option<String>,
    pub kind: Option<Kind>,
    pub tier: Option<String>,
    pub priority: Option<Priority>,
    pub tag: Option<String>,
    pub allocation: Option<u64>,
    pub app_instance: Option<String>,
    pub workload: Option<String>,
    /// Only control planes of app instances, or only workloads.
    pub control_plane: Option<bool>,
    /// Group by these words of the API: `tenant`, `class`, `app_instance`.
    pub by: Vec<String>,
    /// `minute`, `hour`, `day` or `month`.
    pub bucket: Option<String>,
    /// An IANA time zone, in which days and months begin.
    pub time_zone: Option<String>,
    pub peak: bool,
    pub utilisation: bool,
}

impl<A: Answer> Call<A> {
    /// Sets the query parameters of a report.
    pub fn asking(self, asked: &BookQuery) -> Self {
        self.maybe("from", asked.from)
            .maybe("to", asked.to)
            .maybe("tenant", asked.tenant.as_ref())
            .maybe("project", asked.project.as_ref())
            .maybe("user", asked.user.as_ref())
            .maybe("pool", asked.pool.as_ref())
            .maybe("node", asked.node.as_ref())
            .maybe("class", asked.class.as_ref())
            .maybe("kind", asked.kind)
            .maybe("tier", asked.tier.as_ref())
            .maybe("priority", asked.priority)
            .maybe("tag", asked.tag.as_ref())
            .maybe("allocation", asked.allocation)
            .maybe("app_instance", asked.app_instance.as_ref())
            .maybe("workload", asked.workload.as_ref())
            .maybe("control_plane", asked.control_plane)
            .maybe("by", (!asked.by.is_empty()).then(|| asked.by.join(",")))
            .maybe("bucket", asked.bucket.as_ref())
            .maybe("time_zone", asked.time_zone.as_ref())
            .maybe("peak", asked.peak.then_some("true"))
            .maybe("utilisation", asked.utilisation.then_some("true"))
    }
}
