//! Small limits, so that reaching them takes few keys.

use super::{KeptAs, KeyIndex, KeyLimits, RememberedKey, RememberedKeys};
use leasehold_model::{Instant, Span, TenantNo};

const LIMITS: KeyLimits = KeyLimits { counted: 5, sure: 8 };
const WINDOW: Span = Span::from_secs(86_400);
const TENANT: Option<TenantNo> = Some(TenantNo(3));

#[derive(Default)]
struct World {
    keys: RememberedKeys,
    index: KeyIndex,
    used: u64,
}

impl World {
    /// Uses a new key, as folding a record does, and returns its scope.
    fn add(&mut self, secs: u64, kept: KeptAs) -> u64 {
        let now = Instant::from_secs(secs);
        let Self { keys, index, used } = self;
        keys.sweep(now, WINDOW, |slot, key| index.remove(slot, key));
        if let KeptAs::Counted(owner) = kept {
            keys.make_room(owner, now, WINDOW, LIMITS, |slot, key| index.remove(slot, key));
        }
        *used += 1;
        let slot = keys.add(RememberedKey::new(now, *used, *used, 0), kept);
        index.add(slot, keys.at(slot));
        *used
    }

    fn is_full(&self, secs: u64) -> bool {
        self.keys.is_full(TENANT, Instant::from_secs(secs), WINDOW, LIMITS)
    }

    fn knows(&self, scope: u64, secs: u64) -> bool {
        let found = self.index.find(&self.keys, scope, Instant::from_secs(secs), WINDOW);
        assert!(found.is_none_or(|key| key.sequence() == scope), "found by its own scope");
        found.is_some()
    }
}

#[test]
fn beyond_the_count_the_oldest_keys_past_ten_minutes_are_forgotten() {
    let mut world = World::default();
    let old: Vec<u64> = (0..5).map(|secs| world.add(secs, KeptAs::Counted(TENANT))).collect();
    // All of them are within ten minutes: nothing is forgotten for the sixth.
    let sixth = world.add(599, KeptAs::Counted(TENANT));
    assert!(old.iter().all(|scope| world.knows(*scope, 599)));
    // The first two are past ten minutes now. A tenant keeps five.
    let seventh = world.add(601, KeptAs::Counted(TENANT));
    assert!(!world.knows(old[0], 601) && !world.knows(old[1], 601));
    assert!([old[2], old[3], old[4], sixth, seventh].iter().all(|scope| world.knows(*scope, 601)));
}

#[test]
fn the_keys_of_one_tenant_do_not_displace_those_of_another() {
    let mut world = World::default();
    let other = world.add(0, KeptAs::Counted(Some(TenantNo(0))));
    let nobodys = world.add(0, KeptAs::Counted(None));
    (0..50).for_each(|n| _ = world.add(1000 * n, KeptAs::Counted(TENANT)));
    assert!(world.knows(other, 86_399) && world.knows(nobodys, 86_399));
    assert!(!world.knows(other, 86_400) && !world.knows(nobodys, 86_400), "a window is a day");
    assert_eq!(world.keys.len(), 7, "five of the tenant, and one of each of the others");
}

#[test]
fn only_too_many_keys_within_ten_minutes_are_refused() {
    let mut world = World::default();
    for n in 0..8 {
        assert!(!world.is_full(n), "{n} keys");
        world.add(n, KeptAs::Counted(TENANT));
    }
    assert!(world.is_full(599));
    assert!(!world.keys.is_full(Some(TenantNo(0)), Instant::from_secs(599), WINDOW, LIMITS), "another tenant");
    // The first one is past ten minutes, so it makes room.
    assert!(!world.is_full(600));
}

#[test]
fn brief_keys_live_ten_minutes_and_are_not_counted() {
    let mut world = World::default();
    let brief: Vec<u64> = (0..100).map(|_| world.add(10, KeptAs::Brief)).collect();
    assert!(!world.is_full(10));
    assert!(brief.iter().all(|scope| world.knows(*scope, 609)));
    assert!(!brief.iter().any(|scope| world.knows(*scope, 610)), "even before they are removed");
    // Each record removes a few.
    (0..25).for_each(|_| _ = world.add(700, KeptAs::Counted(TENANT)));
    assert_eq!(world.keys.queue_len(0), 0);
}

/// One key more, one key less: chunks are returned and used again, and slots stay right.
#[test]
fn slots_stay_valid_while_queues_grow_and_shrink() {
    let mut world = World::default();
    let mut dice = 7u64;
    for step in 0..20_000u64 {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let kept = match dice >> 33 & 7 {
            0..3 => KeptAs::Brief,
            tenant => KeptAs::Counted(Some(TenantNo(u32::try_from(tenant).expect("a small number")))),
        };
        let secs = step / 3;
        let scope = world.add(secs, kept);
        assert!(world.knows(scope, secs));
    }
    let mut seen = 0;
    for queue in 0..world.keys.queues() {
        world.keys.queue(queue).for_each(|(slot, key)| {
            seen += 1;
            assert_eq!(world.keys.at(slot), key);
        });
    }
    assert_eq!(seen, world.keys.len());
}

/// Many keys, then none, then many again: pages lose their memory and get it back.
#[test]
fn memory_is_returned_when_all_keys_are_gone() {
    let mut world = World::default();
    for round in 0..3u64 {
        let secs = round * 10_000;
        let scopes: Vec<u64> = (0..9_000).map(|_| world.add(secs, KeptAs::Brief)).collect();
        assert!(world.keys.len() >= 9_000 && scopes.iter().all(|scope| world.knows(*scope, secs)));
        assert!(world.keys.chunks.pages_in_memory() >= 2);
        let World { keys, index, .. } = &mut world;
        for _ in 0..9_000 {
            keys.sweep(Instant::from_secs(secs + 1_000), WINDOW, |slot, key| index.remove(slot, key));
        }
        assert_eq!(world.keys.len(), 0);
        assert_eq!(world.keys.chunks.pages_in_memory(), 0);
    }
}
