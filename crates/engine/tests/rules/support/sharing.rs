//! How stories share the cost of control planes: `op sharing chat of=a on=shared method=by_usage unit=requests`, with
//! `report`, `weights=a/a:60,a/lab:40`, `tiers=gold:3,bronze:1 members=a/lab:0 other=1`, `billable=no` and
//! `distributable=no`. `op cut 1970-01` closes a month up to its shares, `op sharecost shared` makes one, `op invoice a`
//! asks for an invoice, with `owed=a/a:10` for what its projects owe, `op state a 1970-01 from=-2 border=-1 cut=0`
//! states its records, by their distances from the cut, and `op finish 1970-01` ends the month.

use super::Story;
use super::line::Line;
use super::world::name;
use leasehold_engine::command::{Command, IssueInvoice, PutSharing, ShareCost, StatePeriod};
use leasehold_model::body::{
    LedgerShared, PeriodStated, PolicyScope, RecordSet, ServiceTier, ServiceTiers, Sharing, SharingBasis,
};
use leasehold_model::rate::{Currency, Decimal};
use leasehold_model::{Instant, Month, ProjectNo, Steps};

/// `name:number`, with commas between them.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split(',').map(|pair| pair.rsplit_once(':').expect("a name and a number"))
}

fn decimal(text: &str) -> Decimal {
    text.parse().expect("a decimal")
}

impl Story {
    fn basis(&self, line: &Line<'_>) -> SharingBasis {
        let option = |name: &str| line.options.get(name).copied();
        let unit = || self.unit(option("unit").unwrap_or("requests"));
        let number = |text: &str| text.parse().expect("a number");
        match option("method").expect("a method") {
            "none" => SharingBasis::None,
            "owner" => SharingBasis::Owner,
            "even" => SharingBasis::Even,
            "by_usage" => SharingBasis::ByUsage(unit()),
            "by_quota" => SharingBasis::ByQuota(unit()),
            "fixed" => {
                let weight = |(project, percent): (&str, &str)| (self.project(project), decimal(percent));
                let mut weights: Vec<(ProjectNo, Decimal)> =
                    option("weights").into_iter().flat_map(pairs).map(weight).collect();
                weights.sort_by_key(|(project, _)| *project);
                SharingBasis::Fixed(weights)
            }
            _ => {
                let tier = |(tier, weight): (&str, &str)| ServiceTier { name: name(tier), weight: decimal(weight) };
                let member = |(project, place): (&str, &str)| (self.project(project), number(place));
                SharingBasis::ByTier(ServiceTiers {
                    tiers: option("tiers").into_iter().flat_map(pairs).map(tier).collect(),
                    projects: option("members").into_iter().flat_map(pairs).map(member).collect(),
                    default_tier: option("other").map(number),
                })
            }
        }
    }

    pub(super) fn sharing(&mut self, verb: &str, line: &Line<'_>) -> Command {
        let currency = Currency::DEFAULT;
        let first = line.words[0];
        let month = || first.parse::<Month>().expect("a month");
        let option = |name: &str| line.options.get(name).copied();
        match verb {
            "sharing" => Command::PutSharing(PutSharing {
                of: PolicyScope {
                    app_type: self.app_type(first),
                    tenant: option("of").map(|tenant| self.tenant(tenant)),
                    app_instance: option("on").map(|on| self.instance(on)),
                },
                control_plane_billable: option("billable").map(|word| word == "yes"),
                distributable: option("distributable").map(|word| word == "yes"),
                sharing: option("method").map(|_| Sharing { basis: self.basis(line), entries: !line.flag("report") }),
            }),
            "cut" => Command::ClosePeriod(month()),
            "finish" => Command::FinishPeriod(month()),
            "sharecost" => Command::ShareCost(ShareCost { app_instance: self.instance(first), currency }),
            "invoice" => {
                let owed = |(project, amount): (&str, &str)| (self.project(project), amount.parse().expect("steps"));
                let projects: Vec<(ProjectNo, Steps)> = option("owed").into_iter().flat_map(pairs).map(owed).collect();
                let sum = Steps::sum(projects.iter().map(|(_, amount)| *amount)).expect("small");
                Command::IssueInvoice(IssueInvoice {
                    tenant: self.tenant(first),
                    currency,
                    taxed: projects.first().map(|_| (Decimal::default(), sum)).into_iter().collect(),
                    lines: projects.len() as u64,
                    projects,
                    lines_hash: [0; 32],
                    due_at: Instant(0),
                })
            }
            "state" => {
                let month = line.words[1].parse::<Month>().expect("a month");
                let cut = self.world.state().ledger().closing.as_ref().map_or(0, |closing| closing.cut);
                let from_cut = |name: &str, usual: i64| {
                    let distance = option(name).map_or(usual, |text| text.parse().expect("a number"));
                    cut.saturating_add_signed(distance)
                };
                let set = RecordSet { count: 3, root: [1; 32] };
                let stated = PeriodStated {
                    month,
                    from: from_cut("from", -2),
                    border: from_cut("border", -1),
                    cut: from_cut("cut", 0),
                    records: set,
                    common: set,
                    list_at_start: [2; 32],
                    list_at_border: [3; 32],
                    common_at_start: [4; 32],
                    common_at_border: [5; 32],
                    claimed_nodes: [6; 32],
                };
                Command::StatePeriod(StatePeriod { tenant: self.tenant(first), stated })
            }
            _ => panic!("no such verb: {verb}"),
        }
    }
}

pub(super) fn tell(of: &str, shared: &LedgerShared) -> String {
    let LedgerShared { method, weight, total_weight, pool, share, booked, version, .. } = shared;
    let tier = shared.tier.as_ref().map(|tier| format!(" {tier}")).unwrap_or_default();
    let by = format!("{method} v{version}{tier} {}/{}", weight.0, total_weight.0);
    format!("{of} bears {share} of {pool} ({by}), booked {booked}")
}
