//! Records of the ledger with all sorts of values.

use crate::arbitrary::{instants, names, priorities, u32s, u64s, words};
use leasehold_model::body::*;
use leasehold_model::ledger::{ExactSteps, InvoiceSeries, Magnitude};
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};

pub(crate) fn steps() -> impl Strategy<Value = Steps> {
    prop_oneof![-1000..1000i128, any::<i64>().prop_map(i128::from), Just(Steps::MAX.0), Just(-Steps::MAX.0)]
        .prop_map(Steps)
}
fn usage() -> impl Strategy<Value = UsageDelta> {
    prop_oneof![-1000..1000i128, any::<i64>().prop_map(i128::from), Just((1 << 120) - 1)].prop_map(UsageDelta)
}
fn residuals() -> impl Strategy<Value = Residual> {
    let half = (Residual::PER_STEP / 2).cast_signed();
    (-half..=half).prop_map(|units| Residual::from_units(units).expect("within half a step"))
}
fn magnitudes() -> impl Strategy<Value = Magnitude> {
    vec(any::<u8>(), 0..40).prop_map(|digits| Magnitude::from_digits(&digits).expect("short"))
}
fn exact() -> impl Strategy<Value = ExactSteps> {
    (any::<bool>(), magnitudes(), magnitudes()).prop_map(|(negative, numerator, denominator)| ExactSteps {
        negative: negative && !numerator.is_zero(),
        numerator,
        denominator: if denominator.is_zero() { Magnitude::from_digits(&[1]).expect("short") } else { denominator },
    })
}
pub(crate) fn months() -> impl Strategy<Value = Month> {
    (1970..=2553u32, 1..=12u32).prop_map(|(year, month)| Month::new(year, month).expect("in range"))
}
pub(crate) fn currencies() -> impl Strategy<Value = Currency> {
    "[A-Z]{3}".prop_map(|text| Currency::new(&text).expect("three capital letters"))
}
fn decimals() -> impl Strategy<Value = Decimal> {
    u64s().prop_map(Decimal)
}
fn entries() -> impl Strategy<Value = EntryId> {
    (u64s(), any::<u16>()).prop_map(|(sequence, position)| EntryId { sequence, position })
}
fn invoices() -> impl Strategy<Value = InvoiceNo> {
    (words(InvoiceSeries::ALL), u64s()).prop_map(|(series, number)| InvoiceNo { series, number })
}

fn keys() -> impl Strategy<Value = LineKey> {
    let what = (instants(), u32s(), u32s(), any::<u16>(), priorities(), priorities());
    let whose = (option::of(names()), option::of(u64s()), option::of(u64s()), any::<bool>(), option::of(u32s()));
    (what, whose).prop_map(
        |((hour, project, pool, class, priority, priced), (tag, app, attachment, control_plane, card))| LineKey {
            hour,
            project: ProjectNo(project),
            pool: PoolNo(pool),
            item: if control_plane { Item::Unit(UnitNo(class.into())) } else { Item::Class(ClassNo(class)) },
            priority,
            priced,
            tag,
            app_instance: app.map(AppInstanceNo),
            attachment: attachment.map(AttachmentNo),
            control_plane,
            card,
        },
    )
}

fn accounts() -> impl Strategy<Value = Account> {
    prop_oneof![
        u32s().prop_map(|number| Account::Receivable(ProjectNo(number))),
        u32s().prop_map(|number| Account::Invoiced(TenantNo(number))),
        u32s().prop_map(|number| Account::Adjustments(ProjectNo(number))),
        any::<u16>().prop_map(|number| Account::Revenue(ClassNo(number))),
        Just(Account::Rounding),
        Just(Account::Tax),
        Just(Account::CashClearing),
        Just(Account::OperatorLoss),
        u32s().prop_map(|number| Account::UnitRevenue(UnitNo(number))),
    ]
}
fn legs() -> impl Strategy<Value = Vec<Leg>> {
    vec((accounts(), steps()).prop_map(|(account, amount)| Leg { account, amount }), 0..4)
}

fn entries_of_payers() -> BoxedStrategy<Body> {
    let line = (keys(), usage(), exact(), steps());
    let lines = vec(line.prop_map(|(key, usage, exact, posted)| PostedLine { key, usage, exact, posted }), 0..4);
    let corrected = (keys(), usage(), exact()).prop_map(|(key, usage, exact)| CorrectedLine { key, usage, exact });
    prop_oneof![
        ((currencies(), months(), instants(), any::<bool>()), (u64s(), option::of(u64s()), lines, residuals()))
            .prop_map(|((currency, month, through, complete), (as_of_size, previous, lines, residual))| LedgerPosted {
                currency,
                month,
                through,
                complete,
                as_of_size,
                previous,
                lines,
                residual
            }
            .into()),
        (
            (currencies(), months(), months(), entries(), option::of(u64s())),
            (option::of(corrected), legs(), legs(), steps(), residuals(), names())
        )
            .prop_map(|((currency, month, original_month, corrects, previous), of)| {
                let (line, reversal, replacement, rounding, residual, reason) = of;
                LedgerCorrected {
                    currency,
                    month,
                    original_month,
                    corrects,
                    previous,
                    line,
                    reversal,
                    replacement,
                    rounding,
                    residual,
                    reason,
                }
                .into()
            }),
        (currencies(), months(), months(), option::of(u64s()), legs(), names()).prop_map(
            |(currency, month, original_month, previous, legs, reason)| {
                LedgerAdjusted { currency, month, original_month, previous, legs, reason }.into()
            }
        ),
    ]
    .boxed()
}

fn funds() -> impl Strategy<Value = Funds> {
    (-(1i128 << 120)..1i128 << 120).prop_map(Funds)
}

fn actions() -> impl Strategy<Value = PrepaidAction> {
    words(PrepaidAction::ALL)
}

fn policies() -> impl Strategy<Value = PrepaidPolicy> {
    (steps(), u64s(), actions(), actions(), actions(), option::of(u64s())).prop_map(
        |(low_below, window, low, pending, depleted, grace)| PrepaidPolicy {
            low_below,
            window: Span(window),
            low,
            pending,
            depleted,
            grace: grace.map(Span),
        },
    )
}

fn prepaid() -> BoxedStrategy<Body> {
    prop_oneof![
        ((currencies(), u64s(), steps(), u32s()), (option::of(instants()), words(CreditSource::ALL), names()))
            .prop_map(|((currency, credit, amount, priority), (expires_at, source, reference))| {
                PrepaidToppedUp { currency, credit, amount, priority, expires_at, source, reference }.into()
            }),
        (currencies(), policies()).prop_map(|(currency, policy)| PrepaidPolicyPut { currency, policy }.into()),
        (currencies(), u64s(), steps()).prop_map(|(currency, credit, amount)| PrepaidLapsed {
            currency,
            credit,
            amount
        }
        .into()),
        (currencies(), words(PrepaidState::ALL), words(PrepaidState::ALL), funds(), actions()).prop_map(
            |(currency, from, to, balance, action)| { PrepaidChanged { currency, from, to, balance, action }.into() }
        ),
        (currencies(), invoices(), months(), steps(), steps(), steps()).prop_map(
            |(currency, invoice, month, amount, credited, uncovered)| {
                PrepaidApplied { currency, invoice, month, amount, credited, uncovered }.into()
            }
        ),
    ]
    .boxed()
}

fn statements() -> BoxedStrategy<Body> {
    let hashes = any::<[[u8; 32]; 7]>();
    (months(), u64s(), u64s(), u64s(), (u64s(), u64s()), hashes)
        .prop_map(|(month, from, border, cut, (own, common), [a, b, c, d, e, f, g])| {
            PeriodStated {
                month,
                from,
                border,
                cut,
                records: RecordSet { count: own, root: a },
                common: RecordSet { count: common, root: b },
                list_at_start: c,
                list_at_border: d,
                common_at_start: e,
                common_at_border: f,
                claimed_nodes: g,
            }
            .into()
        })
        .boxed()
}

pub(crate) fn bodies() -> BoxedStrategy<Body> {
    let taxes = (decimals(), steps(), steps(), steps());
    let taxes = vec(taxes.prop_map(|(rate, posted, net, tax)| TaxLine { rate, posted, net, tax }), 0..3);
    let projects = vec((u32s().prop_map(ProjectNo), steps()), 0..3);
    prop_oneof![
        prepaid(),
        instants().prop_map(|from| LedgerOpened { from }.into()),
        entries_of_payers(),
        (instants(), u64s()).prop_map(|(through, as_of_size)| HourSettled { through, as_of_size }.into()),
        (entries(), any::<bool>(), names())
            .prop_map(|(entry, open, reason)| LedgerDisputed { entry, open, reason }.into()),
        months().prop_map(|month| PeriodClosing { month }.into()),
        ((invoices(), months(), currencies(), projects), (taxes, steps(), u64s(), any::<[u8; 32]>(), instants()))
            .prop_map(|((number, month, currency, projects), (taxes, total, lines, lines_hash, due_at))| {
                InvoiceIssued { number, month, currency, projects, taxes, total, lines, lines_hash, due_at }.into()
            }),
        (months(), u64s(), u64s(), option::of(u64s())).prop_map(|(month, invoices, credit_notes, statements)| {
            PeriodClosed { month, invoices, credit_notes, statements }.into()
        }),
        statements(),
        (currencies(), steps(), option::of(invoices()), names(), instants()).prop_map(
            |(currency, amount, invoice, reference, received_at)| {
                PaymentRecorded { currency, amount, invoice, reference, received_at }.into()
            }
        ),
        (u32s(), months(), decimals()).prop_map(|(tenant, from, rate)| TaxRatePut {
            tenant: TenantNo(tenant),
            from,
            rate
        }
        .into()),
    ]
    .boxed()
}
