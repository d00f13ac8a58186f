//! What can be typed after `leasehold agent` and `leasehold-agent`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold agent --node gpu-17 --config /etc/leasehold/agent.yaml
  leasehold agent --node gpu-17 --state ./agent --url http://127.0.0.1:8420 --token-file ./gpu-17.token --json

Runs in the foreground until SIGTERM or Ctrl-C; leases stay as they are. Lines go to stderr, with --json as JSON.
Exit code 1 if another agent speaks for the node, or takes it over.")]
pub struct AgentArgs {
    /// The node that this machine is, by its name at the daemon [default: `node` of the file]
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// The YAML file with hooks, capacity and labels
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The agent's own folder; made if it is not there [default: `state` of the file, then /var/lib/leasehold-agent]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// End when the process with this number, which started the agent, ends: for demos and tests
    #[arg(long, value_name = "PID", hide = true)]
    pub end_with_parent: Option<u32>,
}
