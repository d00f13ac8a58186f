//! One connection.

use super::Peer;
use super::own_refusals::Refusing;
use super::registry::{Conn, Overdue, Phase};
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use leasehold_api::PROBLEM_JSON;
use leasehold_api::codes::REQUEST_TIMEOUT;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of the head of a request: a token, a trace and a cursor fit many times.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Bytes that are buffered for a slow client before the answer is read further.
const BUFFER_BYTES_MAX: usize = 128 * 1024;

/// The application together with the peer.
#[derive(Clone)]
pub(super) struct Peered<S> {
    pub(super) app: S,
    pub(super) peer: Peer,
}

/// How hyper serves a connection.
pub fn http_settings() -> http1::Builder {
    let mut http = http1::Builder::new();
    // The sweep enforces all time limits, for heads, bodies and answers. `pipeline_flush` is not set: with it hyper
    // buffers without limit for a client that does not read.
    http.header_read_timeout(None).max_header_size(HEAD_BYTES_MAX).max_buf_size(BUFFER_BYTES_MAX);
    http
}

/// Serves requests until the client disconnects, waits too long, or the daemon stops.
pub(super) async fn serve_connection<T, S>(stream: Watched<T>, app: Peered<S>, conn: Arc<Conn>)
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    let service = service_fn(|request: Request<Incoming>| answer(request, app.clone(), Arc::clone(&conn)));
    let mut serving = pin!(http_settings().serve_connection(TokioIo::new(stream), service));
    let mut shutting_down = false;
    poll_fn(|cx| {
        if conn.listen(cx.waker()) && !shutting_down {
            shutting_down = true;
            serving.as_mut().graceful_shutdown();
        }
        // Errors of a connection are caused by its client; hyper has sent an answer if it could.
        if serving.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        match conn.overdue() {
            Some(Overdue::Close) => {
                conn.timed_out();
                Poll::Ready(())
            }
            // The answer was created while `serving` was polled; it only has to be sent.
            Some(Overdue::Answer) | None => Poll::Pending,
        }
    })
    .await;
}

async fn answer<S>(
    request: Request<Incoming>,
    mut app: Peered<S>,
    conn: Arc<Conn>,
) -> Result<Response<Leaving>, Infallible>
where
    S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    conn.set(if request.body().is_end_stream() { Phase::Answer } else { Phase::Body });
    let arriving = Arc::clone(&conn);
    let mut request = request
        .map(|body| if body.is_end_stream() { Body::empty() } else { Body::new(Arriving { body, conn: arriving }) });
    request.extensions_mut().insert(app.peer);
    let mut answer = pin!(app.app.call(request));
    let answered = poll_fn(|cx| match conn.overdue() {
        Some(Overdue::Answer) => Poll::Ready(None),
        _ => answer.as_mut().poll(cx).map(Some),
    });
    let response = match answered.await {
        Some(Ok(response)) => response,
        None => {
            conn.timed_out();
            too_late()
        }
    };
    conn.set(Phase::Sending);
    Ok(response.map(|body| Leaving { body, conn }))
}

fn too_late() -> Response<Body> {
    let problem = REQUEST_TIMEOUT.problem(
        "The request did not arrive or was not answered in time; send it again with the same idempotency key.",
    );
    let mut response = Response::new(Body::from(serde_json::to_string(&problem).expect("a problem is valid JSON")));
    *response.status_mut() = hyper::StatusCode::REQUEST_TIMEOUT;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The body of a request, which notes when it has arrived.
struct Arriving {
    body: Incoming,
    conn: Arc<Conn>,
}

impl HttpBody for Arriving {
    type Data = Bytes;
    type Error = hyper::Error;
    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) || frame.is_ready() && self.body.is_end_stream() {
            self.conn.set(Phase::Answer);
        }
        frame
    }
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer, which notes when it has been sent.
struct Leaving {
    body: Body,
    conn: Arc<Conn>,
}

impl HttpBody for Leaving {
    type Data = Bytes;
    type Error = axum::Error;
    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }
    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.conn.set(Phase::Idle);
    }
}

/// A stream that notes when bytes arrive, and when the peer accepts none.
pub(super) struct Watched<T> {
    stream: Refusing<T>,
    conn: Arc<Conn>,
}

impl<T> Watched<T> {
    pub(super) fn new(stream: T, conn: Arc<Conn>) -> Self {
        Self { stream: Refusing::new(stream), conn }
    }
    fn note<R>(&self, written: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.conn.sent()
        } else {
            self.conn.stalled()
        }
        written
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.conn.received();
        }
        read
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.note(written)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.note(written)
    }
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.note(flushed)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.note(closed)
    }
}
