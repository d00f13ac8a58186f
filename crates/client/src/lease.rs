//! A lease that is held: renewed in the background, watched, and given back at the end.

mod keeper;
mod watch;

use crate::client::Client;
use crate::error::Error;
use keeper::{Deadline, Keeper};
use leasehold_api::{
    Activity, CompleteAllocation, Granted, GrantedLease, Operation, Outcome, Problem, Release, RequestLease, Requested,
    Submitted, When,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch as channel;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long giving back may take.
const RELEASE_TOTAL: Duration = Duration::from_secs(20);

/// Says what a lease was used for since the last time it was asked; none where nothing is known.
pub type Report = Box<dyn FnMut(&GrantedLease) -> Option<Activity> + Send>;

/// How a lease is kept.
#[derive(Default)]
pub struct Keep {
    /// Asked before every renewal and at release.
    pub report: Option<Report>,
    /// Do without the event stream. A revocation is then noticed at the next renewal only.
    pub unwatched: bool,
}

/// Why a lease is held no longer, or not for long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was taken back; grace runs.
    Revoked {
        /// As the journal has it: `operator`, `preempted`, `node_lost`.
        reason: Option<String>,
    },
    /// It has ended: the kind of the record that says so, such as `lease.expired`.
    Ended { kind: String },
    /// The daemon will not renew it.
    Refused(Box<Problem>),
    /// It could not be renewed in time: nobody answered.
    Unreachable,
}

/// A lease is lost, and how long what runs on it may still run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    pub why: Why,
    /// From then on it is certainly no longer held.
    pub until: Instant,
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.why {
            Why::Revoked { reason: Some(reason) } => write!(f, "the lease was revoked: {reason}"),
            Why::Revoked { reason: None } => f.write_str("the lease was revoked"),
            Why::Ended { kind } => write!(f, "the lease has ended: {kind}"),
            Why::Refused(problem) => write!(f, "the lease cannot be renewed: {problem}"),
            Why::Unreachable => f.write_str("the lease could not be renewed in time: the daemon does not answer"),
        }
    }
}

/// A granted request, all its leases together. While it lives they are renewed at a random point of 60 to 80 % of the
/// TTL. Dropping it gives them back in the background as far as the process still lives; what is not given back ends
/// at its deadline.
///
/// It fails closed: what could not be renewed counts as lost shortly before the deadline, by this machine's own
/// monotonic clock, whatever its wall clock says.
pub struct Lease {
    shared: Arc<Shared>,
    lost: channel::Receiver<Option<Lost>>,
    deadline: channel::Receiver<Deadline>,
    keeper: JoinHandle<()>,
    runtime: Handle,
    /// Whether it is still to be given back.
    armed: bool,
}

struct Shared {
    client: Client,
    granted: Granted,
    /// The allocation whose gang it is, if it had to be waited for.
    allocation: Option<u64>,
    report: Mutex<Option<Report>>,
}

impl Shared {
    /// What there is to report about one lease.
    fn activity(&self, lease: &GrantedLease) -> Option<Activity> {
        self.report.lock().expect("a report does not panic").as_mut()?(lease)
    }
}

impl Lease {
    /// Asks for capacity and holds what is granted. Where others must make room first, that is waited for; a request
    /// that is given up meanwhile is cancelled. Must be called on a runtime.
    pub async fn request(client: &Client, request: &RequestLease, keep: Keep) -> Result<Self, Error> {
        let asked_at = Instant::now();
        match client.request_lease(request).await? {
            Requested::Granted(granted) => Ok(Self::hold(client, granted, request.ttl.0, asked_at, keep)),
            Requested::Waiting(submitted) => Self::wait(client, request, &submitted, keep).await,
        }
    }

    /// Waits for a request that others must make room for, and holds what it is granted.
    pub async fn wait(
        client: &Client,
        request: &RequestLease,
        submitted: &Submitted,
        keep: Keep,
    ) -> Result<Self, Error> {
        let mut given_up =
            GivenUp { client: client.clone(), allocation: Some(submitted.id), runtime: Handle::current() };
        let placed = client.until_placed(submitted.id, |_| {}).await?;
        let granted = placed.granted().ok_or_else(|| client.protocol("it placed an allocation nowhere"))?;
        given_up.allocation = None;
        Ok(Self::holding(client, granted, Some(submitted.id), request.ttl.0, placed.before, keep))
    }

    /// Holds what was granted before: with the TTL it is renewed by, and an instant before it was asked for.
    pub fn hold(client: &Client, granted: Granted, ttl: leasehold_model::Span, asked_at: Instant, keep: Keep) -> Self {
        Self::holding(client, granted, None, ttl, asked_at, keep)
    }

    fn holding(
        client: &Client,
        granted: Granted,
        allocation: Option<u64>,
        ttl: leasehold_model::Span,
        asked_at: Instant,
        keep: Keep,
    ) -> Self {
        let shared = Arc::new(Shared { client: client.clone(), granted, allocation, report: Mutex::new(keep.report) });
        let (tell, lost) = channel::channel(None);
        let (moved, deadline) = channel::channel(Deadline::granted(&shared.granted, asked_at));
        let keeper = Keeper::new(Arc::clone(&shared), ttl, tell, moved, !keep.unwatched);
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

    /// The deadline as the daemon last gave it.
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
                // The keeper is gone without a word, so nothing is renewed any more.
                Err(_) => Lost { why: Why::Unreachable, until: deadline.borrow().at },
            }
        }
    }

    /// Says, within the grace of a revocation, that nothing runs on it any more: here the bill ends.
    pub async fn ready(mut self) -> Result<(), Error> {
        self.end(RELEASE_TOTAL, |_| Operation { ready: Some(Default::default()), ..nothing() }).await
    }

    /// Gives the leases back. One that has ended meanwhile is no error.
    pub async fn release(mut self) -> Result<(), Error> {
        self.keeper.abort();
        self.shared.give_back().await?;
        self.armed = false;
        Ok(())
    }

    /// Lets go of the guard and leaves the leases as they are.
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
                // Nobody is left to be told; the deadline ends what this does not.
                let _ = shared.give_back().await;
            });
        }
    }
}

/// A request that is waited for; it is cancelled when nobody waits any more.
struct GivenUp {
    client: Client,
    allocation: Option<u64>,
    runtime: Handle,
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        if let Some(allocation) = self.allocation {
            let cancel = self.client.cancel_allocation(allocation).within(RELEASE_TOTAL);
            self.runtime.spawn(async move {
                // One that is over needs nothing more.
                let _ = cancel.await;
            });
        }
    }
}

fn release(shared: &Shared, lease: &GrantedLease) -> Operation {
    Operation { release: Some(Release { activity: shared.activity(lease) }), ..nothing() }
}

/// An operation that does nothing yet.
fn nothing() -> Operation {
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
    /// One operation for each lease, each with its own key.
    fn operations(&self, operation: impl Fn(&GrantedLease) -> Operation) -> Vec<Operation> {
        let named = |lease: &GrantedLease| Operation {
            lease: Some(lease.id.clone()),
            key: Some(crate::random::key()),
            ..operation(lease)
        };
        self.granted.leases.iter().map(named).collect()
    }

    /// Gives back what is held. A gang of several leases is given back whole, with a last report for each.
    async fn give_back(&self) -> Result<(), Error> {
        let Some(allocation) = self.allocation.filter(|_| self.granted.leases.len() > 1) else {
            return self.finish(self.operations(|lease| release(self, lease)), RELEASE_TOTAL).await;
        };
        let mut reports = self.operations(|lease| Operation { activity: self.activity(lease), ..nothing() });
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

    /// Ends what still is to be ended.
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

/// Whether a refusal says that the lease is over.
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
