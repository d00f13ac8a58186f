//! What the engine keeps of the ledger does not grow with the number of entries (SEMANTICS 12, "Posting"). That the fold
//! of a posting does not become dearer either is counted in instructions by `bench/tests/budgets.rs`.

use crate::support::Story;
use std::fmt::Write;

/// Posts the hours of three payers from one hour on, with two corrections by hand in each, and returns the size of a
/// snapshot.
fn after(story: &mut Story, hours: std::ops::Range<u64>) -> usize {
    let mut text = String::new();
    for hour in hours {
        let through = (hour + 1) * 3600;
        for payer in ["a", "a/other", "b"] {
            writeln!(text, "{through} op posted {payer} 12.345678 through={through}").expect("text grows");
        }
        for amount in ["-1", "0.5"] {
            writeln!(text, "{through} op adjusted a {amount}").expect("text grows");
        }
        writeln!(text, "{through} op settled {through}").expect("text grows");
    }
    story.play(&text);
    story.world.state().to_snapshot().len()
}

#[test]
fn a_snapshot_does_not_grow_with_the_entries() {
    let mut story = Story::on(&format!("{}\n    0 op ledger\n", crate::ceilings::PRICED));
    let few = after(&mut story, 0..20);
    let records = story.world.state().size();
    let many = after(&mut story, 20..700);
    assert!(story.world.state().size() > 30 * records, "there are many more entries");
    // Larger numbers take a few more bytes.
    assert!(many < few + 64, "{few} bytes after 20 hours, {many} after 700");
    let owed: Vec<_> = story.world.state().ledger().payers.values().map(|payer| payer.unbilled.len()).collect();
    assert_eq!(owed, [1, 1, 1], "one sum for the month of each payer");
}
