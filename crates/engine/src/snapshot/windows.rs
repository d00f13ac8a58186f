//! Encoding and decoding of maintenance windows.

use super::BadSnapshot;
use crate::state::State;
use crate::window::Window;
use leasehold_model::body::Nodes;
use leasehold_model::codec::{Field, Reader};
use leasehold_model::{NodeNo, WindowNo};

pub(super) fn put(window: &Window, out: &mut Vec<u8>) {
    Nodes(window.nodes.clone()).put(out);
    window.from.put(out);
    window.until.put(out);
    window.reason.put(out);
    window.is_open.put(out);
}

pub(super) fn get(number: u32, r: &mut Reader<'_>) -> Result<Window, BadSnapshot> {
    Ok(Window {
        number: WindowNo(number),
        nodes: Nodes::get(r)?.0,
        from: Field::get(r)?,
        until: Field::get(r)?,
        reason: Field::get(r)?,
        is_open: Field::get(r)?,
    })
}

impl State {
    /// Checks the windows, and computes what they mean for the nodes.
    pub(super) fn restore_windows(&mut self) -> Result<(), BadSnapshot> {
        if self.windows().any(|window| window.until <= window.from) {
            return Err(BadSnapshot::Inconsistent("a maintenance window that ends before it begins"));
        }
        let is_claimed = |node: &NodeNo| self.node(*node).is_some_and(|node| node.custody.claim().is_some());
        if self.windows().any(|window| window.nodes.iter().any(is_claimed)) {
            return Err(BadSnapshot::Inconsistent("a maintenance window of a claimed node"));
        }
        let nodes: Vec<_> = self.nodes().map(|node| node.number).collect();
        if !self.windows.is_empty() {
            nodes.into_iter().for_each(|node| self.count_windows(node));
        }
        Ok(())
    }
}
