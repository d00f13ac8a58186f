//! Changes of a proof file as a file, and of what its reader trusts.

use leasehold_bill::proof_file::ProofFile;
use leasehold_model::codec::put_varint;
use leasehold_tlog::SigningKey;
use leasehold_verify::Trust;

pub(crate) struct FileChange {
    pub(crate) what: &'static str,
    pub(crate) make: fn(&[u8], &Parts) -> Vec<u8>,
}

/// Where the parts of a file begin. They end where the next one begins.
pub(crate) struct Parts {
    checkpoint: usize,
    records: usize,
    common: usize,
    tenant: usize,
    nodes: usize,
    hashes: usize,
}

/// The place of a part within the whole.
fn offset(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

impl Parts {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let file = ProofFile::read(bytes).expect("a proof file");
        let checkpoint = offset(bytes, file.checkpoint.as_bytes());
        Self {
            checkpoint,
            // After the earlier size, which is 0.
            records: checkpoint + file.checkpoint.len() + 1,
            common: offset(bytes, file.lists.common),
            tenant: offset(bytes, file.lists.tenant),
            nodes: offset(bytes, file.lists.claimed_nodes),
            hashes: offset(bytes, file.lists.claimed_nodes) + file.lists.claimed_nodes.len(),
        }
    }
}

impl Parts {
    /// The file with another checkpoint.
    pub(crate) fn with_checkpoint(&self, bytes: &[u8], note: &str) -> Vec<u8> {
        let encoded = |length: usize| {
            let mut out = Vec::new();
            put_varint(length as u64, &mut out);
            out
        };
        let end = self.records - 1;
        let begin = self.checkpoint - encoded(end - self.checkpoint).len();
        [&bytes[..begin], &encoded(note.len()), note.as_bytes(), &bytes[end..]].concat()
    }
}

fn flipped(bytes: &[u8], place: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(byte) = bytes.get_mut(place) {
        *byte ^= 1;
    }
    bytes
}

fn without(bytes: &[u8], place: usize) -> Vec<u8> {
    [&bytes[..place], &bytes[place + 1..]].concat()
}

fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).expect("it is there");
    [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat()
}

/// Every one of them is refused.
pub(crate) const FILE_CHANGES: &[FileChange] = &[
    FileChange { what: "the file is empty", make: |_, _| Vec::new() },
    FileChange { what: "the last byte is missing", make: |bytes, _| bytes[..bytes.len() - 1].to_vec() },
    FileChange { what: "the second half is missing", make: |bytes, _| bytes[..bytes.len() / 2].to_vec() },
    FileChange { what: "the hashes are missing", make: |bytes, parts| bytes[..parts.hashes].to_vec() },
    FileChange { what: "there is a byte more", make: |bytes, _| [bytes, &[0]].concat() },
    FileChange { what: "there is a hash more", make: |bytes, _| [bytes, &[7; 32]].concat() },
    FileChange { what: "the file is there twice", make: |bytes, _| [bytes, bytes].concat() },
    FileChange { what: "it is of a later version", make: |bytes, _| replaced(bytes, "proof v1\n", "proof v2\n") },
    FileChange { what: "its first line is another", make: |bytes, _| replaced(bytes, "invoice", "Invoice") },
    FileChange { what: "it is about another invoice", make: |bytes, _| flipped(bytes, 28) },
    FileChange { what: "its checkpoint is of another origin", make: |bytes, _| replaced(bytes, "sim.", "sin.") },
    FileChange { what: "its checkpoint is damaged", make: |bytes, parts| flipped(bytes, parts.records - 6) },
    FileChange { what: "its checkpoint has another size", make: |bytes, parts| flipped(bytes, parts.checkpoint + 12) },
    FileChange { what: "its earlier size is missing", make: |bytes, parts| without(bytes, parts.records - 1) },
    FileChange { what: "its earlier size is invented", make: |bytes, parts| flipped(bytes, parts.records - 1) },
    FileChange { what: "its first record is damaged", make: |bytes, parts| flipped(bytes, parts.records + 6) },
    FileChange {
        what: "a record in the middle is damaged",
        make: |bytes, parts| flipped(bytes, usize::midpoint(parts.records, parts.common)),
    },
    FileChange { what: "the common list is damaged", make: |bytes, parts| flipped(bytes, parts.common + 9) },
    FileChange { what: "the tenant's list is damaged", make: |bytes, parts| flipped(bytes, parts.tenant + 3) },
    FileChange {
        what: "the tenant's list is that of all",
        make: |bytes, parts| [&bytes[..parts.common], &bytes[parts.tenant..]].concat(),
    },
    FileChange { what: "the list of nodes is damaged", make: |bytes, parts| flipped(bytes, parts.nodes) },
    FileChange { what: "a hash is damaged", make: |bytes, parts| flipped(bytes, parts.hashes + 40) },
    FileChange {
        what: "two hashes are swapped",
        make: |bytes, parts| {
            let (before, hashes) = bytes.split_at(parts.hashes);
            [before, &hashes[32..64], &hashes[..32], &hashes[64..]].concat()
        },
    },
];

/// Trust files with which an honest file proves nothing.
pub(crate) fn other_trust() -> [(&'static str, Trust); 2] {
    let key = |origin: &str, seed: u8| SigningKey::from_seed(origin, &[seed; 32]).expect("a key").verifier();
    [
        ("another key is trusted", Trust::new(key("sim.example", 8))),
        ("another origin is trusted", Trust::new(key("other.example", 9))),
    ]
}
