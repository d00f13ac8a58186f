//! `leasehold demo`: a small cluster under a believable load, on the real engine, the real journal and the real daemon,
//! with real agents.
//!
//! [`cluster`] says what there is and [`history`] writes the week before. Then [`start`] opens the daemon, [`agents`]
//! keeps the agents' processes, [`traffic`] plays the holders, [`gangs`] those with gangs, [`sensitive`] somebody who
//! claims a machine and [`operator`] the one on duty; [`guide`] says what to try, [`status`] shows it while it runs, and [`report`] adds it up from what was sealed.

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

use agents::{Agents, RollCall};
use cluster::{SANDBOX_TENANT, TENANTS, tenant_no};
use data_directory::Place;
use dice::fresh_seed;
use guide::Guide;
use leasehold_model::{Role, TokenScope};
use leasehold_terminal::numbers::counted;
use leasehold_terminal::term::{self, Paint};
use leasehold_terminal::{Problem, numbers, output, problem, table};
use scene::{Pace, Scene};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Runs until it is told to stop, or for as long as was asked.
pub fn run(args: &DemoArgs) -> Result<(), Problem> {
    let stop = ending::on_signals()?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let pace = Pace::for_length(args.exit_after);
    let place = Place::prepare(args.data.as_deref())?;
    let written = history::write(&place, args.history, seed, &stop)?;
    let opened = start::open(&place, pace)?;
    let cell = Arc::clone(&opened.cell);
    cluster::ensure(&cell, pace.span(3000))?;
    hand_out_token(&place, &cell)?;
    if !place.trust().exists() {
        report::write_trust(&place)?;
    }
    let agents = Agents::prepare(&place, &cell, &opened.url)?;
    let guide = Guide { place: &place, opened: &opened, written, length: args.exit_after, seed };
    term::say(&guide.text(Paint::stderr()));

    let scene = Arc::new(Scene::new(cell, pace, Arc::clone(&stop)));
    let roll_call = RollCall::begin(&scene.cell);
    let keeper = scene::play("agents", &scene, move |scene| agents.run(scene));
    let absent = roll_call.wait(&scene);
    if absent > 0 {
        scene.note("node", format!("{} did not come; the logs say why", counted(absent as u64, "agent")));
    }
    scene.begin();
    let players = [
        scene::play("operator", &scene, operator::run),
        scene::play("traffic", &scene, move |scene| traffic::run(scene, seed)),
        scene::play("gangs", &scene, move |scene| gangs::run(scene, seed)),
        scene::play("sensitive", &scene, sensitive::run),
    ];
    status::watch(&scene, args.exit_after);
    scene.end();
    for thread in players.into_iter().chain([keeper]) {
        // One that panicked has said so itself; the journal is still closed in order.
        let _ = thread.join();
    }
    let ran = scene.elapsed();
    let batches = scene.cell.stats().batches.load(Ordering::Relaxed);
    opened.served.stop().map_err(|why| {
        Problem::refused("cell_failed", why).at(place.data()).advice("see that the disk is sound and has room")
    })?;
    let tally = scene.tally.lock().expect("no one panics with the tally");
    let run = report::Run { place: &place, seed, ran, first_sequence: opened.first_sequence, batches, tally: &tally };
    report::give(&run, args.json)
}

/// The one who watches may play a tenant.
fn hand_out_token(place: &Place, cell: &leasehold_cell::Cell) -> Result<(), Problem> {
    let scope = TokenScope { tenant: Some(tenant_no(SANDBOX_TENANT)), ..TokenScope::default() };
    tokens::ensure(cell, &guide::tenant_token(place), TENANTS[SANDBOX_TENANT].name, Role::TenantAdmin, scope)
}
