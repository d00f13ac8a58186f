//! What was seen of each node and job, and how far it was reported.
//!
//! A thing that was alive at two sightings was alive in between, however far apart they are. One that ended has ended when
//! Ray says so, or else when it was last seen alive: time that nobody saw is not billed.

use crate::answer::{Kind, Life, Seen};
use leasehold_model::{Instant, Span};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

const HOUR_MS: u64 = 3_600_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Thing {
    pub(crate) kind: Kind,
    pub(crate) start_ms: u64,
    /// Until when it certainly ran.
    pub(crate) until_ms: u64,
    /// Whether it ended then.
    pub(crate) ended: bool,
    /// Up to where it was reported: a full hour, or its end. 0 if nothing was.
    pub(crate) reported_ms: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) things: BTreeMap<String, Thing>,
    /// When the dashboard last answered.
    #[serde(default)]
    looked_ms: u64,
}

impl Memory {
    /// Takes in a complete answer.
    pub(crate) fn see(&mut self, seen: &[Seen], now: Instant) {
        let now_ms = now.0 / 1_000_000;
        self.looked_ms = now_ms;
        for one in seen {
            let Seen { id, kind, start_ms, life } = one;
            let start_ms = *start_ms;
            let thing = self.things.entry(id.clone()).or_insert_with(|| Thing {
                kind: kind.clone(),
                start_ms,
                until_ms: start_ms,
                ended: false,
                reported_ms: 0,
            });
            (thing.until_ms, thing.ended) = match *life {
                // Never backwards: the clock of this machine may differ from that of Ray.
                Life::Alive => (thing.until_ms.max(now_ms), false),
                Life::Ended { end_ms } => (thing.until_ms.max(end_ms), true),
                Life::Gone => (thing.until_ms, true),
            };
        }
        let shown: BTreeSet<&String> = seen.iter().map(|one| &one.id).collect();
        for (_, thing) in self.things.iter_mut().filter(|(id, _)| !shown.contains(id)) {
            thing.ended = true;
        }
        // What has ended, was reported and is no longer shown has nothing to say any more.
        self.things.retain(|id, thing| shown.contains(id) || thing.reported_ms < thing.until_ms);
    }

    /// Whether the dashboard has not answered for so long that nothing more is expected of what was seen, and something
    /// of it is still to be reported.
    pub(crate) fn is_given_up(&self, now: Instant, after: Span) -> bool {
        let silent_ms = (now.0 / 1_000_000).saturating_sub(self.looked_ms);
        silent_ms >= after.0 / 1_000_000 && self.things.values().any(|thing| thing.reported_ms < thing.until_ms)
    }

    /// Everything ended when it was last seen alive.
    pub(crate) fn all_gone(&mut self) {
        for thing in self.things.values_mut() {
            thing.ended = true;
        }
    }

    /// Notes that everything that was due has been reported.
    pub(crate) fn reported(&mut self) {
        for thing in self.things.values_mut() {
            thing.reported_ms = thing.due_ms();
        }
    }

    /// Reports everything again.
    pub(crate) fn forget_reported(&mut self) {
        for thing in self.things.values_mut() {
            thing.reported_ms = 0;
        }
    }
}

impl Thing {
    /// Up to where it can be reported: its end, or the last full hour of UTC that it lived through.
    pub(crate) fn due_ms(&self) -> u64 {
        if self.ended { self.until_ms } else { (self.until_ms / HOUR_MS * HOUR_MS).max(self.start_ms) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Resources;

    const DAY: u64 = 24 * HOUR_MS;

    fn head(life: Life) -> Seen {
        let kind = Kind::Head { resources: Resources::default() };
        Seen { id: "node/a".into(), kind, start_ms: DAY + 10, life }
    }

    fn after(sightings: &[(u64, Option<Life>)]) -> Option<Thing> {
        let mut memory = Memory::default();
        for (at_ms, life) in sightings {
            let seen: Vec<Seen> = life.iter().map(|life| head(*life)).collect();
            memory.see(&seen, Instant(at_ms * 1_000_000));
        }
        memory.things.remove("node/a")
    }

    #[track_caller]
    fn check(sightings: &[(u64, Option<Life>)], until_ms: u64, due_ms: u64) {
        let thing = after(sightings).expect("it is remembered");
        assert_eq!((thing.until_ms, thing.due_ms()), (until_ms, due_ms), "{sightings:?}");
    }

    #[test]
    fn time_between_two_sightings_counts_and_time_that_nobody_saw_does_not() {
        let alive = Some(Life::Alive);
        check(&[(DAY + 50, alive)], DAY + 50, DAY + 10);
        check(&[(DAY + 50, alive), (DAY + 2 * HOUR_MS + 1, alive)], DAY + 2 * HOUR_MS + 1, DAY + 2 * HOUR_MS);
        // Nobody could look for nine hours; it was there all the time.
        check(&[(DAY + 50, alive), (DAY + 9 * HOUR_MS, alive)], DAY + 9 * HOUR_MS, DAY + 9 * HOUR_MS);
        // It is gone: last seen alive.
        check(&[(DAY + 50, alive), (DAY + 9 * HOUR_MS, None)], DAY + 50, DAY + 50);
        check(&[(DAY + 50, alive), (DAY + 9 * HOUR_MS, Some(Life::Gone))], DAY + 50, DAY + 50);
        // Ray says when.
        let ended = Some(Life::Ended { end_ms: DAY + 70 });
        check(&[(DAY + 50, alive), (DAY + 9 * HOUR_MS, ended)], DAY + 70, DAY + 70);
        check(&[(DAY + 9 * HOUR_MS, ended)], DAY + 70, DAY + 70);
        // Seen alive after its end, by another clock: what was reported stands.
        check(&[(DAY + 90, alive), (DAY + HOUR_MS, ended)], DAY + 90, DAY + 90);
        // Never seen alive, and nobody says until when it lived.
        check(&[(DAY + 9 * HOUR_MS, Some(Life::Gone))], DAY + 10, DAY + 10);
    }

    #[test]
    fn a_cluster_that_does_not_answer_is_given_up_once_and_goes_on_if_it_returns() {
        let (hour, at) = (Span::from_secs(3600), |ms: u64| Instant(ms * 1_000_000));
        let mut memory = Memory::default();
        assert!(!memory.is_given_up(at(DAY), hour), "nothing was seen");
        memory.see(&[head(Life::Alive)], at(DAY + 50));
        assert!(!memory.is_given_up(at(DAY + HOUR_MS), hour));
        assert!(memory.is_given_up(at(DAY + HOUR_MS + 50), hour));
        memory.all_gone();
        assert_eq!(memory.things["node/a"].due_ms(), DAY + 50);
        memory.reported();
        assert!(!memory.is_given_up(at(DAY + 2 * HOUR_MS), hour), "it was reported");
        memory.see(&[head(Life::Alive)], at(DAY + 3 * HOUR_MS));
        assert_eq!(memory.things["node/a"].due_ms(), DAY + 3 * HOUR_MS);
        // The hour that was reported in part is reported again, from its beginning.
        assert_eq!(memory.things["node/a"].reported_ms, DAY + 50);
    }

    #[test]
    fn what_was_reported_to_its_end_is_forgotten_when_ray_forgets_it() {
        let mut memory = Memory::default();
        memory.see(&[head(Life::Alive)], Instant((DAY + 50) * 1_000_000));
        memory.see(&[], Instant((DAY + 60) * 1_000_000));
        assert_eq!(memory.things.len(), 1, "its end is not reported yet");
        memory.reported();
        memory.see(&[], Instant((DAY + 70) * 1_000_000));
        assert_eq!(memory.things.len(), 0);
    }
}
