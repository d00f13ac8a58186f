//! The data set of the queries; `peers/usage.py` defines how it is generated. Integer arithmetic only, so that all
//! generate the same.

/// 2026-01-01T00:00:00Z, and a month of thirty days.
pub(super) const T0: u64 = 1_767_225_600;
pub(super) const MONTH: u64 = 30 * 86_400;
pub(super) const TENANTS: u32 = 1000;
pub(super) const NODES: u32 = 1000;
pub(super) const RESOURCES: u16 = 5;

const SEED: u64 = 20_260_101;
const GOLD: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn below(v: u64, n: u64) -> u64 {
    ((v >> 32) * n) >> 32
}

/// One lease; times in seconds since [`T0`].
#[derive(Clone, Copy)]
pub(super) struct Lease {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) tenant: u16,
    pub(super) node: u16,
    pub(super) resource: u8,
    pub(super) capacity: u8,
}

/// All leases in order of start.
pub(super) fn leases(count: u64) -> Vec<Lease> {
    let lengths: Vec<u64> =
        include_str!("../../peers/durations.csv").lines().map(|line| line.parse().expect("a number")).collect();
    let mut sum = 0;
    let shares: Vec<u64> = (0..u64::from(TENANTS))
        .map(|k| {
            sum += 100_000_000 / (k + 1);
            sum
        })
        .collect();
    let one = |i: u64| {
        let u = |j: u64| mix(SEED.wrapping_add((8 * i + j + 1).wrapping_mul(GOLD)));
        let tenant = shares.partition_point(|cumulated| *cumulated <= below(u(0), sum));
        let start = below(u(4), MONTH);
        let v = u(5);
        let (k, f) = ((v >> 52) as usize, v >> 32 & 0xf_ffff);
        let length = lengths[k] + (((lengths[k + 1] - lengths[k]) * f) >> 20);
        Lease {
            start: start as u32,
            end: (start + length) as u32,
            tenant: tenant as u16,
            node: below(u(6), u64::from(NODES)) as u16,
            resource: below(u(1), u64::from(RESOURCES)) as u8,
            capacity: (1 + below(u(3), 64)) as u8,
        }
    };
    let mut all: Vec<Lease> = (0..count).map(one).collect();
    all.sort_by_key(|lease| lease.start);
    all
}

/// Window `k` of a seed, in seconds since 1970.
pub(super) fn window(seed: u64, k: u64) -> (u64, u64) {
    let u = |j: u64| mix(seed.wrapping_add((2 * k + j + 1).wrapping_mul(GOLD)));
    let start = T0 + below(u(0), MONTH - 115_200);
    (start, start + 72_000 + below(u(1), 43_201))
}

#[cfg(test)]
mod tests {
    #[test]
    fn windows_are_those_of_the_peers() {
        assert_eq!(super::window(1, 0), (1_768_628_859, 1_768_733_077));
        assert_eq!(super::window(7, 59), (1_768_130_268, 1_768_216_953));
    }
}
