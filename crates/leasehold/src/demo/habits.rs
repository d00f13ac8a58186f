//! What each tenant likes to ask for, and how often.

use super::cluster::{BATCH, CORE, CPU, GBPS, GIB, H100, L40S, MEM, NET, SERVE, SLICES, TENANTS, TRAIN};
use leasehold_model::{ClassNo, PoolNo, Priority};

/// Something a tenant likes to ask for.
pub(crate) struct Wish {
    pub(crate) weight: u64,
    pub(crate) workload: &'static str,
    pub(crate) pool: PoolNo,
    pub(crate) asks: &'static [(ClassNo, u64)],
    pub(crate) priority: Priority,
    /// How long it stays, in milliseconds of the story.
    pub(crate) stays: (u64, u64),
}

const fn wish(
    weight: u64,
    workload: &'static str,
    pool: PoolNo,
    asks: &'static [(ClassNo, u64)],
    priority: Priority,
    stays: (u64, u64),
) -> Wish {
    Wish { weight, workload, pool, asks, priority, stays }
}

/// Arrivals per second and what is asked for, in the order of the tenants.
pub(crate) const HABITS: [(u64, &[Wish]); TENANTS.len()] = {
    use Priority::{Guaranteed, Scavenger, Standard};
    [
        (
            4,
            &[
                wish(
                    2,
                    "lattice-qcd",
                    TRAIN,
                    &[(H100, 8 * SLICES), (CPU, 64 * CORE), (MEM, 512 * GIB), (NET, 200 * GBPS)],
                    Guaranteed,
                    (5000, 9000),
                ),
                wish(
                    5,
                    "tokamak",
                    TRAIN,
                    &[(H100, 2 * SLICES), (CPU, 16 * CORE), (MEM, 160 * GIB)],
                    Standard,
                    (3000, 7000),
                ),
                wish(2, "analysis", BATCH, &[(CPU, 24 * CORE), (MEM, 96 * GIB)], Standard, (2000, 5000)),
            ],
        ),
        (
            4,
            &[
                wish(
                    4,
                    "fold",
                    TRAIN,
                    &[(H100, 2 * SLICES), (CPU, 12 * CORE), (MEM, 120 * GIB)],
                    Standard,
                    (2000, 4500),
                ),
                wish(3, "align", BATCH, &[(CPU, 32 * CORE), (MEM, 128 * GIB)], Standard, (2000, 5000)),
            ],
        ),
        (
            3,
            &[
                wish(
                    4,
                    "downscale",
                    TRAIN,
                    &[(H100, 4 * SLICES), (CPU, 24 * CORE), (MEM, 256 * GIB)],
                    Standard,
                    (3000, 7000),
                ),
                wish(2, "ensemble", BATCH, &[(CPU, 64 * CORE), (MEM, 256 * GIB)], Standard, (3000, 6000)),
            ],
        ),
        (
            9,
            &[
                wish(6, "detector", SERVE, &[(L40S, 1), (CPU, 4 * CORE), (MEM, 24 * GIB)], Guaranteed, (4000, 10_000)),
                wish(2, "segmenter", SERVE, &[(L40S, 2), (CPU, 8 * CORE), (MEM, 48 * GIB)], Standard, (3000, 8000)),
            ],
        ),
        (
            6,
            &[
                wish(4, "grasp-sim", SERVE, &[(L40S, 1), (CPU, 8 * CORE), (MEM, 32 * GIB)], Standard, (3000, 6000)),
                wish(2, "policy", TRAIN, &[(H100, 3), (CPU, 4 * CORE), (MEM, 24 * GIB)], Standard, (2000, 5000)),
                wish(2, "replay", BATCH, &[(CPU, 16 * CORE), (MEM, 48 * GIB)], Standard, (2000, 5000)),
            ],
        ),
        (
            8,
            &[
                wish(5, "notebook", TRAIN, &[(H100, 1)], Scavenger, (2000, 6000)),
                wish(2, "exercise", TRAIN, &[(H100, 3), (CPU, 2 * CORE)], Scavenger, (1500, 4000)),
                wish(3, "homework", BATCH, &[(CPU, 2 * CORE), (MEM, 4 * GIB)], Scavenger, (1500, 4000)),
            ],
        ),
    ]
};
