//! A small HTTP server on loopback that keeps what it got and answers as it is told.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<&'static str>,
    pub(crate) location: Option<&'static str>,
    pub(crate) body_bytes: usize,
    pub(crate) hangs: bool,
    /// Answers, and the body never comes.
    pub(crate) stalls: bool,
    /// Takes the request, then closes the connection.
    pub(crate) closes: bool,
}

impl Default for Reply {
    fn default() -> Self {
        Self {
            status: 204,
            retry_after: None,
            location: None,
            body_bytes: 0,
            hangs: false,
            stalls: false,
            closes: false,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) method: String,
    pub(crate) path: String,
    headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Taken {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

#[derive(Default)]
struct State {
    reply: Mutex<Reply>,
    taken: Mutex<Vec<Taken>>,
    connections: AtomicUsize,
    close: Notify,
}

pub(crate) struct Receiver {
    state: Arc<State>,
    port: u16,
}

/// A port on which nothing listens.
pub(crate) async fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("bound").port()
}

impl Receiver {
    pub(crate) async fn start(certificate: Option<&rcgen::CertifiedKey<rcgen::KeyPair>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let tls = certificate.map(|made| {
            let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
            let config = config.expect("versions").with_no_client_auth();
            TlsAcceptor::from(Arc::new(config.with_single_cert(vec![made.cert.der().clone()], key).expect("a key")))
        });
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (state, tls) = (Arc::clone(&shared), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => {
                            state.connections.fetch_add(1, Ordering::SeqCst);
                            serve(stream, &state).await;
                        }
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                state.connections.fetch_add(1, Ordering::SeqCst);
                                serve(stream, &state).await;
                            }
                        }
                    }
                });
            }
        });
        Self { state, port }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
    pub(crate) fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.authority())
    }
    pub(crate) fn reply(&self, reply: Reply) {
        *self.state.reply.lock().expect("sound") = reply;
    }
    /// What it got since the last call.
    pub(crate) fn taken(&self) -> Vec<Taken> {
        std::mem::take(&mut *self.state.taken.lock().expect("sound"))
    }
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }
    /// Closes the connections on which nothing is asked.
    pub(crate) async fn close_idle(&self) {
        self.state.close.notify_waiters();
        tokio::task::yield_now().await;
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, state: &State) {
    let mut buffer = Vec::new();
    loop {
        let head = loop {
            if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            tokio::select! {
                read = stream.read_buf(&mut buffer) => {
                    if !matches!(read, Ok(bytes) if bytes > 0) {
                        return;
                    }
                }
                () = state.close.notified() => return,
            }
        };
        let text = String::from_utf8(buffer[..head].to_vec()).expect("ASCII");
        let mut lines = text.lines();
        let mut first = lines.next().expect("a request line").split(' ').map(str::to_owned);
        let pairs = lines.filter_map(|line| line.split_once(": "));
        let headers: HashMap<_, _> = pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        let length: usize = headers.get("content-length").map_or(0, |length| length.parse().expect("a number"));
        while buffer.len() < head + length {
            if !matches!(stream.read_buf(&mut buffer).await, Ok(bytes) if bytes > 0) {
                return;
            }
        }
        let body = buffer[head..head + length].to_vec();
        buffer.drain(..head + length);
        let (method, path) = (first.next().expect("a method"), first.next().expect("a path"));
        state.taken.lock().expect("sound").push(Taken { method, path, headers, body });
        let reply = *state.reply.lock().expect("sound");
        if reply.hangs {
            std::future::pending::<()>().await;
        }
        if reply.closes {
            return;
        }
        let mut answer = format!("HTTP/1.1 {} Answer\r\n", reply.status);
        if reply.status != 204 {
            answer += &format!("content-length: {}\r\n", reply.body_bytes);
        }
        for (name, value) in [("retry-after", reply.retry_after), ("location", reply.location)] {
            if let Some(value) = value {
                answer += &format!("{name}: {value}\r\n");
            }
        }
        answer += "\r\n";
        let mut bytes = answer.into_bytes();
        let body_bytes = if reply.stalls { 0 } else { reply.body_bytes };
        bytes.resize(bytes.len() + body_bytes, b'x');
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
