//! Sends drafts so that each is counted once, whatever happened before.
//!
//! A draft that the state does not know is sent as version 1 of its chain. The daemon's answer decides:
//! - *recorded*, or recorded before and not superseded: it is settled.
//! - *recorded before and superseded*: a later version of the chain counts; it is looked for.
//! - *the ID has other content*: what the runtime says has changed since. The next version supersedes this one. That is
//!   done only if both begin at the same instant: an ID that was used for something else must not be replaced.
//! - *refused for good*: it is kept in `refused.jsonl`, and does not hold up the others.
//! - *not now*: it is postponed to the next pass.

use crate::draft::Draft;
use crate::state::{Kept, Settled, StateDirectory};
use leasehold_client::api::{NewUsageRecords, Problem as Answered, UsageAnswer, UsageReports, UsageResult};
use leasehold_client::{Client, Error};
use leasehold_terminal::Problem;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;

/// Records in one request: about 150 kB.
const BATCH: usize = 250;
/// After so many requests the state is kept, so that a long pass that is killed need not begin again.
const KEEP_AFTER: usize = 40;
/// More corrections of one record than that are a mistake.
const VERSIONS_MAX: u32 = 1000;

/// Why the pass cannot go on. What was settled before is settled.
pub(crate) enum Halt {
    /// The daemon did not answer, or refused the request as a whole.
    Daemon(Error),
    /// The state directory cannot be written.
    Disk(Problem),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Daemon(error)
    }
}

/// What a pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) recorded: usize,
    /// Recorded by an earlier pass whose state was lost.
    pub(crate) repeated: usize,
    /// Recorded, and superseding what was reported before.
    pub(crate) corrected: usize,
    pub(crate) refused: usize,
    pub(crate) postponed: usize,
}

/// A draft on its way.
struct Parcel {
    draft: Draft,
    digest: String,
    version: u32,
}

pub(crate) struct Delivery<'a, M> {
    pub(crate) client: &'a Client,
    pub(crate) directory: &'a StateDirectory,
    pub(crate) kept: &'a mut Kept<M>,
    pub(crate) tally: Tally,
    /// Users that Leasehold does not know, each to be named once.
    pub(crate) unknown_users: &'a mut BTreeSet<String>,
    /// Send again what was refused.
    pub(crate) retry_refused: bool,
}

impl<M: Serialize> Delivery<'_, M> {
    pub(crate) async fn deliver(&mut self, drafts: Vec<Draft>) -> Result<(), Halt> {
        let mut waiting: Vec<Parcel> = drafts.into_iter().filter_map(|draft| self.parcel(draft)).collect();
        let mut requests = 0;
        while !waiting.is_empty() {
            let mut again = Vec::new();
            while !waiting.is_empty() {
                let batch: Vec<Parcel> = waiting.drain(..waiting.len().min(BATCH)).collect();
                again.extend(self.send(batch).await?);
                requests += 1;
                if requests % KEEP_AFTER == 0 {
                    self.directory.save(self.kept).map_err(Halt::Disk)?;
                }
            }
            waiting = again;
        }
        Ok(())
    }

    /// The draft as the version that has to be sent; `None` if it is settled already.
    fn parcel(&self, draft: Draft) -> Option<Parcel> {
        let digest = draft.digest();
        let version = match self.kept.settled.get(&draft.key) {
            None => 1,
            Some(settled) if settled.digest != digest => settled.version + 1,
            Some(settled) if settled.refused && self.retry_refused => settled.version + 1,
            Some(_) => return None,
        };
        Some(Parcel { draft, digest, version })
    }

    async fn send(&mut self, batch: Vec<Parcel>) -> Result<Vec<Parcel>, Halt> {
        let records = batch.iter().map(|parcel| parcel.draft.version(parcel.version)).collect();
        let reports = UsageReports::Several(NewUsageRecords { records, atomic: false });
        let results = match self.client.record_usage(&reports).await? {
            UsageAnswer::Several(answer) if answer.results.len() == batch.len() => answer.results,
            UsageAnswer::Several(_) | UsageAnswer::One(_) => {
                let what = "its answer does not have one result for each record".to_owned();
                return Err(Error::Protocol { url: self.client.url().to_owned(), what }.into());
            }
        };
        let mut again = Vec::new();
        for (parcel, result) in batch.into_iter().zip(results) {
            again.extend(self.handle(parcel, result).await?);
        }
        Ok(again)
    }

    /// Deals with the answer. Returns the parcel if it has to be sent again.
    async fn handle(&mut self, mut parcel: Parcel, result: UsageResult) -> Result<Option<Parcel>, Halt> {
        let UsageResult { status, accepted, problem } = result;
        if let Some(accepted) = accepted {
            if accepted.repeated {
                return self.repeated(parcel).await;
            }
            let of = if parcel.version > 1 { &mut self.tally.corrected } else { &mut self.tally.recorded };
            *of += 1;
            self.settle(&parcel, parcel.version, false);
            return Ok(None);
        }
        let Some(problem) = problem else {
            self.tally.postponed += 1;
            return Ok(None);
        };
        if is_temporary(status, &problem) {
            tracing::warn!(id = parcel.draft.id(parcel.version), "postponed: {}", problem.detail);
            self.tally.postponed += 1;
            return Ok(None);
        }
        if problem.code == "usage_id_taken" {
            return self.taken(parcel, &problem).await;
        }
        let field = problem.members.get("field").and_then(|field| field.as_str());
        if problem.code == "unknown_anchor" && field == Some("requested_by_user_id") {
            // Usage counts with or without its user, so it is not held up by one who is not registered.
            if let Some(user) = parcel.draft.record.requested_by_user_id.take() {
                if self.unknown_users.insert(user.clone()) {
                    tracing::warn!(user, "is no user of the tenant; the usage is reported without a user");
                }
                return Ok(Some(parcel));
            }
        }
        self.refuse(&parcel, &problem)?;
        Ok(None)
    }

    /// The version was recorded before. It counts unless a later one superseded it.
    async fn repeated(&mut self, mut parcel: Parcel) -> Result<Option<Parcel>, Halt> {
        let shown = self.client.show_usage_record(parcel.draft.id(parcel.version)).await?;
        let next = match shown.superseded_by {
            None => None,
            // Without a later version of ours, somebody else corrected the record, and has the last word.
            Some(_) => self.existing(&parcel.draft.id(parcel.version + 1)).await?,
        };
        if next.is_some() {
            parcel.version += 1;
            return Ok(Some(parcel));
        }
        self.tally.repeated += 1;
        self.settle(&parcel, parcel.version, false);
        Ok(None)
    }

    /// The version was recorded with other content, so that the next one is due.
    async fn taken(&mut self, mut parcel: Parcel, problem: &Answered) -> Result<Option<Parcel>, Halt> {
        let id = parcel.draft.id(parcel.version);
        let from = self.existing(&id).await?.map(|record| record.from);
        if from != parcel.draft.record.from || parcel.version >= VERSIONS_MAX {
            let detail = "The ID was used for usage that began at another time, which must not be replaced. If the \
                          runtime numbers its work anew, give it a new name in `cluster`.";
            let answer = json!({ "code": "id_of_other_usage", "detail": detail, "answer": problem });
            self.refuse(&parcel, &answer)?;
            return Ok(None);
        }
        parcel.version += 1;
        Ok(Some(parcel))
    }

    async fn existing(&self, id: &str) -> Result<Option<leasehold_client::api::UsageRecord>, Error> {
        match self.client.show_usage_record(id).await {
            Ok(record) => Ok(Some(record)),
            Err(Error::Problem(problem)) if problem.status == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn refuse(&mut self, parcel: &Parcel, answer: &impl Serialize) -> Result<(), Halt> {
        let record = parcel.draft.version(parcel.version);
        self.directory.refused(&record, answer).map_err(Halt::Disk)?;
        self.tally.refused += 1;
        self.settle(parcel, parcel.version - 1, true);
        Ok(())
    }

    fn settle(&mut self, parcel: &Parcel, version: u32, refused: bool) {
        let ended = parcel.draft.record.to.map_or(0, |to| to.0.0 / 1_000_000_000);
        let settled = Settled { version, digest: parcel.digest.clone(), ended, refused };
        self.kept.settled.insert(parcel.draft.key.clone(), settled);
    }
}

/// Whether the same record may be accepted later: the daemon is busy, or its clock is behind that of the runtime.
fn is_temporary(status: u16, problem: &Answered) -> bool {
    let later = ["usage_in_future", "usage_ids_behind", "usage_known"];
    status >= 500 || matches!(status, 408 | 429) || later.contains(&problem.code.as_str())
}
