//! How an event gets to its sink.

use crate::event::SinkSpec;
use crate::message::Message;
use crate::outcome::Outcome;
use leasehold_model::Instant;
use std::future::Future;
use std::pin::Pin;

pub type Sending<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// Sends one event once. It must end by itself within a limited time, and its outcome must not contain a secret.
pub trait Transport: Send + Sync + 'static {
    fn send<'a>(&'a self, sink: &'a SinkSpec, message: &'a Message, now: Instant) -> Sending<'a>;
}
