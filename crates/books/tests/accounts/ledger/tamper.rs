//! Changes of evidence, one by one.

use leasehold_bill::{CommonList, Evidence, Sorted, TenantList};
use leasehold_model::body::{InvoiceIssued, LedgerPosted};
use leasehold_model::ledger::InvoiceSeries;
use leasehold_model::rate::{Charge, Charges, Decimal};
use leasehold_model::{Body, Instant, LeaseNo, Priority, Record, Residual, Steps, TenantNo};

/// Where a change has to be noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Line,
    Entry,
    Record,
    Project,
    Tax,
    List(&'static str),
    Records(&'static str),
    Invoice(&'static str),
}

pub(crate) struct Change {
    pub(crate) what: &'static str,
    /// Whether the statement is made anew to fit the change.
    pub(crate) restated: bool,
    /// Whether it changes the bill wherever it is made. What is not charged can be changed without consequences.
    pub(crate) always: bool,
    pub(crate) expected: Expected,
    /// False if there is nothing to change.
    pub(crate) make: fn(&mut Evidence) -> bool,
}

/// Changes the first record in which something is found to be changed.
fn in_records(evidence: &mut Evidence, mut change: impl FnMut(&mut Record) -> bool) -> bool {
    evidence.records.iter_mut().any(|evident| change(&mut evident.record))
}

fn in_posting(evidence: &mut Evidence, mut change: impl FnMut(&mut LedgerPosted) -> bool) -> bool {
    let (month, currency) = (evidence.month, evidence.currency);
    in_records(evidence, |record| match &mut record.body {
        Body::LedgerPosted(posted) if (posted.month, posted.currency) == (month, currency) => change(posted),
        _ => false,
    })
}

fn in_invoice(evidence: &mut Evidence, mut change: impl FnMut(&mut InvoiceIssued) -> bool) -> bool {
    let of = (evidence.month, evidence.currency);
    in_records(evidence, |record| match &mut record.body {
        Body::InvoiceIssued(invoice) if (invoice.month, invoice.currency) == of => change(invoice),
        _ => false,
    })
}

/// Leaves out the first record of the range that fits.
fn leave_out(evidence: &mut Evidence, fits: fn(&Record) -> bool) -> bool {
    let (from, cut) = (evidence.statement.1.from, evidence.statement.1.cut);
    let in_range = |sequence: u64| (from..cut).contains(&sequence);
    let place = evidence.records.iter().position(|evident| in_range(evident.sequence) && fits(&evident.record));
    place.map(|place| evidence.records.remove(place)).is_some()
}

fn in_list(evidence: &mut Evidence, change: impl FnOnce(&mut TenantList) -> bool) -> bool {
    change(&mut evidence.list_at_start)
}

fn in_common(evidence: &mut Evidence, change: impl FnOnce(&mut CommonList) -> bool) -> bool {
    change(&mut evidence.common_at_start)
}

fn raise(steps: &mut Steps) -> bool {
    steps.0 += 1;
    true
}

/// Another residual.
fn other(residual: Residual) -> Residual {
    Residual::from_units(if residual.units() > 0 { residual.units() - 1 } else { residual.units() + 1 }).expect("small")
}

const fn forged(what: &'static str, expected: Expected, make: fn(&mut Evidence) -> bool) -> Change {
    Change { what, restated: true, always: true, expected, make }
}
const fn sometimes(what: &'static str, expected: Expected, make: fn(&mut Evidence) -> bool) -> Change {
    Change { what, restated: true, always: false, expected, make }
}
const fn plain(what: &'static str, expected: Expected, make: fn(&mut Evidence) -> bool) -> Change {
    Change { what, restated: false, always: true, expected, make }
}

fn is_renewal(record: &Record) -> bool {
    matches!(record.body, Body::Renewed(_))
}
fn is_release(record: &Record) -> bool {
    matches!(record.body, Body::Released(_))
}
fn is_posting(record: &Record) -> bool {
    matches!(record.body, Body::LedgerPosted(_))
}
fn is_common(record: &Record) -> bool {
    matches!(record.body, Body::PoolPut(_) | Body::ClassPut(_) | Body::RateCardPut(_) | Body::ChargePolicyPut(_))
}

pub(crate) const CHANGES: &[Change] = &[
    plain("a renewal is missing", Expected::Records("tenant"), |e| leave_out(e, is_renewal)),
    plain("a release is missing", Expected::Records("tenant"), |e| leave_out(e, is_release)),
    plain("a common record is missing", Expected::Records("common"), |e| leave_out(e, is_common)),
    plain("a record has another hash", Expected::Records("tenant"), |e| {
        let tenant = e.tenant;
        let own = e.records.iter_mut().find(|evident| evident.record.identity.tenant == Some(tenant));
        own.is_some_and(|evident| {
            evident.hash[0] ^= 1;
            evident.sequence < e.statement.1.cut
        })
    }),
    plain("the count is wrong", Expected::Records("tenant"), |e| {
        e.statement.1.records.count += 1;
        true
    }),
    plain("the tag in the list is another", Expected::List("tenant at start"), |e| {
        e.list_at_start.tag = Some(super::super::history::name("other"));
        true
    }),
    plain("the opening in the list is another", Expected::List("common at start"), |e| {
        e.common_at_start.opened = Some(Instant(1));
        true
    }),
    plain("the list at the border is another", Expected::List("tenant at border"), |e| {
        e.statement.1.list_at_border[0] ^= 1;
        true
    }),
    plain("an eviction is said to be for oneself", Expected::List("claimed nodes"), |e| {
        e.claimed_nodes.own_evictions = Sorted::new(e.claimed_nodes.own_evictions.iter().copied().chain([0]));
        true
    }),
    plain("a record is that of another tenant", Expected::Record, |e| {
        let own = e.records.iter_mut().find(|evident| matches!(evident.record.body, Body::Granted(_)));
        own.is_some_and(|evident| evident.record.identity.tenant.replace(TenantNo(77)).is_some())
    }),
    plain("two records are swapped", Expected::Record, |e| {
        let last = e.records.len() - 1;
        e.records.swap(last - 1, last);
        last > 2
    }),
    forged("a posted amount is higher", Expected::Line, |e| in_posting(e, |p| raise(&mut p.lines[0].posted))),
    forged("posted usage is higher", Expected::Line, |e| {
        in_posting(e, |p| {
            p.lines[0].usage.0 += 1_000_000;
            true
        })
    }),
    forged("an exact cost is another", Expected::Line, |e| {
        in_posting(e, |p| {
            p.lines[0].exact.negative = !p.lines[0].exact.negative;
            true
        })
    }),
    forged("a line has another priority", Expected::Line, |e| {
        in_posting(e, |p| {
            let key = &mut p.lines[0].key;
            key.priority = if key.priority == Priority::Standard { Priority::Scavenger } else { Priority::Standard };
            true
        })
    }),
    forged("a line has another card", Expected::Line, |e| {
        in_posting(e, |p| {
            p.lines[0].key.card = Some(p.lines[0].key.card.map_or(1, |card| card + 1000));
            true
        })
    }),
    forged("a line is of another hour", Expected::Line, |e| {
        in_posting(e, |p| {
            p.lines[0].key.hour.0 -= 3_600_000_000_000;
            true
        })
    }),
    forged("a residual is swapped", Expected::Record, |e| {
        in_posting(e, |p| {
            p.residual = other(p.residual);
            true
        })
    }),
    forged("a posting follows another one", Expected::Record, |e| {
        in_posting(e, |p| {
            p.previous = Some(p.previous.map_or(1, |previous| previous + 1));
            true
        })
    }),
    forged("a posting is left out", Expected::Line, |e| {
        let (month, currency) = (e.month, e.currency);
        let fits = |record: &Record| match &record.body {
            Body::LedgerPosted(posted) => (posted.month, posted.currency) == (month, currency),
            _ => false,
        };
        let place = e.records.iter().position(|evident| fits(&evident.record));
        place.map(|place| e.records.remove(place)).is_some()
    }),
    sometimes("any posting is left out", Expected::Record, |e| leave_out(e, is_posting)),
    sometimes("a renewal is left out and stated so", Expected::Line, |e| leave_out(e, is_renewal)),
    sometimes("a lease is smaller", Expected::Line, |e| {
        let cut = e.statement.1.cut;
        in_records(e, |record| match &mut record.body {
            Body::Granted(granted) if record.sequence < cut && granted.members[0].quanta.0 > 1 => {
                granted.members[0].quanta.0 -= 1;
                true
            }
            _ => false,
        })
    }),
    plain("a lease is of another number", Expected::Record, |e| {
        in_records(e, |record| match &mut record.body {
            Body::Released(released) => {
                released.leases.0[0].lease = LeaseNo(u64::MAX);
                true
            }
            _ => false,
        })
    }),
    sometimes("prices are lower", Expected::Line, |e| {
        in_records(e, |record| match &mut record.body {
            Body::RateCardPut(card) => {
                card.prices.kinds.0.iter_mut().for_each(|price| price.0 = price.0.saturating_sub(1));
                card.prices.classes.clear();
                card.prices.periods.classes.clear();
                true
            }
            _ => false,
        })
    }),
    sometimes("a charge policy forgives all", Expected::Line, |e| {
        in_records(e, |record| match &mut record.body {
            Body::ChargePolicyPut(policy) => {
                let none = Charge::None;
                policy.charges = Charges { preempted: none, fenced: none, node_lost: none, failed_start: none };
                true
            }
            _ => false,
        })
    }),
    sometimes("reported usage is lower", Expected::Line, |e| {
        let cut = e.statement.1.cut;
        in_records(e, |record| match &mut record.body {
            Body::UsageRecorded(recorded) if record.sequence < cut && recorded.report.quantity.0 > 1 => {
                recorded.report.quantity.0 -= 1;
                true
            }
            _ => false,
        })
    }),
    sometimes("a claimed node is larger", Expected::Line, |e| {
        let larger = e.claimed_nodes.nodes.iter().cloned().map(|mut node| {
            let twice = |(class, quanta): (_, leasehold_model::Quanta)| (class, leasehold_model::Quanta(quanta.0 * 2));
            node.capacity = Sorted::new(node.capacity.into_iter().map(twice));
            node
        });
        e.claimed_nodes.nodes = Sorted::new(larger);
        !e.claimed_nodes.nodes.is_empty()
    }),
    sometimes("a tax rate is another", Expected::Tax, |e| {
        in_records(e, |record| match &mut record.body {
            Body::TaxRatePut(put) => {
                put.rate = Decimal(put.rate.0 + 1_000_000);
                true
            }
            _ => false,
        })
    }),
    sometimes("the ledger opened later", Expected::Line, |e| {
        let later = |opened: &mut Instant| {
            opened.0 += 3_600_000_000_000;
            true
        };
        in_common(e, |list| list.opened.as_mut().is_some_and(later))
            || in_records(e, |record| match &mut record.body {
                Body::LedgerOpened(opened) => later(&mut opened.from),
                _ => false,
            })
    }),
    sometimes("a correction takes back more", Expected::Entry, |e| {
        let month = e.month;
        in_records(e, |record| match &mut record.body {
            Body::LedgerCorrected(corrected) if corrected.month == month && corrected.reversal.len() > 1 => {
                corrected.reversal[0].amount.0 -= 1;
                corrected.reversal[1].amount.0 += 1;
                true
            }
            _ => false,
        })
    }),
    sometimes("an entry by hand does not balance", Expected::Entry, |e| {
        let (month, currency) = (e.month, e.currency);
        in_records(e, |record| match &mut record.body {
            Body::LedgerAdjusted(adjusted) if (adjusted.month, adjusted.currency) == (month, currency) => {
                raise(&mut adjusted.legs[0].amount)
            }
            _ => false,
        })
    }),
    forged("the total is higher", Expected::Invoice("total"), |e| in_invoice(e, |invoice| raise(&mut invoice.total))),
    forged("there are more lines", Expected::Invoice("lines"), |e| {
        in_invoice(e, |invoice| {
            invoice.lines += 1;
            true
        })
    }),
    forged("the lines are others", Expected::Invoice("lines"), |e| {
        in_invoice(e, |invoice| {
            invoice.lines_hash[31] ^= 1;
            true
        })
    }),
    forged("it is of the other series", Expected::Invoice("number"), |e| {
        in_invoice(e, |invoice| {
            let is_note = invoice.number.series == InvoiceSeries::CreditNote;
            invoice.number.series = if is_note { InvoiceSeries::Invoice } else { InvoiceSeries::CreditNote };
            true
        })
    }),
    forged("a project owes more", Expected::Project, |e| {
        in_invoice(e, |invoice| invoice.projects.first_mut().is_some_and(|(_, amount)| raise(amount)))
    }),
    forged("the tax is higher", Expected::Tax, |e| {
        in_invoice(e, |invoice| {
            let posted = |line: &&mut leasehold_model::body::TaxLine| line.posted != Steps::ZERO;
            invoice.taxes.iter_mut().find(posted).is_some_and(|line| raise(&mut line.tax))
        })
    }),
    forged("the invoice is missing", Expected::Invoice("record"), |e| {
        let of = (e.month, e.currency);
        let fits = |record: &Record| match &record.body {
            Body::InvoiceIssued(invoice) => (invoice.month, invoice.currency) == of,
            _ => false,
        };
        let place = e.records.iter().position(|evident| fits(&evident.record));
        place.map(|place| e.records.remove(place)).is_some()
    }),
    sometimes("credit covers more", Expected::Record, |e| {
        in_records(e, |record| match &mut record.body {
            Body::PrepaidApplied(applied) => raise(&mut applied.credited),
            _ => false,
        })
    }),
    sometimes("a payer carries over another residual", Expected::Record, |e| {
        in_list(e, |list| {
            let changed = list.payers.iter().copied().map(|mut payer| {
                payer.residual = other(payer.residual);
                payer
            });
            list.payers = Sorted::new(changed);
            !list.payers.is_empty()
        })
    }),
    sometimes("a lease of the list is larger", Expected::Line, |e| {
        in_list(e, |list| {
            let changed = list.leases.iter().cloned().map(|mut lease| {
                lease.quanta.0 += 1;
                lease
            });
            list.leases = Sorted::new(changed);
            !list.leases.is_empty()
        })
    }),
];
