//! What the players share: the cell, the pace, what they note for the one who watches.

use super::cluster;
use super::latency::Latencies;
use leasehold_cell::{Cell, Clock, SystemClock};
use leasehold_model::{Instant, NodeNo, Span};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

/// How fast the story is told: in a minute, unless the demo is shorter, and then everything in it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    permille: u64,
}

/// The length of the operator's story at the pace of one.
pub(crate) const STORY: Duration = Duration::from_secs(20);
/// In thousandths. The agents are real: no pace makes them faster.
const SLOWEST: u64 = 3000;
const FASTEST: u64 = 500;

impl Pace {
    pub(crate) fn for_length(length: Option<Span>) -> Self {
        let story = Span::from_secs(STORY.as_secs());
        let permille = length.map_or(SLOWEST, |length| length.0.saturating_mul(1000) / story.0);
        Self { permille: permille.clamp(FASTEST, SLOWEST) }
    }
    /// So many milliseconds of the story.
    pub(crate) fn ms(self, ms: u64) -> Duration {
        Duration::from_micros(ms * self.permille)
    }
    pub(crate) fn span(self, ms: u64) -> Span {
        Span(ms * self.permille * 1000)
    }
}

/// Something worth reading.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) at: Instant,
    pub(crate) who: &'static str,
    pub(crate) text: String,
}

/// What the traffic counts, beside what is sealed.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) latencies: Latencies,
    pub(crate) granted: [u64; cluster::TENANTS.len()],
    pub(crate) denied: [u64; cluster::TENANTS.len()],
    /// Requests sent a second time under their key, and answered from the journal.
    pub(crate) repeated: u64,
    /// Refusals, by code: these claim nothing and are not sealed.
    pub(crate) refused: BTreeMap<&'static str, u64>,
    /// The last denial of each tenant, as a sentence.
    pub(crate) denials: [Option<String>; cluster::TENANTS.len()],
}

pub(crate) struct Scene {
    pub(crate) cell: Arc<Cell>,
    pub(crate) pace: Pace,
    began: OnceLock<std::time::Instant>,
    pub(crate) tally: Mutex<Tally>,
    /// A node whose power is off, and one whose agent's hook hangs.
    pub(crate) dark: Mutex<Option<NodeNo>>,
    pub(crate) hung: Mutex<Option<NodeNo>>,
    events: Mutex<VecDeque<Event>>,
    stop: Arc<AtomicBool>,
    clock: SystemClock,
}

/// Events kept for a watcher that is slow.
const EVENTS_KEPT: usize = 256;

impl Scene {
    pub(crate) fn new(cell: Arc<Cell>, pace: Pace, stop: Arc<AtomicBool>) -> Self {
        Self {
            cell,
            pace,
            began: OnceLock::new(),
            tally: Mutex::default(),
            dark: Mutex::new(None),
            hung: Mutex::new(None),
            events: Mutex::default(),
            stop,
            clock: SystemClock::new(),
        }
    }

    /// The story begins, once those are there who play it.
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
        let mut events = self.events.lock().expect("no one panics with the events");
        if events.len() == EVENTS_KEPT {
            events.pop_front();
        }
        events.push_back(event);
    }
    pub(crate) fn take_events(&self) -> Vec<Event> {
        self.events.lock().expect("no one panics with the events").drain(..).collect()
    }

    /// Sleeps until so long after the beginning; answers whether to go on.
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

/// Starts a player.
pub(crate) fn play(name: &str, scene: &Arc<Scene>, body: impl FnOnce(&Scene) + Send + 'static) -> JoinHandle<()> {
    let scene = Arc::clone(scene);
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(move || body(&scene)).expect("the system can start a thread")
}
