//! The bytes of a proof file tell no name of other tenants, and all records in it no number of theirs: also those that are
//! no part of the evidence (the statement, the end of the month, rotations of the key).

use super::bills::another_month;
use super::evidence::evidences;
use super::foreign::{Owners, allowed, said};
use super::proof_journal::{Making, ORIGIN};
use super::story::Shelf;
use super::{tell, tell_sharing};
use leasehold_bill::Evidence;
use leasehold_bill::proof_file::ProofFile;
use leasehold_model::TenantNo;
use leasehold_tlog::SigningKey;
use std::collections::BTreeSet;

/// Shorter names are found in hashes by chance.
const NAME_BYTES_MIN: usize = 4;

fn contains(bytes: &[u8], name: &str) -> bool {
    bytes.windows(name.len()).any(|window| window == name.as_bytes())
}

/// Names that belong to others alone, and are no part of a name that may be told.
fn foreign_names(owners: &Owners, tenant: TenantNo) -> BTreeSet<String> {
    let names: BTreeSet<String> = owners.everything().filter(|what| what.starts_with('"')).cloned().collect();
    let foreign = owners.foreign(names.clone(), tenant);
    let plain = |name: &String| name.trim_matches('"').to_owned();
    let told: Vec<String> = names.difference(&foreign).map(plain).collect();
    let alone = |name: &String| name.len() >= NAME_BYTES_MIN && !told.iter().any(|told| told.contains(name.as_str()));
    foreign.iter().map(plain).filter(alone).collect()
}

#[test]
fn no_byte_of_a_file_names_another_tenant() {
    let key = |seed| SigningKey::from_seed(ORIGIN, &[seed; 32]).expect("a key");
    let (old, new) = (key(8), key(9));
    let (mut files, mut searched, mut own, mut kinds) = (0, 0, 0, BTreeSet::new());
    for seed in 0..20 {
        let told = if seed % 2 == 0 { tell_sharing(seed, 200) } else { tell(seed, 200, Shelf::Memory) };
        let mut story = told.unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        if seed % 4 < 2 {
            another_month(&mut story).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        }
        let owners = Owners::of(&story.records);
        let evidences = evidences(&story.records);
        let all: Vec<&Evidence> = evidences.iter().collect();
        let since = Some(story.records.len() as u64 / 2);
        let making = Making { records: &story.records, evidences: &all, key: &new, rotated_from: Some(&old), since };
        for (at, evidence) in all.iter().enumerate() {
            let Some(bytes) = making.file(at) else { continue };
            let tenant = evidence.tenant;
            for record in ProofFile::read(&bytes).expect("a file").records {
                let record = record.decode().expect("a record");
                let found = owners.foreign(said(&record), tenant);
                let allowed = allowed(&record, tenant, &owners);
                let beyond: Vec<_> = found.difference(&allowed).collect();
                assert!(beyond.is_empty(), "seed {seed}: {beyond:?} of others than {tenant} in {record:?}");
                kinds.insert(record.body.word());
            }
            let names = foreign_names(&owners, tenant);
            for name in &names {
                assert!(!contains(&bytes, name), "seed {seed}: {name:?} of others than {tenant} is in the file");
            }
            let name = evidence.list_at_start.name.as_ref();
            own += usize::from(name.is_some_and(|name| contains(&bytes, name.as_str())));
            searched += names.len();
            files += 1;
        }
    }
    assert!(files > 20 && searched > 2 * files, "{searched} names in {files} files");
    assert!(own > 0, "a search that finds nothing would prove nothing");
    for kind in ["period.stated", "period.closed", "journal.key_rotated"] {
        assert!(kinds.contains(kind), "no {kind} was searched: {kinds:?}");
    }
}
