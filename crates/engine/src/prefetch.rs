//! Asks the processor to load memory into its cache, without waiting for it.
//!
//! An ordinary load would do the same, but the processor looks only a few hundred instructions ahead of a load that
//! waits for memory, so that few of them overlap.
#![allow(unsafe_code, reason = "the instruction takes a raw pointer")]

const LINE: usize = 64;

/// Starts to load all cache lines of a value.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    let first = std::ptr::from_ref(value).cast::<i8>();
    let lines = (first.addr() % LINE + size_of::<T>()).div_ceil(LINE);
    for line in 0..lines {
        load(first.wrapping_add(line * LINE));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn load(at: *const i8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction reads nothing and never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at) }
}

#[cfg(not(target_arch = "x86_64"))]
fn load(_: *const i8) {}
