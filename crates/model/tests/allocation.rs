//! A forged count must not make a reader allocate: memory follows the bytes that are there, not
//! the bytes that are promised.
//!
//! A test of its own, because it counts every allocation of the process.

#![allow(unsafe_code, reason = "only an allocator sees allocations, and an allocator is unsafe to write")]

#[path = "format/samples.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod samples;

use leasehold_model::codec::{Field, put_varint};
use leasehold_model::{Batch, Name, RawBatch, Reader, Record};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

fn count(add: usize, sub: usize) {
    // A thread that is going away has no counters; what it frees does not matter here.
    let _ = LIVE.try_with(|live| {
        live.set((live.get() + add).saturating_sub(sub));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as our caller promised.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as our caller promised.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most memory that was held at once while `work` ran, beyond what was held before.
fn peak_of<T>(work: impl FnOnce() -> T) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    drop(work());
    PEAK.get() - before
}

/// A lease with a report takes some hundred bytes in memory and may take one on disk; a list may
/// have grown to twice what it holds, and is copied as it grows.
const BYTES_PER_BYTE_MAX: usize = 512;
const BYTES_ALWAYS: usize = 1024;

fn check(bytes: &[u8]) {
    let peak = peak_of(|| Record::get(&mut Reader::new(bytes)));
    let allowed = BYTES_ALWAYS + BYTES_PER_BYTE_MAX * bytes.len();
    assert!(peak <= allowed, "{peak} bytes of memory for {} bytes", bytes.len());
}

fn encode(record: &Record) -> Vec<u8> {
    let mut batch = Batch::new(record.sequence);
    batch.push(record);
    batch.frames().next().expect("one frame").expect("a good frame").bytes[32..].to_vec()
}

#[test]
fn the_allocator_counts() {
    assert!(peak_of(|| vec![0u8; 1 << 20]) >= 1 << 20);
}

/// Wherever a count may stand, a large one is put in its place.
#[test]
fn forged_counts_do_not_allocate() {
    for record in samples::every_kind() {
        let bytes = encode(&record);
        for at in 0..bytes.len() {
            for forged in [64, 1024, 4096, u64::from(u32::MAX), u64::MAX] {
                let mut count = Vec::new();
                put_varint(forged, &mut count);
                check(&[&bytes[..at], &count, &bytes[at + 1..]].concat());
                check(&[&bytes[..at], &count].concat());
            }
        }
    }
}

/// As many items as the limits allow, each as short as can be.
#[test]
fn the_longest_lists_of_the_shortest_items_stay_within_bounds() {
    let head = |kind: u8| vec![0, 0, 0, 0, 0, 0, 0, 0, 0, kind, 0];
    // 42 lease.renewed, 43 lease.released: a thousand leases, each with an empty option of activity.
    let mut renewed = head(42);
    put_varint(1024, &mut renewed);
    renewed.extend([1; 9]);
    renewed.extend([0; 3 * 1024]);
    check(&renewed);
    let mut released = head(43);
    put_varint(1024, &mut released);
    released.extend([0; 1 + 1024 + 1]);
    assert!(Record::get(&mut Reader::new(&released)).is_ok());
    check(&released);
    // 30 node.put: labels of one letter each.
    let mut node = head(30);
    node.extend([0, 1, b'n', 0, 0, 0]);
    put_varint(4096, &mut node);
    node.extend(b"\x01a\x01b".repeat(4096));
    node.extend([1, 0]);
    assert!(Record::get(&mut Reader::new(&node)).is_ok());
    check(&node);
}

/// A batch header that promises 16 MiB is believed only as far as there are bytes.
#[test]
fn reading_a_batch_allocates_nothing() {
    let mut batch = Batch::new(0);
    samples::every_kind().iter().for_each(|record| batch.push(record));
    let mut bytes = batch.bytes().to_vec();
    bytes[..4].copy_from_slice(b"LHB2");
    bytes[4..8].copy_from_slice(&(16u32 << 20).to_le_bytes());
    bytes[8..12].copy_from_slice(&60_000u32.to_le_bytes());
    assert_eq!(peak_of(|| RawBatch::read(&bytes).map(|batch| batch.count())), 0);
    assert_eq!(peak_of(|| Name::from_bytes(&[128; 3])), 0);
}
