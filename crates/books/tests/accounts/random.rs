//! Long random histories: many segments, several chunks of closed leases, node losses far in the past.

use crate::history::{Grant, History, charges, prices};
use crate::{books_of, check, from_env};
use leasehold_model::body::{NodeDeleted, Started};
use leasehold_model::rate::{Charge, Period};
use leasehold_model::{Activity, Instant, Priority, Reason, Record, Span};
use leasehold_sim::Dice;
use std::collections::BTreeMap;

const CAPACITY: u64 = 7 * 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Held,
    Revoking,
    TearingDown,
    Fenced,
}

struct Lease {
    node: u32,
    quanta: u64,
    class: u16,
    from: Instant,
    /// While it is held; then, since when it is torn down.
    deadline: Instant,
    phase: Phase,
}

#[derive(Default, Clone)]
struct Node {
    pool: u32,
    drained: bool,
    lost: bool,
    /// Without an agent: leases are closed at once.
    immediate: bool,
    claimed: bool,
    unclean: bool,
}

struct Story<'d> {
    history: History,
    leases: BTreeMap<u64, Lease>,
    nodes: BTreeMap<u32, Node>,
    next_node: u32,
    next_card: u32,
    starts: Vec<(Option<u32>, Instant)>,
    /// Whether some projects pay for what others hold.
    lends: bool,
    dice: &'d mut Dice,
}

fn capacity() -> [(u16, u64); 2] {
    [(0, CAPACITY), (1, 1 << 20)]
}

/// A legal history of about this number of leases, some of them lent.
pub(crate) fn tell(leases: u64, dice: &mut Dice) -> Vec<Record> {
    tell_of(leases, true, dice)
}

/// The same without payers: so few series that whole segments answer.
pub(crate) fn tell_unlent(leases: u64, dice: &mut Dice) -> Vec<Record> {
    tell_of(leases, false, dice)
}

fn tell_of(leases: u64, lends: bool, dice: &mut Dice) -> Vec<Record> {
    let start = Instant(1_772_323_199_000_000_000 + dice.below(3_000_000_000));
    let mut story = Story {
        history: History::begin(start),
        leases: BTreeMap::new(),
        nodes: BTreeMap::new(),
        next_node: 0,
        next_card: 0,
        starts: Vec::new(),
        lends,
        dice,
    };
    for _ in 0..3 {
        story.new_node();
    }
    let mut granted = 0;
    while granted < leases {
        story.time_passes();
        match story.dice.below(40) {
            0..18 => granted += story.grants(),
            18..25 => story.release(),
            25..28 => story.renew(),
            28..30 => story.revoke(),
            30..32 => story.ready(),
            32..36 => story.teardown(),
            36 => story.fences(),
            _ => story.rare(),
        }
    }
    story.time_passes();
    story.history.push(leasehold_model::body::Heartbeat {});
    story.history.records
}

impl Story<'_> {
    fn new_node(&mut self) {
        let (number, pool) = (self.next_node, u32::try_from(self.dice.below(3)).expect("small"));
        self.next_node += 1;
        self.history.node(number, pool, &capacity());
        self.nodes.insert(number, Node { pool, immediate: self.dice.one_in(2), ..Node::default() });
    }

    /// Leases that are due expire, often noticed late, sometimes after an outage.
    fn time_passes(&mut self) {
        let span = match self.dice.below(12) {
            0..3 => Span::ZERO,
            3 => Span(1),
            4..11 => Span(self.dice.below(20_000_000_000)),
            _ if self.dice.one_in(20) => Span::from_secs(self.dice.below(3 * 86_400)),
            _ => Span::from_secs(self.dice.below(300)),
        };
        self.history.pass(span);
        let now = self.history.now;
        if span > Span::from_secs(3600) {
            let software = crate::history::name("again");
            self.history.push(Started { epoch: 2, software, rules_version: 1, clock_accepted: None });
        }
        let held = |lease: &Lease| matches!(lease.phase, Phase::Held | Phase::Revoking);
        let mut due: BTreeMap<(Instant, bool), Vec<u64>> = BTreeMap::new();
        for (number, lease) in self.leases.iter().filter(|(_, lease)| held(lease) && lease.deadline <= now) {
            due.entry((lease.deadline, self.nodes[&lease.node].immediate)).or_default().push(*number);
        }
        for ((deadline, closed), leases) in due {
            self.history.expire(&leases, deadline, closed);
            leases.iter().for_each(|lease| self.ended(*lease, closed));
        }
    }

    fn ended(&mut self, lease: u64, closed: bool) {
        if closed {
            self.leases.remove(&lease);
        } else {
            let lease = self.leases.get_mut(&lease).expect("it was there");
            (lease.phase, lease.deadline) = (Phase::TearingDown, self.history.now);
        }
    }

    fn used(&self, node: u32, class: u16) -> u64 {
        self.leases.values().filter(|lease| lease.node == node && lease.class == class).map(|lease| lease.quanta).sum()
    }

    /// One grant, or many at one instant.
    fn grants(&mut self) -> u64 {
        let many = if self.dice.one_in(15) { 1 + self.dice.below(8) } else { 1 };
        (0..many).filter(|_| self.grant()).count() as u64
    }

    fn grant(&mut self) -> bool {
        let nodes: Vec<u32> = self
            .nodes
            .iter()
            .filter(|(_, node)| !node.drained && !node.lost && !node.unclean)
            .map(|(number, _)| *number)
            .collect();
        if nodes.is_empty() {
            return false;
        }
        let node = *self.dice.pick(&nodes);
        let mut members = Vec::new();
        for (class, most) in [(0u16, 14), (1, 4000)] {
            let quanta = 1 + self.dice.below(most);
            if self.dice.one_in(2) && self.used(node, class) + quanta <= capacity()[usize::from(class)].1 {
                members.push((class, quanta));
            }
        }
        if members.is_empty() {
            return false;
        }
        let pick = |dice: &mut Dice, n: u64| u32::try_from(dice.below(n)).expect("small");
        let tenant = pick(self.dice, 3);
        let ttl = match self.dice.below(10) {
            0 => Span(1),
            1 => Span::from_secs(self.dice.below(86_400)),
            _ => Span(1 + self.dice.below(400_000_000_000)),
        };
        // From a die of its own, so that the other draws stay as they are.
        let mut own = Dice::new(self.history.now.0 ^ u64::from(node) << 40);
        let grant = Grant {
            tenant,
            project: tenant * 10 + pick(self.dice, 2),
            user: self.dice.one_in(2).then(|| pick(self.dice, 4)),
            workload: self.dice.one_in(2).then(|| *self.dice.pick(&["train", "serve", "sweep"])),
            pool: self.nodes[&node].pool,
            node,
            members: members.clone(),
            priority: *self.dice.pick(Priority::ALL),
            allocation: self.dice.one_in(2).then(|| self.dice.below(30)),
            app_instance: self.dice.one_in(3).then(|| self.dice.below(5)),
            source: (self.lends && own.one_in(3)).then(|| tenant * 10 + pick(&mut own, 3)),
            ttl,
        };
        let first = self.history.grant(&grant);
        let (from, deadline) = (self.history.now, self.history.now.saturating_add(ttl));
        for (number, (class, quanta)) in (first..).zip(members) {
            self.leases.insert(number, Lease { node, quanta, class, from, deadline, phase: Phase::Held });
        }
        true
    }

    fn some(&mut self, phase: impl Fn(Phase) -> bool) -> Option<u64> {
        let fitting: Vec<u64> =
            self.leases.iter().filter(|(_, lease)| phase(lease.phase)).map(|(number, _)| *number).collect();
        (!fitting.is_empty()).then(|| *self.dice.pick(&fitting))
    }

    fn release(&mut self) {
        let Some(lease) = self.some(|phase| matches!(phase, Phase::Held | Phase::Revoking)) else { return };
        let (from, node) = (self.leases[&lease].from, self.leases[&lease].node);
        let held = self.history.now.since(from);
        let active = Span(held.0 / 3);
        let activity = Activity { covered: held, busy: u128::from(held.0), active, ..Activity::default() };
        let closed = self.nodes[&node].immediate;
        self.history.release(lease, closed, (held.0 > 0 && self.dice.one_in(2)).then_some(activity));
        self.ended(lease, closed);
    }

    fn renew(&mut self) {
        let Some(lease) = self.some(|phase| phase == Phase::Held) else { return };
        let deadline = self.history.now.saturating_add(Span(1 + self.dice.below(500_000_000_000)));
        self.history.renew(lease, deadline);
        self.leases.get_mut(&lease).expect("there").deadline = deadline;
    }

    fn revoke(&mut self) {
        let Some(lease) = self.some(|phase| phase == Phase::Held) else { return };
        let reason = if self.dice.one_in(2) { Reason::Preempted { by: 3 } } else { Reason::Operator };
        self.history.revoke(lease, reason);
        self.leases.get_mut(&lease).expect("there").phase = Phase::Revoking;
    }

    fn ready(&mut self) {
        let Some(lease) = self.some(|phase| phase == Phase::Revoking) else { return };
        let closed = self.nodes[&self.leases[&lease].node].immediate;
        self.history.ready(lease, closed);
        self.ended(lease, closed);
    }

    fn teardown(&mut self) {
        let Some(lease) = self.some(|phase| phase == Phase::TearingDown) else { return };
        let node = self.leases[&lease].node;
        if self.dice.one_in(6) {
            let since = self.leases[&lease].deadline;
            // Noticed up to an hour late.
            let late = self.dice.below(self.history.now.since(since).0.min(3_600_000_000_000) + 1);
            self.history.fence(lease, Instant(self.history.now.0 - late));
            self.leases.get_mut(&lease).expect("there").phase = Phase::Fenced;
        } else {
            self.history.torn_down(node, lease);
            self.leases.remove(&lease);
        }
    }

    fn fences(&mut self) {
        let Some(lease) = self.some(|phase| phase == Phase::Fenced) else { return };
        self.history.unfence(lease);
        self.leases.remove(&lease);
    }

    fn rare(&mut self) {
        let numbers: Vec<u32> = self.nodes.keys().copied().collect();
        let number = *self.dice.pick(&numbers);
        let node = self.nodes[&number].clone();
        let empty = !self.leases.values().any(|lease| lease.node == number);
        let is_open = !node.claimed && !node.unclean;
        let on = |lease: &Lease| lease.node == number && lease.phase != Phase::Fenced;
        let in_use = self.leases.values().any(on);
        match self.dice.below(18) {
            14 | 15 if empty && is_open && !node.drained && !node.lost => {
                let (tenant, user) = (self.dice.below(3), self.dice.below(4));
                self.history.claim(number, u32::try_from(tenant).expect("small"), u32::try_from(user).expect("small"));
                self.nodes.get_mut(&number).expect("there").claimed = true;
            }
            16 if node.claimed && !in_use => {
                self.history.unclaim(number);
                let node = self.nodes.get_mut(&number).expect("there");
                (node.claimed, node.unclean) = (false, true);
            }
            16 | 17 if node.unclean => {
                self.history.wiped(number);
                self.nodes.get_mut(&number).expect("there").unclean = false;
            }
            0 => {
                self.history.drain(number, !node.drained);
                self.nodes.get_mut(&number).expect("there").drained = !node.drained;
            }
            1 | 2 if node.drained => {
                self.history.drain(number, false);
                self.nodes.get_mut(&number).expect("there").drained = false;
            }
            3 | 4 if !node.lost => self.lose(number),
            5 | 6 if node.lost => {
                self.history.find(number);
                self.nodes.get_mut(&number).expect("there").lost = false;
            }
            7 if empty && is_open => {
                // To another pool, with all it has.
                let pool = u32::try_from(self.dice.below(3)).expect("small");
                self.history.node(number, pool, &capacity());
                self.nodes.get_mut(&number).expect("there").pool = pool;
            }
            8 if is_open => {
                // Larger, or smaller by what is free.
                let free = CAPACITY - self.used(number, 0);
                let gpus = CAPACITY - self.dice.below(free + 1);
                self.history.node(number, node.pool, &[(0, gpus), capacity()[1]]);
                self.history.pass(Span(self.dice.below(5_000_000_000)));
                self.history.node(number, node.pool, &capacity());
            }
            9 if empty && is_open && self.nodes.len() > 3 => {
                self.history.push(NodeDeleted { node: leasehold_model::NodeNo(number) });
                self.nodes.remove(&number);
            }
            10 if self.nodes.len() < 6 => self.new_node(),
            11 => {
                let tenant = u32::try_from(self.dice.below(3)).expect("small");
                let tag = *self.dice.pick(&[None, Some("cc-1"), Some("cc-2"), Some("cc-3")]);
                self.history.tenant(tenant, tag);
            }
            _ if self.dice.one_in(8) => self.prices(),
            _ => {}
        }
    }

    /// A node that was last seen minutes or hours ago is lost: its leases end then.
    fn lose(&mut self, node: u32) {
        let ago = if self.dice.one_in(4) { 7_200_000_000_000 } else { 120_000_000_000 };
        let last_seen = Instant(self.history.now.0 - self.dice.below(ago));
        let held = |lease: &Lease| lease.node == node && matches!(lease.phase, Phase::Held | Phase::Revoking);
        let leases: Vec<u64> = self.leases.iter().filter(|(_, lease)| held(lease)).map(|(number, _)| *number).collect();
        let closed = self.nodes[&node].immediate;
        self.history.lose(node, last_seen, &leases, closed);
        leases.iter().for_each(|lease| self.ended(*lease, closed));
        self.nodes.get_mut(&node).expect("there").lost = true;
    }

    fn prices(&mut self) {
        let from = self.history.now.saturating_add(Span(self.dice.below(2) * self.dice.below(4_000_000_000_000)));
        let pool = self.dice.one_in(2).then(|| u32::try_from(self.dice.below(3)).expect("small"));
        if self.starts.contains(&(pool, from)) || self.starts.contains(&(Some(99), from)) {
            return;
        }
        self.next_card += 1;
        if self.dice.one_in(3) {
            self.starts.push((Some(99), from));
            let minus = Charge::MinusLast(Span(1 + self.dice.below(200_000_000_000)));
            let sorts = [Charge::Full, Charge::None, minus];
            let charges = charges(*self.dice.pick(&sorts), *self.dice.pick(&sorts), *self.dice.pick(&sorts));
            self.history.policy(self.next_card, from, charges);
        } else {
            self.starts.push((pool, from));
            let currency = *self.dice.pick(&["EUR", "EUR", "EUR", "CHF"]);
            let mut card = prices(currency, self.dice.below(1 << 32));
            if self.dice.one_in(2) {
                card.periods.kinds = card.periods.kinds.map(|_| *self.dice.pick(Period::ALL));
                card.periods.classes = vec![(card.classes[0].0, Period::Hour)];
            }
            self.history.card(self.next_card, pool, from, card);
        }
    }
}

/// LEASEHOLD_ACCOUNTS_LONG sets the number of histories.
#[test]
fn long_histories() {
    let count = from_env("LEASEHOLD_ACCOUNTS_LONG", 60);
    let from = from_env("LEASEHOLD_ACCOUNTS_FROM", 0);
    for seed in from..from + count {
        let mut dice = Dice::new(seed ^ 0x0010_4e60);
        let records = tell(900, &mut dice);
        let books = books_of(&records);
        check(&records, &books, 15, &mut dice).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
}

/// More closed leases than fit into two chunks.
#[test]
fn chunks_of_closed_leases() {
    let mut dice = Dice::new(from_env("LEASEHOLD_ACCOUNTS_FROM", 0) ^ 0x0c4a_9c5e);
    let records = tell(13_000, &mut dice);
    let books = books_of(&records);
    assert!(books.closed() > 2 * 4096, "{} closed leases", books.closed());
    check(&records, &books, 12, &mut dice).unwrap_or_else(|what| panic!("{what}"));
}
