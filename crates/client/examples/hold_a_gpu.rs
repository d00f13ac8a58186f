//! Holds one GPU while it works, and releases it at the end.
//!
//! ```sh
//! cargo run -p leasehold-client --example hold_a_gpu -- gpu-h100
//! ```
//!
//! The argument is the resource class. The daemon and the token are configured as for the `leasehold` command: with
//! `LEASEHOLD_URL` and `LEASEHOLD_TOKEN_FILE`, or in `~/.config/leasehold/config.yaml`. The token must belong to a
//! project, which is charged for the lease.

use leasehold_client::api::RequestLease;
use leasehold_client::{Client, Error, Keep, Lease, Named, Settings};
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;

#[tokio::main]
async fn main() -> ExitCode {
    let class = std::env::args().nth(1).unwrap_or_else(|| "gpu-h100".to_owned());
    let done = match connect() {
        Ok(client) => hold_a_gpu(&client, &class, train).await,
        Err(message) => Err(message),
    };
    match done {
        Ok(message) => {
            println!("{message}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("hold_a_gpu: {message}");
            ExitCode::FAILURE
        }
    }
}

/// A client with the settings of the user.
fn connect() -> Result<Client, String> {
    let settings = Settings::load(&Named::default()).map_err(|error| error.to_string())?;
    for warning in &settings.warnings {
        eprintln!("hold_a_gpu: {warning}");
    }
    Client::new(&settings.config).map_err(|error| error.to_string())
}

/// Requests one GPU, runs `work` while the lease is held, and releases the lease.
pub(crate) async fn hold_a_gpu<W: Future<Output = ()>>(
    client: &Client,
    class: &str,
    work: impl FnOnce(String) -> W,
) -> Result<String, String> {
    let request: RequestLease = serde_json::from_value(json!({
        "asks": [{ "class": class, "quantity": "1" }],
        "ttl": "2m",
        "workload": "hold_a_gpu",
    }))
    .expect("the request has valid fields");
    // The guard renews the lease in the background until it is released or dropped.
    let lease = Lease::request(client, &request, Keep::default()).await.map_err(|error| denial(&error))?;
    let node = lease.granted().node.clone();
    tokio::select! {
        () = work(node.clone()) => {
            lease.release().await.map_err(|error| format!("the lease was not released: {error}"))?;
            Ok(format!("The work on {node} is done, and the lease was released."))
        }
        lost = lease.lost() => {
            // Nothing runs any more. A real program would save its work here, before `lost.until`.
            lease.ready().await.map_err(|error| format!("{lost}; the daemon was not told: {error}"))?;
            Err(format!("the work on {node} was stopped: {lost}"))
        }
    }
}

/// Why there is no lease. The code is stable, so that a program can match on it; the text is for people.
fn denial(error: &Error) -> String {
    match error {
        Error::Problem(problem) => format!("no lease: {} ({})", problem.detail, problem.code),
        Error::Transport { .. } | Error::Protocol { .. } => format!("no lease: {error}"),
    }
}

/// Stands for the real work.
async fn train(node: String) {
    println!("Working on {node} for ten seconds.");
    tokio::time::sleep(Duration::from_secs(10)).await;
}
