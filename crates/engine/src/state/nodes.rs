//! The fold's side of nodes: what they have, who speaks for them, and how hot they are.

use super::fold::put;
use super::{State, entry, entry_mut};
use crate::heat::{self, Heat};
use crate::node::{Agent, Node, NodeClass};
use leasehold_model::body::{AgentRegistered, NodePut};
use leasehold_model::{Instant, LeaseNo, NodeNo, Span};

type Folded = Result<(), &'static str>;

impl State {
    pub(super) fn fold_node(&mut self, n: &NodePut) -> Folded {
        let number = n.node;
        self.unlist_node(number);
        let mut node = match self.nodes.get_mut(number.0 as usize).and_then(Option::take) {
            Some(old) => {
                self.names.nodes.remove(&old.name);
                entry_mut(&mut self.pools, old.pool.0).ok_or("no such pool")?.nodes -= 1;
                old
            }
            None => Node::new(number, n.name.clone(), n.pool),
        };
        entry_mut(&mut self.pools, n.pool.0).ok_or("no such pool")?.nodes += 1;
        self.names.nodes.insert(n.name.clone(), number.0);
        node.name = n.name.clone();
        node.pool = n.pool;
        node.rack = n.rack.clone();
        node.zone = n.zone.clone();
        node.labels = n.labels.clone();
        node.teardown = n.teardown;
        let before = std::mem::take(&mut node.classes);
        for (class, capacity) in &n.capacity {
            let spec = entry(&self.classes, u32::from(class.0)).ok_or("no such class")?;
            let per_device = spec.has_devices().then_some(spec.quanta_per_unit);
            let mut now = NodeClass::new(*class, *capacity, per_device);
            if let Some(old) = before.iter().find(|c| c.class == *class) {
                now.held = old.held;
                now.tearing_down = old.tearing_down;
                now.fenced = old.fenced;
                now.reserved = old.reserved;
                for (new, old) in now.evictable.iter_mut().zip(&old.evictable) {
                    *new = *old;
                }
                now.evictable_in_crowds = old.evictable_in_crowds;
                now.evictable_in_gangs = old.evictable_in_gangs;
                for (new, old) in now.devices.iter_mut().zip(&old.devices) {
                    *new = *old;
                }
            }
            node.classes.push(now);
        }
        put(&mut self.nodes, number.0, node)?;
        self.queue.anew = true;
        self.list_node(number);
        self.fill_reservations(number)
    }

    pub(super) fn set_node_state(&mut self, node: NodeNo, change: impl FnOnce(&mut Node)) -> Folded {
        self.unlist_node(node);
        change(entry_mut(&mut self.nodes, node.0).ok_or("no such node")?);
        self.queue.anew = true;
        self.list_node(node);
        Ok(())
    }

    pub(super) fn fold_agent(&mut self, registered: &AgentRegistered) -> Folded {
        let node = entry_mut(&mut self.nodes, registered.node.0).ok_or("no such node")?;
        let generation = registered.generation;
        if node.last_generation.checked_add(1) != Some(generation) {
            return Err("an agent's generation out of order");
        }
        node.last_generation = generation;
        node.agent = Some(Agent { generation, instance: registered.instance });
        Ok(())
    }

    /// Takes a node out of what placement looks at.
    pub(super) fn unlist_node(&mut self, number: NodeNo) {
        if self.only_folds {
            return;
        }
        self.shelves.unlist(number);
        self.glances.forget(number);
    }

    pub(crate) fn list_node(&mut self, number: NodeNo) {
        if self.only_folds {
            return;
        }
        let node = entry(&self.nodes, number.0).expect("a node that is listed exists");
        self.glances.look_at(node);
        if node.is_available() {
            self.shelves.list(node, self.heat_left(node));
        } else {
            // Sensitive work is placed near its own, too.
            self.shelves.note_site(node);
        }
    }

    /// What is free of a node has changed, or its heat: placement is told.
    pub(crate) fn reshelve(&mut self, number: NodeNo) {
        if self.only_folds {
            return;
        }
        let node = entry(&self.nodes, number.0).expect("a node that is listed exists");
        self.shelves.change(node, self.heat_left(node));
        self.glances.look_at(node);
    }

    /// Who may fall on a node has changed, what is free there has not.
    pub(super) fn reglance(&mut self, number: NodeNo) {
        if self.only_folds {
            return;
        }
        self.glances.look_at(entry(&self.nodes, number.0).expect("a lease's node exists"));
    }

    /// A node's heat without what has passed: one that has cooled down is as cold as any other.
    pub(super) fn heat_left(&self, node: &Node) -> Heat {
        if node.heat.level == 0 || node.heat.at(self.last_stamp, self.settings.heat_half_life) == 0 {
            return Heat::NONE;
        }
        node.heat
    }

    /// Trouble with a node: it is avoided for a while.
    pub(super) fn heat(&mut self, number: NodeNo, by: u16, stamp: Instant) -> Folded {
        let half_life = self.settings.heat_half_life;
        entry_mut(&mut self.nodes, number.0).ok_or("no such node")?.heat.rise(by, stamp, half_life);
        self.reshelve(number);
        Ok(())
    }

    pub(super) fn fold_fences(&mut self, leases: &[LeaseNo], stamp: Instant) -> Folded {
        self.fold_fenced(leases, stamp)?;
        let mut nodes: Vec<NodeNo> = leases.iter().filter_map(|lease| Some(self.lease(*lease)?.node)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.into_iter().try_for_each(|node| self.heat(node, heat::FENCED, stamp))
    }

    /// Heat goes over to the grid of another half-life as it is now.
    pub(super) fn fold_half_life(&mut self, half_life: Span, stamp: Instant) {
        let old = std::mem::replace(&mut self.settings.heat_half_life, half_life);
        for place in 0..self.nodes.len() {
            let Some(node) = &mut self.nodes[place] else { continue };
            if node.heat.level > 0 {
                node.heat.regrid(stamp, old, half_life);
                let number = node.number;
                self.reshelve(number);
            }
        }
    }
}
