//! Nodes: when they may be created, changed, drained and deleted (SEMANTICS 1 and 3). Losses are in `loss.rs`.

use crate::capacity::share_of_device;
use crate::violation::{Checked, demand, found};
use crate::world::{Node, World};
use leasehold_model::NodeNo;
use leasehold_model::body::NodePut;
use leasehold_model::limits::{CLASSES_PER_NODE_MAX, DEVICES_PER_CLASS_MAX, LABELS_PER_NODE_MAX, QUANTA_PER_NODE_MAX};

impl World {
    pub(crate) fn node_put(&mut self, put: &NodePut) -> Checked {
        demand!(self.pools.contains_key(&put.pool), "unknown-pool", "there is no {}", put.pool);
        let taken = self.nodes.values().any(|other| other.put.node != put.node && other.put.name == put.name);
        demand!(!taken, "name-taken", "another node is called {:?}", put.name);
        self.check_capacity_list(put)?;
        let node = match self.nodes.get(&put.node) {
            None => {
                self.check_new_number("node", u64::from(put.node.0))?;
                Node::new(put.clone())
            }
            Some(old) => {
                let node = Node { put: put.clone(), ..old.clone() };
                self.check_not_smaller_than_use(&node)?;
                let same = old.put.pool == put.pool && old.put.capacity == put.capacity;
                demand!(same || !old.custody.is_in_sensitive_pool(), "in-custody", "{:?}", old.custody);
                node
            }
        };
        self.take_number("node", u64::from(put.node.0));
        self.nodes.insert(put.node, node);
        Ok(())
    }

    fn check_capacity_list(&self, put: &NodePut) -> Checked {
        demand!(put.labels.len() <= LABELS_PER_NODE_MAX, "node-limits", "{} labels", put.labels.len());
        let count = put.capacity.len();
        demand!(count <= CLASSES_PER_NODE_MAX, "node-limits", "{count} classes");
        for (i, (class, quanta)) in put.capacity.iter().enumerate() {
            let spec = found!(self.classes.get(class), "unknown-class", "there is no {class}");
            let twice = put.capacity[..i].iter().any(|(other, _)| other == class);
            demand!(!twice, "node-limits", "{class} is listed twice");
            demand!(quanta.0 <= QUANTA_PER_NODE_MAX, "node-limits", "{quanta} of {class}");
            if spec.has_devices() {
                let whole = quanta.0.is_multiple_of(spec.quanta_per_unit);
                demand!(whole, "node-limits", "{quanta} of {class} is not whole devices");
                let devices = quanta.0 / spec.quanta_per_unit;
                demand!(devices <= DEVICES_PER_CLASS_MAX, "node-limits", "{devices} devices of {class}");
            }
        }
        Ok(())
    }

    /// Capacity and devices that leases use cannot be removed.
    fn check_not_smaller_than_use(&self, node: &Node) -> Checked {
        for (class, spec) in &self.classes {
            let parts = self.parts(node.put.node, node, *class);
            let (in_use, capacity) = (parts.in_use(), parts.capacity);
            demand!(in_use <= capacity, "node-too-small", "{in_use} of {class} in use, capacity {capacity}");
            if spec.has_devices() {
                let devices = usize::try_from(capacity / spec.quanta_per_unit).unwrap_or(64);
                let kept = self.kept_on(node.put.node, *class).into_iter().find(|(i, kept)| *i >= devices && *kept > 0);
                demand!(kept.is_none(), "node-too-small", "{kept:?} is reserved on a device that is removed");
                for lease in self.leases_on(node.put.node, *class) {
                    let gone = (devices..64).find(|i| share_of_device(lease, spec, *i) > 0);
                    demand!(
                        gone.is_none(),
                        "node-too-small",
                        "{} is on device {gone:?}, which is removed",
                        lease.number
                    );
                }
            }
        }
        Ok(())
    }

    /// A node with leases, also fenced or being torn down, cannot be deleted (SEMANTICS 3).
    pub(crate) fn node_deleted(&mut self, node: NodeNo) -> Checked {
        demand!(self.nodes.contains_key(&node), "unknown-node", "there is no {node}");
        let live = self.leases.iter().find(|lease| lease.node == node && lease.phase.takes_capacity());
        demand!(live.is_none(), "node-has-leases", "{live:?}");
        let kept = self.classes.keys().any(|class| self.kept_on(node, *class).iter().any(|(_, kept)| *kept > 0));
        demand!(!kept, "node-has-leases", "there is a reservation on {node}");
        let custody = self.nodes[&node].custody;
        demand!(!custody.is_in_sensitive_pool(), "in-custody", "{node} is {custody:?}");
        self.nodes.remove(&node);
        Ok(())
    }

    pub(crate) fn set_drained(&mut self, number: NodeNo, drained: bool) -> Checked {
        let node = found!(self.nodes.get_mut(&number), "unknown-node", "there is no {number}");
        demand!(node.drained != drained, "node-already", "{number} already has drained = {drained}");
        node.drained = drained;
        Ok(())
    }

    pub(crate) fn node_returned(&mut self, number: NodeNo) -> Checked {
        let node = found!(self.nodes.get_mut(&number), "unknown-node", "there is no {number}");
        demand!(node.lost, "node-already", "{number} is not lost");
        node.lost = false;
        Ok(())
    }
}
