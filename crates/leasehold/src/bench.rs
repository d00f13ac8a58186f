//! `leasehold bench`: the figures of this machine, without the peers. `make bench` has them beside it.

use crate::cli::BenchArgs;
use crate::problem::{EXIT_OK, EXIT_REFUSED, Problem};

pub(crate) fn run(args: &BenchArgs) -> Result<u8, Problem> {
    let goals_met = leasehold_bench::run(&args.only, &args.out)
        .map_err(|error| Problem::refused("bench_failed", format!("{}: {error}", args.out.display())))?;
    Ok(if goals_met { EXIT_OK } else { EXIT_REFUSED })
}
