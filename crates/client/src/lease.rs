//! A lease guard: renews the lease in the background, watches for a revocation, and releases the lease at the end.

mod keeper;
mod watch;

use crate::client::Client;
use crate::error::Error;
use keeper::{Deadline, Keeper};
use leasehold_api::{
    Activity, AllocationId, CompleteAllocation, Granted, GrantedLease, Operation, Outcome, Problem, Release,
    RequestLease, Requested, Submitted, When,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch as channel;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The time limit for releasing.
const RELEASE_TOTAL: Duration = Duration::from_secs(20);

/// Reports the activity of a lease since the last call; `None` if it is unknown.
pub type Report = Box<dyn FnMut(&GrantedLease) -> Option<Activity> + Send>;

/// How a lease is kept.
#[derive(Default)]
pub struct Keep {
    /// Called before every renewal and at the release.
    pub report: Option<Report>,
    /// Do not use the event stream. A revocation is then noticed only at the next renewal.
    pub unwatched: bool,
}

/// Why a lease is lost, or will be soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was revoked, and the grace period has begun.
    Revoked {
        /// The reason in the journal: `operator`, `preempted`, `node_lost`.
        reason: Option<String>,
    },
    /// It has ended. `kind` is the kind of the record, such as `lease.expired`.
    Ended { kind: String },
    /// The daemon refused to renew it.
    Refused(Box<Problem>),
    /// It could not be renewed in time, because the daemon did not answer.
    Unreachable,
}

/// A lease was lost; the work may continue until `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    pub why: Why,
    /// When the capacity must no longer be used.
    pub until: Instant,
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.why {
            Why::Revoked { reason: Some(reason) } => write!(f, "the lease was revoked: {reason}"),
            Why::Revoked { reason: None } => f.write_str("the lease was revoked"),
            Why::Ended { kind } => write!(f, "the lease has ended: {kind}"),
            Why::Refused(problem) => write!(f, "the lease cannot be renewed: {problem}"),
            Why::Unreachable => f.write_str("the lease could not be renewed in time: the daemon did not answer"),
        }
    }
}

/// A guard for all leases of a granted request. While it exists, they are renewed at a random point between 60 and 80 %
/// of the TTL. Dropping it releases them in the background, if the process lives long enough; otherwise they end at their
/// deadline.
///
/// It fails closed: a lease that could not be renewed counts as lost shortly before its deadline, by the monotonic clock
/// of this machine. Its wall clock does not matter.
pub struct Lease {
    shared: Arc<Shared>,
    lost: channel::Receiver<Option<Lost>>,
    deadline: channel::Receiver<Deadline>,
    keeper: JoinHandle<()>,
    runtime: Handle,
    /// Whether dropping the guard releases the leases.
    armed: bool,
}

struct Shared {
    client: Client,
    granted: Granted,
    /// The allocation, if the request had to wait for evictions.
    allocation: Option<AllocationId>,
    report: Mutex<Option<Report>>,
}

impl Shared {
    /// The activity to report for one lease.
    fn activity(&self, lease: &GrantedLease) -> Option<Activity> {
        self.report.lock().expect("a report does not panic").as_mut()?(lease)
    }
}

impl Lease {
    /// Requests capacity and holds the leases. If other leases must be evicted first, it waits for that; dropping the
    /// future cancels the request. Must be called on a Tokio runtime.
    pub async fn request(client: &Client, request: &RequestLease, keep: Keep) -> Result<Self, Error> {
        let asked_at = Instant::now();
        match client.request_lease(request).await? {
            Requested::Granted(granted) => Ok(Self::hold(client, granted, request.ttl.0, asked_at, keep)),
            Requested::Waiting(submitted) => Self::wait(client, request, &submitted, keep).await,
        }
    }

    /// Waits for a request that needs evictions, and holds its leases.
    pub async fn wait(
        client: &Client,
        request: &RequestLease,
        submitted: &Submitted,
        keep: Keep,
    ) -> Result<Self, Error> {
        let mut cancel_on_drop =
            CancelOnDrop { client: client.clone(), allocation: Some(submitted.id), runtime: Handle::current() };
        let placed = client.until_placed(submitted.id, |_| {}).await?;
        let granted = placed.granted().ok_or_else(|| client.protocol("a placed allocation has no leases"))?;
        cancel_on_drop.allocation = None;
        Ok(Self::holding(client, granted, Some(submitted.id), request.ttl.0, placed.before, keep))
    }

    /// Holds leases that were granted already. They are renewed with `ttl`; `asked_at` is an instant before the request.
    pub fn hold(client: &Client, granted: Granted, ttl: leasehold_model::Span, asked_at: Instant, keep: Keep) -> Self {
        Self::holding(client, granted, None, ttl, asked_at, keep)
    }

    fn holding(
        client: &Client,
        granted: Granted,
        allocation: Option<AllocationId>,
        ttl: leasehold_model::Span,
        asked_at: Instant,
        keep: Keep,
    ) -> Self {
        let shared = Arc::new(Shared { client: client.clone(), granted, allocation, report: Mutex::new(keep.report) });
        let (lost_sender, lost) = channel::channel(None);
        let (moved, deadline) = channel::channel(Deadline::granted(&shared.granted, asked_at));
        let keeper = Keeper::new(Arc::clone(&shared), ttl, lost_sender, moved, !keep.unwatched);
        let runtime = Handle::current();
        let keeper = runtime.spawn(keeper.run());
        Self { shared, lost, deadline, keeper, runtime, armed: true }
    }

    pub fn granted(&self) -> &Granted {
        &self.shared.granted
    }

    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.shared.granted.leases.iter().map(|lease| lease.id.as_str())
    }

    /// The current deadline, by the clock of the daemon.
    pub fn expires_at(&self) -> When {
        self.deadline.borrow().expires_at
    }

    /// Resolves when the lease is revoked, has ended, or can no longer be renewed; always before it ends at its
    /// deadline. May be awaited any number of times.
    pub fn lost(&self) -> impl Future<Output = Lost> + Send + use<> {
        let mut lost = self.lost.clone();
        let deadline = self.deadline.clone();
        async move {
            match lost.wait_for(Option::is_some).await {
                Ok(lost) => lost.clone().expect("what was waited for"),
                // The background task is gone, so nothing is renewed any more.
                Err(_) => Lost { why: Why::Unreachable, until: deadline.borrow().at },
            }
        }
    }

    /// Reports, during the grace period of a revocation, that nothing runs on the leases any more. Billing ends then.
    pub async fn ready(mut self) -> Result<(), Error> {
        self.end(RELEASE_TOTAL, |_| Operation { ready: Some(Default::default()), ..empty_operation() }).await
    }

    /// Releases the leases. A lease that has ended already is not an error.
    pub async fn release(mut self) -> Result<(), Error> {
        self.keeper.abort();
        self.shared.release().await?;
        self.armed = false;
        Ok(())
    }

    /// Drops the guard without releasing the leases.
    pub fn leave(mut self) -> Granted {
        self.armed = false;
        self.shared.granted.clone()
    }

    async fn end(&mut self, total: Duration, operation: impl Fn(&GrantedLease) -> Operation) -> Result<(), Error> {
        self.keeper.abort();
        let operations = self.shared.operations(operation);
        self.shared.finish(operations, total).await?;
        self.armed = false;
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.keeper.abort();
        if self.armed {
            let shared = Arc::clone(&self.shared);
            self.runtime.spawn(async move {
                // Errors cannot be reported here; the lease ends at its deadline anyway.
                let _ = shared.release().await;
            });
        }
    }
}

/// Cancels a waiting request when it is dropped.
struct CancelOnDrop {
    client: Client,
    allocation: Option<AllocationId>,
    runtime: Handle,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(allocation) = self.allocation {
            let cancel = self.client.cancel_allocation(allocation).within(RELEASE_TOTAL);
            self.runtime.spawn(async move {
                // It may have ended already.
                let _ = cancel.await;
            });
        }
    }
}

fn release(shared: &Shared, lease: &GrantedLease) -> Operation {
    Operation { release: Some(Release { activity: shared.activity(lease) }), ..empty_operation() }
}

/// An empty operation, to be filled in.
fn empty_operation() -> Operation {
    Operation {
        key: None,
        lease: None,
        request: None,
        renew: None,
        release: None,
        revoke: None,
        ready: None,
        activity: None,
        confirm_teardown: None,
        unfence: None,
    }
}

impl Shared {
    /// One operation per lease.
    fn operations(&self, operation: impl Fn(&GrantedLease) -> Operation) -> Vec<Operation> {
        let named = |lease: &GrantedLease| Operation { lease: Some(lease.id.clone()), ..operation(lease) };
        self.granted.leases.iter().map(named).collect()
    }

    /// Releases all leases. A gang of several leases is completed as a whole, after a last report for each lease.
    async fn release(&self) -> Result<(), Error> {
        let Some(allocation) = self.allocation.filter(|_| self.granted.leases.len() > 1) else {
            return self.finish(self.operations(|lease| release(self, lease)), RELEASE_TOTAL).await;
        };
        let mut reports = self.operations(|lease| Operation { activity: self.activity(lease), ..empty_operation() });
        reports.retain(|report| report.activity.is_some());
        if !reports.is_empty() {
            self.finish(reports, RELEASE_TOTAL).await?;
        }
        let done = CompleteAllocation::default();
        match self.client.complete_allocation(allocation, &done).within(RELEASE_TOTAL).await {
            Err(Error::Problem(problem)) if has_ended(&problem) => Ok(()),
            answer => answer.map(|_| ()),
        }
    }

    /// Sends operations that end leases; leases that have ended already are not an error.
    async fn finish(&self, operations: Vec<Operation>, total: Duration) -> Result<(), Error> {
        let answer = self.client.batch_of(operations).within(total).await?;
        for result in answer.results {
            match result.outcome {
                Outcome::Problem(problem) if !has_ended(&problem) => return Err(problem.into()),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether a refusal means that the lease has ended.
fn has_ended(problem: &Problem) -> bool {
    const OVER: [&str; 9] = [
        "lease_expired",
        "lease_released",
        "lease_revoked",
        "lease_fenced",
        "lease_closed",
        "lease_not_found",
        "allocation_over",
        "allocation_not_found",
        "allocation_not_running",
    ];
    OVER.contains(&problem.code.as_str())
}
