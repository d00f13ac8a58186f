//! Turns for slow questions: few run at a time, and the others wait.
//!
//! A token and a tenant each have a limited number of turns, one turn is left over that only operators can get, and the
//! number of waiting requests is limited too. A token with many slow questions waits only for itself.

use crate::access::Caller;
use crate::shares::{Share, ShareLimits, Shares};
use leasehold_api::{Problem, Role, codes};
use leasehold_model::{TenantNo, TokenNo};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many questions of a kind run and wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnLimits {
    /// What it is called in refusals, in the plural.
    pub(crate) what: &'static str,
    /// Questions that run at the same time; the last turn is for operators only.
    pub(crate) running: usize,
    pub(crate) running_of_tenant: usize,
    pub(crate) running_of_token: usize,
    /// Questions of one token that run or wait. A tenant may have four times as many.
    pub(crate) of_token: usize,
}

/// All tenants together may have this many times the questions of one token.
const OTHERS: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Token(TokenNo),
    Tenant(TenantNo),
}

pub(crate) struct Turns {
    limits: TurnLimits,
    asked: Arc<Shares>,
    all: Arc<Semaphore>,
    others: Arc<Semaphore>,
    own: Mutex<BTreeMap<Who, Arc<Semaphore>>>,
}

/// The right to run, until it is dropped.
pub(crate) struct Turn {
    _permits: [Option<OwnedSemaphorePermit>; 4],
    _asked: Option<Share>,
}

impl Turns {
    pub(crate) fn new(limits: TurnLimits) -> Self {
        assert!(limits.running > 1, "one turn is for operators");
        let (token, tenant) = (limits.of_token, limits.of_token * 4);
        let asked = Shares::new(ShareLimits { all: usize::MAX, others: limits.of_token * OTHERS, tenant, token });
        Self {
            limits,
            asked,
            all: Arc::new(Semaphore::new(limits.running)),
            others: Arc::new(Semaphore::new(limits.running - 1)),
            own: Mutex::default(),
        }
    }

    /// Waits for a turn. Refused if too many questions of the token or the tenant wait already.
    pub(crate) async fn ask(&self, caller: &Caller) -> Result<Turn, Problem> {
        let asked = self.asked.take(caller, 1).map_err(|exceeded| {
            exceeded.problem(codes::TOO_MANY_WAITING, self.limits.what, "wait for their answers, or try again later")
        })?;
        Ok(Turn { _asked: Some(asked), ..self.wait(caller).await })
    }

    /// Waits for a turn, for an answer that has begun already and cannot be refused any more.
    pub(crate) async fn wait(&self, caller: &Caller) -> Turn {
        const OPEN: &str = "the semaphore is never closed";
        let mut permits = [const { None }; 4];
        if caller.role != Role::Operator {
            // From the narrowest limit to the widest: whoever waits for its own turns keeps nobody else waiting.
            let own = self.own(Who::Token(caller.token), self.limits.running_of_token);
            permits[0] = Some(own.acquire_owned().await.expect(OPEN));
            if let Some(tenant) = caller.tenant {
                let own = self.own(Who::Tenant(tenant), self.limits.running_of_tenant);
                permits[1] = Some(own.acquire_owned().await.expect(OPEN));
            }
            permits[2] = Some(Arc::clone(&self.others).acquire_owned().await.expect(OPEN));
        }
        permits[3] = Some(Arc::clone(&self.all).acquire_owned().await.expect(OPEN));
        Turn { _permits: permits, _asked: None }
    }

    /// The turns of a token or tenant. Unused ones are dropped.
    fn own(&self, who: Who, most: usize) -> Arc<Semaphore> {
        let mut all = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, turns| Arc::strong_count(turns) > 1);
        Arc::clone(all.entry(who).or_insert_with(|| Arc::new(Semaphore::new(most))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shares::tests::caller;
    use futures_util::FutureExt;

    fn turns() -> Turns {
        Turns::new(TurnLimits { what: "questions", running: 4, running_of_tenant: 2, running_of_token: 1, of_token: 3 })
    }

    #[tokio::test]
    async fn questions_of_one_token_wait_only_for_each_other() {
        let turns = turns();
        let (one, two, three) = (
            caller(Role::ProjectMember, 1, Some(1)),
            caller(Role::ProjectMember, 2, Some(1)),
            caller(Role::ProjectMember, 3, Some(1)),
        );
        let busy = turns.ask(&one).await.expect("a turn");
        let mut waiting: Vec<_> = (0..2).map(|_| Box::pin(turns.ask(&one))).collect();
        assert!(waiting.iter_mut().all(|turn| turn.now_or_never().is_none()));
        // Too many of them are refused, and told when to come back.
        let refused = turns.ask(&one).await.err().expect("a refusal");
        assert_eq!((refused.status, refused.code.as_str()), (429, "too_many_waiting"));
        assert_eq!(refused.members["retry_after"], 1);
        // The tenant has a second turn, and no third.
        let second = turns.ask(&two).await.expect("a turn");
        let mut third = Box::pin(turns.ask(&three));
        assert!((&mut third).now_or_never().is_none());
        // Another tenant is not affected, and operators have a turn that nobody else gets.
        let other = turns.ask(&caller(Role::TenantAdmin, 4, Some(2))).await.expect("a turn");
        assert!(turns.ask(&caller(Role::Auditor, 5, None)).now_or_never().is_none());
        let operator = caller(Role::Operator, 6, None);
        let reserved = turns.ask(&operator).now_or_never().expect("at once").expect("a turn");
        assert!(turns.ask(&operator).now_or_never().is_none());
        drop((busy, second, other, reserved));
        let _third = third.await.expect("a turn");
        let _next = waiting.remove(0).await.expect("the next of the same token");
    }

    #[tokio::test]
    async fn the_turns_of_those_who_wait_for_nothing_are_forgotten() {
        let turns = turns();
        for token in 0..100 {
            drop(turns.ask(&caller(Role::TenantAdmin, token, Some(token))).await.expect("a turn"));
        }
        assert!(turns.own.lock().expect("nobody panicked").len() <= 2);
    }
}
