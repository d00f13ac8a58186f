//! The file `scrub` in the data directory: the last pass, and where the present one stands.
//!
//! It is authenticated as a whole. Whoever could change it could otherwise have damage passed over: what a pass has
//! read before a restart is not read again. What does not authenticate is discarded, and the pass begins anew.

use leasehold_api::ScrubPass;
use leasehold_journal::{MacKey, private_file};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"LHSCRUB1";
const MAC_BYTES: usize = 32;
/// A million open leases, and the findings.
const BYTES_MAX: u64 = 128 << 20;

/// What is kept between two runs of the daemon.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Saved {
    pub(super) last: Option<ScrubPass>,
    /// The pass that was under way, and the bytes from which it goes on.
    pub(super) present: Option<(ScrubPass, Vec<u8>)>,
}

pub(super) struct ProgressFile {
    path: PathBuf,
    key: MacKey,
}

impl ProgressFile {
    pub(super) fn new(data: &Path, key: MacKey) -> Self {
        Self { path: data.join("scrub"), key }
    }

    /// Replaces the file. If it returns `Ok`, the new one is durable.
    pub(super) fn write(&self, saved: &Saved) -> io::Result<()> {
        let passes = (&saved.last, saved.present.as_ref().map(|(pass, _)| pass));
        let passes = serde_json::to_vec(&passes).map_err(io::Error::other)?;
        let length = u64::try_from(passes.len()).map_err(io::Error::other)?.to_le_bytes();
        let place = saved.present.as_ref().map_or(&[][..], |(_, place)| place);
        let parts = [MAGIC.as_slice(), &length, &passes, place];
        let mac = self.key.mac(&parts);
        let [magic, length, passes, place] = parts;
        private_file::replace(&self.path, &[magic, length, passes, place, &mac])
    }

    /// Reads the file. `Ok(None)` if there is none, and why if it cannot be used.
    pub(super) fn read(&self) -> Result<Option<Saved>, String> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        let mut bytes = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        self.parse(&bytes).map(Some)
    }

    fn parse(&self, bytes: &[u8]) -> Result<Saved, String> {
        let (body, mac) = bytes.split_last_chunk::<MAC_BYTES>().ok_or("the file is too short")?;
        if !self.key.fits(&[body], mac) {
            return Err("its MAC is not by local.secret: the file was altered, or the secret was replaced".into());
        }
        let unknown = || "it was written by another version".to_owned();
        let rest = body.strip_prefix(MAGIC).ok_or_else(unknown)?;
        let (length, rest) = rest.split_first_chunk().ok_or_else(unknown)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| unknown())?;
        let (passes, place) = rest.split_at_checked(length).ok_or_else(unknown)?;
        let (last, present): (Option<ScrubPass>, Option<ScrubPass>) =
            serde_json::from_slice(passes).map_err(|_| unknown())?;
        Ok(Saved { last, present: present.map(|pass| (pass, place.to_vec())) })
    }

    /// Removes a file that cannot be used. If that fails, the next save replaces it.
    pub(super) fn remove(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_journal::Secret;

    #[test]
    fn every_changed_byte_is_noticed() {
        let data = tempfile::tempdir().unwrap();
        let file = ProgressFile::new(data.path(), Secret::new([7; 32]).scrub().clone());
        assert_eq!(file.read(), Ok(None));
        let pass = ScrubPass { records: 4711, ..ScrubPass::default() };
        let saved = Saved { last: Some(pass.clone()), present: Some((pass, vec![1, 2, 3])) };
        file.write(&saved).unwrap();
        file.write(&saved).unwrap();
        assert_eq!(file.read(), Ok(Some(saved)));
        let good = fs::read(&file.path).unwrap();
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            fs::write(&file.path, bytes).unwrap();
            assert!(file.read().is_err(), "byte {at}");
        }
        for length in [0, 31, 32, good.len() - 1] {
            fs::write(&file.path, &good[..length]).unwrap();
            assert!(file.read().is_err(), "{length} bytes");
        }
        // Another secret, and a MAC of the same secret for another use.
        fs::write(&file.path, &good).unwrap();
        let other = ProgressFile::new(data.path(), Secret::new([8; 32]).scrub().clone());
        let books = ProgressFile::new(data.path(), Secret::new([7; 32]).books().clone());
        assert!(other.read().is_err() && books.read().is_err());
        file.remove();
        assert_eq!(file.read(), Ok(None));
    }
}
