//! A user with sensitive data: claims a node, works on it and releases it; the node is wiped before others can use it.

use super::cluster::{BATCH, CORE, CPU, GIB, MEM, TENANTS, name, project_no, tenant_no, user_no};
use super::scene::Scene;
use leasehold_cell::Sealed;
use leasehold_engine::command::{LeaseList, ReportWipe, RequestLease};
use leasehold_engine::{Command, Custody, Phase, Request, State};
use leasehold_model::{Identity, NodeNo, Quanta, Span};

const GENOMICS: usize = 1;
/// In scripted milliseconds: how long the work takes, and how often the user tries to claim a node.
const WORKS_MS: u64 = 6000;
const TRIES_MS: u64 = 250;

/// What happens to a claimed node, in order.
#[derive(Clone, Copy)]
enum Step {
    Finish,
    Release,
    Wipe,
    Pause,
}

impl Step {
    /// In scripted milliseconds.
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
    let user = SensitiveUser { scene };
    let mut at = 0;
    let mut wait = |ms: u64| {
        at += ms;
        scene.wait_until(scene.pace.ms(at))
    };
    // An earlier run may have been killed while it had a claim.
    user.release();
    user.wipe();
    while wait(TRIES_MS) {
        let Some(node) = user.claim() else { continue };
        user.work(node);
        for step in [Step::Finish, Step::Release, Step::Wipe, Step::Pause] {
            if !wait(step.after_ms()) {
                return;
            }
            match step {
                Step::Finish => user.finish(),
                Step::Release => user.release(),
                Step::Wipe => user.wipe(),
                Step::Pause => {}
            }
        }
    }
}

struct SensitiveUser<'a> {
    scene: &'a Scene,
}

impl SensitiveUser<'_> {
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

    fn note(&self, text: String) {
        self.scene.note("claim", text);
    }

    /// Claims a node without leases; the claim of any other node would be refused.
    fn claim(&self) -> Option<NodeNo> {
        let empty = |state: &State, node: &leasehold_engine::Node| {
            node.pool == BATCH
                && node.custody == Custody::Open
                && !node.is_drained()
                && state.leases_on(node.number).is_empty()
        };
        let (node, label) = self.nodes(empty).into_iter().next()?;
        if !self.seal(Command::ClaimNodes(vec![node].into())) {
            return None;
        }
        let tenant = TENANTS[GENOMICS].name;
        self.note(format!(
            "{tenant} claimed {label} for sensitive work; it pays for the whole node, and nobody else can use it"
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
                self.note(format!("{label} is released and will be wiped before other work"));
            }
        }
    }

    fn wipe(&self) {
        for (node, label) in self.nodes(|_, node| node.pool == BATCH && node.custody.word() == "wiping") {
            // These nodes have no agent: an operator wipes them.
            let wiped = Command::ReportWipe(ReportWipe { node, generation: None, clean: true });
            if let Ok(Sealed { repeated: false, .. }) = self.scene.cell.operate(wiped) {
                self.note(format!("{label} is wiped and in service again"));
            }
        }
    }
}
