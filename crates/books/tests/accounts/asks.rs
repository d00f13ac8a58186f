//! Asks the books and the oracle the same question, and compares the answers.

use ethnum::U256;
use leasehold_books::{Books, Bucket, Buckets, Dim, Filter, HeldAs, NONE, Question};
use leasehold_meter::Window;
use leasehold_model::{Instant, Name, Priority, Record};
use leasehold_oracle::accounts::{Accounts, Ask, By, Line, Shares, Tenure};
use leasehold_sim::Dice;
use std::collections::BTreeMap;

const DIMS: [(Dim, By); 12] = [
    (Dim::Tenant, By::Tenant),
    (Dim::Project, By::Project),
    (Dim::User, By::User),
    (Dim::Pool, By::Pool),
    (Dim::Node, By::Node),
    (Dim::Priority, By::Priority),
    (Dim::Tag, By::Tag),
    (Dim::Allocation, By::Allocation),
    (Dim::AppInstance, By::AppInstance),
    (Dim::Workload, By::Workload),
    (Dim::HeldAs, By::HeldAs),
    (Dim::ControlPlane, By::ControlPlane),
];

/// A history with its notable instants, and the oracle's accounts of it.
pub(crate) struct Asker {
    pub(crate) oracle: Accounts,
    instants: Vec<Instant>,
    tenures: Vec<Tenure>,
}

/// The answers differ, or one of them is missing.
pub(crate) type Differ = String;

impl Asker {
    pub(crate) fn new(records: &[Record]) -> Self {
        let oracle = Accounts::of(records);
        let mut instants: Vec<Instant> =
            records.iter().flat_map(|record| [record.stamp, record.effective_at]).collect();
        instants.extend(oracle.tenures().flat_map(|tenure| [tenure.from, tenure.to]));
        instants.extend(records.iter().filter_map(|record| {
            if let leasehold_model::body::Body::RateCardPut(card) = &record.body { Some(card.from) } else { None }
        }));
        instants.retain(|at| *at <= oracle.last_stamp());
        let tenures = oracle.tenures().cloned().collect();
        Self { oracle, instants, tenures }
    }

    /// An instant at an event, next to one, on a whole minute or hour, or anywhere.
    fn instant(&self, dice: &mut Dice) -> Instant {
        let at = dice.pick(&self.instants).0;
        let hour = if dice.one_in(2) { 60_000_000_000 } else { 3_600_000_000_000 };
        let drawn = match dice.below(8) {
            0..3 => at,
            3 => at + 1,
            4 => at.saturating_sub(1),
            5 => at / hour * hour,
            6 => at.saturating_sub(dice.below(3_600_000_000_000)),
            _ => 0,
        };
        Instant(drawn).min(self.oracle.last_stamp())
    }

    fn borders(&self, dice: &mut Dice) -> Vec<Instant> {
        let count = if dice.one_in(3) { 3 + dice.below(8) } else { 2 };
        let mut borders: Vec<Instant> = (0..count).map(|_| self.instant(dice)).collect();
        borders.sort_unstable();
        let window = Window::new(borders[0], borders[borders.len() - 1]);
        if dice.one_in(4) {
            let zone = *dice.pick(&[None, Some("Europe/Tallinn"), Some("Asia/Kolkata")]);
            let long = window.length().as_secs();
            let bucket = match long {
                0..40_000 => Bucket::Minute,
                40_000..3_000_000 => Bucket::Hour,
                3_000_000..90_000_000 => Bucket::Day,
                _ => Bucket::Month,
            };
            return Buckets::new(bucket, zone).expect("a zone").borders(window).expect("few");
        }
        borders
    }

    fn question(&self, books: &Books, dice: &mut Dice) -> (Question, Ask) {
        let mut ask = Ask { borders: self.borders(dice), ..Ask::default() };
        let mut question = Question::over(Window::new(Instant(0), Instant(0)), &[]);
        question.borders.clone_from(&ask.borders);
        let mut dims = DIMS.to_vec();
        for _ in 0..*dice.pick(&[0, 0, 1, 1, 1, 2, 2, 3, 5]) {
            let (dim, by) = dims.swap_remove(dice.index(dims.len()));
            question.dims.push(dim);
            ask.by.push(by);
        }
        for _ in 0..*dice.pick(&[0, 0, 0, 1, 1, 2, 3]) {
            if self.tenures.is_empty() {
                break;
            }
            let (_, by) = dims.swap_remove(dice.index(dims.len()));
            let tenure = dice.pick(&self.tenures);
            if set(&mut question.filter, by, tenure, books) {
                ask.only.push((by, tenure.value(by)));
            }
        }
        if dice.one_in(4) && !self.tenures.is_empty() {
            let classes: std::collections::BTreeSet<_> = (0..2).map(|_| dice.pick(&self.tenures).class).collect();
            ask.classes = Some(classes.clone());
            question.filter.classes = Some(classes);
        }
        (question, ask)
    }

    /// Asks one question in every way; `Err(None)` if the books do not answer.
    pub(crate) fn compare(&self, books: &Books, dice: &mut Dice) -> Result<(), Option<Differ>> {
        let (question, ask) = self.question(books, dice);
        let differ = |what: &str, ours: String, theirs: String| {
            Some(format!("{what} of {ask:?}\n  books  {ours}\n  oracle {theirs}"))
        };
        let theirs = self.oracle.usage(&ask);
        let sorted = |order: bool| if order { Ok(()) } else { Err(differ("order", String::new(), String::new())) };
        let answers = [("usage", books.usage(&question)), ("usage by rows", books.usage_by_rows(&question))];
        for (what, usage) in answers {
            let usage = usage.map_err(|_| None)?;
            let (lines, names) = (usage.lines(), &usage.workloads);
            let ours =
                lines.clone().map(|l| (line(books, names, &question, l.key, l.class, l.bucket), U256::from(l.amount)));
            if !ours.clone().eq_unordered(&theirs) {
                return Err(differ(what, format!("{:?}", ours.collect::<Vec<_>>()), format!("{theirs:?}")));
            }
            sorted(lines.is_sorted_by(|a, b| (a.key, a.class, a.bucket) < (b.key, b.class, b.bucket)))?;
        }
        let theirs = self.oracle.peaks(&ask);
        let (lines, names) = books.peaks(&question).map_err(|_| None)?;
        let ours = lines.iter().map(|l| (line(books, &names, &question, l.key, l.class, l.bucket), U256::from(l.peak)));
        if !ours.clone().eq_unordered(&theirs) {
            return Err(differ("peaks", format!("{:?}", ours.collect::<Vec<_>>()), format!("{theirs:?}")));
        }
        // Several classes together, each with a weight of its own, as those of one kind are.
        let group = |class: leasehold_model::ClassNo| (class.0 % 2, 1 + u64::from(class.0));
        let theirs = self.oracle.peaks_together(&ask, group);
        let ours = books.peaks_together(&question, group).map_err(|_| None)?;
        let ours: Vec<_> = ours
            .into_iter()
            .map(|((key, group, bucket), peak)| {
                let (words, _, bucket) = line(books, &names, &question, key, leasehold_model::ClassNo(0), bucket);
                ((words, group, bucket), U256::from(peak))
            })
            .collect();
        if !ours.iter().cloned().eq_unordered(&theirs) {
            return Err(differ("peaks together", format!("{ours:?}"), format!("{theirs:?}")));
        }
        let theirs = self.oracle.cost(&ask);
        let (lines, names) = books.cost(&question).map_err(|_| None)?;
        let ours = lines.iter().map(|l| {
            let line = line(books, &names, &question, l.key, l.class, l.bucket);
            ((line, l.currency), l.money.fraction().expect("far from overflow"))
        });
        if !ours.clone().eq_unordered(&theirs) {
            return Err(differ("cost", format!("{:?}", ours.collect::<Vec<_>>()), format!("{theirs:?}")));
        }
        sorted(
            lines.is_sorted_by(|a, b| (a.key, a.class, a.bucket, a.currency) < (b.key, b.class, b.bucket, b.currency)),
        )
    }

    /// Capacity by state over a window.
    pub(crate) fn compare_capacity(&self, books: &Books, dice: &mut Dice) -> Result<(), Option<Differ>> {
        let mut window = [self.instant(dice), self.instant(dice)];
        window.sort_unstable();
        let (by_pool, by_node) = (dice.one_in(2), dice.one_in(2));
        let asked = Window::new(window[0], window[1]);
        let ours = books.capacity(asked, by_pool, by_node, |_, _, _| true);
        let ours = ours.map_err(|error| match error {
            leasehold_books::BooksError::Damaged => None,
            other => Some(format!("capacity over {asked:?}: {other}")),
        })?;
        let theirs = self.oracle.capacity((window[0], window[1]), by_pool, by_node);
        let as_ours = |shares: &Shares| {
            let Shares { capacity, held, tearing_down, reserved, fenced, offline, idle } = *shares;
            [capacity, held, tearing_down, reserved, fenced, offline, idle]
        };
        let ours: BTreeMap<_, _> = ours
            .into_iter()
            .map(|(key, l)| {
                let parts = [l.capacity, l.held, l.tearing_down, l.reserved, l.fenced, l.offline, l.idle];
                ((key.pool, key.node, key.class), parts.map(U256::from))
            })
            .collect();
        let theirs: BTreeMap<_, _> = theirs.iter().map(|(key, shares)| (*key, as_ours(shares))).collect();
        if ours != theirs {
            let what = "[capacity, held, tearing down, reserved, fenced, offline, idle]";
            return Err(Some(format!("capacity over {asked:?}: {what}\n  books  {ours:?}\n  oracle {theirs:?}")));
        }
        Ok(())
    }
}

/// Sets one field of a filter to the value of a lease; false if the lease has no value.
fn set(filter: &mut Filter, by: By, tenure: &Tenure, books: &Books) -> bool {
    match by {
        By::Tenant => filter.tenant = Some(tenure.tenant),
        By::Project => filter.payer = Some(tenure.payer()),
        By::User => filter.users = tenure.user.map(|user| [user].into()),
        By::Pool => filter.pool = Some(tenure.pool),
        By::Node => filter.node = Some(tenure.node),
        By::Priority => filter.priority = Some(tenure.priority),
        By::Tag => filter.tag = tenure.tag.as_ref().map(|tag| books.tag_named(tag.as_str()).expect("it was met")),
        By::Allocation => filter.allocation = tenure.allocation,
        By::AppInstance => filter.app_instance = tenure.app_instance,
        By::Workload => filter.workload.clone_from(&tenure.workload),
        By::ControlPlane => filter.control_plane = Some(tenure.control_plane),
        // It tells apart; nobody asks for one alone.
        By::HeldAs => return false,
    }
    tenure.value(by).is_some()
}

/// Converts a line of the books to the oracle's types.
fn line(
    books: &Books,
    names: &[Name],
    question: &Question,
    key: leasehold_books::Key,
    class: leasehold_model::ClassNo,
    bucket: u32,
) -> Line {
    let word = |dim: Dim, value: u64| match dim {
        _ if value == NONE => None,
        Dim::Tag => books.tag(u32::try_from(value).expect("a tag")).map(Name::to_string),
        Dim::Workload => Some(names[usize::try_from(value).expect("a place")].to_string()),
        Dim::HeldAs => HeldAs::ALL.iter().find(|one| **one as u64 == value).map(HeldAs::to_string),
        Dim::Priority => Priority::ALL.iter().find(|one| **one as u64 == value).map(Priority::to_string),
        _ => Some(value.to_string()),
    };
    let words = question.dims.iter().zip(key).map(|(dim, value)| word(*dim, value)).collect();
    (words, class, bucket as usize)
}

trait EqUnordered<K, V> {
    fn eq_unordered(self, other: &BTreeMap<K, V>) -> bool;
}

/// Checks that both have the same lines, each once.
impl<K: Ord, V: PartialEq, I: Iterator<Item = (K, V)>> EqUnordered<K, V> for I {
    fn eq_unordered(self, other: &BTreeMap<K, V>) -> bool {
        let mut count = 0;
        let mut mine = BTreeMap::new();
        for (key, value) in self {
            count += 1;
            mine.insert(key, value);
        }
        count == mine.len() && mine == *other
    }
}
