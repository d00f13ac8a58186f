//! Clients that do harm: they take connections and never finish what they began.

use std::io::Write;
use std::net::TcpStream;

/// Connections of bad clients; closed when dropped.
pub(crate) struct BadClients(Vec<TcpStream>);

impl BadClients {
    /// Some wait in the middle of a head, some in the middle of a body, some never read what they asked for.
    pub(crate) fn stuck(address: &str, token: &str, count: usize) -> Self {
        let requests = [
            "POST /api/v1/leases HTTP/1.1\r\nhost: ".to_owned(),
            format!(
                "POST /api/v1/leases HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
                 content-type: application/json\r\ncontent-length: 1000\r\n\r\n{{\"asks\": ["
            ),
            format!("GET /api/v1/events?after=0 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n"),
            format!("GET /api/v1/audit/export HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n"),
            String::new(),
        ];
        let open = |request: &String| -> Option<TcpStream> {
            let mut stream = TcpStream::connect(address).ok()?;
            stream.write_all(request.as_bytes()).ok()?;
            Some(stream)
        };
        Self(requests.iter().cycle().take(count).filter_map(open).collect())
    }

    /// Idle connections: more than the daemon may open files.
    pub(crate) fn idle(address: &str, count: usize) -> Self {
        Self((0..count).filter_map(|_| TcpStream::connect(address).ok()).collect())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}
