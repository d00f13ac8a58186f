//! Answers of a daemon that contradict the copy or the trust file.

use leasehold_journal::Misfit;
use leasehold_model::Damage;

/// The code of a refusal for which there is evidence that convinces others.
pub(super) const FORKED: &str = "forked";

/// The first contradiction. Nothing from there on was stored.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Stable code for programs; the same as that of `leasehold-verify` for the same finding.
    pub(super) code: &'static str,
    pub(super) what: String,
    pub(super) advice: Option<String>,
    /// The record that it is about, if it is about one.
    pub(super) sequence: Option<u64>,
}

impl Refusal {
    pub(super) fn new(code: &'static str, what: impl Into<String>) -> Self {
        Self { code, what: what.into(), advice: None, sequence: None }
    }
    pub(super) fn at(mut self, sequence: u64) -> Self {
        self.sequence = Some(sequence);
        self
    }

    /// The log signed two histories. `found` is what was noticed first.
    pub(super) fn forked(self) -> Self {
        let what = format!("the log signed two conflicting histories: {}", self.what);
        Self { code: FORKED, what, advice: None, ..self }
    }

    /// The batch that begins with this record is damaged.
    pub(super) fn of_batch(sequence: u64, damage: &Damage) -> Self {
        let code = match damage {
            Damage::BadChecksum => "bad_checksum",
            Damage::BadFrame => "bad_frame",
            Damage::Truncated => "cut_batch",
            Damage::Nothing | Damage::NoMagic | Damage::BadHeader => "not_a_batch",
        };
        Self::new(code, format!("the batch that begins with record {sequence} is damaged: {damage}")).at(sequence)
    }

    pub(super) fn of_note(why: &dyn std::fmt::Display) -> Self {
        Self::new("bad_checkpoint", format!("the newest checkpoint is invalid: {why}"))
    }

    pub(super) fn of_origin(expected: &str, found: &str) -> Self {
        Self::new("wrong_origin", format!("this is the journal of {found:?}; the trust file is for {expected:?}"))
    }

    pub(super) fn went_back(shown: u64, had: u64) -> Self {
        let what = format!("the journal shrank: its newest checkpoint has {shown} records, and it had {had} before");
        Self::new("journal_went_back", what)
    }

    /// The journal is shorter than the checkpoint in the trust file.
    pub(super) fn pinned_ahead(pinned: u64, shown: u64) -> Self {
        let what = format!(
            "the journal was cut: the trust file contains a checkpoint of {pinned} records, and the newest checkpoint has {shown}"
        );
        Self::new("pinned_ahead", what)
    }

    pub(super) fn pinned(misfit: &Misfit, pinned: u64) -> Self {
        match misfit {
            Misfit::Root { .. } => Self::new(
                "pinned_mismatch",
                format!(
                    "the journal was rewritten or forked: its first {pinned} records are not those of the checkpoint in the trust file"
                ),
            ),
            misfit => Self::new(misfit.code(), format!("in the trust file: {misfit}")),
        }
    }

    /// A checkpoint always lies on the boundary of two batches.
    pub(super) fn inside_a_batch(whose: &str, size: u64, end: u64) -> Self {
        let what = format!("the checkpoint of {size} records in {whose} lies inside a batch that ends at {end}");
        Self::new("bad_checkpoint", what)
    }

    pub(super) fn withheld(from: u64, size: u64) -> Self {
        let what =
            format!("record {from} is missing: {size} records are signed, but the daemon returns none from there on");
        Self::new("gap", what).at(from)
    }
}

impl From<Misfit> for Refusal {
    fn from(misfit: Misfit) -> Self {
        let code = misfit.code();
        let text = misfit.to_string();
        let (what, advice) = match text.split_once("; ") {
            Some((what, advice)) => (what, Some(advice.to_owned())),
            None => (text.as_str(), None),
        };
        Self { advice, sequence: misfit.sequence(), ..Self::new(code, what) }
    }
}
