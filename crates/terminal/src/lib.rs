//! What our programs share towards the person who runs them.
//!
//! In: results and problems of a command, the terminal. Out: data on stdout, everything else on stderr, an exit code.
//! Never: a rule about leases, or a call to a daemon.

pub mod daemon;
pub mod numbers;
pub mod output;
pub mod problem;
pub mod table;
pub mod term;
pub mod usage;

pub use daemon::DaemonArgs;
pub use problem::Problem;
