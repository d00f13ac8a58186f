//! A source in memory, a clock that follows tokio's time, and a transport that answers as it is told.

use leasehold_deliver::{
    Clock, Event, Message, Outcome, Page, Sending, SignatureKind, SinkId, SinkSpec, Source, SourceError, Transport,
};
use leasehold_model::Instant;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const START: u64 = 1_770_000_000;

/// One record for each entry, with the order keys of its events. Stamped one second apart.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) records: Mutex<Vec<Vec<String>>>,
    pub(crate) fails: Mutex<bool>,
    /// The records before this one were deleted.
    pub(crate) begins: AtomicU64,
    /// Events that are counted as due although they are not, or, below zero, that are not counted yet.
    pub(crate) miscounted: AtomicI64,
    /// How often the counter was asked.
    pub(crate) looks: AtomicU64,
}

impl Memory {
    pub(crate) fn seal(&self, keys: &[&str]) {
        self.records.lock().expect("sound").push(keys.iter().map(|key| (*key).to_owned()).collect());
    }
}

pub(crate) fn event(sequence: u64, position: u16, key: &str) -> Event {
    Event {
        sequence,
        position,
        id: format!("evt_{sequence}_{position}"),
        kind: "lease.granted".to_owned(),
        order: key.to_owned(),
        subject: key.to_owned(),
        time: Instant::from_secs(START + sequence),
        data: serde_json::json!({"lease": key, "quanta": "18446744073709551615"}),
    }
}

impl Source for Memory {
    fn head(&self) -> u64 {
        self.records.lock().expect("sound").len() as u64
    }
    fn read(&self, _: &SinkSpec, from: u64, most: usize) -> Result<Page, SourceError> {
        if *self.fails.lock().expect("sound") {
            return Err(SourceError::Later("the disk is away".to_owned()));
        }
        let begins = self.begins.load(Ordering::SeqCst);
        if from < begins {
            return Err(SourceError::Gone { until: begins });
        }
        let records = self.records.lock().expect("sound");
        let mut page = Page { events: Vec::new(), next: from, overcounted: 0 };
        for keys in &records[usize::try_from(from).expect("small")..] {
            if page.events.len() >= most {
                break;
            }
            page.events.extend((0..).zip(keys).map(|(position, key)| event(page.next, position, key)));
            page.next += 1;
        }
        Ok(page)
    }
    fn count(&self, _: &SinkSpec, from: u64, to: u64) -> Result<u64, SourceError> {
        let from = from.max(self.begins.load(Ordering::SeqCst)).min(to);
        let range = usize::try_from(from).expect("small")..usize::try_from(to).expect("small");
        Ok(self.records.lock().expect("sound")[range].iter().map(|keys| keys.len() as u64).sum())
    }
    fn due(&self, _: &SinkSpec) -> u64 {
        self.looks.fetch_add(1, Ordering::SeqCst);
        let due: u64 = self.records.lock().expect("sound").iter().map(|keys| keys.len() as u64).sum();
        due.saturating_add_signed(self.miscounted.load(Ordering::SeqCst))
    }
    fn sequence_at(&self, at: Instant) -> Result<u64, SourceError> {
        Ok((at.0 / 1_000_000_000).saturating_sub(START).min(self.head()))
    }
}

/// Time that the test moves with tokio's.
pub(crate) struct TestClock(pub(crate) tokio::time::Instant);

impl Clock for TestClock {
    fn now(&self) -> Instant {
        let passed = u64::try_from(self.0.elapsed().as_nanos()).expect("short");
        Instant(START * 1_000_000_000 + passed)
    }
}

/// Answers 204, unless it is told otherwise.
#[derive(Default)]
pub(crate) struct Script {
    /// Answers for the next requests.
    pub(crate) next: Mutex<VecDeque<Outcome>>,
    /// What is answered when there is none.
    pub(crate) otherwise: Mutex<Option<Outcome>>,
    pub(crate) by_id: Mutex<HashMap<String, u16>>,
    pub(crate) received: Mutex<Vec<String>>,
    pub(crate) requests: Mutex<u64>,
}

pub(crate) fn answered(status: u16) -> Outcome {
    Outcome::Answered { status, retry_after: None }
}

impl Transport for Script {
    fn send<'a>(&'a self, _: &'a SinkSpec, message: &'a Message, _: Instant) -> Sending<'a> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            *self.requests.lock().expect("sound") += 1;
            let by_id = self.by_id.lock().expect("sound").get(&message.id).copied().map(answered);
            let next = self.next.lock().expect("sound").pop_front();
            let otherwise = self.otherwise.lock().expect("sound").clone();
            let outcome = by_id.or(next).or(otherwise).unwrap_or_else(|| answered(204));
            if outcome.status().is_some_and(|status| status / 100 == 2) {
                self.received.lock().expect("sound").push(message.id.clone());
            }
            outcome
        })
    }
}

pub(crate) fn spec(id: u64, url: &str) -> SinkSpec {
    SinkSpec {
        id: SinkId(id),
        name: format!("hook-{id}"),
        tenant: None,
        url: url.to_owned(),
        events: vec!["*".to_owned()],
        signature: SignatureKind::Hmac,
        created_at_sequence: 0,
        enabled: true,
    }
}

pub(crate) fn memory() -> Arc<Memory> {
    Arc::default()
}
