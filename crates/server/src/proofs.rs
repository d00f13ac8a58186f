//! Proofs over the Merkle tree of the journal, without hashing all records for each.
//!
//! The roots of all complete subtrees of at least 1024 records are kept in memory: 64 bytes for 1024 records. They are
//! collected for the first proof and continued from there, so that a proof reads at most two blocks. Every proof is
//! checked against the signed root before it is returned.

use crate::access::Caller;
use crate::app::App;
use crate::scans::{blocking, scan, unreadable};
use leasehold_api::{Problem, codes};
use leasehold_journal::{Journal, ReadError, SignedCheckpoint};
use leasehold_tlog::{ConsistencyProof, Frontier, Hash, InclusionProof, ProofError, Subtree, SubtreeRoots, leaf_hash};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use tokio::sync::Semaphore;

/// A block has 1024 records.
const BLOCK_LEVEL: u32 = 10;

/// Subtree roots that are kept between proofs.
pub(crate) struct Proofs {
    roots: RwLock<SubtreeRoots>,
    /// One request collects at a time; the others wait without taking a reader's place.
    gathering: Arc<Semaphore>,
}

impl Default for Proofs {
    fn default() -> Self {
        Self { roots: RwLock::new(SubtreeRoots::new(BLOCK_LEVEL)), gathering: Arc::new(Semaphore::new(1)) }
    }
}

/// Why no proof could be made.
pub(crate) enum Unproved {
    Unreadable(ReadError),
    Proof(ProofError),
    /// The root computed from the records is not the signed one.
    OtherRoot {
        size: u64,
    },
}

impl From<ReadError> for Unproved {
    fn from(error: ReadError) -> Self {
        Self::Unreadable(error)
    }
}
impl From<ProofError> for Unproved {
    fn from(error: ProofError) -> Self {
        Self::Proof(error)
    }
}

impl From<Unproved> for Problem {
    fn from(unproved: Unproved) -> Self {
        let why = match unproved {
            Unproved::Unreadable(error) => return unreadable(&error),
            Unproved::Proof(error) => error.to_string(),
            Unproved::OtherRoot { size } => {
                let why = format!("the root computed from the first {size} records is not the signed one");
                tracing::error!(why, "cannot make a proof; begin a pass of the scrub to find the damage");
                return codes::JOURNAL_DAMAGED.problem(format!(
                    "Cannot make the proof: {why}, so a segment was altered. `leasehold audit scrub` finds out which \
                     one; restore it from a copy, with the daemon stopped."
                ));
            }
        };
        tracing::error!(why, "cannot make a proof; run leasehold-verify on the journal");
        codes::INTERNAL.problem("Cannot make the proof; the daemon's log has the details.")
    }
}

impl Proofs {
    fn roots(&self) -> RwLockReadGuard<'_, SubtreeRoots> {
        self.roots.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the roots of all complete blocks of a tree of this size are known.
    fn reach(&self, size: u64) -> bool {
        self.roots().leaves() >> BLOCK_LEVEL >= size >> BLOCK_LEVEL
    }

    /// Reads up to the last complete block of a tree of this size.
    fn gather(&self, journal: &dyn Journal, size: u64) -> Result<(), ReadError> {
        let from = self.roots().leaves();
        let until = size >> BLOCK_LEVEL << BLOCK_LEVEL;
        let mut block = Frontier::new();
        journal.scan(from, &mut |sequence, raw| {
            if sequence >= until {
                return ControlFlow::Break(());
            }
            block.push(leaf_hash(&raw.hash()));
            if block.size() >> BLOCK_LEVEL == 1 {
                let root = std::mem::take(&mut block).root();
                self.roots.write().unwrap_or_else(PoisonError::into_inner).push(root);
            }
            ControlFlow::Continue(())
        })
    }
}

/// Collects the roots of all complete blocks of a tree of this size.
///
/// If the caller gives up meanwhile, the work continues for the next one.
pub(crate) async fn reach(app: &Arc<App>, caller: &Caller, size: u64) -> Result<(), Problem> {
    if app.proofs.reach(size) {
        return Ok(());
    }
    // The turn first: whoever gathers must not wait for anything, because others wait for it.
    let turn = app.scans.turn(caller).await?;
    let gathering = app.proofs.gathering.clone().acquire_owned().await;
    let gathering = gathering.map_err(|_| codes::STOPPING.problem("The daemon is stopping."))?;
    blocking(app, (turn, gathering), move |app| {
        if app.proofs.reach(size) {
            return Ok(());
        }
        app.proofs.gather(app.journal.as_ref(), size).map_err(|error| unreadable(&error))
    })
    .await
}

/// The tree that a proof is made from: known roots, and blocks that are read where no root is known.
pub(crate) struct Tree<'a> {
    journal: &'a dyn Journal,
    roots: RwLockReadGuard<'a, SubtreeRoots>,
    /// Leaves of the blocks read so far, by the block's index.
    blocks: BTreeMap<u64, Vec<Hash>>,
}

impl<'a> Tree<'a> {
    pub(crate) fn new(app: &'a App) -> Self {
        Self { journal: app.journal.as_ref(), roots: app.proofs.roots(), blocks: BTreeMap::new() }
    }

    pub(crate) fn root_of(&mut self, subtree: Subtree) -> Result<Hash, Unproved> {
        if let Some(root) = self.roots.get(subtree) {
            return Ok(root);
        }
        assert!(subtree.level < BLOCK_LEVEL, "the roots of all complete blocks are known");
        let wanted = subtree.leaves();
        let block = wanted.start >> BLOCK_LEVEL;
        if !self.blocks.contains_key(&block) {
            let leaves = self.read(block)?;
            self.blocks.insert(block, leaves);
        }
        let first = block << BLOCK_LEVEL;
        let place = |leaf: u64| usize::try_from(leaf - first).expect("a block is small");
        let mut row = Frontier::new();
        self.blocks[&block][place(wanted.start)..place(wanted.end)].iter().for_each(|leaf| row.push(*leaf));
        Ok(row.root())
    }

    fn read(&self, block: u64) -> Result<Vec<Hash>, ReadError> {
        let (first, until) = (block << BLOCK_LEVEL, (block + 1) << BLOCK_LEVEL);
        let mut leaves = Vec::with_capacity(1 << BLOCK_LEVEL);
        self.journal.scan(first, &mut |sequence, raw| {
            if sequence == until {
                return ControlFlow::Break(());
            }
            leaves.push(leaf_hash(&raw.hash()));
            ControlFlow::Continue(())
        })?;
        Ok(leaves)
    }

    fn include(&mut self, sequence: u64, signed: &SignedCheckpoint) -> Result<InclusionProof, Unproved> {
        let size = signed.size();
        let (proof, root) = InclusionProof::from_subtrees(sequence, size, |subtree| self.root_of(subtree))?;
        if root == signed.position.tree.root() { Ok(proof) } else { Err(Unproved::OtherRoot { size }) }
    }

    pub(crate) fn continued(&mut self, from: u64, to: u64, signed: &SignedCheckpoint) -> Result<Continued, Unproved> {
        let (proof, from_root, to_root) = ConsistencyProof::from_subtrees(from, to, |subtree| self.root_of(subtree))?;
        let size = signed.size();
        // A proof up to a size before the signed one must be consistent with the signed one.
        let (_, old_root, root) = ConsistencyProof::from_subtrees(to, size, |subtree| self.root_of(subtree))?;
        if root != signed.position.tree.root() || old_root != to_root {
            return Err(Unproved::OtherRoot { size });
        }
        Ok(Continued { proof, from_root, to_root })
    }
}

/// A consistency proof with the roots at both sizes.
pub(crate) struct Continued {
    pub(crate) proof: ConsistencyProof,
    pub(crate) from_root: Hash,
    pub(crate) to_root: Hash,
}

/// Proves that a record is in the signed tree, and calls `look` with the proof.
pub(crate) async fn prove_record<T: Send + 'static>(
    app: &Arc<App>,
    caller: &Caller,
    sequence: u64,
    signed: SignedCheckpoint,
    look: impl FnOnce(&App, &InclusionProof, &SignedCheckpoint) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    reach(app, caller, signed.size()).await?;
    scan(app, caller, move |app| {
        let proof = Tree::new(app).include(sequence, &signed)?;
        look(app, &proof, &signed)
    })
    .await
}

/// Proves that the tree of `from` records is the beginning of the tree of `to` records, and of the signed tree.
pub(crate) async fn prove_growth(
    app: &Arc<App>,
    caller: &Caller,
    from: u64,
    to: u64,
    signed: SignedCheckpoint,
) -> Result<(Continued, SignedCheckpoint), Problem> {
    reach(app, caller, signed.size()).await?;
    scan(app, caller, move |app| Ok((Tree::new(app).continued(from, to, &signed)?, signed))).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold_journal::MemoryJournal;
    use leasehold_journal::conformance::{append, keys, stamp};
    use leasehold_tlog::{ConsistencyBuilder, InclusionBuilder};

    /// A journal with this many records, and its leaves.
    fn journal(size: u64) -> (MemoryJournal, Vec<Hash>) {
        let keys = keys();
        let journal = MemoryJournal::new(keys.clone());
        while journal.head().size < size {
            append(&journal, &keys, (size - journal.head().size).min(700));
        }
        journal.checkpoint(stamp(size)).expect("no failure");
        let mut leaves = Vec::new();
        let mut push = |_, raw: leasehold_model::RawRecord<'_>| {
            leaves.push(leaf_hash(&raw.hash()));
            ControlFlow::Continue(())
        };
        journal.scan(0, &mut push).expect("a scan");
        (journal, leaves)
    }

    fn tree<'a>(journal: &'a MemoryJournal, proofs: &'a Proofs) -> Tree<'a> {
        Tree { journal, roots: proofs.roots(), blocks: BTreeMap::new() }
    }

    #[test]
    fn proofs_equal_those_from_all_leaves_and_read_two_blocks() {
        let (journal, leaves) = journal(5000);
        let signed = journal.checkpointed();
        let size = signed.size();
        let proofs = Proofs::default();
        // In two steps, as the journal grows.
        for until in [2500, size] {
            assert!(!proofs.reach(until));
            proofs.gather(&journal, until).expect("a scan");
            assert!(proofs.reach(until));
        }
        for sequence in [0, 1, 1023, 1024, 2047, 4095, 4096, 4999] {
            let mut tree = tree(&journal, &proofs);
            let made = tree.include(sequence, &signed).ok().expect("a proof");
            let mut builder = InclusionBuilder::new(sequence, size).expect("a leaf");
            leaves.iter().for_each(|leaf| builder.push(*leaf));
            assert_eq!(made, builder.finish().expect("all leaves").0);
            assert!(tree.blocks.len() <= 2, "{:?}", tree.blocks.keys());
        }
        for (from, to) in [(0, size), (1, 1), (1, size), (1024, 4096), (1500, 3001), (4999, size), (size, size), (0, 0)]
        {
            let made = tree(&journal, &proofs).continued(from, to, &signed).ok().expect("a proof");
            let mut builder = ConsistencyBuilder::new(from, to).expect("growth");
            leaves.iter().take(usize::try_from(to).unwrap()).for_each(|leaf| builder.push(*leaf));
            let (proof, from_root, to_root) = builder.finish().expect("all leaves");
            assert_eq!((made.proof, made.from_root, made.to_root), (proof, from_root, to_root), "{from} to {to}");
        }
    }

    #[test]
    fn nothing_is_proved_against_a_wrong_root() {
        let (journal, _) = journal(100);
        let mut signed = journal.checkpointed();
        signed.position.tree = Frontier::new();
        (0..100).for_each(|leaf| signed.position.tree.push([leaf; 32]));
        let proofs = Proofs::default();
        assert!(matches!(tree(&journal, &proofs).include(3, &signed), Err(Unproved::OtherRoot { size: 100 })));
        assert!(matches!(tree(&journal, &proofs).continued(3, 7, &signed), Err(Unproved::OtherRoot { size: 100 })));
    }
}
