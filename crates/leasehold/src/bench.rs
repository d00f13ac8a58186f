//! `leasehold bench`: benchmarks of this machine. `make bench` adds the comparison with other systems.

use crate::cli::BenchArgs;
use crate::problem::{EXIT_OK, EXIT_REFUSED, Problem};

pub(crate) fn run(args: &BenchArgs) -> Result<u8, Problem> {
    let goals_met = leasehold_bench::run(&args.only, &args.out)
        .map_err(|error| Problem::refused("bench_failed", format!("{}: {error}", args.out.display())))?;
    Ok(if goals_met { EXIT_OK } else { EXIT_REFUSED })
}
