//! How stories speak of app runtimes: `op unit images count`, `op unitprice requests 0.5 app=slurm from=100`,
//! `op app slurm units=requests origin=third_party`, `op unapp slurm`, `op instance shared a/p app=slurm scope=tenant`,
//! `op uninstance shared`, `a/q lend shared a/q alloc=@1`, `a/q unlend 0`. Instances and attachments are numbered from 0; `app=0`
//! names an instance, and `lent=0` an attachment with its source project.

use super::Story;
use super::line::Line;
use super::world::name;
use leasehold_engine::command::{Command, MakeAttachment, PutAppInstance, PutAppType, PutUnitPrice, PutUsageUnit};
use leasehold_model::rate::Currency;
use leasehold_model::{
    AppInstanceNo, AppOrigin, AppTypeNo, AttachmentNo, ControlPlaneScope, OperatingMode, ProjectNo, RuntimeBackend,
    UnitMeasure, UnitNo,
};

pub(super) const VERBS: &[&str] = &["unit", "unitprice", "app", "unapp", "instance", "uninstance", "lend", "unlend"];

/// The registry that stories about app instances begin with: `n` runtimes of project a/a.
pub(crate) fn with_instances(n: u64) -> String {
    let instances = (0..n).map(|n| format!("0 op instance i{n} a/a app=slurm\n"));
    std::iter::once("0 op app slurm\n".to_owned()).chain(instances).collect()
}

/// So many lines of a story.
pub(crate) fn lines(n: u64, line: impl Fn(u64) -> String) -> String {
    (0..n).map(line).collect::<Vec<_>>().join("\n")
}

impl Story {
    pub(super) fn unit(&self, text: &str) -> UnitNo {
        self.world.state().unit_named(text).map_or(UnitNo(999), |unit| unit.number)
    }
    pub(super) fn app_type(&self, text: &str) -> AppTypeNo {
        self.world.state().app_type_named(text).map_or(AppTypeNo(99), |app| app.number)
    }
    pub(super) fn instance(&self, text: &str) -> AppInstanceNo {
        let mut all = self.world.state().app_instances_after(None);
        all.find(|instance| instance.name.as_str() == text).map_or(AppInstanceNo(99), |found| found.number)
    }

    /// The attachment that an allocation names, and its source project.
    pub(super) fn lent(&self, line: &Line<'_>) -> (Option<AttachmentNo>, Option<ProjectNo>) {
        let source = line.options.get("source").map(|project| self.project(project));
        let Some(number) = line.number("lent").map(AttachmentNo) else { return (None, source) };
        let found = self.world.state().attachment(number).map(|found| found.source_project);
        (Some(number), source.or(found))
    }

    pub(super) fn registry(&mut self, verb: &str, line: &Line<'_>) -> Command {
        let state = self.world.state();
        let label = line.words[0];
        let option = |name: &str| line.options.get(name).copied();
        match verb {
            "unit" => Command::PutUsageUnit(PutUsageUnit {
                name: name(label),
                measure: UnitMeasure::from_word(line.words[1]).expect("time or count"),
            }),
            "unitprice" => Command::PutUnitPrice(PutUnitPrice {
                unit: self.unit(label),
                app_type: option("app").map(|app| self.app_type(app)),
                currency: Currency::DEFAULT,
                price: line.words[1].parse().expect("a price"),
                from: option("from").map(|at| self.names.read_time(at)),
            }),
            "app" => Command::PutAppType(PutAppType {
                app_type: line.number("no").map(AppTypeNo),
                slug: name(label),
                origin: option("origin")
                    .map_or(AppOrigin::Internal, |word| AppOrigin::from_word(word).expect("an origin")),
                units: option("units").map_or(Vec::new(), |all| all.split(',').map(|unit| self.unit(unit)).collect()),
            }),
            "unapp" => Command::DeleteAppType(self.app_type(label)),
            "instance" => {
                let old = line.number("no").map(AppInstanceNo);
                let known = old.and_then(|old| state.app_instance(old));
                let word = |of: &str| option(of).unwrap_or("");
                Command::PutAppInstance(PutAppInstance {
                    app_instance: old,
                    project: self.project(line.words[1]),
                    name: name(label),
                    app_type: option("app")
                        .map_or_else(|| known.map_or(AppTypeNo(99), |old| old.app_type), |app| self.app_type(app)),
                    mode: OperatingMode::from_word(word("mode"))
                        .or(known.map(|old| old.mode))
                        .unwrap_or(OperatingMode::TenantDedicated),
                    scope: ControlPlaneScope::from_word(word("scope"))
                        .or(known.map(|old| old.scope))
                        .unwrap_or(ControlPlaneScope::Project),
                    backend: RuntimeBackend::from_word(word("backend"))
                        .or(known.map(|old| old.backend))
                        .unwrap_or(RuntimeBackend::Slurm),
                })
            }
            "uninstance" => Command::DeleteAppInstance(self.instance(label)),
            "lend" => Command::MakeAttachment(MakeAttachment {
                app_instance: self.instance(label),
                source_project: self.project(line.words[1]),
                allocation: option("alloc").map(|alloc| self.allocation(alloc)),
            }),
            "unlend" => Command::EndAttachment(AttachmentNo(label.parse().expect("a number"))),
            _ => panic!("no such verb: {verb}"),
        }
    }
}
