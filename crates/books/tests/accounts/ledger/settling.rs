//! Settlement as the daemon does it, with crashes and other requests in the middle.

use super::story::{Step, Story};
use leasehold_books::Settlement;
use leasehold_engine::command::{PostUsage, RatedLine, SettleHour};
use leasehold_engine::{Command, Refusal};
use leasehold_model::rate::Currency;
use leasehold_model::{Instant, LineKey, ProjectNo};
use leasehold_oracle::ledger::DueLine;
use std::collections::BTreeMap;

/// What came of a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Done,
    /// Something else came in between, or the daemon crashed; it goes on later.
    Interrupted,
}

type Lines = BTreeMap<(ProjectNo, Currency), BTreeMap<LineKey, DueLine>>;

pub(crate) fn lines_of<'p>(parts: impl IntoIterator<Item = &'p PostUsage>) -> Step<Lines> {
    let mut lines = Lines::new();
    for part in parts {
        let of = lines.entry((part.project, part.currency)).or_default();
        for RatedLine { key, usage, exact } in &part.lines {
            if of.insert(key.clone(), (usage.0, exact.clone())).is_some() {
                return Err(format!("{key:?} twice"));
            }
        }
    }
    Ok(lines)
}

/// The first difference between two lists of lines.
pub(crate) fn compare_lines(what: &str, books: &Lines, model: &Lines) -> Step<()> {
    for payer in books.keys().chain(model.keys()) {
        let none = BTreeMap::new();
        let (ours, theirs) = (books.get(payer).unwrap_or(&none), model.get(payer).unwrap_or(&none));
        for key in ours.keys().chain(theirs.keys()) {
            let (our, their) = (ours.get(key), theirs.get(key));
            if our != their {
                let text = |line: Option<&DueLine>| line.map(|(usage, exact)| format!("{usage} quanta-ns, {exact}"));
                return Err(format!("{what}: {payer:?} {key:?}\n  books {:?}\n  model {:?}", text(our), text(their)));
            }
        }
    }
    Ok(())
}

impl Story {
    /// Settles hours until there is none to be settled, or something comes in between.
    pub(crate) fn settle(&mut self, calm: bool) -> Step<Settled> {
        loop {
            let settlement = self.books().next_settlement().map_err(|error| error.to_string())?;
            let Some(settlement) = settlement else { return Ok(Settled::Done) };
            self.check_settlement(&settlement)?;
            let size = self.size();
            if self.post(&settlement, calm)? == Settled::Interrupted {
                return Ok(Settled::Interrupted);
            }
            let settle = SettleHour { through: settlement.through, as_of_size: settlement.as_of_size };
            let again = self.dice.one_in(8).then(|| Command::SettleHour(settle.clone()));
            match self.operate(Command::SettleHour(settle))? {
                Ok(_) => self.refuse(again)?,
                Err(refusal) => {
                    let what = format!("hour {} of {size}: {refusal}", settlement.through);
                    return if calm { Err(what) } else { Ok(Settled::Interrupted) };
                }
            }
        }
    }

    /// What is to be posted is what the model says.
    pub(crate) fn check_settlement(&mut self, settlement: &Settlement) -> Step<()> {
        let through = settlement.through;
        let mut by_size: BTreeMap<u64, Vec<&PostUsage>> = BTreeMap::new();
        by_size.entry(settlement.as_of_size).or_default();
        for posting in &settlement.postings {
            for part in &posting.parts {
                if part.through != through {
                    return Err(format!("a part for {} in the settlement of {through}", part.through));
                }
                by_size.entry(part.as_of_size).or_default().push(part);
            }
        }
        let resumed: Vec<(ProjectNo, Currency)> = by_size
            .iter()
            .filter(|(size, _)| **size != settlement.as_of_size)
            .flat_map(|(_, parts)| parts.iter().map(|part| (part.project, part.currency)))
            .collect();
        for (size, parts) in by_size {
            let ours = lines_of(parts)?;
            let mut theirs = self.audit.due(size, through);
            match size == settlement.as_of_size {
                // Who was posted by a later cut of a month was posted with more than that.
                true => theirs.retain(|payer, _| !resumed.contains(payer) && self.audit.posted_at(*payer) <= size),
                false => theirs.retain(|payer, _| ours.contains_key(payer)),
            }
            compare_lines(&format!("settlement of {through} at {size}"), &ours, &theirs)?;
        }
        Ok(())
    }

    /// Posts the parts one after the other.
    pub(crate) fn post(&mut self, settlement: &Settlement, calm: bool) -> Step<Settled> {
        for posting in &settlement.postings {
            let mut previous = None;
            for part in &posting.parts {
                for mut part in self.cut(part, calm) {
                    if previous.is_some() {
                        part.previous = previous;
                    }
                    let (project, through) = (part.project, part.through);
                    let again = self.dice.one_in(8).then(|| part.clone());
                    match self.operate(Command::PostUsage(part))? {
                        Ok(sequence) => {
                            previous = Some(sequence);
                            self.refuse(again.map(Command::PostUsage))?;
                        }
                        Err(Refusal::StalePosting { .. }) if !calm => return Ok(Settled::Interrupted),
                        Err(refusal) => return Err(format!("{project} through {through}: {refusal}")),
                    }
                    if !calm && self.disturb()? == Settled::Interrupted {
                        return Ok(Settled::Interrupted);
                    }
                }
            }
        }
        Ok(Settled::Done)
    }

    /// What was done is not done again.
    pub(crate) fn refuse(&mut self, again: Option<Command>) -> Step<()> {
        let Some(command) = again else { return Ok(()) };
        let text = format!("{command:?}");
        match self.operate(command)? {
            Ok(_) => Err(format!("accepted twice, or too early: {text}")),
            Err(_) => Ok(()),
        }
    }

    /// Sometimes in two, as if the part were too long.
    fn cut(&mut self, part: &PostUsage, calm: bool) -> Vec<PostUsage> {
        if calm || part.lines.len() < 2 || !self.dice.one_in(3) {
            return vec![part.clone()];
        }
        let (mut first, mut second) = (part.clone(), part.clone());
        second.lines = first.lines.split_off(1 + self.dice.index(part.lines.len() - 1));
        first.complete = false;
        vec![first, second]
    }

    /// Between two parts: other requests, time, a crash.
    fn disturb(&mut self) -> Step<Settled> {
        match self.dice.below(30) {
            0 => {
                self.crash()?;
                return Ok(Settled::Interrupted);
            }
            1 => return Ok(Settled::Interrupted),
            2 | 3 => self.ask()?,
            4 => self.wait()?,
            5 => self.by_hand()?,
            _ => {}
        }
        Ok(Settled::Done)
    }

    /// Drafts of what is not settled.
    pub(crate) fn check_draft(&mut self) -> Step<()> {
        if self.books().ledger_opened().is_none() {
            return Ok(());
        }
        let until = self.records.last().expect("there are records").stamp;
        let until = if self.dice.one_in(2) { until } else { Instant(until.0 - until.0 % 3_600_000_000_000) };
        let postings = self.books().unposted(until).map_err(|error| error.to_string())?;
        let ours = lines_of(postings.iter().flat_map(|posting| &posting.parts))?;
        let theirs = self.audit.due(self.size(), until);
        let (from, settled) = (self.books().ledger_opened(), self.books().settled_through());
        compare_lines(&format!("draft from {from:?}, settled {settled}, until {until}"), &ours, &theirs)
    }
}
