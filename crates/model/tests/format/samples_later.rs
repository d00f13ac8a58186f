//! Kinds that came after the first ones, up to the queue.

use super::*;

/// Kinds that came after the first journals: at the end, so that the bytes of those before stay as they are.
pub(super) fn bodies() -> Vec<Body> {
    let everything = TokenScope {
        tenant: Some(TenantNo(1)),
        project: Some(ProjectNo(2)),
        user: Some(UserNo(3)),
        node: Some(NodeNo(300)),
        app_instances: vec![AppInstanceNo(10), AppInstanceNo(300)],
    };
    vec![
        NodeCondition { node: NodeNo(300), load: Level::Critical, errors: Level::Normal, throttled: true }.into(),
        AgentRegistered { node: NodeNo(300), generation: 300, instance: 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210 }
            .into(),
        AgentDetached { node: NodeNo(300) }.into(),
        TokenIssued {
            token: TokenNo(4),
            name: name("root"),
            hash: [0x44; 32],
            role: Role::Operator,
            scope: TokenScope::default(),
            expires_at: None,
        }
        .into(),
        TokenIssued {
            token: TokenNo(300),
            name: name("nightly"),
            hash: [0x55; 32],
            role: Role::BillingAuthority,
            scope: everything,
            expires_at: Some(NEW_YEAR),
        }
        .into(),
        TokenRevoked { token: TokenNo(300) }.into(),
        RateCardPut { card: 0, pool: None, from: NEW_YEAR, prices: Prices::default_card() }.into(),
        RateCardPut { card: 300, pool: Some(PoolNo(1)), from: NEW_YEAR, prices: prices() }.into(),
        RateCardDeleted { card: 300 }.into(),
        ChargePolicyPut { policy: 0, from: NEW_YEAR, charges: Charges::DEFAULT }.into(),
        ChargePolicyPut { policy: 300, from: NEW_YEAR, charges: charges() }.into(),
        PoolPlacementPut { pool: PoolNo(1), weights: None }.into(),
        PoolPlacementPut { pool: PoolNo(1), weights: Some(weights()) }.into(),
        PlacementChanged { heat_half_life: Span::from_secs(600) }.into(),
        scored(None, Weighing::Strategy(Strategy::Spread)).into(),
        scored(None, Weighing::Strategy(Strategy::BinPack)).into(),
        scored(Some(profile()), Weighing::Custom(weights())).into(),
        BudgetsPut { tenant: TenantNo(1), budgets: Budgets::NONE }.into(),
        BudgetsPut { tenant: TenantNo(300), budgets: budgets() }.into(),
        AllocationSubmitted {
            spec: AllocationSpec::of(smallvec![(ClassNo(0), Quanta(7))]),
            when_over_quota: None,
            node: None,
        }
        .into(),
        AllocationSubmitted { spec: gang(), when_over_quota: None, node: None }.into(),
        AllocationDenied {
            spec: gang(),
            rules_version: 1,
            cause: DenyCause::Quota { quota: QuotaNo(5), used: 195, requested: 10, limit: 200 },
            when_over_quota: None,
        }
        .into(),
        AllocationPlaced {
            allocation: AllocationNo(300),
            attempt: 2,
            first_lease: LeaseNo(42),
            leases: 16,
            rules_version: 1,
        }
        .into(),
        AllocationStarted { allocation: AllocationNo(300) }.into(),
        AllocationCheckpointing { allocation: AllocationNo(300) }.into(),
        AllocationCheckpointed { allocation: AllocationNo(300), bytes: 1 << 40, took: Span::from_secs(75) }.into(),
        AllocationSuspended { allocation: AllocationNo(300), end: AttemptEnd::Preempted }.into(),
        AllocationRequeued { allocation: AllocationNo(300), end: AttemptEnd::NodeLost }.into(),
        AllocationCompleted { allocation: AllocationNo(300), exit_status: Some(0), storage_written: 1 << 30 }.into(),
        AllocationFailed {
            allocation: AllocationNo(300),
            end: AttemptEnd::Walltime,
            exit_status: None,
            storage_written: 0,
        }
        .into(),
        AllocationCancelled { allocation: AllocationNo(300) }.into(),
        PreemptionDecided {
            allocation: AllocationNo(300),
            priority: Priority::Guaranteed,
            rules_version: 1,
            places: vec![ReplicaPlacement {
                node: NodeNo(300),
                members: smallvec![Member { class: ClassNo(0), quanta: Quanta(14), devices: 0b11 }],
            }],
            victims: leases(&[7, 42]),
            headroom: None,
        }
        .into(),
        ReservationDropped { allocation: AllocationNo(300) }.into(),
        Denied {
            particulars: Particulars {
                sensitive: true,
                node: Some(NodeNo(300)),
                labels: vec![(name("disk"), name("nvme"))],
                profile: Some(profile()),
                app_instance: Some(AppInstanceNo(10)),
                correlation: None,
            },
            ..denied(DenyCause::Quota { quota: QuotaNo(5), used: 1, requested: 2, limit: 2 })
        }
        .into(),
        Granted { labels: vec![(name("disk"), name("nvme"))], ..scored(None, Weighing::Strategy(Strategy::Spread)) }
            .into(),
        SensitiveChanged { pool_size: None }.into(),
        SensitiveChanged { pool_size: Some(300) }.into(),
        NodesClaimed { nodes: [NodeNo(0), NodeNo(1), NodeNo(300)].into_iter().collect(), until: None }.into(),
        NodesReleased { nodes: [NodeNo(300), NodeNo(u32::MAX)].into_iter().collect(), claim: None }.into(),
        NodeWiped { node: NodeNo(300), claim: None }.into(),
        NodeQuarantined { node: NodeNo(300), cause: QuarantineCause::WipeFailed, claim: None }.into(),
        NodeQuarantined { node: NodeNo(300), cause: QuarantineCause::WipeTimedOut, claim: None }.into(),
        QuarantineCleared { node: NodeNo(300) }.into(),
        ceiling(None, Amount(1_500_000_000_000), CeilingMode::Hard).into(),
        ceiling(Some(AppInstanceNo(300)), Amount(1), CeilingMode::Soft).into(),
        CeilingDeleted { project: ProjectNo(300), app_instance: None }.into(),
        CeilingDeleted { project: ProjectNo(2), app_instance: Some(AppInstanceNo(300)) }.into(),
        denied(DenyCause::Ceiling {
            app_instance: Some(AppInstanceNo(300)),
            spent: Amount(1_234_567_891),
            reserved: Amount::ZERO,
            requested: Amount(36_000_000_000),
            amount: Amount(30_000_000_000),
        })
        .into(),
        tenant_with_contact().into(),
        Converted { format_version: 2 }.into(),
        TailResolved { action: TailAction::Cut, records: 300, bytes: 70_000 }.into(),
        TailResolved { action: TailAction::Accepted, records: 1, bytes: 0 }.into(),
        Expired { leases: leases(&[42]), closed: false, belongs_to: given() }.into(),
        Revoked { leases: leases(&[42]), grace: Span::from_secs(60), belongs_to: derived() }.into(),
        TeardownStarted { leases: leases(&[42]), cause: TeardownCause::GraceEnded, closed: true, belongs_to: given() }
            .into(),
        TornDown { node: NodeNo(300), leases: leases(&[42]), belongs_to: derived() }.into(),
        Fenced { leases: leases(&[42]), belongs_to: given() }.into(),
        Unfenced { leases: leases(&[42]), belongs_to: derived(), reason: None }.into(),
        NodesReleased { nodes: [NodeNo(300)].into_iter().collect(), claim: Some(70_000) }.into(),
        NodeWiped { node: NodeNo(300), claim: Some(70_000) }.into(),
        NodeQuarantined { node: NodeNo(300), cause: QuarantineCause::WipeTimedOut, claim: Some(70_000) }.into(),
        ReservationTakenOver {
            allocation: AllocationNo(310),
            priority: Priority::Guaranteed,
            rules_version: 4,
            places: vec![ReplicaPlacement {
                node: NodeNo(300),
                members: smallvec![Member { class: ClassNo(0), quanta: Quanta(14), devices: 0b11 }],
            }],
            victims: Leases::default(),
            awaited: leases(&[7, 42]),
            dropped: vec![AllocationNo(300), AllocationNo(302)],
        }
        .into(),
        quota_in_full().into(),
        QuotaUntilReached { quota: QuotaNo(5) }.into(),
        denied(DenyCause::KindQuota {
            quota: QuotaNo(5),
            used: Fraction::new(37, 21),
            requested: Fraction::new(6, 21),
            limit: 2,
        })
        .into(),
        AllocationSubmitted { spec: gang(), when_over_quota: Some(WhenOverQuota::Wait), node: None }.into(),
        Unfenced { leases: leases(&[42]), belongs_to: None, reason: Some(name("checked by hand")) }.into(),
        NodeDrained { node: NodeNo(300), reason: Some(name("new power supply")) }.into(),
        NodeResumed { node: NodeNo(300), reason: Some(name("repaired")) }.into(),
        PoolQueuePut {
            pool: PoolNo(1),
            queue: PoolQueue { min_runtime_before_eviction: Span::from_secs(600), requeue_limit: 3 },
        }
        .into(),
        AllocationSubmitted {
            spec: AllocationSpec::of(smallvec![(ClassNo(0), Quanta(7))]),
            when_over_quota: None,
            node: Some(NodeNo(300)),
        }
        .into(),
        Granted { capped_by_window: Some(WindowNo(3)), ..granted() }.into(),
        WindowPut {
            window: WindowNo(2),
            nodes: Nodes(vec![NodeNo(3), NodeNo(7)]),
            from: Instant(1_000_000_000),
            until: Instant(4_600_000_000_000),
            reason: Some(name("firmware")),
        }
        .into(),
        WindowStarted { window: WindowNo(2), nodes: Nodes(vec![NodeNo(3), NodeNo(7)]) }.into(),
        WindowEnded { window: WindowNo(2), nodes: Nodes(vec![NodeNo(3), NodeNo(7)]), begun: true, cancelled: false }
            .into(),
        WindowAnnounced {
            window: WindowNo(2),
            from: Instant(1_000_000_000),
            until: Instant(4_600_000_000_000),
            reason: None,
            leases: [LeaseNo(11), LeaseNo(12)].into_iter().collect(),
            belongs_to: BelongsTo { allocation: None, correlation: Correlation::Derived(9) },
            cancelled: None,
        }
        .into(),
    ]
}

/// Leases of an allocation whose caller gave a correlation ID.
fn given() -> Option<BelongsTo> {
    let correlation = Correlation::Given(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
    Some(BelongsTo { allocation: Some(AllocationNo(70_000)), correlation })
}

/// A lease of a request without a correlation ID.
fn derived() -> Option<BelongsTo> {
    Some(BelongsTo { allocation: None, correlation: Correlation::Derived(70_000) })
}

fn ceiling(app_instance: Option<AppInstanceNo>, amount: Amount, mode: CeilingMode) -> CeilingPut {
    CeilingPut { project: ProjectNo(2), app_instance, amount, currency: Currency::DEFAULT, mode }
}
