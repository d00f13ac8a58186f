//! Where the usage of a line comes from: the leases behind it, as they are known now.

use crate::ask::Filter;
use crate::facts::{Books, BooksError};
use crate::leases::LeaseQuestion;
use crate::row::Row;
use leasehold_meter::Window;
use leasehold_model::ledger::HOUR_NS;
use leasehold_model::rate::Prices;
use leasehold_model::{Instant, Item, LineKey, ProjectNo};

/// A lease behind a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineLease {
    pub row: Row,
    /// The parts of the hour in which it was held at the price of the line.
    pub held: Vec<Window>,
    /// The nanoseconds that were held, and those of them that are not charged.
    pub held_ns: u64,
    pub forgiven_ns: u64,
    /// The charge policy that was in force when the lease ended, or is in force now if it has not ended; none if there
    /// was none until then.
    pub policy_in_force: Option<u32>,
    /// The same, if it does not charge some of the time.
    pub charge_policy: Option<u32>,
}

/// What a line consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineSource {
    pub prices: Prices,
    pub leases: Vec<LineLease>,
    /// Whether there are more leases than were asked for.
    pub has_more: bool,
    /// Charged quanta × nanoseconds of these leases.
    pub usage: u128,
}

impl Books {
    /// The leases behind a line of a payer, in order of number, up to a limit. There are none behind a line of a usage
    /// unit.
    pub fn line_source(&self, payer: ProjectNo, key: &LineKey, limit: usize) -> Result<LineSource, BooksError> {
        let hour = Window::new(key.hour, Instant(key.hour.0.saturating_add(HOUR_NS)));
        let (pieces, prices) = self.pieces_of(key, hour);
        let Item::Class(class) = key.item else {
            return Ok(LineSource { prices, leases: Vec::new(), has_more: false, usage: 0 });
        };
        let tag = key.tag.as_ref().map(|tag| self.tag_named(tag.as_str()).unwrap_or(u32::MAX));
        let filter = Filter {
            project: Some(key.project),
            pool: Some(key.pool),
            priority: Some(key.priority),
            app_instance: key.app_instance,
            classes: Some([class].into()),
            control_plane: Some(key.control_plane),
            ..Filter::default()
        };
        let is_behind = |row: &Row| {
            let of = row.billing_key();
            of.payer == payer
                && of.priced == key.priced
                && of.tag == tag
                && of.app_instance == key.app_instance
                && of.attachment == key.attachment
                && pieces.iter().any(|piece| !row.held.clip(*piece).is_empty())
        };
        let mut source = LineSource { prices, leases: Vec::new(), has_more: false, usage: 0 };
        let mut question = LeaseQuestion { filter, window: Some(hour), standing: None, after: None, limit };
        loop {
            let page = self.leases(&question, is_behind)?;
            for (row, _) in page.leases {
                if source.leases.len() == limit {
                    source.has_more = true;
                    return Ok(source);
                }
                let lease = self.line_lease(row, &pieces);
                source.usage += u128::from(lease.row.quanta) * u128::from(lease.held_ns - lease.forgiven_ns);
                source.leases.push(lease);
            }
            match page.next {
                Some(next) => question.after = Some(next),
                None => return Ok(source),
            }
        }
    }

    /// The parts of an hour in which the prices of a line were in force, and these prices.
    fn pieces_of(&self, key: &LineKey, hour: Window) -> (Vec<Window>, Prices) {
        let mut borders = vec![hour.from];
        borders.extend(self.schedule.changes(key.pool, hour));
        borders.push(hour.to);
        let (mut pieces, mut prices) = (Vec::new(), None);
        for pair in borders.windows(2) {
            let (card, of) = self.schedule.version_at(key.pool, pair[0]);
            if card == key.card {
                pieces.push(Window::new(pair[0], pair[1]));
                prices = Some(of);
            }
        }
        let prices = prices.unwrap_or_else(|| self.schedule.prices_at(key.pool, hour.from));
        (pieces, prices.clone())
    }

    fn line_lease(&self, row: Row, pieces: &[Window]) -> LineLease {
        // What is held now is known up to the last record.
        let known = Window::new(row.held.from, row.held.to.min(self.last_stamp.max(row.held.from)));
        let held_until = if row.end == crate::row::End::Held { known } else { row.held };
        let held: Vec<Window> =
            pieces.iter().map(|piece| held_until.clip(*piece)).filter(|part| !part.is_empty()).collect();
        let sum = |parts: &[Window]| parts.iter().map(|part| part.length().0).sum::<u64>();
        let forgiven = self.forgiven(&row);
        let forgiven: Vec<Window> = held.iter().filter_map(|part| Some(part.clip(forgiven?))).collect();
        let (held_ns, forgiven_ns) = (sum(&held), sum(&forgiven));
        let policy_in_force = self.schedule.policy_at(held_until.to).map(|policy| policy.policy);
        let charge_policy = policy_in_force.filter(|_| forgiven_ns > 0);
        LineLease { row, held, held_ns, forgiven_ns, policy_in_force, charge_policy }
    }
}
