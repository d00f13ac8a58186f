//! Refusals of the listener itself, before there is a request that the application could answer.
//!
//! hyper answers a head that it cannot parse on its own, with a status and no body. [`Refusing`] recognises these
//! answers when they are written and sends a problem in their place.

use leasehold_api::codes::{BAD_REQUEST, HEAD_TOO_LARGE, URI_TOO_LONG};
use leasehold_api::{PROBLEM_JSON, Problem};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

/// A problem as a complete answer, after which the connection is closed.
pub(super) fn last_answer(reason: &str, problem: &Problem) -> String {
    let body = serde_json::to_string(problem).expect("a problem is valid JSON");
    let retry = problem.members.get("retry_after").map_or_else(String::new, |s| format!("retry-after: {s}\r\n"));
    format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: {PROBLEM_JSON}\r\ncontent-length: {}\r\n{retry}connection: close\r\n\r\n{body}",
        problem.status,
        body.len()
    )
}

/// The answer to a client that speaks plain HTTP on a port with TLS.
pub(super) fn plain_http() -> String {
    let problem = BAD_REQUEST.problem("This port requires TLS, and the request came without; use an https:// address.");
    last_answer("Bad Request", &problem)
}

/// Sends the last answer and waits until the client has read it: closing a connection with unread bytes would discard
/// the answer.
pub(super) async fn send_last(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &str) -> io::Result<()> {
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

/// A problem in place of an answer that hyper wrote for a head that it cannot parse. Answers of the application always
/// have a body.
fn in_place_of(written: &[u8]) -> Option<Vec<u8>> {
    let status = written.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    let (reason, problem) = match status {
        b"400" => ("Bad Request", BAD_REQUEST.problem("The request line or a header is not valid HTTP/1.1.")),
        b"414" => ("URI Too Long", URI_TOO_LONG.problem("The path and the query are too long.")),
        b"431" => {
            let detail = "The head of the request is larger than 32 KiB or has more than 100 fields.";
            ("Request Header Fields Too Large", HEAD_TOO_LARGE.problem(detail))
        }
        _ => return None,
    };
    let empty = written.ends_with(b"\r\n\r\n") && contains(written, b"\r\ncontent-length: 0\r\n");
    empty.then(|| last_answer(reason, &problem).into_bytes())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// A refusal that is being sent in place of another one.
struct Replaced {
    answer: Vec<u8>,
    sent: usize,
    /// Bytes of the answer that is replaced.
    original: usize,
}

/// A stream on which hyper's own refusals are replaced.
pub(super) struct Refusing<T> {
    stream: T,
    replaced: Option<Replaced>,
}

impl<T> Refusing<T> {
    pub(super) fn new(stream: T) -> Self {
        Self { stream, replaced: None }
    }
}

impl<T: AsyncWrite + Unpin> Refusing<T> {
    /// Sends the replacement, if there is one for these bytes.
    fn poll_replace(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Option<Poll<io::Result<usize>>> {
        if self.replaced.is_none() {
            let answer = in_place_of(bytes)?;
            self.replaced = Some(Replaced { answer, sent: 0, original: bytes.len() });
        }
        Some(self.poll_replaced(cx))
    }

    fn poll_replaced(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(replaced) = &mut self.replaced else { return Poll::Ready(Ok(0)) };
        while replaced.sent < replaced.answer.len() {
            let rest = &replaced.answer[replaced.sent..];
            match ready!(Pin::new(&mut self.stream).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => replaced.sent += written,
            }
        }
        let original = replaced.original;
        self.replaced = None;
        Poll::Ready(Ok(original))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Refusing<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Refusing<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.poll_replace(cx, bytes) {
            Some(replaced) => replaced,
            None => Pin::new(&mut self.stream).poll_write(cx, bytes),
        }
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // A refusal has no body, so it is the only slice.
        if let [only] = slices
            && let Some(replaced) = self.poll_replace(cx, only)
        {
            return replaced;
        }
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
