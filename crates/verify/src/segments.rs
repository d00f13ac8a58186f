//! Finding the segments in the data directory and the archives, and reading their headers
//! (journal-format.md, "The data directory" and "Segments").

use crate::failure::{Failure, Why};
use leasehold_model::{FORMAT_VERSION, Hash};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub(crate) const HEADER_BYTES: usize = 96;
const MAGIC: [u8; 8] = *b"LHSEGMNT";
const CRC_AT: usize = 92;

/// A segment that was found.
#[derive(Clone, Debug)]
pub(crate) struct SegmentFile {
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// All files that were found, ascending by number.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    pub(crate) files: Vec<SegmentFile>,
    /// Index of the first file that contains only zeroes: allocated in advance, without records.
    pub(crate) begun: usize,
    /// Tree files by the number of their segment. Copies in several directories are all checked.
    pub(crate) trees: BTreeMap<u32, Vec<PathBuf>>,
    /// Numbers of segments found in more than one directory; the first directory given is used.
    pub(crate) duplicates: Vec<u32>,
}

impl Segments {
    /// Searches the data directory first, then the archives in the order given.
    pub(crate) fn find(data: &Path, archives: &[PathBuf]) -> Result<Self, Failure> {
        let mut found = Self::default();
        let mut paths = BTreeMap::new();
        found.search(&data.join("journal"), &mut paths)?;
        for archive in archives {
            found.search(archive, &mut paths)?;
            // An archive may also be a copy of a whole data directory.
            let nested = archive.join("journal");
            if nested.is_dir() {
                found.search(&nested, &mut paths)?;
            }
        }
        for (number, path) in paths {
            let metadata = fs::metadata(&path).map_err(|error| unreadable(&path, error))?;
            if !metadata.is_file() {
                return Err(Failure::new(Why::NotAFile).in_file(path));
            }
            found.files.push(SegmentFile { number, path, bytes: metadata.len() });
        }
        found.begun = found.files.len();
        while let Some(last) = found.begun.checked_sub(1).and_then(|at| found.files.get(at)) {
            let zeroes = File::open(&last.path).and_then(|mut file| only_zeroes_left(&mut file));
            if !zeroes.map_err(|error| unreadable(&last.path, error))? {
                break;
            }
            found.begun -= 1;
        }
        Ok(found)
    }

    fn search(&mut self, folder: &Path, segments: &mut BTreeMap<u32, PathBuf>) -> Result<(), Failure> {
        let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, error))?;
        for entry in entries {
            let entry = entry.map_err(|error| unreadable(folder, error))?;
            let name = entry.file_name();
            let Some((number, kind)) = name.to_str().and_then(numbered) else {
                continue;
            };
            match kind {
                Kind::Tree => self.trees.entry(number).or_default().push(entry.path()),
                Kind::Segment if segments.contains_key(&number) => self.duplicates.push(number),
                Kind::Segment => {
                    segments.insert(number, entry.path());
                }
            }
        }
        Ok(())
    }

    pub(crate) fn path_of(&self, number: u32) -> Option<&Path> {
        let at = self.files.binary_search_by_key(&number, |file| file.number).ok()?;
        Some(&self.files[at].path)
    }

    pub(crate) fn bytes_total(&self) -> u64 {
        self.files[..self.begun].iter().map(|file| file.bytes).sum()
    }
}

enum Kind {
    Segment,
    Tree,
}

/// Eight digits, from 1 on, and one of two endings. Other files are ignored.
fn numbered(name: &str) -> Option<(u32, Kind)> {
    let (digits, kind) = match name.split_once('.')? {
        (digits, "seg") => (digits, Kind::Segment),
        (digits, "tree") => (digits, Kind::Tree),
        _ => return None,
    };
    let all_digits = digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_digit());
    let number = all_digits.then(|| digits.parse().ok()).flatten()?;
    (number > 0).then_some((number, kind))
}

pub(crate) fn unreadable(path: &Path, error: io::Error) -> Failure {
    Failure::new(Why::Unreadable(error)).in_file(path)
}

/// Reads at most one byte more than `bytes_max`, which shows that a file is too long. `Ok(None)` if it does not exist.
pub(crate) fn read_small(path: &Path, bytes_max: usize) -> Result<Option<Vec<u8>>, Failure> {
    let mut bytes = Vec::new();
    let read = match fs::metadata(path) {
        // Opening a pipe would block.
        Ok(metadata) if !metadata.is_file() => return Err(Failure::new(Why::NotAFile).in_file(path)),
        Ok(_) => File::open(path).and_then(|file| file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)),
        Err(error) => Err(error),
    };
    match read {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(path, error)),
    }
}

/// Whether nothing but zeroes follows. Reads to the end.
pub(crate) fn only_zeroes_left(file: &mut impl Read) -> io::Result<bool> {
    let mut piece = vec![0; 256 * 1024];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(true),
            Ok(read) if piece[..read].iter().all(|byte| *byte == 0) => {}
            Ok(_) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The format version of the segment and of every batch in it.
    pub(crate) version: u32,
    pub(crate) number: u32,
    pub(crate) first_sequence: u64,
    /// Hash of the record before its first one.
    pub(crate) prev: Hash,
    /// SHA-256 of the origin's name.
    pub(crate) origin: Hash,
}

/// Why bytes are not a valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderFlaw {
    /// A crash can have caused this.
    Torn(&'static str),
    /// The checksum is right: this was written on purpose.
    Made(&'static str),
    NewerFormat(u32),
}

impl Header {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, HeaderFlaw> {
        let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(HeaderFlaw::Torn("it is cut short"))?;
        let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        if crc32fast::hash(&header[..CRC_AT]) != word(CRC_AT) {
            return Err(HeaderFlaw::Torn("its checksum is wrong"));
        }
        if header[..8] != MAGIC {
            return Err(HeaderFlaw::Made("its first bytes are not those of a segment"));
        }
        match word(8) {
            1..=FORMAT_VERSION => {}
            version if version > FORMAT_VERSION => return Err(HeaderFlaw::NewerFormat(version)),
            _ => return Err(HeaderFlaw::Made("its format version is invalid")),
        }
        if word(88) != 0 {
            return Err(HeaderFlaw::Made("reserved bytes are not zero"));
        }
        let hash = |at: usize| std::array::from_fn(|i| header[at + i]);
        let first_sequence = u64::from(word(16)) | u64::from(word(20)) << 32;
        Ok(Self { version: word(8), number: word(12), first_sequence, prev: hash(24), origin: hash(56) })
    }
}
