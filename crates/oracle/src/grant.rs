//! Checks grants and denials by recomputing everything (SEMANTICS 4).

use crate::holder::correlation;
use crate::lease::{Lease, Phase, priced_as};
use crate::quota::Ruling;
use crate::request::{Expected, RequestFacts};
use crate::violation::{Broken, Checked, broken, demand, found};
use crate::world::World;
use leasehold_model::body::{Denied, Granted};
use leasehold_model::limits::CLASSES_PER_REQUEST_MAX;
use leasehold_model::{AllocationSpec, Body, DenyCause, LeaseNo, Name, Priority, Record, Span};
use std::collections::BTreeSet;

impl World {
    /// The grant of a lease request; the grants of a gang are predicted with its attempt.
    pub(crate) fn granted(&mut self, record: &Record, granted: &Granted) -> Checked {
        self.check_grant_names(record, granted)?;
        self.check_grant_terms(record, granted)?;
        let facts = facts_of_grant(record, granted)?;
        let downgraded = self.is_downgraded(facts.project) && facts.priority > Priority::Scavenger;
        demand!(!downgraded, "prepaid", "granted at {}", facts.priority);
        self.check_grant_room(granted)?;
        self.check_grant_weighing(granted)?;
        self.check_grant_quotas(record, granted, &facts)?;
        let tag = self.tenants[&facts.tenant].settings.accounting_tag.clone();
        let on_pool_without_gpus = self.counts_cores(granted.pool);
        for (position, member) in (0u64..).zip(&granted.members) {
            let number = LeaseNo(granted.first_lease.0 + position);
            self.take_number("lease", number.0);
            self.leases.push(Lease {
                number,
                on_pool_without_gpus,
                gang: granted.first_lease,
                of: None,
                sensitive: granted.sensitive,
                tenant: facts.tenant,
                project: facts.project,
                payer: facts.project,
                user: facts.user,
                workload: record.identity.workload.clone(),
                correlation: correlation(granted, granted.allocation, record.sequence),
                node: granted.node,
                pool: granted.pool,
                class: member.class,
                quanta: member.quanta.0,
                devices: member.devices,
                priority: granted.priority,
                priced_as: priced_as(granted),
                tag: tag.clone(),
                granted_at: record.stamp,
                expires_at: record.stamp.saturating_add(granted.ttl),
                phase: Phase::Active,
                ended_at: None,
                end_effective: None,
                billed_to: None,
                granted_by: record.sequence,
                ended_by: None,
                grace: Span::ZERO,
                limit_at: None,
                reported_to: record.stamp,
                app_instance: granted.app_instance,
                attachment: granted.attachment,
                reckoned_by: record.sequence,
            });
        }
        Ok(())
    }

    /// Checks that everything in the grant exists and belongs together.
    fn check_grant_names(&self, record: &Record, granted: &Granted) -> Checked {
        let identity = &record.identity;
        let tenant = found!(identity.tenant, "unknown-tenant", "a grant to nobody");
        let project = found!(identity.project, "unknown-project", "a grant without a project to charge");
        demand!(self.tenants.contains_key(&tenant), "unknown-tenant", "there is no {tenant}");
        let own = self.projects.get(&project).is_some_and(|p| p.tenant == tenant);
        demand!(own, "unknown-project", "{tenant} has no {project}");
        if let Some(user) = identity.user {
            let own = self.users.get(&user).is_some_and(|u| u.tenant == tenant);
            demand!(own, "unknown-user", "{tenant} has no {user}");
        }
        demand!(!granted.sensitive || identity.user.is_some(), "sensitive-user", "sensitive work names its user");
        demand!(self.pools.contains_key(&granted.pool), "unknown-pool", "there is no {}", granted.pool);
        let node = found!(self.nodes.get(&granted.node), "unknown-node", "there is no {}", granted.node);
        demand!(
            node.put.pool == granted.pool,
            "wrong-pool",
            "{} is in {}, not {}",
            granted.node,
            node.put.pool,
            granted.pool
        );
        demand!(node.is_in_service(), "node-offline", "{} is drained or lost", granted.node);
        let claimer = identity.user.filter(|_| granted.sensitive).map(|user| (tenant, user));
        demand!(node.is_open_to(claimer), "custody", "{} is {:?}", granted.node, node.custody);
        self.check_new_number("lease", granted.first_lease.0)
    }

    fn check_grant_terms(&self, record: &Record, granted: &Granted) -> Checked {
        let tenant = &self.tenants[&record.identity.tenant.expect("checked with the names")];
        demand!(
            granted.priority <= tenant.settings.max_priority,
            "priority",
            "{} is above the tenant's {}",
            granted.priority,
            tenant.settings.max_priority
        );
        let longest = self.grant_ttl_max(granted.pool, granted.priority);
        demand!(granted.ttl > Span::ZERO && granted.ttl <= longest, "ttl", "{} of at most {longest}", granted.ttl);
        let count = granted.members.len();
        demand!((1..=CLASSES_PER_REQUEST_MAX).contains(&count), "members", "{count} members");
        for (i, member) in granted.members.iter().enumerate() {
            demand!(self.classes.contains_key(&member.class), "unknown-class", "there is no {}", member.class);
            demand!(member.quanta.0 > 0, "members", "no quanta of {}", member.class);
            let twice = granted.members[..i].iter().any(|other| other.class == member.class);
            demand!(!twice, "members", "{} is granted twice", member.class);
        }
        Ok(())
    }

    /// Checks that there is capacity, and that the devices are those of the rule (SEMANTICS 1).
    fn check_grant_room(&self, granted: &Granted) -> Checked {
        let node = &self.nodes[&granted.node];
        for member in &granted.members {
            let place = self.place(granted.node, node, member.class, member.quanta.0);
            let devices =
                found!(place, "capacity", "{} has no room for {} of {}", granted.node, member.quanta, member.class);
            demand!(
                devices == member.devices,
                "devices",
                "{} of {} lies on {devices:#b}, not {:#b}",
                member.quanta,
                member.class,
                member.devices
            );
        }
        Ok(())
    }

    /// Checks that all quotas allow the grant, and that it names the exceeded soft quotas and the burst that shortened
    /// it. The requested TTL is not recorded: without shortening it was the granted TTL, otherwise it was longer.
    fn check_grant_quotas(&self, record: &Record, granted: &Granted, facts: &RequestFacts) -> Checked {
        let (ttl, over_soft) = match self.expect_grant(facts, record.stamp) {
            Expected::Granted { ttl, over_soft, .. } => (ttl, over_soft),
            Expected::Denied(cause) => broken!("quota", "must be denied: {cause:?}"),
            Expected::Submitted(..) => broken!("quota", "must wait for its victims"),
            Expected::Refused(word) => broken!("grant-of-invalid", "must be refused: {word}"),
        };
        demand!(granted.over_soft[..] == over_soft[..], "over-soft", "{over_soft:?} is passed");
        demand!(granted.ttl == ttl, "burst", "a burst leaves {ttl} of {}", granted.ttl);
        if let Some(window) = granted.capped_by_window {
            let next = self.next_window(granted.node);
            let ends_at = record.stamp.saturating_add(granted.ttl);
            let only = granted.capped_by.is_none();
            demand!(only && next == Some((ends_at, window)), "capped-by", "{window} is not {next:?}, or not alone");
        }
        let Some(capped_by) = granted.capped_by else { return Ok(()) };
        // Several bursts can end at the same instant; `observe_with_request` checks which one is named.
        let ruling = self.quotas.get(&capped_by).and_then(|quota| {
            let place = quota.depends_on_node().then_some((granted.pool, granted.node));
            self.rule(capped_by, quota, &facts.demand(), place, &[], record.stamp)
        });
        let ends_at = record.stamp.saturating_add(granted.ttl);
        let longer_was_possible = granted.ttl < self.grant_ttl_max(granted.pool, granted.priority);
        demand!(
            ruling == Some(Ruling::Until(ends_at)) && longer_was_possible,
            "capped-by",
            "{capped_by} does not end at {ends_at}: {ruling:?}"
        );
        Ok(())
    }

    /// Checks the weights: those of the pool, or none if the request named the node.
    fn check_grant_weighing(&self, granted: &Granted) -> Checked {
        let own = self.weighing(granted.pool);
        demand!(
            granted.weighing.is_none_or(|by| by == own),
            "weights",
            "chosen by {:?}, not {own:?}",
            granted.weighing
        );
        let by_profile = granted.profile.is_some() && granted.weighing.is_none();
        demand!(!by_profile, "weights", "a profile without a choice");
        Ok(())
    }

    /// Checks that some request of this kind is denied like this. The record does not contain whether a node was
    /// named, labels were required or the work was sensitive, so all combinations are tried.
    pub(crate) fn denied(&self, record: &Record, denied: &Denied) -> Checked {
        let anywhere = facts_of_denial(record, denied)?;
        let sensitive = RequestFacts { sensitive: true, ..anywhere.clone() };
        if let (Some(fault), Some(_)) = (self.fault_of(&anywhere), self.fault_of(&sensitive)) {
            broken!("denial-of-invalid", "an invalid request is refused, not denied: {fault}");
        }
        let expected = self.expect_request(&anywhere, record.stamp);
        let asked_for = Expected::Denied(denied.cause);
        let mut places = std::iter::once(None).chain(self.nodes.keys().map(|node| Some(*node)));
        let justified = places.any(|node| {
            self.label_sets().into_iter().any(|labels| {
                // The node that would be chosen without quotas depends on the profile, but the quotas that refuse a
                // node do not, so each node was tried.
                [false, true].into_iter().any(|sensitive| {
                    let facts = RequestFacts { node, labels: labels.clone(), sensitive, ..anywhere.clone() };
                    self.expect_request(&facts, record.stamp) == asked_for
                })
            })
        });
        demand!(justified, "denial", "{:?} does not hold: {expected:?}", denied.cause);
        Ok(())
    }

    /// No label, each label of a node, and each pair of those.
    fn label_sets(&self) -> Vec<Vec<(Name, Name)>> {
        let all: BTreeSet<_> = self.nodes.values().flat_map(|node| node.put.labels.clone()).collect();
        let pairs = all.iter().flat_map(|label| all.iter().map(move |other| BTreeSet::from([label, other])));
        let sets: BTreeSet<BTreeSet<_>> = pairs.chain([BTreeSet::new()]).collect();
        sets.into_iter().map(|set| set.into_iter().cloned().collect()).collect()
    }

    /// Checks that a grant or denial is exactly the expected answer to its request.
    pub(crate) fn check_answer(&self, record: &Record, facts: &RequestFacts) -> Checked {
        let identity = &record.identity;
        let same_holder = identity.tenant == Some(facts.tenant)
            && identity.project == Some(facts.project)
            && identity.user == facts.user;
        demand!(same_holder, "answer", "the record has another identity: {identity:?}");
        let expected = self.expect_request(facts, record.stamp);
        let mut asks = facts.asks.clone();
        asks.sort();
        let answer = match &record.body {
            Body::Granted(granted) => {
                let mut members: Vec<_> = granted.members.iter().map(|m| (m.class, m.quanta.0)).collect();
                members.sort();
                demand!(members == asks, "answer", "{members:?} was granted, {asks:?} asked");
                demand!(granted.sensitive == facts.sensitive, "answer", "sensitive is {}", granted.sensitive);
                let priority = self.downgraded(facts).priority;
                demand!(granted.priority == priority, "answer", "granted at {}", granted.priority);
                let chosen = facts.node.is_none();
                demand!(granted.weighing.is_some() == chosen, "answer", "chosen by {:?}", granted.weighing);
                let profile = facts.profile.filter(|_| chosen);
                demand!(granted.profile == profile, "answer", "the profile was {profile:?}");
                let devices = |class| granted.members.iter().find(|m| m.class == class).map_or(0, |m| m.devices);
                Expected::Granted {
                    node: granted.node,
                    devices: facts.asks.iter().map(|(class, _)| devices(*class)).collect(),
                    ttl: granted.ttl,
                    over_soft: granted.over_soft.to_vec(),
                    capped_by: granted.capped_by,
                    capped_by_window: granted.capped_by_window,
                }
            }
            Body::Denied(denied) => {
                let mut asked: Vec<_> = denied.asks.iter().map(|(class, quanta)| (*class, quanta.0)).collect();
                asked.sort();
                let decided = self.downgraded(facts);
                let same = asked == asks
                    && (denied.pool, denied.ttl, denied.priority) == (decided.pool, decided.ttl, decided.priority);
                demand!(same, "answer", "the denial repeats another request: {denied:?}");
                Expected::Denied(denied.cause)
            }
            Body::AllocationSubmitted(submitted) => {
                let spec = &submitted.spec;
                // The facts do not contain the correlation ID.
                Expected::Submitted(Box::new(AllocationSpec { correlation: None, ..spec.clone() }), submitted.node)
            }
            #[rustfmt::skip]
            Body::ClassPut(_) | Body::TenantPut(_) | Body::Released(_) | Body::Expired(_) | Body::Revoked(_)
            | Body::TeardownStarted(_) | Body::Fenced(_) | Body::Genesis(_) | Body::Started(_) | Body::Heartbeat(_)
            | Body::KeyRotated(_) | Body::ClockJumped(_) | Body::Converted(_) | Body::TailResolved(_) | Body::Restored(_) | Body::SettingsChanged(_) | Body::PoolPut(_)
            | Body::PoolDeleted(_) | Body::TenantDeleted(_) | Body::ProjectPut(_) | Body::ProjectDeleted(_)
            | Body::UserPut(_) | Body::UserDeleted(_) | Body::QuotaPut(_) | Body::QuotaDeleted(_)
            | Body::BurstEnded(_) | Body::QuotaUntilReached(_) | Body::WindowPut(_) | Body::WindowStarted(_) | Body::WindowEnded(_) | Body::WindowAnnounced(_) | Body::EndsCorrected(_) | Body::ClaimEndCorrected(_) | Body::LossSettled(_) | leasehold_model::ledger_kinds!() | Body::RateCardPut(_) | Body::RateCardDeleted(_) | Body::ChargePolicyPut(_)
            | Body::BudgetsPut(_) | Body::PoolPlacementPut(_) | Body::PoolQueuePut(_) | Body::PlacementChanged(_) | Body::SensitiveChanged(_) | Body::QueueChanged(_) | Body::ProjectPoolPut(_)
            | Body::NodePut(_) | Body::NodeDeleted(_) | Body::NodeDrained(_) | Body::NodeResumed(_)
            | Body::NodeLost(_) | Body::NodeReturned(_) | Body::NodeCondition(_) | Body::AgentRegistered(_)
            | Body::AgentDetached(_) | Body::NodeEmpty(_) | Body::Renewed(_) | Body::TornDown(_) | Body::Unfenced(_)
            | Body::ActivityReported(_) | Body::Preempted(_) | Body::PreemptionDecided(_)
            | Body::ReservationDropped(_) | Body::ReservationTakenOver(_) | Body::HeadProtected(_) | Body::TokenIssued(_) | Body::TokenRevoked(_) | Body::AllocationDenied(_)
            | Body::AllocationPlaced(_) | Body::AllocationStarted(_) | Body::AllocationCheckpointing(_)
            | Body::AllocationCheckpointed(_) | Body::AllocationSuspended(_) | Body::AllocationRequeued(_)
            | Body::AllocationCompleted(_) | Body::AllocationFailed(_) | Body::AllocationCancelled(_)
            | Body::AllocationHoldSet(_) | Body::AllocationHoldCleared(_) | Body::AllocationChanged(_)
            | Body::NodesClaimed(_) | Body::NodesReleased(_) | Body::NodeWiped(_) | Body::NodeQuarantined(_)
            | Body::QuarantineCleared(_) | leasehold_model::registry_kinds!() | leasehold_model::sink_kinds!() | Body::CeilingPut(_) | Body::CeilingDeleted(_) | Body::Unknown { .. } => {
                broken!("answer", "{} does not answer a request", record.body.word())
            }
        };
        demand!(answer == expected, "answer", "expected {expected:?}, sealed {answer:?}");
        Ok(())
    }
}

fn facts_of_grant(record: &Record, granted: &Granted) -> Result<RequestFacts, Broken> {
    Ok(RequestFacts {
        tenant: found!(record.identity.tenant, "unknown-tenant", "a grant to nobody"),
        project: found!(record.identity.project, "unknown-project", "a grant without a project to charge"),
        user: record.identity.user,
        sensitive: granted.sensitive,
        pool: Some(granted.pool),
        node: Some(granted.node),
        asks: granted.members.iter().map(|m| (m.class, m.quanta.0)).collect(),
        ttl: granted.ttl,
        priority: granted.priority,
        labels: Vec::new(),
        profile: granted.profile,
        app_instance: granted.app_instance,
        attachment: granted.attachment,
        source_project: granted.source_project,
    })
}

fn facts_of_denial(record: &Record, denied: &Denied) -> Result<RequestFacts, Broken> {
    Ok(RequestFacts {
        tenant: found!(record.identity.tenant, "unknown-tenant", "a denial to nobody"),
        project: found!(record.identity.project, "unknown-project", "a denial without a project"),
        user: record.identity.user,
        sensitive: false,
        pool: denied.pool,
        node: None,
        asks: denied.asks.iter().map(|(class, quanta)| (*class, quanta.0)).collect(),
        ttl: denied.ttl,
        priority: denied.priority,
        labels: Vec::new(),
        profile: None,
        // Earlier versions recorded only the app instance whose ceiling denied the request.
        app_instance: match denied.cause {
            DenyCause::Ceiling { app_instance, .. } => app_instance.or(denied.particulars.app_instance),
            _ => denied.particulars.app_instance,
        },
        attachment: None,
        source_project: None,
    })
}
