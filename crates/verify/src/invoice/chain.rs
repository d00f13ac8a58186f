//! Whether the files of several invoices fit together: one tenant, one journal, and each month begins as the one before
//! it ended.

use super::Checked;
use leasehold_model::Hash;
use std::collections::BTreeMap;
use std::fmt;

/// Where two files do not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    OtherTenant {
        earlier: String,
    },
    /// An earlier file is not of an earlier month, nor of the same month in another currency.
    NotEarlier {
        earlier: String,
    },
    /// The files have different records with one sequence: they are not of one journal.
    OtherRecord {
        earlier: String,
        sequence: u64,
    },
    /// The later month does not begin where the earlier one says that it begins.
    OtherBorder {
        earlier: String,
        border: u64,
        from: u64,
    },
    /// The state in which the later month begins is not the one in which the earlier one ended.
    OtherList {
        earlier: String,
        which: &'static str,
    },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherTenant { earlier } => write!(f, "{earlier} is an invoice of another tenant"),
            Self::NotEarlier { earlier } => write!(f, "{earlier} is not of an earlier month"),
            Self::OtherRecord { earlier, sequence } => {
                write!(f, "record {sequence} is another one in the file of {earlier}: the log showed two histories")
            }
            Self::OtherBorder { earlier, border, from } => {
                write!(f, "the month after {earlier} begins with record {border}, but this one begins with {from}")
            }
            Self::OtherList { earlier, which } => {
                write!(f, "the {which} list at the start is not the one with which the month of {earlier} ended")
            }
        }
    }
}

/// Compares each file with the next one.
pub(super) fn broken(earlier: &[Checked], last: &Checked) -> Vec<Broken> {
    let mut broken = Vec::new();
    let mut hashes: BTreeMap<u64, Hash> = BTreeMap::new();
    let mut files = earlier.iter().chain(std::iter::once(last)).peekable();
    while let Some(file) = files.next() {
        let name = file.number.to_string();
        let all = file.evidence.records.iter().map(|evident| (evident.sequence, evident.hash));
        for (sequence, hash) in all.chain(file.aside.iter().copied()) {
            if *hashes.entry(sequence).or_insert(hash) != hash {
                broken.push(Broken::OtherRecord { earlier: name.clone(), sequence });
                break;
            }
        }
        if let Some(next) = files.peek() {
            broken.extend(between(file, next));
        }
    }
    broken
}

fn between(file: &Checked, next: &Checked) -> Option<Broken> {
    let earlier = file.number.to_string();
    let ((_, before), (_, after)) = (file.evidence.statement, next.evidence.statement);
    if file.evidence.tenant != next.evidence.tenant {
        return Some(Broken::OtherTenant { earlier });
    }
    if file.evidence.month > next.evidence.month || file.number == next.number {
        return Some(Broken::NotEarlier { earlier });
    }
    if file.evidence.month.next() != next.evidence.month {
        return None;
    }
    if before.border != after.from {
        return Some(Broken::OtherBorder { earlier, border: before.border, from: after.from });
    }
    let lists = [
        ("tenant's", before.list_at_border, after.list_at_start),
        ("common", before.common_at_border, after.common_at_start),
    ];
    let other = lists.into_iter().find(|(_, before, after)| before != after);
    other.map(|(which, ..)| Broken::OtherList { earlier, which })
}
