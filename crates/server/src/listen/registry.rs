//! What every connection waits for and since when, and the sweep that notices when it has waited too long.

use super::Counters;
use super::capacity::{Capacity, counted_as};
use super::own_refusals::last_answer;
use crate::config::Limits;
use futures_util::task::AtomicWaker;
use leasehold_api::codes::BUSY;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Phase {
    /// The first byte.
    New,
    /// The next request; the last answer has been sent.
    Idle,
    /// The rest of a request's head.
    Head,
    /// The rest of a request's body.
    Body,
    /// The answer of the application.
    Answer,
    /// The rest of the answer of the application, without a time limit.
    Sending,
}

impl Phase {
    const ALL: [Self; 6] = [Self::New, Self::Idle, Self::Head, Self::Body, Self::Answer, Self::Sending];
}

/// What happens to a connection that has waited too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    Close,
    /// The request is answered with 408.
    Answer,
}

/// One connection. Written by its own task, read by the sweep. No value depends on another, so relaxed ordering
/// suffices.
#[derive(Debug)]
pub(super) struct Conn {
    number: u64,
    /// The address that it is counted by; none if it is not limited by address.
    address: Option<IpAddr>,
    registry: Arc<Registry>,
    /// The phase in the lowest byte, above it the tick at which it began.
    phase: AtomicU64,
    /// One more than the tick since which the client accepts no bytes; zero if it accepts them.
    stalled: AtomicU64,
    waker: AtomicWaker,
}

impl Conn {
    pub(super) fn set(&self, phase: Phase) {
        self.phase.store(self.registry.tick() << 8 | phase as u64, Ordering::Relaxed);
    }
    fn phase(&self) -> (Phase, u64) {
        let word = self.phase.load(Ordering::Relaxed);
        (Phase::ALL[usize::from(word.to_le_bytes()[0])], word >> 8)
    }

    /// Bytes arrived.
    pub(super) fn received(&self) {
        if matches!(self.phase().0, Phase::New | Phase::Idle) {
            self.set(Phase::Head);
        }
    }
    /// The client accepted bytes.
    pub(super) fn sent(&self) {
        if self.stalled.load(Ordering::Relaxed) != 0 {
            self.stalled.store(0, Ordering::Relaxed);
        }
    }
    /// The client accepts no more bytes for now.
    pub(super) fn stalled(&self) {
        if self.stalled.load(Ordering::Relaxed) == 0 {
            self.stalled.store(self.registry.tick() + 1, Ordering::Relaxed);
        }
    }

    /// Whether the connection has waited too long, and what happens then.
    pub(super) fn overdue(&self) -> Option<Overdue> {
        let registry = &*self.registry;
        if registry.cut_off.load(Ordering::Relaxed) {
            return Some(Overdue::Close);
        }
        let now = registry.tick();
        let ticks = &registry.ticks;
        let stalled = self.stalled.load(Ordering::Relaxed);
        if stalled != 0 && now >= stalled - 1 + ticks.idle {
            return Some(Overdue::Close);
        }
        let (phase, since) = self.phase();
        let (limit, then) = match phase {
            Phase::New | Phase::Head => (ticks.head, Overdue::Close),
            Phase::Idle => (ticks.idle, Overdue::Close),
            Phase::Body => (ticks.body, Overdue::Answer),
            Phase::Answer => (ticks.answer, Overdue::Answer),
            Phase::Sending => return None,
        };
        (now >= since + limit).then_some(then)
    }

    pub(super) fn timed_out(&self) {
        // Connections that are closed at shutdown did not time out.
        if !self.registry.cut_off.load(Ordering::Relaxed) {
            self.registry.counters.timed_out.fetch_add(1, Ordering::Relaxed);
        }
    }
    pub(super) fn handshake_failed(&self) {
        self.registry.counters.handshakes_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Registers the task to be woken on timeout or shutdown. Returns whether the daemon is shutting down.
    pub(super) fn listen(&self, waker: &std::task::Waker) -> bool {
        self.waker.register(waker);
        self.registry.stopping.load(Ordering::Acquire)
    }

    /// Runs `work` until it is done or the daemon shuts down.
    pub(super) async fn until_stopping<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|cx| if self.listen(cx.waker()) { Poll::Ready(None) } else { work.as_mut().poll(cx).map(Some) }).await
    }
}

/// Removes the connection when its task and everything it served are dropped.
impl Drop for Conn {
    fn drop(&mut self) {
        self.registry.leave(self.number, self.address);
    }
}

/// Why a connection was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    All,
    OfAddress,
}

impl Rejection {
    pub(super) fn answer(self) -> String {
        let detail = match self {
            Self::All => "Too many connections are open (limits.connections); try again.",
            Self::OfAddress => {
                "This address has too many connections open (limits.connections_per_address); use fewer, or try again."
            }
        };
        last_answer("Service Unavailable", &BUSY.problem(detail).with("retry_after", 1))
    }
}

/// The time limits in ticks, rounded up plus one, so that nothing ends too early.
#[derive(Debug)]
struct Ticks {
    head: u64,
    body: u64,
    answer: u64,
    idle: u64,
}

#[derive(Debug)]
struct Open {
    capacity: Capacity,
    next: u64,
    conns: BTreeMap<u64, std::sync::Weak<Conn>>,
    per_address: BTreeMap<IpAddr, usize>,
}

/// Every open connection.
#[derive(Debug)]
pub(super) struct Registry {
    pub(super) counters: Arc<Counters>,
    open: Mutex<Open>,
    started: Instant,
    tick: AtomicU64,
    tick_length: Duration,
    ticks: Ticks,
    stopping: AtomicBool,
    cut_off: AtomicBool,
    emptied: Notify,
}

impl Registry {
    pub(super) fn new(limits: &Limits, capacity: Capacity, counters: Arc<Counters>) -> Arc<Self> {
        let timeouts = [limits.header_timeout, limits.body_timeout, limits.request_timeout, limits.idle_timeout]
            .map(Duration::from);
        let shortest = timeouts.iter().min().expect("there are four");
        let tick_length = (*shortest / 8).clamp(Duration::from_millis(5), Duration::from_millis(250));
        let ticks = timeouts
            .map(|t| u64::try_from(t.as_nanos().div_ceil(tick_length.as_nanos())).unwrap_or(u64::MAX >> 16) + 1);
        let [head, body, answer, idle] = ticks;
        Arc::new(Self {
            counters,
            open: Mutex::new(Open { capacity, next: 0, conns: BTreeMap::new(), per_address: BTreeMap::new() }),
            started: Instant::now(),
            tick: AtomicU64::new(0),
            tick_length,
            ticks: Ticks { head, body, answer, idle },
            stopping: AtomicBool::new(false),
            cut_off: AtomicBool::new(false),
            emptied: Notify::new(),
        })
    }

    /// Changes how many connections there may be. Those that are open stay open.
    pub(super) fn set_capacity(&self, capacity: Capacity) {
        self.lock().capacity = capacity;
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn tick(&self) -> u64 {
        self.tick.load(Ordering::Relaxed)
    }

    pub(super) fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Arc<Conn>, Rejection> {
        let mut open = self.lock();
        let address = counted_as(address);
        let of_address = address.and_then(|address| open.per_address.get(&address)).copied().unwrap_or(0);
        let rejection = if open.conns.len() >= open.capacity.connections {
            Some(Rejection::All)
        } else {
            (of_address >= open.capacity.per_address).then_some(Rejection::OfAddress)
        };
        if let Some(rejection) = rejection {
            self.counters.turned_away.fetch_add(1, Ordering::Relaxed);
            return Err(rejection);
        }
        let number = open.next;
        open.next += 1;
        let conn = Arc::new(Conn {
            number,
            address,
            registry: Arc::clone(self),
            phase: AtomicU64::new(self.tick() << 8 | Phase::New as u64),
            stalled: AtomicU64::new(0),
            waker: AtomicWaker::new(),
        });
        open.conns.insert(number, Arc::downgrade(&conn));
        if let Some(address) = address {
            open.per_address.insert(address, of_address + 1);
        }
        self.counters.accepted.fetch_add(1, Ordering::Relaxed);
        self.counters.open.store(open.conns.len() as u64, Ordering::Relaxed);
        Ok(conn)
    }

    fn leave(&self, number: u64, address: Option<IpAddr>) {
        let mut open = self.lock();
        open.conns.remove(&number);
        if let Some(address) = address {
            match open.per_address.get_mut(&address) {
                Some(count) if *count > 1 => *count -= 1,
                _ => drop(open.per_address.remove(&address)),
            }
        }
        self.counters.open.store(open.conns.len() as u64, Ordering::Relaxed);
        if open.conns.is_empty() {
            self.emptied.notify_waiters();
        }
    }

    /// Wakes the connections that have waited too long. Never returns.
    pub(super) async fn sweep(&self) -> Infallible {
        loop {
            tokio::time::sleep(self.tick_length).await;
            let ticks = self.started.elapsed().as_nanos() / self.tick_length.as_nanos();
            self.tick.store(u64::try_from(ticks).unwrap_or(u64::MAX >> 16), Ordering::Relaxed);
            self.wake(|conn| conn.overdue().is_some());
        }
    }

    fn wake(&self, which: impl Fn(&Conn) -> bool) {
        // Collected first, because dropping the last reference to a connection takes the lock again.
        let conns: Vec<Arc<Conn>> = self.lock().conns.values().filter_map(std::sync::Weak::upgrade).collect();
        conns.iter().filter(|conn| which(conn)).for_each(|conn| conn.waker.wake());
    }

    /// Every connection ends after its current request.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake(|_| true);
    }

    /// Every connection ends now. Returns their number.
    pub(super) fn cut_off(&self) -> usize {
        self.cut_off.store(true, Ordering::Relaxed);
        self.wake(|_| true);
        self.lock().conns.len()
    }

    pub(super) async fn emptied(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.lock().conns.is_empty() {
                return;
            }
            emptied.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_quarter_of_the_connections_unless_it_is_configured() {
        let from = |text: &str| text.parse().expect("an address");
        let registry = |limits: &Limits| Registry::new(limits, Capacity::of(limits, None), Arc::default());
        let default = registry(&Limits { connections: 8, ..Limits::default() });
        let mut held =
            vec![default.admit(from("10.0.0.7")).expect("room"), default.admit(from("10.0.0.7")).expect("room")];
        assert_eq!(default.admit(from("10.0.0.7")).err(), Some(Rejection::OfAddress));
        // Others are not affected, and this machine is exempt.
        held.push(default.admit(from("10.0.0.8")).expect("room"));
        held.extend((0..5).map(|_| default.admit(from("127.0.0.1")).expect("room")));
        assert_eq!(default.admit(from("127.0.0.1")).err(), Some(Rejection::All));
        drop(held.drain(..2));
        held.push(default.admit(from("10.0.0.7")).expect("room again"));

        let configured = registry(&Limits { connections_per_address: Some(1), ..Limits::default() });
        let _one = configured.admit(from("2001:db8::1")).expect("room");
        assert_eq!(configured.admit(from("2001:db8::2")).err(), Some(Rejection::OfAddress));
        assert!(configured.admit(from("2001:db8:0:1::2")).is_ok());
    }
}
