//! Records of all kinds with all sorts of values, from the ordinary to the largest there are.

use crate::arbitrary_allocations::belongs_to;
use crate::arbitrary_quotas::{causes, further_scopes, limits, temporary_limits, tenant_puts};
use leasehold_model::body::*;
use leasehold_model::limits::{FACTOR_MAX, RATE_MAX};
use leasehold_model::policy::Strategy as PlacementStrategy;
use leasehold_model::rate::{Currency, Decimal, Factors, PerKind, Period, Periods, Prices};
use leasehold_model::*;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::Union;
use smallvec::SmallVec;

/// Numbers around the lengths of their encoding, small ones most often.
pub(crate) fn u64s() -> BoxedStrategy<u64> {
    let edges = vec![127, 128, 16_383, 16_384, (1 << 53) - 1, 1 << 53, u64::MAX - 1, u64::MAX];
    prop_oneof![4 => 0..200u64, 2 => 0..300_000u64, 1 => select(edges), 1 => any::<u64>()].boxed()
}
pub(crate) fn u32s() -> BoxedStrategy<u32> {
    prop_oneof![6 => 0..40u32, 2 => 0..300_000u32, 1 => Just(u32::MAX), 1 => any::<u32>()].boxed()
}
fn u16s() -> BoxedStrategy<u16> {
    prop_oneof![6 => 0..8u16, 1 => Just(u16::MAX), 1 => any::<u16>()].boxed()
}

pub(crate) fn spans() -> BoxedStrategy<Span> {
    prop_oneof![
        1 => Just(Span::ZERO),
        4 => (0..1_000_000u64).prop_map(Span::from_secs),
        3 => (0..1_000_000u64).prop_map(Span::from_millis),
        1 => (0..1_000_000_000u64).prop_map(|us| Span(us * 1_000)),
        1 => any::<u64>().prop_map(Span),
        1 => Just(Span(u64::MAX)),
    ]
    .boxed()
}
pub(crate) fn instants() -> BoxedStrategy<Instant> {
    let recent = 1_767_225_600_000_000_000u64..1_798_761_600_000_000_000;
    prop_oneof![6 => recent.prop_map(Instant), 1 => any::<u64>().prop_map(Instant), 1 => Just(Instant::MAX)].boxed()
}

pub(crate) fn names() -> BoxedStrategy<Name> {
    let odd = vec!["Röntgen", "東京", "a b", "\"quoted\"", "\\", "e\u{301}", "🦀", "{}"];
    let texts = prop_oneof![
        6 => "[a-z0-9-]{1,12}",
        1 => select(odd).prop_map(str::to_owned),
        1 => "\\PC{1,20}",
        1 => "[a-z]{128}",
    ];
    texts.prop_filter_map("a name", |text| Name::new(&text).ok()).boxed()
}

pub(crate) fn words<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> + Clone {
    select(all)
}
pub(crate) fn priorities() -> impl Strategy<Value = Priority> + Clone {
    words(Priority::ALL)
}
pub(crate) fn quanta() -> impl Strategy<Value = Quanta> {
    u64s().prop_map(Quanta)
}
pub(crate) fn tenants() -> impl Strategy<Value = TenantNo> {
    u32s().prop_map(TenantNo)
}
fn projects() -> impl Strategy<Value = ProjectNo> {
    u32s().prop_map(ProjectNo)
}
pub(crate) fn users() -> impl Strategy<Value = UserNo> {
    u32s().prop_map(UserNo)
}
fn pools() -> impl Strategy<Value = PoolNo> {
    u32s().prop_map(PoolNo)
}
pub(crate) fn nodes() -> impl Strategy<Value = NodeNo> {
    u32s().prop_map(NodeNo)
}
pub(crate) fn classes() -> impl Strategy<Value = ClassNo> {
    u16s().prop_map(ClassNo)
}
pub(crate) fn quotas() -> impl Strategy<Value = QuotaNo> {
    u32s().prop_map(QuotaNo)
}
fn keys() -> impl Strategy<Value = [u8; 32]> {
    any::<[u8; 32]>()
}

pub(crate) fn activities() -> impl Strategy<Value = Activity> {
    let busy = prop_oneof![3 => (0..1u128 << 40).prop_map(|s| s * 1_000_000_000), 1 => 0..1u128 << 120];
    let waiting = prop_oneof![2 => Just(Span::ZERO), 1 => spans()];
    let waiting = [waiting.clone(), waiting.clone(), waiting.clone(), waiting.clone(), waiting];
    (spans(), busy, spans(), waiting).prop_map(|(covered, busy, active, waiting)| Activity {
        covered,
        busy,
        active,
        waiting,
    })
}

/// Rising lease numbers, close to each other or far apart, few or (rarely) as many as there may be.
fn lease_numbers() -> BoxedStrategy<Vec<LeaseNo>> {
    let gap = prop_oneof![4 => Just(0u64), 2 => 0..300u64, 1 => 0..1u64 << 40];
    let gaps = prop_oneof![40 => vec(gap.clone(), 0..6), 1 => vec(gap, 1023)];
    (u64s(), gaps)
        .prop_map(|(first, gaps)| {
            let next = |last: &LeaseNo, gap: u64| last.0.checked_add(gap)?.checked_add(1).map(LeaseNo);
            let mut numbers = vec![LeaseNo(first)];
            for gap in gaps {
                numbers.extend(next(&numbers[numbers.len() - 1], gap));
            }
            numbers
        })
        .boxed()
}
pub(crate) fn leases() -> impl Strategy<Value = Leases> {
    lease_numbers().prop_map(Leases::from_iter)
}
fn reported() -> impl Strategy<Value = ReportedLeases> {
    // Three choices for all leases of a record: nobody reports, everybody may.
    (lease_numbers(), vec(option::of(activities()), 7), any::<bool>()).prop_map(|(numbers, reports, any)| {
        let report = |i: usize| reports[i % reports.len()].filter(|_| any);
        ReportedLeases(numbers.iter().enumerate().map(|(i, n)| Reported { lease: *n, activity: report(i) }).collect())
    })
}
fn renewed() -> impl Strategy<Value = Renewed> {
    (instants(), vec(spans(), 5), reported()).prop_map(|(earliest, later, reported)| {
        let expires_at = |i: usize| earliest.saturating_add(later[i % later.len()]);
        let renewal =
            |(i, r): (usize, &Reported)| Renewal { lease: r.lease, expires_at: expires_at(i), activity: r.activity };
        Renewed { renewals: reported.0.iter().enumerate().map(renewal).collect() }
    })
}

fn class_specs() -> impl Strategy<Value = ClassSpec> {
    (names(), words(ResourceKind::ALL), option::of(names()), u64s(), any::<bool>()).prop_map(
        |(name, kind, tier, quanta_per_unit, premium)| ClassSpec { name, kind, tier, quanta_per_unit, premium },
    )
}
fn per_priority() -> impl Strategy<Value = PerPriority> {
    [option::of(spans()), option::of(spans()), option::of(spans())].prop_map(PerPriority)
}
fn scopes() -> impl Strategy<Value = QuotaScope> {
    let node = prop_oneof![Just(NodeScope::All), nodes().prop_map(NodeScope::One), Just(NodeScope::Each)];
    let parts = (option::of(projects()), option::of(classes()), option::of(pools()), option::of(priorities()));
    (tenants(), parts, node, further_scopes()).prop_map(|(tenant, (project, class, pool, priority), node, further)| {
        QuotaScope { tenant, project, class, pool, node, priority, further }
    })
}
fn weights() -> impl Strategy<Value = Weights> {
    [0..=1000u16, 0..=1000, 0..=1000].prop_map(|mut cuts| {
        cuts.sort_unstable();
        let [a, b, c] = cuts;
        Weights { pressure: a, fit: b - a, locality: c - b, fragmentation: 1000 - c }
    })
}
fn weighings() -> impl Strategy<Value = Weighing> {
    prop_oneof![
        words(leasehold_model::Strategy::ALL).prop_map(Weighing::Strategy),
        weights().prop_map(Weighing::Custom)
    ]
}
pub(crate) fn profiles() -> impl Strategy<Value = Profile> {
    let level = || words(Sensitivity::ALL);
    [level(), level(), level(), level(), level()].prop_map(Profile)
}

pub(crate) fn members() -> impl Strategy<Value = Members> {
    let member =
        (classes(), quanta(), any::<u64>()).prop_map(|(class, quanta, devices)| Member { class, quanta, devices });
    vec(member, 1..5).prop_map(SmallVec::from_vec)
}

fn granted() -> impl Strategy<Value = Granted> {
    let place = (u64s().prop_map(LeaseNo), nodes(), pools(), spans(), priorities(), u32s());
    let optional = (
        option::of(any::<u128>()),
        option::of(u64s().prop_map(AllocationNo)),
        option::of(u64s().prop_map(AppInstanceNo)),
        option::of(u64s().prop_map(AttachmentNo)),
        option::of(projects()),
        vec(quotas(), 0..4),
        option::of(quotas()),
        option::of(profiles()),
        option::of(weighings()),
    );
    let window = option::of(u32s().prop_map(WindowNo));
    (place, members(), any::<bool>(), any::<bool>(), optional, labels(), window).prop_map(
        |(place, members, sensitive, control_plane, optional, labels, capped_by_window)| {
            let (first_lease, node, pool, ttl, priority, rules_version) = place;
            let (
                correlation,
                allocation,
                app_instance,
                attachment,
                source_project,
                over_soft,
                capped_by,
                profile,
                weighing,
            ) = optional;
            Granted {
                first_lease,
                node,
                pool,
                ttl,
                priority,
                rules_version,
                members,
                sensitive,
                control_plane,
                correlation,
                allocation,
                app_instance,
                attachment,
                source_project,
                over_soft: over_soft.into(),
                capped_by,
                profile,
                weighing,
                labels,
                capped_by_window,
            }
        },
    )
}
fn labels() -> impl Strategy<Value = Vec<(Name, Name)>> {
    vec((names(), names()), 0..4)
}
fn particulars() -> impl Strategy<Value = Particulars> {
    let named = (option::of(u64s()), option::of(any::<u128>()));
    (any::<bool>(), option::of(nodes()), labels(), option::of(profiles()), named).prop_map(
        |(sensitive, node, labels, profile, (app, correlation))| Particulars {
            sensitive,
            node,
            labels,
            profile,
            app_instance: app.map(AppInstanceNo),
            correlation,
        },
    )
}
fn denied() -> impl Strategy<Value = Denied> {
    let asks = vec((classes(), quanta()), 0..5);
    (option::of(pools()), asks, spans(), priorities(), u32s(), causes(), particulars()).prop_map(
        |(pool, asks, ttl, priority, rules_version, cause, particulars)| Denied {
            pool,
            asks: asks.into(),
            ttl,
            priority,
            rules_version,
            cause,
            particulars,
        },
    )
}
fn node_puts() -> impl Strategy<Value = NodePut> {
    let place = (nodes(), names(), pools(), option::of(names()), option::of(names()));
    let capacity = vec((classes(), quanta()), 0..4);
    (place, labels(), words(TeardownMode::ALL), capacity).prop_map(
        |((node, name, pool, rack, zone), labels, teardown, capacity)| NodePut {
            node,
            name,
            pool,
            rack,
            zone,
            labels,
            teardown,
            capacity,
        },
    )
}
fn pool_puts() -> impl Strategy<Value = PoolPut> {
    (pools(), names(), words(PlacementStrategy::ALL), per_priority(), per_priority(), option::of(spans())).prop_map(
        |(pool, name, strategy, ttl_max, lifetime_max, grace)| PoolPut {
            pool,
            name,
            strategy,
            ttl_max,
            lifetime_max,
            grace,
        },
    )
}

fn starts() -> impl Strategy<Value = Started> {
    let clock = option::of((instants(), instants()));
    (u64s(), names(), u32s(), clock).prop_map(|(epoch, software, rules_version, clock)| Started {
        epoch,
        software,
        rules_version,
        clock_accepted: clock.map(|(last_stamp, wall_clock)| ClockAccepted { last_stamp, wall_clock }),
    })
}
fn settings() -> impl Strategy<Value = SettingsChanged> {
    [spans(), spans(), spans(), spans(), spans()].prop_map(
        |[ttl_max, grace_default, teardown_deadline, node_timeout, idempotency_window]| SettingsChanged {
            ttl_max,
            grace_default,
            teardown_deadline,
            node_timeout,
            idempotency_window,
        },
    )
}
fn unknown() -> impl Strategy<Value = Body> {
    let kind =
        u32s().prop_filter("a kind nobody has given out", |kind| Body::KINDS.iter().all(|(known, _)| known != kind));
    (kind, vec(any::<u8>(), 0..40)).prop_map(|(kind, bytes)| Body::Unknown { kind, bytes })
}

fn token_scopes() -> impl Strategy<Value = TokenScope> {
    let apps = prop_oneof![6 => vec(u64s(), 0..4), 1 => vec(u64s(), 64)];
    (option::of(tenants()), option::of(projects()), option::of(users()), option::of(nodes()), apps).prop_map(
        |(tenant, project, user, node, apps)| TokenScope {
            tenant,
            project,
            user,
            node,
            app_instances: apps.into_iter().map(AppInstanceNo).collect(),
        },
    )
}
fn tokens() -> impl Strategy<Value = TokenIssued> {
    let token = (u32s().prop_map(TokenNo), names(), keys(), words(Role::ALL));
    (token, token_scopes(), option::of(instants())).prop_map(|((token, name, hash, role), scope, expires_at)| {
        TokenIssued { token, name, hash, role, scope, expires_at }
    })
}
fn conditions() -> impl Strategy<Value = NodeCondition> {
    (nodes(), words(Level::ALL), words(Level::ALL), any::<bool>())
        .prop_map(|(node, load, errors, throttled)| NodeCondition { node, load, errors, throttled })
}

pub(crate) fn decimals(max: Decimal) -> impl Strategy<Value = Decimal> + Clone {
    prop_oneof![
        1 => Just(Decimal(0)),
        3 => (0..2_000u64).prop_map(|thousandths| Decimal(thousandths * 1_000_000)),
        2 => (0..=max.0).prop_map(Decimal),
        1 => Just(max),
    ]
}
fn prices() -> impl Strategy<Value = Prices> {
    let currency = "[A-Z]{3}".prop_map(|letters| Currency::new(&letters).expect("three letters"));
    let rate = || decimals(RATE_MAX);
    let factor = || decimals(FACTOR_MAX);
    let kinds = [rate(), rate(), rate(), rate(), rate()].prop_map(PerKind);
    let priorities = [factor(), factor(), factor()].prop_map(Factors);
    let lists = (btree_map(classes(), rate(), 0..5), btree_map(names(), factor(), 0..5));
    let periods = (vec(words(Period::ALL), 5), words(Period::ALL), any::<bool>());
    (currency, kinds, lists, priorities, periods).prop_map(
        |(currency, kinds, (classes, tiers), priorities, (of_kinds, of_class, others))| {
            let per = classes.keys().take(usize::from(others && of_class != Period::Second));
            let of_classes = per.map(|class| (*class, of_class)).collect();
            let periods = Periods { kinds: of_kinds.try_into().expect("five"), classes: of_classes };
            Prices {
                currency,
                kinds,
                classes: classes.into_iter().collect(),
                tiers: tiers.into_iter().collect(),
                priorities,
                periods: if others { periods } else { Periods::SECONDS },
            }
        },
    )
}
fn rate_cards() -> impl Strategy<Value = RateCardPut> {
    (u32s(), option::of(pools()), instants(), prices()).prop_map(|(card, pool, from, prices)| RateCardPut {
        card,
        pool,
        from,
        prices,
    })
}
pub(crate) fn apps() -> impl Strategy<Value = Option<AppInstanceNo>> {
    option::of(u64s().prop_map(AppInstanceNo))
}
pub(crate) fn amounts() -> BoxedStrategy<Amount> {
    let whole = (0..1_000_000u128).prop_map(|whole| Amount(whole * 1_000_000_000));
    prop_oneof![
        4 => whole,
        2 => u64s().prop_map(|billionths| Amount(u128::from(billionths))),
        1 => (0..1u128 << 120).prop_map(Amount),
        1 => Just(Amount::MAX),
    ]
    .boxed()
}
fn ceilings() -> impl Strategy<Value = CeilingPut> {
    (projects(), apps(), amounts(), words(CeilingMode::ALL)).prop_map(|(project, app_instance, amount, mode)| {
        CeilingPut { project, app_instance, amount, currency: Currency::DEFAULT, mode }
    })
}

/// Bodies of every kind, each as often as any other.
pub(crate) fn bodies() -> impl Strategy<Value = Body> {
    fn body<T: Into<Body> + std::fmt::Debug + 'static>(
        kind: impl Strategy<Value = T> + 'static,
    ) -> BoxedStrategy<Body> {
        kind.prop_map(Into::into).boxed()
    }
    Union::new([
        body((u32s(), names(), keys(), names()).prop_map(|(format_version, origin, public_key, software)| Genesis {
            format_version,
            origin,
            public_key,
            software,
        })),
        body(starts()),
        body(Just(Heartbeat {})),
        body((keys(), keys()).prop_map(|(old_key, new_key)| KeyRotated { old_key, new_key })),
        body(instants().prop_map(|wall_clock| ClockJumped { wall_clock })),
        crate::of_journals::bodies(),
        body(settings()),
        body(spans().prop_map(|heat_half_life| PlacementChanged { heat_half_life })),
        body(spans().prop_map(|head_wait_max| QueueChanged { head_wait_max })),
        crate::arbitrary_allocations::pool_access(projects(), pools()),
        body((pools(), option::of(weights())).prop_map(|(pool, weights)| PoolPlacementPut { pool, weights })),
        body((pools(), spans(), u32s()).prop_map(|(pool, min_runtime_before_eviction, requeue_limit)| PoolQueuePut {
            pool,
            queue: PoolQueue { min_runtime_before_eviction, requeue_limit },
        })),
        body((classes(), class_specs()).prop_map(|(class, spec)| ClassPut { class, spec })),
        body(pool_puts()),
        body(pools().prop_map(|pool| PoolDeleted { pool })),
        body(tenant_puts()),
        body(tenants().prop_map(|tenant| TenantDeleted { tenant })),
        body((projects(), tenants(), names()).prop_map(|(project, tenant, name)| ProjectPut { project, tenant, name })),
        body(projects().prop_map(|project| ProjectDeleted { project })),
        body((users(), tenants(), names()).prop_map(|(user, tenant, name)| UserPut { user, tenant, name })),
        body(users().prop_map(|user| UserDeleted { user })),
        body((quotas(), scopes(), words(Measure::ALL), limits(), temporary_limits(), any::<bool>()).prop_map(
            |(quota, scope, measure, limit, temporary, evict_own_lower)| QuotaPut {
                quota,
                scope,
                measure,
                limit,
                temporary,
                evict_own_lower,
            },
        )),
        body(quotas().prop_map(|quota| QuotaUntilReached { quota })),
        crate::arbitrary_windows::bodies(),
        crate::arbitrary_apps::bodies(),
        crate::arbitrary_ledger::bodies(),
        crate::arbitrary_sinks::bodies(),
        body(quotas().prop_map(|quota| QuotaDeleted { quota })),
        body(quotas().prop_map(|quota| BurstEnded { quota })),
        body(node_puts()),
        body(nodes().prop_map(|node| NodeDeleted { node })),
        body((nodes(), option::of(names())).prop_map(|(node, reason)| NodeDrained { node, reason })),
        body((nodes(), option::of(names())).prop_map(|(node, reason)| NodeResumed { node, reason })),
        body((nodes(), instants()).prop_map(|(node, last_seen)| NodeLost { node, last_seen })),
        body(nodes().prop_map(|node| NodeReturned { node })),
        body(granted()),
        body(denied()),
        body(renewed()),
        body((reported(), any::<bool>()).prop_map(|(leases, closed)| Released { leases, closed })),
        body((leases(), any::<bool>(), belongs_to()).prop_map(|(leases, closed, belongs_to)| Expired {
            leases,
            closed,
            belongs_to,
        })),
        body((leases(), spans(), belongs_to()).prop_map(|(leases, grace, belongs_to)| Revoked {
            leases,
            grace,
            belongs_to,
        })),
        body((leases(), belongs_to()).prop_map(|(leases, belongs_to)| Fenced { leases, belongs_to })),
        body(reported().prop_map(|leases| ActivityReported { leases })),
        body(
            (nodes(), priorities(), u32s(), leases()).prop_map(|(node, priority, rules_version, victims)| Preempted {
                node,
                priority,
                rules_version,
                victims,
            }),
        ),
        body(conditions()),
        body((nodes(), u64s(), any::<u128>()).prop_map(|(node, generation, instance)| AgentRegistered {
            node,
            generation,
            instance,
        })),
        body(nodes().prop_map(|node| AgentDetached { node })),
        body((nodes(), instants()).prop_map(|(node, since)| NodeEmpty { node, since })),
        body(tokens()),
        body(u32s().prop_map(|token| TokenRevoked { token: TokenNo(token) })),
        body(rate_cards()),
        body(u32s().prop_map(|card| RateCardDeleted { card })),
        body(crate::arbitrary_charges::charge_policies()),
        body(ceilings()),
        body((projects(), apps()).prop_map(|(project, app_instance)| CeilingDeleted { project, app_instance })),
        crate::arbitrary_allocations::bodies(),
        unknown().boxed(),
    ])
}

fn reasons() -> impl Strategy<Value = Reason> {
    prop_oneof![
        u64s().prop_map(|by| Reason::Preempted { by }),
        quotas().prop_map(|quota| Reason::Quota { quota }),
        Just(Reason::Budget),
        Just(Reason::Operator),
        Just(Reason::NodeLost),
        Just(Reason::Policy),
        Just(Reason::DuplicateHolder),
    ]
}
fn identities() -> impl Strategy<Value = Identity> {
    let token = option::of(u32s().prop_map(TokenNo));
    (option::of(tenants()), option::of(projects()), option::of(users()), option::weighted(0.2, names()), token)
        .prop_map(|(tenant, project, user, workload, token)| Identity { tenant, project, user, workload, token })
}
fn claims() -> impl Strategy<Value = Idempotency> {
    let key = prop_oneof![2 => "[a-z0-9-]{1,64}".prop_map(String::into_bytes), 1 => vec(any::<u8>(), 1..=64)];
    (option::of(tenants()), key, any::<[u8; 16]>()).prop_map(|(owner, key, payload)| Idempotency {
        owner,
        key: leasehold_model::Key::new(&key).expect("1 to 64 bytes"),
        payload,
    })
}

pub(crate) fn records() -> impl Strategy<Value = Record> {
    let late = option::weighted(0.3, spans());
    let marks = (
        option::weighted(0.3, reasons()),
        option::weighted(0.3, claims()),
        option::weighted(0.2, names()),
        option::weighted(0.2, names()),
        prop_oneof![6 => vec(keys(), 0..=0), 1 => vec(keys(), 1..=2)],
        any::<bool>(),
    );
    (u64s(), instants(), late, identities(), marks, bodies()).prop_map(
        |(
            sequence,
            stamp,
            late,
            identity,
            (reason, idempotency, hcl_entry, dra_claim_id, signers, continues),
            body,
        )| {
            Record {
                sequence,
                stamp,
                effective_at: Instant(stamp.0.saturating_sub(late.unwrap_or_default().0)),
                identity,
                reason,
                idempotency,
                hcl_entry,
                dra_claim_id,
                signers: SmallVec::from_vec(signers),
                continues,
                body,
            }
        },
    )
}

/// Records as a journal holds them: numbered from zero, beginning with a genesis record.
pub(crate) fn journals(lengths: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Record>> {
    vec(records(), lengths).prop_map(|mut records| {
        for (sequence, record) in (0u64..).zip(&mut records) {
            record.sequence = sequence;
        }
        records
    })
}
