//! A proxy between daemon and collector that can change answers.

use leasehold_model::RawBatch;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Gets the path and the body of each answer, and returns the body to forward; `None` leaves the request unanswered.
pub(crate) type Tamper = Box<dyn FnMut(&str, Vec<u8>) -> Option<Vec<u8>> + Send>;

pub(crate) struct Proxy {
    address: SocketAddr,
}

impl Proxy {
    pub(crate) fn before(daemon: SocketAddr, tamper: Tamper) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let tamper = Arc::new(Mutex::new(tamper));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, tamper) = (stream.expect("a connection"), Arc::clone(&tamper));
                // Either side may close the connection early.
                std::thread::spawn(move || pass(&stream, daemon, &tamper));
            }
        });
        Self { address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Forwards one request and its answer.
fn pass(mut stream: &TcpStream, daemon: SocketAddr, tamper: &Mutex<Tamper>) -> Option<()> {
    let mut head = String::new();
    let mut reader = BufReader::new(stream);
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let path = head.split(' ').nth(1)?.to_owned();
    let mut upstream = TcpStream::connect(daemon).ok()?;
    upstream.write_all(head.replacen("\r\n", "\r\nconnection: close\r\n", 1).as_bytes()).ok()?;
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer).ok()?;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let status = String::from_utf8_lossy(&answer[..end]).lines().next()?.to_owned();
    let Some(body) = tamper.lock().expect("no panic")(&path, answer[end..].to_vec()) else {
        // Until the other side closes the connection.
        let _ = stream.read(&mut [0]);
        return None;
    };
    let media = if status.contains(" 2") { "application/json" } else { "application/problem+json" };
    let head =
        format!("{status}\r\ncontent-type: {media}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&body).ok()
}

/// Changes the records of the batches in an answer, and encodes them as one batch.
pub(crate) fn batches(path: &str, body: Vec<u8>, change: impl FnOnce(&mut Vec<Frame>)) -> Option<Vec<u8>> {
    if !path.contains("/audit/batches") {
        return Some(body);
    }
    let mut frames = Vec::new();
    for batch in whole(&body) {
        for record in batch.records() {
            let record = record.expect("a frame");
            frames.push(Frame { bytes: record.bytes.to_vec(), signatures: record.signatures.to_vec() });
        }
    }
    change(&mut frames);
    Some(sealed(&frames))
}

/// The batches in an answer.
pub(crate) fn whole(mut bytes: &[u8]) -> Vec<RawBatch<'_>> {
    let mut batches = Vec::new();
    while !bytes.is_empty() {
        let batch = RawBatch::read(bytes).expect("a whole batch");
        bytes = &bytes[batch.bytes_total()..];
        batches.push(batch);
    }
    batches
}

/// One encoded record of a batch.
#[derive(Clone)]
pub(crate) struct Frame {
    pub(crate) bytes: Vec<u8>,
    pub(crate) signatures: Vec<u8>,
}

impl Frame {
    /// Replaces a text in the record by another one of the same length.
    pub(crate) fn replace(&mut self, from: &str, to: &str) {
        assert_eq!(from.len(), to.len());
        let at = self.bytes.windows(from.len()).position(|window| window == from.as_bytes()).expect("the text");
        self.bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
}

/// Encodes records as a batch with a correct checksum.
fn sealed(frames: &[Frame]) -> Vec<u8> {
    // Its MAC is for the daemon that wrote it; a collector has no secret to check it with.
    let mut payload = vec![0; 32];
    for frame in frames {
        let word = u32::try_from((frame.bytes.len() << 2) | (frame.signatures.len() / 64)).expect("a record is small");
        payload.extend(word.to_le_bytes());
        payload.extend(&frame.bytes);
        payload.extend(&frame.signatures);
    }
    let number = |n: usize| u32::try_from(n).expect("a batch is small").to_le_bytes();
    let sums = [number(payload.len()), number(frames.len())].concat();
    let crc = crc32fast::hash(&[sums.as_slice(), &payload].concat());
    [b"LHB2".as_slice(), &sums, &crc.to_le_bytes(), &payload].concat()
}
