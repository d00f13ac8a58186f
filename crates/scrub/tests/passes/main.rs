//! Passes over real files: those of sound histories find nothing, and everything that was altered is found.

mod books;
mod files;
mod world;

use leasehold_scrub::{BooksChecked, Pass};
use leasehold_sim::Dice;
use world::{World, run};

/// The tally is written apart from the books: over many histories they agree, to the nanosecond.
#[test]
fn histories_of_the_simulator_agree_with_their_books() {
    let mut leases = 0;
    for seed in 0..165 {
        let world = World::of_seed(seed);
        let mut pass = Pass::begin(&world.journal, Some(world.books.balance().unwrap()));
        let found = run(&mut pass, &world.rows());
        assert_eq!(found, [], "seed {seed}");
        assert_eq!(pass.books().0, &BooksChecked::Compared, "seed {seed}");
        assert_eq!((pass.scrub().size(), pass.scrub().foreign_macs()), (world.size(), 0), "seed {seed}");
        leases += pass.leases();
    }
    assert!(leases > 2000, "only {leases} closed leases were compared");
}

/// The daemon may stop between any two steps.
#[test]
fn a_pass_goes_on_where_it_stood() {
    for seed in 0..20 {
        let world = World::of_seed(seed);
        let mut dice = Dice::new(seed);
        let mut pass = Pass::begin(&world.journal, Some(world.books.balance().unwrap()));
        let mut bytes = 0;
        loop {
            let step = pass.step(&world.rows()).unwrap();
            assert_eq!(step.found, [], "seed {seed}");
            bytes += step.bytes;
            if step.done {
                break;
            }
            if dice.one_in(3) {
                let (saved, found) = pass.save(&world.rows());
                assert_eq!(found, []);
                let size = pass.scrub().size();
                pass = Pass::resume(&world.journal, &saved).expect("it was just saved");
                assert_eq!(pass.scrub().size(), size);
            }
        }
        assert_eq!(pass.books().0, &BooksChecked::Compared);
        // Nothing was read twice but the headers of segments.
        assert!(pass.scrub().bytes() >= bytes && pass.scrub().size() == world.size());
    }
}

/// Records that follow the balance are read and not counted: the books move on while a pass runs.
#[test]
fn the_books_are_compared_as_of_the_beginning() {
    for seed in 0..20 {
        let mut world = World::of_seed(seed);
        let size = world.size();
        let early = world.books_at(size / 2).balance().unwrap();
        let mut pass = Pass::begin(&world.journal, Some(early));
        assert_eq!(run(&mut pass, &world.rows()), [], "seed {seed}");
        assert_eq!(pass.books(), (&BooksChecked::Compared, size / 2));
        assert_eq!(pass.scrub().size(), size);
        world.forget_books();
    }
}
