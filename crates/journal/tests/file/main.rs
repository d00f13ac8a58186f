//! The file provider on disks that crash, fill up, fail and lie.

// The shared disk is public to its siblings only; in a test that is all there is.
#![allow(unreachable_pub)]
// Sizes in tests fit.
#![allow(clippy::cast_possible_truncation)]

mod archiver;
mod authenticity;
mod crash;
mod deletion;
mod faults;
mod faulty_disk;
mod golden;
mod mirror;
mod properties;
mod read_only;
mod recovery;
mod refusal;
mod story;
mod threads;
