//! Quotas that let requests evict, requests that fill them, and requests that evict for them.

use crate::requests::small;
use leasehold_engine::command::{PutQuota, RequestLease, SubmitAllocation};
use leasehold_engine::{Command, Quota, State};
use leasehold_model::{
    AllocationSpec, ClassNo, Identity, Instant, LimitKind, Measure, Priority, Quanta, QuotaScope, Span, TenantNo,
};
use leasehold_oracle::Dice;

/// Now and then, a quota with `evict_own_lower`, or a request for one, in place of another command. It has a die of its own: another
/// draw would change what every kept seed does.
pub(crate) fn instead(state: &State, now: Instant) -> Option<(Identity, Command)> {
    let mut dice = Dice::new(now.0.rotate_left(17) ^ state.size() << 20);
    let quotas: Vec<&Quota> =
        state.quotas().filter(|quota| quota.evict_own_lower && quota.measure == Measure::Quanta).collect();
    // In some minutes often, so that what fills a quota is still there when something evicts it.
    let is_busy = Dice::new(now.0 / 60_000_000_000).one_in(7);
    if !is_busy || dice.one_in(2) {
        return None;
    }
    if quotas.is_empty() || dice.one_in(6) {
        return Some((Identity::default(), tight_quota(&mut dice)));
    }
    let quota = *dice.pick(&quotas);
    let class = quota.scope.class.unwrap_or(ClassNo(0));
    let highest = state.tenant(quota.scope.tenant)?.settings.max_priority;
    let own = state.projects().find(|(_, project)| project.tenant == quota.scope.tenant).map(|(number, _)| number);
    let users: Vec<_> =
        state.users().filter(|(_, user)| user.tenant == quota.scope.tenant).map(|(number, _)| number).collect();
    let user = (!users.is_empty()).then(|| *dice.pick(&users));
    let project = quota.scope.project.or(own);
    let identity = Identity { tenant: Some(quota.scope.tenant), project, user, ..Identity::default() };
    let per_unit = state.class(class)?.quanta_per_unit;
    let most = quota.limit.limit().max(1) * if quota.scope.further.kind.is_some() { per_unit } else { 1 };
    let whole_devices =
        |quanta: u64| if class.0 == 0 && quanta > per_unit { quanta / per_unit * per_unit } else { quanta };
    let asks = [(class, Quanta(whole_devices(1 + dice.below(most).min(6000))))].into_iter().collect();
    let command = if dice.one_in(2) {
        let lease = RequestLease::of(class, Quanta(1), Span::from_secs(20 + dice.below(100)));
        Command::Request(RequestLease { asks, priority: Priority::Scavenger, ..lease })
    } else {
        let walltime = dice.one_in(2).then(|| Span::from_secs(5 + u64::from(small(&mut dice, 60))));
        Command::SubmitAllocation(SubmitAllocation::from(AllocationSpec {
            priority: highest,
            walltime,
            requeue: dice.one_in(2),
            ..AllocationSpec::of(asks)
        }))
    };
    Some((identity, command))
}

/// A hard quota that is soon full.
fn tight_quota(dice: &mut Dice) -> Command {
    let (class, limit) = if dice.one_in(2) { (0, 7 + dice.below(8)) } else { (1, 500 + dice.below(2000)) };
    let scope = QuotaScope { class: Some(ClassNo(class)), ..QuotaScope::of_tenant(TenantNo(small(dice, 4))) };
    let put = PutQuota::new(None, scope, Measure::Quanta, LimitKind::Hard { limit });
    Command::PutQuota(PutQuota { evict_own_lower: Some(true), ..put })
}
