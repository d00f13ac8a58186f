//! The load generator: connections with one outstanding request each, on one thread.

use super::request::answer;
use rustix::event::epoll;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant as Stopwatch};

/// One connection and its client.
pub(super) struct Connection<C> {
    stream: TcpStream,
    received: Vec<u8>,
    sent_at: Stopwatch,
    answered: u64,
    pub(super) client: C,
}

/// When a load ends.
#[derive(Clone, Copy)]
pub(super) enum Until {
    Passed(Duration),
    /// This many answers on every connection: the amount of work does not depend on the speed, and all of it completes.
    Answered(u64),
}

/// Generates the requests of a connection.
pub(super) trait Client {
    /// The next request.
    fn next(&mut self, out: &mut Vec<u8>);
    /// Takes an answer; returns the number of operations in it.
    fn take(&mut self, status: u16, body: &[u8]) -> u64;
}

/// A client that is used again after this load.
impl<C: Client> Client for &mut C {
    fn next(&mut self, out: &mut Vec<u8>) {
        (**self).next(out);
    }
    fn take(&mut self, status: u16, body: &[u8]) -> u64 {
        (**self).take(status, body)
    }
}

pub(super) struct Loaded {
    pub(super) operations: u64,
    pub(super) seconds: f64,
    /// Latency of each request in microseconds, sorted.
    pub(super) took_us: Vec<u32>,
}

impl Loaded {
    pub(super) fn per_second(&self) -> f64 {
        self.operations as f64 / self.seconds
    }
    pub(super) fn percentile(&self, per_mille: usize) -> f64 {
        let at = (self.took_us.len() * per_mille / 1000).min(self.took_us.len() - 1);
        f64::from(self.took_us[at])
    }
}

/// Keeps every client busy until the end of the load.
pub(super) fn run<C: Client>(address: SocketAddr, clients: Vec<C>, until: Until) -> Loaded {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("epoll");
    let mut request = Vec::new();
    let mut connections: Vec<Connection<C>> = Vec::new();
    for client in clients {
        let stream = TcpStream::connect(address).expect("the daemon listens");
        stream.set_nodelay(true).expect("a socket");
        stream.set_nonblocking(true).expect("a socket");
        let place = epoll::EventData::new_u64(connections.len() as u64);
        epoll::add(&poll, &stream, place, epoll::EventFlags::IN).expect("epoll");
        connections.push(Connection { stream, received: Vec::new(), sent_at: Stopwatch::now(), answered: 0, client });
    }
    for connection in &mut connections {
        connection.send(&mut request);
    }
    let began = Stopwatch::now();
    let (mut operations, mut took_us) = (0, Vec::with_capacity(1 << 20));
    let mut events: Vec<epoll::Event> = Vec::with_capacity(256);
    let mut busy = connections.len();
    while match until {
        Until::Passed(length) => began.elapsed() < length,
        Until::Answered(_) => busy > 0,
    } {
        events.clear();
        let timeout = rustix::event::Timespec { tv_sec: 1, tv_nsec: 0 };
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)).expect("epoll");
        for event in &events {
            let connection = &mut connections[event.data.u64() as usize];
            if let Some(done) = connection.receive() {
                took_us.push(u32::try_from(connection.sent_at.elapsed().as_micros()).unwrap_or(u32::MAX));
                operations += done;
                connection.answered += 1;
                if matches!(until, Until::Answered(each) if connection.answered == each) {
                    busy -= 1;
                } else {
                    connection.send(&mut request);
                }
            }
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    took_us.sort_unstable();
    Loaded { operations, seconds, took_us }
}

impl<C: Client> Connection<C> {
    fn send(&mut self, request: &mut Vec<u8>) {
        request.clear();
        self.client.next(request);
        self.sent_at = Stopwatch::now();
        let mut rest = request.as_slice();
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(written) => rest = &rest[written..],
                // A batch can be larger than the buffer of the socket.
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
                Err(error) => panic!("the daemon went away: {error}"),
            }
        }
    }

    /// Reads what arrived; returns the number of operations once the answer is complete.
    fn receive(&mut self) -> Option<u64> {
        let mut piece = [0u8; 64 * 1024];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => panic!("the daemon closed a connection"),
                Ok(read) => {
                    self.received.extend_from_slice(&piece[..read]);
                    if read < piece.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("the daemon went away: {error}"),
            }
        }
        let (status, body, length) = answer(&self.received)?;
        let done = self.client.take(status, body);
        self.received.drain(..length);
        Some(done)
    }
}
