//! What the simulated users share: the cell, the pace, counters, and events to display.

use super::cluster;
use super::latency::Latencies;
use leasehold_cell::{Cell, Clock, SystemClock};
use leasehold_model::{Instant, NodeNo, Span};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// How fast the scripted events happen. One round takes a minute; in a shorter demo everything is faster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    permille: u64,
}

/// The length of one round of the operator's script at pace 1.
pub(crate) const ROUND: Duration = Duration::from_secs(20);
/// In thousandths. There is a lower limit because the agents are real processes and need real time.
const SLOWEST: u64 = 3000;
const FASTEST: u64 = 500;

impl Pace {
    pub(crate) fn for_length(length: Option<Span>) -> Self {
        let round = Span::from_secs(ROUND.as_secs());
        let permille = length.map_or(SLOWEST, |length| length.0.saturating_mul(1000) / round.0);
        Self { permille: permille.clamp(FASTEST, SLOWEST) }
    }
    /// Scripted milliseconds as real time.
    pub(crate) fn ms(self, ms: u64) -> Duration {
        Duration::from_micros(ms * self.permille)
    }
    pub(crate) fn span(self, ms: u64) -> Span {
        Span(ms * self.permille * 1000)
    }
}

/// A line in the list of events.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) at: Instant,
    pub(crate) who: &'static str,
    pub(crate) text: String,
}

/// Counters of the traffic, for what is not in the journal.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) latencies: Latencies,
    pub(crate) granted: [u64; cluster::TENANTS.len()],
    pub(crate) denied: [u64; cluster::TENANTS.len()],
    /// Requests that were repeated with their idempotency key and got the first answer.
    pub(crate) repeated: u64,
    /// Refusals by code; these are not recorded in the journal.
    pub(crate) refused: BTreeMap<&'static str, u64>,
    /// The last denial of each tenant, as a sentence.
    pub(crate) denials: [Option<String>; cluster::TENANTS.len()],
}

/// Why the locks of the demo are never poisoned.
pub(crate) const LOCK: &str = "no thread panics while it holds the lock";

pub(crate) struct Scene {
    pub(crate) cell: Arc<Cell>,
    pub(crate) pace: Pace,
    began: OnceLock<std::time::Instant>,
    pub(crate) tally: Mutex<Tally>,
    /// A node without power, and a node whose teardown hook hangs.
    pub(crate) without_power: Mutex<Option<NodeNo>>,
    pub(crate) hung: Mutex<Option<NodeNo>>,
    events: Mutex<VecDeque<Event>>,
    stop: Arc<AtomicBool>,
    clock: SystemClock,
}

/// Events that are kept until they are displayed.
const EVENTS_KEPT: usize = 256;

impl Scene {
    pub(crate) fn new(cell: Arc<Cell>, pace: Pace, stop: Arc<AtomicBool>) -> Self {
        Self {
            cell,
            pace,
            began: OnceLock::new(),
            tally: Mutex::default(),
            without_power: Mutex::new(None),
            hung: Mutex::new(None),
            events: Mutex::default(),
            stop,
            clock: SystemClock::new(),
        }
    }

    /// Starts the clock of the script.
    pub(crate) fn begin(&self) {
        self.began.get_or_init(std::time::Instant::now);
    }
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.get().map_or(Duration::ZERO, std::time::Instant::elapsed)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.cell.failure().is_some()
    }
    pub(crate) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn note(&self, who: &'static str, text: String) {
        let event = Event { at: self.clock.wall(), who, text };
        let mut events = self.events.lock().expect(LOCK);
        if events.len() == EVENTS_KEPT {
            events.pop_front();
        }
        events.push_back(event);
    }
    pub(crate) fn take_events(&self) -> Vec<Event> {
        self.events.lock().expect(LOCK).drain(..).collect()
    }

    /// Sleeps until `after` has passed since the start; returns false if the demo is over.
    pub(crate) fn wait_until(&self, after: Duration) -> bool {
        while !self.is_over() {
            let left = after.saturating_sub(self.elapsed());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(Duration::from_millis(20)));
        }
        false
    }
}

/// Starts a thread.
pub(crate) fn spawn(name: &str, scene: &Arc<Scene>, body: impl FnOnce(&Scene) + Send + 'static) -> JoinHandle<()> {
    let scene = Arc::clone(scene);
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(move || body(&scene)).expect("the system can start a thread")
}
