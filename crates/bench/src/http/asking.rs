//! One connection that asks the same sort of question over and over.

use super::child::Served;
use super::load::{self, Client, Until};
use super::request::{answer, get};
use std::io::{Read, Write};
use std::net::TcpStream;
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

/// How long 99 of 100 answers take at most, in microseconds.
pub(crate) fn p99_us(served: &Served, path: impl FnMut(u64) -> String) -> f64 {
    let asking = Asking { token: served.token.clone(), path, asked: 0 };
    load::run(served.address, vec![asking], Until::Passed(Duration::from_secs(4))).percentile(990)
}

/// Asks until the answer is there: books that are being opened say so.
pub(crate) fn wait_for(served: &Served, path: &str) {
    let began = Stopwatch::now();
    let mut stream = TcpStream::connect(served.address).expect("the daemon listens");
    loop {
        stream.write_all(&get(path, &served.token)).expect("the daemon reads");
        let (mut received, mut piece) = (Vec::new(), [0; 65_536]);
        let status = loop {
            let read = stream.read(&mut piece).expect("the daemon answers");
            assert!(read > 0, "the daemon hung up");
            received.extend_from_slice(&piece[..read]);
            if let Some((status, _, _)) = answer(&received) {
                break status;
            }
        };
        if status == 200 {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(180), "{}", String::from_utf8_lossy(&received));
    }
}
