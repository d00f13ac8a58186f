//! Saying that leases are torn down, many at a time.

use super::work::LeaseId;
use leasehold_client::api::ConfirmTeardowns;
use leasehold_client::{Client, Error};
use std::time::Duration;

/// In one request, far below what the daemon takes.
const LEASES_MAX: usize = 256;
const PATIENCE: Duration = Duration::from_secs(20);

/// What became of one confirmation.
#[derive(Debug)]
pub(crate) enum Said {
    /// Sealed with this sequence, or before it.
    Confirmed(u64),
    /// Not taken, or not known to be.
    Refused(String),
}

/// Confirms them under a generation. An error means that the daemon does not listen to this agent any more.
pub(crate) async fn confirm(
    client: &Client,
    node: &str,
    generation: u64,
    leases: Vec<LeaseId>,
) -> Result<Vec<(LeaseId, Said)>, Error> {
    let mut said = Vec::with_capacity(leases.len());
    for leases in leases.chunks(LEASES_MAX) {
        match send(client, node, generation, leases).await {
            // Where none of them was taken the daemon names the reason of one only.
            Err(error) if error.is_final() && !is_about_agent(&error) && leases.len() > 1 => {
                for lease in leases {
                    let one = std::slice::from_ref(lease);
                    said.extend(taken(one, send(client, node, generation, one).await)?);
                }
            }
            answer => said.extend(taken(leases, answer)?),
        }
    }
    Ok(said)
}

type Answer = Result<leasehold_client::api::TeardownsConfirmed, Error>;

async fn send(client: &Client, node: &str, generation: u64, leases: &[LeaseId]) -> Answer {
    let leases = leases.iter().map(|lease| lease.as_str().to_owned()).collect();
    let body = ConfirmTeardowns { generation: Some(generation), leases };
    client.confirm_teardowns(node, &body).within(PATIENCE).await
}

fn taken(leases: &[LeaseId], answer: Answer) -> Result<Vec<(LeaseId, Said)>, Error> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) if is_about_agent(&error) => return Err(error),
        Err(error) => {
            let refused = |lease: &LeaseId| (lease.clone(), Said::Refused(error.to_string()));
            return Ok(leases.iter().map(refused).collect());
        }
    };
    // One record for each tenant: the last is at most as many further as there are leases.
    let sequence = answer.sequence.saturating_add(leases.len() as u64);
    let said = |lease: &LeaseId| {
        let said = if answer.confirmed.iter().any(|confirmed| confirmed == lease.as_str()) {
            Said::Confirmed(sequence)
        } else {
            let why = answer.refused.get(lease.as_str()).map(ToString::to_string);
            Said::Refused(why.unwrap_or_else(|| "the daemon did not say why".into()))
        };
        (lease.clone(), said)
    };
    Ok(leases.iter().map(said).collect())
}

/// Whether the daemon will not hear anything from this agent: another has its place, or its token is not good.
pub(crate) fn is_about_agent(error: &Error) -> bool {
    let status = error.problem().map(|problem| problem.status);
    matches!(status, Some(401 | 403)) || matches!(error.code(), "stale_generation" | "unknown_node")
}
