//! Registers the agent for its node, with capacity and labels.

use super::config::{Amount, Config};
use super::machine;
use leasehold_client::api::{AgentRegistered, Class, Kind, Quantity, RegisterAgent};
use leasehold_client::{Client, Error};
use leasehold_terminal::Problem;
use std::collections::BTreeMap;
use std::time::Duration;

/// The pause between two attempts if the daemon does not answer.
const PAUSE: Duration = Duration::from_secs(2);

/// Registers; tries until the daemon answers. A refusal is final.
pub(crate) async fn register(
    client: &Client,
    node: &str,
    instance: &str,
    config: &Config,
) -> Result<AgentRegistered, Problem> {
    let mut is_logged = false;
    loop {
        match attempt(client, node, instance, config).await {
            Err(Attempt::Refused(problem)) => return Err(problem),
            Ok(registered) => return Ok(registered),
            Err(Attempt::Unanswered(error)) => {
                if !std::mem::replace(&mut is_logged, true) {
                    tracing::warn!("cannot register, will retry: {error}");
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Why an attempt to register failed.
enum Attempt {
    Unanswered(Error),
    Refused(Problem),
}

impl Attempt {
    fn of(error: Error, node: &str) -> Self {
        if error.is_final() { Self::Refused(refusal(&error, node)) } else { Self::Unanswered(error) }
    }
}

async fn attempt(client: &Client, node: &str, instance: &str, config: &Config) -> Result<AgentRegistered, Attempt> {
    let capacity = match &config.capacity {
        Some(amounts) => Some(capacity(client, amounts, node).await?),
        None => None,
    };
    let mut register = RegisterAgent { instance: instance.to_owned(), capacity, labels: config.labels.clone() };
    match client.register_agent(node, &register).await {
        // Leases hold more than the new capacity. The agent is needed for their teardown, so it registers without the
        // change.
        Err(error) if error.code() == "node_smaller_than_leased" => {
            tracing::warn!("the capacity of the node is not changed until the next start: {error}");
            register.capacity = None;
            client.register_agent(node, &register).await.map_err(|error| Attempt::of(error, node))
        }
        registered => registered.map_err(|error| Attempt::of(error, node)),
    }
}

/// The daemon's refusal, with advice.
pub(crate) fn refusal(error: &Error, node: &str) -> Problem {
    let problem = match error.problem() {
        Some(problem) => Problem::coded(problem.code.clone(), problem.detail.trim_end_matches('.')),
        None => Problem::coded(error.code().to_owned(), error.to_string()),
    };
    match error.code() {
        "agent_already_running" => problem.advice(format!(
            "if that agent no longer exists, run `leasehold node detach-agent {node}`, or wait until the daemon declares it silent"
        )),
        "stale_generation" => {
            problem.advice("another agent has registered for the node; this one has stopped")
        }
        _ => problem,
    }
}

/// The capacity of the node; `auto` is replaced by the measured value.
async fn capacity(
    client: &Client,
    amounts: &BTreeMap<String, Amount>,
    node: &str,
) -> Result<BTreeMap<String, Quantity>, Attempt> {
    let mut all = BTreeMap::new();
    for (name, amount) in amounts {
        let quantity = match amount {
            Amount::Given(quantity) => quantity.clone(),
            Amount::Auto => {
                let class = client.show_class(name).await.map_err(|error| Attempt::of(error, node))?;
                measured(&class, machine::cores(), machine::memory_kib()).map_err(Attempt::Refused)?
            }
        };
        all.insert(name.clone(), quantity);
    }
    Ok(all)
}

/// The measured capacity of a class, in whole quanta.
fn measured(class: &Class, cores: u64, memory_kib: Option<u64>) -> Result<Quantity, Problem> {
    const KIB_PER_GIB: u128 = 1 << 20;
    match (class.kind, memory_kib) {
        (Kind::Cpu, _) => Ok(Quantity(cores.to_string())),
        (Kind::Mem, Some(kib)) => {
            let per_unit = class.quanta_per_unit;
            let quanta = u128::from(kib) * u128::from(per_unit) / KIB_PER_GIB;
            Ok(Quantity(format!("{quanta}/{per_unit}")))
        }
        _ => {
            let what = format!("`capacity.{}`: `auto` works only for cpu and mem classes", class.name);
            Err(Problem::usage("config_wrong", what).advice("write a number instead"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_capacity_is_in_whole_quanta() {
        let class = |kind, quanta_per_unit| Class {
            id: 0,
            name: "it".into(),
            kind,
            tier: None,
            quanta_per_unit,
            unit: String::new(),
            premium: false,
        };
        let text = |class: &Class| measured(class, 96, Some(16_303_428)).map(|quantity| quantity.0);
        assert_eq!(text(&class(Kind::Cpu, 1000)).unwrap(), "96");
        assert_eq!(text(&class(Kind::Mem, 1024)).unwrap(), "15921/1024");
        assert_eq!(text(&class(Kind::Mem, 1)).unwrap(), "15/1");
        assert!(text(&class(Kind::Gpu, 1)).unwrap_err().to_string().contains("`auto`"));
    }
}
