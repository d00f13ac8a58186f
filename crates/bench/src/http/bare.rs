//! The bare server: the daemon's HTTP stack without the daemon. It reads the body of a request and answers with a
//! constant that the daemon gave to the same request before.
//!
//! It uses the crates, the socket options, the HTTP settings and the number of threads of the daemon, but neither its
//! router nor the time limits of its connections: it is as fast as the stack allows.

use super::child::{self, Served, Server};
use super::fetch::fetch_whole;
use super::request::{answer, ask, lease_ids, post};
use crate::scratch;
use crate::work::Dice;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_LENGTH, DATE, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use leasehold_server::listen;
use std::convert::Infallible;
use std::path::Path;

const ASKED: &str = "--serve-bare-for-bench";

/// The three requests of a round, by the end of their path.
const OPERATIONS: [&str; 3] = ["leases", "renew", "release"];

/// The bytes that the daemon answered to each request of a round.
pub(super) struct Answers([Vec<u8>; 3]);

fn requests(token: &str, lease: &str) -> [Vec<u8>; 3] {
    [
        post("/api/v1/leases", token, Some(u64::MAX), &ask(&mut Dice(0))),
        post(&format!("/api/v1/leases/{lease}/renew"), token, None, r#"{"ttl":"1h"}"#),
        post(&format!("/api/v1/leases/{lease}/release"), token, None, "{}"),
    ]
}

impl Answers {
    pub(super) fn record(served: &Served) -> Self {
        let fetch = |request: &[u8]| {
            let whole = fetch_whole(served.address(), request);
            assert!(matches!(answer(&whole), Some((200 | 201, _, _))), "{}", String::from_utf8_lossy(&whole));
            whole
        };
        let granted = fetch(&requests(&served.token, "")[0]);
        let lease = lease_ids(&granted).next().expect("a lease").to_owned();
        let [_, renew, release] = requests(&served.token, &lease);
        Self([granted, fetch(&renew), fetch(&release)])
    }
}

/// Starts the bare server, and checks that its answers are as long as those of the daemon.
pub(super) fn start(answers: &Answers, token: &str) -> Server {
    let folder = scratch::folder();
    for (operation, bytes) in OPERATIONS.iter().zip(&answers.0) {
        std::fs::write(folder.path().join(operation), bytes).expect("the directory can be written to");
    }
    let (server, _) = Server::start(ASKED, folder.path());
    for (request, recorded) in requests(token, &"0".repeat(32)).iter().zip(&answers.0) {
        assert_eq!(fetch_whole(server.address, request).len(), recorded.len(), "an answer of the same size");
    }
    server
}

/// In the child: serves the recorded answers until it is killed.
pub(super) fn serve_if_asked() -> bool {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some(ASKED) {
        return false;
    }
    let folder = arguments.next().expect("a directory");
    let constants = OPERATIONS.map(|operation| Constant::read(&Path::new(&folder).join(operation)));
    child::run_to_end(serve(Box::leak(Box::new(constants))));
    true
}

async fn serve(constants: &'static [Constant; 3]) {
    let listener = child::bind();
    child::report(&listener, "");
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let service = service_fn(|request| respond(request, constants));
        drop(tokio::spawn(listen::http_settings().serve_connection(TokioIo::new(stream), service)));
    }
}

async fn respond(
    request: Request<Incoming>,
    constants: &'static [Constant; 3],
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    let operation = OPERATIONS.iter().position(|operation| path.ends_with(operation)).expect("a request of a round");
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        frame.expect("a whole body");
    }
    Ok(constants[operation].response())
}

/// A recorded answer, without the headers that hyper writes itself.
struct Constant {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl Constant {
    fn read(file: &Path) -> Self {
        let bytes = std::fs::read(file).expect("a recorded answer");
        let (status, body, _) = answer(&bytes).expect("a whole answer");
        let head = std::str::from_utf8(&bytes[..bytes.len() - body.len()]).expect("a head is text");
        let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let header = |(name, value): (&str, &str)| {
            (name.parse::<HeaderName>().expect("a name"), HeaderValue::from_str(value).expect("a value"))
        };
        let headers = lines.map(header).filter(|(name, _)| *name != CONTENT_LENGTH && *name != DATE).collect();
        let body = Bytes::copy_from_slice(body);
        Self { status: StatusCode::from_u16(status).expect("a status"), headers, body }
    }

    fn response(&self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body.clone()));
        *response.status_mut() = self.status;
        for (name, value) in &self.headers {
            response.headers_mut().insert(name, value.clone());
        }
        response
    }
}
