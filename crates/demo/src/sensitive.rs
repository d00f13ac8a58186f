//! Somebody with data that nobody else may meet: claims a machine, works there, gives it back, and sees it wiped
//! before anyone else gets it.

use super::cluster::{BATCH, CORE, CPU, GIB, MEM, TENANTS, name, project_no, tenant_no, user_no};
use super::scene::Scene;
use leasehold_cell::Sealed;
use leasehold_engine::command::{LeaseList, ReportWipe, RequestLease};
use leasehold_engine::{Command, Custody, Phase, Request, State};
use leasehold_model::{Identity, NodeNo, Quanta, Span};

const GENOMICS: usize = 1;
/// In milliseconds of the story: how long the work takes, and how often a machine is looked for.
const WORKS_MS: u64 = 6000;
const LOOKS_MS: u64 = 250;

/// What happens to a claimed machine, one after the other.
#[derive(Clone, Copy)]
enum Step {
    Finish,
    Release,
    Wipe,
    Pause,
}

impl Step {
    /// In milliseconds of the story.
    fn after_ms(self) -> u64 {
        match self {
            Self::Finish => WORKS_MS,
            Self::Release => 1500,
            Self::Wipe => 1000,
            Self::Pause => 5000,
        }
    }
}

pub(crate) fn run(scene: &Scene) {
    let visit = Visit { scene };
    let mut at = 0;
    let mut wait = |ms: u64| {
        at += ms;
        scene.wait_until(scene.pace.ms(at))
    };
    // An earlier run may have been killed in the middle.
    visit.release();
    visit.wipe();
    while wait(LOOKS_MS) {
        let Some(node) = visit.claim() else { continue };
        visit.work(node);
        for step in [Step::Finish, Step::Release, Step::Wipe, Step::Pause] {
            if !wait(step.after_ms()) {
                return;
            }
            match step {
                Step::Finish => visit.finish(),
                Step::Release => visit.release(),
                Step::Wipe => visit.wipe(),
                Step::Pause => {}
            }
        }
    }
}

struct Visit<'a> {
    scene: &'a Scene,
}

impl Visit<'_> {
    fn identity() -> Identity {
        Identity {
            tenant: Some(tenant_no(GENOMICS)),
            project: Some(project_no(GENOMICS, 0)),
            user: Some(user_no(GENOMICS, 0)),
            workload: Some(name("patients")),
            token: None,
        }
    }

    fn seal(&self, command: Command) -> bool {
        matches!(self.scene.cell.call(Request::new(Self::identity(), command)), Ok(Sealed { repeated: false, .. }))
    }

    fn nodes(&self, which: impl Fn(&State, &leasehold_engine::Node) -> bool) -> Vec<(NodeNo, String)> {
        self.scene.cell.now().read(|state| {
            let found = state.nodes().filter(|node| which(state, node));
            found.map(|node| (node.number, node.name.to_string())).collect()
        })
    }

    fn claimed(&self) -> Vec<(NodeNo, String)> {
        let user = user_no(GENOMICS, 0);
        self.nodes(|_, node| node.custody.claim().is_some_and(|claim| claim.by.user == user))
    }

    fn tell(&self, text: String) {
        self.scene.note("claim", text);
    }

    /// A machine on which nobody has anything; a claim is refused where somebody has.
    fn claim(&self) -> Option<NodeNo> {
        let empty = |state: &State, node: &leasehold_engine::Node| {
            node.pool == BATCH
                && node.custody == Custody::Open
                && !node.drained
                && state.leases_on(node.number).is_empty()
        };
        let (node, label) = self.nodes(empty).into_iter().next()?;
        if !self.seal(Command::ClaimNodes(vec![node])) {
            return None;
        }
        let tenant = TENANTS[GENOMICS].name;
        self.tell(format!(
            "{tenant} claimed {label} for sensitive work: all of it is billed, and nobody else goes there"
        ));
        Some(node)
    }

    fn work(&self, node: NodeNo) {
        let ttl: Span = self.scene.pace.span(WORKS_MS * 2);
        let mut request = RequestLease::of(CPU, Quanta(64 * CORE), ttl);
        request.asks.push((MEM, Quanta(256 * GIB)));
        request.sensitive = true;
        request.node = Some(node);
        let _ = self.seal(Command::Request(request));
    }

    fn finish(&self) {
        let user = Some(user_no(GENOMICS, 0));
        let held: LeaseList = self.scene.cell.now().read(|state| {
            let own = |lease: &&leasehold_engine::Lease| {
                lease.sensitive && lease.user == user && lease.phase == Phase::Active
            };
            state.leases().into_iter().filter(own).map(|lease| lease.number).collect()
        });
        let each = held.iter().map(|lease| leasehold_engine::command::ReleaseOne { lease: *lease, activity: None });
        if !held.is_empty() {
            let _ = self.seal(Command::Release(each.collect()));
        }
    }

    fn release(&self) {
        self.finish();
        for (node, label) in self.claimed() {
            if self.seal(Command::ReleaseNodes(vec![node])) {
                self.tell(format!("{label} is given back, and wiped before it takes other work"));
            }
        }
    }

    fn wipe(&self) {
        for (node, label) in self.nodes(|_, node| node.pool == BATCH && node.custody.word() == "wiping") {
            // These machines have no agent: a person wipes them.
            let wiped = Command::ReportWipe(ReportWipe { node, generation: None, clean: true });
            if let Ok(Sealed { repeated: false, .. }) = self.scene.cell.operate(wiped) {
                self.tell(format!("{label} is wiped and takes work again"));
            }
        }
    }
}
