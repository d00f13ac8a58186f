//! The names of what an invoice is about, from the lists and the records of its proof.

use leasehold_bill::Evidence;
use leasehold_ledger::InvoiceLineKey;
use leasehold_model::ledger::Item;
use leasehold_model::{AppInstanceNo, Body, ClassNo, ClassSpec, PoolNo, ProjectNo, UnitNo};
use std::collections::BTreeMap;

/// Names by number. Where something was renamed, the last name counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) tenant: Option<String>,
    projects: BTreeMap<ProjectNo, String>,
    classes: BTreeMap<ClassNo, ClassSpec>,
    pools: BTreeMap<PoolNo, String>,
    units: BTreeMap<UnitNo, String>,
    apps: BTreeMap<AppInstanceNo, String>,
}

impl Names {
    pub(super) fn of(evidence: &Evidence) -> Self {
        let (common, own) = (&evidence.common_at_start, &evidence.list_at_start);
        let mut names = Self {
            tenant: own.name.as_ref().map(ToString::to_string),
            projects: own.projects.iter().map(|(number, name)| (*number, name.to_string())).collect(),
            classes: common.classes.iter().cloned().collect(),
            pools: common.pools.iter().map(|(number, name)| (*number, name.to_string())).collect(),
            units: common.units.iter().map(|unit| (unit.unit, unit.name.to_string())).collect(),
            apps: BTreeMap::new(),
        };
        for app in common.app_instances.iter().chain(own.app_instances.iter()) {
            names.apps.insert(app.app_instance, app.name.to_string());
        }
        evidence.records.iter().for_each(|evident| names.read(&evident.record.body));
        names
    }

    fn read(&mut self, body: &Body) {
        if let Body::TenantPut(put) = body {
            self.tenant = Some(put.settings.name.to_string());
        } else if let Body::ProjectPut(put) = body {
            self.projects.insert(put.project, put.name.to_string());
        } else if let Body::ClassPut(put) = body {
            self.classes.insert(put.class, put.spec.clone());
        } else if let Body::PoolPut(put) = body {
            self.pools.insert(put.pool, put.name.to_string());
        } else if let Body::UsageUnitPut(put) = body {
            self.units.insert(put.unit, put.name.to_string());
        } else if let Body::AppInstancePut(put) = body {
            self.apps.insert(put.app_instance, put.name.to_string());
        }
    }

    pub(super) fn project(&self, number: ProjectNo) -> String {
        self.projects.get(&number).cloned().unwrap_or_else(|| format!("project {}", number.0))
    }

    /// What a line of an invoice is about.
    pub(super) fn line(&self, key: &InvoiceLineKey) -> String {
        let item = match key.item {
            Some(Item::Class(class)) => {
                self.classes.get(&class).map_or_else(|| format!("class {}", class.0), |spec| spec.name.to_string())
            }
            Some(Item::Unit(unit)) => self.units.get(&unit).cloned().unwrap_or_else(|| format!("unit {}", unit.0)),
            None if key.is_share() => "share of a control plane".to_owned(),
            None => "booked by hand".to_owned(),
        };
        let mut text = format!("{}: {item}", self.project(key.project));
        let pool = |pool: PoolNo| self.pools.get(&pool).cloned().unwrap_or_else(|| format!("pool {}", pool.0));
        if let (Some(of), false) = (key.pool, matches!(key.item, Some(Item::Unit(_)))) {
            text.push_str(&format!(" in {}", pool(of)));
            key.priority.into_iter().for_each(|priority| text.push_str(&format!(", {priority}")));
        }
        if let Some(app) = key.app_instance {
            let name = self.apps.get(&app).cloned().unwrap_or_else(|| format!("app instance {}", app.0));
            text.push_str(&format!(", for {name}"));
        }
        if key.control_plane {
            text.push_str(", control plane");
        }
        if key.holder != key.project {
            text.push_str(&format!(", held by {}", self.project(key.holder)));
        }
        if key.correction && key.item.is_some() {
            text.push_str(", correction");
        }
        text
    }

    /// How much a line used, in units times hours or in its usage unit; empty where there is no usage.
    pub(super) fn usage(&self, key: &InvoiceLineKey, usage: i128) -> String {
        const HOUR_NS: u128 = 3_600_000_000_000;
        const UNIT_PARTS: u128 = 1_000_000_000_000_000_000;
        let (divisor, unit) = match key.item {
            Some(Item::Class(class)) => match self.classes.get(&class) {
                Some(spec) => {
                    (u128::from(spec.quanta_per_unit.max(1)) * HOUR_NS, format!("{}-hours", spec.kind.unit()))
                }
                None => return format!("{usage} quantum-nanoseconds"),
            },
            Some(Item::Unit(unit)) => (UNIT_PARTS, self.units.get(&unit).cloned().unwrap_or_default()),
            None => return String::new(),
        };
        let all = usage.unsigned_abs();
        // Cut off, not rounded: it is only shown.
        let millionths = (all % divisor).checked_mul(1_000_000).map_or(0, |part| part / divisor);
        let sign = if usage < 0 { "-" } else { "" };
        let part = format!("{millionths:06}");
        let part = part.trim_end_matches('0');
        let point = if part.is_empty() { "" } else { "." };
        format!("{sign}{}{point}{part} {unit}", all / divisor)
    }
}
