//! Requests as bytes, and the parts of answers that the load generator reads.

use super::child::TENANTS;
use crate::work::Dice;

/// The bytes of a POST.
pub(super) fn post(path: &str, token: &str, key: Option<u64>, body: &str) -> Vec<u8> {
    let key = key.map_or_else(String::new, |key| format!("idempotency-key: {key:016x}\r\n"));
    format!(
        "POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {token}\r\n{key}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The bytes of a GET.
pub(super) fn get(path: &str, token: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {token}\r\n\r\n").into_bytes()
}

/// The body of a request for a lease.
pub(super) fn ask(dice: &mut Dice) -> String {
    let (tenant, cores) = (dice.below(u64::from(TENANTS)), 1 + dice.below(2));
    format!(
        r#"{{"tenant":"tenant-{tenant:04}","project":"main","pool":"main","asks":[{{"class":"cpu","quantity":{cores}}}],"ttl":"1h"}}"#
    )
}

/// The body of a request that no node can satisfy.
pub(super) fn ask_too_much(dice: &mut Dice) -> String {
    let tenant = dice.below(u64::from(TENANTS));
    format!(
        r#"{{"tenant":"tenant-{tenant:04}","project":"main","asks":[{{"class":"cpu","quantity":5000}}],"ttl":"1h"}}"#
    )
}

/// A complete answer at the beginning of `bytes`: its status, its body, and its total length.
pub(super) fn answer(bytes: &[u8]) -> Option<(u16, &[u8], usize)> {
    let head = bytes.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&bytes[..head]).expect("a head is text");
    let status = text.get(9..12)?.parse().ok()?;
    let lower = text.to_ascii_lowercase();
    let length: usize = lower.split("content-length: ").nth(1)?.split("\r\n").next()?.parse().ok()?;
    (bytes.len() >= head + length).then(|| (status, &bytes[head..head + length], head + length))
}

/// The ids of the leases in an answer.
pub(super) fn lease_ids(body: &[u8]) -> impl Iterator<Item = &str> {
    let text = std::str::from_utf8(body).expect("JSON is text");
    text.split(r#""leases":[{"id":""#).skip(1).filter_map(|rest| rest.split('"').next())
}

/// The number of successful operations of a batch.
pub(super) fn done(body: &[u8]) -> u64 {
    let text = std::str::from_utf8(body).expect("JSON is text");
    text.matches(r#"{"status":20"#).count() as u64
}
