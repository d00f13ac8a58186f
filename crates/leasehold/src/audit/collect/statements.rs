//! Recomputing the statements about months (ADR 25) when a month was closed. They need the records from the first one
//! on, so the whole copy is verified.
//!
//! A wrong statement is a record like any other: it is kept, as evidence, and so is what follows it. Every run says that
//! it is wrong.

use super::collector::Stop;
use super::refusal::Refusal;
use super::{Run, report, verification};
use crate::output::print;
use crate::problem::Problem;
use crate::term;
use leasehold_model::Hash;
use leasehold_verify::{Failure, Statements};
use sha2::{Digest, Sha256};

/// The mark of a copy that was verified with the trust file of this mark, but for the statements of the last months.
pub(super) fn due(mark: Hash) -> Hash {
    Sha256::new().chain_update(b"statements due\n").chain_update(mark).finalize().into()
}

/// Recomputes the statements if a month was closed since that was done last.
pub(super) async fn recompute(run: &mut Run<'_>) -> Result<(), Problem> {
    if !run.collector.statements_due || run.collector.mirror.proved() == 0 {
        return Ok(());
    }
    let (options, _) = verification(&run.collector.mirror, run.trust, run.args);
    // In another thread, so that a signal ends the process at once; the next one begins anew.
    let verified = tokio::task::spawn_blocking(move || leasehold_verify::verify(&options)).await;
    match verified.expect("the verifier does not panic") {
        Ok(verified) => {
            if let Some(Statements::OutOfReach { first }) = verified.statements {
                term::say(&format!(
                    "leasehold: a month was closed; its statements were not recomputed, because the records before {first} are \
                     not there; give their directory with --archive\n"
                ));
            }
            run.collector.statements_recomputed().map_err(|stop| match stop {
                Stop::Here(problem) => problem,
                Stop::Refused(_) | Stop::Daemon(_) => unreachable!("only a file is written"),
            })
        }
        Err(failure) => Err(wrong(run, &failure)),
    }
}

fn wrong(run: &Run<'_>, failure: &Failure) -> Problem {
    let what = format!("a month was closed, and the copy was verified: {failure}");
    if failure.is_unreadable() {
        return Problem::refused(failure.code(), what);
    }
    let refusal = Refusal { sequence: failure.sequence, ..Refusal::new(failure.code(), what) };
    if run.json {
        // The message follows on stderr in any case.
        let _ = print(&format!("{}\n", report::refusal_json(&refusal, run.collector.mirror.proved(), None)));
    }
    let problem = Problem::not_verified(refusal.code, refusal.what);
    problem.advice("all records were kept, and the next run collects what follows; ask the operator")
}
