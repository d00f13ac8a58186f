//! Records with entries, as the books keep them: each in an entry of the file, by its sequence.

use super::PrepaidEvent;
use leasehold_model::body::{
    InvoiceIssued, LedgerAdjusted, LedgerCorrected, LedgerPosted, LedgerShared, PaymentRecorded,
};
use leasehold_model::codec::{DecodeError, Field, Reader, put_varint};
use leasehold_model::limits::IDEMPOTENCY_KEY_BYTES_MAX;
use leasehold_model::record::Key;
use leasehold_model::{Instant, ProjectNo, TenantNo};

/// A record with entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredEntry {
    pub(crate) stamp: Instant,
    pub(crate) tenant: TenantNo,
    pub(crate) project: Option<ProjectNo>,
    /// The idempotency key of the command that booked it.
    pub(crate) key: Option<Key>,
    pub(crate) body: StoredBody,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoredBody {
    Posted(LedgerPosted),
    Corrected(LedgerCorrected),
    Adjusted(LedgerAdjusted),
    Invoiced(InvoiceIssued),
    Paid(PaymentRecorded),
    Prepaid(PrepaidEvent),
    Shared(LedgerShared),
}

impl Field for StoredEntry {
    fn put(&self, out: &mut Vec<u8>) {
        self.stamp.put(out);
        self.tenant.put(out);
        self.project.put(out);
        let key: &[u8] = self.key.as_deref().unwrap_or_default();
        put_varint(key.len() as u64, out);
        out.extend_from_slice(key);
        match &self.body {
            StoredBody::Posted(body) => {
                out.push(1);
                body.put(out);
            }
            StoredBody::Corrected(body) => {
                out.push(2);
                body.put(out);
            }
            StoredBody::Adjusted(body) => {
                out.push(3);
                body.put(out);
            }
            StoredBody::Invoiced(body) => {
                out.push(4);
                body.put(out);
            }
            StoredBody::Paid(body) => {
                out.push(5);
                body.put(out);
            }
            StoredBody::Prepaid(body) => {
                out.push(6);
                body.put(out);
            }
            StoredBody::Shared(body) => {
                out.push(7);
                body.put(out);
            }
        }
    }
    fn get(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            stamp: Field::get(r)?,
            tenant: Field::get(r)?,
            project: Field::get(r)?,
            key: {
                let bytes = r.count(IDEMPOTENCY_KEY_BYTES_MAX)?;
                Key::new(r.take(bytes)?)
            },
            body: match r.byte()? {
                1 => StoredBody::Posted(Field::get(r)?),
                2 => StoredBody::Corrected(Field::get(r)?),
                3 => StoredBody::Adjusted(Field::get(r)?),
                4 => StoredBody::Invoiced(Field::get(r)?),
                5 => StoredBody::Paid(Field::get(r)?),
                6 => StoredBody::Prepaid(Field::get(r)?),
                7 => StoredBody::Shared(Field::get(r)?),
                code => return Err(DecodeError::BadCode { field: "entry", code: u64::from(code) }),
            },
        })
    }
}
