//! The proof file of an invoice tells nothing of other tenants: no name and no number of theirs, wherever it could stand.

use super::bills::another_month;
use super::evidence::evidences;
use super::story::Shelf;
use super::{tell, tell_sharing};
use leasehold_bill::{Evidence, Evident};
use leasehold_model::body::{LedgerShared, SharingPut, UsageReport};
use leasehold_model::{AppInstanceNo, Body, ControlPlaneScope, Record, TenantNo};
use std::collections::{BTreeMap, BTreeSet};

/// The numbers whose owners are known. Nodes, pools, classes and apps are the operator's.
const OWNED: [&str; 8] =
    ["TenantNo", "ProjectNo", "UserNo", "TokenNo", "LeaseNo", "AllocationNo", "AppInstanceNo", "AttachmentNo"];

/// What is said of tenants somewhere: numbers, as `ProjectNo(3)`, and names, in quotes.
pub(super) fn said(what: &impl std::fmt::Debug) -> BTreeSet<String> {
    let text = format!("{what:?}");
    let mut found = BTreeSet::new();
    for kind in OWNED {
        let begin = format!("{kind}(");
        for (at, _) in text.match_indices(&begin) {
            let is_whole = !text[..at].ends_with(|before: char| before.is_alphanumeric());
            let end = text[at..].find(')').expect("it is closed");
            if is_whole {
                found.insert(text[at..=at + end].to_owned());
            }
        }
    }
    let names = text.split('"').skip(1).step_by(2).map(|name| format!("{name:?}"));
    found.extend(names);
    found
}

/// To whom each number and each name belongs, by the records that give them. Several may have one name.
#[derive(Default)]
pub(super) struct Owners(BTreeMap<String, BTreeSet<Option<TenantNo>>>);

impl Owners {
    pub(super) fn of(records: &[Record]) -> Self {
        let mut owners = Self::default();
        for record in records {
            owners.read(record);
        }
        owners
    }

    fn put(&mut self, what: String, tenant: Option<TenantNo>) {
        self.0.entry(what).or_default().insert(tenant);
    }

    fn read(&mut self, record: &Record) {
        let tenant = record.identity.tenant;
        match &record.body {
            Body::TenantPut(put) => {
                self.put(format!("{:?}", put.tenant), Some(put.tenant));
                for name in said(&put.settings).into_iter().filter(|name| name.starts_with('"')) {
                    self.put(name, Some(put.tenant));
                }
            }
            Body::ProjectPut(put) => {
                self.put(format!("{:?}", put.project), Some(put.tenant));
                self.put(format!("{:?}", put.name.as_str()), Some(put.tenant));
            }
            Body::UserPut(put) => {
                self.put(format!("{:?}", put.user), Some(put.tenant));
                self.put(format!("{:?}", put.name.as_str()), Some(put.tenant));
            }
            Body::TokenIssued(_) => {
                for what in said(&record.body).into_iter().filter(|what| what.starts_with("TokenNo")) {
                    self.put(what, tenant);
                }
            }
            Body::Granted(granted) => {
                for lease in 0..granted.members.len() as u64 {
                    self.put(format!("LeaseNo({})", granted.first_lease.0 + lease), tenant);
                }
            }
            Body::AllocationSubmitted(_) => self.put(format!("AllocationNo({})", record.sequence), tenant),
            Body::AttachmentMade(made) => self.put(format!("{:?}", made.attachment), tenant),
            // That of the platform is everybody's.
            Body::AppInstancePut(put) => {
                let owner = tenant.filter(|_| put.scope != ControlPlaneScope::Platform);
                self.put(format!("{:?}", put.app_instance), owner);
                self.put(format!("{:?}", put.name.as_str()), owner);
            }
            _ => {}
        }
    }

    fn is_of_the_platform(&self, runtime: AppInstanceNo) -> bool {
        self.0.get(&format!("{runtime:?}")).is_some_and(|owners| owners.contains(&None))
    }

    /// Each number and name that belongs to somebody.
    pub(super) fn everything(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// What belongs to others and not to this tenant.
    pub(super) fn foreign(&self, said: BTreeSet<String>, tenant: TenantNo) -> BTreeSet<String> {
        let is_foreign = |what: &String| {
            self.0.get(what).is_some_and(|owners| !owners.contains(&Some(tenant)) && !owners.contains(&None))
        };
        said.into_iter().filter(is_foreign).collect()
    }
}

/// What a file may tell of others (docs/explanation/what-is-proved.md): an operator's runtime that all tenants use has an
/// owner, and the operator's policy for it, or for all, may name projects. Only numbers are told.
pub(super) fn allowed(record: &Record, tenant: TenantNo, owners: &Owners) -> BTreeSet<String> {
    // A runtime of the platform may report with a token of the tenant that owns it.
    let reporter = |report: &UsageReport| match owners.is_of_the_platform(report.app_instance) {
        true => said(&report.reporter),
        false => BTreeSet::new(),
    };
    match &record.body {
        Body::AppInstancePut(put) if put.scope == ControlPlaneScope::Platform => {
            said(&(record.identity.tenant, put.project))
        }
        Body::AppInstanceDeleted(_) => said(&record.identity.tenant),
        Body::SharingPut(SharingPut { of, sharing, .. }) if of.tenant != Some(tenant) => {
            let named: Vec<_> = sharing.iter().flat_map(|sharing| sharing.basis.projects()).collect();
            said(&(record.identity.tenant, of, named))
        }
        Body::SharingPut(SharingPut { sharing, .. }) => {
            said(&sharing.iter().flat_map(|sharing| sharing.basis.projects()).collect::<Vec<_>>())
        }
        Body::LedgerShared(LedgerShared { owner, policy, .. }) => said(&(owner, policy.tenant)),
        Body::UsageRecorded(recorded) => reporter(&recorded.report),
        Body::UsageRefused(refused) => reporter(&refused.report),
        _ => BTreeSet::new(),
    }
}

/// The same in the common list.
fn allowed_in_list(evidence: &Evidence) -> BTreeSet<String> {
    let owners: Vec<_> = evidence.common_at_start.app_instances.iter().map(|app| app.project).collect();
    let mut allowed = said(&owners);
    for SharingPut { of, sharing, .. } in &evidence.common_at_start.sharing {
        allowed.extend(said(of));
        allowed.extend(said(&sharing.iter().flat_map(|sharing| sharing.basis.projects()).collect::<Vec<_>>()));
    }
    allowed
}

#[test]
fn nothing_of_other_tenants_is_in_a_proof() {
    let (mut searched, mut told, mut kinds) = (0, 0, BTreeSet::new());
    for seed in 0..40 {
        let told_story = if seed % 2 == 0 { tell_sharing(seed, 200) } else { tell(seed, 200, Shelf::Memory) };
        let mut story = told_story.unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        if seed % 4 < 2 {
            another_month(&mut story).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        }
        let owners = Owners::of(&story.records);
        for evidence in evidences(&story.records) {
            let tenant = evidence.tenant;
            for Evident { record, .. } in &evidence.records {
                let found = owners.foreign(said(record), tenant);
                let allowed = allowed(record, tenant, &owners);
                let beyond: Vec<_> = found.difference(&allowed).collect();
                assert!(beyond.is_empty(), "seed {seed}: {beyond:?} of others than {tenant} in {record:?}");
                told += found.len();
                searched += 1;
                kinds.insert(record.body.word());
            }
            let found = owners.foreign(said(&evidence.common_at_start), tenant);
            let allowed = allowed_in_list(&evidence);
            let beyond: Vec<_> = found.difference(&allowed).collect();
            assert!(beyond.is_empty(), "seed {seed}: {beyond:?} in the common list");
            // A policy of the tenant itself is about its own projects.
            let own = (&evidence.list_at_start, &evidence.claimed_nodes);
            let found = owners.foreign(said(&own), tenant);
            assert!(found.is_empty(), "seed {seed}: {found:?} in the lists of {tenant}");
        }
    }
    println!("{searched} records, {told} numbers that are allowed, kinds {kinds:?}");
    assert!(searched > 5000, "only {searched} records");
    for kind in ["ledger.shared", "sharing.put", "usage.recorded", "node.claimed", "lease.revoked", "app_instance.put"]
    {
        assert!(kinds.contains(kind), "no {kind} was searched");
    }
}

/// A search that finds nothing would prove nothing.
#[test]
fn the_search_sees_numbers_and_names() {
    let record = Record::new(
        7,
        leasehold_model::Instant(1),
        leasehold_model::body::ProjectDeleted { project: leasehold_model::ProjectNo(3) },
    );
    assert!(said(&record).contains("ProjectNo(3)"));
    let name = super::directed::name("p");
    assert_eq!(said(&(Some(TenantNo(4)), name)), BTreeSet::from(["TenantNo(4)".to_owned(), "\"p\"".to_owned()]));
}
