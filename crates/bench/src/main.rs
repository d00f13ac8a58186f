//! `make bench`: the benchmarks with their peers, on a counting allocator.

use std::path::PathBuf;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: leasehold_bench::Counting = leasehold_bench::Counting;

fn main() -> ExitCode {
    #[cfg(feature = "http")]
    if leasehold_bench::http::serve_if_asked() {
        return ExitCode::SUCCESS;
    }
    #[cfg(feature = "usage")]
    if leasehold_bench::usage::answer_if_asked() {
        return ExitCode::SUCCESS;
    }
    let only = std::env::args().nth(1).unwrap_or_default();
    let json = std::env::args().nth(2).map_or_else(|| PathBuf::from("target/bench.json"), PathBuf::from);
    match leasehold_bench::run(&only, &json) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("leasehold-bench: {}: {error}", json.display());
            ExitCode::from(2)
        }
    }
}
