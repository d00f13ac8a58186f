//! Checkpoints that others have signed too: witnesses, and the older key during a rotation.

use crate::common::*;
use crate::{Cases, common_checkpoint};
use leasehold_tlog::{Checkpoint, Note, SigningKey, WitnessSigningKey};

pub(crate) fn add(cases: &mut Cases) {
    cases.yes("witnessed", |s| {
        cosign(s, 1, 0);
        s.trust.pin(&common_checkpoint(s)).unwrap();
    });
    for (present, required, yes) in [(2, 2, true), (1, 2, false), (1, 1, true), (0, 1, false), (0, 0, true)] {
        let name = format!("{present} of 2 witnesses, {required} required");
        cases.add(name, Some(yes), |s| cosign(s, present, required));
    }
    cases.yes("signed by the older key too", |s| sign_too(s, &key(FIRST_SEED)));
}

/// The trust file names two witnesses and requires some; the first few have cosigned the anchor's checkpoint.
fn cosign(sample: &mut Sample, present: usize, required: usize) {
    let mut note = Note::parse(&sample.note()).unwrap();
    let checkpoint = Checkpoint::from_body(note.text()).unwrap();
    for (seed, name) in [(9, "w.example.net"), (8, "v.example.net")] {
        let witness = WitnessSigningKey::from_seed(name, &[seed; 32]).unwrap();
        if sample.trust.witnesses().len() < present {
            note.add_signature(witness.cosign(&checkpoint, 1_700_000_100).unwrap()).unwrap();
        }
        sample.trust.add_witness(witness.verifier());
    }
    sample.trust.require(required).unwrap();
    sample.forge_anchor(&sample.anchor_text().replace(&sample.note(), &note.to_string()));
}

/// Adds a signature of another key to the anchor's checkpoint.
fn sign_too(sample: &Sample, key: &SigningKey) {
    let mut note = Note::parse(&sample.note()).unwrap();
    note.add_signature(key.sign_note_text(note.text())).unwrap();
    sample.forge_anchor(&sample.anchor_text().replace(&sample.note(), &note.to_string()));
}
