//! An HTTP server for tests: a function answers each request, and all requests are recorded.

use leasehold_api::Problem;
use leasehold_client::{Client, Config, Secret, Timeouts};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufStream};
use tokio::net::TcpListener;

#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// With its query.
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn key(&self) -> &str {
        self.headers.get("idempotency-key").expect("a change has a key")
    }
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

pub(crate) enum Reply {
    Json(u16, Value),
    Problem(Problem, Option<u64>),
    Raw(u16, &'static str, String),
    /// The connection is closed without an answer.
    Hangup,
    /// No answer, and the connection stays open.
    Silence,
    /// A stream: pieces with a pause before each, then the connection stays open or closes.
    Stream(Vec<(Duration, String)>, After),
}

pub(crate) enum After {
    Close,
    Stay,
}

type Answer = dyn Fn(usize, &Asked) -> Reply + Send + Sync;

#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Fake {
    /// Answers each request with the result of the function, which gets the number of earlier requests.
    pub(crate) async fn start(answer: impl Fn(usize, &Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let fake = Self { url, asked: Arc::default() };
        let asked = Arc::clone(&fake.asked);
        let answer: Arc<Answer> = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, Arc::clone(&answer), Arc::clone(&asked)));
            }
        });
        fake
    }

    pub(crate) fn config(&self) -> Config {
        let mut config = Config::new(&self.url).token(Secret::new("t0ken"));
        config.timeouts = Timeouts {
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(5),
            total: Duration::from_secs(20),
            listener: Duration::from_secs(20),
            silence: Duration::from_secs(20),
        };
        config
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.config()).expect("a client")
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The requests whose path contains this text.
    pub(crate) fn asked_for(&self, part: &str) -> Vec<Asked> {
        self.asked().into_iter().filter(|asked| asked.path.contains(part)).collect()
    }
}

pub(crate) async fn serve(
    socket: impl AsyncRead + AsyncWrite + Unpin,
    answer: Arc<Answer>,
    remembered: Arc<Mutex<Vec<Asked>>>,
) {
    let mut socket = BufStream::new(socket);
    while let Some(asked) = read(&mut socket).await {
        let before = {
            let mut remembered = remembered.lock().unwrap();
            remembered.push(asked.clone());
            remembered.len() - 1
        };
        let written = match answer(before, &asked) {
            Reply::Hangup => return,
            Reply::Silence => std::future::pending().await,
            Reply::Json(status, value) => write(&mut socket, status, "application/json", "", &value.to_string()).await,
            Reply::Raw(status, media, text) => write(&mut socket, status, media, "", &text).await,
            Reply::Problem(problem, retry_after) => {
                let more = retry_after.map_or(String::new(), |secs| format!("Retry-After: {secs}\r\n"));
                let text = serde_json::to_string(&problem).unwrap();
                write(&mut socket, problem.status, "application/problem+json", &more, &text).await
            }
            Reply::Stream(pieces, after) => {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
                let mut written = socket.write_all(head.as_bytes()).await.is_ok() && socket.flush().await.is_ok();
                for (pause, piece) in pieces {
                    tokio::time::sleep(pause).await;
                    let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
                    written = socket.write_all(chunk.as_bytes()).await.is_ok() && socket.flush().await.is_ok();
                }
                match after {
                    After::Close => return,
                    After::Stay => std::future::pending::<()>().await,
                }
                written
            }
        };
        if !written {
            return;
        }
    }
}

async fn read(socket: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Asked> {
    let mut line = String::new();
    socket.read_line(&mut line).await.ok().filter(|count| *count > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |text| text.parse().expect("a length"));
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.ok()?;
    Some(Asked { method, path, headers, body: String::from_utf8(body).expect("text") })
}

async fn write(socket: &mut (impl AsyncWrite + Unpin), status: u16, media: &str, more: &str, body: &str) -> bool {
    let length = body.len();
    let text = format!("HTTP/1.1 {status} X\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n{more}\r\n{body}");
    socket.write_all(text.as_bytes()).await.is_ok() && socket.flush().await.is_ok()
}
