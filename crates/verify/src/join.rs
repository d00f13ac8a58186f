//! Joining the checked pieces in journal order: links and timestamps across pieces, the key in force, and the roots at
//! the sizes of signed checkpoints (journal-format.md, "What a verifier checks", 2 and 4 to 7).

use crate::anchor_file::{Anchor, TreeFile};
use crate::chain::{Checked, KeyEvent, Linked, check_follows};
use crate::chunks::Flaw;
use crate::cosigned::{Cosigned, cosigned};
use crate::failure::{Document, Failure, Why};
use crate::keys::KeyHistory;
use crate::segments::Header;
use crate::trust::Trust;
use leasehold_bill::Found;
use leasehold_model::body::Genesis;
use leasehold_model::{FORMAT_VERSION, Hash, Instant};
use leasehold_tlog::Frontier;
use sha2::{Digest, Sha256};

/// The part of the journal that has been joined so far.
pub(crate) struct Joiner<'a> {
    trust: &'a Trust,
    anchor: &'a Anchor,
    pub(crate) keys: KeyHistory<'a>,
    pub(crate) tree: Frontier,
    pub(crate) head: Hash,
    pub(crate) last: Option<Linked>,
    /// Number of the first record found; none before the first segment.
    pub(crate) first_sequence: Option<u64>,
    pub(crate) first_stamp: Option<Instant>,
    pub(crate) cosigned: Cosigned,
    /// Bytes of segment headers and valid batches.
    pub(crate) bytes: u64,
    /// The first sequence of each segment.
    pub(crate) begins: Vec<u64>,
    /// Where statements about months are.
    pub(crate) statements: Found,
    /// The largest size at which a signed checkpoint matched the records.
    pub(crate) agreed_up_to: u64,
    /// The epoch of the last start.
    epoch: u64,
    /// The header of the segment that is being read; none before the first.
    segment: Option<Header>,
    conversion: Conversion,
    /// The segment that began last, until its header is compared with the records before it.
    begun: Option<(Header, Vec<TreeFile>)>,
}

/// Whether the first record of the segment says that the format version changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conversion {
    /// The segment before it is of the same version.
    Never,
    /// The segment before it is of an earlier version.
    Due,
    /// What is before it is not available.
    Possible,
}

impl<'a> Joiner<'a> {
    pub(crate) fn new(trust: &'a Trust, anchor: &'a Anchor) -> Self {
        Self {
            trust,
            anchor,
            keys: KeyHistory::new(trust),
            tree: Frontier::new(),
            head: [0; 32],
            last: None,
            first_sequence: None,
            first_stamp: None,
            cosigned: Cosigned::default(),
            bytes: 0,
            begins: Vec::new(),
            statements: Found::default(),
            agreed_up_to: 0,
            epoch: 0,
            segment: None,
            conversion: Conversion::Never,
            begun: None,
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.tree.size()
    }

    /// The format versions that a batch may have in the segment that is being read, or in the one that begins after it.
    pub(crate) fn possible_versions(&self, in_next: bool) -> Vec<u32> {
        let version = self.segment.map_or(1, |segment| segment.version);
        if in_next { (version..=FORMAT_VERSION).collect() } else { vec![version] }
    }

    /// The largest size of the anchor and the pinned checkpoint.
    pub(crate) fn signed_up_to(&self) -> u64 {
        self.anchor.size.max(self.trust.pinned().map_or(0, |pinned| pinned.checkpoint.size()))
    }

    pub(crate) fn begin(&mut self, header: Header, trees: Vec<TreeFile>) -> Result<(), Flaw> {
        let flaw = |why| Flaw::in_segment(header.number, 0, None, why);
        if header.origin != Hash::from(Sha256::digest(self.trust.origin())) {
            return Err(flaw(Why::WrongOrigin { expected: self.trust.origin().to_owned(), found: None }));
        }
        self.conversion = match self.segment.map(|before| before.version) {
            Some(before) if before > header.version => {
                return Err(flaw(Why::BadSegmentHeader(
                    "it is of an earlier format version than the segment before it",
                )));
            }
            Some(before) if before < header.version => Conversion::Due,
            None if header.first_sequence > 0 => Conversion::Possible,
            _ => Conversion::Never,
        };
        self.segment = Some(header);
        if self.first_sequence.is_none() {
            if header.first_sequence > 0 {
                self.begin_late(&header, &trees).map_err(flaw)?;
            }
            self.first_sequence = Some(header.first_sequence);
        }
        assert_eq!(header.first_sequence, self.size(), "the reader counts as the joiner does");
        self.begins.push(header.first_sequence);
        self.bytes += crate::segments::HEADER_BYTES as u64;
        self.begun = Some((header, trees));
        Ok(())
    }

    /// Begins with the tree file of the first segment found, because earlier segments are missing.
    fn begin_late(&mut self, header: &Header, trees: &[TreeFile]) -> Result<(), Why> {
        let document = Document::Tree(header.number);
        let first = header.first_sequence;
        let tree = trees.first().ok_or(Why::MissingTreeFile)?;
        if tree.tree.size() != first {
            return Err(Why::BadTreeFile("its size differs from the number of the first record of its segment"));
        }
        if self.anchor.size < first {
            return Err(Why::AnchorTooOld { anchor: self.anchor.size, first });
        }
        if let Some(pinned) = self.trust.pinned().map(|pinned| pinned.checkpoint.size()).filter(|size| *size < first) {
            return Err(Why::PinnedOutOfReach { pinned, first });
        }
        self.keys.begin_signed(&tree.signed.note, document)?;
        self.tree = tree.tree.clone();
        self.head = tree.head;
        Ok(())
    }

    pub(crate) fn join(&mut self, checked: Checked, begin: u64) -> Result<(), Flaw> {
        if let Some(first) = &checked.first {
            self.check_link_to(first, checked.second_link)?;
        }
        // After the link: if the record just before a signed size was altered, the link shows which record it is.
        self.settle()?;
        self.check_conversion(&checked)?;
        let mut events = checked.events.into_iter().peekable();
        let mut runs = checked.runs.iter().peekable();
        while let Some((run, head)) = runs.next() {
            while let Some((position, event)) = events.next_if(|(position, _)| position.sequence < run.end()) {
                self.apply(position.sequence, event).map_err(|why| position.flaw(why))?;
            }
            run.join(&mut self.tree).expect("runs fit the tree that they were made for");
            self.head = *head;
            if runs.peek().is_some() {
                self.settle()?;
            }
        }
        self.statements.add(&checked.statements);
        self.first_stamp = self.first_stamp.or(checked.first.map(|first| first.stamp));
        self.last = checked.last.or(self.last);
        self.bytes += checked.end - begin;
        match checked.flaw {
            Some(flaw) => Err(flaw),
            None => Ok(()),
        }
    }

    fn check_link_to(&self, first: &Linked, second_link: Option<Hash>) -> Result<(), Flaw> {
        match &self.last {
            Some(last) => check_follows(last, first, || second_link),
            None if first.link != self.head => Err(first.position.flaw(Why::BrokenLink)),
            None => Ok(()),
        }
    }

    /// A segment of a new format version begins with the record that says so.
    fn check_conversion(&self, checked: &Checked) -> Result<(), Flaw> {
        let Some(first) = checked.first.filter(|first| self.begins_segment(first.position.sequence)) else {
            return Ok(());
        };
        let converts = checked.events.first().is_some_and(|(position, event)| {
            position.sequence == first.position.sequence && matches!(event, KeyEvent::Converted { .. })
        });
        match self.conversion {
            Conversion::Due if !converts => Err(first.position.flaw(Why::BadConversion(
                "it begins a segment of a new format version and is not a conversion record",
            ))),
            _ => Ok(()),
        }
    }

    fn begins_segment(&self, sequence: u64) -> bool {
        self.segment.is_some_and(|segment| segment.first_sequence == sequence)
    }

    fn apply(&mut self, sequence: u64, event: KeyEvent) -> Result<(), Why> {
        match event {
            KeyEvent::Started { epoch } if epoch <= self.epoch => {
                Err(Why::EpochRepeated { before: self.epoch, found: epoch })
            }
            KeyEvent::Started { epoch } => {
                self.epoch = epoch;
                Ok(())
            }
            KeyEvent::Converted { format_version } => {
                let here = self.begins_segment(sequence) && self.conversion != Conversion::Never;
                let fits = self.segment.is_some_and(|segment| segment.version == format_version);
                let why = "a conversion record begins the first segment of a new format version, and no other";
                if here && fits { Ok(()) } else { Err(Why::BadConversion(why)) }
            }
            KeyEvent::Genesis(genesis) => self.begin_genesis(&genesis),
            KeyEvent::Rotation { old_key, new_key } => self.keys.rotate(sequence, &old_key, &new_key),
        }
    }

    fn begin_genesis(&mut self, genesis: &Genesis) -> Result<(), Why> {
        if genesis.format_version > FORMAT_VERSION {
            return Err(Why::NewerFormat(genesis.format_version));
        }
        if self.segment.is_none_or(|segment| segment.version != genesis.format_version) {
            return Err(Why::BadGenesis("its format version is not that of its segment"));
        }
        if genesis.origin.as_str() != self.trust.origin() {
            let found = Some(genesis.origin.as_str().to_owned());
            return Err(Why::WrongOrigin { expected: self.trust.origin().to_owned(), found });
        }
        self.keys.begin(&genesis.public_key)
    }

    /// Compares the position reached so far with everything that was claimed about it: the header and the tree files of
    /// the segment that begins here, the anchor, the pinned checkpoint.
    pub(crate) fn settle(&mut self) -> Result<(), Flaw> {
        if let Some((header, trees)) = self.begun.take() {
            let flaw = |why| Flaw::in_segment(header.number, 0, Some(header.first_sequence), why);
            if header.prev != self.head {
                return Err(flaw(Why::BadSegmentHeader("its link differs from the hash of the record before it")));
            }
            for tree in &trees {
                self.check_tree(header.number, tree).map_err(|why| {
                    let mut failure = Failure::new(why);
                    failure.segment = Some(header.number);
                    failure
                })?;
                self.agreed_up_to = self.size();
            }
        }
        if self.anchor.size == self.size() {
            self.cosigned = self.check_anchor().map_err(Failure::new)?;
            self.agreed_up_to = self.size();
        }
        if let Some(pinned) = self.trust.pinned()
            && pinned.checkpoint.size() == self.size()
        {
            self.keys.open(&pinned.note, Document::Pinned).map_err(Failure::new)?;
            if *pinned.checkpoint.root() != self.tree.root() {
                return Err(Failure::new(Why::PinnedMismatch { size: self.size() }).into());
            }
            self.agreed_up_to = self.size();
        }
        Ok(())
    }

    /// Returns which witnesses cosigned the anchor's checkpoint.
    fn check_anchor(&self) -> Result<Cosigned, Why> {
        let document = Document::Anchor;
        let anchor = self.anchor;
        let checkpoint = self.keys.open(&anchor.signed.note, document)?;
        if checkpoint.size() != anchor.size || *checkpoint.root() != anchor.root {
            return Err(Why::BadAnchor("its checkpoint has another size or root than its lines"));
        }
        if self.keys.may_sign().iter().all(|key| key.id().to_string() != anchor.key) {
            return Err(Why::BadAnchor("it names another key than the one in force"));
        }
        if anchor.root != self.tree.root() {
            return Err(Why::RootMismatch { document, size: self.size() });
        }
        if anchor.head != self.head {
            return Err(Why::HeadMismatch { document });
        }
        cosigned(&anchor.signed.note, self.trust)
    }

    fn check_tree(&self, number: u32, tree: &TreeFile) -> Result<(), Why> {
        let document = Document::Tree(number);
        if tree.tree.size() != self.size() {
            return Err(Why::BadTreeFile("its size differs from the number of the first record of its segment"));
        }
        self.keys.open(&tree.signed.note, document)?;
        // The parts were checked against this root when the file was read: if the root is equal, so are the parts.
        if *tree.signed.checkpoint.root() != self.tree.root() {
            return Err(Why::RootMismatch { document, size: self.size() });
        }
        if tree.head != self.head {
            return Err(Why::HeadMismatch { document });
        }
        Ok(())
    }
}
