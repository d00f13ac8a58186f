//! Which segment holds which records, and about where in it: what readers share with the writer.

use crate::provider::Head;

/// A batch begins at this offset of its segment with the record of this sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) sequence: u64,
    pub(super) offset: u64,
}

/// Marks of one segment, ascending, some distance apart.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks(Vec<Mark>);

impl Marks {
    /// Notes a batch if the last one noted is at least `spacing` bytes back.
    pub(super) fn note(&mut self, mark: Mark, spacing: u64) {
        if self.0.last().is_none_or(|last| mark.offset - last.offset >= spacing) {
            self.0.push(mark);
        }
    }
    /// The last mark at or before `sequence`.
    fn before(&self, sequence: u64) -> Option<Mark> {
        let after = self.0.partition_point(|mark| mark.sequence <= sequence);
        after.checked_sub(1).map(|at| self.0[at])
    }
}

/// A begun segment.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) number: u32,
    pub(super) first_sequence: u64,
    /// Segments of earlier runs are indexed when someone looks into them.
    pub(super) marks: Option<Marks>,
}

/// What is durable and where it lies.
#[derive(Clone, Debug)]
pub(super) struct Index {
    pub(super) head: Head,
    /// Ascending, numbered without gaps.
    pub(super) segments: Vec<Segment>,
    /// The lowest number of a segment that is not at hand, if one before these is missing.
    pub(super) missing: Option<u32>,
    pub(super) spacing: u64,
}

/// Where to begin reading for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// Nothing durable has this sequence.
    Beyond,
    /// It lies before the first segment at hand.
    Archived {
        segment: u32,
    },
    /// Its segment is not indexed yet.
    Unindexed(Stretch),
    Found {
        stretch: Stretch,
        mark: Mark,
    },
}

/// The durable records of one segment: `first_sequence..until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) segment: u32,
    pub(super) first_sequence: u64,
    pub(super) until: u64,
}

impl Index {
    pub(super) fn lookup(&self, sequence: u64) -> Lookup {
        if sequence >= self.head.size {
            return Lookup::Beyond;
        }
        let after = self.segments.partition_point(|segment| segment.first_sequence <= sequence);
        let Some(at) = after.checked_sub(1) else {
            // The first at hand has one before it, or it would begin with record 0.
            return Lookup::Archived { segment: self.segments[0].number - 1 };
        };
        let segment = &self.segments[at];
        let stretch = self.stretch(at);
        let begin = Mark { sequence: segment.first_sequence, offset: super::segment::HEADER_BYTES_U64 };
        match &segment.marks {
            _ if sequence == begin.sequence => Lookup::Found { stretch, mark: begin },
            None => Lookup::Unindexed(stretch),
            Some(marks) => Lookup::Found { stretch, mark: marks.before(sequence).unwrap_or(begin) },
        }
    }

    fn stretch(&self, at: usize) -> Stretch {
        let segment = &self.segments[at];
        let next = self.segments.get(at + 1);
        Stretch {
            segment: segment.number,
            first_sequence: segment.first_sequence,
            until: next.map_or(self.head.size, |next| next.first_sequence),
        }
    }

    /// The stretches from this segment on.
    pub(super) fn stretches_from(&self, number: u32) -> Vec<Stretch> {
        let first = self.segments.partition_point(|s| s.number < number);
        (first..self.segments.len()).map(|at| self.stretch(at)).collect()
    }

    pub(super) fn set_marks(&mut self, number: u32, marks: Marks) {
        let at = self.segments.partition_point(|s| s.number < number);
        let segment = &mut self.segments[at];
        assert_eq!(segment.number, number, "segments are never forgotten");
        segment.marks.get_or_insert(marks);
    }

    /// A batch became durable; `begins` says that it is the first of a new segment.
    pub(super) fn appended(&mut self, number: u32, mark: Mark, begins: bool, head: Head) {
        if begins {
            self.segments.push(Segment { number, first_sequence: mark.sequence, marks: Some(Marks::default()) });
        }
        let segment = self.segments.last_mut().expect("a segment was begun");
        assert_eq!(segment.number, number, "only the last segment is appended to");
        if let Some(marks) = &mut segment.marks {
            marks.note(mark, self.spacing);
        }
        self.head = head;
    }
}
