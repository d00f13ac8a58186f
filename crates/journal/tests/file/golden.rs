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
        4c485345474d4e54020000000100000000000000000000000000000000000000
        00000000000000000000000000000000000000000000000018eab1564b54b6a3
        fe90669f4233cb429af71b72e641a9db79b7cd2ec8b4d1dd00000000d8e02be5
        4c484232bf00000002000000d1d435148f5414664213ea5871ec0fc4240e70c6
        9cf0454a3d089c40186fb9910f1e7e5bb0010000000000000000000000000000
        00000000000000000000000000000000000000000000002a36fe9c9717010002
        13636f6e666f726d616e63652e6578616d706c658a88e3dd7409f195fd52db2d
        3cba5d72ca6709bf1d94121bf3748801b40f6f5c0b636f6e666f726d616e6365
        ac000000de3f96610d7620a14887ce0ddc9831e7ef847d96e7c2e3f5b44a9615
        ff9f781d0140423936fe9c97170300
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
        leasehold-anchor v2
        counter 1
        origin conformance.example
        epoch 1
        state open
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
        mac 0d9750923f18cfca3f0190d1199890d65ad5ae972a4bbf6f98160d387417f96c
        end 5fe606853cfbce32362513e03dcfb06f38b3a190afbc537540fcc9483aedd628
        ----
        leasehold-anchor v2
        counter 2
        origin conformance.example
        epoch 1
        state closed
        size 2
        head 9603a0e9ad5151dadb160e7fbf87125795d2e5a5f7872ed0e14e72b29f305177
        root 159239212331274b8ba97baad724ac9672937a88561e71a19b2a3e4304a110e6
        key 86ebcfe2
        time 1700000000002000000
        checkpoint
        conformance.example
        2
        FZI5ISMxJ0uLqXuq1ySslnKTeohWHnGhmyo+QwShEOY=

        — conformance.example huvP4pnOFmJMxAsNb26qjDL5ar7CnkwlRz+Ej1KSauexBF02APQhrTX2SCTkyjViw/05C1iIIp+6ZPuU4bGnlIi8SAw=
        mac 1e5546c4dd0c209f7d9c7f6e0b83f1aed84263ff37ba1eaf7e654d642f6a64dd
        end 8337326960ac40803e68f58401216f6a668e57ecd52938eaea2e75bc886fad2d
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
        head dbb32a214b1d9367fbed491e27abe20db9ed3fe1785e0f24e82d3c1d5d1f620d
        part e2b85a570f71cf03eae27e0b5500d98cdc3be1eeffd12cf252d2f63e2a759da3
        part 4333fff68ca35b374b072820332e7155891b7fb2d1faa6718c92396e1140b0ab
        checkpoint
        conformance.example
        18
        A5IisJyITZNJW3PYq4Q/1EaKy9r6Bg+Mow/cK/b6DYc=

        — conformance.example huvP4jv3r3bluceOrrsCLJLU0+BJQuzuaBOzBF41tHH5INeLAVPr/rsK2lxo//Fg82WQ0d07HwMIvn3GnVJTibLxaQc=
        end ebea74128e670a72cdc9c7d51dcd0a71a299364338c524db4b0206b6ccfd6361
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
        4c48534e41505348030000000200000003000000000000000900000000000000
        f6da110887ccd00c1e53336ccfba8d47a42632edb5b63b1fff10de607eb334a8
        18eab1564b54b6a3fe90669f4233cb429af71b72e641a9db79b7cd2ec8b4d1dd
        972ec08bc7570a80420693a082eb9a1a5afcb85fd60abcfd1f98fc2b67c9eeaf
        de3f96610d7620a14887ce0ddc9831e7ef847d96e7c2e3f5b44a9615ff9f781d
        2259e2e38003d6b25c32d6fdbc68a4b18c7e95a5e819d5f350331790c2664511
        2b1167babcc0d018cb576e44dee4941a02acc278f6ffb59b759a4002f6e415ee
        81da752ebfcb3f5ba2eabf77535cae0255e30a92fb6f20ace4848a38e4952a45
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
