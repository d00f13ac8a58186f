//! What each tenant requests, and how often.

use super::cluster::{
    BATCH, CORE, CPU, GBPS, GIB, H100, L40S, MEM, NET, SERVE, SLICES, TENANTS, TRAIN, name, project_no, tenant_no,
    user_no,
};
use crate::dice::Dice;
use leasehold_engine::command::RequestLease;
use leasehold_model::{ClassNo, Identity, PoolNo, Priority, Quanta, Span};

/// A kind of request that a tenant makes.
pub(crate) struct Template {
    weight: u64,
    workload: &'static str,
    pool: PoolNo,
    pub(crate) asks: &'static [(ClassNo, u64)],
    priority: Priority,
    /// How long it is held in the running demo, in scripted milliseconds.
    pub(crate) stays_ms: (u64, u64),
    /// How long it is held in the generated history.
    pub(crate) stayed_minutes: (u64, u64),
}

/// The requests of one tenant.
pub(crate) struct Habit {
    /// The mean time between two requests in the running demo, in scripted milliseconds.
    pub(crate) every_ms: u64,
    /// The mean time between two requests in the busiest hours of the generated history.
    pub(crate) every_minutes: u64,
    templates: &'static [Template],
}

impl Template {
    const fn new(weight: u64, workload: &'static str, pool: PoolNo, asks: &'static [(ClassNo, u64)]) -> Self {
        let priority = Priority::Standard;
        Self { weight, workload, pool, asks, priority, stays_ms: (0, 0), stayed_minutes: (0, 0) }
    }
    const fn lasts(mut self, stays_ms: (u64, u64), stayed_minutes: (u64, u64)) -> Self {
        (self.stays_ms, self.stayed_minutes) = (stays_ms, stayed_minutes);
        self
    }
    const fn at(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// The identity of a request: one of the tenant's projects and users.
    pub(crate) fn identity(&self, tenant: usize, dice: &mut Dice) -> Identity {
        let mut one_of_two = || usize::try_from(dice.below(2)).expect("0 or 1");
        Identity {
            tenant: Some(tenant_no(tenant)),
            project: Some(project_no(tenant, one_of_two())),
            user: Some(user_no(tenant, one_of_two())),
            workload: Some(name(self.workload)),
            token: None,
        }
    }

    pub(crate) fn request(&self, ttl: Span) -> RequestLease {
        RequestLease {
            pool: Some(self.pool),
            asks: self.asks.iter().map(|(class, quanta)| (*class, Quanta(*quanta))).collect(),
            priority: self.priority,
            ..RequestLease::of(self.asks[0].0, Quanta(self.asks[0].1), ttl)
        }
    }
}

/// Chooses one of the tenant's templates at random, by weight.
pub(crate) fn choose_request(tenant: usize, dice: &mut Dice) -> &'static Template {
    let templates = HABITS[tenant].templates;
    let mut drawn = dice.below(templates.iter().map(|template| template.weight).sum());
    let chosen = templates.iter().find(|template| {
        let hit = drawn < template.weight;
        drawn = drawn.saturating_sub(template.weight);
        hit
    });
    chosen.expect("the number drawn is below the sum of the weights")
}

/// In the order of the tenants.
pub(crate) const HABITS: [Habit; TENANTS.len()] = {
    use Priority::{Guaranteed, Scavenger};
    [
        Habit {
            every_ms: 1600,
            every_minutes: 13,
            templates: &[
                Template::new(
                    2,
                    "lattice-qcd",
                    TRAIN,
                    &[(H100, 8 * SLICES), (CPU, 64 * CORE), (MEM, 512 * GIB), (NET, 200 * GBPS)],
                )
                .at(Guaranteed)
                .lasts((5000, 9000), (360, 840)),
                Template::new(8, "tokamak", TRAIN, &[(H100, 2 * SLICES), (CPU, 16 * CORE), (MEM, 160 * GIB)])
                    .lasts((3000, 7000), (120, 360)),
                Template::new(10, "analysis", BATCH, &[(CPU, 24 * CORE), (MEM, 96 * GIB)])
                    .lasts((2000, 5000), (30, 180)),
            ],
        },
        Habit {
            every_ms: 650,
            every_minutes: 7,
            templates: &[
                Template::new(4, "fold", TRAIN, &[(H100, 2 * SLICES), (CPU, 12 * CORE), (MEM, 120 * GIB)])
                    .lasts((2000, 4500), (60, 180)),
                Template::new(3, "align", BATCH, &[(CPU, 32 * CORE), (MEM, 128 * GIB)]).lasts((2000, 5000), (30, 150)),
            ],
        },
        Habit {
            every_ms: 2000,
            every_minutes: 30,
            templates: &[
                Template::new(4, "downscale", TRAIN, &[(H100, 4 * SLICES), (CPU, 24 * CORE), (MEM, 256 * GIB)])
                    .lasts((3000, 7000), (240, 480)),
                Template::new(2, "ensemble", BATCH, &[(CPU, 64 * CORE), (MEM, 256 * GIB)])
                    .lasts((3000, 6000), (120, 300)),
            ],
        },
        Habit {
            every_ms: 180,
            every_minutes: 9,
            templates: &[
                Template::new(5, "detector", SERVE, &[(L40S, 1), (CPU, 4 * CORE), (MEM, 24 * GIB)])
                    .at(Guaranteed)
                    .lasts((4000, 10_000), (240, 720)),
                Template::new(2, "segmenter", SERVE, &[(L40S, 2), (CPU, 8 * CORE), (MEM, 48 * GIB)])
                    .lasts((3000, 8000), (120, 360)),
            ],
        },
        Habit {
            every_ms: 450,
            every_minutes: 6,
            templates: &[
                Template::new(5, "grasp-sim", SERVE, &[(L40S, 1), (CPU, 8 * CORE), (MEM, 32 * GIB)])
                    .lasts((3000, 6000), (90, 270)),
                Template::new(2, "policy", TRAIN, &[(H100, 3), (CPU, 4 * CORE), (MEM, 24 * GIB)])
                    .lasts((2000, 5000), (60, 180)),
                Template::new(2, "replay", BATCH, &[(CPU, 16 * CORE), (MEM, 48 * GIB)]).lasts((2000, 5000), (30, 90)),
            ],
        },
        Habit {
            every_ms: 500,
            every_minutes: 4,
            templates: &[
                Template::new(5, "notebook", TRAIN, &[(H100, 1)]).at(Scavenger).lasts((2000, 6000), (30, 210)),
                Template::new(2, "exercise", TRAIN, &[(H100, 3), (CPU, 2 * CORE)])
                    .at(Scavenger)
                    .lasts((1500, 4000), (20, 90)),
                Template::new(3, "homework", BATCH, &[(CPU, 2 * CORE), (MEM, 4 * GIB)])
                    .at(Scavenger)
                    .lasts((1500, 4000), (10, 60)),
            ],
        },
    ]
};
