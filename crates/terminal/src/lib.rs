//! Terminal output that the programs share: tables, numbers, problems and exit codes.
//!
//! In: results and problems of a command. Out: data on stdout, everything else on stderr, and an exit code.
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
