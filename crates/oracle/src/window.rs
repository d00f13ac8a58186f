//! Maintenance windows (SEMANTICS 11): on their nodes nothing is granted or renewed past the start; what still runs then
//! is revoked with the grace of its pool; a node is drained while an operator's drain or any window holds.

use crate::acts::{Line, Script};
use crate::command::Command;
use crate::foretell::{Foretold, Told};
use crate::holder::Holder;
use crate::lease::{Lease, Phase};
use crate::violation::{Checked, demand, found};
use crate::world::World;
use leasehold_model::body::{Nodes, WindowAnnounced, WindowEnded, WindowPut, WindowStarted};
use leasehold_model::limits::WINDOWS_MAX;
use leasehold_model::{Instant, LeaseNo, Name, NodeNo, Reason, Record, Span, WindowNo};
use std::collections::BTreeSet;

/// A window that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) put: WindowPut,
    pub(crate) has_begun: bool,
}

/// Nodes to reserve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowWish {
    pub nodes: Vec<NodeNo>,
    pub from: Option<Instant>,
    pub until: Instant,
    pub reason: Option<Name>,
}

impl World {
    fn windows_on(&self, node: NodeNo) -> impl Iterator<Item = &Window> {
        self.windows.values().filter(move |window| window.put.nodes.0.contains(&node))
    }

    /// Whether any window holds on the node, or will.
    pub(crate) fn is_reserved_for_maintenance(&self, node: NodeNo) -> bool {
        self.windows_on(node).next().is_some()
    }

    /// Marks the nodes on which a window has begun.
    fn mark_windows(&mut self) {
        let begun = self.windows.values().filter(|window| window.has_begun);
        let begun: BTreeSet<NodeNo> = begun.flat_map(|window| window.put.nodes.0.clone()).collect();
        self.nodes.iter_mut().for_each(|(number, node)| node.in_window = begun.contains(number));
    }

    /// The first window to come on a node.
    pub(crate) fn next_window(&self, node: NodeNo) -> Option<(Instant, WindowNo)> {
        let to_come = self.windows_on(node).filter(|window| !window.has_begun);
        to_come.map(|window| (window.put.from, window.put.window)).min()
    }

    /// Whether work that starts then may run on the node: with a walltime it must be over before the next window.
    pub(crate) fn ends_before_window(&self, node: NodeNo, start: Instant, walltime: Option<Span>) -> bool {
        self.next_window(node).is_none_or(|(from, _)| match walltime {
            Some(walltime) => start.saturating_add(walltime) <= from,
            None => start < from,
        })
    }

    /// A TTL on a node, shortened to the start of the next window if it would pass it.
    pub(crate) fn ttl_to_window(&self, node: NodeNo, ttl: Span, now: Instant) -> (Span, Option<WindowNo>) {
        match self.next_window(node) {
            Some((from, window)) if now.saturating_add(ttl) > from => (from.since(now), Some(window)),
            _ => (ttl, None),
        }
    }

    /// Why nodes cannot be reserved, if so.
    fn fault_of_window(&self, nodes: &[NodeNo], from: Instant, until: Instant, now: Instant) -> Option<&'static str> {
        for node in nodes {
            match self.nodes.get(node) {
                None => return Some("unknown_node"),
                Some(node) if node.custody.claimer().is_some() => return Some("window_on_claim"),
                Some(_) => {}
            }
        }
        if from < now {
            return Some("window_in_past");
        }
        if until <= from {
            return Some("window_empty");
        }
        (self.windows.len() >= WINDOWS_MAX).then_some("too_many_windows")
    }

    pub(crate) fn foretell_window(&self, wish: &WindowWish, now: Instant) -> Told {
        let nodes = crate::custody::in_order(&wish.nodes)?;
        let fault = self.fault_of_window(&nodes, wish.from.unwrap_or(now), wish.until, now);
        // What is recorded is checked by the rules for records.
        fault.map_or(Ok(Foretold::Stands), Err)
    }

    pub(crate) fn foretell_window_cancelled(&self, window: WindowNo) -> Told {
        self.windows.get(&window).ok_or("unknown_window")?;
        // The end and the records for the holders are checked by the rules for records.
        Ok(Foretold::Stands)
    }

    /// The holders of leases on the nodes are told, each by a record of its own.
    pub(crate) fn window_put(&mut self, command: &mut Command, record: &Record, put: &WindowPut) -> Checked {
        self.check_new_number("window", u64::from(put.window.0))?;
        let fault = self.fault_of_window(&put.nodes.0, put.from, put.until, record.stamp);
        demand!(fault.is_none(), "window", "must be refused: {fault:?}");
        self.take_number("window", u64::from(put.window.0));
        self.windows.insert(put.window, Window { put: put.clone(), has_begun: false });
        command.script.extend(self.announcements(put, None, record.stamp));
        Ok(())
    }

    fn announcements(&self, put: &WindowPut, cancelled: Option<bool>, now: Instant) -> Script {
        let mut groups: Vec<(Holder, Vec<LeaseNo>)> = Vec::new();
        let on_them = |node: NodeNo| put.nodes.0.contains(&node);
        for lease in self.leases.iter().filter(|lease| on_them(lease.node) && lease.phase == Phase::Active) {
            let holder = lease.holder();
            match groups.iter_mut().find(|(other, _)| *other == holder) {
                Some((_, leases)) => leases.push(lease.number),
                None => groups.push((holder, vec![lease.number])),
            }
        }
        groups.sort_by_key(|((who, belongs_to), _)| {
            (who.tenant, who.project, who.user, who.workload.clone(), *belongs_to)
        });
        let line = |((identity, belongs_to), leases): (Holder, Vec<LeaseNo>)| {
            let body = WindowAnnounced {
                window: put.window,
                from: put.from,
                until: put.until,
                reason: put.reason.clone(),
                leases: leases.into_iter().collect(),
                belongs_to,
                cancelled,
            };
            Line::new(body, identity, now)
        };
        groups.into_iter().map(line).collect()
    }

    fn check_window(&self, window: WindowNo, nodes: &Nodes) -> Checked {
        let found = found!(self.windows.get(&window), "unknown-window", "there is no {window}");
        demand!(found.put.nodes == *nodes, "window", "{window} has other nodes");
        Ok(())
    }

    /// The start, whose instant is checked as a timer. Everything that runs on the nodes is revoked, gangs whole.
    pub(crate) fn window_started(
        &mut self,
        command: &mut Command,
        record: &Record,
        started: &WindowStarted,
    ) -> Checked {
        self.check_window(started.window, &started.nodes)?;
        self.windows.get_mut(&started.window).expect("just found").has_begun = true;
        self.mark_windows();
        let active = || self.leases.iter().filter(|lease| lease.phase == Phase::Active);
        let hit = || active().filter(|lease| started.nodes.0.contains(&lease.node));
        let gangs: BTreeSet<_> = hit().filter_map(|lease| self.attempt_of(lease)).map(|of| of.number).collect();
        let alone: BTreeSet<LeaseNo> = hit().map(|lease| lease.number).collect();
        let of_gang = |lease: &Lease| self.attempt_of(lease).is_some_and(|of| gangs.contains(&of.number));
        let falls = active().filter(|lease| alone.contains(&lease.number) || of_gang(lease));
        let falls: Vec<LeaseNo> = falls.map(|lease| lease.number).collect();
        command.script.extend(self.revocations(&falls, Reason::Operator, record.stamp));
        Ok(())
    }

    /// The end at `until`, which is checked as a timer, or by an operator. The holders of leases there, who were told of
    /// the window, are told when it is cancelled.
    pub(crate) fn window_ended(&mut self, command: &mut Command, record: &Record, ended: &WindowEnded) -> Checked {
        self.check_window(ended.window, &ended.nodes)?;
        let window = self.windows.remove(&ended.window).expect("just found");
        demand!(window.has_begun == ended.begun, "window", "{} has begun: {}", ended.window, window.has_begun);
        self.mark_windows();
        if ended.cancelled {
            command.script.extend(self.announcements(&window.put, Some(true), record.stamp));
        }
        Ok(())
    }

    /// No lease runs past the start of a window that was known when it was granted or renewed.
    pub(crate) fn check_before_window(&self, node: NodeNo, expires_at: Instant) -> Checked {
        if let Some((from, window)) = self.next_window(node) {
            demand!(expires_at <= from, "window", "{expires_at} is past {from}, when {window} begins on {node}");
        }
        Ok(())
    }
}
