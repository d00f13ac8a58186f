//! The bytes of records, fixed. A journal is kept for years: if one of these changes, journals that
//! exist can no longer be read, and the format needs a new version beside this one
//! (docs/reference/journal-format.md). Never update the expected bytes of a version in use.

use crate::samples;
use crate::sealing::{FakeSigner, encode, hex};
use expect_test::expect;
use leasehold_model::{Batch, Body, RawBatch, Record};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Lines of at most 60 bytes.
fn in_lines(bytes: &[u8]) -> String {
    bytes.chunks(60).map(|line| format!("    {}\n", hex(line))).collect()
}

#[test]
fn the_samples_cover_every_kind() {
    let covered: BTreeSet<u32> = samples::every_kind().iter().map(|record| record.body.kind()).collect();
    let missing: Vec<_> = Body::KINDS.iter().filter(|(code, _)| !covered.contains(code)).collect();
    assert!(missing.is_empty(), "no sample of {missing:?}");
}

/// What follows the link, for each sample.
#[test]
fn every_kind_has_these_bytes() {
    let shown: String = samples::every_kind()
        .iter()
        .map(|record| format!("{} {}\n{}", record.body.kind(), record.body.word(), in_lines(&encode(record))))
        .collect();
    expect![[r#"
        1 journal.genesis
            000000faed5172861801000115636c75737465722d312e6578616d706c652e6f72671111111111111111111111111111111111111111111111111111
            1111111111110f6c65617365686f6c6420302e312e30
        2 journal.started
            010000faed517286180200010f6c65617365686f6c6420302e312e300100
        2 journal.started
            020000faed517286180200020f6c65617365686f6c6420302e312e30010101000000000000000000faed51728618
        3 journal.heartbeat
            030000faed517286180300
        4 journal.key_rotated
            040000faed51728618048008021111111111111111111111111111111111111111111111111111111111111111222222222222222222222222222222
            222222222222222222222222222222222211111111111111111111111111111111111111111111111111111111111111112222222222222222222222
            222222222222222222222222222222222222222222
        5 journal.clock_jumped
            050000faed5172861805000100faed51728618
        6 settings.changed
            060000faed51728618060080d49301f001e00391b907808c15
        10 class.put
            070000faed517286180a0000086770752d68313030010104683130300701
        11 pool.put
            080000faed517286180b000108747261696e696e670201c07000000001808c15000100
        12 pool.deleted
            090000faed517286180c0001
        13 tenant.put
            0a0000faed517286180d000107706879736963730109636f73742d343731310301bc05
        14 tenant.deleted
            0b0000faed517286180e0001
        15 project.put
            0c0000faed517286180f0002010852c3b66e7467656e
        16 project.deleted
            0d0000faed51728618100002
        17 user.put
            0e0000faed517286181100030103616461
        18 user.deleted
            0f0000faed51728618120003
        19 quota.updated
            100000faed517286181300050100000000000101c801
        19 quota.updated
            110000faed517286181300050101020100010101ac020101010200
        19 quota.updated
            120000faed51728618130005010000000200010338ffffffffffffffffff01e012
        20 quota.deleted
            130000faed51728618140005
        21 quota.burst_ended
            140000faed51728618150005
        30 node.put
            150000faed517286181e00ac02076770752d3330300101027237000106647269766572033537300102003802808040
        31 node.deleted
            160000faed517286181f00ac02
        32 node.drained
            170000faed517286182000ac02
        33 node.resumed
            180000faed517286182100ac02
        34 node.lost
            190000faed517286182200ac02fbfff9ed51728618
        35 node.returned
            1a0000faed517286182300ac02
        40 lease.granted
            1b0000faed5172861828002aac0201c070020101000e0a00
        40 lease.granted
            1c0000faed5172861828002aac0201c070020102000e0a0280800500ff030123456789abcdeffedcba9876543210090a0b0c0203c80104
        41 lease.denied
            1d0000faed5172861829000101010046f12e03010105c3010ac801
        41 lease.denied
            1e0000faed5172861829000101010046f12e030102050000faed51728618
        41 lease.denied
            1f0000faed5172861829000101010046f12e030103004638
        42 lease.renewed
            200000faed517286182a00010000a0b21e987586182a00
        42 lease.renewed
            210000faed517286182a00020100a0b21e987586182ac07001f001914effbff588fe0615e907f32e04070000
        43 lease.released
            220000faed517286182b0001002a01
        43 lease.released
            230000faed517286182b0001012a01f001914effbff588fe0615e907f32e0400
        44 lease.expired
            240000faed517286182c00032a00e40200
        45 lease.revoked
            250000faed517286182d00012af001
        46 lease.teardown_started
            260000faed517286182e00012a0100
        46 lease.teardown_started
            270000faed517286182e00012a0201
        47 lease.torn_down
            280000faed517286182f00ac02012a
        48 lease.fenced
            290000faed517286183000012a
        49 lease.unfenced
            2a0000faed517286183100012a
        50 lease.activity
            2b0000faed51728618320001012a01f001914effbff588fe0615e907f32e04
        51 lease.preempted
            2c0000faed517286183300ac020301020722
        4000 unknown
            2d0000faed51728618a01f00cafe
        45 lease.revoked
            2e0000faed517286182d200205012a00
        45 lease.revoked
            2f0000faed517286182d2003012a00
        45 lease.revoked
            300000faed517286182d2004012a00
        45 lease.revoked
            310000faed517286182d2005012a00
        45 lease.revoked
            320000faed517286182d2006012a00
        45 lease.revoked
            330000faed517286182d2007012a00
        45 lease.revoked
            340000faed517286182dff1ff22e0102030401ac020101056b65792d31abababababababababababababababab08747261696e2d37620568636c2f39
            07636c61696d2d39013333333333333333333333333333333333333333333333333333333333333333012a00
        36 node.condition
            350000faed517286182400ac02020001
        37 node.agent_registered
            360000faed517286182500ac02ac020123456789abcdeffedcba9876543210
        38 node.agent_detached
            370000faed517286182600ac02
        60 token.issued
            380000faed517286183c000404726f6f74444444444444444444444444444444444444444444444444444444444444444401000000000000
        60 token.issued
            390000faed517286183c00ac02076e696768746c79555555555555555555555555555555555555555555555555555555555555555507010101020103
            01ac02020aac02010000faed51728618
        61 token.revoked
            3a0000faed517286183d00ac02
        22 rate_card.put
            3b0000faed51728618160000000000faed5172861845555280ade20480897ac0843da0c21ee0a712000080c6868f018094ebdc0380dea0cb05
        22 rate_card.put
            3c0000faed517286181600ac0201010000faed5172861843484680809aa6eaafe3010100809c9c39e0a712020080b6dc05ac020002046131303080f9
            85d404046831303080a094a58d1d008094ebdc0380a8d6b907
        23 rate_card.deleted
            3d0000faed517286181700ac02
        24 charge_policy.put
            3e0000faed517286181800000000faed5172861801010101
        24 charge_policy.put
            3f0000faed517286181800ac020000faed5172861803e8020103f12e02
        26 pool.placement_put
            400000faed517286181a000100
        26 pool.placement_put
            410000faed517286181a0001010001ab02bc05
        27 settings.placement_changed
            420000faed517286181b00e012
        40 lease.granted
            430000faed5172861828002aac0201c070020201000e0a800801
        40 lease.granted
            440000faed5172861828002aac0201c070020201000e0a800802
        40 lease.granted
            450000faed5172861828002aac0201c070020201000e0a800c9c05030001ab02bc05
        25 quota.budgets_updated
            460000faed5172861819000100005a000000
        25 quota.budgets_updated
            470000faed517286181900ac0201a08d0601a8461e01fa0101f4030140
        70 allocation.submitted
            480000faed5172861846000001000701020000000000000000000000000000
        70 allocation.submitted
            490000faed5172861846000101020007ac0280f40308030180e10101e012010101046469736b046e766d6501030101019c050101010123456789abcd
            effedcba9876543210010a010b0102
        71 allocation.denied
            4a0000faed5172861847000101020007ac0280f40308030180e10101e012010101046469736b046e766d6501030101019c050101010123456789abcd
            effedcba9876543210010a010b0102010105c3010ac801
        72 allocation.placed
            4b0000faed517286184800ac02022a1001
        73 allocation.started
            4c0000faed517286184900ac02
        74 allocation.checkpointing
            4d0000faed517286184a00ac02
        75 allocation.checkpointed
            4e0000faed517286184b00ac02808080808020ac02
        76 allocation.suspended
            4f0000faed517286184c00ac0201
        77 allocation.requeued
            500000faed517286184d00ac0202
        78 allocation.completed
            510000faed517286184e00ac0201008080808004
        79 allocation.failed
            520000faed517286184f00ac02050000
        80 allocation.cancelled
            530000faed517286185000ac02
        52 preemption.decided
            540000faed517286183400ac02030101ac0201000e03020722
        53 reservation.dropped
            550000faed517286183500ac02
        41 lease.denied
            560000faed5172861829000101010046f12e030101050102021fac0201046469736b046e766d659c050a
        40 lease.granted
            570000faed5172861828002aac0201c070020201000e0a80180101046469736b046e766d65
        28 settings.sensitive_changed
            580000faed517286181c0000
        28 settings.sensitive_changed
            590000faed517286181c0001ac02
        90 node.claimed
            5a0000faed517286185a00030000aa02
        91 node.released
            5b0000faed517286185b0002ac02d2fdffff0f
        92 node.wiped
            5c0000faed517286185c00ac02
        93 node.quarantined
            5d0000faed517286185d00ac0201
        93 node.quarantined
            5e0000faed517286185d00ac0202
        94 node.quarantine_cleared
            5f0000faed517286185e00ac02
        100 ceiling.put
            600000faed5172861864000200f02e45555201
        100 ceiling.put
            610000faed5172861864000201ac020745555202
        101 ceiling.deleted
            620000faed517286186500ac0200
        101 ceiling.deleted
            630000faed5172861865000201ac02
        41 lease.denied
            640000faed5172861829000101010046f12e03010401ac02cf96e0b21200900178
        13 tenant.put
            650000faed517286180d0001077068797369637300020001136f707340706879736963732e6578616d706c65
        7 journal.converted
            660000faed51728618070002
        8 journal.tail_resolved
            670000faed51728618080001ac02f0a204
        8 journal.tail_resolved
            680000faed517286180800020100
        44 lease.expired
            690000faed517286182c00012a000101f0a2040100112233445566778899aabbccddeeff
        45 lease.revoked
            6a0000faed517286182d00012af001010002f0a204
        46 lease.teardown_started
            6b0000faed517286182e00012a02010101f0a2040100112233445566778899aabbccddeeff
        47 lease.torn_down
            6c0000faed517286182f00ac02012a010002f0a204
        48 lease.fenced
            6d0000faed517286183000012a0101f0a2040100112233445566778899aabbccddeeff
        49 lease.unfenced
            6e0000faed517286183100012a010002f0a204
        91 node.released
            6f0000faed517286185b0001ac0201f0a204
        92 node.wiped
            700000faed517286185c00ac0201f0a204
        93 node.quarantined
            710000faed517286185d00ac020201f0a204
        110 reservation.taken_over
            720000faed517286186e00b602030401ac0201000e030002072202ac0201
        19 quota.updated
            730000faed51728618130005010000000001020101071f0101030002090000faed51728618
        116 quota.until_reached
            740000faed51728618740005
        41 lease.denied
            750000faed5172861829000101010046f12e030105050000000000000000000000000000002515000000000000000000000000000000020702
        70 allocation.submitted
            760000faed5172861846000101020007ac0280f40308030180e10101e012010101046469736b046e766d6501030101019c050101010123456789abcd
            effedcba9876543210010a010b01020102
        49 lease.unfenced
            770000faed517286183100012a020f636865636b65642062792068616e64
        32 node.drained
            780000faed517286182000ac0201106e657720706f77657220737570706c79
        33 node.resumed
            790000faed517286182100ac0201087265706169726564
        112 pool.queue_put
            7a0000faed51728618700001e01203
        70 allocation.submitted
            7b0000faed517286184600000100070102000000000000000000000000000002ac02
        40 lease.granted
            7c0000faed5172861828002aac0201c070020101000e0a802003
        123 window.put
            7d0000faed517286187b000202030300ca9a3b0000000000b05d052f04000001086669726d77617265
        124 window.started
            7e0000faed517286187c0002020303
        125 window.ended
            7f0000faed517286187d00020203030100
        126 lease.window_announced
            80010000faed517286187e000200ca9a3b0000000000b05d052f04000000020b00000209
        111 head.protected
            81010000faed517286186f00ac0204030100a902
        114 project.pool_put
            82010000faed517286187200ac020103
        113 settings.queue_changed
            83010000faed517286187100c070
        90 node.claimed
            84010000faed517286185a0001020100b05d052f040000
        79 allocation.failed
            85010000faed517286184f00ac02070000
        115 lease.end_corrected
            86010000faed517286187300ac02020b0001090209
        117 claim.end_corrected
            87010000faed517286187500ac0207a202
        122 node.loss_settled
            88010000faed517286187a00ac0207
        118 allocation.hold_set
            89010000faed517286187600ac0200
        118 allocation.hold_set
            8a010000faed517286187600ac0201010d7761697420666f722064617461
        119 allocation.hold_cleared
            8b010000faed517286187700ac02
        120 allocation.changed
            8c010000faed517286187800ac020101020007ac0280f40308030180e10101e012010101046469736b046e766d6501030101019c0501010101234567
            89abcdeffedcba9876543210010a010b0102
        22 rate_card.put
            8d010000faed517286181600ac02000000faed5172861843484680809aa6eaafe3010100809c9c39e0a712020080b6dc05ac020002046131303080f9
            85d404046831303080a094a58d1d008094ebdc0380a8d6b90701020301010201ac0203
        121 node.empty
            8e010000faed517286187900ac020000faed51728618
        19 quota.updated
            8f010000faed51728618130005010000000001020101073f0101030002090000faed51728618
        52 preemption.decided
            90010000faed517286183400ac02020401ac0201000e030207220105
        130 journal.restored
            91010000faed51728618820100ac020000faed51728618
        126 lease.window_announced
            92010000faed517286187e000200ca9a3b0000000000b05d052f04000000020b000002090101
        140 ledger.opened
            93010000faed517286188c01000000faed51728618
        141 ledger.posted
            94010000faed517286188d0100455552f8bd0100406b4fde78861801ac0201a202020000faed51728618ac020101020203010763632d343731310109
            010401010381e497d0120102010001074b00a0b21e98758618ac02010102020200000000008080e3d0eaba0b000402255100010180c4aa22b6dbed86
            84bed0d8ce83d605
        141 ledger.posted
            95010000faed517286188d01004a5059f8bd010000faed517286180001000000
        142 ledger.hour_settled
            96010000faed517286188e01000000faed51728618ac02
        143 ledger.corrected
            97010000faed517286188f0100455552f9bd01f8bd01ac020101ad020100a0b21e98758618ac02010102020200000000008080e3d0eaba0b00040225
            510001010201ac0281c4aa22040280c4aa220201ac02808ece1c0402818ece1c030313746865207072696365207761732077726f6e67
        144 ledger.adjusted
            98010000faed51728618900100455552f8bd01f8bd01000801ac020002020003ac0200040200050006000700080008676f6f6477696c6c
        145 ledger.disputed
            99010000faed51728618910100ac020001086e6f74206f757273
        150 period.closing
            9a010000faed51728618960100f8bd01
        151 invoice.issued
            9b010000faed51728618970100010cf8bd0145555201ac02b0aeac220180d7cc5ab0aeac22c0fcac2280fbc206c0f7ef280207070707070707070707
            070707070707070707070707070707070707070707070000faed51728618
        152 period.closed
            9c010000faed51728618980100f8bd010c01
        153 payment.recorded
            9d010000faed51728618990100455552c0f7ef280102011262616e6b20323032362d30322d30332f31370000faed51728618
        154 tax_rate.put
            9e010000faed517286189a010002f8bd0180d7cc5a
        155 prepaid.topped_up
            9f010000faed517286189b01004555520180ade2040a0100a0b21e9875861801086f726465722d3137
        156 prepaid.policy_put
            a0010000faed517286189c010045555280897a808c1501020401b009
        157 prepaid.lapsed
            a1010000faed517286189d010045555201a0c21e
        158 prepaid.changed
            a2010000faed517286189e0100455552020483bcc1960b04
        159 prepaid.applied
            a3010000faed517286189f0100455552010cf8bd01e2eac304e0eac30406
        144 ledger.adjusted
            a4010000faed51728618900100455552f8bd01f8bd0100030902020aac02020b021a6163636f756e7473206f66207072657061696420637265646974
        41 lease.denied
            a5010000faed5172861829000101010046f12e030106010283bcc1960b08
        160 usage_unit.put
            a6010000faed51728618a001004006696d6167657302
        161 unit_price.put
            a7010000faed51728618a101000104010145555280b5180000faed51728618
        162 app_type.put
            a8010000faed51728618a201000105736c75726d02020002
        163 app_type.deleted
            a9010000faed51728618a3010001
        164 app_instance.put
            aa010000faed51728618a40100ac02030c736c75726d2d73686172656401010201
        165 app_instance.deleted
            ab010000faed51728618a50100ac02
        166 attachment.made
            ac010000faed51728618a6010007ac02040129
        167 attachment.ended
            ad010000faed51728618a7010007
        41 lease.denied
            ae010000faed5172861829000101010046f12e03010105010202200000000000000000000000005f0c1b3e
        168 usage.recorded
            af010000faed51728618a8010001020d736c75726d2d61646170746572086a6f622d34373131ac0200f12e0000faed5172861800f00e373b77861800
            000000000000000b9f4e9c52d84a43000107012901086a6f622d34373130020101ac020487e497d0120000faed517286180100faed51728618010001
        144 ledger.adjusted
            b0010000faed51728618900100455552f8bd01f8bd0100010c400204756e6974
        141 ledger.posted
            b1010000faed517286188d0100455552f8bd0100a0b21e9875861801ac0200010000faed5172861803ffffffff0f020402020001ac02000001018180
            a0f6f4acdbe01b010201900101a10600
        170 entitlement.put
            b2010000faed51728618aa0100010301ac02040180dddb01018092f401
        171 entitlement.deleted
            b3010000faed51728618ab01000001ac0204
        172 entitlement.warned
            b4010000faed51728618ac010001030004f8bd0184dddb0180dddb01
        169 usage.refused
            b5010000faed51728618a9010000076761746577617904722d3137ac0204a0060000faed517286180000faed5172861800000000000000000b9f4e9c
            52d84a430000000001030004f8bd01f08ef4018092f401
        173 app_policy.put
            b6010000faed51728618ad010001010201ac020201020405010200
        173 app_policy.put
            b7010000faed51728618ad0100010000010000010100
    "#]].assert_eq(&shown);
}

fn show_batch(records: &[Record]) -> String {
    let mut batch = Batch::new(records[0].sequence);
    records.iter().for_each(|record| batch.push(record));
    let sealed = batch.seal_with(&[0; 32], &FakeSigner, |bound| {
        let mut mac = [0xaa; 32];
        mac.copy_from_slice(&bound.message()[..32]);
        mac
    });
    let head = sealed.expect("the signer signs for everyone");
    let mut shown = format!("header\n{}", in_lines(&batch.bytes()[..48]));
    let read = RawBatch::read(batch.bytes()).expect("a batch that was just sealed");
    for frame in read.records() {
        let frame = frame.expect("a good frame");
        let _ = write!(shown, "record\n{}", in_lines(frame.bytes));
        for signature in frame.signatures.chunks(64) {
            let _ = write!(shown, "signature\n{}", in_lines(signature));
        }
        let _ = write!(shown, "hash\n{}", in_lines(&frame.hash()));
    }
    assert!(shown.ends_with(&format!("hash\n{}", in_lines(&head))), "the head is the last record's hash");
    shown
}

#[test]
fn a_sealed_batch_has_these_bytes_and_hashes() {
    let records = &samples::every_kind()[..2];
    expect![[r#"
        header
            4c484232d800000002000000751793b50000000000000000020000001ff100af2f5b64934cd6a5f576cb18753244c3da
        record
            0000000000000000000000000000000000000000000000000000000000000000000000faed5172861801000115636c75737465722d312e6578616d70
            6c652e6f726711111111111111111111111111111111111111111111111111111111111111110f6c65617365686f6c6420302e312e30
        hash
            6c1a81facf0e7a96d6679ffab749a9f4b7f819099e037aa6bfc8d2ddbf5ac2e8
        record
            6c1a81facf0e7a96d6679ffab749a9f4b7f819099e037aa6bfc8d2ddbf5ac2e8010000faed517286180200010f6c65617365686f6c6420302e312e30
            0100
        hash
            1ff100af2f5b64934cd6a5f576cb18753244c3dade899f0f5d8629216a735156
    "#]].assert_eq(&show_batch(records));
}

#[test]
fn a_signed_key_rotation_has_these_bytes() {
    expect![[r#"
        header
            4c484232520100000100000070eb9dd12c0100000000000001000000fb9f0bb91a461f1d9322bfab2d35524dfd7293de
        record
            0000000000000000000000000000000000000000000000000000000000000000ac020000faed51728618048008021111111111111111111111111111
            111111111111111111111111111111111111222222222222222222222222222222222222222222222222222222222222222211111111111111111111
            111111111111111111111111111111111111111111112222222222222222222222222222222222222222222222222222222222222222
        signature
            1b49c22e9825daaa0f6a8250f8082044ce4e2e0791725e299c3350e47a27f10e11111111111111111111111111111111111111111111111111111111
            11111111
        signature
            6e204291a24a5b41db9ebdfe03db64c655cbb7897666b1ec298c018b313c444322222222222222222222222222222222222222222222222222222222
            22222222
        hash
            fb9f0bb91a461f1d9322bfab2d35524dfd7293de2b953c548e5f7eaa1b95b9c4
    "#]].assert_eq(&show_batch(&[samples::key_rotation(300)]));
}

/// A batch of format version 1: it is no longer written, and must be read for ever.
#[test]
fn a_batch_of_version_1_is_read() {
    let text = "4c484231b800000002000000824c91bdc8010000000000000000000000000000000000000000000000000000000000000000\
                0000000000faed5172861801000115636c75737465722d312e6578616d706c652e6f72671111111111111111111111111111\
                1111111111111111111111111111111111110f6c65617365686f6c6420302e312e30f80000006c1a81facf0e7a96d6679ffa\
                b749a9f4b7f819099e037aa6bfc8d2ddbf5ac2e8010000faed517286180200010f6c65617365686f6c6420302e312e300100";
    let bytes: Vec<u8> =
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect();
    let batch = RawBatch::read(&bytes).expect("a good batch");
    assert_eq!((batch.version(), batch.count(), batch.mac()), (1, 2, None));
    let records: Vec<_> = batch.records().map(|raw| raw.expect("a good frame").decode().expect("a record")).collect();
    assert_eq!(records, samples::every_kind()[..2]);
    assert!(RawBatch::read_version(&bytes, 2).is_err(), "one version does not pass for the other");
}
