//! A disk in memory with the weakest guarantees: unsynced data can be lost, torn or kept in any part when the machine
//! stops.

use leasehold_journal::disk::{Access, Disk, DiskFile, DiskLock};
use leasehold_oracle::Dice;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// Planned faults, by the number of the operation. Writes and syncs are counted.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// The machine stops in the middle of this operation.
    pub crash_at: Option<u64>,
    /// This sync (or the next one) fails.
    pub sync_error_at: Option<u64>,
    /// This write (or the next one) writes a part and fails.
    pub short_write_at: Option<u64>,
    /// The capacity of the disk in bytes.
    pub capacity_bytes: Option<u64>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

#[derive(Clone, Debug, Default)]
struct Content {
    durable: Vec<u8>,
    current: Vec<u8>,
    unsynced: Vec<Change>,
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write { offset, bytes: new } => {
            let end = offset + new.len();
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[*offset..end].copy_from_slice(new);
        }
        Change::Length(len) => bytes.resize(*len, 0),
    }
}

type Names = BTreeMap<String, usize>;

#[derive(Debug)]
struct Inner {
    contents: Vec<Content>,
    names: Names,
    /// The names that survive a crash.
    durable_names: Names,
    dirs: BTreeSet<String>,
    operations: u64,
    faults: Faults,
    stopped: bool,
    locked: BTreeSet<String>,
    dice: Dice,
}

/// The directory of one journal.
#[derive(Clone, Debug)]
pub struct FaultDisk(Arc<Mutex<Inner>>);

fn dir_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}

fn no_such(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{path}: no such file"))
}

impl Inner {
    fn up(&self) -> io::Result<()> {
        if self.stopped { Err(io::Error::other("the machine has stopped")) } else { Ok(()) }
    }

    /// Counts an operation; returns whether the machine stops in it.
    fn operate(&mut self) -> io::Result<bool> {
        self.up()?;
        self.operations += 1;
        Ok(self.faults.crash_at.is_some_and(|at| self.operations >= at))
    }

    fn stop(&mut self) -> io::Error {
        self.stopped = true;
        io::Error::other("the machine stops")
    }

    fn bytes_used(&self) -> u64 {
        self.names.values().map(|file| self.contents[*file].current.len() as u64).sum()
    }

    fn write(&mut self, file: usize, bytes: &[u8], offset: usize) -> io::Result<()> {
        let crash = self.operate()?;
        let grown = (offset + bytes.len()).saturating_sub(self.contents[file].current.len()) as u64;
        let full = self.faults.capacity_bytes.is_some_and(|cap| grown > 0 && self.bytes_used() + grown > cap);
        let short = self.faults.short_write_at.is_some_and(|at| self.operations >= at);
        let written = if crash || full || short { self.dice.index(bytes.len() + 1) } else { bytes.len() };
        // On a full disk no file can grow.
        let written =
            if full { written.min(self.contents[file].current.len().saturating_sub(offset)) } else { written };
        let change = Change::Write { offset, bytes: bytes[..written].to_vec() };
        let content = &mut self.contents[file];
        apply(&mut content.current, &change);
        content.unsynced.push(change);
        if crash {
            return Err(self.stop());
        }
        if full {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left"));
        }
        if short {
            self.faults.short_write_at = None;
            return Err(io::Error::other("a write stopped half-way"));
        }
        Ok(())
    }

    fn sync(&mut self, file: usize) -> io::Result<()> {
        if self.operate()? {
            return Err(self.stop());
        }
        if self.faults.sync_error_at.is_some_and(|at| self.operations >= at) {
            self.faults.sync_error_at = None;
            // After a failed sync the state of dirty data is unknown, even if a later sync succeeds.
            return Err(io::Error::other("input/output error"));
        }
        let content = &mut self.contents[file];
        for change in std::mem::take(&mut content.unsynced) {
            apply(&mut content.durable, &change);
        }
        Ok(())
    }
}

impl FaultDisk {
    pub fn new(dice: Dice, faults: Faults) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            contents: Vec::new(),
            names: Names::new(),
            durable_names: Names::new(),
            dirs: BTreeSet::from([String::new()]),
            operations: 0,
            faults,
            stopped: false,
            locked: BTreeSet::new(),
            dice,
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("the simulator has one thread")
    }

    pub fn operations(&self) -> u64 {
        self.inner().operations
    }
    pub fn has_stopped(&self) -> bool {
        self.inner().stopped
    }
    pub fn set_faults(&self, faults: Faults) {
        self.inner().faults = faults;
    }
    pub fn bytes_used(&self) -> u64 {
        self.inner().bytes_used()
    }

    /// The disk after a power failure: of the unsynced writes of each file, none, all, some, or torn ones survive.
    pub fn reboot(&self, faults: Faults) -> Self {
        let mut old = self.inner();
        let mut dice = old.dice.split();
        let names = if dice.one_in(2) { old.names.clone() } else { old.durable_names.clone() };
        let mut contents = Vec::new();
        let mut kept = Names::new();
        for (name, file) in &names {
            let content = &old.contents[*file];
            let mut bytes = content.durable.clone();
            survive(&mut bytes, &content.unsynced, &mut dice);
            kept.insert(name.clone(), contents.len());
            contents.push(Content { durable: bytes.clone(), current: bytes, unsynced: Vec::new() });
        }
        let dirs = old.dirs.clone();
        old.stopped = true;
        Self(Arc::new(Mutex::new(Inner {
            contents,
            names: kept.clone(),
            durable_names: kept,
            dirs,
            operations: 0,
            faults,
            stopped: false,
            locked: BTreeSet::new(),
            dice,
        })))
    }

    /// A copy without planned faults.
    pub(crate) fn reboot_copy(&self) -> Self {
        let inner = self.inner();
        Self(Arc::new(Mutex::new(Inner {
            contents: inner.contents.clone(),
            names: inner.names.clone(),
            durable_names: inner.durable_names.clone(),
            dirs: inner.dirs.clone(),
            operations: 0,
            faults: Faults::default(),
            stopped: false,
            locked: BTreeSet::new(),
            dice: inner.dice.clone(),
        })))
    }

    /// Flips one bit in a file whose name starts with `prefix`; returns the position.
    pub fn flip_bit(&self, prefix: &str, dice: &mut Dice) -> Option<(String, usize)> {
        let mut inner = self.inner();
        let files: Vec<(String, usize)> =
            inner.names.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(n, f)| (n.clone(), *f)).collect();
        let (name, file) = files.get(dice.index(files.len().max(1)))?.clone();
        let content = &mut inner.contents[file];
        if content.durable.is_empty() {
            return None;
        }
        let at = dice.index(content.durable.len());
        let bit = 1 << dice.below(8);
        content.durable[at] ^= bit;
        content.current[at] ^= bit;
        Some((name, at))
    }
}

/// Which part of the unsynced changes survives.
fn survive(bytes: &mut Vec<u8>, unsynced: &[Change], dice: &mut Dice) {
    const SECTOR: usize = 512;
    match dice.below(4) {
        0 => {}
        1 => unsynced.iter().for_each(|change| apply(bytes, change)),
        2 => unsynced.iter().filter(|_| dice.one_in(2)).for_each(|change| apply(bytes, change)),
        _ => {
            for change in unsynced {
                match change {
                    Change::Write { offset, bytes: new } if !new.is_empty() => {
                        // Sectors are written completely and in any order.
                        for (i, sector) in new.chunks(SECTOR).enumerate() {
                            if dice.one_in(2) {
                                let torn = if dice.one_in(8) { dice.index(sector.len() + 1) } else { sector.len() };
                                let part = sector[..torn].to_vec();
                                apply(bytes, &Change::Write { offset: offset + i * SECTOR, bytes: part });
                            }
                        }
                    }
                    change => apply(bytes, change),
                }
            }
        }
    }
}

struct File {
    disk: FaultDisk,
    file: usize,
}

fn place(offset: u64) -> usize {
    usize::try_from(offset).expect("simulated files are small")
}

impl DiskFile for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let inner = self.disk.inner();
        inner.up()?;
        let content = &inner.contents[self.file].current;
        let rest = content.get(place(offset)..).unwrap_or(&[]);
        let n = rest.len().min(bytes.len());
        bytes[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.inner().write(self.file, bytes, place(offset))
    }
    fn sync(&self) -> io::Result<()> {
        self.disk.inner().sync(self.file)
    }
    fn len(&self) -> io::Result<u64> {
        let inner = self.disk.inner();
        inner.up()?;
        Ok(inner.contents[self.file].current.len() as u64)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut inner = self.disk.inner();
        if inner.operate()? {
            return Err(inner.stop());
        }
        let content = &mut inner.contents[self.file];
        let change = Change::Length(place(len));
        apply(&mut content.current, &change);
        content.unsynced.push(change);
        Ok(())
    }
}

struct Lock {
    disk: FaultDisk,
    path: String,
}
impl DiskLock for Lock {}
impl Drop for Lock {
    fn drop(&mut self) {
        self.disk.inner().locked.remove(&self.path);
    }
}

impl Disk for FaultDisk {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let inner = self.inner();
        inner.up()?;
        if !inner.dirs.contains(dir) {
            return Err(no_such(dir));
        }
        let files = inner.names.keys().filter(|name| dir_of(name) == dir);
        let names = files.map(|name| name.rsplit('/').next().unwrap_or(name).to_owned());
        let dirs = inner.dirs.iter().filter(|d| !d.is_empty() && dir_of(d) == dir).cloned();
        Ok(names.chain(dirs).collect())
    }
    fn create_dir(&self, dir: &str) -> io::Result<()> {
        let mut inner = self.inner();
        if inner.operate()? {
            return Err(inner.stop());
        }
        inner.dirs.insert(dir.to_owned());
        Ok(())
    }
    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn DiskFile>> {
        let mut inner = self.inner();
        inner.up()?;
        let found = inner.names.get(path).copied();
        let file = match (found, access) {
            (Some(file), Access::Read | Access::Update) => file,
            (None, Access::Read | Access::Update) => return Err(no_such(path)),
            (_, Access::Create) => {
                if inner.operate()? {
                    return Err(inner.stop());
                }
                inner.contents.push(Content::default());
                let file = inner.contents.len() - 1;
                inner.names.insert(path.to_owned(), file);
                file
            }
        };
        Ok(Arc::new(File { disk: self.clone(), file }))
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        let mut inner = self.inner();
        if inner.operate()? {
            return Err(inner.stop());
        }
        inner.names.remove(path).map(|_| ()).ok_or_else(|| no_such(path))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.inner();
        if inner.operate()? {
            return Err(inner.stop());
        }
        let file = inner.names.remove(from).ok_or_else(|| no_such(from))?;
        inner.names.insert(to.to_owned(), file);
        Ok(())
    }
    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        let mut inner = self.inner();
        if inner.operate()? {
            return Err(inner.stop());
        }
        inner.durable_names.retain(|name, _| dir_of(name) != dir);
        let synced: Vec<(String, usize)> =
            inner.names.iter().filter(|(name, _)| dir_of(name) == dir).map(|(n, f)| (n.clone(), *f)).collect();
        inner.durable_names.extend(synced);
        Ok(())
    }
    fn lock(&self, path: &str) -> io::Result<Box<dyn DiskLock>> {
        let mut inner = self.inner();
        inner.up()?;
        if !inner.locked.insert(path.to_owned()) {
            return Err(io::Error::from(io::ErrorKind::WouldBlock));
        }
        Ok(Box::new(Lock { disk: self.clone(), path: path.to_owned() }))
    }
}

impl Faults {
    /// Draws faults for the next steps; often none, so that histories grow long.
    pub(crate) fn draw(dice: &mut Dice, disk: &FaultDisk) -> Self {
        let soon = |dice: &mut Dice| Some(disk.operations() + 1 + dice.below(120));
        let mut faults = Self::default();
        match dice.below(8) {
            0..4 => faults.crash_at = soon(dice),
            4 => faults.sync_error_at = soon(dice),
            5 => faults.short_write_at = soon(dice),
            6 => faults.capacity_bytes = Some(disk.bytes_used() + dice.below(60_000)),
            _ => {}
        }
        faults
    }
}
