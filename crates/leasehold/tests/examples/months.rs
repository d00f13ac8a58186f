//! Commands of the ledger for which months have to pass: opening it on an older journal, credit notes.

use super::site::{Site, row};

/// A GPU from 21:20 on for two hours, and no ledger. It is opened from 22:00 on: 36.00 for an hour and 12.00 for the
/// twenty minutes after it.
#[test]
fn a_ledger_is_opened_on_an_older_journal() {
    let site = Site::with(&["dev"], |config| config.ledger.auto_open = false);
    site.run("lease request --tenant bio --project dev --ttl 2h --gpu 1");
    row(&site.run("ledger status"), &["The ledger is not open", "leasehold ledger open"]);
    site.refused("ledger settle", "ledger_not_open");
    site.advance(3);
    site.refused("ledger open --from 2026-01-31T22:30:00Z", "not_an_hour");
    let opened = site.run("ledger open --from 2026-01-31T22:00:00Z");
    row(&opened, &["the ledger is open", "2026-01-31T22:00:00Z"]);
    site.refused("ledger open --from 2026-01-31T21:00:00Z", "ledger_already_open");
    site.run("ledger settle");
    row(&site.run("ledger status"), &["posts usage since", "2026-01-31T22:00:00Z"]);
    let entries = site.run("ledger entries --tenant bio");
    row(&entries, &["01-31 22:00", "36.000000"]);
    row(&entries, &["01-31 23:00", "12.000000"]);
    assert!(!entries.contains("01-31 21:00"), "{entries}");
    site.advance(1);
    site.run("period close 2026-01 --yes");
    row(&site.run("invoice show INV-1"), &["total", "48.000000"]);
}

/// A GPU for two hours (72.00), of which 100.00 are given back, and a tax of a quarter: −28.00 and −7.00.
#[test]
fn a_credit_note_is_shown_printed_and_exported() {
    let site = Site::open(&["dev"]);
    site.run("tax set bio 25% --from 2026-01");
    site.run("lease request --tenant bio --project dev --ttl 2h --gpu 1");
    site.pass(2);
    site.run(
        "ledger post dev --tenant bio --currency EUR --reason outage --leg receivable=-100 --leg operator_loss=100",
    );
    row(&site.run("invoice draft --tenant bio --html"), &["Draft credit note"]);
    site.pass(4);
    site.run("period close 2026-01 --yes");
    let note = site.run("invoice show CN-1");
    row(&note, &["CN-000001"]);
    row(&note, &["total", "-35.000000"]);
    row(&site.run("invoice list --tenant bio"), &["CN-000001", "-35.000000"]);
    let json = site.json("invoice show cn-1");
    let figures = ["number", "kind", "net", "tax", "total"].map(|field| json[field].as_str().unwrap_or_default());
    assert_eq!(figures, ["CN-000001", "credit_note", "-28.000000", "-7.000000", "-35.000000"]);
    let csv = site.run("invoice show CN-000001 --csv");
    row(&csv, &["CN-000001,total", "-35.000000"]);
    let page = site.run("invoice show CN-000001 --html");
    for words in [["Credit note"], ["Credit to"], ["\u{2212}35.00"]] {
        row(&page, &words);
    }
}
