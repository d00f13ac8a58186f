//! Commands about classes, pools, nodes and settings.

use super::Draft;
use crate::command::{NodeService, NoteEmptyNode, PutClass, PutNode, PutPool};
use crate::custody::Custody;
use crate::quota::common_multiple;
use crate::refusal::Refusal;
use crate::state::{CLASSES_MAX, Settings, class_no};
use leasehold_model::body::{
    ClassPut, NodeDeleted, NodeDrained, NodeEmpty, NodePut, NodeResumed, NodeReturned, PlacementChanged, PoolDeleted,
    PoolPlacementPut, PoolPut, PoolQueuePut, QueueChanged, SensitiveChanged, SettingsChanged,
};
use leasehold_model::limits::{
    CLASSES_PER_NODE_MAX, DEVICES_PER_CLASS_MAX, HEAT_HALF_LIFE_MIN, IDEMPOTENCY_SURE, LABELS_PER_NODE_MAX,
    LIMIT_SPAN_MAX, QUANTA_PER_NODE_MAX, TTL_MAX,
};
use leasehold_model::placement::BadWeights;
use leasehold_model::{ClassNo, ClassSpec, Name, NodeNo, PoolNo, Quanta, Span};

/// The number of an entry: the given one, or the next free one.
pub(super) fn number(given: Option<u32>, len: usize) -> Result<u32, Refusal> {
    match given {
        Some(number) => Ok(number),
        None => u32::try_from(len).map_err(|_| Refusal::Numbers),
    }
}

/// Refuses a name that another entry has.
pub(super) fn free_name(taken_by: Option<&u32>, number: u32) -> Result<(), Refusal> {
    match taken_by {
        Some(other) if *other != number => Err(Refusal::NameTaken),
        _ => Ok(()),
    }
}

impl Draft<'_> {
    pub(super) fn put_class(&mut self, put: &PutClass) -> Result<(), Refusal> {
        let state = self.state();
        if put.spec.check().is_err() {
            return Err(Refusal::BadClass { quanta_per_unit: put.spec.quanta_per_unit });
        }
        let number = number(put.class.map(|c| u32::from(c.0)), state.classes.len())?;
        if put.class.is_none() && state.classes.len() >= CLASSES_MAX {
            return Err(Refusal::ClassLimit { limit: CLASSES_MAX });
        }
        let class = class_no(number);
        if put.class.is_some() {
            let old = state.class(class).ok_or(Refusal::UnknownClass { class })?;
            // Prices depend on the tier: changing it would change the cost of past usage.
            let (was, is) =
                ((old.kind, old.quanta_per_unit, &old.tier), (put.spec.kind, put.spec.quanta_per_unit, &put.spec.tier));
            let changed = was != is;
            let in_use = || state.was_leased(class) || state.nodes().any(|node| node.class(class).is_some());
            if changed && in_use() {
                return Err(Refusal::ClassInUse { class });
            }
        }
        free_name(state.names.classes.get(&put.spec.name), number)?;
        self.check_common_part(class, &put.spec)?;
        self.plain(ClassPut { class, spec: put.spec.clone() });
        Ok(())
    }

    /// Quotas on a kind must be able to count the classes of the kind together, with the new one.
    fn check_common_part(&self, class: ClassNo, spec: &ClassSpec) -> Result<(), Refusal> {
        let state = self.state();
        let kind = spec.kind;
        if !state.quotas().any(|quota| quota.scope.further.kind == Some(kind)) {
            return Ok(());
        }
        let others = state.classes().filter(|(number, other)| *number != class && other.kind == kind);
        let all = others.map(|(_, other)| other.quanta_per_unit).chain([spec.quanta_per_unit]);
        common_multiple(all).map(|_| ()).ok_or(Refusal::KindHasNoCommonPart { kind })
    }

    pub(super) fn put_pool(&mut self, put: &PutPool) -> Result<(), Refusal> {
        let state = self.state();
        let number = number(put.pool.map(|p| p.0), state.pools.len())?;
        let pool = PoolNo(number);
        if put.pool.is_some() && state.pool(pool).is_none() {
            return Err(Refusal::UnknownPool { pool });
        }
        free_name(state.names.pools.get(&put.name), number)?;
        for (setting, limits) in [("ttl_max", put.ttl_max), ("lifetime_max", put.lifetime_max)] {
            limits.0.into_iter().flatten().try_for_each(|span| in_range(setting, span, TTL_MAX))?;
        }
        if put.grace.is_some_and(|grace| grace > LIMIT_SPAN_MAX) {
            return Err(Refusal::GraceTooLong { limit: LIMIT_SPAN_MAX });
        }
        let weights = put.weights.flatten();
        if let Some(BadWeights { sum }) = weights.and_then(|weights| weights.check().err()) {
            return Err(Refusal::BadWeights { why: BadWeights { sum } });
        }
        if let Some(queue) = put.queue.filter(|queue| queue.min_runtime_before_eviction > TTL_MAX) {
            in_range("min_runtime_before_eviction", queue.min_runtime_before_eviction, TTL_MAX)?;
        }
        let old_queue = state.pool(pool).map(|pool| pool.queue).unwrap_or_default();
        let new_queue = put.queue.filter(|queue| *queue != old_queue);
        let old_weights = state.pool(pool).and_then(|pool| pool.weights);
        let changes_weights = put.weights.is_some() && weights != old_weights;
        self.plain(PoolPut {
            pool,
            name: put.name.clone(),
            strategy: put.strategy,
            ttl_max: put.ttl_max,
            lifetime_max: put.lifetime_max,
            grace: put.grace,
        });
        if changes_weights {
            self.plain(PoolPlacementPut { pool, weights });
        }
        if let Some(queue) = new_queue {
            self.plain(PoolQueuePut { pool, queue });
        }
        Ok(())
    }

    pub(super) fn delete_pool(&mut self, pool: PoolNo) -> Result<(), Refusal> {
        let found = self.state().pool(pool).ok_or(Refusal::UnknownPool { pool })?;
        if found.nodes > 0 {
            return Err(Refusal::PoolHasNodes { pool });
        }
        self.plain(PoolDeleted { pool });
        Ok(())
    }

    pub(super) fn put_node(&mut self, put: &PutNode) -> Result<(), Refusal> {
        let state = self.state();
        let number = number(put.node.map(|n| n.0), state.nodes.len())?;
        let node = NodeNo(number);
        if put.node.is_some() && state.node(node).is_none() {
            return Err(Refusal::UnknownNode { node });
        }
        if state.pool(put.pool).is_none() {
            return Err(Refusal::UnknownPool { pool: put.pool });
        }
        free_name(state.names.nodes.get(&put.name), number)?;
        check_labels(&put.labels)?;
        let mut capacity = put.capacity.clone();
        capacity.sort_by_key(|(class, _)| *class);
        self.check_capacity(&capacity)?;
        if let Some(old) = state.node(node) {
            let same_capacity =
                || old.classes.iter().map(|c| (c.class, Quanta(c.capacity))).eq(capacity.iter().copied());
            if old.custody.is_in_sensitive_pool() && (old.pool != put.pool || !same_capacity()) {
                return Err(Refusal::NodeInCustody { node, state: old.custody.word() });
            }
            if old.pool != put.pool && (old.has_leases() || old.is_reserved()) {
                return Err(Refusal::NodeHasLeases { node });
            }
            for class in &old.classes {
                let new = capacity.iter().find(|(no, _)| *no == class.class).map_or(0, |(_, q)| q.0);
                let kept = new.checked_div(class.per_device).unwrap_or(0);
                let kept = usize::try_from(kept).expect("at most 64 devices");
                let lost_device = class.devices.iter().skip(kept).any(|used| *used > 0);
                if new < class.used() || lost_device {
                    return Err(Refusal::NodeTooSmall { class: class.class, used: class.used(), capacity: new });
                }
            }
        }
        self.plain(NodePut {
            node,
            name: put.name.clone(),
            pool: put.pool,
            rack: put.rack.clone(),
            zone: put.zone.clone(),
            labels: put.labels.clone(),
            teardown: put.teardown,
            capacity,
        });
        Ok(())
    }

    fn check_capacity(&self, capacity: &[(ClassNo, Quanta)]) -> Result<(), Refusal> {
        if capacity.len() > CLASSES_PER_NODE_MAX {
            return Err(Refusal::TooManyNodeClasses { limit: CLASSES_PER_NODE_MAX });
        }
        if let Some(pair) = capacity.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Refusal::DuplicateClass { class: pair[0].0 });
        }
        for (class, quanta) in capacity {
            let class = *class;
            let spec = self.state().class(class).ok_or(Refusal::UnknownClass { class })?;
            if quanta.0 == 0 {
                return Err(Refusal::ZeroQuantity { class });
            }
            if quanta.0 > QUANTA_PER_NODE_MAX {
                return Err(Refusal::QuantityTooLarge { class, limit: QUANTA_PER_NODE_MAX });
            }
            if spec.has_devices() {
                let per_device = spec.quanta_per_unit;
                if !quanta.0.is_multiple_of(per_device) {
                    return Err(Refusal::NotWholeDevices { class, per_device });
                }
                if quanta.0 / per_device > DEVICES_PER_CLASS_MAX {
                    return Err(Refusal::TooManyDevices { class, limit: DEVICES_PER_CLASS_MAX });
                }
            }
        }
        Ok(())
    }

    pub(super) fn delete_node(&mut self, node: NodeNo) -> Result<(), Refusal> {
        let found = self.state().node(node).ok_or(Refusal::UnknownNode { node })?;
        if found.has_leases() || found.is_reserved() {
            return Err(Refusal::NodeHasLeases { node });
        }
        if found.custody.is_in_sensitive_pool() {
            return Err(Refusal::NodeInCustody { node, state: found.custody.word() });
        }
        self.plain(NodeDeleted { node });
        Ok(())
    }

    pub(super) fn drain_node(&mut self, drain: &NodeService) -> Result<(), Refusal> {
        let node = drain.node;
        let found = self.state().node(node).ok_or(Refusal::UnknownNode { node })?;
        if found.drained {
            return Err(Refusal::NodeAlready { node, state: "drained" });
        }
        self.plain(NodeDrained { node, reason: drain.reason.clone() });
        Ok(())
    }

    pub(super) fn resume_node(&mut self, resume: &NodeService) -> Result<(), Refusal> {
        let node = resume.node;
        let found = self.state().node(node).ok_or(Refusal::UnknownNode { node })?;
        if !found.drained && found.windows.open > 0 {
            let window = self.state().windows().find(|window| window.is_open && window.nodes.contains(&node));
            let window = window.expect("a window is open on the node").number;
            return Err(Refusal::NodeInWindow { node, window });
        }
        if !found.drained {
            return Err(Refusal::NodeAlready { node, state: "in service" });
        }
        self.plain(NodeResumed { node, reason: resume.reason.clone() });
        Ok(())
    }

    /// Records that a node has been empty for long. Nothing is recorded twice, and nothing that is not so any more.
    pub(super) fn note_empty_node(&mut self, note: &NoteEmptyNode) -> Result<(), Refusal> {
        let NoteEmptyNode { node, since } = *note;
        let found = self.state().node(node).ok_or(Refusal::UnknownNode { node })?;
        if found.has_leases() || found.is_reserved() {
            return Err(Refusal::NodeHasLeases { node });
        }
        if found.custody != Custody::Open {
            return Err(Refusal::NodeInCustody { node, state: found.custody.word() });
        }
        if since > self.now {
            return Err(Refusal::LastSeenInFuture);
        }
        if found.empty_noted == Some(since) {
            return Err(Refusal::NodeAlready { node, state: "recorded as empty" });
        }
        self.plain(NodeEmpty { node, since });
        Ok(())
    }

    pub(super) fn return_node(&mut self, node: NodeNo) -> Result<(), Refusal> {
        let found = self.state().node(node).ok_or(Refusal::UnknownNode { node })?;
        if !found.lost {
            return Err(Refusal::NodeAlready { node, state: "present" });
        }
        self.plain(NodeReturned { node });
        Ok(())
    }

    pub(super) fn change_settings(&mut self, s: &Settings) -> Result<(), Refusal> {
        in_range("ttl_max", s.ttl_max, TTL_MAX)?;
        in_range("teardown_deadline", s.teardown_deadline, LIMIT_SPAN_MAX)?;
        in_range("node_timeout", s.node_timeout, LIMIT_SPAN_MAX)?;
        in_range("head_wait_max", s.head_wait_max, LIMIT_SPAN_MAX)?;
        let heat_half_life = s.heat_half_life;
        // A window that an earlier version allowed may stay as it is.
        let window_min = IDEMPOTENCY_SURE.min(self.state().settings.idempotency_window);
        for (setting, value, min) in [
            ("idempotency_window", s.idempotency_window, window_min),
            ("heat_half_life", heat_half_life, HEAT_HALF_LIFE_MIN),
        ] {
            if !(min..=LIMIT_SPAN_MAX).contains(&value) {
                return Err(Refusal::SettingOutOfRange { setting, min, max: LIMIT_SPAN_MAX });
            }
        }
        if s.grace_default > LIMIT_SPAN_MAX {
            return Err(Refusal::GraceTooLong { limit: LIMIT_SPAN_MAX });
        }
        self.plain(SettingsChanged {
            ttl_max: s.ttl_max,
            grace_default: s.grace_default,
            teardown_deadline: s.teardown_deadline,
            node_timeout: s.node_timeout,
            idempotency_window: s.idempotency_window,
        });
        let pool_size = s.sensitive_pool_size;
        if pool_size != self.state().settings.sensitive_pool_size {
            self.plain(SensitiveChanged { pool_size });
        }
        if heat_half_life != self.state().settings.heat_half_life {
            self.plain(PlacementChanged { heat_half_life });
        }
        if s.head_wait_max != self.state().settings.head_wait_max {
            self.plain(QueueChanged { head_wait_max: s.head_wait_max });
        }
        Ok(())
    }
}

pub(super) fn check_labels(labels: &[(Name, Name)]) -> Result<(), Refusal> {
    if labels.len() > LABELS_PER_NODE_MAX {
        return Err(Refusal::TooManyLabels { limit: LABELS_PER_NODE_MAX });
    }
    let mut keys: Vec<&Name> = labels.iter().map(|(key, _)| key).collect();
    keys.sort_unstable();
    if keys.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Refusal::DuplicateLabel);
    }
    Ok(())
}

fn in_range(setting: &'static str, span: Span, max: Span) -> Result<(), Refusal> {
    let min = Span(1);
    if span < min || span > max {
        return Err(Refusal::SettingOutOfRange { setting, min, max });
    }
    Ok(())
}
