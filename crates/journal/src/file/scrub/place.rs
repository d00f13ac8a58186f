//! Where a scrub stands, as bytes that its caller keeps and authenticates.

use crate::fold::Fold;
use crate::provider::{Head, Position};
use leasehold_model::Instant;
use leasehold_tlog::Frontier;

leasehold_model::fields! {
    /// Chain, tree and key at the next record.
    #[derive(Default)]
    pub struct ScrubPosition {
        pub size: u64,
        pub head: [u8; 32],
        pub parts: Vec<[u8; 32]>,
        pub key: Option<[u8; 32]>,
        pub stamp: Instant,
        pub epoch: u64,
        pub format_version: Option<u32>,
    }
}

leasehold_model::fields! {
    /// Where a scrub stands between two batches.
    pub struct ScrubPlace {
        pub position: ScrubPosition,
        /// The segment with the next batch, and where that begins; 0 before its header.
        pub segment: u32,
        pub offset: u64,
        /// The format version of the segment; 0 before the first.
        pub version: u32,
        /// Where the segment before it ended.
        pub end_before: u64,
        /// What the pass began with.
        pub first_segment: u32,
        pub first: u64,
        pub bytes: u64,
        pub foreign_macs: u64,
    }
}

impl ScrubPlace {
    /// Before the header of this segment.
    pub(super) fn at_segment(segment: u32) -> Self {
        Self {
            position: ScrubPosition::default(),
            segment,
            offset: 0,
            version: 0,
            end_before: 0,
            first_segment: segment,
            first: 0,
            bytes: 0,
            foreign_macs: 0,
        }
    }

    pub(super) fn position_of(fold: &Fold) -> ScrubPosition {
        let Position { head, tree } = fold.position();
        ScrubPosition {
            size: head.size,
            head: head.hash,
            parts: tree.parts().to_vec(),
            key: fold.key(),
            stamp: fold.stamp(),
            epoch: fold.epoch(),
            format_version: fold.format_version(),
        }
    }

    /// The fold that it describes; none if the tree is not one.
    pub(super) fn fold(&self, origin: &str) -> Option<Fold> {
        let ScrubPosition { size, head, parts, key, stamp, epoch, format_version } = &self.position;
        let tree = Frontier::from_parts(*size, parts.clone()).ok()?;
        let position = Position { head: Head { size: *size, hash: *head }, tree };
        let mut fold = Fold::new(origin, position, *key);
        fold.set_stamp(*stamp);
        fold.set_epoch(*epoch);
        if let Some(version) = format_version {
            fold.set_format_version(*version);
        }
        Some(fold)
    }
}
