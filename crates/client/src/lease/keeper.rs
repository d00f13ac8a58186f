//! The background task of a lease guard: renews the lease, watches it, and reports when it is lost.

use super::watch::{Sign, Watch};
use super::{Lost, Shared, Why, empty_operation, has_ended};
use crate::error::Error;
use crate::random;
use crate::retry::Backoff;
use leasehold_api::{Granted, Operation, Outcome, Problem, Renew, Ttl, When};
use leasehold_model::Span;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch as channel;
use tokio::time::{Instant, sleep_until};

/// A lease that cannot be renewed is reported as lost this long before its deadline, or a twentieth of the TTL if that
/// is less.
const MARGIN_MAX: Duration = Duration::from_secs(5);

/// A deadline by the daemon's clock, and by the monotonic clock of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline {
    pub(super) expires_at: When,
    /// Not later than `expires_at`, because the daemon stamped the answer after the request was sent.
    pub(super) at: Instant,
    /// When the grant or renewal was requested.
    asked_at: Instant,
}

impl Deadline {
    pub(super) fn granted(granted: &Granted, asked_at: Instant) -> Self {
        let ttl = granted.expires_at.0.since(granted.granted_at.0);
        Self { expires_at: granted.expires_at, at: asked_at + length(ttl), asked_at }
    }

    fn renewed(expires_at: When, ttl: Span, asked_at: Instant) -> Self {
        Self { expires_at, at: asked_at + length(ttl), asked_at }
    }

    fn ttl(&self) -> Duration {
        self.at - self.asked_at
    }

    /// When to renew: at 60 to 80 % of the TTL.
    fn renew_at(&self) -> Instant {
        self.asked_at + random::between(self.ttl() * 6 / 10, self.ttl() * 8 / 10)
    }

    /// When to report the lease as lost.
    fn give_up_at(&self) -> Instant {
        self.at - (self.ttl() / 20).min(MARGIN_MAX)
    }

    /// Converts an instant of the daemon's clock to ours; the result is never late.
    pub(super) fn local(&self, server: leasehold_model::Instant) -> Instant {
        let before = length(self.expires_at.0.since(server));
        let after = length(server.since(self.expires_at.0));
        self.at.checked_sub(before).unwrap_or(self.asked_at) + after
    }
}

pub(super) fn length(span: Span) -> Duration {
    Duration::from_nanos(span.0)
}

pub(super) struct Keeper {
    shared: Arc<Shared>,
    ttl: Span,
    deadline: Deadline,
    lost: channel::Sender<Option<Lost>>,
    moved: channel::Sender<Deadline>,
    watch: Watch,
}

/// A renewal in flight. If it is not answered, it is sent again unchanged and with the same keys, so that a report of
/// activity is not counted twice.
type Renewing = Pin<Box<dyn Future<Output = (Arc<Renewal>, Result<When, Error>)> + Send>>;

struct Renewal {
    asked_at: Instant,
    operations: Vec<Operation>,
}

impl Keeper {
    pub(super) fn new(
        shared: Arc<Shared>,
        ttl: Span,
        lost: channel::Sender<Option<Lost>>,
        moved: channel::Sender<Deadline>,
        watched: bool,
    ) -> Self {
        let deadline = *moved.borrow();
        let watch = if watched { Watch::begin(&shared.client, &shared.granted) } else { Watch::Off };
        Self { shared, ttl, deadline, lost, moved, watch }
    }

    pub(super) async fn run(mut self) {
        let lost = self.keep().await;
        self.lost.send_replace(Some(lost));
    }

    /// Keeps the lease until it is lost.
    async fn keep(&mut self) -> Lost {
        let mut renew_at = self.deadline.renew_at();
        let mut renewing: Option<Renewing> = None;
        let mut unanswered: Option<Arc<Renewal>> = None;
        let mut backoff = Backoff::default();
        loop {
            tokio::select! {
                // In this order: events and deadlines come before renewals.
                biased;
                sign = self.watch.next(&self.deadline) => match sign {
                    Sign::Revoked { reason, until } => {
                        return Lost { why: Why::Revoked { reason }, until: until.min(self.deadline.at) };
                    }
                    Sign::Ended { kind } => return Lost { why: Why::Ended { kind }, until: Instant::now() },
                },
                () = sleep_until(self.deadline.give_up_at()) => {
                    return Lost { why: Why::Unreachable, until: self.deadline.at };
                }
                (renewal, outcome) = async { renewing.as_mut().expect("one is in flight").await }, if renewing.is_some() => {
                    renewing = None;
                    match outcome {
                        Ok(expires_at) => {
                            self.deadline = Deadline::renewed(expires_at, self.ttl, renewal.asked_at);
                            self.moved.send_replace(self.deadline);
                            unanswered = None;
                            backoff.reset();
                            renew_at = self.deadline.renew_at();
                        }
                        Err(Error::Problem(problem)) if Error::from((*problem).clone()).is_final() => {
                            return self.refused(problem);
                        }
                        Err(_) => {
                            unanswered = Some(renewal);
                            renew_at = Instant::now() + backoff.pause();
                        }
                    }
                }
                () = sleep_until(renew_at), if renewing.is_none() => {
                    let renewal = unanswered.take().unwrap_or_else(|| self.renewal());
                    renewing = Some(self.renew(renewal));
                }
            }
        }
    }

    fn renewal(&self) -> Arc<Renewal> {
        let ttl = Ttl(self.ttl);
        let asked_at = Instant::now();
        let operations = self.shared.operations(|lease| Operation {
            renew: Some(Renew { ttl, activity: self.shared.activity(lease) }),
            ..empty_operation()
        });
        Arc::new(Renewal { asked_at, operations })
    }

    fn renew(&self, renewal: Arc<Renewal>) -> Renewing {
        let client = self.shared.client.clone();
        let left = self.deadline.give_up_at().saturating_duration_since(Instant::now());
        Box::pin(async move {
            let call = client.batch_of(renewal.operations.clone()).within(left.min(client.timeouts().total));
            let outcome =
                call.await.and_then(|answer| earliest(answer.results.into_iter().map(|r| r.outcome), &client));
            (renewal, outcome)
        })
    }

    /// The daemon refused the renewal. A lease that has not ended may be used up to its deadline.
    fn refused(&self, problem: Box<Problem>) -> Lost {
        let until = if has_ended(&problem) { Instant::now() } else { self.deadline.at };
        Lost { why: Why::Refused(problem), until }
    }
}

/// The earliest of the new deadlines; one refusal counts for all leases, because a gang is held as a whole.
fn earliest(outcomes: impl Iterator<Item = Outcome>, client: &crate::Client) -> Result<When, Error> {
    let mut earliest: Option<When> = None;
    for outcome in outcomes {
        match outcome {
            Outcome::Renewed(renewed) => {
                earliest = Some(earliest.map_or(renewed.expires_at, |known| known.min(renewed.expires_at)));
            }
            Outcome::Problem(problem) => return Err(problem.into()),
            _ => return Err(client.protocol("it answered a renewal with something else")),
        }
    }
    earliest.ok_or_else(|| client.protocol("it did not answer a renewal"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_api::Priority;

    fn granted(granted_at: u64, expires_at: u64) -> Granted {
        Granted {
            sequence: 1,
            leases: Vec::new(),
            node: "n".into(),
            pool: "p".into(),
            priority: Priority::Standard,
            granted_at: When(leasehold_model::Instant::from_secs(granted_at)),
            expires_at: When(leasehold_model::Instant::from_secs(expires_at)),
            correlation_id: String::new(),
            over_soft_quota_ids: Vec::new(),
            capped_by_quota_id: None,
            capped_by_window_id: None,
        }
    }

    #[test]
    fn deadlines_count_from_the_request_and_ignore_wall_clocks() {
        let asked_at = Instant::now();
        let secs = Duration::from_secs;
        let deadline = Deadline::granted(&granted(1_000_000, 1_000_600), asked_at);
        assert_eq!(deadline.at, asked_at + secs(600));
        assert_eq!(deadline.give_up_at(), asked_at + secs(595));
        for _ in 0..100 {
            assert!((asked_at + secs(360)..=asked_at + secs(480)).contains(&deadline.renew_at()));
        }
        let server = leasehold_model::Instant::from_secs;
        assert_eq!(deadline.local(server(1_000_060)), asked_at + secs(60));
        assert_eq!(deadline.local(server(1_000_660)), asked_at + secs(660));
        let short = Deadline::granted(&granted(10, 20), asked_at);
        assert_eq!(short.give_up_at(), asked_at + Duration::from_millis(9500));
    }
}
