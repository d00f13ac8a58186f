//! What may happen to a daemon while its clients work.

use super::bad_clients::BadClients;
use super::load::Load;
use super::records::forge_tail;
use super::site::{FILES_MAX, Site};
use fastrand::Rng;
use std::time::{Duration, Instant};

/// Operations that must be acknowledged while a disturbance lasts, or after a restart.
const PROGRESS: u64 = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// kill -9, and a start.
    Kill,
    /// A clean stop, and a start.
    Stop,
    /// The disk is full for a while.
    FullDisk,
    /// The daemon is stopped and started again while the disk is full.
    RestartOnFullDisk,
    /// Somebody holds more idle connections than the daemon may open files.
    IdleClients,
    /// Connections that never finish what they began.
    StuckClients,
    /// The wall clock is stepped.
    ClockStep,
    /// Old segments are moved to the archive while the daemon runs.
    Archive,
    /// The same while it is stopped.
    ArchiveWhileStopped,
    /// Somebody appends a batch after a clean stop.
    ForgedTail,
    /// Somebody appends a batch after a kill.
    ForgedTailAfterKill,
}

impl Fault {
    pub(crate) const ALL: [Self; 11] = [
        Self::Kill,
        Self::Stop,
        Self::FullDisk,
        Self::RestartOnFullDisk,
        Self::IdleClients,
        Self::StuckClients,
        Self::ClockStep,
        Self::Archive,
        Self::ArchiveWhileStopped,
        Self::ForgedTail,
        Self::ForgedTailAfterKill,
    ];

    /// Whether the daemon goes on meanwhile, so that clients should hardly notice.
    pub(crate) fn leaves_it_running(self) -> bool {
        matches!(self, Self::IdleClients | Self::StuckClients | Self::ClockStep | Self::Archive)
    }

    /// Lets it happen, and puts things right again: the daemon runs afterwards.
    pub(crate) fn happen(self, site: &mut Site, load: &Load, dice: &mut Rng) {
        match self {
            Self::Kill => {
                site.kill();
                site.restart();
            }
            Self::Stop => {
                site.stop();
                site.restart();
            }
            Self::FullDisk => full_disk(site, load, dice),
            Self::RestartOnFullDisk => restart_on_full_disk(site),
            Self::IdleClients => {
                let idle = BadClients::idle(site.address(), FILES_MAX + 100);
                assert!(idle.count() > FILES_MAX, "the connections are made, whether they are accepted or not");
                // Clients keep the connections they have, and the journal can begin a new segment.
                load.bulk(dice.u64(1_000_000..), 1000);
                load.wait_for(4 * PROGRESS);
                drop(idle);
            }
            Self::StuckClients => {
                let stuck = BadClients::stuck(site.address(), &site.operator_token(), 60);
                load.wait_for(4 * PROGRESS);
                drop(stuck);
            }
            Self::ClockStep => {
                let steps = [-86_400 * 400, -3600, -2, 2, 3600, 86_400 * 400];
                site.set_wall_clock(steps[dice.usize(..steps.len())]);
                load.wait_for(2 * PROGRESS);
                site.set_wall_clock(0);
            }
            Self::Archive => {
                site.run("journal archive --config {}/leasehold.yaml --to {}/archive");
            }
            Self::ArchiveWhileStopped => {
                site.stop();
                site.run("journal archive --config {}/leasehold.yaml --to {}/archive");
                site.restart();
            }
            Self::ForgedTail => {
                site.stop();
                forged(site);
            }
            Self::ForgedTailAfterKill => {
                site.kill();
                forged(site);
            }
        }
        load.wait_for(PROGRESS);
    }
}

/// Fills the disk, and goes on until the daemon needs another segment: it must say that the disk is full, stay alive, and
/// go on by itself when there is room again.
fn full_disk(site: &Site, load: &Load, dice: &mut Rng) {
    if !site.fill_disk() {
        return;
    }
    let before = load.acknowledged();
    // More than the segment that is being written and the one that is allocated ahead can take.
    let number = 1000 + dice.u64(..1_000_000);
    std::thread::scope(|scope| {
        let _emptied = OnDrop(|| site.empty_disk());
        scope.spawn(move || (0..24).for_each(|part| load.bulk(number * 100 + part, 1000)));
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            // A snapshot that failed gives its space back.
            site.fill_disk();
            let (status, said) = site.get("/readyz").expect("a full disk does not stop the daemon");
            if status == 503 {
                println!("  after {} operations on a full disk: {}", load.acknowledged() - before, said.trim());
                break;
            }
            assert!(Instant::now() < until, "the disk is full, and readyz says {status} {said}");
            std::thread::sleep(Duration::from_millis(10));
        }
    });
}

/// Runs something at the end, also when a test fails.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn restart_on_full_disk(site: &mut Site) {
    let filled = site.fill_disk();
    site.stop();
    site.restart();
    let (status, said) = site.get("/api/v1/leases?limit=1").expect("it answers");
    assert_eq!(status, 200, "reading works on a full disk: {said}");
    if filled {
        site.empty_disk();
    }
}

/// A forged batch at the end: the start is refused, nothing of it is believed, and it can be cut.
fn forged(site: &mut Site) {
    forge_tail(&site.data());
    let refused = site.start(&[]).expect_err("a forged tail is refused");
    assert!(refused.contains("journal_tail_unproved"), "{refused}");
    site.start(&["--cut-unproved-tail"]).unwrap_or_else(|said| panic!("it is not cut: {said}"));
}
