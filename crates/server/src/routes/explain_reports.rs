//! Where the amount of a line of a usage unit comes from: the usage records behind it.

use super::books::stretch;
use super::explain_entry::without_usage;
use crate::app::App;
use crate::books::problem;
use crate::show_ledger::{exact, unit_quantity};
use leasehold_api::{Decimal, ExplainedUnitPrice, ExplainedUsage, LedgerEntry, LedgerExplanation, Problem};
use leasehold_books::{Books, Entry, EntryLine};
use leasehold_meter::Window;
use leasehold_model::body::{Body, UnitPricePut};
use leasehold_model::ledger::HOUR_NS;
use leasehold_model::{EntryKind, Instant, ProjectNo};

/// The most records that are listed.
const RECORDS: usize = 1000;

/// The explanation of an entry that comes from reported usage.
pub(super) struct OfReports<'u> {
    line: &'u EntryLine,
    price: Option<&'u UnitPricePut>,
    records: Vec<ExplainedUsage>,
    has_more: bool,
}

impl<'u> OfReports<'u> {
    pub(super) fn new(app: &App, books: &'u Books, payer: ProjectNo, line: &'u EntryLine) -> Result<Self, Problem> {
        let (sequences, has_more) = books.line_records(payer, &line.key, RECORDS).map_err(|error| problem(&error))?;
        let mut records = Vec::with_capacity(sequences.len());
        for sequence in sequences {
            let record = crate::explain::decision::read(app, sequence)?;
            let Body::UsageRecorded(recorded) = &record.body else { continue };
            let report = &recorded.report;
            records.push(ExplainedUsage {
                sequence: record.sequence,
                source: report.source.to_string(),
                id: report.id.to_string(),
                stretch: stretch(Window::new(report.from, report.to)),
                quantity: report.quantity.to_string(),
                supersedes: report.supersedes.as_ref().map(ToString::to_string),
            });
        }
        let price = line.key.card.and_then(|number| books.unit_price(number));
        Ok(Self { line, price, records, has_more })
    }

    pub(super) fn explain(
        self,
        found: &Entry,
        shown: LedgerEntry,
        corrections: Vec<LedgerEntry>,
    ) -> Result<LedgerExplanation, Problem> {
        let key = &self.line.key;
        let arithmetic = match found.kind {
            EntryKind::Usage => Some(self.arithmetic(&shown)),
            _ => None,
        };
        let plain = without_usage(found, shown, corrections);
        Ok(LedgerExplanation {
            hour: Some(stretch(Window::new(key.hour, Instant(key.hour.0.saturating_add(HOUR_NS))))),
            unit_price: self.price.map(|price| ExplainedUnitPrice {
                number: price.price_no,
                price: Decimal(price.price.to_string()),
                currency: price.currency.to_string(),
            }),
            usage_records: self.records,
            more_usage_records: self.has_more,
            arithmetic: arithmetic.unwrap_or(plain.arithmetic),
            exact: Some(exact(&self.line.exact)),
            ..plain
        })
    }

    fn arithmetic(&self, shown: &LedgerEntry) -> Vec<String> {
        let (amount, currency) = (&shown.amount, &shown.currency);
        let unit = shown.line.as_ref().map_or("", |line| line.unit.as_str());
        let count = match (self.records.len(), self.has_more) {
            (count, true) => format!("The first {count} usage records"),
            (1, false) => "1 usage record".to_owned(),
            (count, false) => format!("{count} usage records"),
        };
        let quantity = unit_quantity(self.line.usage.0);
        let mut steps = vec![format!(
            "{count} have parts in this hour. What was reported over several months or prices is divided by time; what is \
             superseded is taken back. The line has {quantity} {unit} of it that were not posted before."
        )];
        if let Some(price) = self.price {
            let exact = exact(&self.line.exact);
            let price = price.price;
            steps.push(format!("{quantity} {unit} × {price} {currency} = {exact} {currency} exactly."));
        }
        steps.push(format!(
            "Posted: {amount} {currency}. The lines of a posting are rounded together to six decimals, and what is left \
             is carried into the next posting of the payer."
        ));
        steps
    }
}
