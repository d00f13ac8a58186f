//! `leasehold demo`: a small cluster under a realistic load, with the real engine, journal, daemon and agents.
//!
//! [`cluster`] defines nodes, tenants and quotas, and [`history`] writes a week of records. Then [`start`] opens the
//! daemon and [`agents`] runs the agent processes. [`traffic`] simulates lease holders, [`gangs`] allocations,
//! [`sensitive`] a user who claims a node, and [`operator`] an operator. [`guide`] prints commands to try, [`status`]
//! shows the running cluster, and [`report`] computes the final totals from the journal.

mod activity;
mod agents;
mod args;
mod cluster;
mod data_directory;
mod denial;
mod dice;
mod ending;
mod gangs;
mod guide;
mod habits;
mod history;
mod latency;
mod operator;
mod report;
mod scene;
mod sensitive;
mod start;
mod status;
mod tokens;
mod traffic;
mod usage;

pub use args::DemoArgs;

use agents::{Agents, Registrations};
use cluster::{SANDBOX_TENANT, TENANTS, tenant_no};
use data_directory::DemoDirectory;
use dice::fresh_seed;
use guide::Guide;
use leasehold_model::{Role, TokenScope};
use leasehold_terminal::numbers::counted;
use leasehold_terminal::term::{self, Paint};
use leasehold_terminal::{Problem, numbers, output, problem, table};
use scene::{Pace, Scene};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Runs until a signal arrives, or for the requested time.
pub fn run(args: &DemoArgs) -> Result<(), Problem> {
    let stop = ending::on_signals()?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let pace = Pace::for_length(args.exit_after);
    let directory = DemoDirectory::prepare(args.data.as_deref())?;
    let written = history::write(&directory, args.history, seed, &stop)?;
    let opened = start::open(&directory, pace)?;
    let cell = Arc::clone(&opened.cell);
    cluster::ensure(&cell, pace.span(3000))?;
    issue_tenant_token(&directory, &cell)?;
    if !directory.trust().exists() {
        report::write_trust(&directory)?;
    }
    let agents = Agents::prepare(&directory, &cell, &opened.url)?;
    let guide = Guide { directory: &directory, opened: &opened, written, length: args.exit_after, seed };
    term::say(&guide.text(Paint::stderr()));

    let scene = Arc::new(Scene::new(cell, pace, Arc::clone(&stop)));
    let registrations = Registrations::before(&scene.cell);
    let keeper = scene::spawn("agents", &scene, move |scene| agents.run(scene));
    let missing = registrations.wait(&scene);
    if missing > 0 {
        scene.note("node", format!("{} did not register; see the logs", counted(missing as u64, "agent")));
    }
    scene.begin();
    let actors = [
        scene::spawn("operator", &scene, operator::run),
        scene::spawn("traffic", &scene, move |scene| traffic::run(scene, seed)),
        scene::spawn("gangs", &scene, move |scene| gangs::run(scene, seed)),
        scene::spawn("sensitive", &scene, sensitive::run),
    ];
    status::watch(&scene, args.exit_after);
    scene.end();
    for thread in actors.into_iter().chain([keeper]) {
        // A thread that panicked has printed its message; the journal is closed in any case.
        let _ = thread.join();
    }
    let ran = scene.elapsed();
    let batches = scene.cell.stats().batches.load(Ordering::Relaxed);
    opened.served.stop().map_err(|why| {
        Problem::refused("cell_failed", why).at(directory.data()).advice("check that the disk works and has free space")
    })?;
    let tally = scene.tally.lock().expect(scene::LOCK);
    let run =
        report::Run { directory: &directory, seed, ran, first_sequence: opened.first_sequence, batches, tally: &tally };
    report::print_report(&run, args.json)
}

/// Issues the token with which the user of the demo can act as a tenant.
fn issue_tenant_token(directory: &DemoDirectory, cell: &leasehold_cell::Cell) -> Result<(), Problem> {
    let scope = TokenScope { tenant: Some(tenant_no(SANDBOX_TENANT)), ..TokenScope::default() };
    tokens::ensure(cell, &guide::tenant_token(directory), TENANTS[SANDBOX_TENANT].name, Role::TenantAdmin, scope)
}
