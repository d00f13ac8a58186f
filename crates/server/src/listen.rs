//! The accept loop: connections in, requests to the application, answers back, all within the limits.
//!
//! A connection has no timer of its own. It notes what it waits for and since when, by a clock that ticks a few times a
//! second; one sweep per tick checks all connections and wakes those that have waited too long. So a request costs a
//! few plain stores here: no timer, no lock, no allocation beyond those of hyper and the application.

mod capacity;
mod connection;
mod own_refusals;
mod registry;

use crate::config::Limits;
use crate::tls::Tls;
use axum::body::Body;
use capacity::Capacity;
pub use connection::http_settings;
use connection::{Peered, Watched, serve_connection};
use hyper::{Request, Response};
use own_refusals::{plain_http, send_last};
use registry::{Registry, Rejection};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Time that requests in flight have to finish after shutdown begins.
const GRACE: Duration = Duration::from_secs(30);
/// Connections that the system queues while others are being accepted.
const BACKLOG: u32 = 1024;
/// Time that a rejected client has to read the answer.
const REJECTION_TIMEOUT: Duration = Duration::from_secs(1);

/// The peer of a connection; in the extensions of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub address: SocketAddr,
    pub tls: bool,
}

/// Counters of connections, for the metrics.
#[derive(Debug, Default)]
pub struct Counters {
    pub open: AtomicU64,
    pub accepted: AtomicU64,
    /// Rejected because of the limits.
    pub turned_away: AtomicU64,
    /// Closed, or answered with 408, because the client took too long.
    pub timed_out: AtomicU64,
    pub handshakes_failed: AtomicU64,
    pub accept_errors: AtomicU64,
}

/// A listener with keep-alive that can be bound again immediately after a restart.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    // Accepted connections inherit it.
    socket.set_keepalive(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Raises the limit of open files to its maximum, because every connection is a file. Returns the new limit.
pub fn raise_file_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    setrlimit(Resource::Nofile, raised).map_or(limit.current, |()| limit.maximum)
}

/// Serves `app` until `shutdown` completes and the requests in flight are answered, at most for half a minute more.
///
/// New limits of connections apply as soon as they are sent. `app` must always be ready, as a router is. Event streams
/// do not end on their own: whoever feeds them must end them on shutdown.
pub async fn serve<S>(
    listener: TcpListener,
    tls: Option<Tls>,
    app: S,
    limits: watch::Receiver<Limits>,
    counters: Arc<Counters>,
    shutdown: impl Future<Output = ()>,
) where
    S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    serve_and_finish_within(GRACE, listener, tls, app, limits, counters, shutdown).await;
}

async fn serve_and_finish_within<S>(
    grace: Duration,
    listener: TcpListener,
    tls: Option<Tls>,
    app: S,
    limits: watch::Receiver<Limits>,
    counters: Arc<Counters>,
    shutdown: impl Future<Output = ()>,
) where
    S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    let at_start = limits.borrow().clone();
    let capacity = Capacity::of_process(&at_start);
    let registry = Registry::new(&at_start, capacity, counters);
    let accept = Accept {
        tls: tls.map(|tls| tls.acceptor()),
        app,
        registry: Arc::clone(&registry),
        permits: Arc::new(Semaphore::new(capacity.rejections)),
        handshake: at_start.header_timeout.into(),
    };
    tokio::select! {
        () = shutdown => {}
        never = accept.run(&listener) => match never {},
        never = registry.sweep() => match never {},
        never = follow_limits(&registry, limits) => match never {},
    }
    drop(listener);
    registry.stop();
    let all_gone = async {
        tokio::select! {
            () = registry.emptied() => {}
            never = registry.sweep() => match never {},
        }
    };
    if tokio::time::timeout(grace, all_gone).await.is_err() {
        let left = registry.cut_off();
        tracing::warn!(connections = left, "connections with requests still in flight after {grace:?} were closed");
        registry.emptied().await;
    }
}

/// Applies new limits of connections as they come. Time limits stay as they were at the start.
async fn follow_limits(registry: &Registry, mut limits: watch::Receiver<Limits>) -> Infallible {
    while limits.changed().await.is_ok() {
        let capacity = Capacity::of_process(&limits.borrow_and_update());
        registry.set_capacity(capacity);
    }
    std::future::pending().await
}

struct Accept<S> {
    tls: Option<TlsAcceptor>,
    app: S,
    registry: Arc<Registry>,
    permits: Arc<Semaphore>,
    handshake: Duration,
}

impl<S> Accept<S>
where
    S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    async fn run(&self, listener: &TcpListener) -> Infallible {
        let mut backoff = Backoff::default();
        loop {
            match listener.accept().await {
                Ok((stream, address)) => {
                    backoff = Backoff::default();
                    self.take(stream, address);
                }
                // The client disconnected before it was accepted; the next one may be fine.
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    self.registry.counters.accept_errors.fetch_add(1, Ordering::Relaxed);
                    // A client that waits in the queue of the system is accepted later: the loop must not spin.
                    let pause = backoff.next_pause();
                    tracing::error!("cannot accept connections, trying again in {pause:?}: {error}");
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    fn take(&self, stream: TcpStream, address: SocketAddr) {
        let conn = match self.registry.admit(address.ip()) {
            Ok(conn) => conn,
            Err(rejection) => return self.reject(stream, rejection),
        };
        // Answers are short and should be sent at once. If the option cannot be set, they are slightly delayed.
        let _ = stream.set_nodelay(true);
        let peer = Peer { address, tls: self.tls.is_some() };
        let app = Peered { app: self.app.clone(), peer };
        match &self.tls {
            None => drop(tokio::spawn(serve_connection(Watched::new(stream, Arc::clone(&conn)), app, conn))),
            Some(acceptor) => {
                let shaking = shake(acceptor.clone(), stream);
                let handshake = self.handshake;
                drop(tokio::spawn(async move {
                    let shaken = tokio::time::timeout(handshake, conn.until_stopping(shaking)).await;
                    match shaken {
                        Ok(Some(Ok(stream))) => {
                            serve_connection(Watched::new(stream, Arc::clone(&conn)), app, conn).await
                        }
                        Ok(None) => {}
                        Ok(Some(Err(_))) | Err(_) => conn.handshake_failed(),
                    }
                }));
            }
        }
    }

    /// Answers with the reason in plain HTTP, without blocking the accept loop.
    fn reject(&self, stream: TcpStream, rejection: Rejection) {
        let Ok(permits) = Arc::clone(&self.permits).try_acquire_owned() else { return };
        if self.tls.is_some() {
            return;
        }
        drop(tokio::spawn(async move {
            let _permits = permits;
            // If the client has disconnected, nobody needs the answer.
            let _ = tokio::time::timeout(REJECTION_TIMEOUT, send_last(stream, &rejection.answer())).await;
        }));
    }
}

/// The TLS handshake. A client that begins with anything but a handshake speaks plain HTTP, and is told so.
async fn shake(acceptor: TlsAcceptor, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
    /// The first byte of a TLS record that contains a handshake (RFC 8446, 5.1).
    const HANDSHAKE: u8 = 0x16;
    let mut first = [HANDSHAKE];
    stream.peek(&mut first).await?;
    if first != [HANDSHAKE] {
        send_last(stream, &plain_http()).await?;
        return Err(io::ErrorKind::InvalidData.into());
    }
    acceptor.accept(stream).await
}

/// Pauses after errors of this process, such as too many open files. Each is longer than the last, up to a limit.
#[derive(Default)]
struct Backoff(u32);

impl Backoff {
    fn next_pause(&mut self) -> Duration {
        self.0 = (self.0 + 1).min(6);
        Duration::from_millis(10) * 2u32.pow(self.0)
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests;
