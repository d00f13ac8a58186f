//! Confirms teardowns to the daemon, many leases per request.

use super::work::LeaseId;
use leasehold_client::api::ConfirmTeardowns;
use leasehold_client::{Client, Error};
use std::time::Duration;

/// Leases per request; far below the daemon's limit.
const LEASES_MAX: usize = 256;
const TIMEOUT: Duration = Duration::from_secs(20);

/// The result for one lease.
#[derive(Debug)]
pub(crate) enum Confirmation {
    /// Recorded at this sequence or before.
    Confirmed(u64),
    /// Refused, or the outcome is unknown.
    Refused(String),
}

/// Confirms teardowns. An error means that the daemon no longer accepts this agent.
pub(crate) async fn confirm(
    client: &Client,
    node: &str,
    generation: u64,
    leases: Vec<LeaseId>,
) -> Result<Vec<(LeaseId, Confirmation)>, Error> {
    let mut confirmed = Vec::with_capacity(leases.len());
    for leases in leases.chunks(LEASES_MAX) {
        match send(client, node, generation, leases).await {
            // If all were refused, the daemon gives only one reason, so each lease is sent by itself.
            Err(error) if error.is_final() && !is_about_agent(&error) && leases.len() > 1 => {
                for lease in leases {
                    let one = std::slice::from_ref(lease);
                    confirmed.extend(results(one, send(client, node, generation, one).await)?);
                }
            }
            answer => confirmed.extend(results(leases, answer)?),
        }
    }
    Ok(confirmed)
}

type Answer = Result<leasehold_client::api::TeardownsConfirmed, Error>;

async fn send(client: &Client, node: &str, generation: u64, leases: &[LeaseId]) -> Answer {
    let leases = leases.iter().map(|lease| lease.as_str().to_owned()).collect();
    let body = ConfirmTeardowns { generation: Some(generation), leases };
    client.confirm_teardowns(node, &body).within(TIMEOUT).await
}

fn results(leases: &[LeaseId], answer: Answer) -> Result<Vec<(LeaseId, Confirmation)>, Error> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) if is_about_agent(&error) => return Err(error),
        Err(error) => {
            let refused = |lease: &LeaseId| (lease.clone(), Confirmation::Refused(error.to_string()));
            return Ok(leases.iter().map(refused).collect());
        }
    };
    // There is one record per tenant, so the last one is at most this far behind the first.
    let sequence = answer.sequence.saturating_add(leases.len() as u64);
    let result = |lease: &LeaseId| {
        let confirmation = if answer.confirmed.iter().any(|confirmed| confirmed == lease.as_str()) {
            Confirmation::Confirmed(sequence)
        } else {
            let why = answer.refused.get(lease.as_str()).map(ToString::to_string);
            Confirmation::Refused(why.unwrap_or_else(|| "the daemon gave no reason".into()))
        };
        (lease.clone(), confirmation)
    };
    Ok(leases.iter().map(result).collect())
}

/// Whether the daemon rejects this agent altogether: it was replaced, or its token is not valid.
pub(crate) fn is_about_agent(error: &Error) -> bool {
    let status = error.problem().map(|problem| problem.status);
    matches!(status, Some(401 | 403)) || matches!(error.code(), "stale_generation" | "unknown_node")
}
