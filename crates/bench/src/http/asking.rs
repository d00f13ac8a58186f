//! One connection that repeats a query.

use super::child::Served;
use super::fetch::fetch;
use super::load::{self, Client, Until};
use super::request::get;
use std::net::SocketAddr;
use std::time::{Duration, Instant as Stopwatch};

struct Asking<P> {
    token: String,
    path: P,
    asked: u64,
}

impl<P: FnMut(u64) -> String> Client for Asking<P> {
    fn next(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&get(&(self.path)(self.asked), &self.token));
        self.asked += 1;
    }

    fn take(&mut self, status: u16, body: &[u8]) -> u64 {
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(body));
        1
    }
}

/// The 99th percentile of the latency, in microseconds.
pub(crate) fn p99_us((address, token): (SocketAddr, &str), path: impl FnMut(u64) -> String) -> f64 {
    let asking = Asking { token: token.to_owned(), path, asked: 0 };
    load::run(address, vec![asking], Until::Passed(Duration::from_secs(2))).percentile(990)
}

/// Repeats a query until it succeeds: it fails while the books are being opened.
pub(crate) fn wait_for(served: &Served, path: &str) {
    let began = Stopwatch::now();
    loop {
        let (status, body) = fetch(served, &get(path, &served.token));
        if status == 200 {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(180), "{}", String::from_utf8_lossy(&body));
    }
}
