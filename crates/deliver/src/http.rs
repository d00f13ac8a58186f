//! A small HTTP/1.1 client that connects to addresses that were checked, and to nothing else: it does not resolve,
//! follow redirects or use a proxy. Connections are kept for the next request to the same address and name.

use crate::limits::ANSWER_BYTES_MAX;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

/// How long an unused connection is kept.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// The most unused connections, of which each is an open file, and the most to one address.
const IDLE_CONNECTIONS_MAX: usize = 1_024;
const IDLE_PER_ADDRESS_MAX: usize = 64;
/// How many addresses of a name are tried.
const ADDRESSES_MAX: usize = 4;

/// What a connection is used for: an address, and the name that the certificate has to have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Peer {
    address: SocketAddr,
    name: Option<ServerName<'static>>,
}

struct Idle {
    sender: SendRequest<Full<Bytes>>,
    since: Instant,
}

/// Unused connections, and how many there are.
#[derive(Default)]
struct Kept {
    by_peer: HashMap<Peer, Vec<Idle>>,
    count: usize,
}

impl Kept {
    fn take(&mut self, peer: &Peer) -> Option<SendRequest<Full<Bytes>>> {
        let kept = self.by_peer.get_mut(peer)?;
        while let Some(idle) = kept.pop() {
            self.count -= 1;
            if idle.is_usable() {
                return Some(idle.sender);
            }
        }
        self.by_peer.remove(peer);
        None
    }

    fn put(&mut self, peer: &Peer, sender: SendRequest<Full<Bytes>>) {
        if self.count >= IDLE_CONNECTIONS_MAX {
            self.by_peer.retain(|_, kept| {
                kept.retain(Idle::is_usable);
                !kept.is_empty()
            });
            self.count = self.by_peer.values().map(Vec::len).sum();
        }
        if self.count < IDLE_CONNECTIONS_MAX {
            let kept = self.by_peer.entry(peer.clone()).or_default();
            if kept.len() < IDLE_PER_ADDRESS_MAX {
                kept.push(Idle { sender, since: Instant::now() });
                self.count += 1;
            }
        }
    }
}

impl Idle {
    fn is_usable(&self) -> bool {
        self.since.elapsed() < IDLE_MAX && !self.sender.is_closed()
    }
}

/// The answer to a request, with as much of its body as is read.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Bytes,
}

/// What went wrong. Contains no header and no body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpError(pub(crate) String);

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for HttpError {}

pub(crate) struct Client {
    tls: TlsConnector,
    idle: Mutex<Kept>,
    /// How long the body of an answer is awaited. What became of the request is known before.
    body_time: Duration,
}

/// The certificates in a PEM file.
pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, HttpError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    all.map_err(|error| HttpError(format!("the certificates cannot be read: {error}")))
}

impl Client {
    /// Trusts the roots of the system, and these.
    pub(crate) fn new(roots: Vec<CertificateDer<'static>>, body_time: Duration) -> Result<Self, HttpError> {
        let unusable = |error: rustls::Error| HttpError(format!("TLS cannot be used: {error}"));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::new_with_extra_roots(roots, Arc::clone(&provider)).map_err(unusable)?;
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(unusable)?.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = config.with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { tls: TlsConnector::from(Arc::new(config)), idle: Mutex::default(), body_time })
    }

    /// Sends the request to one of these addresses. `name` is what the certificate is for; without it there is no TLS.
    pub(crate) async fn send(
        &self,
        addresses: &[SocketAddr],
        name: Option<ServerName<'static>>,
        request: Request<Full<Bytes>>,
    ) -> Result<Answer, HttpError> {
        let peers = addresses.iter().take(ADDRESSES_MAX).map(|address| Peer { address: *address, name: name.clone() });
        let peers: Vec<_> = peers.collect();
        if let Some((peer, mut sender)) = peers.iter().find_map(|peer| self.take(peer).map(|sender| (peer, sender))) {
            // If it fails, the other side has probably closed it meanwhile: once more over a new connection.
            if sender.ready().await.is_ok()
                && let Ok(response) = sender.send_request(request.clone()).await
            {
                return self.answer(peer, sender, response).await;
            }
        }
        let mut last = HttpError("there is no address".to_owned());
        for peer in &peers {
            match self.connect(peer).await {
                Err(error) => last = error,
                Ok(mut sender) => {
                    let response = sender.send_request(request).await.map_err(|error| failed(&error))?;
                    return self.answer(peer, sender, response).await;
                }
            }
        }
        Err(last)
    }

    async fn answer(
        &self,
        peer: &Peer,
        sender: SendRequest<Full<Bytes>>,
        response: Response<Incoming>,
    ) -> Result<Answer, HttpError> {
        let (head, mut incoming) = response.into_parts();
        let mut body = BytesMut::new();
        // The status has been received: the rest may be missing.
        let is_whole = tokio::time::timeout(self.body_time, async {
            while let Some(frame) = incoming.frame().await {
                let Ok(frame) = frame else { return false };
                if let Some(chunk) = frame.data_ref() {
                    let room = ANSWER_BYTES_MAX - body.len();
                    body.extend_from_slice(&chunk[..chunk.len().min(room)]);
                    if chunk.len() > room {
                        return false;
                    }
                }
            }
            true
        });
        let is_whole = is_whole.await.unwrap_or(false);
        if is_whole {
            self.put_back(peer, sender);
        }
        let retry_after = head.headers.get(hyper::header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        Ok(Answer { status: head.status.as_u16(), retry_after: retry_after.map(str::to_owned), body: body.freeze() })
    }

    async fn connect(&self, peer: &Peer) -> Result<SendRequest<Full<Bytes>>, HttpError> {
        let said = |error: std::io::Error| HttpError(format!("cannot connect to {}: {error}", peer.address));
        let stream = TcpStream::connect(peer.address).await.map_err(said)?;
        stream.set_nodelay(true).map_err(said)?;
        match &peer.name {
            None => open(TokioIo::new(stream)).await,
            Some(name) => {
                let unsafe_peer = |error| HttpError(format!("TLS with {} failed: {error}", peer.address));
                let stream = self.tls.connect(name.clone(), stream).await.map_err(unsafe_peer)?;
                open(TokioIo::new(stream)).await
            }
        }
    }

    fn take(&self, peer: &Peer) -> Option<SendRequest<Full<Bytes>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).take(peer)
    }

    fn put_back(&self, peer: &Peer, sender: SendRequest<Full<Bytes>>) {
        if !sender.is_closed() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).put(peer, sender);
        }
    }
}

fn failed(error: &hyper::Error) -> HttpError {
    HttpError(format!("the request failed: {error}"))
}

/// Speaks HTTP over a connection, which a task of its own reads and writes.
async fn open<T>(stream: T) -> Result<SendRequest<Full<Bytes>>, HttpError>
where
    T: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(stream).await.map_err(|error| failed(&error))?;
    tokio::spawn(async move {
        // Whoever uses the connection gets the error.
        let _ = connection.await;
    });
    Ok(sender)
}
