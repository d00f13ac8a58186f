//! One engine and, beside it, a state folded from the bytes it emitted. After every step the two
//! must be equal, the books must balance, and a refusal must have left no trace.

use super::invariants;
use leasehold_engine::{Engine, Readers, Refusal, Replayed, Request, Sealed, Sequences, State, replay};
use leasehold_model::body::{Genesis, Started};
use leasehold_model::{Batch, Body, FORMAT_VERSION, Instant, Name, RULES_VERSION, Record};

pub(crate) struct World {
    pub(crate) engine: Engine,
    replica: State,
    /// Everything that was sealed since this world began.
    pub(crate) records: Vec<Record>,
    /// Folded from the same records, as readers see it.
    pub(crate) readers: Readers,
}

/// What the engine answers.
pub(crate) type Decided = Result<Sealed<Sequences>, Refusal>;

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// The records of a batch, decoded from its bytes.
pub(crate) fn records_of(batch: &Batch) -> Vec<Record> {
    batch.frames().map(|frame| frame.expect("a whole frame").decode().expect("a record")).collect()
}

impl World {
    /// A journal that has just begun.
    pub(crate) fn new() -> Self {
        let mut engine = Engine::new(State::new());
        let mut batch = Batch::new(0);
        let genesis = Genesis {
            format_version: FORMAT_VERSION,
            origin: name("test"),
            public_key: [1; 32],
            software: name("tests"),
        };
        engine.genesis(Instant(0), genesis, &mut batch);
        let mut world = Self { engine, replica: State::new(), records: Vec::new(), readers: Readers::default() };
        world.follow(&batch);
        world
    }

    /// A world whose engine is exchanged for one restored from its snapshot.
    pub(crate) fn restored(&self) -> Self {
        let bytes = self.state().to_snapshot();
        let mut state = State::from_snapshot(&bytes).expect("what the engine wrote");
        assert_eq!(state.to_snapshot(), bytes, "a snapshot reads back as itself");
        let engine = Engine::new(state.clone());
        Self { engine, readers: Readers::beside(&mut state), replica: state, records: Vec::new() }
    }

    /// A world whose journal was written by earlier rules: its records with changes, folded from the beginning.
    pub(crate) fn rewritten(&self, change: impl Fn(&mut Record)) -> Self {
        let mut state = State::new();
        for record in &self.records {
            let mut record = record.clone();
            change(&mut record);
            state.apply(&record).expect("the fold accepts what earlier rules wrote");
        }
        let engine = Engine::new(state.clone());
        Self { engine, readers: Readers::beside(&mut state), replica: state, records: Vec::new() }
    }

    pub(crate) fn state(&self) -> &State {
        self.engine.state()
    }

    fn batch(&self) -> Batch {
        Batch::new(self.state().size())
    }

    /// Folds what was emitted, record by record, into the replica: nothing but records changes
    /// state (invariant 1), and the parts of the capacity add up after each (invariant 5).
    fn follow(&mut self, batch: &Batch) -> Vec<Record> {
        let records = records_of(batch);
        assert_eq!(records.len(), batch.count() as usize);
        for record in &records {
            self.replica.apply(record).expect("the fold accepts what was decided");
            invariants::balance(&self.replica);
            invariants::within_ceilings(&self.replica, record);
            self.readers.apply(record).expect("the fold accepts what was decided");
            invariants::readers_see(&self.readers, &self.replica);
        }
        self.records.extend(records.iter().cloned());
        assert_eq!(self.replica.to_snapshot(), self.state().to_snapshot(), "fold(records) is the deciding state");
        records
    }

    pub(crate) fn started(&mut self, now: Instant) -> Vec<Record> {
        let mut batch = self.batch();
        let epoch = self.state().epoch() + 1;
        let started = Started { epoch, software: name("tests"), rules_version: RULES_VERSION, clock_accepted: None };
        self.engine.started(now, started, &mut batch);
        self.follow(&batch)
    }

    /// Applies all that is due, at most `at_once` records at a time.
    pub(crate) fn advance(&mut self, now: Instant, at_once: u32) -> Vec<Record> {
        let mut all = Vec::new();
        loop {
            let mut batch = self.batch();
            let before = self.state().clone();
            let done = self.engine.advance(now, &mut batch, at_once);
            decides_the_same_again(before, &records_of(&batch));
            // A gang starts, and falls, whole.
            let acts = records_of(&batch).iter().filter(|record| !record.continues).count();
            assert!(acts <= at_once as usize, "{acts} acts where {at_once} were allowed");
            assert!(done || batch.count() > 0, "an advance that gets nowhere");
            all.extend(self.follow(&batch));
            if done {
                invariants::nothing_overdue(&self.engine, now);
                return all;
            }
        }
    }

    /// Decides a request, for which all that is due must have been applied.
    pub(crate) fn decide(&mut self, now: Instant, request: &Request) -> (Decided, Vec<Record>) {
        let mut batch = self.batch();
        let before = self.state().digest();
        let state_before = self.state().clone();
        let answer = self.engine.decide(now, request, &mut batch);
        match &answer {
            Ok(Sealed { records: Sequences { first, count }, repeated: false, .. }) => {
                assert_eq!((*first, *count), (batch.first_sequence(), batch.count()));
            }
            Ok(_) | Err(_) => {
                assert!(batch.is_empty(), "a refusal seals nothing");
                assert_eq!(self.state().digest(), before, "a refusal leaves no trace");
            }
        }
        let records = self.follow(&batch);
        if answer.is_ok() {
            decides_the_same_again(state_before, &records);
        }
        let one_command = records.iter().enumerate().all(|(i, r)| r.continues == (i > 0));
        assert!(one_command, "all records of a command but the first continue it");
        (answer, records)
    }

    /// What is due, then the request.
    pub(crate) fn step(&mut self, now: Instant, request: &Request) -> (Decided, Vec<Record>) {
        let mut records = self.advance(now, u32::MAX);
        let (answer, decided) = self.decide(now, request);
        records.extend(decided);
        (answer, records)
    }
}

/// Whoever has the journal comes to the same decisions, also from a snapshot: each decision among the records, made
/// again on the state before it, is what was sealed.
fn decides_the_same_again(before: State, records: &[Record]) {
    let mut state = before;
    for (place, record) in records.iter().enumerate() {
        let decides = record.body.word().starts_with("allocation.")
            || matches!(
                record.body,
                Body::Granted(_)
                    | Body::Denied(_)
                    | Body::PreemptionDecided(_)
                    | Body::ReservationTakenOver(_)
                    | Body::HeadProtected(_)
                    | Body::ReservationDropped(_)
            );
        if !record.continues && decides {
            let rest = records[place + 1..].iter().take_while(|next| next.continues).count();
            let sealed = &records[place..=place + rest];
            let restored = State::from_snapshot(&state.to_snapshot()).expect("what the engine wrote");
            match replay(restored, sealed) {
                Replayed::Same | Replayed::NotADecision => {}
                other => panic!("sealed {sealed:#?}, decided again {other:#?}"),
            }
        }
        state.apply(record).expect("the fold accepts what was decided");
    }
}
