//! What is missing at a receiver, event by event: what `reconcile` would send.

use crate::event::{Place, SinkId};
use crate::service::{DeliverError, Deliveries, lock};
use leasehold_model::Instant;

/// An event that was due and that the receiver does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub place: Place,
    pub id: String,
    pub kind: String,
    pub order: String,
    pub time: Instant,
    /// Why it was set aside; none if it was skipped.
    pub set_aside: Option<String>,
}

impl Deliveries {
    /// The events that were due in [since, until) and are dead or dropped, in order, at most so many. Dropped events of
    /// records that are not at hand are left out.
    pub async fn differences(
        &self,
        id: SinkId,
        (since, until): (Instant, Instant),
        most: usize,
    ) -> Result<Vec<Difference>, DeliverError> {
        let running = self.running(id)?;
        let (from, to) = self.window(&running, since, until).await?;
        let (start, end) = (Place::start_of(from), Place::start_of(to));
        let deliveries = self.clone();
        let letters = tokio::task::spawn_blocking(move || deliveries.dead_letters(id, start, most));
        let letters = letters.await.map_err(|_| DeliverError::Stopped)??;
        let dead = letters.into_iter().filter(|letter| letter.place < end).map(|letter| Difference {
            place: letter.place,
            id: letter.id,
            kind: letter.kind,
            order: letter.order,
            time: Instant(letter.time_ns),
            set_aside: Some(letter.reason),
        });
        let mut all: Vec<Difference> = dead.collect();
        let dropped = lock(&running.sink).dropped().within(start, end);
        let mut skipped = 0;
        for (from, to) in dropped.iter() {
            let mut at = from.sequence;
            while Place::start_of(at) < to && skipped < most {
                let (events, next) = match self.read(&running, at, from, to).await {
                    Ok(page) => page,
                    Err(DeliverError::Gone(until)) => (Vec::new(), until.max(at + 1)),
                    Err(error) => return Err(error),
                };
                skipped += events.len();
                all.extend(events.into_iter().map(|event| Difference {
                    place: event.place(),
                    id: event.id,
                    kind: event.kind,
                    order: event.order,
                    time: event.time,
                    set_aside: None,
                }));
                at = next;
            }
        }
        // A range may have been joined over an event that was set aside.
        all.sort_by(|a, b| a.place.cmp(&b.place).then(b.set_aside.is_some().cmp(&a.set_aside.is_some())));
        all.dedup_by_key(|one| one.place);
        all.truncate(most);
        Ok(all)
    }
}
