//! What was found about an invoice, in words.

use super::names::Names;
use super::{Checked, Judged, Pinning, SignedBy};
use crate::progress::thousands;
use leasehold_bill::{Mismatch, Place, Verdict};
use leasehold_ledger::InvoiceLineKey;

/// What was found about a line, in a word and in a sentence's end.
pub(super) fn verdict(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Proved => ("proved", "proved"),
        Verdict::ByHand => ("by_hand", "as booked by hand"),
        Verdict::Shared => ("shared", "as shared; the shared cost is not proved"),
        Verdict::NotProved => ("not_proved", "not proved"),
        Verdict::Wrong => ("wrong", "WRONG"),
    }
}

/// Where something does not fit.
pub(super) fn place(place: &Place, names: &Names) -> String {
    match place {
        Place::List(which) => format!("list of the {which}"),
        Place::Records(which) => format!("{which} records of the month"),
        Place::Record(sequence) => format!("record {sequence}"),
        Place::Line { payer, key } => {
            format!("{}, hour of {}", names.line(&InvoiceLineKey::of_usage(*payer, key)), key.hour)
        }
        Place::Entry(entry) => entry.to_string(),
        Place::InvoiceLine(key) => names.line(key),
        Place::Project(project) => names.project(*project),
        Place::Tax(rate) => format!("tax {rate}"),
        Place::Invoice(figure) => format!("{figure} of the invoice"),
    }
}

/// One mismatch: where it is, by how much, and why.
pub(super) fn mismatch(mismatch: &Mismatch, names: &Names) -> String {
    let by = mismatch.difference.as_ref().map_or_else(String::new, |by| format!(" (by {by})"));
    let (expected, found) = (&mismatch.expected, &mismatch.found);
    format!("{}: expected {expected}, found {found}{by}. {}", place(&mismatch.place, names), mismatch.why)
}

/// What the file proves if the verdict is yes.
pub(super) fn proved(checked: &Checked) -> Vec<String> {
    let (_, stated) = checked.evidence.statement;
    let mut proved = vec![
        format!(
            "all {} records of the file are in the journal that the operator signed at {} records",
            thousands(checked.records as u64),
            thousands(checked.size)
        ),
        format!(
            "they are all {} records of this tenant and all {} common ones that the operator stated for the month",
            thousands(stated.records.count),
            thousands(stated.common.count)
        ),
        "what was used, hour by hour, follows from these records and the prices in force".to_owned(),
        "every amount, its rounding, the tax and the total follow from that".to_owned(),
    ];
    if let SignedBy::RotatedTo { sequence } = checked.signed_by {
        proved.push(format!(
            "the key that signed it follows from one of the trust file by record {}, which both keys have signed",
            thousands(sequence)
        ));
    }
    match checked.pinning {
        Pinning::Same => proved.push("the signed journal is the one that is pinned in the trust file".to_owned()),
        Pinning::Continues { pinned } => proved.push(format!(
            "the signed journal continues the one that is pinned in the trust file at {} records",
            thousands(pinned)
        )),
        Pinning::None | Pinning::Undecided { .. } => {}
    }
    for witness in &checked.cosigned.by {
        proved.push(format!("witness {} saw the same journal", witness.name));
    }
    proved
}

/// What has to be believed although the verdict is yes.
pub(super) fn not_proved(judged: &Judged) -> Vec<String> {
    let checked = &judged.checked;
    let mut open: Vec<String> = checked.report.not_proved.iter().map(ToString::to_string).collect();
    match checked.pinning {
        Pinning::Undecided { pinned } => open.push(format!(
            "whether the signed journal continues the one pinned in the trust file at {} records: a newer proof, made with \
             `leasehold invoice prove --since-size {pinned}`, decides that",
            thousands(pinned)
        )),
        Pinning::None => open.push(
            "whether others are shown the same journal: nothing is pinned in the trust file to compare it with"
                .to_owned(),
        ),
        Pinning::Same | Pinning::Continues { .. } => {}
    }
    open.push(
        "that the operator left out none of the tenant's records: whoever verifies the whole journal finds that, or the \
         tenant by its own receipts"
            .to_owned(),
    );
    open.push(
        "that what was recorded is what happened: times and usage are those that the operator recorded".to_owned(),
    );
    open
}
