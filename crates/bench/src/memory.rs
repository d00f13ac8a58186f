//! Memory per live lease, counted by the allocator.
#![allow(unsafe_code, reason = "an allocator can only be wrapped by an unsafe implementation")]

use crate::outcome::Outcome;
use crate::work::{Workload, engine_with_cluster, fill};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);
/// Counting costs: a counter that all threads share would slow the other benchmarks down.
static COUNTS: AtomicBool = AtomicBool::new(false);

fn count(bytes: i64) {
    if COUNTS.load(Ordering::Relaxed) {
        LIVE_BYTES.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The system's allocator with a counter; the bench binary installs it. All four calls are passed on:
/// without the last two every growth would be a copy, which no other program here pays.
pub struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; only a counter is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Starts to count memory. Returns false in a program that has not installed [`Counting`].
pub(crate) fn begin_counting() -> bool {
    COUNTS.store(true, Ordering::Relaxed);
    let before = live_bytes();
    let probe = std::hint::black_box(vec![0u8; 1 << 16]);
    let counted = live_bytes() - before >= 1 << 16;
    drop(probe);
    if !counted {
        eprintln!("  skipped: this program does not count its memory; run `make bench`");
    }
    counted
}

pub(crate) fn end_counting() {
    COUNTS.store(false, Ordering::Relaxed);
}

pub(crate) fn live_bytes() -> i64 {
    LIVE_BYTES.load(Ordering::Relaxed)
}

pub(crate) fn bytes_per_lease() -> Vec<Outcome> {
    const LEASES: usize = 1_000_000;
    if !begin_counting() {
        return Vec::new();
    }
    let mut engine = engine_with_cluster(1000, 1000);
    let mut work = Workload::new(1, 1000);
    work.live.reserve(LEASES);
    let before = live_bytes();
    fill(&mut engine, &mut work, LEASES);
    let after = live_bytes();
    end_counting();
    let per_lease = (after - before) as f64 / LEASES as f64;
    drop(engine);
    vec![
        Outcome::at_most("engine.bytes_per_lease", per_lease, "bytes", "<= 400", 400.0)
            .note("1,000,000 live leases with all indexes, no idempotency keys"),
    ]
}
