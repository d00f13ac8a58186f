//! Shared by the daemon and the agent: the log and notifications to systemd.
//!
//! In: the log level and format, the notification socket. Out: log lines on stderr, notifications.
//! Never: decide what is logged; the programs do.

pub mod log;
pub mod systemd;
