//! Well-behaved clients: they request, renew and release leases, send every operation again under its key until it is
//! answered, and remember what was acknowledged.

use fastrand::Rng;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// No operation waits longer than this, restarts included.
const PATIENCE: Duration = Duration::from_secs(60);
/// Long enough to make records large: the journal should begin new segments.
const NAME: &str = "a-name-that-is-as-long-as-names-get-so-that-each-record-takes-some-space";

/// What all clients share.
pub(crate) struct Load {
    address: String,
    token: String,
    stop: AtomicBool,
    acknowledged: AtomicU64,
    book: Mutex<Book>,
}

/// What was sent, what was acknowledged, and how long it took.
#[derive(Default)]
pub(crate) struct Book {
    /// Every key that was ever sent.
    pub(crate) sent: BTreeSet<String>,
    /// The record that acknowledges a key.
    pub(crate) acknowledged: BTreeMap<String, u64>,
    /// How long a single operation took that was answered at the first attempt, in the order of the answers.
    pub(crate) latencies: Vec<Duration>,
}

impl Load {
    pub(crate) fn new(address: &str, token: String) -> Self {
        let (stop, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
        Self { address: address.to_owned(), token, stop, acknowledged, book: Mutex::default() }
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::SeqCst)
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    pub(crate) fn book(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().expect("no panic")
    }

    /// Notes keys that somebody else has sent.
    pub(crate) fn others_sent(&self, keys: impl Iterator<Item = String>) {
        self.book().sent.extend(keys);
    }

    /// Waits until so many more operations have been acknowledged; fails if nothing moves.
    pub(crate) fn wait_for(&self, more: u64) {
        let (until, goal) = (Instant::now() + PATIENCE, self.acknowledged() + more);
        while self.acknowledged() < goal {
            assert!(Instant::now() < until, "only {} of {goal} operations were acknowledged", self.acknowledged());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// One client, until it is stopped. Stops between operations, so that none is in doubt at the end.
    pub(crate) fn client(&self, number: u64, seed: u64) {
        let mut dice = Rng::with_seed(seed ^ (number << 32));
        let mut connection = None;
        let mut held: Vec<String> = Vec::new();
        for operation in 0u64.. {
            if self.stop.load(Ordering::SeqCst) {
                return;
            }
            let key = format!("client-{number}-{operation}");
            let chosen = dice.usize(..held.len().max(1));
            let (path, body) = match dice.u8(..3) {
                0 if !held.is_empty() => (format!("/api/v1/leases/{}/renew", held[chosen]), json!({ "ttl": "10m" })),
                1 if held.len() > 20 => (format!("/api/v1/leases/{}/release", held.swap_remove(chosen)), json!({})),
                _ => ("/api/v1/leases".to_owned(), request()),
            };
            if let Some(answer) = self.until_answered(&mut connection, &path, &key, &body)
                && let Some(lease) = answer["leases"][0]["id"].as_str()
            {
                held.push(lease.to_owned());
            }
        }
    }

    /// Many operations at once, to make the journal long: they are acknowledged like all others. Those that the daemon
    /// cannot take at the moment are sent again.
    pub(crate) fn bulk(&self, number: u64, operations: u64) {
        let mut keys: Vec<String> = (0..operations).map(|operation| format!("bulk-{number}-{operation}")).collect();
        self.book().sent.extend(keys.iter().cloned());
        let mut connection = None;
        while !keys.is_empty() {
            let list: Vec<Value> = keys.iter().map(|key| json!({ "key": key, "request": request() })).collect();
            let answer =
                self.until_answered(&mut connection, "/api/v1/leases/batch", "", &json!({ "operations": list }));
            let answer = answer.expect("a batch is answered");
            let results = answer["results"].as_array().expect("a result each");
            assert_eq!(results.len(), keys.len());
            for (key, result) in std::mem::take(&mut keys).into_iter().zip(results) {
                match result["status"].as_u64() {
                    Some(200..=299) => self.acknowledge(key, &result["granted"]),
                    Some(408 | 429 | 500..) => keys.push(key),
                    _ => panic!("{key} is answered {result}"),
                }
            }
        }
    }

    fn acknowledge(&self, key: String, answer: &Value) {
        let sequence = answer["sequence"].as_u64().unwrap_or_else(|| panic!("{key} without a record: {answer}"));
        let before = self.book().acknowledged.insert(key, sequence);
        assert_eq!(before, None, "one answer for an operation");
        self.acknowledged.fetch_add(1, Ordering::SeqCst);
    }

    /// Sends an operation until the daemon decides about it; `None` if it is refused for good.
    fn until_answered(
        &self,
        connection: &mut Option<Connection>,
        path: &str,
        key: &str,
        body: &Value,
    ) -> Option<Value> {
        if !key.is_empty() {
            self.book().sent.insert(key.to_owned());
        }
        let began = Instant::now();
        for attempt in 0u32.. {
            assert!(began.elapsed() < PATIENCE, "no answer for {key} in {PATIENCE:?}");
            let answer = match connection.take() {
                Some(open) => Ok(open),
                None => Connection::open(&self.address),
            }
            .and_then(|mut open| {
                let answer = open.post(&self.address, &self.token, path, key, &body.to_string())?;
                *connection = Some(open);
                Ok(answer)
            });
            match answer {
                Ok((200..=299, answer)) => {
                    if !key.is_empty() {
                        self.acknowledge(key.to_owned(), &answer);
                        if attempt == 0 {
                            self.book().latencies.push(began.elapsed());
                        }
                    }
                    return Some(answer);
                }
                // Busy, full, too late: the same operation is sent again under its key.
                Ok((408 | 429 | 500.., _)) | Err(_) => std::thread::sleep(Duration::from_millis(20)),
                // The lease may have ended meanwhile.
                Ok((404 | 409, _)) => return None,
                Ok((status, answer)) => panic!("{key} to {path} is answered {status}: {answer}"),
            }
        }
        None
    }
}

fn request() -> Value {
    json!({
        "asks": [{ "class": "cpu", "quantity": "0.001" }],
        "ttl": "10m",
        "workload": NAME,
        "hcl_entry": NAME,
        "dra_claim_id": NAME,
    })
}

/// A connection that is used again and again.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn open(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(Self(BufReader::new(stream)))
    }

    fn post(&mut self, host: &str, token: &str, path: &str, key: &str, body: &str) -> io::Result<(u16, Value)> {
        let key = if key.is_empty() { String::new() } else { format!("idempotency-key: {key}\r\n") };
        let head = format!("POST {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n{key}");
        let length = body.len();
        let sent = format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}");
        self.0.get_mut().write_all(sent.as_bytes())?;
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut length = 0;
        loop {
            line.clear();
            if self.0.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match line.trim_end().to_ascii_lowercase().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().map_err(|_| io::ErrorKind::InvalidData)?,
                Some(_) => {}
                None => break,
            }
        }
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes)?;
        Ok((status, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
    }
}
