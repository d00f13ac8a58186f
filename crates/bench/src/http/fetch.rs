//! One question and its answer, where time does not matter.

use super::child::Served;
use super::request::answer;
use std::io::{Read, Write};
use std::net::TcpStream;

/// The answer to one request on a connection of its own: its status and its body.
pub(super) fn fetch(served: &Served, request: &[u8]) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(served.address).expect("the daemon listens");
    stream.write_all(request).expect("the daemon reads");
    let (mut received, mut piece) = (Vec::new(), [0; 65_536]);
    loop {
        let read = stream.read(&mut piece).expect("the daemon answers");
        assert!(read > 0, "the daemon hung up");
        received.extend_from_slice(&piece[..read]);
        if let Some((status, body, _)) = answer(&received) {
            return (status, body.to_vec());
        }
    }
}
