//! Entries, balances and drafts of the ledger, as the API shows them.

use crate::app::App;
use crate::past::Known;
use crate::show;
use crate::show_apps::unit_name;
use leasehold_api as api;
use leasehold_api::{LedgerAmount, MonthText, Problem, When, codes};
use leasehold_books::{Books, Entry, NamedKind};
use leasehold_engine::State;
use leasehold_ledger::Amount;
use leasehold_meter::Units;
use leasehold_model::ledger::{ExactSteps, Item};
use leasehold_model::name::is_invisible;
use leasehold_model::rate::Currency;
use leasehold_model::record::Key;
use leasehold_model::{
    Account, ClassNo, EntryId, Leg, LineKey, Month, ProjectNo, Steps, TenantNo, UnitNo, UnitQuantity, hex,
};

pub(crate) fn amount(steps: Steps) -> LedgerAmount {
    LedgerAmount(steps.to_string())
}

pub(crate) fn month(month: Month) -> MonthText {
    MonthText(month.to_string())
}

pub(crate) fn too_large() -> Problem {
    codes::OVERFLOW.problem("An amount is too large to be shown.")
}

/// The sum of amounts.
pub(crate) fn sum(all: impl IntoIterator<Item = Steps>) -> Result<Steps, Problem> {
    Steps::sum(all).ok_or_else(too_large)
}

/// Units times hours, of usage in quanta × nanoseconds.
pub(crate) fn unit_hours(usage: i128, quanta_per_unit: u64, decimals: u32) -> Result<String, Problem> {
    // At most 2^32 quanta.
    let hours = Units::of(usage.unsigned_abs(), quanta_per_unit.saturating_mul(3600));
    let text = hours.decimal(decimals).map_err(|_| too_large())?;
    Ok(if usage < 0 { format!("-{text}") } else { text })
}

/// A quantity of a usage unit, from the parts of a line; exact, with as few decimals as necessary.
pub(crate) fn unit_quantity(parts: i128) -> String {
    let all = parts.unsigned_abs();
    let (whole, part) = (all / UnitQuantity::LINE_PARTS, all % UnitQuantity::LINE_PARTS);
    let text = format!("{whole}.{part:018}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if parts < 0 { format!("-{text}") } else { text.to_owned() }
}

/// An exact amount as a fraction of the currency.
pub(crate) fn exact(steps: &ExactSteps) -> String {
    Amount::decoded(steps).map_or_else(|| steps.to_string(), |amount| amount.in_currency())
}

/// An idempotency key as text, if it is printable.
fn readable(key: &Key) -> Option<String> {
    let text = std::str::from_utf8(key).ok()?;
    (!text.chars().any(is_invisible)).then(|| text.to_owned())
}

/// What is needed to name everything on an entry.
pub(crate) struct LedgerView<'v> {
    pub(crate) app: &'v App,
    pub(crate) state: &'v State,
    pub(crate) books: &'v Books,
}

impl LedgerView<'_> {
    fn known(&self) -> Known<'_> {
        Known { state: self.state, books: self.books }
    }
    pub(crate) fn tenant(&self, tenant: TenantNo) -> String {
        self.known().tenant(tenant)
    }
    pub(crate) fn project(&self, project: ProjectNo) -> String {
        self.known().project(project)
    }
    pub(crate) fn app_instance(&self, app_instance: leasehold_model::AppInstanceNo) -> String {
        self.known().app_instance(app_instance)
    }
    pub(crate) fn pool(&self, pool: leasehold_model::PoolNo) -> String {
        self.known().pool(pool)
    }
    pub(crate) fn node(&self, node: leasehold_model::NodeNo) -> String {
        self.known().node(node)
    }
    pub(crate) fn class(&self, class: ClassNo) -> String {
        self.books.class(class).map_or_else(|| class.to_string(), |spec| spec.name.to_string())
    }
    pub(crate) fn unit(&self, unit: UnitNo) -> String {
        unit_name(self.state, unit)
    }
    /// The tenant of a project, also of a deleted one.
    pub(crate) fn tenant_of(&self, project: ProjectNo) -> Option<TenantNo> {
        let live = self.state.project(project).map(|project| project.tenant);
        live.or_else(|| self.books.named(NamedKind::Project, project.0)?.tenant)
    }

    fn leg(&self, leg: &Leg) -> api::LedgerLeg {
        let mut shown = api::LedgerLeg {
            account: leg.account.kind(),
            tenant: None,
            project: None,
            class: None,
            usage_unit: None,
            app_instance: None,
            amount: amount(leg.amount),
        };
        match leg.account {
            Account::Receivable(project) | Account::Adjustments(project) | Account::ProjectPrepaid(project) => {
                shown.project = Some(self.project(project));
            }
            Account::Invoiced(tenant) | Account::TenantPrepaid(tenant) => shown.tenant = Some(self.tenant(tenant)),
            Account::Revenue(class) => shown.class = Some(self.class(class)),
            Account::UnitRevenue(unit) => shown.usage_unit = Some(self.unit(unit)),
            Account::SharedRuntime(app) => shown.app_instance = Some(self.app_instance(app)),
            Account::Rounding
            | Account::Tax
            | Account::CashClearing
            | Account::OperatorLoss
            | Account::ExpiredCredits => {}
        }
        shown
    }

    pub(crate) fn line(&self, key: &LineKey, usage: i128, of: &ExactSteps) -> Result<api::LedgerLine, Problem> {
        let anchors = key.app_instance.and_then(|app| self.books.app_anchors(app));
        let mut line = api::LedgerLine {
            hour: When(key.hour),
            project: self.project(key.project),
            project_id: key.project.0,
            pool: None,
            pool_id: None,
            class: None,
            class_id: None,
            usage_unit: None,
            unit: String::new(),
            priority: None,
            priced_as: None,
            accounting_tag: show::text(key.tag.as_ref()),
            app_instance: key.app_instance.map(|app| self.app_instance(app)),
            app_slug: anchors.and_then(|of| self.known().app(of.app_type)),
            operating_mode: anchors.map(|of| of.mode),
            control_plane_scope: anchors.map(|of| of.scope),
            runtime_backend: anchors.map(|of| of.backend),
            attachment: key.attachment.map(|attachment| attachment.0),
            control_plane: key.control_plane,
            rate_card: None,
            unit_price: None,
            unit_hours: None,
            quantity: None,
            exact: exact(of),
        };
        match key.item {
            Item::Class(class) => {
                let spec = self.books.class(class).ok_or_else(|| codes::INTERNAL.problem("The books lack a class."))?;
                (line.pool, line.pool_id) = (Some(self.pool(key.pool)), Some(key.pool.0));
                (line.class, line.class_id) = (Some(spec.name.to_string()), Some(class.0));
                (line.priority, line.priced_as) = (Some(key.priority), Some(key.priced));
                line.unit = spec.kind.unit().to_owned();
                line.rate_card = key.card;
                line.unit_hours = Some(unit_hours(usage, spec.quanta_per_unit, 9)?);
            }
            Item::Unit(unit) => {
                line.unit = self.unit(unit);
                line.usage_unit = Some(line.unit.clone());
                line.unit_price = key.card;
                line.quantity = Some(unit_quantity(usage));
            }
        }
        Ok(line)
    }

    pub(crate) fn entry(&self, entry: &Entry) -> Result<api::LedgerEntry, Problem> {
        let line = entry.line.as_ref().map(|line| self.line(&line.key, line.usage.0, &line.exact));
        let corrected_by = self.books.correction_of(entry.id);
        Ok(api::LedgerEntry {
            id: entry.id.to_string(),
            uid: self.app.entry_uid(entry.id),
            kind: entry.kind,
            at: When(entry.at),
            sequence: entry.id.sequence,
            tenant: self.tenant(entry.tenant),
            tenant_id: entry.tenant.0,
            project: entry.project.map(|project| self.project(project)),
            project_id: entry.project.map(|project| project.0),
            currency: entry.currency.to_string(),
            amount: amount(entry.amount()),
            month: entry.month.map(month),
            original_month: entry.original_month.map(month),
            legs: entry.legs.iter().map(|leg| self.leg(leg)).collect(),
            line: line.transpose()?,
            corrects: entry.corrects.map(|id| id.to_string()),
            corrected_by: corrected_by.map(|sequence| EntryId { sequence, position: 0 }.to_string()),
            reason: show::text(entry.reason.as_ref()),
            invoice: entry.invoice.map(|invoice| invoice.to_string()),
            reference: show::text(entry.reference.as_ref()),
            as_of_size: entry.as_of_size,
            idempotency_key: entry.key.and_then(|key| readable(&key)),
            idempotency_key_hex: entry.key.filter(|key| readable(key).is_none()).map(|key| hex::encode(&key)),
            disputed: self.books.is_disputed(entry.id),
        })
    }

    pub(crate) fn balance(&self, account: Account, currency: Currency, balance: Steps) -> api::LedgerBalance {
        let project = account.project();
        let tenant = match account {
            Account::Invoiced(tenant) | Account::TenantPrepaid(tenant) => Some(tenant),
            _ => project.and_then(|project| self.tenant_of(project)),
        };
        let class = match account {
            Account::Revenue(class) => Some(self.class(class)),
            _ => None,
        };
        let usage_unit = match account {
            Account::UnitRevenue(unit) => Some(self.unit(unit)),
            _ => None,
        };
        let app_instance = match account {
            Account::SharedRuntime(app) => Some(self.app_instance(app)),
            _ => None,
        };
        api::LedgerBalance {
            account: account.kind(),
            tenant: tenant.map(|tenant| self.tenant(tenant)),
            tenant_id: tenant.map(|tenant| tenant.0),
            project: project.map(|project| self.project(project)),
            project_id: project.map(|project| project.0),
            class,
            usage_unit,
            app_instance,
            currency: currency.to_string(),
            balance: amount(balance),
        }
    }
}

pub(crate) fn section_word(section: api::InvoiceSection) -> &'static str {
    match section {
        api::InvoiceSection::Workload => "workload",
        api::InvoiceSection::ControlPlane => "control_plane",
        api::InvoiceSection::Share => "share",
        api::InvoiceSection::Adjustment => "adjustment",
    }
}
