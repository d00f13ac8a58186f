//! Counts notable events of shared cost and of work that is charged in a history.

use leasehold_model::body::{LedgerPosted, LedgerShared, SharingBasis, SharingMethod, SharingPut, UsageRecorded};
use leasehold_model::ledger::Item;
use leasehold_model::{
    Account, AppInstanceNo, AttachmentNo, Body, ControlPlaneScope, Month, ProjectNo, Record, Steps, TenantNo,
    UsageCharge,
};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
struct Seen {
    scopes: BTreeMap<AppInstanceNo, ControlPlaneScope>,
    /// The source projects of attachments.
    lenders: BTreeMap<AttachmentNo, ProjectNo>,
    gone: BTreeSet<ProjectNo>,
    /// The policies at the last cut, and those set since.
    policies: BTreeMap<leasehold_model::body::PolicyScope, SharingPut>,
    at_cut: BTreeMap<leasehold_model::body::PolicyScope, SharingPut>,
    credit: BTreeSet<TenantNo>,
    /// The record that opened the ledger.
    opened_by: Option<u64>,
    /// Who has used which runtime.
    users: BTreeSet<(AppInstanceNo, Option<ProjectNo>)>,
    /// Runtimes of which a line of the control plane was corrected.
    corrected: BTreeSet<AppInstanceNo>,
    /// The records of the decision that is being read.
    decision: Vec<(Option<TenantNo>, Option<ProjectNo>, LedgerShared)>,
    /// What was booked as shares for tenants in a month.
    booked: BTreeSet<(TenantNo, Month)>,
}

pub(crate) fn count(records: &[Record], notable: &mut BTreeMap<&'static str, u64>) {
    let mut seen = Seen::default();
    for record in records {
        for what in seen.see(record) {
            *notable.entry(what).or_insert(0) += 1;
        }
    }
    for what in seen.decided() {
        *notable.entry(what).or_insert(0) += 1;
    }
}

fn held(facts: &[(bool, &'static str)]) -> Vec<&'static str> {
    facts.iter().filter(|(holds, _)| *holds).map(|(_, what)| *what).collect()
}

impl Seen {
    fn see(&mut self, record: &Record) -> Vec<&'static str> {
        let of_decision = matches!(record.body, Body::LedgerShared(_)) && record.continues;
        let mut found = if of_decision { Vec::new() } else { self.decided() };
        if let Body::LedgerShared(shared) = &record.body {
            let identity = &record.identity;
            if let Some(tenant) = identity.tenant.filter(|_| shared.booked != Steps::ZERO) {
                self.booked.insert((tenant, shared.month));
            }
            self.decision.push((identity.tenant, identity.project, shared.clone()));
        } else if let Body::AppInstancePut(put) = &record.body {
            self.scopes.insert(put.app_instance, put.scope);
        } else if let Body::AttachmentMade(made) = &record.body {
            self.lenders.insert(made.attachment, made.source_project);
        } else if let Body::ProjectDeleted(gone) = &record.body {
            self.gone.insert(gone.project);
        } else if let Body::SharingPut(put) = &record.body {
            found.extend(self.see_policy(put));
        } else if let Body::LedgerOpened(_) = &record.body {
            self.opened_by = Some(record.sequence);
        } else if let Body::PeriodClosing(_) = &record.body {
            self.at_cut = self.policies.clone();
        } else if let Body::PrepaidToppedUp(_) = &record.body {
            self.credit.extend(record.identity.tenant);
        } else if let Body::InvoiceIssued(invoice) = &record.body {
            let shared = record.identity.tenant.is_some_and(|tenant| self.booked.contains(&(tenant, invoice.month)));
            found.extend(held(&[(shared, "shares: invoiced")]));
        } else if let Body::LedgerCorrected(corrected) = &record.body {
            let line = corrected.line.as_ref().filter(|line| line.key.control_plane);
            let line = line.filter(|_| corrected.month == corrected.original_month);
            self.corrected.extend(line.and_then(|line| line.key.app_instance));
            let by_hand = corrected.reversal.iter().any(|leg| matches!(leg.account, Account::SharedRuntime(_)));
            found.extend(held(&[(by_hand, "shares: corrected by hand")]));
        } else if let Body::LedgerPosted(posted) = &record.body {
            found.extend(see_posting(record, posted));
        } else if let Body::UsageRecorded(recorded) = &record.body {
            found.extend(self.see_usage(record, recorded));
        }
        found
    }

    fn see_policy(&mut self, put: &SharingPut) -> Vec<&'static str> {
        let old = self.policies.insert(put.of, put.clone());
        let of_tenant = put.of.tenant.is_some() && put.of.app_instance.is_none();
        let kept = old.as_ref().is_some_and(|old| {
            old.distributable.is_some() && old.distributable == put.distributable && old.sharing != put.sharing
        });
        held(&[
            (put.of.tenant.is_none(), "sharing: of an app"),
            (of_tenant, "sharing: of an app for a tenant"),
            (put.of.app_instance.is_some(), "sharing: of an instance"),
            (put.sharing.is_none(), "sharing: no method"),
            (kept, "sharing: another method as far as the operator allows it"),
            (put.version > 2, "sharing: a third version"),
        ])
    }

    fn see_usage(&mut self, record: &Record, recorded: &UsageRecorded) -> Vec<&'static str> {
        let report = &recorded.report;
        if !report.control_plane {
            self.users.insert((report.app_instance, record.identity.project));
        }
        let is_work = !report.control_plane && self.scopes[&report.app_instance] == ControlPlaneScope::Tenant;
        let lender = report.attachment.and_then(|lent| self.lenders.get(&lent)).copied();
        let (new, old) = (recorded.creditor, recorded.replaced_creditor);
        let before = recorded.replaces.as_ref().filter(|old| !old.control_plane).map(|old| old.sequence);
        let is_early = before.is_some_and(|before| self.opened_by.is_some_and(|opened| before < opened));
        held(&[
            (new.is_some() && report.attachment.is_none(), "work: credited to the owner"),
            (new.is_some() && report.attachment.is_some(), "work: credited to the lender"),
            (is_work && new.is_none() && lender == record.identity.project && lender.is_some(), "work: of the lender"),
            (is_work && new.is_none() && lender.is_some_and(|of| self.gone.contains(&of)), "work: the lender is gone"),
            (is_early, "work: of the time before the ledger superseded"),
            (new.is_some() && old.is_some(), "work: superseded"),
            (new.is_some() && old.is_some() && new != old, "work: another creditor than before"),
            (new.is_none() && old.is_some(), "work: no longer credited"),
            (
                new.is_some() && recorded.replaces.as_ref().is_some_and(|old| old.charge == UsageCharge::Reported),
                "work: charged where it was reported",
            ),
            (
                new.is_some() && record.identity.tenant.is_some_and(|of| self.credit.contains(&of)),
                "work: paid in advance",
            ),
        ])
    }

    /// What is notable in the decision that was read last.
    fn decided(&mut self) -> Vec<&'static str> {
        let records = std::mem::take(&mut self.decision);
        let Some((_, _, first)) = records.first() else { return Vec::new() };
        let own = records.iter().find(|(_, project, shared)| *project == Some(shared.owner));
        let Some((_, _, own)) = own else { return Vec::new() };
        let policy = self.at_cut.get(&first.policy);
        let basis = policy.and_then(|put| put.sharing.as_ref()).map(|sharing| &sharing.basis);
        let names_gone = matches!(basis, Some(SharingBasis::Fixed(weights))
            if weights.iter().any(|(project, _)| self.gone.contains(project)));
        let user_is_gone = self
            .users
            .iter()
            .any(|(app, of)| *app == first.app_instance && of.is_some_and(|of| self.gone.contains(&of)));
        let by_users = matches!(first.method, SharingMethod::Even | SharingMethod::ByUsage | SharingMethod::ByTier);
        let among = records.iter().filter(|(.., shared)| shared.share != Steps::ZERO).count();
        let tenants: BTreeSet<_> = records.iter().map(|(tenant, ..)| *tenant).collect();
        let tiers: BTreeSet<_> =
            records.iter().filter_map(|(.., shared)| shared.tier.as_ref()).map(leasehold_model::Name::as_str).collect();
        let several = match first.method {
            _ if among < 2 => None,
            SharingMethod::Even => Some("shares: even among several"),
            SharingMethod::ByUsage => Some("shares: by usage among several"),
            SharingMethod::ByQuota => Some("shares: by quota among several"),
            SharingMethod::Fixed => Some("shares: fixed among several"),
            SharingMethod::ByTier => Some("shares: by tier among several"),
            SharingMethod::None | SharingMethod::Owner | SharingMethod::NotBillable => None,
        };
        let divides = !matches!(first.method, SharingMethod::Owner | SharingMethod::NotBillable);
        let is_report = among > 1 && records.iter().all(|(.., shared)| shared.booked == Steps::ZERO);
        let of = &first.policy;
        let paid = |(tenant, _, shared): &(Option<TenantNo>, Option<ProjectNo>, LedgerShared)| {
            shared.booked != Steps::ZERO && tenant.is_some_and(|tenant| self.credit.contains(&tenant))
        };
        let since = policy != self.policies.get(of);
        let mut found = held(&[
            (first.method == SharingMethod::Owner, "shares: by the owner"),
            (first.method == SharingMethod::NotBillable, "shares: not billable"),
            (divides && own.total_weight.0 == 0, "shares: nobody takes part"),
            (among > 1 && own.weight.0 == 0, "shares: among others than the owner"),
            (is_report, "shares: only a report"),
            (first.pool.0 < 0, "shares: a negative pool"),
            (among > 1 && first.pool.0 < 0, "shares: a negative pool among several"),
            (names_gone && own.total_weight.0 > 0, "shares: of a project that is gone"),
            (among > 1 && names_gone, "shares: of a project that is gone and of others"),
            (by_users && user_is_gone, "shares: a user is gone"),
            (tenants.len() > 1, "shares: between tenants"),
            (tiers.len() > 1, "shares: in several tiers"),
            (divides && of.tenant.is_none(), "shares: by the policy of an app"),
            (divides && of.tenant.is_some() && of.app_instance.is_none(), "shares: by the policy of a tenant"),
            (divides && of.app_instance.is_some(), "shares: by the policy of an instance"),
            (since, "shares: by a policy that was changed since the cut"),
            (records.iter().any(paid), "shares: paid in advance"),
            (self.corrected.contains(&first.app_instance), "shares: of what was corrected"),
            (first.method == SharingMethod::ByUsage && among > 2, "shares: by usage among three"),
        ]);
        found.extend(several);
        found
    }
}

fn see_posting(record: &Record, posted: &LedgerPosted) -> Vec<&'static str> {
    let payer = record.identity.project;
    let of_unit = posted.lines.iter().filter(|line| matches!(line.key.item, Item::Unit(_)));
    let credits = of_unit.clone().any(|line| Some(line.key.project) != payer);
    held(&[(of_unit.clone().count() > 0, "work: usage posted"), (credits, "work: posted to the creditor")])
}
