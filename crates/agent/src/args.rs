//! The options of `leasehold agent` and `leasehold-agent`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  leasehold agent --node gpu-17 --config /etc/leasehold/agent.yaml
  leasehold agent --node gpu-17 --state ./agent --url http://127.0.0.1:8420 --token-file ./gpu-17.token --json

Runs in the foreground until SIGTERM or Ctrl-C; stopping it does not end leases. The log goes to stderr, with --json
as JSON lines. The exit code is 1 if another agent is registered for the node, or replaces this one.")]
pub struct AgentArgs {
    /// Name of this node at the daemon [default: `node` in the configuration file]
    #[arg(long, value_name = "NAME")]
    pub node: Option<String>,
    /// Configuration file (YAML) with hooks, capacity and labels
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// State directory; created if missing [default: `state` in the file, or /var/lib/leasehold-agent]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Exit when the parent process with this PID exits; for demos and tests
    #[arg(long, value_name = "PID", hide = true)]
    pub end_with_parent: Option<u32>,
}
