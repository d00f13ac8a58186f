//! Benchmarks.
#![allow(clippy::float_arithmetic)]
pub mod work;
