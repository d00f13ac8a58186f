//! `leasehold demo`: a small cluster under a believable load, on the real engine and the real journal.
//!
//! [`cluster`] says what there is, [`traffic`] plays the holders, [`agent`] the nodes, [`operator`] the one on duty;
//! [`status`] shows it while it runs and [`report`] adds it up from what was sealed.

mod agent;
mod cluster;
mod denial;
mod ending;
mod habits;
mod latency;
mod operator;
mod report;
mod scene;
mod start;
mod status;
mod traffic;
mod usage;

use crate::cli::DemoArgs;
use crate::dice::fresh_seed;
use crate::place::Place;
use crate::problem::Problem;
use crate::term;
use scene::{Pace, Scene};
use std::sync::Arc;

pub(crate) fn run(args: &DemoArgs) -> Result<(), Problem> {
    let stop = ending::on_signals()?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let pace = Pace::for_length(args.exit_after);
    let place = Place::prepare(args.data.as_deref())?;
    let opened = start::open(&place, pace)?;
    term::say(&status::welcome(&place, &opened, args.exit_after, seed));

    let scene = Arc::new(Scene::new(opened.cell, pace, Arc::clone(&stop)));
    cluster::ensure(&scene.cell, pace)?;
    let first_sequence = opened.first_sequence;
    let threads = [
        scene::play("agents", &scene, move |scene| agent::run(scene, seed)),
        scene::play("operator", &scene, operator::run),
        scene::play("traffic", &scene, move |scene| traffic::run(scene, seed)),
    ];
    status::watch(&scene, args.exit_after);
    scene.end();
    for thread in threads {
        // One that panicked has said so itself; the journal is still closed in order.
        let _ = thread.join();
    }
    let scene = Arc::into_inner(scene).expect("every thread that held it has ended");
    let (ran, tally) = (scene.began.elapsed(), scene.tally.into_inner().expect("no one panics with the tally"));
    let batches = scene.cell.stats().batches.load(std::sync::atomic::Ordering::Relaxed);
    scene.cell.stop().map_err(|why| {
        Problem::refused("cell_failed", why).at(&place.data).advice("see that the disk is sound and has room")
    })?;
    let run = report::Run { place: &place, seed, ran, first_sequence, batches, tally: &tally };
    report::give(&run, args.json)
}
