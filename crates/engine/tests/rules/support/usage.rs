//! How stories report usage: `a use shared a/lab id=r1 unit=requests n=5 from=10 to=20`. With `by=op` or `by=b` another
//! tenant's token reports, `old=r0` supersedes a record, `lent=0 alloc=@1` is about a lent worker (`alloc=7` names any record), `user=a/u` asked for it,
//! and `known=3` says that the books had only three records. `cp` marks the control plane. `useall` reports several, all or
//! none, with `+` between them. `op entitle a/lab unit=requests soft=5 hard=8` limits a month, `on=shared` on an instance,
//! `-` stands for no project; `unentitle` ends it. `op apppolicy slurm of=a on=own units=requests to=caller` sets a policy, `bill=requests` charges
//! work.

use super::Story;
use super::line::Line;
use super::world::name;
use leasehold_engine::command::{Command, NamedAllocation, PutAppPolicy, PutEntitlement, RecordUsage};
use leasehold_model::body::{Attribution, Body, EntitlementScope, PolicyScope, ReplacedUsage, UsageReport};
use leasehold_model::{AllocationNo, AllocationSpec, AttachmentNo, ProjectNo, TenantNo, UnitList};

pub(super) const VERBS: &[&str] = &[
    "use",
    "useall",
    "entitle",
    "unentitle",
    "apppolicy",
    // Told by `sharing.rs`.
    "sharing",
    "cut",
    "sharecost",
    "invoice",
    "state",
    "finish",
];

impl Story {
    /// What the books would say about the superseded record, if they have it.
    fn replaced(&self, report: &UsageReport, known_to: u64) -> Option<(ReplacedUsage, Option<ProjectNo>)> {
        let key = report.superseded_key()?;
        let known = self.world.records.iter().filter(|record| record.sequence < known_to);
        let mut found = known.filter_map(|record| match &record.body {
            Body::UsageRecorded(recorded) if recorded.report.key() == key => Some((record, recorded)),
            _ => None,
        });
        let (record, old) = found.next_back()?;
        let replaced = ReplacedUsage {
            sequence: record.sequence,
            project: record.identity.project.expect("usage has a project"),
            quantity: old.report.quantity,
            from: old.report.from,
            to: old.report.to,
            control_plane: old.report.control_plane,
            attachment: old.report.attachment,
            charge: old.charge,
        };
        Some((replaced, old.creditor))
    }

    /// What the books would say about the allocation that a report names, if they have it.
    fn named(&self, report: &UsageReport, known_to: u64) -> Option<NamedAllocation> {
        let number = report.allocation?.0;
        let record = self.world.records.iter().find(|record| record.sequence == number && number < known_to)?;
        let Body::AllocationSubmitted(submitted) = &record.body else { return None };
        let AllocationSpec { attachment, source_project, .. } = submitted.spec;
        Some(NamedAllocation { project: record.identity.project?, attachment, source_project })
    }

    fn record_usage(&mut self, line: &Line<'_>) -> RecordUsage {
        let mut time = |of: &str| self.names.read_time(line.options.get(of).copied().unwrap_or("0"));
        let (from, to) = (time("from"), time("to"));
        let state = self.world.state();
        let project = self.project(line.words[1]);
        let tenant = state.project(project).map_or(TenantNo(99), |project| project.tenant);
        let option = |name: &str| line.options.get(name).copied();
        let report = UsageReport {
            reporter: match option("by").unwrap_or("a") {
                "op" => None,
                tenant => Some(self.tenant(tenant)),
            },
            source: name(option("source").unwrap_or("adapter")),
            id: name(option("id").expect("an id")),
            app_instance: self.instance(line.words[0]),
            unit: self.unit(option("unit").unwrap_or("requests")),
            quantity: leasehold_model::UnitQuantity(u128::from(line.number::<u64>("n").unwrap_or(1)) * 1_000_000_000),
            from,
            to,
            correlation: 7,
            control_plane: line.flag("cp"),
            attachment: line.number("lent").map(AttachmentNo),
            allocation: option("alloc").map(|text| match text.strip_prefix('@') {
                Some(_) => self.allocation(text),
                None => AllocationNo(text.parse().expect("a number")),
            }),
            supersedes: option("old").map(name),
        };
        let known_to = line.number("known").unwrap_or(state.size());
        let (replaces, replaced_creditor) = self.replaced(&report, known_to).unzip();
        let user = option("user").map(|user| self.user(user));
        let replaced_creditor = replaced_creditor.flatten();
        let named = self.named(&report, known_to);
        RecordUsage { tenant, project, user, report, replaces, replaced_creditor, named, known_to }
    }

    fn entitled(&self, line: &Line<'_>) -> EntitlementScope {
        EntitlementScope {
            project: Some(line.words[0]).filter(|project| *project != "-").map(|project| self.project(project)),
            app_instance: line.options.get("on").map(|on| self.instance(on)),
            unit: self.unit(line.options.get("unit").copied().unwrap_or("requests")),
        }
    }

    fn app_policy(&self, line: &Line<'_>) -> PutAppPolicy {
        let option = |name: &str| line.options.get(name).copied();
        let units = |text: &str| UnitList::new(text.split(',').map(|unit| self.unit(unit))).expect("few units");
        PutAppPolicy {
            of: PolicyScope {
                app_type: self.app_type(line.words[0]),
                tenant: option("of").map(|tenant| self.tenant(tenant)),
                app_instance: option("on").map(|on| self.instance(on)),
            },
            units: option("units").map(units),
            attribution: option("to").map(|to| match to {
                "caller" => Attribution::Caller,
                _ => Attribution::Owner,
            }),
            billed_work: option("bill").map(units),
        }
    }

    pub(super) fn usage(&mut self, verb: &str, line: &Line<'_>) -> Command {
        match verb {
            "use" => Command::RecordUsage(self.record_usage(line)),
            "useall" => self.use_all(line),
            "entitle" => {
                let limit = |of: &str| line.number::<u64>(of).map(leasehold_model::UnitQuantity::of_whole);
                let put = PutEntitlement { of: self.entitled(line), soft: limit("soft"), hard: limit("hard") };
                Command::PutEntitlement(put)
            }
            "unentitle" => Command::DeleteEntitlement(self.entitled(line)),
            "apppolicy" => Command::PutAppPolicy(self.app_policy(line)),
            verb => self.sharing(verb, line),
        }
    }

    fn use_all(&mut self, line: &Line<'_>) -> Command {
        let instance = line.words[0];
        let mut all = Vec::new();
        for text in &line.words[1..] {
            let (project, id) = text.split_once('+').expect("a project and an id");
            let mut options = line.options.clone();
            options.insert("id", id);
            all.push(self.record_usage(&Line { words: vec![instance, project], options }));
        }
        Command::RecordUsageTogether(all)
    }
}
