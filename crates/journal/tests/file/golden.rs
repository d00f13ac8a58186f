//! Golden bytes: a journal written today must be read in ten years, so its bytes are written down here.

use crate::faulty_disk::{FaultyDisk, Image, create, open_image};
use expect_test::expect;
use leasehold_journal::conformance::{append, genesis, keys, stamp};
use leasehold_journal::{Journal, Keys};
use leasehold_model::Batch;
use std::fmt::Write;

/// Genesis and a heartbeat in one batch, checkpointed.
fn tiny(keys: &std::sync::Arc<Keys>) -> Image {
    let disk = FaultyDisk::default();
    let journal = create(&disk, keys);
    let mut batch = Batch::new(0);
    batch.push(&genesis(keys));
    batch.push(&leasehold_model::Record::new(1, stamp(1), leasehold_model::body::Heartbeat {}));
    journal.append(&mut batch).unwrap();
    journal.close(stamp(2)).unwrap();
    disk.image()
}

fn hex_lines(bytes: &[u8]) -> String {
    bytes.chunks(32).fold(String::new(), |mut text, line| {
        for byte in line {
            write!(text, "{byte:02x}").unwrap();
        }
        text.push('\n');
        text
    })
}

#[test]
fn a_segment_has_these_bytes() {
    let image = tiny(&keys());
    expect![[r#"
        4c485345474d4e54010000000100000000000000000000000000000000000000
        00000000000000000000000000000000000000000000000018eab1564b54b6a3
        fe90669f4233cb429af71b72e641a9db79b7cd2ec8b4d1dd0000000089012f0b
        4c4842319f0000000200000046b27d28b0010000000000000000000000000000
        00000000000000000000000000000000000000000000002a36fe9c9717010001
        13636f6e666f726d616e63652e6578616d706c658a88e3dd7409f195fd52db2d
        3cba5d72ca6709bf1d94121bf3748801b40f6f5c0b636f6e666f726d616e6365
        ac00000054c7d831025e0c34f86d9685e5a6f5de627b6096546287fd406b44ae
        0da9d6f10140423936fe9c97170300
    "#]]
    .assert_eq(&hex_lines(&image["journal/00000001.seg"]));
}

#[test]
fn an_anchor_has_these_bytes() {
    let image = tiny(&keys());
    let anchor = &image["anchor"];
    assert_eq!(anchor.len(), 8192);
    let slot = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.trim_end_matches('\0').to_owned()
    };
    expect![[r#"
        leasehold-anchor v1
        counter 1
        origin conformance.example
        epoch 1
        size 0
        head 0000000000000000000000000000000000000000000000000000000000000000
        root e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
        key 86ebcfe2
        time 1700000000000000000
        checkpoint
        conformance.example
        0
        47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=

        — conformance.example huvP4ge1YcCXKyVuLJK3uCpcnX+R+7We7gRlMjAGxDaNglId7SGYd8Mw6kFgciTn+NzN/Elj+Gbxdj41PM5Vl/owgAw=
        end 36a54341c3f53e5726d3813fac584eb9e2a5014e826840ada7b43f7ed23148a7
        ----
        leasehold-anchor v1
        counter 2
        origin conformance.example
        epoch 1
        size 2
        head 801373d0cf574428b928782d3d8490a9bacccc0c4026f59865e5d1f48ba7716f
        root e74cdb48d6c0ab82717e79f21a3b0aa54deae2594b9b06891cbda9fc182860f8
        key 86ebcfe2
        time 1700000000002000000
        checkpoint
        conformance.example
        2
        50zbSNbAq4JxfnnyGjsKpU3q4llLmwaJHL2p/BgoYPg=

        — conformance.example huvP4tr3/nke7aNDPIEjnO4j6T8woKvhY3zXeDqUpZcDcMLOkl5K15TYjeLbjjyTvOHgsFTXkUp8dQEtYLDtf22hRgE=
        end 99ca6f1dd9f92426c48949aa7d474d106887529d23f24930beb85e3b90aaa210
    "#]].assert_eq(&format!("{}----\n{}", slot(&anchor[..4096]), slot(&anchor[4096..])));
}

#[test]
fn a_tree_file_has_these_bytes() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    for _ in 0..3 {
        append(&journal, &keys, 9);
    }
    journal.checkpoint(stamp(27)).unwrap();
    let tree = disk.image()["journal/00000002.tree"].clone();
    expect![[r#"
        leasehold-tree v1
        size 18
        head e87d2d9cf3b74a88abfe7425ddf40685836af2d44ca364c2d6342b4dc6fa7563
        part 59aac52270df85a2e2fc7e81e7cb0d26c6383f70f14a2225aa387ddf6f1a6735
        part 3cc95c365a66eaa246c4515ae71b36c0131ab7dde4f7c9449b7ceb3ff3f4e01d
        checkpoint
        conformance.example
        18
        L3+v5jzmEiMZLaIBPyrL5xuwuG4bc2+i7LLniZmfgaU=

        — conformance.example huvP4jJeJBNyJ1CaMAOCTfv7Zcg36yW/+NIvZWsIZBftYovk1VdL15LYw2Vsv7gjmqpuLEd6eAXzsl4mL4dgWd1+MAE=
        end 3e0c9f9def1469655181a5e47ec4f1f7ba41671958d869f20222c48865edb66d
    "#]].assert_eq(&String::from_utf8(tree).unwrap());
}

#[test]
fn a_snapshot_has_these_bytes() {
    let keys = keys();
    let disk = FaultyDisk::default();
    let journal = create(&disk, &keys);
    append(&journal, &keys, 3);
    let checkpoint = journal.checkpoint(stamp(3)).unwrap().unwrap();
    journal.put_snapshot(&checkpoint.position, b"the state").unwrap();
    let snapshot = disk.image()["snapshots/00000000000000000003.snap"].clone();
    expect![[r#"
        4c48534e41505348010000000200000003000000000000000900000000000000
        d188cf7b2d6368322e61d69ce10a0afee134c94e95b39acdbd4b52182c6d71d4
        18eab1564b54b6a3fe90669f4233cb429af71b72e641a9db79b7cd2ec8b4d1dd
        972ec08bc7570a80420693a082eb9a1a5afcb85fd60abcfd1f98fc2b67c9eeaf
        bd3f1446a4d51e088f8fd9f6970f645188a29b99106bc814ffb90bf62af7ccf3
        13ddd528ffd33017a322655de0773cacda99dfbff81c53fc389569dc8219e106
        c9c8315d13c4063912e2398e5a72867ef1753a904200adf7859d144df94e8387
        746865207374617465
    "#]]
    .assert_eq(&hex_lines(&snapshot));
}

#[test]
fn the_golden_journal_opens() {
    let keys = keys();
    let (journal, recovered) = open_image(&tiny(&keys), &keys).unwrap();
    assert_eq!((recovered.size, journal.epoch()), (2, 2));
}
