//! Notifications to the service manager: ready, or stopping. Each is one datagram to the socket in `NOTIFY_SOCKET`;
//! without that variable nothing is sent.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The program is ready (`Type=notify`).
pub fn ready() {
    notify("READY=1");
}

/// The program is shutting down.
pub fn stopping() {
    notify("STOPPING=1");
}

fn notify(word: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(error) = send(socket.as_bytes(), word) {
        tracing::warn!("cannot send {word} to the service manager: {error}");
    }
}

/// The socket is a path, or `@` and an abstract name.
fn send(socket: &[u8], word: &str) -> io::Result<()> {
    let address = match socket.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(socket))?,
    };
    UnixDatagram::unbound()?.send_to_addr(word.as_bytes(), &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(on: &UnixDatagram) -> String {
        let mut word = [0; 64];
        let length = on.recv(&mut word).expect("a word");
        String::from_utf8_lossy(&word[..length]).into_owned()
    }

    #[test]
    fn notifications_are_sent_to_paths_and_abstract_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let on_path = UnixDatagram::bind(&path).expect("a socket");
        send(path.as_os_str().as_bytes(), "READY=1").expect("sent");
        assert_eq!(received(&on_path), "READY=1");
        let name = format!("leasehold-test-{}", std::process::id());
        let named = SocketAddr::from_abstract_name(name.as_bytes()).expect("a name");
        let on_name = UnixDatagram::bind_addr(&named).expect("a socket");
        send(format!("@{name}").as_bytes(), "STOPPING=1").expect("sent");
        assert_eq!(received(&on_name), "STOPPING=1");
        assert!(send(b"/nowhere/notify", "READY=1").is_err());
    }
}
