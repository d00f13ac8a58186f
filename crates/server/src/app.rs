//! What all requests share.

use crate::access::Caller;
use crate::live::Live;
use crate::problem::{refusal_for, unanswered};
use crate::reply::ask;
use crate::shares::{Share, Shares};
use leasehold_api::{Problem, codes};
use leasehold_cell::{Cell, Now, Sealed, Unsealed};
use leasehold_engine::{Command, Refusal, Request};
use leasehold_journal::Journal;
use leasehold_model::id::IdKind;
use leasehold_model::record::Hash;
use leasehold_model::{EntryId, Identity, Instant, LeaseNo, PublicId};
use std::sync::Arc;

/// The state of the daemon, as the routes see it.
pub(crate) struct App {
    pub(crate) cell: Arc<Cell>,
    pub(crate) now: Arc<Now>,
    pub(crate) journal: Arc<dyn Journal>,
    /// The signing keys, as they are in the key file.
    pub(crate) keys: Arc<leasehold_journal::Keys>,
    pub(crate) key_history: crate::key_history::KeyHistory,
    pub(crate) live: Arc<Live>,
    pub(crate) books: Arc<crate::books::BooksService>,
    pub(crate) settlement: crate::settlement::SettlementService,
    pub(crate) statements: crate::statements::StatementService,
    pub(crate) proofs: crate::proofs::Proofs,
    pub(crate) deliveries: crate::deliveries::DeliveryService,
    /// How long an answer may take to begin.
    pub(crate) request_timeout: std::time::Duration,
    pub(crate) proof_bytes_max: u64,
    pub(crate) scrub: Arc<crate::scrub::ScrubService>,
    pub(crate) agents: crate::agents::Agents,
    /// Hash of the first record, from which public IDs are derived.
    pub(crate) genesis: Hash,
    pub(crate) settings: crate::settings::Settings,
    /// How invoices are printed.
    pub(crate) printing: crate::invoice_page::InvoicePrinting,
    /// Readers of the journal files. Few run at a time, so that they do not slow down the lease path.
    pub(crate) scans: crate::scans::Scans,
    /// Operations that wait for the engine, by caller.
    pub(crate) waiting: Arc<Shares>,
    pub(crate) rate: crate::rate::Limiter,
    pub(crate) metrics: crate::metrics::Metrics,
    /// The data directory; metrics report how full its disk is.
    pub(crate) data: std::path::PathBuf,
    /// The encoded OpenAPI document.
    pub(crate) openapi: bytes::Bytes,
}

/// A reply without records as a problem; `tell` describes refusals to the caller.
pub(crate) fn problem(unsealed: &Unsealed, tell: impl FnOnce(&Refusal) -> Problem) -> Problem {
    match unsealed {
        Unsealed::Refused(refusal) => tell(refusal),
        unsealed => unanswered(unsealed),
    }
}

impl App {
    /// The present instant by the clock of the engine. Everything about deadlines, tokens included, is answered by it: the
    /// wall clock can be set back, and an expired token must not become valid again.
    pub(crate) fn time(&self) -> Instant {
        self.cell.time()
    }

    /// The right to have so many operations wait for the engine, until it is dropped.
    pub(crate) fn wait_with(&self, caller: &Caller, operations: usize) -> Result<Share, Problem> {
        self.waiting.take(caller, operations).map_err(|exceeded| {
            let advice = "nothing was done; wait for their answers, or try again";
            exceeded.problem(codes::TOO_MANY_WAITING, "operations waiting for the engine", advice)
        })
    }

    /// Submits a command; completes when its records are durable and visible to readers.
    pub(crate) async fn seal(
        &self,
        caller: &Caller,
        identity: Identity,
        command: Command,
        key: Option<&[u8]>,
    ) -> Result<Sealed, Problem> {
        let kind = command.kind();
        let request = request(identity, command, key)?;
        let _share = self.wait_with(caller, 1)?;
        let reply = ask(&self.cell, vec![request]).await.pop().expect("one request, one reply");
        self.metrics.replied(kind, &reply);
        let tell = |refusal: &Refusal| self.now.read(|state| refusal_for(state, caller, refusal));
        reply.map_err(|unsealed| problem(&unsealed, tell))
    }

    /// The 128-bit ID of a lease.
    pub(crate) fn lease_uid(&self, lease: LeaseNo) -> String {
        PublicId::new(&self.genesis, IdKind::Lease, 0, lease.0).to_string()
    }

    /// The 128-bit ID of an entry of the ledger.
    pub(crate) fn entry_uid(&self, entry: EntryId) -> String {
        PublicId::new(&self.genesis, IdKind::Entry, entry.position, entry.sequence).to_string()
    }

    /// The entry with this ID: 32 hexadecimal digits, or `entry-`, the sequence of its record and its position.
    pub(crate) fn entry_id(&self, text: &str) -> Option<EntryId> {
        EntryId::parse(text).or_else(|| {
            let id = PublicId(hex_id(text)?);
            let sequence = id.number(&self.genesis, IdKind::Entry)?;
            Some(EntryId { sequence, position: id.position() })
        })
    }

    /// The lease with this ID: 32 hexadecimal digits, or `lease-` and the number.
    pub(crate) fn lease_number(&self, text: &str) -> Option<LeaseNo> {
        if let Some(number) = text.strip_prefix("lease-") {
            let plain = number.bytes().all(|b| b.is_ascii_digit()) && (number == "0" || !number.starts_with('0'));
            return number.parse().ok().filter(|_| plain).map(LeaseNo);
        }
        let id = hex_id(text)?;
        PublicId(id).number(&self.genesis, IdKind::Lease).map(LeaseNo)
    }
}

/// Parses 32 hexadecimal digits.
pub(crate) fn hex_id(text: &str) -> Option<u128> {
    let well_formed = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    u128::from_str_radix(text, 16).ok().filter(|_| well_formed)
}

/// A request for the cell, with its idempotency key if there is one.
pub(crate) fn request(identity: Identity, command: Command, key: Option<&[u8]>) -> Result<Request, Problem> {
    match key {
        None => Ok(Request::new(identity, command)),
        Some(key) => Request::once(identity, command, key).map_err(|refusal| crate::problem::refused(&refusal)),
    }
}
