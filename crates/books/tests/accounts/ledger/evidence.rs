//! The evidence for the invoices of a history, straight from its records.

use leasehold_bill::{Concern, Evidence, Evident, Fold, Progress, Stated, Statements};
use leasehold_model::body::{InvoiceIssued, PeriodClosing};
use leasehold_model::{Body, Hash, Month, Record, TenantNo};
use sha2::{Digest, Sha256};

/// What stands for the hash of a record. Evidence does not depend on how records are sealed.
pub(crate) fn hash(record: &Record) -> Hash {
    Sha256::digest(format!("{record:?}")).into()
}

fn closing(record: &Record) -> Option<Month> {
    if let Body::PeriodClosing(PeriodClosing { month }) = &record.body { Some(*month) } else { None }
}

/// The statements of a month, from a fold that stands at its start or before.
pub(crate) fn stated(records: &[Record], fold: Fold, month: Month) -> Stated {
    let from = usize::try_from(fold.next_sequence()).expect("few");
    let mut statements = Statements::new(fold, month).with_all_lists();
    for record in &records[from..] {
        let progress = statements.take(record, &hash(record));
        let progress = progress.unwrap_or_else(|why| panic!("{month}: {why}: {record:?}"));
        if progress == Progress::Done {
            return statements.finish().expect("it is done");
        }
    }
    panic!("there is no cut of {month}");
}

/// The records that concern a tenant: its own and the common ones of the range, the cuts, and its own up to the invoice.
fn records_of(records: &[Record], stated: &Stated, tenant: TenantNo, invoice: u64) -> Vec<Evident> {
    let mut fold = Fold::new();
    let mut evident = Vec::new();
    for record in records {
        let concern = fold.take(record).expect("it was taken before");
        let (sequence, is_own) = (record.sequence, concern == Concern::Tenant(tenant));
        let in_range = (stated.from..stated.cut).contains(&sequence);
        let is_prepaid = is_own && matches!(record.body, Body::PrepaidApplied(_));
        let wanted = match () {
            () if sequence < stated.from => false,
            () if in_range && concern == Concern::Common => true,
            () if closing(record).is_some() && sequence <= stated.cut => true,
            () if sequence < stated.cut => is_own,
            // After the cut only the head of a record says whose it is.
            () if sequence <= invoice => record.identity.tenant == Some(tenant),
            () => is_prepaid,
        };
        if wanted {
            evident.push(Evident { sequence, hash: hash(record), record: record.clone() });
        }
    }
    evident
}

/// The evidence for one invoice.
fn evidence(records: &[Record], stated: &Stated, record: &Record, invoice: &InvoiceIssued) -> Evidence {
    let tenant = record.identity.tenant.expect("an invoice has a tenant");
    let of = &stated.tenants[&tenant];
    Evidence {
        tenant,
        month: invoice.month,
        currency: invoice.currency,
        statement: (records.len() as u64, of.statement),
        common_at_start: stated.common_at_start.clone(),
        list_at_start: of.list_at_start.clone().expect("all lists are wanted"),
        claimed_nodes: of.claimed_nodes.clone(),
        records: records_of(records, stated, tenant, record.sequence),
    }
}

/// The evidence for each invoice. Each month begins with the fold that was saved at the border of the one before.
pub(crate) fn evidences(records: &[Record]) -> Vec<Evidence> {
    let mut fold = Fold::new();
    let (mut all, mut border) = (Vec::new(), None);
    for month in records.iter().filter_map(closing) {
        let stated = stated(records, fold, month);
        for record in records {
            if let Body::InvoiceIssued(invoice) = &record.body
                && invoice.month == month
            {
                all.push(evidence(records, &stated, record, invoice));
            }
        }
        // Months are chained: the lists at the border are those at the start of the next range.
        let at_start = (stated.from, stated.common_at_start.clone());
        assert!(border.is_none_or(|border| border == at_start), "{month} begins elsewhere than at the border");
        border = Some((stated.border, stated.common_at_border.clone()));
        let saved = stated.fold_at_border.to_bytes();
        fold = Fold::from_bytes(&saved).expect("what was saved can be read");
        assert_eq!(fold.to_bytes(), saved, "a saved fold is saved the same way");
    }
    all
}
