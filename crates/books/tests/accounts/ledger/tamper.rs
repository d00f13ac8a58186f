//! Changes of evidence, one by one.

use super::stakes;
use super::tamper_shares::SHARE_CHANGES;
use leasehold_bill::{CommonList, Evidence, Evident, Sorted, TenantList};
use leasehold_model::body::{InvoiceIssued, LedgerPosted, Renewal, Renewed, TenantDeleted};
use leasehold_model::ledger::InvoiceSeries;
use leasehold_model::rate::{Charge, Charges, Decimal};
use leasehold_model::{Body, Identity, Instant, LeaseNo, Priority, Record, Residual, Span, Steps, TenantNo};

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
    /// Whether it changes the bill where it was made: then it has to be noticed.
    pub(crate) matters: fn(&Evidence, &Evidence) -> bool,
    pub(crate) expected: Expected,
    /// False if there is nothing to change.
    pub(crate) make: fn(&mut Evidence) -> bool,
}

/// Changes the first record in which something is found to be changed.
fn in_records(evidence: &mut Evidence, mut change: impl FnMut(&mut Record) -> bool) -> bool {
    evidence.records.iter_mut().any(|evident| change(&mut evident.record))
}

/// The same in records before the invoice: those after it concern another one.
fn before_invoice(evidence: &mut Evidence, mut change: impl FnMut(&mut Record) -> bool) -> bool {
    let issued_at = stakes::invoice(evidence).map_or(0, |(sequence, _)| sequence);
    in_records(evidence, |record| record.sequence < issued_at && change(record))
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

pub(super) const fn forged(what: &'static str, expected: Expected, make: fn(&mut Evidence) -> bool) -> Change {
    Change { what, restated: true, matters: stakes::always, expected, make }
}
pub(super) const fn plain(what: &'static str, expected: Expected, make: fn(&mut Evidence) -> bool) -> Change {
    Change { what, restated: false, matters: stakes::always, expected, make }
}
const fn used(what: &'static str, make: fn(&mut Evidence) -> bool) -> Change {
    Change { what, restated: true, matters: stakes::usage, expected: Expected::Line, make }
}

fn is_renewal(record: &Record) -> bool {
    matches!(record.body, Body::Renewed(_))
}
fn is_release(record: &Record) -> bool {
    matches!(record.body, Body::Released(_))
}
/// Puts a record into the range, in the place of one that concerns others.
fn add(evidence: &mut Evidence, body: impl Fn(&Evidence) -> Option<(Identity, Body)>) -> bool {
    let cut = evidence.statement.1.cut.min(evidence.statement.1.border);
    let Some((identity, body)) = body(evidence) else { return false };
    let gap = evidence.records.windows(2).position(|pair| {
        let next = pair[0].sequence + 1;
        next < pair[1].sequence && next < cut && is_later(&pair[0].record, &body)
    });
    let Some(at) = gap else { return false };
    let mut record = evidence.records[at].record.clone();
    record.sequence += 1;
    record = Record { identity, ..Record::new(record.sequence, record.stamp, body) };
    let evident = Evident { sequence: record.sequence, hash: [7; 32], record };
    evidence.records.insert(at + 1, evident);
    true
}

/// Whether a lease that a renewal is about is granted, if it is one. In the first hour of it, it is held.
fn is_later(before: &Record, body: &Body) -> bool {
    let Body::Renewed(renewed) = body else { return true };
    let lease = renewed.renewals[0].lease;
    matches!(&before.body, Body::Granted(granted) if granted.first_lease == lease)
}

/// The last lease of the range that was granted is renewed at once, for half as long.
fn add_renewal(evidence: &mut Evidence) -> bool {
    add(evidence, |evidence| {
        let cut = evidence.statement.1.cut;
        let granted = evidence
            .records
            .iter()
            .zip(evidence.records.iter().skip(1))
            .filter(|(evident, next)| evident.sequence < cut && next.sequence > evident.sequence + 1);
        let mut granted = granted.filter_map(|(evident, _)| match &evident.record.body {
            Body::Granted(granted) => Some((&evident.record, granted)),
            _ => None,
        });
        let (record, granted) = granted.next_back()?;
        let expires_at = record.stamp.saturating_add(Span(granted.ttl.0 / 2));
        let renewal = Renewal { lease: granted.first_lease, expires_at, activity: None };
        Some((record.identity.clone(), Body::Renewed(Renewed { renewals: [renewal].into_iter().collect() })))
    })
}
fn is_common(record: &Record) -> bool {
    matches!(record.body, Body::PoolPut(_) | Body::ClassPut(_) | Body::RateCardPut(_) | Body::ChargePolicyPut(_))
}

/// All changes.
pub(crate) fn changes() -> impl Iterator<Item = &'static Change> {
    CHANGES.iter().chain(SHARE_CHANGES)
}

const CHANGES: &[Change] = &[
    plain("a renewal is missing", Expected::Records("tenant"), |e| leave_out(e, is_renewal)),
    plain("a release is missing", Expected::Records("tenant"), |e| leave_out(e, is_release)),
    plain("a common record is missing", Expected::Records("common"), |e| leave_out(e, is_common)),
    plain("a record has another hash", Expected::Records("tenant"), |e| {
        let cut = e.statement.1.cut;
        let is_own = |evident: &&mut Evident| matches!(evident.record.body, Body::LedgerPosted(_));
        let own = e.records.iter_mut().filter(|evident| evident.sequence < cut).find(is_own);
        own.is_some_and(|evident| {
            evident.hash[0] ^= 1;
            true
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
    forged("a posting of another month is left out", Expected::Record, |e| {
        let (month, currency) = (e.month, e.currency);
        let of = |record: &Record| match &record.body {
            Body::LedgerPosted(posted) if posted.currency == currency => Some((record.identity.project, posted.month)),
            _ => None,
        };
        let Some((issued_at, _)) = stakes::invoice(e) else { return false };
        let all = e.records.iter().filter(|evident| evident.sequence < issued_at);
        let all: Vec<_> = all.filter_map(|evident| Some((evident.sequence, of(&evident.record)?))).collect();
        // The next one of its payer follows another one then.
        let found = all.iter().find(|(sequence, (payer, of))| {
            *of != month && all.iter().any(|(later, (other, _))| later > sequence && other == payer)
        });
        let Some((sequence, _)) = found else { return false };
        e.records.retain(|evident| evident.sequence != *sequence);
        true
    }),
    used("a release is left out and stated so", |e| leave_out(e, is_release)),
    plain("a renewal is added", Expected::Records("tenant"), add_renewal),
    used("a renewal is added and stated so", add_renewal),
    plain("a record of another tenant is added", Expected::Record, |e| {
        let other = Identity { tenant: Some(TenantNo(77)), ..Identity::default() };
        add(e, |_| Some((other.clone(), Body::TenantDeleted(TenantDeleted { tenant: TenantNo(77) }))))
    }),
    used("a renewal is left out and stated so", |e| leave_out(e, is_renewal)),
    used("a lease is smaller", |e| {
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
        let cut = e.statement.1.cut;
        in_records(e, |record| match &mut record.body {
            Body::Released(released) if record.sequence < cut => {
                released.leases.0[0].lease = LeaseNo(u64::MAX);
                true
            }
            _ => false,
        })
    }),
    used("prices are lower", |e| {
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
    used("a charge policy forgives all", |e| {
        in_records(e, |record| match &mut record.body {
            Body::ChargePolicyPut(policy) => {
                let none = Charge::None;
                policy.charges = Charges { preempted: none, fenced: none, node_lost: none, failed_start: none };
                true
            }
            _ => false,
        })
    }),
    used("reported usage is lower", |e| {
        let cut = e.statement.1.cut;
        in_records(e, |record| match &mut record.body {
            Body::UsageRecorded(recorded) if record.sequence < cut && recorded.report.quantity.0 > 1 => {
                recorded.report.quantity.0 -= 1;
                true
            }
            _ => false,
        })
    }),
    used("a claimed node is larger", |e| {
        let larger = e.claimed_nodes.nodes.iter().cloned().map(|mut node| {
            let twice = |(class, quanta): (_, leasehold_model::Quanta)| (class, leasehold_model::Quanta(quanta.0 * 2));
            node.capacity = Sorted::new(node.capacity.into_iter().map(twice));
            node
        });
        e.claimed_nodes.nodes = Sorted::new(larger);
        !e.claimed_nodes.nodes.is_empty()
    }),
    Change {
        what: "a tax rate is another",
        restated: true,
        matters: stakes::tax,
        expected: Expected::Tax,
        make: |e| {
            in_records(e, |record| match &mut record.body {
                Body::TaxRatePut(put) => {
                    put.rate = Decimal(put.rate.0 + 1_000_000);
                    true
                }
                _ => false,
            })
        },
    },
    used("the ledger opened later", |e| {
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
    forged("a correction takes back more", Expected::Entry, |e| {
        let (of, from) = ((e.month, e.currency), e.statement.1.from);
        before_invoice(e, |record| match &mut record.body {
            Body::LedgerCorrected(corrected)
                if (corrected.month, corrected.currency) == of
                    && corrected.corrects.sequence >= from
                    && corrected.reversal.len() > 1 =>
            {
                corrected.reversal[0].amount.0 -= 1;
                corrected.reversal[1].amount.0 += 1;
                true
            }
            _ => false,
        })
    }),
    forged("an entry by hand does not balance", Expected::Entry, |e| {
        let (month, currency) = (e.month, e.currency);
        before_invoice(e, |record| match &mut record.body {
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
    forged("credit covers more", Expected::Record, |e| {
        let number = stakes::invoice(e).map(|(_, invoice)| invoice.number);
        in_records(e, |record| match &mut record.body {
            Body::PrepaidApplied(applied) if Some(applied.invoice) == number => raise(&mut applied.credited),
            _ => false,
        })
    }),
    Change {
        what: "a payer carries over another residual",
        restated: true,
        matters: stakes::carried_over,
        expected: Expected::Record,
        make: |e| {
            in_list(e, |list| {
                let changed = list.payers.iter().copied().map(|mut payer| {
                    payer.residual = other(payer.residual);
                    payer
                });
                list.payers = Sorted::new(changed);
                !list.payers.is_empty()
            })
        },
    },
    used("a lease of the list is larger", |e| {
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
