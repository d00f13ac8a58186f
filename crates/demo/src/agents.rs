//! The agents: real processes of this program, one for each node with the large GPUs. They hang and are killed as the
//! operator's script demands, are restarted when they exit by themselves, and always end with the demo.

mod directory;

use super::cluster::nodes_with_agent;
use super::scene::{LOCK, Scene};
use super::tokens;
use crate::data_directory::DemoDirectory;
use crate::problem::Problem;
use directory::AgentDirectory;
use leasehold_cell::Cell;
use leasehold_model::{NodeNo, Role, TokenScope};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUND: Duration = Duration::from_millis(50);
/// The pause before an agent that exited by itself is started again.
const RESTART: Duration = Duration::from_secs(1);
/// How long agents may take to stop at the end of the demo; they give their hooks less.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the demo waits for all agents to register.
const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(15);

/// The agents with their prepared directories; no agent runs yet.
pub(crate) struct Agents {
    root: PathBuf,
    directories: BTreeMap<NodeNo, AgentDirectory>,
    program: PathBuf,
}

struct Running {
    child: Option<Child>,
    started_at: Option<Instant>,
}

impl Agents {
    pub(crate) fn prepare(directory: &DemoDirectory, cell: &Cell, url: &str) -> Result<Self, Problem> {
        let program = std::env::current_exe().map_err(|error| {
            Problem::refused("program_unknown", format!("cannot find the path of this program: {error}"))
        })?;
        let root = root(directory);
        let unusable = |error: std::io::Error| {
            Problem::refused("folder_unusable", format!("cannot prepare the directory of the agents: {error}"))
                .at(&root)
                .advice("choose another data directory with --data; this directory is next to it")
        };
        directory::prepare_common(&root).map_err(unusable)?;
        let mut directories = BTreeMap::new();
        for node in nodes_with_agent() {
            let name = cell.now().read(|state| state.node(node).map(|node| node.name.to_string()));
            let name = name.ok_or_else(|| Problem::refused("unknown_node", format!("unknown node {node}")))?;
            let directory = AgentDirectory::fill(&root, &name, url).map_err(unusable)?;
            let scope = TokenScope { node: Some(node), ..TokenScope::default() };
            tokens::ensure(cell, &directory.token(), &name, Role::NodeAgent, scope)?;
            directories.insert(node, directory);
        }
        Ok(Self { root, directories, program })
    }

    /// Keeps the agents running until the demo is over, then stops them. The kernel kills them when the thread that
    /// started them ends, so all of them are started by this thread, which runs to the end.
    pub(crate) fn run(self, scene: &Scene) {
        let new = || Running { child: None, started_at: None };
        let mut running: BTreeMap<NodeNo, Running> = self.directories.keys().map(|node| (*node, new())).collect();
        while !scene.is_over() {
            let without_power = *scene.without_power.lock().expect(LOCK);
            let hung = *scene.hung.lock().expect(LOCK);
            for (node, directory) in &self.directories {
                directory.hang(hung == Some(*node));
                let agent = running.get_mut(node).expect("there is one for each directory");
                if without_power == Some(*node) { agent.kill() } else { agent.keep_running(|| self.start(directory)) }
            }
            std::thread::sleep(ROUND);
        }
        self.directories.values().for_each(|directory| directory.hang(false));
        stop(running.into_values().filter_map(|agent| agent.child).collect());
        if scene.cell.failure().is_none() {
            self.remove(&scene.cell);
        }
    }

    /// Removes the agents' directories after a clean shutdown. After a crash they remain, and the agents continue with
    /// them.
    fn remove(&self, cell: &Cell) {
        for (node, directory) in &self.directories {
            // Errors do not matter: the agent may never have registered, and leftover files do no harm.
            let _ = cell.operate(leasehold_engine::Command::DetachAgent(*node));
            let _ = directory.remove();
        }
        let _ = directory::remove_common(&self.root);
    }

    fn start(&self, directory: &AgentDirectory) -> std::io::Result<Child> {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(&self.program);
        command.arg("agent").arg("--config").arg(directory.config());
        command.arg("--end-with-parent").arg(std::process::id().to_string());
        // The user may have set these for the client commands.
        for variable in ["LEASEHOLD_URL", "LEASEHOLD_TOKEN", "LEASEHOLD_TOKEN_FILE", "LEASEHOLD_LOG", "NOTIFY_SOCKET"] {
            command.env_remove(variable);
        }
        // In its own process group: Ctrl-C reaches only the demo, which then stops its agents in order.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(directory.log()?).spawn()
    }
}

/// The generation of each node before its agent of this run registered.
pub(crate) struct Registrations(BTreeMap<NodeNo, u64>);

impl Registrations {
    pub(crate) fn before(cell: &Cell) -> Self {
        Self(nodes_with_agent().map(|node| (node, generation(cell, node))).collect())
    }

    fn missing(&self, cell: &Cell) -> usize {
        self.0.iter().filter(|(node, before)| generation(cell, **node) <= **before).count()
    }

    /// Waits until every agent has registered, or for the timeout; returns how many have not.
    pub(crate) fn wait(&self, scene: &Scene) -> usize {
        let began = Instant::now();
        loop {
            let missing = self.missing(&scene.cell);
            if missing == 0 || scene.is_over() || began.elapsed() > REGISTRATION_TIMEOUT {
                return missing;
            }
            std::thread::sleep(ROUND);
        }
    }
}

fn generation(cell: &Cell, node: NodeNo) -> u64 {
    cell.now().read(|state| state.node(node).map_or(0, |node| node.last_generation))
}

/// The directory of the agents. It is next to the data directory because the data directory is the daemon's.
pub(crate) fn root(directory: &DemoDirectory) -> PathBuf {
    directory.beside(".agents")
}

/// The log file of an agent.
pub(crate) fn log_of(directory: &DemoDirectory, node: &str) -> PathBuf {
    directory::log_in(&root(directory).join(node))
}

impl Running {
    /// Kills the agent, as if its node had lost power.
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The process may have exited already.
            let _ = child.kill();
            let _ = child.wait();
            self.started_at = None;
        }
    }

    fn keep_running(&mut self, start: impl FnOnce() -> std::io::Result<Child>) {
        if let Some(child) = &mut self.child
            && matches!(child.try_wait(), Ok(None))
        {
            return;
        }
        self.child = None;
        if self.started_at.is_none_or(|at| at.elapsed() >= RESTART) {
            self.started_at = Some(Instant::now());
            // If it cannot be started, it is tried again later.
            self.child = start().ok();
        }
    }
}

/// Asks all agents to stop, and kills those that do not.
fn stop(mut children: Vec<Child>) {
    for child in &children {
        // The process may have exited already.
        let _ = kill_process(Pid::from_child(child), Signal::TERM);
    }
    let began = Instant::now();
    while began.elapsed() < STOP_TIMEOUT && children.iter_mut().any(|child| matches!(child.try_wait(), Ok(None))) {
        std::thread::sleep(Duration::from_millis(10));
    }
    for child in &mut children {
        let _ = child.kill();
        let _ = child.wait();
    }
}
