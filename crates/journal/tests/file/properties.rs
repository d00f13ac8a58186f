//! Laws that hold for any history and any bytes.

use crate::faulty_disk::{FaultyDisk, Image, Random, create, open, open_image};
use leasehold_journal::Journal;
use leasehold_journal::conformance::{append, check_records, keys, stamp};
use proptest::prelude::*;

/// One step in the life of a journal.
#[derive(Clone, Debug)]
enum Step {
    Append(u64),
    Checkpoint,
    Snapshot,
    Close,
    Die,
    LosePower(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..12_u64).prop_map(Step::Append),
        2 => Just(Step::Checkpoint),
        1 => Just(Step::Snapshot),
        1 => Just(Step::Close),
        1 => Just(Step::Die),
        1 => any::<u64>().prop_map(Step::LosePower),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens in between, the records are those that were appended.
    #[test]
    fn a_journal_holds_what_was_appended(steps in prop::collection::vec(step(), 1..40)) {
        let keys = keys();
        let mut disk = FaultyDisk::default();
        let mut journal = create(&disk, &keys);
        let mut size = 0;
        for step in steps {
            match step {
                Step::Append(count) => size = append(&journal, &keys, count).size,
                Step::Checkpoint => drop(journal.checkpoint(stamp(0)).unwrap()),
                Step::Snapshot => {
                    journal.put_snapshot(&journal.checkpointed().position, b"state").unwrap();
                    journal.prune_snapshots().unwrap();
                }
                Step::Close => {
                    journal.close(stamp(0)).unwrap();
                    drop(journal);
                    journal = open(&disk, &keys).unwrap().0;
                }
                Step::Die => {
                    drop(journal);
                    journal = open(&disk, &keys).unwrap().0;
                }
                Step::LosePower(seed) => {
                    drop(journal);
                    disk = disk.after_crash(&mut Random(seed));
                    journal = open(&disk, &keys).unwrap().0;
                }
            }
            prop_assert_eq!(journal.head().size, size);
        }
        check_records(&journal, &keys, size);
    }

    /// Whatever lies in the folder, opening it comes to an end and never claims what is not there.
    #[test]
    fn garbage_is_never_opened_as_something(
        segment in prop::collection::vec(any::<u8>(), 0..400),
        begins_well in any::<bool>(),
        anchor in prop::collection::vec(any::<u8>(), 0..300),
        tree in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let keys = keys();
        let disk = FaultyDisk::default();
        let journal = create(&disk, &keys);
        append(&journal, &keys, 3);
        journal.checkpoint(stamp(0)).unwrap();
        append(&journal, &keys, 3);
        let good = disk.image();

        let mut bytes = segment.clone();
        if begins_well {
            bytes = good["journal/00000001.seg"][..150].to_vec();
            bytes.extend(&segment);
        }
        let mut image = Image::new();
        image.insert("journal/00000001.seg".into(), bytes.clone());
        image.insert("journal/00000002.tree".into(), tree.clone());
        image.insert("snapshots/00000000000000000003.snap".into(), tree);
        image.insert("anchor".into(), anchor);
        prop_assert!(open_image(&image, &keys).is_err());
        image.insert("anchor".into(), good["anchor"].clone());
        prop_assert!(open_image(&image, &keys).is_err());

        // Garbage after a good end is torn, if it is anything.
        let mut image = good.clone();
        let segment_bytes = image.get_mut("journal/00000001.seg").unwrap();
        let end = segment_bytes.iter().rposition(|b| *b != 0).unwrap() + 1;
        segment_bytes.truncate(end);
        segment_bytes.extend(&segment);
        let (journal, recovered) = open_image(&image, &keys).unwrap();
        prop_assert_eq!(recovered.torn.is_some(), segment.iter().any(|b| *b != 0));
        check_records(&journal, &keys, 6);
    }
}
