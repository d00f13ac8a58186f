//! Samples of the kinds of the ledger.

use super::{NEW_YEAR, name};
use leasehold_model::body::*;
use leasehold_model::ledger::{ExactSteps, InvoiceSeries, Magnitude};
use leasehold_model::rate::{BILLION, Currency, Decimal};
use leasehold_model::*;

fn exact(negative: bool, numerator: &[u8], denominator: &[u8]) -> ExactSteps {
    let number = |digits| Magnitude::from_digits(digits).expect("short");
    ExactSteps { negative, numerator: number(numerator), denominator: number(denominator) }
}

fn line_key() -> LineKey {
    LineKey {
        hour: NEW_YEAR,
        project: ProjectNo(300),
        pool: PoolNo(1),
        item: Item::Class(ClassNo(2)),
        priority: Priority::Standard,
        priced: Priority::Guaranteed,
        tag: Some(name("cc-4711")),
        app_instance: Some(AppInstanceNo(9)),
        attachment: Some(AttachmentNo(4)),
        control_plane: true,
        card: Some(3),
    }
}

fn plain_key() -> LineKey {
    LineKey {
        hour: Instant(NEW_YEAR.0 + 3_600_000_000_000),
        priced: Priority::Standard,
        tag: None,
        app_instance: None,
        attachment: None,
        control_plane: false,
        card: None,
        ..line_key()
    }
}

fn january() -> Month {
    Month::new(2026, 1).expect("a month")
}

pub(super) fn bodies() -> Vec<Body> {
    let receivable = |amount| Leg { account: Account::Receivable(ProjectNo(300)), amount: Steps(amount) };
    let every_account = [
        Account::Receivable(ProjectNo(300)),
        Account::Invoiced(TenantNo(2)),
        Account::Adjustments(ProjectNo(300)),
        Account::Revenue(ClassNo(2)),
        Account::Rounding,
        Account::Tax,
        Account::CashClearing,
        Account::OperatorLoss,
    ];
    let prepaid_accounts =
        [Account::TenantPrepaid(TenantNo(2)), Account::ProjectPrepaid(ProjectNo(300)), Account::ExpiredCredits];
    vec![
        LedgerOpened { from: NEW_YEAR }.into(),
        LedgerPosted {
            currency: Currency::DEFAULT,
            month: january(),
            through: Instant(NEW_YEAR.0 + 7_200_000_000_000),
            complete: true,
            as_of_size: 300,
            previous: Some(290),
            lines: vec![
                PostedLine {
                    key: line_key(),
                    usage: UsageDelta(-2_500_000_000),
                    exact: exact(true, &[1, 0], &[7]),
                    posted: Steps(-37),
                },
                PostedLine {
                    key: plain_key(),
                    usage: UsageDelta(7 * 3_600_000_000_000),
                    exact: exact(false, &[2, 37, 81, 0], &[1]),
                    posted: Steps(36_000_000),
                },
            ],
            residual: Residual::from_units(428_571_428_571_428_571_428_571).expect("less than half a step"),
        }
        .into(),
        LedgerPosted {
            currency: Currency::new("JPY").expect("a currency"),
            month: january(),
            through: NEW_YEAR,
            complete: false,
            as_of_size: 1,
            previous: None,
            lines: Vec::new(),
            residual: Residual::NONE,
        }
        .into(),
        HourSettled { through: NEW_YEAR, as_of_size: 300 }.into(),
        LedgerCorrected {
            currency: Currency::DEFAULT,
            month: january().next(),
            original_month: january(),
            corrects: EntryId { sequence: 300, position: 1 },
            previous: Some(301),
            line: Some(CorrectedLine {
                key: plain_key(),
                usage: UsageDelta(7 * 3_600_000_000_000),
                exact: exact(false, &[2, 37, 81, 0], &[1]),
            }),
            reversal: vec![
                receivable(-36_000_000),
                Leg { account: Account::Revenue(ClassNo(2)), amount: Steps(36_000_000) },
            ],
            replacement: vec![
                receivable(30_000_000),
                Leg { account: Account::Revenue(ClassNo(2)), amount: Steps(-30_000_000) },
            ],
            rounding: Steps(-1),
            residual: Residual::from_units(-1).expect("small"),
            reason: name("the price was wrong"),
        }
        .into(),
        LedgerAdjusted {
            currency: Currency::DEFAULT,
            month: january(),
            original_month: january(),
            previous: None,
            legs: every_account.map(|account| Leg { account, amount: Steps::ZERO }).to_vec(),
            reason: name("goodwill"),
        }
        .into(),
        LedgerDisputed { entry: EntryId { sequence: 300, position: 0 }, open: true, reason: name("not ours") }.into(),
        PeriodClosing { month: january() }.into(),
        InvoiceIssued {
            number: InvoiceNo { series: InvoiceSeries::Invoice, number: 12 },
            month: january(),
            currency: Currency::DEFAULT,
            projects: vec![(ProjectNo(300), Steps(36_015_000))],
            taxes: vec![TaxLine {
                rate: Decimal(BILLION * 19 / 100),
                posted: Steps(36_015_000),
                net: Steps(36_020_000),
                tax: Steps(6_840_000),
            }],
            total: Steps(42_860_000),
            lines: 2,
            lines_hash: [7; 32],
            due_at: NEW_YEAR,
        }
        .into(),
        PeriodClosed { month: january(), invoices: 12, credit_notes: 1, statements: None }.into(),
        PaymentRecorded {
            currency: Currency::DEFAULT,
            amount: Steps(42_860_000),
            invoice: Some(InvoiceNo { series: InvoiceSeries::CreditNote, number: 1 }),
            reference: name("bank 2026-02-03/17"),
            received_at: NEW_YEAR,
        }
        .into(),
        TaxRatePut { tenant: TenantNo(2), from: january(), rate: Decimal(BILLION * 19 / 100) }.into(),
        PrepaidToppedUp {
            currency: Currency::DEFAULT,
            credit: 1,
            amount: Steps(5_000_000),
            priority: 10,
            expires_at: Some(Instant(NEW_YEAR.0 + 3_600_000_000_000)),
            source: CreditSource::Paid,
            reference: name("order-17"),
        }
        .into(),
        PrepaidPolicyPut {
            currency: Currency::DEFAULT,
            policy: PrepaidPolicy {
                low_below: Steps(1_000_000),
                window: Span::from_secs(86_400),
                low: PrepaidAction::Alert,
                pending: PrepaidAction::Downgrade,
                depleted: PrepaidAction::Drain,
                grace: Some(Span::from_secs(300)),
            },
        }
        .into(),
        PrepaidLapsed { currency: Currency::DEFAULT, credit: 1, amount: Steps(250_000) }.into(),
        PrepaidChanged {
            currency: Currency::DEFAULT,
            from: PrepaidState::Low,
            to: PrepaidState::Depleted,
            balance: Funds(-1_500_000_001),
            action: PrepaidAction::Drain,
        }
        .into(),
        PrepaidApplied {
            currency: Currency::DEFAULT,
            invoice: InvoiceNo { series: InvoiceSeries::Invoice, number: 12 },
            month: january(),
            amount: Steps(4_750_001),
            credited: Steps(4_750_000),
            uncovered: Steps(3),
        }
        .into(),
        LedgerAdjusted {
            currency: Currency::DEFAULT,
            month: january(),
            original_month: january(),
            previous: None,
            legs: prepaid_accounts.into_iter().map(|account| Leg { account, amount: Steps(1) }).collect(),
            reason: name("accounts of prepaid credit"),
        }
        .into(),
        super::denied(DenyCause::Prepaid {
            of_tenant: true,
            state: PrepaidState::Low,
            available: Funds(-1_500_000_001),
            requested: Amount(2_000_000_000),
        })
        .into(),
    ]
}

/// Those about statements, which came last.
pub(super) fn statements() -> Vec<Body> {
    vec![
        PeriodClosed { month: january(), invoices: 12, credit_notes: 1, statements: Some(11) }.into(),
        PeriodStated {
            month: january(),
            from: 300,
            border: 1_000,
            cut: 1_007,
            records: RecordSet { count: 130, root: [1; 32] },
            common: RecordSet { count: 2, root: [2; 32] },
            list_at_start: [3; 32],
            list_at_border: [4; 32],
            common_at_start: [5; 32],
            common_at_border: [6; 32],
            claimed_nodes: [7; 32],
        }
        .into(),
    ]
}
