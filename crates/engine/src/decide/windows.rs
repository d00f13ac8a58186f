//! Maintenance windows: reserving nodes, and what happens when a window begins and ends (SEMANTICS 11).

use super::custody::in_rising_order;
use super::{Draft, Engine};
use crate::command::ReserveNodes;
use crate::holder::by_holder;
use crate::lease::Phase;
use crate::refusal::Refusal;
use crate::timer::Entry;
use crate::window::Window;
use leasehold_model::body::{Leases, Nodes, Revoked, WindowAnnounced, WindowEnded, WindowPut, WindowStarted};
use leasehold_model::limits::{LEASES_PER_RECORD_MAX, WINDOWS_MAX};
use leasehold_model::{Batch, Instant, LeaseNo, NodeNo, Reason, WindowNo};

impl Draft<'_> {
    /// Reserves nodes for maintenance, and tells the holders of leases on them.
    pub(super) fn reserve_nodes(&mut self, reserve: &ReserveNodes) -> Result<(), Refusal> {
        let nodes = in_rising_order(&reserve.nodes)?;
        for node in &nodes.0 {
            let found = self.state().node(*node).ok_or(Refusal::UnknownNode { node: *node })?;
            if found.custody.claim().is_some() {
                return Err(Refusal::WindowOnClaim { node: *node });
            }
        }
        let from = reserve.from.unwrap_or(self.now);
        if from < self.now {
            return Err(Refusal::WindowInPast);
        }
        if reserve.until <= from {
            return Err(Refusal::WindowEmpty);
        }
        if self.state().windows().count() >= WINDOWS_MAX {
            return Err(Refusal::TooManyWindows { limit: WINDOWS_MAX });
        }
        let window = WindowNo(u32::try_from(self.state().windows.len()).expect("window numbers fit 32 bits"));
        let (until, reason) = (reserve.until, reserve.reason.clone());
        let put = WindowPut { window, nodes, from, until, reason };
        self.plain(put.clone());
        self.announce(&put, None);
        Ok(())
    }

    /// Tells the holders of leases on the nodes of a window that there is one, or that it was cancelled.
    fn announce(&mut self, put: &WindowPut, cancelled: Option<bool>) {
        let on_them = put.nodes.0.iter().flat_map(|node| self.state().leases_on(*node));
        let groups = by_holder(on_them.filter(|lease| lease.phase == Phase::Active).map(|lease| (lease, ())));
        for ((holder, ()), mut leases) in groups {
            leases.sort_unstable();
            for leases in leases.chunks(LEASES_PER_RECORD_MAX) {
                let leases: Leases = leases.iter().copied().collect();
                let WindowPut { window, from, until, .. } = *put;
                let (reason, belongs_to) = (put.reason.clone(), holder.belongs_to);
                let announced = WindowAnnounced { window, from, until, reason, leases, belongs_to, cancelled };
                self.emit_for(&holder.identity(), announced);
            }
        }
    }

    /// Cancels a window, whether or not it has begun, and tells the holders of leases on its nodes.
    pub(super) fn unreserve_nodes(&mut self, window: WindowNo) -> Result<(), Refusal> {
        let found = self.state().window(window).ok_or(Refusal::UnknownWindow { window })?.clone();
        let Window { from, until, reason, .. } = found;
        let put = WindowPut { window, nodes: Nodes(found.nodes), from, until, reason };
        self.plain(WindowEnded { window, nodes: put.nodes.clone(), begun: found.is_open, cancelled: true });
        self.announce(&put, Some(true));
        Ok(())
    }

    /// Drains the nodes of a window, and revokes what still runs there with the grace of the pools.
    fn begin_window(&mut self, window: &Window) {
        let (number, nodes, from) = (window.number, Nodes(window.nodes.clone()), window.from);
        self.emit(None, WindowStarted { window: number, nodes }, |record| record.effective_at = from);
        let running = self.running_on(&window.nodes);
        let found = running.iter().map(|lease| self.state().lease(*lease).expect("it was just listed"));
        let groups = by_holder(found.map(|lease| (lease, self.pool_grace(lease.number))));
        for ((holder, grace), leases) in groups {
            for leases in leases.chunks(LEASES_PER_RECORD_MAX) {
                let leases = leases.iter().copied().collect();
                let body = Revoked { leases, grace, belongs_to: Some(holder.belongs_to) };
                self.emit_shaped(&holder.identity(), body, |record| record.reason = Some(Reason::Operator));
            }
        }
    }

    /// The active leases on these nodes, with the other members of their gangs, in order of number.
    fn running_on(&self, nodes: &[NodeNo]) -> Vec<LeaseNo> {
        let state = self.state();
        let mut running: Vec<LeaseNo> = Vec::new();
        let is_active = |lease: &LeaseNo| state.lease(*lease).is_some_and(|lease| lease.phase == Phase::Active);
        for lease in nodes.iter().flat_map(|node| state.leases_on(*node)) {
            let of = lease.of.and_then(|number| state.allocation(number));
            match of.filter(|found| lease.phase == Phase::Active && found.has_lease(lease.number)) {
                Some(found) => running.extend(found.lease_numbers().filter(is_active)),
                None => running.extend(Some(lease.number).filter(is_active)),
            }
        }
        running.sort_unstable();
        running.dedup();
        running
    }
}

impl Engine {
    /// Begins a window whose start is due. Returns whether there was one.
    pub(super) fn start_window(&mut self, now: Instant, due: Entry, out: &mut Batch) -> bool {
        let found = self.window_of(due).filter(|window| window.from == due.due() && !window.is_open);
        let Some(window) = found.cloned() else { return false };
        self.act(now, out, |draft| draft.begin_window(&window));
        true
    }

    /// Ends a window whose time is over. Returns whether there was one.
    pub(super) fn end_window(&mut self, now: Instant, due: Entry, out: &mut Batch) -> bool {
        let found = self.window_of(due).filter(|window| window.until == due.due());
        let Some(window) = found.cloned() else { return false };
        let ended =
            WindowEnded { window: window.number, nodes: Nodes(window.nodes), begun: window.is_open, cancelled: false };
        self.act(now, out, |draft| draft.emit(None, ended, |record| record.effective_at = window.until));
        true
    }

    fn window_of(&self, due: Entry) -> Option<&Window> {
        self.state.window(WindowNo(u32::try_from(due.id()).ok()?))
    }
}
