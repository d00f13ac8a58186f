//! Finished runs as drafts of usage records: one for each unit.

use crate::config::{SlurmSection, Unit};
use crate::table::{Life, Run};
use leasehold_adapter_kit::{Anchors, Draft, derived, hours};
use leasehold_client::api::{NewUsageRecord, UnitQuantityText, When};
use leasehold_model::Instant;
use std::collections::BTreeMap;

const SECONDS: u128 = 3600;

pub(crate) fn drafts(
    slurm: &SlurmSection,
    anchors: &Anchors,
    begin: Instant,
    runs: &[Run],
    comments: &BTreeMap<u64, String>,
) -> Vec<Draft> {
    // The same run may have been asked for twice; the later answer counts.
    let latest: BTreeMap<u64, &Run> = runs.iter().map(|run| (run.index, run)).collect();
    let drafts = latest.values().flat_map(|run| of_run(slurm, anchors, begin, run, comments.get(&run.index)));
    drafts.collect()
}

fn of_run(slurm: &SlurmSection, anchors: &Anchors, begin: Instant, run: &Run, comment: Option<&String>) -> Vec<Draft> {
    let Life::Finished { start, end, seconds, allocated } = run.life else { return Vec::new() };
    // A unit of time needs time; runs that failed at once have none.
    if seconds == 0 || end <= start || Instant::from_secs(end) <= begin {
        return Vec::new();
    }
    let cluster = slurm.id_name();
    let user = Some(run.user.as_str()).filter(|user| !user.is_empty());
    let whose = anchors.submitter(slurm.accounts.get(&run.account).map(String::as_str), user);
    let correlation = || derived(&["slurm", cluster, run.submitted_as()]);
    let record = NewUsageRecord {
        correlation_id: Some(comment.cloned().unwrap_or_else(correlation)),
        from: Some(When(Instant::from_secs(start))),
        to: Some(When(Instant::from_secs(end))),
        ..anchors.record(whose, slurm.partitions.get(&run.partition))
    };
    let of_unit = |unit: &Unit| {
        let times = match unit {
            Unit::Jobs => 1,
            Unit::Gpus => allocated.gpus,
            Unit::Cpus => allocated.cpus,
            Unit::Nodes => allocated.nodes,
        };
        let quantity = hours(u128::from(seconds) * u128::from(times), SECONDS).filter(|_| times > 0)?;
        Some(Draft {
            key: format!("slurm/{cluster}/{}/{}", run.index, unit.word()),
            record: NewUsageRecord {
                usage_unit: Some(unit.word().into()),
                quantity: Some(UnitQuantityText::Text(quantity)),
                ..record.clone()
            },
        })
    };
    slurm.units.iter().filter_map(of_unit).collect()
}
