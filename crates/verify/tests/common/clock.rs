//! Stamps and the verifier's own clock.

use super::{Sample, operator_keys, rewrite};
use leasehold_model::Instant;
use leasehold_verify::Report;

/// The operator writes the same journal with all stamps later by this many nanoseconds.
pub fn in_the_future(sample: &Sample, nanoseconds: u64) {
    rewrite(sample, &operator_keys(), |frames| {
        for frame in frames {
            let mut reader = leasehold_model::Reader::new(&frame.bytes[32..]);
            reader.varint().unwrap();
            let at = frame.bytes.len() - reader.remaining();
            let stamp = u64::from_le_bytes(frame.bytes[at..at + 8].try_into().unwrap());
            frame.bytes[at..at + 8].copy_from_slice(&(stamp + nanoseconds).to_le_bytes());
        }
    });
}

/// The codes of what we warn of, by the clock of this machine.
pub fn warnings(report: &Report) -> Vec<&'static str> {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = Instant(u64::try_from(since_1970.as_nanos()).unwrap());
    report.stamp_ahead(now).map(|_| "stamp_in_future").into_iter().collect()
}
