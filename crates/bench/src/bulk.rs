//! Requests in bulk, many to an fsync: set-up must not take longer than what is measured.

use leasehold_cell::{Cell, Inbox, Sealed, Submission};
use leasehold_engine::{Command, Request};
use leasehold_model::Identity;
use std::collections::VecDeque;
use std::sync::Arc;

/// Fewer than the cell accepts at the same time.
const AT_ONCE: usize = 1000;

/// Sends requests, each with a tag, and passes what became of each to `take`.
pub(crate) fn send_all(
    cell: &Cell,
    requests: impl IntoIterator<Item = (Request, u64)>,
    mut take: impl FnMut(u64, &Sealed),
) {
    let inbox = Arc::new(Inbox::new());
    let mut replies = VecDeque::new();
    let mut requests = requests.into_iter();
    loop {
        let group: Vec<Submission> = requests
            .by_ref()
            .take(AT_ONCE)
            .map(|(request, tag)| Submission { request, to: inbox.clone(), tag })
            .collect();
        let mut outstanding = group.len();
        if outstanding == 0 {
            return;
        }
        cell.submit(group);
        while outstanding > 0 {
            inbox.take(&mut replies);
            for (tag, reply) in replies.drain(..) {
                outstanding -= 1;
                match reply {
                    Ok(sealed) if !sealed.repeated => take(tag, &sealed),
                    reply => panic!("the work is valid: {reply:?}"),
                }
            }
        }
    }
}

/// Commands of the operator.
pub(crate) fn operate_all(cell: &Cell, commands: Vec<Command>) {
    let requests = commands.into_iter().map(|command| (Request::new(Identity::default(), command), 0));
    send_all(cell, requests, |_, _| {});
}
