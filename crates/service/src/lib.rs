//! What our long-running programs, the daemon and the agent, share towards the machine they run on.
//!
//! In: which lines are wanted, and where the service manager listens. Out: log lines on stderr, a word to the manager.
//! Never: what is logged; that is for those who log it.

pub mod log;
pub mod systemd;
