//! Where verification can begin: the anchor contains head and root, but not the tree under them. The newest snapshot or
//! tree file at or before the anchor does; it is right if the records after it lead to the anchor's root.

use super::segment::Header;
use super::snapshot::{self, Owner};
use super::survey::Survey;
use super::tree_file::read_tree;
use crate::disk::Disk;
use crate::error::OpenError;
use crate::provider::Position;
use std::io;

/// Somewhere to begin, not read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Genesis,
    /// At the beginning of this segment.
    Tree(Header),
    Snapshot(u64),
}

impl Start {
    fn size(&self) -> u64 {
        match self {
            Self::Genesis => 0,
            Self::Tree(header) => header.first_sequence,
            Self::Snapshot(size) => *size,
        }
    }

    /// Its position, if it can be used.
    pub(super) fn position(&self, disk: &dyn Disk, owner: &Owner<'_>) -> io::Result<Option<Position>> {
        match self {
            Self::Genesis => Ok(Some(Position::empty())),
            Self::Tree(header) => Ok(read_tree(disk, header.number)?
                .filter(|position| position.head.size == header.first_sequence && position.head.hash == header.prev)),
            Self::Snapshot(size) => snapshot::position(disk, owner, *size),
        }
    }
}

/// All places to begin at or before `anchor_size`, the nearest first.
///
/// Refuses if earlier segments were moved away and nothing stands in for them.
pub(super) fn starts(
    disk: &dyn Disk,
    survey: &Survey,
    owner: &Owner<'_>,
    anchor_size: u64,
) -> Result<Vec<Start>, OpenError> {
    let reading = || OpenError::io("reading the places where verification can begin");
    let snapshots = snapshot::list(disk).map_err(reading())?;
    let first = survey.segments.first();
    let mut starts = Vec::new();
    match first {
        Some(first) if first.number > 1 => {
            let usable = |start: Start| -> Result<bool, OpenError> {
                let position = start.position(disk, owner).map_err(reading())?;
                Ok(position.is_some())
            };
            let mut covered = false;
            for size in snapshots.iter().filter(|s| **s >= first.first_sequence) {
                covered = covered || usable(Start::Snapshot(*size))?;
            }
            if !covered || !usable(Start::Tree(*first))? {
                let segment = survey.missing.unwrap_or(first.number - 1);
                return Err(OpenError::MissingSegment { segment });
            }
        }
        _ => starts.push(Start::Genesis),
    }
    let at_hand = first.map_or(0, |first| first.first_sequence);
    let trees = survey.segments.iter();
    starts.extend(trees.filter(|header| survey.trees.contains(&header.number)).map(|header| Start::Tree(*header)));
    starts.extend(snapshots.into_iter().filter(|size| *size >= at_hand).map(Start::Snapshot));
    starts.retain(|start| start.size() <= anchor_size);
    starts.sort_by_key(|start| std::cmp::Reverse(start.size()));
    Ok(starts)
}
