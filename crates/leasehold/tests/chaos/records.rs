//! What lies in the journal, and batches that the daemon did not write.

use leasehold_journal::{Keys, ReadOnly, RealDisk};
use leasehold_model::body::{Body, TenantDeleted};
use leasehold_model::{Batch, Instant, RawBatch, Record, TenantNo};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// The records that carry an idempotency key, by key; fails if one key has two commands, or if a forged record is there.
pub(crate) fn keyed(data: &Path, archive: &Path) -> BTreeMap<String, u64> {
    let archives: Vec<Arc<dyn leasehold_journal::disk::Disk>> = vec![Arc::new(RealDisk::new(archive))];
    let journal = ReadOnly::open(Arc::new(RealDisk::new(data)), archives).unwrap_or_else(|error| panic!("{error}"));
    let mut found = BTreeMap::new();
    let scanned = journal.scan_from_genesis(&mut |entry| {
        let record = entry.raw.decode().expect("every record decodes");
        assert!(!matches!(record.body, Body::TenantDeleted(_)), "record {} was forged", entry.sequence);
        if let (Some(idempotency), false) = (&record.idempotency, record.continues) {
            let key = String::from_utf8(idempotency.key.to_vec()).expect("our keys are text");
            let before = found.insert(key.clone(), entry.sequence);
            assert_eq!(before, None, "{key} was carried out twice, the second time in record {}", entry.sequence);
        }
        ControlFlow::Continue(())
    });
    scanned.unwrap_or_else(|error| panic!("{error}"));
    found
}

/// Appends a batch to a journal that is not being written: well linked, with a right checksum, and with a MAC by somebody
/// who does not have the secret.
pub(crate) fn forge_tail(data: &Path) {
    let journal = ReadOnly::open(Arc::new(RealDisk::new(data)), Vec::new()).unwrap_or_else(|error| panic!("{error}"));
    let mut last = None;
    let scanned = journal.scan(&mut |entry| {
        last = Some((entry.hash, entry.raw.decode().expect("it decodes").stamp));
        ControlFlow::Continue(())
    });
    let size = scanned.unwrap_or_else(|error| panic!("{error}")).size;
    let (hash, stamp) = last.expect("a journal has records");
    let keys = Keys::load(&data.join("key")).expect("the key");
    let mut forged = Batch::new(size);
    let mut record = Record::new(size, Instant(stamp.0 + 1), TenantDeleted { tenant: TenantNo(0) });
    record.effective_at = record.stamp;
    forged.push(&record);
    forged.seal_with(&hash, &keys, |_| [7; 32]).expect("nothing to sign");
    let (path, end) = end_of_batches(&data.join("journal"));
    let segment = File::options().write(true).open(path).expect("the segment");
    segment.write_all_at(forged.bytes(), end).expect("written");
}

/// The segment that was begun last, and where its batches end.
fn end_of_batches(folder: &Path) -> (std::path::PathBuf, u64) {
    const HEADER_BYTES: usize = 96;
    let mut segments: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    segments.retain(|path| path.extension().is_some_and(|end| end == "seg"));
    segments.sort();
    for path in segments.into_iter().rev() {
        let bytes = fs::read(&path).expect("readable");
        if bytes.len() < HEADER_BYTES || bytes[..HEADER_BYTES].iter().all(|byte| *byte == 0) {
            continue;
        }
        let mut end = HEADER_BYTES;
        while let Ok(batch) = RawBatch::read(&bytes[end..]) {
            end += batch.bytes_total();
        }
        return (path, end as u64);
    }
    panic!("no segment was begun");
}
