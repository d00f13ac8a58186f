//! Which credits pay for what was spent (SEMANTICS 12), by going through everything that ever happened to them.

use crate::prepaid::{AccountKey, PER_STEP};
use crate::world::World;
use leasehold_model::{CreditSource, Funds, Instant, Name, Steps};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credit {
    pub(crate) number: u64,
    pub(crate) amount: Steps,
    pub(crate) priority: u32,
    pub(crate) expires_at: Option<Instant>,
    pub(crate) source: CreditSource,
    pub(crate) reference: Name,
    /// The record that added it.
    pub(crate) sequence: u64,
}

/// What happens to a credit, with what had been spent by then, in billionths.
#[derive(Clone, Debug)]
pub(crate) enum CreditEvent {
    Added { credit: Credit, spent: i128 },
    Ended { credit: u64, lapsed: Steps, spent: i128 },
}

/// A credit that has not ended, and what is left of it in billionths.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    pub(crate) credit: Credit,
    pub(crate) left: i128,
}

impl Left {
    /// Lower priorities first, then those that expire earlier, then lower numbers.
    fn order(&self) -> (u32, bool, Option<Instant>, u64) {
        let Credit { priority, expires_at, number, .. } = self.credit;
        (priority, expires_at.is_none(), expires_at, number)
    }
}

/// The credits that have not ended, in the order in which they are used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares {
    pub(crate) credits: Vec<Left>,
    /// What was given back; negative where more was spent than there was.
    free: i128,
    counted: i128,
}

impl Shares {
    /// Counts what was spent since the last time.
    fn count(&mut self, spent: i128) {
        let more = spent - self.counted;
        self.counted = spent;
        if more < 0 {
            self.free -= more;
            return;
        }
        let mut rest = more;
        for one in &mut self.credits {
            let part = one.left.min(rest);
            one.left -= part;
            rest -= part;
        }
        self.free -= rest;
    }

    fn happens(&mut self, event: &CreditEvent) {
        match event {
            CreditEvent::Added { credit, spent } => {
                self.count(*spent);
                let amount = credit.amount.0 * PER_STEP;
                // It pays for what nothing has paid for.
                let pays = amount.min((-self.free).max(0));
                self.free += pays;
                self.credits.push(Left { credit: credit.clone(), left: amount - pays });
                self.credits.sort_by_key(Left::order);
                self.credits.retain(|one| one.left > 0);
            }
            CreditEvent::Ended { credit, lapsed, spent } => {
                self.count(*spent);
                let place = self.credits.iter().position(|one| one.credit.number == *credit);
                let one = self.credits.remove(place.expect("it was looked at"));
                self.free += one.left - lapsed.0 * PER_STEP;
                self.credits.retain(|one| one.left > 0);
            }
        }
    }
}

impl World {
    /// The credits of an account as they were counted last.
    pub(crate) fn shares(&self, key: AccountKey) -> Shares {
        let mut shares = Shares::default();
        self.prepaid.accounts[&key].events.iter().for_each(|event| shares.happens(event));
        shares
    }

    /// The whole steps that are left of a credit at an instant; none if it has ended or never was.
    pub(crate) fn left_of(&self, key: AccountKey, number: u64, now: Instant) -> Option<Steps> {
        let mut shares = self.shares(key);
        shares.count(self.spent_of(key, now));
        let one = shares.credits.into_iter().find(|one| one.credit.number == number)?;
        Some(Funds(one.left).whole_steps())
    }

    /// Every credit that was ever added to an account.
    pub(crate) fn credits_ever(&self, key: AccountKey) -> impl Iterator<Item = &Credit> {
        let account = self.prepaid.accounts.get(&key);
        account.into_iter().flat_map(|account| &account.events).filter_map(|event| match event {
            CreditEvent::Added { credit, .. } => Some(credit),
            CreditEvent::Ended { .. } => None,
        })
    }
}
