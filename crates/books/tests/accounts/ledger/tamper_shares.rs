//! Changes of the shares of what control planes cost, and of what they follow from.

use super::stakes;
use super::tamper::{Change, Expected, forged};
use leasehold_bill::{Evidence, Sorted};
use leasehold_model::body::{
    LedgerShared, PolicyScope, ServiceTier, Sharing, SharingBasis, SharingMethod, SharingPut, UsageRecorded,
};
use leasehold_model::{AppTypeNo, Body, Month, Name, ProjectNo, Record, Steps, UnitNo};

/// Changes the first share of the month that fits.
fn in_share(evidence: &mut Evidence, mut change: impl FnMut(Option<ProjectNo>, &mut LedgerShared) -> bool) -> bool {
    let of = (evidence.month, evidence.currency);
    evidence.records.iter_mut().any(|evident| {
        let project = evident.record.identity.project;
        match &mut evident.record.body {
            Body::LedgerShared(shared) if (shared.month, shared.currency) == of => {
                let mut changed = shared.clone();
                let is_changed = change(project, &mut changed);
                if is_changed {
                    *shared = changed;
                }
                is_changed
            }
            _ => false,
        }
    })
}

const fn share(what: &'static str, make: fn(&mut Evidence) -> bool) -> Change {
    forged(what, Expected::Entry, make)
}

/// The shares of the month.
fn shares(evidence: &Evidence) -> Vec<(ProjectNo, LedgerShared)> {
    let of = (evidence.month, evidence.currency);
    let shares = stakes::until_invoice(evidence).filter_map(|record| match &record.body {
        Body::LedgerShared(shared) if (shared.month, shared.currency) == of => {
            Some((record.identity.project?, shared.clone()))
        }
        _ => None,
    });
    shares.collect()
}

/// Changes the policies by which shares of the month were made, wherever they lie.
fn in_policies(evidence: &mut Evidence, change: fn(&mut SharingPut) -> bool) -> bool {
    let shares = shares(evidence);
    let deciding =
        |put: &SharingPut| shares.iter().any(|(_, shared)| (shared.policy, shared.version) == (put.of, put.version));
    let mut changed = false;
    let mut each = |put: SharingPut| {
        let mut other = put.clone();
        let is_changed = deciding(&put) && change(&mut other);
        changed |= is_changed;
        if is_changed { other } else { put }
    };
    evidence.common_at_start.sharing = Sorted::new(evidence.common_at_start.sharing.iter().cloned().map(&mut each));
    evidence.list_at_start.sharing = Sorted::new(evidence.list_at_start.sharing.iter().cloned().map(&mut each));
    for evident in &mut evidence.records {
        if let Body::SharingPut(put) = &mut evident.record.body {
            *put = each(put.clone());
        }
    }
    changed
}

/// Work that counts in the weight of a share by usage: of the month, after the opening of the ledger and before the cut.
fn is_weighed(record: &Record, recorded: &UsageRecorded, month: Month, shares: &[(ProjectNo, LedgerShared)]) -> bool {
    let report = &recorded.report;
    let in_month = Month::of(report.from) == month && Month::of(report.to) == month;
    in_month
        && !report.control_plane
        && report.quantity.0 > 1
        && shares.iter().any(|(project, shared)| {
            record.identity.project == Some(*project)
                && (shared.app_instance, shared.unit) == (report.app_instance, Some(report.unit))
                && shared.method == SharingMethod::ByUsage
                && shared.weight.0 > 0
        })
}

pub(super) const SHARE_CHANGES: &[Change] = &[
    share("the weight of a share is higher", |e| {
        in_share(e, |_, shared| {
            shared.weight.0 += 1;
            shared.weight < shared.total_weight
        })
    }),
    share("the weight and the share are lower", |e| {
        in_share(e, |_, shared| {
            let is_one = shared.weight.0 > 1 && shared.share.0 > 1 && shared.booked == shared.share;
            // They fit together, and what is booked fits as well.
            shared.weight.0 /= 2;
            shared.share.0 /= 2;
            shared.booked = shared.share;
            is_one
        })
    }),
    share("the sum of the weights is below the tenant's", |e| {
        in_share(e, |_, shared| {
            let is_one = shared.weight.0 > 0;
            shared.total_weight.0 = shared.weight.0.saturating_sub(1);
            is_one
        })
    }),
    share("the pool is another", |e| {
        in_share(e, |_, shared| {
            // A pool that does not fit the share; whether another one would fit is known to the owner alone.
            shared.pool.0 *= 3;
            shared.weight.0 > 0 && shared.share.0.unsigned_abs() > 2
        })
    }),
    share("the pool of the owner is another", |e| {
        in_share(e, |project, shared| {
            shared.pool.0 += 1;
            project == Some(shared.owner)
        })
    }),
    share("a share is higher", |e| {
        in_share(e, |project, shared| {
            // What the owner of a shared runtime bears depends on other tenants; only what is booked says how much.
            let is_known = project != Some(shared.owner) || shared.booked != Steps::ZERO;
            // Two steps more are more than any rounding.
            shared.share.0 += 2;
            is_known
        })
    }),
    share("a share books more", |e| {
        in_share(e, |_, shared| {
            shared.booked.0 += 1;
            true
        })
    }),
    share("a share that is reported is booked", |e| {
        in_share(e, |project, shared| {
            let is_report =
                shared.booked == Steps::ZERO && shared.share != Steps::ZERO && project != Some(shared.owner);
            shared.booked = shared.share;
            is_report
        })
    }),
    share("a share names another version of its policy", |e| {
        in_share(e, |_, shared| {
            shared.version += 1;
            true
        })
    }),
    share("a share names another policy", |e| {
        in_share(e, |_, shared| {
            shared.policy = PolicyScope { app_type: AppTypeNo(999), tenant: None, app_instance: None };
            true
        })
    }),
    share("a share is by another method", |e| {
        in_share(e, |_, shared| {
            let is_even = shared.method == SharingMethod::Even;
            shared.method = if is_even { SharingMethod::ByTier } else { SharingMethod::Even };
            true
        })
    }),
    share("a share is by another unit", |e| {
        in_share(e, |_, shared| {
            shared.unit = Some(shared.unit.map_or(UnitNo(1), |unit| UnitNo(unit.0 + 1)));
            true
        })
    }),
    share("a share names another service tier", |e| {
        in_share(e, |_, shared| {
            shared.tier = Some(Name::new("another").expect("a name"));
            true
        })
    }),
    share("a share names another owner", |e| {
        in_share(e, |_, shared| {
            shared.owner.0 += 1000;
            true
        })
    }),
    share("a policy has another version", |e| {
        in_policies(e, |put| {
            put.version += 1;
            true
        })
    }),
    share("a policy makes reports instead of entries", |e| {
        // What is not billable is given back whatever the policy says.
        let is_booked =
            |shared: &LedgerShared| shared.booked != Steps::ZERO && shared.method != SharingMethod::NotBillable;
        let all = shares(e);
        !all.is_empty()
            && all.iter().all(|(_, shared)| is_booked(shared))
            && in_policies(e, |put| match &mut put.sharing {
                Some(sharing) if sharing.entries && sharing.basis != SharingBasis::Owner => {
                    sharing.entries = false;
                    true
                }
                _ => false,
            })
    }),
    share("a policy has other percentages", |e| {
        let own: Vec<ProjectNo> =
            shares(e).iter().filter(|(_, of)| of.weight.0 > 0).map(|(project, _)| *project).collect();
        !own.is_empty()
            && in_policies(e, |put| match &mut put.sharing {
                Some(Sharing { basis: SharingBasis::Fixed(weights), .. }) => {
                    weights.iter_mut().for_each(|(_, percent)| percent.0 += 1);
                    true
                }
                _ => false,
            })
            && shares(e).iter().any(|(_, of)| of.method == SharingMethod::Fixed && of.weight.0 > 0)
    }),
    share("a policy has other tiers", |e| {
        in_policies(e, |put| match &mut put.sharing {
            Some(Sharing { basis: SharingBasis::ByTier(tiers), .. }) => {
                tiers.tiers.iter_mut().for_each(|ServiceTier { weight, .. }| weight.0 += 1);
                true
            }
            _ => false,
        }) && shares(e).iter().any(|(_, shared)| shared.method == SharingMethod::ByTier && shared.weight.0 > 0)
    }),
    share("work that was weighed is less", |e| {
        let (month, shares) = (e.month, shares(e));
        let mut opened = e.common_at_start.opened.is_some();
        let cut = e.statement.1.cut;
        e.records.iter_mut().filter(|evident| evident.sequence < cut).any(|evident| {
            let before = evident.record.clone();
            match &mut evident.record.body {
                Body::LedgerOpened(_) => {
                    opened = true;
                    false
                }
                Body::UsageRecorded(recorded) if opened && is_weighed(&before, recorded, month, &shares) => {
                    recorded.report.quantity.0 -= 1;
                    true
                }
                _ => false,
            }
        })
    }),
    forged("a share is left out", Expected::Invoice("shares"), |e| {
        let (of, mut seen) = ((e.month, e.currency), Vec::new());
        let is_one = |record: &Record| match &record.body {
            Body::LedgerShared(shared) => (shared.month, shared.currency) == of && shared.booked != Steps::ZERO,
            _ => false,
        };
        for evident in e.records.iter().filter(|evident| is_one(&evident.record)) {
            if let Body::LedgerShared(shared) = &evident.record.body {
                seen.push((
                    shared.app_instance,
                    evident.sequence,
                    evident.record.identity.project == Some(shared.owner),
                ));
            }
        }
        // That of the owner, of a decision that is known by another share.
        let found = seen
            .iter()
            .find(|(app, _, is_owner)| *is_owner && seen.iter().any(|(other, _, is_owner)| other == app && !is_owner));
        let Some((_, sequence, _)) = found else { return false };
        e.records.retain(|evident| evident.sequence != *sequence);
        true
    }),
];
