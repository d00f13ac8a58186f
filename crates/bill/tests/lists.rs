//! The bytes of lists. They are hashed into the journal, so they never change.

use leasehold_bill::{
    Attempt, Card, ClaimedNode, ClaimedNodes, CommonList, Ending, KnownApp, Limit, OpenClaim, OpenLease, Outage, Payer,
    Phase, Revocation, Sorted, TenantList,
};
use leasehold_model::body::{
    ChargePolicyPut, PolicyScope, RateCardPut, Sharing, SharingBasis, SharingPut, UnitPricePut, UsageUnitPut,
};
use leasehold_model::codec::Field;
use leasehold_model::hex;
use leasehold_model::rate::{Charges, Currency, Decimal, Prices};
use leasehold_model::{
    AllocationNo, AppInstanceNo, AppTypeNo, AttachmentNo, ClassNo, ClassSpec, DecodeError, Instant, LeaseNo, Month,
    Name, NodeNo, PoolNo, Priority, ProjectNo, Quanta, Residual, ResourceKind, TenantNo, UnitMeasure, UnitNo,
    UnitQuantity,
};

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// For all tenants, or for one app instance.
fn policy(of: Option<(TenantNo, AppInstanceNo)>) -> SharingPut {
    let (tenant, app_instance) = of.unzip();
    SharingPut {
        of: PolicyScope { app_type: AppTypeNo(1), tenant, app_instance },
        version: 3,
        control_plane_billable: None,
        distributable: Some(true),
        sharing: Some(Sharing { basis: SharingBasis::ByUsage(UnitNo(4)), entries: true }),
    }
}

fn common() -> CommonList {
    let spec = ClassSpec { name: name("gpu"), kind: ResourceKind::Gpu, tier: None, quanta_per_unit: 7, premium: false };
    let card = |card| RateCardPut { card, pool: None, from: Instant(5), prices: Prices::default_card() };
    let app =
        KnownApp { app_instance: AppInstanceNo(2), app_type: AppTypeNo(1), name: name("m"), project: ProjectNo(8) };
    CommonList {
        opened: Some(Instant(3_600_000_000_000)),
        classes: Sorted::new([(ClassNo(1), spec)]),
        pools: Sorted::new([(PoolNo(0), name("p"))]),
        cards: Sorted::new([Card(card(2)), Card(card(1))]),
        policies: Sorted::new([ChargePolicyPut { policy: 1, from: Instant(6), charges: Charges::DEFAULT }]),
        units: Sorted::new([UsageUnitPut { unit: UnitNo(64), name: name("u"), measure: UnitMeasure::Count }]),
        unit_prices: Sorted::new([UnitPricePut {
            price_no: 1,
            unit: UnitNo(64),
            app_type: None,
            currency: Currency::DEFAULT,
            price: Decimal(3),
            from: Instant(7),
        }]),
        app_types: Sorted::new([(AppTypeNo(1), name("s"))]),
        app_instances: Sorted::new([app]),
        sharing: Sorted::new([policy(Some((TenantNo(9), AppInstanceNo(2)))), policy(None)]),
    }
}

fn lease(lease: u64) -> OpenLease {
    OpenLease {
        lease: LeaseNo(lease),
        payer: ProjectNo(1),
        project: ProjectNo(2),
        pool: PoolNo(3),
        node: NodeNo(4),
        class: ClassNo(5),
        quanta: Quanta(6),
        priority: Priority::Standard,
        priced: Priority::Guaranteed,
        tag: Some(name("t")),
        app_instance: Some(AppInstanceNo(7)),
        attachment: Some(AttachmentNo(8)),
        control_plane: true,
        from: Instant(9),
        to: Instant(10),
        phase: Phase::Fenced,
        ending: Ending::NodeLost,
        revoked: Revocation::Preempted,
        failed_start: true,
        fenced_from: Some(Instant(11)),
        ended: None,
    }
}

fn tenant() -> TenantList {
    TenantList {
        tenant: TenantNo(9),
        name: Some(name("n")),
        tag: Some(name("t")),
        projects: Sorted::new([(ProjectNo(1), name("p"))]),
        app_instances: Sorted::default(),
        tax_rates: Sorted::new([(Month::new(2026, 11).expect("a month"), Decimal(190_000_000))]),
        sharing: Sorted::new([policy(Some((TenantNo(9), AppInstanceNo(7))))]),
        limits: Sorted::new([
            Limit {
                project: ProjectNo(1),
                app_instance: Some(AppInstanceNo(7)),
                unit: UnitNo(4),
                hard: UnitQuantity(5_000_000_000),
            },
            Limit { project: ProjectNo(1), app_instance: None, unit: UnitNo(4), hard: UnitQuantity(1) },
        ]),
        leases: Sorted::new([lease(12)]),
        claims: Sorted::new([OpenClaim {
            node: NodeNo(4),
            claim: 13,
            project: ProjectNo(1),
            pool: PoolNo(3),
            tag: None,
            from: Instant(14),
            capacity: Sorted::new([(ClassNo(5), Quanta(15))]),
            drained: Some(Instant(16)),
            lost: None,
            outages: Sorted::new([Outage { from: Instant(17), to: Instant(18) }]),
        }]),
        attempts: Sorted::new([Attempt { allocation: AllocationNo(19), first_lease: LeaseNo(12), leases: 1 }]),
        payers: Sorted::new([Payer {
            project: ProjectNo(1),
            currency: Currency::DEFAULT,
            last: 20,
            residual: Residual::from_units(-21).expect("small"),
        }]),
    }
}

fn claimed() -> ClaimedNodes {
    let node = ClaimedNode {
        claim: 13,
        node: NodeNo(4),
        pool: PoolNo(3),
        capacity: Sorted::new([(ClassNo(6), Quanta(1)), (ClassNo(5), Quanta(15))]),
    };
    ClaimedNodes { nodes: Sorted::new([node]), own_evictions: Sorted::new([300, 22, 300]) }
}

/// Exactly these bytes, and no others that are close to them.
fn check<T: Field + PartialEq + std::fmt::Debug>(list: &T, expected: &str) {
    let bytes = list.to_bytes();
    assert_eq!(hex::encode(&bytes), expected.replace(char::is_whitespace, ""));
    assert_eq!(T::from_bytes(&bytes).as_ref(), Ok(list));
    for end in 0..bytes.len() {
        assert!(T::from_bytes(&bytes[..end]).is_err(), "{end} bytes are a list");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(T::from_bytes(&longer), Err(DecodeError::TrailingBytes(1)));
}

#[test]
fn common_lists_have_these_bytes() {
    check(
        &common(),
        "
        0100a0b830460300000101036770750100070001000170022e0100050000000000000045555280ade20480897ac0843d
        a0c21ee0a712000080c6868f018094ebdc0380dea0cb052e0200050000000000000045555280ade20480897ac0843da0
        c21ee0a712000080c6868f018094ebdc0380dea0cb050101060000000000000001010101014001750201014000455552
        03070000000000000001010173010201016d08020100000300010101040401010109010203000101010404 01
        ",
    );
}

#[test]
fn tenant_lists_have_these_bytes() {
    check(
        &tenant(),
        "
        0901016e01017401010170000182be0180d7cc5a0101010901070300010101040401020100040701010704 14
        010c0102030405060203010174010701080109000000000000000a00
        00000000000003040201010b000000000000000001040d0103000e0000000000000001050f0110000000000000000001
        1100000000000000120000000000000001130c010101455552142b
        ",
    );
    check(&TenantList::empty(TenantNo(1)), "010000000000000000000000");
}

#[test]
fn lists_of_claimed_nodes_have_these_bytes() {
    check(&claimed(), "010d040302050f06010216ac02");
    check(&ClaimedNodes::default(), "0000");
}

#[test]
fn a_list_out_of_order_is_refused() {
    let out_of_order = [0, 2, 22, 21];
    assert_eq!(ClaimedNodes::from_bytes(&out_of_order), Err(DecodeError::Forbidden("a list that is out of order")));
    assert!(ClaimedNodes::from_bytes(&[0, 2, 22, 22]).is_err(), "twice the same");
}

#[test]
fn equal_lists_have_equal_hashes_and_others_have_not() {
    assert_eq!(tenant().hash(), tenant().hash());
    assert_ne!(tenant().hash(), TenantList { leases: Sorted::new([lease(13)]), ..tenant() }.hash());
    assert_ne!(common().hash(), CommonList { opened: None, ..common() }.hash());
    assert_ne!(claimed().hash(), ClaimedNodes::default().hash());
}

/// Of several items with one key the last one counts, and any order gives the same list.
#[test]
fn a_sorted_list_has_each_key_once() {
    let names = Sorted::new([(PoolNo(2), name("b")), (PoolNo(1), name("a")), (PoolNo(2), name("c"))]);
    let told: Vec<String> = names.iter().map(|(pool, name)| format!("{pool} {name}")).collect();
    assert_eq!(told, ["pool-1 a", "pool-2 c"]);
    assert_eq!(names.get(&PoolNo(2)), Some(&(PoolNo(2), name("c"))));
    assert_eq!((names.get(&PoolNo(3)), names.len(), names.is_empty()), (None, 2, false));
}
