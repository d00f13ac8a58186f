//! Thousands of seeds.

#[test]
fn seeds() {
    let count = std::env::var("LEASEHOLD_SIM_SEEDS").ok().and_then(|v| v.parse().ok()).unwrap_or(300);
    let tally = leasehold_sim::run_seeds(0, count, 300, |_| {}).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{tally:#?}");
}
