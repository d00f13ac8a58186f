//! Deliveries as a whole: one sink with time under the test's control, the service, and webhooks over real connections.

mod receiver;
mod scenarios;
mod service;
mod simulation;
mod source;
mod vault;
mod webhook;
mod world;
