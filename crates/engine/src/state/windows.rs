//! Folding maintenance windows.

use super::fold::put;
use super::{State, entry_mut};
use crate::follow::Follower;
use crate::timer::Entry;
use crate::window::Window;
use leasehold_model::body::{WindowEnded, WindowPut, WindowStarted};
use leasehold_model::{NodeNo, WindowNo};

type Folded = Result<(), &'static str>;

impl State {
    pub(super) fn fold_window(&mut self, reserved: &WindowPut, to: &mut impl Follower) -> Folded {
        let number = reserved.window;
        if number.0 as usize != self.windows.len() {
            return Err("the number of a window is out of order");
        }
        if reserved.until <= reserved.from {
            return Err("a window that ends before it begins");
        }
        let window = Window {
            number,
            nodes: reserved.nodes.0.clone(),
            from: reserved.from,
            until: reserved.until,
            reason: reserved.reason.clone(),
            is_open: false,
        };
        put(&mut self.windows, number.0, window)?;
        to.comes_due(Entry::window_start(number, reserved.from));
        to.comes_due(Entry::window_end(number, reserved.until));
        self.window_changed(&reserved.nodes.0, to);
        self.end_protections(&reserved.nodes.0, to);
        Ok(())
    }

    pub(super) fn fold_window_started(&mut self, started: &WindowStarted, to: &mut impl Follower) -> Folded {
        let window = entry_mut(&mut self.windows, started.window.0).ok_or("no such window")?;
        if std::mem::replace(&mut window.is_open, true) {
            return Err("the window has begun already");
        }
        self.check_window_nodes(started.window, &started.nodes.0)?;
        self.window_changed(&started.nodes.0, to);
        self.end_protections(&started.nodes.0, to);
        Ok(())
    }

    pub(super) fn fold_window_ended(&mut self, ended: &WindowEnded, to: &mut impl Follower) -> Folded {
        self.check_window_nodes(ended.window, &ended.nodes.0)?;
        let window = self.windows.get_mut(ended.window.0 as usize).and_then(Option::take);
        if window.ok_or("no such window")?.is_open != ended.begun {
            return Err("the window has begun, or it has not");
        }
        self.window_changed(&ended.nodes.0, to);
        Ok(())
    }

    fn check_window_nodes(&self, window: WindowNo, nodes: &[NodeNo]) -> Folded {
        let found = self.window(window).ok_or("no such window")?;
        if found.nodes == nodes { Ok(()) } else { Err("the window has other nodes") }
    }

    /// A head that is protected on one of the nodes may need others now.
    fn end_protections(&mut self, nodes: &[NodeNo], to: &mut impl Follower) {
        nodes.iter().for_each(|node| self.end_protection_on(*node, to));
    }

    fn window_changed(&mut self, nodes: &[NodeNo], to: &mut impl Follower) {
        for number in nodes {
            self.count_windows(*number);
            to.node_put(self, *number);
        }
        to.recheck_queue();
    }
}
