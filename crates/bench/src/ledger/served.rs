//! A daemon in this process that answers over HTTP.

use crate::http::{bind, run_to_end};
use leasehold_server::Daemon;
use std::net::SocketAddr;
use std::sync::mpsc;
use tokio::sync::oneshot;

/// Serves while `ask` runs, and stops.
pub(super) fn served<T>(daemon: Daemon, ask: impl FnOnce(SocketAddr, &str) -> T) -> T {
    let token = daemon.operator_token.as_deref().expect("a new token").to_owned();
    let (stop, stopped) = oneshot::channel::<()>();
    let (say, said) = mpsc::channel();
    let serving = std::thread::spawn(move || {
        run_to_end(async move {
            let listener = bind();
            say.send(listener.local_addr().expect("an address")).expect("somebody waits for it");
            let stopped = async {
                let _ = stopped.await;
            };
            daemon.serve(listener, stopped).await.expect("a clean stop");
        });
    });
    let asked = ask(said.recv().expect("it listens"), &token);
    let _ = stop.send(());
    serving.join().expect("a clean stop");
    asked
}
