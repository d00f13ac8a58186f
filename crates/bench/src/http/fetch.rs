//! One request and its answer, outside what is measured.

use super::child::Served;
use super::request::answer;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// The answer to one request on its own connection: its status and its body.
pub(super) fn fetch(served: &Served, request: &[u8]) -> (u16, Vec<u8>) {
    let whole = fetch_whole(served.address(), request);
    let (status, body, _) = answer(&whole).expect("a whole answer");
    (status, body.to_vec())
}

/// The bytes of an answer, head and body.
pub(super) fn fetch_whole(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.write_all(request).expect("the server reads");
    let (mut received, mut piece) = (Vec::new(), [0; 65_536]);
    while answer(&received).is_none() {
        let read = stream.read(&mut piece).expect("the server answers");
        assert!(read > 0, "the server closed the connection");
        received.extend_from_slice(&piece[..read]);
    }
    received
}
