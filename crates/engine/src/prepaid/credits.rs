//! Which credit pays for what: credits are used by priority, then by expiry, then by number (SEMANTICS 12).
//!
//! What was spent is counted on the credits when one is added or lapses. Until then it does not matter which of them
//! pays.

use leasehold_model::{Funds, Instant, Steps};

/// A credit that is not used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credit {
    pub number: u64,
    pub amount: Steps,
    pub left: Funds,
    pub priority: u32,
    pub expires_at: Option<Instant>,
}

impl Credit {
    fn rank(&self) -> (u32, Instant, u64) {
        (self.priority, self.expires_at.unwrap_or(Instant::MAX), self.number)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Credits {
    /// In the order of their use.
    all: Vec<Credit>,
    /// How many there ever were.
    pub(crate) numbers: u64,
    /// What was spent when it was last counted.
    pub(crate) counted: Funds,
    /// What was given back. It does not expire, and is used last.
    pub(crate) returned: Funds,
    /// What was spent beyond all credit. The next one pays for it.
    pub(crate) overdrawn: Funds,
}

fn take(from: &mut Funds, wanted: &mut Funds) {
    let taken = Funds(from.0.min(wanted.0).max(0));
    *from = from.minus(taken);
    *wanted = wanted.minus(taken);
}

impl Credits {
    pub(crate) fn all(&self) -> &[Credit] {
        &self.all
    }

    /// Counts what was spent since the last time on the credits, all in all `spent`.
    pub(crate) fn count(&mut self, spent: Funds) {
        let mut more = spent.minus(self.counted);
        self.counted = spent;
        if more >= Funds::ZERO {
            self.all.iter_mut().for_each(|credit| take(&mut credit.left, &mut more));
            take(&mut self.returned, &mut more);
            self.overdrawn = self.overdrawn.plus(more);
        } else {
            let mut back = Funds(-more.0);
            take(&mut self.overdrawn, &mut back);
            self.returned = self.returned.plus(back);
        }
        self.all.retain(|credit| credit.left > Funds::ZERO);
    }

    /// Adds a credit, which pays for what is overdrawn.
    pub(crate) fn add(&mut self, mut credit: Credit) {
        self.numbers = self.numbers.max(credit.number);
        take(&mut credit.left, &mut self.overdrawn);
        if credit.left > Funds::ZERO {
            self.restore(credit);
        }
    }

    /// Puts a credit in its place.
    pub(crate) fn restore(&mut self, credit: Credit) {
        let place = self.all.partition_point(|other| other.rank() < credit.rank());
        self.all.insert(place, credit);
    }

    pub(crate) fn get(&self, number: u64) -> Option<&Credit> {
        self.all.iter().find(|credit| credit.number == number)
    }

    /// Removes a credit that lapsed. What is less than a step of it stays. One that is used up is not there any more.
    pub(crate) fn lapse(&mut self, number: u64, amount: Steps) -> Option<()> {
        let Some(place) = self.all.iter().position(|credit| credit.number == number) else {
            return (amount == Steps::ZERO).then_some(());
        };
        let rest = self.all.remove(place).left.minus(amount.into());
        self.returned = self.returned.plus(rest);
        (rest >= Funds::ZERO).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credit(number: u64, units: i128, priority: u32, expires_at: Option<u64>) -> Credit {
        let amount = Steps(units * 1_000_000);
        Credit { number, amount, left: amount.into(), priority, expires_at: expires_at.map(Instant) }
    }

    fn units(units: i128) -> Funds {
        Funds(units * 1_000_000_000)
    }

    fn left(credits: &Credits) -> Vec<(u64, i128)> {
        credits.all().iter().map(|credit| (credit.number, credit.left.0 / 1_000_000_000)).collect()
    }

    #[test]
    fn credits_are_used_by_priority_then_expiry_then_number() {
        let mut credits = Credits::default();
        credits.add(credit(1, 5, 2, None));
        credits.add(credit(2, 5, 1, None));
        credits.add(credit(3, 5, 1, Some(9)));
        credits.add(credit(4, 5, 1, Some(9)));
        assert_eq!(left(&credits), [(3, 5), (4, 5), (2, 5), (1, 5)]);
        credits.count(units(7));
        assert_eq!(left(&credits), [(4, 3), (2, 5), (1, 5)]);
        credits.count(units(14));
        assert_eq!(left(&credits), [(2, 1), (1, 5)]);
    }

    #[test]
    fn a_later_credit_does_not_pay_for_what_was_spent_before() {
        let mut credits = Credits::default();
        credits.add(credit(1, 100, 5, None));
        credits.count(units(60));
        credits.add(credit(2, 50, 1, Some(9)));
        assert_eq!(left(&credits), [(2, 50), (1, 40)]);
        assert_eq!(credits.lapse(2, Steps(50_000_000)), Some(()));
        assert_eq!(left(&credits), [(1, 40)]);
    }

    #[test]
    fn the_next_credit_pays_for_what_is_overdrawn_and_what_is_given_back_stays() {
        let mut credits = Credits::default();
        credits.add(credit(1, 5, 1, None));
        credits.count(units(7));
        assert_eq!((left(&credits), credits.overdrawn), (vec![], units(2)));
        credits.add(credit(2, 5, 1, Some(9)));
        assert_eq!((left(&credits), credits.overdrawn), (vec![(2, 3)], Funds::ZERO));
        credits.count(units(6));
        assert_eq!((left(&credits), credits.returned), (vec![(2, 3)], units(1)));
        credits.count(units(10));
        assert_eq!((left(&credits), credits.returned, credits.overdrawn), (vec![], Funds::ZERO, Funds::ZERO));
    }
}
