//! The ID of a request in the log and in its answer.

use axum::http::HeaderMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the longest ID that is accepted from a caller.
const BYTES_MAX: usize = 64;

/// The ID that the caller sent if it is valid, otherwise a generated one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RequestId {
    bytes: [u8; BYTES_MAX],
    length: u8,
}

impl RequestId {
    pub fn of(headers: &HeaderMap) -> Self {
        let mut sent = headers.get_all(super::REQUEST_ID).iter();
        match (sent.next(), sent.next()) {
            (Some(id), None) if is_valid(id.as_bytes()) => Self::from_bytes(id.as_bytes()),
            _ => Self::fresh(),
        }
    }

    /// A generated ID. IDs are unique within a process, and hardly ever repeat across processes. They neither show how
    /// many requests the daemon has answered nor in which order: that would tell one caller about the others.
    pub fn fresh() -> Self {
        static KEY: OnceLock<RandomState> = OnceLock::new();
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut number = permuted(KEY.get_or_init(RandomState::new), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut digits = [b'0'; 16];
        for digit in digits.iter_mut().rev() {
            *digit = b"0123456789abcdef"[usize::from(number.to_le_bytes()[0] & 15)];
            number >>= 4;
        }
        Self::from_bytes(&digits)
    }

    fn from_bytes(id: &[u8]) -> Self {
        let mut bytes = [0; BYTES_MAX];
        bytes[..id.len()].copy_from_slice(id);
        Self { bytes, length: u8::try_from(id.len()).expect("at most 64") }
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).expect("an id is ASCII")
    }
}

/// A secret permutation of the 64-bit numbers: a Feistel network with a keyed hash. Different numbers stay different.
fn permuted(key: &RandomState, number: u64) -> u64 {
    const HALF: u64 = u32::MAX as u64;
    let (mut left, mut right) = (number >> 32, number & HALF);
    for round in 0..4_u64 {
        (left, right) = (right, left ^ (key.hash_one((round, right)) & HALF));
    }
    left << 32 | right
}

/// Short, and without characters that have a special meaning in a log or a shell.
fn is_valid(id: &[u8]) -> bool {
    (1..=BYTES_MAX).contains(&id.len()) && id.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.:/=+@".contains(b))
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
