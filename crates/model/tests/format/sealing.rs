//! Records to bytes and back, as the tests need it.

use leasehold_model::frame::{BATCH_HEADER_BYTES, MAC_BYTES, NoKeys, Signer};
use leasehold_model::{Batch, Reader, Record};
use proptest::test_runner::Config;
use sha2::{Digest, Sha256};

/// Signs with nothing but a hash: the format does not care what is in the 64 bytes.
pub(crate) struct FakeSigner;
impl Signer for FakeSigner {
    fn sign(&self, public_key: &[u8; 32], message: &[u8]) -> Option<[u8; 64]> {
        let mut signature = [0u8; 64];
        let half = Sha256::new().chain_update(public_key).chain_update(message).finalize();
        signature[..32].copy_from_slice(&half);
        signature[32..].copy_from_slice(public_key);
        Some(signature)
    }
}

/// The hashed bytes of a record that follow the link.
pub(crate) fn encode(record: &Record) -> Vec<u8> {
    let mut batch = Batch::new(record.sequence);
    batch.push(record);
    let frame = batch.frames().next().expect("one frame").expect("a good frame");
    frame.bytes[32..].to_vec()
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Record, leasehold_model::DecodeError> {
    Record::get(&mut Reader::new(bytes))
}

/// One batch of records whose sequences follow one another.
pub(crate) fn seal(records: &[Record]) -> Vec<u8> {
    let mut batch = Batch::new(records[0].sequence);
    records.iter().for_each(|record| batch.push(record));
    batch.seal(&[0; 32], &FakeSigner).expect("the signer signs for everyone");
    batch.bytes().to_vec()
}

/// Bytes on disk of a record in a batch of its own, without the MAC that authenticates the batch as a whole.
pub(crate) fn bytes_on_disk(record: &Record) -> usize {
    let mut batch = Batch::new(record.sequence);
    batch.push(record);
    batch.seal(&[0; 32], &NoKeys).expect("nothing to sign");
    batch.bytes().len() - MAC_BYTES
}

/// Makes the checksum of a batch fit its bytes, as a forger would.
pub(crate) fn forge_checksum(batch: &mut [u8]) {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&batch[4..12]);
    crc.update(&batch[BATCH_HEADER_BYTES..]);
    batch[12..16].copy_from_slice(&crc.finalize().to_le_bytes());
}

/// How many cases a property tries: few in the ordinary tests, many where a long run asks for them.
pub(crate) fn cases(ordinary: u32) -> Config {
    let asked = std::env::var("LEASEHOLD_FUZZ_CASES").ok();
    let cases = asked.map_or(ordinary, |cases| cases.parse().expect("LEASEHOLD_FUZZ_CASES is a number"));
    Config { cases, failure_persistence: None, ..Config::default() }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
