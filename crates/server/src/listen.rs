//! The accept loop: connections in, requests to the application, answers back; nobody holds more than the limits allow.
//!
//! A connection has no timer of its own. It notes what it waits for and since when, by a clock that ticks a few times
//! a second; one sweep per tick goes through all connections and wakes those whose time is up. So a request costs a
//! few plain stores here: no timer, no lock, no allocation beyond what hyper and the application make.

mod connection;
mod watch;

use crate::config::Limits;
use crate::tls::Tls;
use axum::body::Body;
pub use connection::http_settings;
use connection::{Peered, Watched, serve_connection};
use hyper::{Request, Response};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use watch::{Registry, Turned};

/// How long requests in flight have to finish once the daemon stops.
const GRACE: Duration = Duration::from_secs(30);
/// Connections the system keeps while we are busy accepting others.
const BACKLOG: u32 = 1024;
/// How many that are turned away are told why at the same time; the rest are just closed.
const TOLD_AT_ONCE: usize = 64;
/// How long one that is turned away has to read why.
const TELLING: Duration = Duration::from_secs(1);

/// Who is at the other end; in the extensions of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub address: SocketAddr,
    pub tls: bool,
}

/// What became of connections, for the metrics.
#[derive(Debug, Default)]
pub struct Counters {
    pub open: AtomicU64,
    pub accepted: AtomicU64,
    /// Beyond the limits.
    pub turned_away: AtomicU64,
    /// Closed, or answered with 408, because the client took too long.
    pub timed_out: AtomicU64,
    pub handshakes_failed: AtomicU64,
    pub accept_errors: AtomicU64,
}

/// A listener that finds dead peers and can be bound again at once after a restart.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    // What is accepted inherits it.
    socket.set_keepalive(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Lets this process open as many files as it ever may: every connection is one. Returns how many that is.
pub fn raise_file_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    setrlimit(Resource::Nofile, raised).map_or(limit.current, |()| limit.maximum)
}

/// Serves `app` until `shutdown` is done and the requests in flight have been answered, or have had half a minute for it.
///
/// `app` must always be ready, as a router is. Streams of events never end by themselves: whoever feeds them ends them
/// when the daemon stops.
pub async fn serve<S>(
    listener: TcpListener,
    tls: Option<Tls>,
    app: S,
    limits: &Limits,
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
    limits: &Limits,
    counters: Arc<Counters>,
    shutdown: impl Future<Output = ()>,
) where
    S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    warn_of_few_files(limits);
    let registry = Registry::new(limits, counters);
    let accept = Accept {
        tls: tls.map(|tls| tls.acceptor()),
        app,
        registry: Arc::clone(&registry),
        telling: Arc::new(Semaphore::new(TOLD_AT_ONCE)),
        handshake: limits.header_timeout.into(),
    };
    tokio::select! {
        () = shutdown => {}
        never = accept.run(&listener) => match never {},
        never = registry.sweep() => match never {},
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
        tracing::warn!(connections = left, "requests that were still in flight after {grace:?} were cut off");
        registry.emptied().await;
    }
}

/// Files that are open beside connections: the journal's, the log, the runtime's own.
const FILES_BESIDE: u64 = 256;

fn warn_of_few_files(limits: &Limits) {
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    let wanted = u64::from(limits.connections) + FILES_BESIDE;
    if files < wanted {
        tracing::warn!(
            files,
            wanted,
            "fewer files may be open than limits.connections needs; raise LimitNOFILE, or lower it"
        );
    }
}

struct Accept<S> {
    tls: Option<tokio_rustls::TlsAcceptor>,
    app: S,
    registry: Arc<Registry>,
    telling: Arc<Semaphore>,
    handshake: Duration,
}

impl<S> Accept<S>
where
    S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send,
{
    async fn run(&self, listener: &TcpListener) -> Infallible {
        let mut rest = Rest::default();
        loop {
            match listener.accept().await {
                Ok((stream, address)) => {
                    rest = Rest::default();
                    self.take(stream, address);
                }
                // One that went away while it was waiting; the next may be fine.
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    self.registry.counters.accept_errors.fetch_add(1, Ordering::Relaxed);
                    let pause = rest.longer();
                    tracing::error!("no connection can be accepted, trying again in {pause:?}: {error}");
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }

    fn take(&self, stream: TcpStream, address: SocketAddr) {
        let conn = match self.registry.admit(address.ip()) {
            Ok(conn) => conn,
            Err(turned) => return self.turn_away(stream, turned),
        };
        // Answers are short and wanted now. Where it cannot be set they come a little later.
        let _ = stream.set_nodelay(true);
        let peer = Peer { address, tls: self.tls.is_some() };
        let app = Peered { app: self.app.clone(), peer };
        match &self.tls {
            None => drop(tokio::spawn(serve_connection(Watched::new(stream, Arc::clone(&conn)), app, conn))),
            Some(acceptor) => {
                let shaking = acceptor.accept(stream);
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

    /// Says why in plain HTTP, where there is someone to say it; never waits for it here.
    fn turn_away(&self, mut stream: TcpStream, turned: Turned) {
        let Ok(telling) = Arc::clone(&self.telling).try_acquire_owned() else { return };
        if self.tls.is_some() {
            return;
        }
        drop(tokio::spawn(async move {
            let _telling = telling;
            let tell = async {
                stream.write_all(turned.answer().as_bytes()).await?;
                stream.shutdown().await?;
                // Closing before the request has been read would take the answer back.
                let mut rest = [0; 1024];
                while stream.read(&mut rest).await? > 0 {}
                io::Result::Ok(())
            };
            // Whoever is not there to be told needs no telling.
            let _ = tokio::time::timeout(TELLING, tell).await;
        }));
    }
}

/// Pauses after errors that are ours, such as too many open files: longer each time, never long.
#[derive(Default)]
struct Rest(u32);

impl Rest {
    fn longer(&mut self) -> Duration {
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
