//! Idle capacity of claimed nodes. The claimer pays for it as if it were held at guaranteed priority (SEMANTICS 10).
//!
//! Within [claim, release), the idle capacity of each class of the node is what is neither held nor fenced, and zero
//! while the node is drained or lost. Ends of leases and losses of nodes can take effect before they are noticed, so
//! the intervals of a claim can change back to its start until the claim ends.

use crate::facts::{BillingKey, Books, Phase};
use crate::nodes::{CapacitySeries, CapacitySeriesKey, QuantaState};
use crate::row::{End, Life, Row};
use crate::table::signed;
use leasehold_meter::Window;
use leasehold_model::{ClassNo, Instant, LeaseNo, NodeNo, PoolNo, Priority, ProjectNo, Record, TenantNo, UserNo};
use std::collections::BTreeMap;

type Followed = Result<(), &'static str>;

const GUARANTEED: Priority = Priority::Guaranteed;

/// The most intervals of one class that can still change. Beyond that, the older half becomes final.
const STRETCHES_MAX: usize = 1 << 16;

/// From an instant on: quanta that are neither held nor fenced, and whether the node is in service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) at: Instant,
    pub(crate) rest: u64,
    pub(crate) in_service: bool,
}

impl Step {
    pub(crate) fn level(self) -> u64 {
        if self.in_service { self.rest } else { 0 }
    }
}

/// One class of a claimed node.
#[derive(Clone, Debug)]
pub(crate) struct Idle {
    pub(crate) billing: u32,
    /// In order of time; the last one has no end.
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) tenant: TenantNo,
    pub(crate) project: ProjectNo,
    pub(crate) user: Option<UserNo>,
    /// The sequence of the record that made it.
    pub(crate) sequence: u64,
    pub(crate) tag: Option<u32>,
    pub(crate) pool: PoolNo,
    pub(crate) classes: BTreeMap<ClassNo, Idle>,
}

pub(crate) type Claims = BTreeMap<NodeNo, Claim>;

impl Claim {
    /// A row for idle capacity over an interval.
    pub(crate) fn row(&self, node: NodeNo, class: ClassNo, quanta: u64, held: Window) -> Row {
        Row {
            lease: LeaseNo(u64::MAX),
            tenant: self.tenant,
            project: self.project,
            payer: self.project,
            user: self.user,
            pool: self.pool,
            node,
            class,
            priority: Priority::Guaranteed,
            by_claim: false,
            tag: self.tag,
            allocation: None,
            app_instance: None,
            workload: None,
            quanta,
            held,
            end_before: None,
            end: End::Idle,
            fenced: false,
            activity: None,
            life: Life { sequence: self.sequence, ..Life::default() },
            rare: None,
        }
    }
}

impl Idle {
    /// Changes every step from an instant on, and returns the resulting changes of the level.
    fn edit(
        &mut self,
        from: Instant,
        change: impl Fn(&mut Step) -> Followed,
    ) -> Result<Vec<(Instant, i64)>, &'static str> {
        let from = from.max(self.steps[0].at);
        let place = match self.steps.binary_search_by_key(&from, |step| step.at) {
            Ok(place) => place,
            Err(place) => {
                self.steps.insert(place, Step { at: from, ..self.steps[place - 1] });
                place
            }
        };
        let mut changes = Vec::new();
        let mut carried = 0;
        for step in &mut self.steps[place..] {
            let before = signed(step.level());
            change(step)?;
            let by = signed(step.level()) - before;
            if by != carried {
                changes.push((step.at, by - carried));
                carried = by;
            }
        }
        Ok(changes)
    }

    /// The intervals with idle capacity up to `until`.
    fn stretches(&self, until: Instant) -> impl Iterator<Item = (u64, Window)> + '_ {
        self.cut(until).map(|(step, window)| (step.level(), window)).filter(|(level, _)| *level > 0)
    }

    /// Each step with its interval, up to `until`.
    fn cut(&self, until: Instant) -> impl Iterator<Item = (Step, Window)> + '_ {
        let ends = self.steps.iter().skip(1).map(|step| step.at).chain([Instant::MAX]);
        let cut = move |(step, end): (&Step, Instant)| (*step, Window::new(step.at, end.min(until).max(step.at)));
        self.steps.iter().zip(ends).map(cut).filter(|(_, window)| !window.is_empty())
    }
}

impl Books {
    pub(crate) fn claim(&mut self, record: &Record, node: NodeNo) -> Followed {
        let tenant = record.identity.tenant.ok_or("a claim without a tenant")?;
        let project = record.identity.project.ok_or("a claim without a project")?;
        let tag = self.tenant_tags.get(&tenant).copied();
        let book = self.nodes.books.get(&node).ok_or("unknown node")?;
        let (pool, in_service) = (book.pool, book.is_available());
        let rests: Vec<(ClassNo, u64)> = book.classes.iter().map(|class| (class.class, class.unheld())).collect();
        let mut classes = BTreeMap::new();
        for (class, rest) in rests {
            let billing = self.payer(BillingKey {
                tenant,
                project,
                tag,
                class,
                pool,
                priority: GUARANTEED,
                priced: GUARANTEED,
                payer: project,
                app_instance: None,
                attachment: None,
                control_plane: false,
            });
            let step = Step { at: record.stamp, rest, in_service };
            classes.insert(class, Idle { billing, steps: vec![step] });
            self.book_idle(node, pool, class, billing, &[(record.stamp, signed(step.level()))]);
        }
        let (user, sequence) = (record.identity.user, record.sequence);
        let claim = Claim { tenant, project, user, sequence, tag, pool, classes };
        self.claims.insert(node, claim);
        Ok(())
    }

    pub(crate) fn unclaim(&mut self, node: NodeNo, by: &Record) -> Followed {
        let stamp = by.stamp;
        let claim = self.claims.remove(&node).ok_or("the node is not claimed")?;
        self.note_ended_claim(node, &claim, by);
        for (class, idle) in &claim.classes {
            for (level, window) in idle.stretches(stamp) {
                self.close(claim.row(node, *class, level, window));
            }
            let last = idle.steps.last().expect("a claim has at least one step").level();
            self.book_idle(node, claim.pool, *class, idle.billing, &[(stamp, -signed(last))]);
        }
        Ok(())
    }

    /// Updates the idle capacity of a claim after quanta of its node changed their state.
    pub(crate) fn shift_idle(
        &mut self,
        node: NodeNo,
        class: ClassNo,
        (from, to): (QuantaState, QuantaState),
        quanta: u64,
        at: Instant,
    ) -> Followed {
        // Capacity that is being torn down counts as idle.
        let counts = |state: QuantaState| matches!(state, QuantaState::Held | QuantaState::Fenced);
        let by = match (counts(from), counts(to)) {
            (true, false) => signed(quanta),
            (false, true) => -signed(quanta),
            _ => return Ok(()),
        };
        self.edit_idle(node, Some(class), at, |step| {
            step.rest = step.rest.checked_add_signed(by).ok_or("leases hold more than the claimed node has")?;
            Ok(())
        })
    }

    /// Updates the idle capacity after the node went out of service or came back.
    pub(crate) fn serve_idle(&mut self, node: NodeNo, at: Instant) -> Followed {
        let in_service = self.nodes.books.get(&node).is_some_and(crate::nodes::NodeBook::is_available);
        self.edit_idle(node, None, at, |step| {
            step.in_service = in_service;
            Ok(())
        })
    }

    fn edit_idle(
        &mut self,
        node: NodeNo,
        class: Option<ClassNo>,
        at: Instant,
        change: impl Fn(&mut Step) -> Followed,
    ) -> Followed {
        let Some(claim) = self.claims.get_mut(&node) else { return Ok(()) };
        let pool = claim.pool;
        let mut booked = Vec::new();
        for (number, idle) in claim.classes.iter_mut().filter(|(number, _)| class.is_none_or(|class| class == **number))
        {
            booked.push((*number, idle.billing, idle.edit(at, &change)?));
        }
        for (class, billing, changes) in booked {
            self.book_idle(node, pool, class, billing, &changes);
        }
        self.settle_old_stretches(node);
        Ok(())
    }

    /// Makes the older half of a very long list of intervals final.
    fn settle_old_stretches(&mut self, node: NodeNo) {
        let Some(claim) = self.claims.get_mut(&node) else { return };
        let mut rows = Vec::new();
        for class in claim.classes.keys().copied().collect::<Vec<_>>() {
            let idle = claim.classes.get_mut(&class).expect("it was just listed");
            if idle.steps.len() <= STRETCHES_MAX {
                continue;
            }
            let later = idle.steps.split_off(STRETCHES_MAX / 2);
            let settled = std::mem::replace(&mut idle.steps, later);
            let settled = Idle { billing: idle.billing, steps: settled };
            let until = idle.steps[0].at;
            rows.extend(settled.stretches(until).map(|(level, window)| claim.row(node, class, level, window)));
        }
        rows.into_iter().for_each(|row| self.close(row));
    }

    fn book_idle(&mut self, node: NodeNo, pool: PoolNo, class: ClassNo, billing: u32, changes: &[(Instant, i64)]) {
        // Increases come before decreases, so that no series becomes negative.
        let (more, less): (Vec<_>, Vec<_>) = changes.iter().filter(|(_, by)| *by != 0).partition(|(_, by)| *by > 0);
        for (at, by) in more.into_iter().chain(less) {
            self.bill(billing, at, by);
            let key = CapacitySeriesKey { node, pool, class, series: CapacitySeries::ClaimedIdle };
            self.nodes.change(key, at, by, &mut self.store);
        }
    }

    /// The idle capacity of nodes that are still claimed, up to `until`. A held lease counts as idle from its deadline
    /// on even if its expiry was not recorded yet, unless `renewed` is set, which assumes that leases are renewed for
    /// ever.
    pub(crate) fn idle_rows(&self, until: Instant, renewed: bool, mut each: impl FnMut(&Row)) {
        for (node, claim) in &self.claims {
            for (class, idle) in &claim.classes {
                for (level, window) in idle.stretches(until) {
                    each(&claim.row(*node, *class, level, window));
                }
            }
        }
        if renewed || self.claims.is_empty() {
            return;
        }
        for open in self.open.values().filter(|open| open.phase == Phase::Held && open.row.held.to < until) {
            let row = &open.row;
            let Some(claim) = self.claims.get(&row.node) else { continue };
            let over = Window::new(row.held.to, until);
            let steps = claim.classes.get(&row.class).into_iter().flat_map(|idle| idle.cut(until));
            for window in steps.filter(|(step, _)| step.in_service).map(|(_, window)| window.clip(over)) {
                if !window.is_empty() {
                    each(&claim.row(row.node, row.class, row.quanta, window));
                }
            }
        }
    }
}
