//! The nodes' agents: real processes of this program, one for each node with the large GPUs. They hang and die when the
//! story says so, are started again when they end by themselves, and end with the demo, however it ends.

mod folder;

use super::cluster::nodes_with_agent;
use super::scene::Scene;
use super::tokens;
use crate::data_directory::Place;
use crate::problem::Problem;
use folder::AgentFolder;
use leasehold_cell::Cell;
use leasehold_model::{NodeNo, Role, TokenScope};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const ROUND: Duration = Duration::from_millis(50);
/// Before an agent that ended by itself is started again.
const RESTART: Duration = Duration::from_secs(1);
/// How long they have to end when the demo does; the agents themselves give their hooks less.
const GOODBYE: Duration = Duration::from_secs(5);
/// How long is waited for all of them to take up their nodes.
const GATHERING: Duration = Duration::from_secs(15);

/// The agents' folders, filled; nobody runs yet.
pub(crate) struct Agents {
    root: PathBuf,
    folders: BTreeMap<NodeNo, AgentFolder>,
    program: PathBuf,
}

struct Running {
    child: Option<Child>,
    started_at: Option<Instant>,
}

impl Agents {
    pub(crate) fn prepare(place: &Place, cell: &Cell, url: &str) -> Result<Self, Problem> {
        let program = std::env::current_exe()
            .map_err(|error| Problem::refused("program_unknown", format!("this program cannot be found: {error}")))?;
        let root = root(place);
        let unusable = |error: std::io::Error| {
            Problem::refused("folder_unusable", format!("the agents cannot use it: {error}"))
                .at(&root)
                .advice("name another folder with --data: this one lies beside it")
        };
        folder::prepare_common(&root).map_err(unusable)?;
        let mut folders = BTreeMap::new();
        for node in nodes_with_agent() {
            let name = cell.now().read(|state| state.node(node).map(|node| node.name.to_string()));
            let name = name.ok_or_else(|| Problem::refused("unknown_node", format!("there is no {node}")))?;
            let folder = AgentFolder::fill(&root, &name, url).map_err(unusable)?;
            let scope = TokenScope { node: Some(node), ..TokenScope::default() };
            tokens::ensure(cell, &folder.token(), &name, Role::NodeAgent, scope)?;
            folders.insert(node, folder);
        }
        Ok(Self { root, folders, program })
    }

    /// Keeps the agents running as the scene wants them, until it is over; then ends them. The system ends them with
    /// the thread that started them: it is this one, and it stays to the end.
    pub(crate) fn run(self, scene: &Scene) {
        let new = || Running { child: None, started_at: None };
        let mut running: BTreeMap<NodeNo, Running> = self.folders.keys().map(|node| (*node, new())).collect();
        while !scene.is_over() {
            let dark = *scene.dark.lock().expect("no one panics with it");
            let hung = *scene.hung.lock().expect("no one panics with it");
            for (node, folder) in &self.folders {
                folder.hang(hung == Some(*node));
                let agent = running.get_mut(node).expect("one for each folder");
                if dark == Some(*node) { agent.cut_off() } else { agent.keep_up(|| self.start(folder)) }
            }
            std::thread::sleep(ROUND);
        }
        self.folders.values().for_each(|folder| folder.hang(false));
        end(running.into_values().filter_map(|agent| agent.child).collect());
        if scene.cell.failure().is_none() {
            self.dissolve(&scene.cell);
        }
    }

    /// After a clean end nothing but the journal's own folder is left. A crash leaves the agents' as well, and they go
    /// on from there.
    fn dissolve(&self, cell: &Cell) {
        for (node, folder) in &self.folders {
            // One that never came cannot be sent away; what cannot be removed is in nobody's way.
            let _ = cell.operate(leasehold_engine::Command::DetachAgent(*node));
            let _ = folder.remove();
        }
        let _ = folder::remove_common(&self.root);
    }

    fn start(&self, folder: &AgentFolder) -> std::io::Result<Child> {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(&self.program);
        command.arg("agent").arg("--config").arg(folder.config());
        command.arg("--end-with-parent").arg(std::process::id().to_string());
        // What its owner set for other commands is not for the agent.
        for variable in ["LEASEHOLD_URL", "LEASEHOLD_TOKEN", "LEASEHOLD_TOKEN_FILE", "LEASEHOLD_LOG", "NOTIFY_SOCKET"] {
            command.env_remove(variable);
        }
        // In a group of its own: a Ctrl-C is for the demo, which then ends its agents in order.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(folder.log()?).spawn()
    }
}

/// Each node's generation before its agent of this run took it up.
pub(crate) struct RollCall(BTreeMap<NodeNo, u64>);

impl RollCall {
    pub(crate) fn begin(cell: &Cell) -> Self {
        Self(nodes_with_agent().map(|node| (node, generation(cell, node))).collect())
    }

    fn missing(&self, cell: &Cell) -> usize {
        self.0.iter().filter(|(node, before)| generation(cell, **node) <= **before).count()
    }

    /// Waits until every agent has taken up its node, but not for ever; answers how many have not.
    pub(crate) fn wait(&self, scene: &Scene) -> usize {
        let began = Instant::now();
        loop {
            let missing = self.missing(&scene.cell);
            if missing == 0 || scene.is_over() || began.elapsed() > GATHERING {
                return missing;
            }
            std::thread::sleep(ROUND);
        }
    }
}

fn generation(cell: &Cell, node: NodeNo) -> u64 {
    cell.now().read(|state| state.node(node).map_or(0, |node| node.last_generation))
}

/// Beside the journal's folder, not in it: what agents keep is not the journal's.
pub(crate) fn root(place: &Place) -> PathBuf {
    place.beside(".agents")
}

/// Where an agent's log is.
pub(crate) fn log_of(place: &Place, node: &str) -> PathBuf {
    folder::log_in(&root(place).join(node))
}

impl Running {
    /// As when the power fails.
    fn cut_off(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended just now.
            let _ = child.kill();
            let _ = child.wait();
            self.started_at = None;
        }
    }

    fn keep_up(&mut self, start: impl FnOnce() -> std::io::Result<Child>) {
        if let Some(child) = &mut self.child
            && matches!(child.try_wait(), Ok(None))
        {
            return;
        }
        self.child = None;
        if self.started_at.is_none_or(|at| at.elapsed() >= RESTART) {
            self.started_at = Some(Instant::now());
            // One that cannot be started is tried again.
            self.child = start().ok();
        }
    }
}

/// Asks all of them to end, and ends those that do not.
fn end(mut children: Vec<Child>) {
    for child in &children {
        // It may have ended just now.
        let _ = kill_process(Pid::from_child(child), Signal::TERM);
    }
    let began = Instant::now();
    while began.elapsed() < GOODBYE && children.iter_mut().any(|child| matches!(child.try_wait(), Ok(None))) {
        std::thread::sleep(Duration::from_millis(10));
    }
    for child in &mut children {
        let _ = child.kill();
        let _ = child.wait();
    }
}
