//! Correlation IDs that follow from what a record is about, so that every restart derives the same ones.

use sha2::{Digest, Sha256};

/// The UUID of some words: the SHA-256 of the words with a separator, as UUID version 8 (RFC 9562, section 5.8).
pub fn derived(words: &[&str]) -> String {
    let mut hash = Sha256::new();
    for word in words {
        hash.update(word.as_bytes());
        hash.update([0]);
    }
    let mut bytes: [u8; 16] = std::array::from_fn({
        let digest = hash.finalize();
        move |place| digest[place]
    });
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

/// Whether a text is a UUID in its usual form.
pub fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_have_the_same_uuid() {
        // Golden: a change here would tear the stories of all jobs apart.
        assert_eq!(derived(&["slurm", "box", "4711"]), derived(&["slurm", "box", "4711"]));
        assert_eq!(derived(&["slurm", "box", "4711"]), "ab9488d3-c218-8479-b29a-7347e18ba14b");
        assert_ne!(derived(&["slurm", "box4", "711"]), derived(&["slurm", "box", "4711"]));
        assert!(is_uuid(&derived(&["x"])));
        assert!(!is_uuid("0b9f4e9c-52d8-4a43-9a3d-1f3a4d1e9f1") && !is_uuid("0b9f4e9c-52d8-4a43-9a3d_1f3a4d1e9f10"));
    }
}
