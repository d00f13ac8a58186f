//! The leases of a tenant that are not closed, in little memory: there may be a million.

use crate::list::{Ending, OpenLease, Phase, Revocation};
use leasehold_model::{
    AppInstanceNo, AttachmentNo, ClassNo, Instant, LeaseNo, Name, NodeNo, PoolNo, Priority, ProjectNo, Quanta,
};
use std::collections::HashMap;
use std::ops::Range;

/// A lease without its number. What few leases have is in a box.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) quanta: Quanta,
    pub(crate) from: Instant,
    /// The deadline while it is held; then the end of billing.
    pub(crate) to: Instant,
    rare: Option<Box<Rare>>,
    pub(crate) payer: ProjectNo,
    pub(crate) project: ProjectNo,
    pub(crate) pool: PoolNo,
    pub(crate) node: NodeNo,
    tag: u32,
    pub(crate) class: ClassNo,
    pub(crate) priority: Priority,
    pub(crate) priced: Priority,
    pub(crate) phase: Phase,
    pub(crate) ending: Ending,
    pub(crate) revoked: Revocation,
    pub(crate) failed_start: bool,
}

const _: () = assert!(size_of::<Lease>() <= 64, "a month of a large cluster must fit the memory of a daemon");

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rare {
    app_instance: Option<AppInstanceNo>,
    attachment: Option<AttachmentNo>,
    control_plane: bool,
    fenced_from: Option<Instant>,
    ended: Option<Instant>,
}

impl Lease {
    fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    pub(crate) fn fence(&mut self, from: Instant) {
        self.phase = Phase::Fenced;
        self.rare_mut().fenced_from = Some(from);
    }

    /// The work of its attempt could not be started. Leases that were evicted keep their end, and so do those of lost nodes.
    pub(crate) fn fail_start(&mut self) {
        match self.revoked {
            Revocation::Preempted | Revocation::PreemptedBefore | Revocation::ForOwn => return,
            Revocation::None | Revocation::Plain | Revocation::NodeLost => {}
        }
        self.failed_start = true;
        if self.ending == Ending::Plain {
            self.ending = Ending::FailedStart;
        }
    }

    /// It ends at an instant, but neither before its grant nor after its deadline.
    pub(crate) fn end(&mut self, at: Instant, ending: Ending) {
        self.to = at.min(self.to).max(self.from);
        self.ending = if self.failed_start { Ending::FailedStart } else { ending };
        self.phase = Phase::TearingDown;
    }

    /// Its node was last seen before it ended, and it is billed up to then.
    pub(crate) fn correct_end(&mut self, last_seen: Instant) {
        let (from, to) = (self.from, self.to);
        self.rare_mut().ended.get_or_insert(to);
        self.to = to.min(last_seen.max(from));
    }
}

/// The open leases of a tenant. Their tags are few, and kept once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leases {
    open: HashMap<u64, Lease>,
    tags: Vec<Name>,
}

impl Leases {
    fn tag_number(&mut self, tag: Option<&Name>) -> u32 {
        let Some(tag) = tag else { return 0 };
        // New leases nearly always have the tag of the last one.
        let place = self.tags.iter().rposition(|known| known == tag).unwrap_or_else(|| {
            self.tags.push(tag.clone());
            self.tags.len() - 1
        });
        u32::try_from(place + 1).expect("a tenant does not change its tag 2^32 times")
    }

    /// Adds a lease; false if there is one with that number.
    pub(crate) fn add(&mut self, lease: &OpenLease) -> bool {
        let tag = self.tag_number(lease.tag.as_ref());
        let rare = Rare {
            app_instance: lease.app_instance,
            attachment: lease.attachment,
            control_plane: lease.control_plane,
            fenced_from: lease.fenced_from,
            ended: lease.ended,
        };
        let rare = (rare != Rare::default()).then(|| Box::new(rare));
        let OpenLease { payer, project, pool, node, class, quanta, priority, priced, .. } = *lease;
        let OpenLease { from, to, phase, ending, revoked, failed_start, .. } = *lease;
        #[rustfmt::skip]
        let packed = Lease { quanta, from, to, rare, payer, project, pool, node, tag, class, priority, priced, phase, ending, revoked, failed_start };
        self.open.insert(lease.lease.0, packed).is_none()
    }

    pub(crate) fn get_mut(&mut self, lease: LeaseNo) -> Option<&mut Lease> {
        self.open.get_mut(&lease.0)
    }

    /// The work of these leases could not be started. Returns how many of them are here.
    pub(crate) fn fail_starts(&mut self, named: &Range<u64>) -> u64 {
        let mut count = 0;
        let mut fail = |lease: &mut Lease| {
            lease.fail_start();
            count += 1;
        };
        if named.end.saturating_sub(named.start) > self.open.len() as u64 {
            let open = self.open.iter_mut().filter(|(number, _)| named.contains(number));
            open.for_each(|(_, lease)| fail(lease));
        } else {
            named.clone().for_each(|number| _ = self.open.get_mut(&number).map(&mut fail));
        }
        count
    }

    pub(crate) fn remove(&mut self, number: LeaseNo) -> Option<OpenLease> {
        let lease = self.open.remove(&number.0)?;
        Some(self.listed(number, &lease))
    }

    fn listed(&self, lease: LeaseNo, packed: &Lease) -> OpenLease {
        let rare = packed.rare.as_deref();
        let tag = packed.tag.checked_sub(1).map(|place| self.tags[place as usize].clone());
        let Lease { payer, project, pool, node, class, quanta, priority, priced, .. } = *packed;
        let Lease { from, to, phase, ending, revoked, failed_start, .. } = *packed;
        OpenLease {
            lease,
            payer,
            project,
            pool,
            node,
            class,
            quanta,
            priority,
            priced,
            tag,
            app_instance: rare.and_then(|rare| rare.app_instance),
            attachment: rare.and_then(|rare| rare.attachment),
            control_plane: rare.is_some_and(|rare| rare.control_plane),
            from,
            to,
            phase,
            ending,
            revoked,
            failed_start,
            fenced_from: rare.and_then(|rare| rare.fenced_from),
            ended: rare.and_then(|rare| rare.ended),
        }
    }

    /// All of them, in order of number.
    pub(crate) fn list(&self) -> Vec<OpenLease> {
        let mut numbers: Vec<u64> = self.open.keys().copied().collect();
        numbers.sort_unstable();
        numbers.into_iter().map(|number| self.listed(LeaseNo(number), &self.open[&number])).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }
}
