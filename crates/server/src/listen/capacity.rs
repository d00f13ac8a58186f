//! How many connections fit: as many as are configured, but no more than the limit of open files leaves room for.
//!
//! A connection is an open file, and so is everything that the journal, the books, snapshots and their readers need.
//! Connections must never take the files that the daemon needs to go on.

use crate::config::Limits;
use std::net::{IpAddr, Ipv6Addr};

/// Files that are kept for everything but connections: the journal, the books, snapshots, the log, the runtime's own,
/// and connections that are being rejected. With a very low limit it is half of it.
pub(super) const FILES_BESIDE: u64 = 256;
/// Rejected connections that get an answer at the same time; further ones are just closed.
const REJECTIONS_MAX: u64 = 64;
/// Unless it is configured, one address may have this part of all connections.
const ADDRESS_PART: usize = 4;

/// The limits that are in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capacity {
    pub(super) connections: usize,
    pub(super) per_address: usize,
    pub(super) rejections: usize,
}

impl Capacity {
    /// `files` is the limit of open files; `None` if there is none.
    pub(super) fn of(limits: &Limits, files: Option<u64>) -> Self {
        let files = files.unwrap_or(u64::MAX);
        let beside = FILES_BESIDE.min(files / 2);
        let fit = usize::try_from(files - beside).unwrap_or(usize::MAX);
        let connections = (limits.connections as usize).min(fit).max(1);
        let per_address = limits.connections_per_address.map(|most| most as usize);
        Self {
            connections,
            per_address: per_address.unwrap_or(connections / ADDRESS_PART).max(1),
            rejections: usize::try_from(REJECTIONS_MAX.min(beside / 4)).unwrap_or(usize::MAX),
        }
    }

    /// The same by the limit of open files of this process, with a warning if it had to be lowered.
    pub(super) fn of_process(limits: &Limits) -> Self {
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let capacity = Self::of(limits, files);
        if capacity.connections < limits.connections as usize {
            tracing::warn!(
                configured = limits.connections,
                in_force = capacity.connections,
                open_files = files,
                "limits.connections is lowered from {} to {}, because the process may have only {} files open; raise \
                 LimitNOFILE to {}, or lower limits.connections",
                limits.connections,
                capacity.connections,
                files.unwrap_or(u64::MAX),
                u64::from(limits.connections) + FILES_BESIDE,
            );
        }
        capacity
    }
}

/// Whose connections are counted together: an IPv4 address, or an IPv6 network of 64 bits, which is what one customer
/// gets. `None` for this machine itself: its operators and proxies are not limited.
pub(super) fn counted_as(address: IpAddr) -> Option<IpAddr> {
    match address.to_canonical() {
        address if address.is_loopback() => None,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Some(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into())
        }
        address => Some(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_the_files_of_the_daemon() {
        let limits =
            |connections, connections_per_address| Limits { connections, connections_per_address, ..Limits::default() };
        for (configured, files, [connections, per_address, rejections]) in [
            (limits(4096, None), None, [4096, 1024, 64]),
            (limits(4096, None), Some(65_536), [4096, 1024, 64]),
            (limits(4096, None), Some(4096 + 256), [4096, 1024, 64]),
            (limits(4096, None), Some(4096), [3840, 960, 64]),
            (limits(4096, None), Some(1024), [768, 192, 64]),
            (limits(4096, Some(900)), Some(1024), [768, 900, 64]),
            (limits(100, None), Some(1024), [100, 25, 64]),
            (limits(4096, None), Some(256), [128, 32, 32]),
            (limits(4096, None), Some(20), [10, 2, 2]),
            (limits(2, None), None, [2, 1, 64]),
            (limits(4096, None), Some(0), [1, 1, 0]),
        ] {
            let capacity = Capacity::of(&configured, files);
            assert_eq!(capacity, Capacity { connections, per_address, rejections }, "{configured:?} {files:?}");
        }
    }

    #[test]
    fn addresses_are_counted_by_host_or_network_and_this_machine_is_not() {
        let counted = |text: &str| counted_as(text.parse().expect("an address")).map(|address| address.to_string());
        assert_eq!(counted("127.0.0.1"), None);
        assert_eq!(counted("127.8.9.1"), None);
        assert_eq!(counted("::1"), None);
        assert_eq!(counted("::ffff:127.0.0.1"), None);
        assert_eq!(counted("10.0.0.7").as_deref(), Some("10.0.0.7"));
        assert_eq!(counted("::ffff:10.0.0.7").as_deref(), Some("10.0.0.7"));
        assert_eq!(counted("2001:db8:1:2:3:4:5:6").as_deref(), Some("2001:db8:1:2::"));
    }
}
