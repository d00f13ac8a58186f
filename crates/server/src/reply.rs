//! Submits requests to the cell and awaits their replies.

use leasehold_cell::{Cell, Replies, Reply, Submission};
use leasehold_engine::Request;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

/// Collects the replies to several requests. The cell calls `wake` once for many of them.
#[derive(Default)]
struct Gather {
    got: Mutex<Got>,
}

#[derive(Default)]
struct Got {
    replies: Vec<Option<Reply>>,
    missing: usize,
    waker: Option<Waker>,
}

impl Gather {
    fn lock(&self) -> MutexGuard<'_, Got> {
        self.got.lock().expect("no thread panics while it holds the lock")
    }
}

impl Replies for Gather {
    fn put(&self, tag: u64, reply: Reply) {
        let mut got = self.lock();
        let place = usize::try_from(tag).expect("a tag is an index into the batch");
        if got.replies[place].replace(reply).is_none() {
            got.missing -= 1;
        }
    }
    fn wake(&self) {
        let mut got = self.lock();
        if got.missing == 0
            && let Some(waker) = got.waker.take()
        {
            drop(got);
            waker.wake();
        }
    }
}

/// The replies, in the order of the requests.
pub(crate) struct Answers(Arc<Gather>);

impl Future for Answers {
    type Output = Vec<Reply>;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Vec<Reply>> {
        let mut got = self.0.lock();
        if got.missing == 0 {
            let replies = got.replies.drain(..).map(|reply| reply.expect("none is missing"));
            return Poll::Ready(replies.collect());
        }
        if !got.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            got.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

/// Submits requests to the cell. They are decided even if the returned future is dropped.
pub(crate) fn ask(cell: &Cell, requests: Vec<Request>) -> Answers {
    let missing = requests.len();
    let got = Got { replies: (0..missing).map(|_| None).collect(), missing, waker: None };
    let gather = Arc::new(Gather { got: Mutex::new(got) });
    let submission = |(tag, request)| Submission { request, to: gather.clone(), tag };
    cell.submit((0u64..).zip(requests).map(submission));
    Answers(gather)
}
