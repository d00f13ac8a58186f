//! A disk in memory that crashes, fills up and fails on demand.
//!
//! What was written and not synced is at the mercy of a crash: of every unsynced write any subset of its
//! 512-byte sectors may have reached the disk, of unsynced name changes any prefix.

use leasehold_journal::conformance::{local, stamp};
use leasehold_journal::disk::{Access, Disk, DiskFile, DiskLock};
use leasehold_journal::{FileJournal, Keys, OpenError, Options, Recovered};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The files of a folder with their bytes.
pub type Image = BTreeMap<String, Vec<u8>>;

const SECTOR_BYTES: usize = 512;

/// A small generator, so that a failing seed can be run again.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

#[derive(Clone)]
enum Change {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

#[derive(Clone, Default)]
struct FileState {
    now: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone)]
enum NameChange {
    Put(String, usize),
    Remove(String),
}

#[derive(Clone, Default)]
struct State {
    files: Vec<FileState>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    unsynced_names: Vec<NameChange>,
    /// Operations that change something, so far.
    operations: u64,
    crash_at: Option<u64>,
    /// The next sync of this path fails.
    fail_sync: Option<String>,
    /// The next write to this path is cut short and fails.
    fail_write: Option<String>,
    bytes_max: Option<usize>,
    /// No file can be opened: the process has too many open.
    out_of_files: bool,
}

#[derive(Clone, Default)]
pub struct FaultyDisk {
    state: Arc<Mutex<State>>,
    locked: Arc<AtomicBool>,
}

impl FaultyDisk {
    pub fn from_image(image: &Image) -> Self {
        let disk = Self::default();
        {
            let mut state = disk.state();
            for (name, bytes) in image {
                let file = FileState { now: bytes.clone(), durable: bytes.clone(), unsynced: Vec::new() };
                state.files.push(file);
                let id = state.files.len() - 1;
                state.names.insert(name.clone(), id);
                state.durable_names.insert(name.clone(), id);
            }
        }
        disk
    }

    /// All files as a running process sees them.
    pub fn image(&self) -> Image {
        let state = self.state();
        let bytes = |id: &usize| state.files[*id].now.clone();
        state.names.iter().map(|(name, id)| (name.clone(), bytes(id))).collect()
    }

    pub fn operations(&self) -> u64 {
        self.state().operations
    }
    pub fn crash_at(&self, operation: u64) {
        self.state().crash_at = Some(operation);
    }
    pub fn fail_sync_of(&self, path: &str) {
        self.state().fail_sync = Some(path.into());
    }
    pub fn fail_write_to(&self, path: &str) {
        self.state().fail_write = Some(path.into());
    }
    /// Lets the disk hold at most so many bytes; `None` takes the limit away.
    pub fn limit(&self, bytes_max: Option<usize>) {
        self.state().bytes_max = bytes_max;
    }
    /// Lets every attempt to open a file fail as with too many open files (`EMFILE`).
    pub fn run_out_of_files(&self, out: bool) {
        self.state().out_of_files = out;
    }
    pub fn bytes(&self) -> usize {
        let state = self.state();
        state.names.values().map(|id| state.files[*id].now.len()).sum()
    }

    /// What a machine finds after losing power: what was synced, and a random part of the rest.
    pub fn after_crash(&self, random: &mut Random) -> Self {
        let state = self.state();
        let mut names = state.durable_names.clone();
        let kept = random.below(state.unsynced_names.len() as u64 + 1);
        for change in state.unsynced_names.iter().take(kept as usize) {
            match change {
                NameChange::Put(name, id) => drop(names.insert(name.clone(), *id)),
                NameChange::Remove(name) => drop(names.remove(name)),
            }
        }
        let image = names.into_iter().map(|(name, id)| (name, survivor(&state.files[id], random))).collect();
        Self::from_image(&image)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

fn survivor(file: &FileState, random: &mut Random) -> Vec<u8> {
    let mut bytes = file.durable.clone();
    // A third of the crashes keep everything: a process that dies takes nothing with it.
    let keep = random.below(3);
    for change in &file.unsynced {
        match change {
            Change::SetLen(len) if keep == 0 || random.below(2) == 0 => bytes.resize(*len, 0),
            Change::SetLen(_) => {}
            Change::Write(at, written) => {
                let mut from = *at;
                while from < at + written.len() {
                    let to = ((from / SECTOR_BYTES + 1) * SECTOR_BYTES).min(at + written.len());
                    if keep == 0 || random.below(2) == 0 {
                        if bytes.len() < to {
                            bytes.resize(to, 0);
                        }
                        bytes[from..to].copy_from_slice(&written[from - at..to - at]);
                    }
                    from = to;
                }
            }
        }
    }
    bytes
}

impl State {
    /// Counts an operation, and refuses it and all after it once the crash has come.
    fn operation(&mut self) -> io::Result<()> {
        self.operations += 1;
        match self.crash_at {
            Some(at) if self.operations >= at => Err(io::Error::other("the power is gone")),
            _ => Ok(()),
        }
    }
    fn file_to_open(&self) -> io::Result<()> {
        if self.out_of_files { Err(io::Error::from_raw_os_error(24)) } else { Ok(()) }
    }
    fn id(&self, path: &str) -> io::Result<usize> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
    fn change_name(&mut self, change: NameChange) {
        match change.clone() {
            NameChange::Put(name, id) => drop(self.names.insert(name, id)),
            NameChange::Remove(name) => drop(self.names.remove(&name)),
        }
        self.unsynced_names.push(change);
    }
}

impl Disk for FaultyDisk {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let prefix = if dir.is_empty() { String::new() } else { format!("{dir}/") };
        let state = self.state();
        let names = state.names.keys().filter_map(|name| name.strip_prefix(&prefix));
        Ok(names.map(str::to_owned).collect())
    }
    fn create_dir(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        state.file_to_open()?;
        let id = match (state.id(path), access) {
            (Ok(id), Access::Read | Access::Update) => id,
            (Err(error), Access::Read | Access::Update) => return Err(error),
            (found, Access::Create) => {
                state.operation()?;
                match found {
                    Ok(id) => {
                        state.files[id].now.clear();
                        state.files[id].unsynced.push(Change::SetLen(0));
                        id
                    }
                    Err(_) => {
                        state.files.push(FileState::default());
                        let id = state.files.len() - 1;
                        state.change_name(NameChange::Put(path.into(), id));
                        id
                    }
                }
            }
        };
        Ok(Arc::new(FaultyFile { disk: self.clone(), path: path.into(), id }))
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        let mut state = self.state();
        state.id(path)?;
        state.operation()?;
        state.change_name(NameChange::Remove(path.into()));
        Ok(())
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        let id = state.id(from)?;
        state.operation()?;
        state.change_name(NameChange::Remove(from.into()));
        state.change_name(NameChange::Put(to.into(), id));
        Ok(())
    }
    fn sync_dir(&self, _: &str) -> io::Result<()> {
        let mut state = self.state();
        state.file_to_open()?;
        state.operation()?;
        state.durable_names = state.names.clone();
        state.unsynced_names.clear();
        Ok(())
    }
    fn lock(&self, _: &str) -> io::Result<Box<dyn DiskLock>> {
        if self.locked.swap(true, Ordering::SeqCst) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(FaultyLock(self.locked.clone())))
    }
}

struct FaultyLock(Arc<AtomicBool>);
impl DiskLock for FaultyLock {}
impl Drop for FaultyLock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

struct FaultyFile {
    disk: FaultyDisk,
    path: String,
    id: usize,
}

impl DiskFile for FaultyFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.disk.state();
        let now = &state.files[self.id].now;
        let from = (offset as usize).min(now.len());
        // Short reads are allowed, so they happen.
        let n = bytes.len().min(now.len() - from).min(70_000);
        bytes[..n].copy_from_slice(&now[from..from + n]);
        Ok(n)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let used = self.disk.bytes();
        let mut state = self.disk.state();
        let at = offset as usize;
        let crashed = state.operation();
        let cut_short = state.fail_write.take_if(|path| *path == self.path).is_some();
        let grows = (at + bytes.len()).saturating_sub(state.files[self.id].now.len());
        let full = state.bytes_max.is_some_and(|max| used + grows > max);
        let written = match (&crashed, cut_short || full) {
            (Ok(()), false) => bytes,
            // The write on which the power fails may have got some of its way.
            _ => &bytes[..bytes.len() / 2],
        };
        // After the crash nothing reaches the disk any more.
        let dead = state.crash_at.is_some_and(|crash| state.operations > crash);
        let refused = full && grows > 0;
        if !dead && !refused {
            let file = &mut state.files[self.id];
            if file.now.len() < at + written.len() {
                file.now.resize(at + written.len(), 0);
            }
            file.now[at..at + written.len()].copy_from_slice(written);
            file.unsynced.push(Change::Write(at, written.to_vec()));
        }
        crashed?;
        if full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if cut_short {
            return Err(io::Error::other("input/output error"));
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operation()?;
        if state.fail_sync.take_if(|path| *path == self.path).is_some() {
            // As Linux does it: the pages count as clean from now on, and can still be read.
            state.files[self.id].unsynced.clear();
            return Err(io::Error::other("input/output error"));
        }
        let file = &mut state.files[self.id];
        for change in std::mem::take(&mut file.unsynced) {
            match change {
                Change::SetLen(len) => file.durable.resize(len, 0),
                Change::Write(at, bytes) => {
                    if file.durable.len() < at + bytes.len() {
                        file.durable.resize(at + bytes.len(), 0);
                    }
                    file.durable[at..at + bytes.len()].copy_from_slice(&bytes);
                }
            }
        }
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[self.id].now.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.operation()?;
        let file = &mut state.files[self.id];
        file.now.resize(len as usize, 0);
        file.unsynced.push(Change::SetLen(len as usize));
        Ok(())
    }
}

pub const OPTIONS: Options = Options { segment_bytes: 3072, index_bytes: 512 };

pub fn create(disk: &FaultyDisk, keys: &Arc<Keys>) -> FileJournal {
    FileJournal::create(Arc::new(disk.clone()), OPTIONS, keys.clone(), local(), stamp(0)).expect("a new journal")
}

pub fn open(disk: &FaultyDisk, keys: &Arc<Keys>) -> Result<(FileJournal, Recovered), OpenError> {
    FileJournal::open(Arc::new(disk.clone()), OPTIONS, keys.clone(), local(), stamp(0))
}

/// Opens a folder that looks like this.
pub fn open_image(image: &Image, keys: &Arc<Keys>) -> Result<(FileJournal, Recovered), OpenError> {
    open(&FaultyDisk::from_image(image), keys)
}
