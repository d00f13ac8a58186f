//! The statements of a month: what the records of its range are, for each tenant (ADR 25).

use crate::concern::Concern;
use crate::fold::{Contradiction, Fold};
use crate::list::{ClaimedNodes, CommonList, TenantList};
use crate::outside::Outside;
use crate::sorted::Sorted;
use leasehold_model::body::{PeriodStated, RecordSet};
use leasehold_model::{Body, Hash, Month, Record, TenantNo};
use leasehold_tlog::{Frontier, leaf_hash};
use std::collections::BTreeMap;

/// How far the range of a month was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The record lies before the range.
    Before,
    /// The record is in the range.
    Within(Concern),
    /// The record is the cut of the month. Nothing more is to be read.
    Done,
}

/// The lists of all tenants at one sequence: their hashes, and those that somebody wants to see.
#[derive(Clone, Debug)]
struct Lists {
    sequence: u64,
    common: CommonList,
    hashes: BTreeMap<TenantNo, Hash>,
    wanted: BTreeMap<TenantNo, TenantList>,
}

impl Lists {
    fn hash_of(&self, tenant: TenantNo) -> Hash {
        self.hashes.get(&tenant).copied().unwrap_or_else(|| TenantList::empty(tenant).hash())
    }
    fn list_of(&self, tenant: TenantNo) -> Option<TenantList> {
        self.wanted.get(&tenant).cloned()
    }
}

#[derive(Clone, Debug, Default)]
struct Gathered {
    records: Frontier,
    outside: Vec<Outside>,
}

/// Whose lists are returned with the statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    None,
    One(TenantNo),
    All,
}

/// Makes the statements of a month from the records of a journal.
#[derive(Clone, Debug)]
pub struct Statements {
    month: Month,
    fold: Fold,
    wanted: Wanted,
    start: Option<Lists>,
    border: Option<(Lists, Box<Fold>)>,
    common: Frontier,
    tenants: BTreeMap<TenantNo, Gathered>,
    cut: Option<u64>,
}

/// What is stated about one tenant, and what the hashes in it are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedTenant {
    pub statement: PeriodStated,
    pub claimed_nodes: ClaimedNodes,
    /// If lists were wanted.
    pub list_at_start: Option<TenantList>,
    pub list_at_border: Option<TenantList>,
}

/// All statements of a month.
#[derive(Clone, Debug)]
pub struct Stated {
    pub month: Month,
    pub from: u64,
    pub border: u64,
    pub cut: u64,
    pub common_at_start: CommonList,
    pub common_at_border: CommonList,
    pub tenants: BTreeMap<TenantNo, StatedTenant>,
    /// The fold as it stood at the border, from which the next month can begin.
    pub fold_at_border: Fold,
}

impl Statements {
    /// Begins with a fold that stands at the start of the range of the month, or anywhere before.
    pub fn new(fold: Fold, month: Month) -> Self {
        Self {
            month,
            fold,
            wanted: Wanted::None,
            start: None,
            border: None,
            common: Frontier::new(),
            tenants: BTreeMap::new(),
            cut: None,
        }
    }

    /// Returns the lists of a tenant, too.
    #[must_use]
    pub fn with_lists_of(self, tenant: TenantNo) -> Self {
        Self { wanted: Wanted::One(tenant), ..self }
    }

    /// Returns the lists of all tenants, too.
    #[must_use]
    pub fn with_all_lists(self) -> Self {
        Self { wanted: Wanted::All, ..self }
    }

    /// The sequence of the record that has to be taken next.
    pub fn next_sequence(&self) -> u64 {
        self.fold.next_sequence()
    }

    /// How many leases are not closed: what the memory grows with.
    pub fn open_leases(&self) -> usize {
        self.fold.open_leases()
    }

    fn lists(&self) -> Lists {
        let mut lists = Lists {
            sequence: self.fold.next_sequence(),
            common: self.fold.common_list(),
            hashes: BTreeMap::new(),
            wanted: BTreeMap::new(),
        };
        for tenant in self.fold.tenants() {
            let list = self.fold.tenant_list(tenant);
            lists.hashes.insert(tenant, list.hash());
            if self.wanted == Wanted::All || self.wanted == Wanted::One(tenant) {
                lists.wanted.insert(tenant, list);
            }
        }
        lists
    }

    /// Takes the next record of the journal, with its hash, until the cut of the month.
    pub fn take(&mut self, record: &Record, hash: &Hash) -> Result<Progress, Contradiction> {
        if record.sequence != self.fold.next_sequence() {
            return Err(Contradiction::Says("it is not the next record of the journal"));
        }
        if self.cut.is_some() {
            return Err(Contradiction::Says("it comes after the cut of the month"));
        }
        if self.start.is_none() && record.stamp >= self.month.start() {
            if self.fold.last_stamp() >= self.month.start() {
                return Err(Contradiction::Says("the fold begins after the start of the range"));
            }
            self.start = Some(self.lists());
        }
        if self.border.is_none() && record.stamp >= self.month.end() {
            self.border = Some((self.lists(), Box::new(self.fold.clone())));
        }
        if matches!(&record.body, Body::PeriodClosing(closing) if closing.month == self.month) {
            self.cut = Some(record.sequence);
            return Ok(Progress::Done);
        }
        let concern = self.fold.take(record)?;
        if self.start.is_none() {
            return Ok(Progress::Before);
        }
        match concern {
            Concern::Tenant(tenant) => self.tenants.entry(tenant).or_default().records.push(leaf_hash(hash)),
            Concern::Common => self.common.push(leaf_hash(hash)),
            Concern::Nobody => {}
        }
        for (tenant, outside) in self.fold.take_outside() {
            self.tenants.entry(tenant).or_default().outside.push(outside);
        }
        Ok(Progress::Within(concern))
    }

    /// The statements, once the cut was taken; `None` before.
    pub fn finish(self) -> Option<Stated> {
        let (start, (border, fold), cut) = (self.start?, self.border?, self.cut?);
        let common = set_of(&self.common);
        let (common_at_start, common_at_border) = (start.common.hash(), border.common.hash());
        let all = border.hashes.keys().chain(start.hashes.keys()).chain(self.tenants.keys());
        let mut tenants = BTreeMap::new();
        for tenant in all.copied() {
            tenants.entry(tenant).or_insert_with(|| {
                let gathered = self.tenants.get(&tenant).cloned().unwrap_or_default();
                let claimed_nodes = claimed_nodes(gathered.outside);
                let statement = PeriodStated {
                    month: self.month,
                    from: start.sequence,
                    border: border.sequence,
                    cut,
                    records: set_of(&gathered.records),
                    common,
                    list_at_start: start.hash_of(tenant),
                    list_at_border: border.hash_of(tenant),
                    common_at_start,
                    common_at_border,
                    claimed_nodes: claimed_nodes.hash(),
                };
                let (list_at_start, list_at_border) = match self.wanted {
                    Wanted::One(one) if one != tenant => (None, None),
                    Wanted::None => (None, None),
                    Wanted::One(_) | Wanted::All => {
                        let or_empty = |list: Option<TenantList>| list.or_else(|| Some(TenantList::empty(tenant)));
                        (or_empty(start.list_of(tenant)), or_empty(border.list_of(tenant)))
                    }
                };
                StatedTenant { statement, claimed_nodes, list_at_start, list_at_border }
            });
        }
        Some(Stated {
            month: self.month,
            from: start.sequence,
            border: border.sequence,
            cut,
            common_at_start: start.common,
            common_at_border: border.common,
            tenants,
            fold_at_border: *fold,
        })
    }
}

pub(crate) fn set_of(frontier: &Frontier) -> RecordSet {
    RecordSet { count: frontier.size(), root: frontier.root() }
}

fn claimed_nodes(outside: Vec<Outside>) -> ClaimedNodes {
    let (mut nodes, mut own_evictions) = (Vec::new(), Vec::new());
    for fact in outside {
        match fact {
            Outside::Claimed(node) => nodes.push(node),
            Outside::OwnEviction(sequence) => own_evictions.push(sequence),
        }
    }
    ClaimedNodes { nodes: Sorted::new(nodes), own_evictions: Sorted::new(own_evictions) }
}
