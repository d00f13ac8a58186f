//! The JSON view: nothing dropped, names where they are known, numbers that survive.

use crate::arbitrary::journals;
use crate::samples;
use crate::samples::{NEW_YEAR, granted, leases, name};
use crate::sealing::{cases, seal};
use crate::story::{self, show, show_to};
use leasehold_model::TenantSettings;
use leasehold_model::body::{Body, Expired, Fenced, PerPriority, PoolPut, TenantDeleted, TenantPut, Unfenced};
use leasehold_model::*;
use leasehold_view::Directory;
use proptest::prelude::{prop_assert_eq, proptest};
use serde_json::{Value, json};

/// The fields of the seed's `AuditRecord`.
const AUDIT_RECORD: [&str; 10] = [
    "kind",
    "identity",
    "reason",
    "timestamp",
    "sequence",
    "prev_event_hash",
    "current_event_hash",
    "signature",
    "affected_hcl_entry",
    "dra_claim_id",
];
/// The fields of the seed's `LeaseEvent`.
const LEASE_EVENT: [&str; 10] = [
    "event_id",
    "timestamp",
    "tenant_id",
    "accounting_tag",
    "lease_id",
    "resource_type",
    "capacity",
    "node_id",
    "event_type",
    "tier_kind",
];

fn events(shown: &Value) -> &[Value] {
    shown["lease_events"].as_array().map_or(&[], Vec::as_slice)
}

fn check_complete(shown: &Value) {
    let has = |value: &Value, field: &str| value.as_object().is_some_and(|object| object.contains_key(field));
    for field in AUDIT_RECORD {
        assert!(has(shown, field), "no {field} in {shown}");
    }
    let about_leases = shown["kind"].as_str().is_some_and(|kind| kind.starts_with("lease."));
    assert_eq!(has(shown, "lease_events"), about_leases, "{shown}");
    for event in events(shown) {
        for field in LEASE_EVENT {
            assert!(has(event, field), "no {field} in {event}");
        }
    }
}

/// Every number in a JSON value is an integer that all readers keep exact.
fn check_numbers(value: &Value) {
    match value {
        Value::Number(n) => assert!(n.as_u64().is_some_and(|n| n < 1 << 53), "{n}"),
        Value::Array(items) => items.iter().for_each(check_numbers),
        Value::Object(fields) => fields.values().for_each(check_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[test]
fn nothing_of_the_audit_record_or_the_lease_event_is_dropped() {
    for shown in show(&samples::every_kind()).iter().chain(&show(&story::records())) {
        check_complete(shown);
        check_numbers(shown);
    }
}

#[test]
fn the_parts_of_a_full_head_are_all_shown() {
    let shown = show(&samples::every_kind());
    let shown = shown.iter().find(|shown| shown["affected_hcl_entry"] == "hcl/9").expect("it is among the samples");
    let expected = [
        ("reason", json!("preempted")),
        ("preempted_by", json!(300)),
        ("affected_hcl_entry", json!("hcl/9")),
        ("dra_claim_id", json!("claim-9")),
        ("continues", json!(true)),
        ("effective_at", json!("2025-12-31T23:59:59.9985Z")),
        ("effective_at_ns", json!("1767225599998500000")),
    ];
    for (field, value) in expected {
        assert_eq!(shown[field], value, "{field}");
    }
    // The samples delete what they put, so the tenant has no name any more.
    assert_eq!(shown["identity"]["tenant"], Value::Null);
    assert_eq!(shown["identity"]["tenant_id"], 1);
    assert_eq!(shown["identity"]["workload"], "train-7b");
    assert_eq!(shown["identity"]["token_id"], 4);
    assert_eq!(shown["signatures"][0]["public_key"], "33".repeat(32));
    assert_eq!(shown["signature"], shown["signatures"][0]["signature"]);
}

#[test]
fn ids_lead_back_to_records_and_leases() {
    let records = story::records();
    let mut directory = Directory::new();
    let shown = show_to(&mut directory, &records);
    let genesis = directory.genesis().expect("the story begins at the beginning");
    let grant = &shown[9];
    let id = |value: &Value| PublicId(u128::from_str_radix(value.as_str().expect("a string"), 16).expect("hex"));
    assert_eq!(id(&grant["event_id"]).number(genesis, id::IdKind::Record), Some(9));
    assert_eq!(id(&events(grant)[1]["lease_id"]).number(genesis, id::IdKind::Lease), Some(43));
    assert_eq!(id(&events(grant)[1]["event_id"]), PublicId::new(genesis, id::IdKind::LeaseEvent, 1, 9));
    // Correlation IDs are UUIDs.
    let correlation =
        CorrelationId::parse(grant["body"]["correlation_id"].as_str().expect("a string")).expect("a UUID");
    assert_eq!(PublicId(correlation.0).number(genesis, id::IdKind::Correlation), Some(9));
}

#[test]
fn a_reader_that_begins_in_the_middle_shows_numbers_and_the_same_ids() {
    let records = story::records();
    let whole = show(&records);
    let genesis = {
        let mut directory = Directory::new();
        show_to(&mut directory, &records);
        *directory.genesis().expect("the story begins at the beginning")
    };

    // From the grant on: the lease is known, the names are not.
    let from_grant = show_to(&mut Directory::with_genesis(genesis), &records[9..]);
    let event = &events(&from_grant[0])[0];
    assert_eq!(event["lease_id"], events(&whole[9])[0]["lease_id"]);
    assert_eq!(event["event_id"], events(&whole[9])[0]["event_id"]);
    assert_eq!((&event["tenant_id"], &event["tenant"]), (&json!(1), &Value::Null));
    assert_eq!((&event["node_id"], &event["node"]), (&json!(300), &Value::Null));
    assert_eq!((&event["capacity"], &event["capacity_units"]), (&json!(14), &Value::Null));

    // After the grant: what the record itself says is all there is.
    let after_grant = show_to(&mut Directory::new(), &records[10..]);
    let event = &events(&after_grant[1])[0];
    assert_eq!((&event["lease"], &event["lease_id"]), (&json!("lease-42"), &Value::Null));
    assert_eq!((&event["tenant_id"], &event["capacity"]), (&json!(1), &Value::Null));
    assert_eq!(event["event_type"]["Renewed"]["new_expires_at_ns"], "1767232870000000000");
    after_grant.iter().for_each(check_complete);
}

#[test]
fn passing_over_a_record_teaches_as_much_as_showing_it() {
    let records = story::records();
    let batch = seal(&records);
    let frames: Vec<_> = RawBatch::read(&batch).expect("a good batch").records().map(Result::unwrap).collect();
    let mut directory = Directory::new();
    for frame in &frames[..11] {
        directory.pass(frame, &frame.hash()).expect("a good record");
    }
    let shown = directory.show(&frames[11], &frames[11].hash()).expect("a good record");
    assert_eq!(shown, show(&records)[11]);
}

#[test]
fn a_lease_keeps_the_tag_of_its_grant() {
    let mut records = story::records()[..12].to_vec();
    let retagged = TenantPut {
        tenant: TenantNo(1),
        settings: TenantSettings {
            accounting_tag: Some(name("cost-9999")),
            ..TenantSettings::named(name("astronomy"))
        },
    };
    records[10] = Record::new(10, records[10].stamp, retagged);
    let shown = show(&records);
    let event = &events(&shown[11])[0];
    assert_eq!((&event["accounting_tag"], &event["tenant"]), (&json!("cost-4711"), &json!("astronomy")));
}

#[test]
fn what_is_deleted_is_named_once_more_and_then_forgotten() {
    let mut records = story::records()[..9].to_vec();
    records.push(Record::new(9, NEW_YEAR, TenantDeleted { tenant: TenantNo(1) }));
    let mut next = Record::new(10, NEW_YEAR, body::Heartbeat {});
    next.identity.tenant = Some(TenantNo(1));
    next.identity.project = Some(ProjectNo(2));
    next.identity.user = Some(UserNo(3));
    records.push(next);
    let shown = show(&records);
    assert_eq!(shown[9]["body"], json!({ "tenant": "physics", "tenant_id": 1 }));
    let unnamed = json!({
        "tenant": null, "tenant_id": 1, "project": null, "project_id": 2, "user": null, "user_id": 3,
        "workload": null, "token_id": null,
    });
    assert_eq!(shown[10]["identity"], unnamed);
}

#[test]
fn closed_leases_are_forgotten_once_they_were_shown() {
    let mut directory = Directory::new();
    let shown = show_to(&mut directory, &story::records());
    let torn_down = shown.iter().find(|shown| shown["kind"] == "lease.torn_down").expect("it is in the story");
    assert_eq!(events(torn_down)[1]["capacity_units"], "80 GiB");
    assert_eq!(directory.live_leases(), 0);

    // A fence holds on to its lease until an operator clears it.
    let ends: [(Body, usize); 4] = [
        (granted().into(), 1),
        (Expired { leases: leases(&[42]), closed: false, belongs_to: None }.into(), 1),
        (Fenced { leases: leases(&[42]), belongs_to: None }.into(), 1),
        (Unfenced { leases: leases(&[42]), belongs_to: None, reason: None }.into(), 0),
    ];
    for (sequence, (body, live)) in (0u64..).zip(ends) {
        let kind = body.word();
        show_to(&mut directory, &[Record::new(sequence, NEW_YEAR, body)]);
        assert_eq!(directory.live_leases(), live, "after {kind}");
    }
}

#[test]
fn keys_are_shown_as_text_only_if_they_are_text() {
    let shown = |key: &[u8]| {
        let mut record = Record::new(0, NEW_YEAR, body::Heartbeat {});
        record.idempotency =
            Some(Idempotency { owner: None, key: leasehold_model::Key::new(key).expect("a key"), payload: [0; 16] });
        show(&[record])[0]["idempotency"].clone()
    };
    assert_eq!(shown("Größe 7".as_bytes())["key"], "Größe 7");
    assert_eq!(shown(b"a\nb")["key_hex"], "610a62");
    assert_eq!(shown("a\u{202e}b".as_bytes())["key_hex"], "61e280ae62");
    assert_eq!(shown(&[0xff, 0])["key_hex"], "ff00");
    assert!(shown(&[0xff, 0]).get("key").is_none());
}

#[test]
fn a_record_too_short_for_its_link_is_refused() {
    let raw = RawRecord { bytes: &[0; 31], signatures: &[] };
    assert_eq!(Directory::new().show(&raw, &[0; 32]), Err(DecodeError::Truncated));
}

/// Counts that do not fit are strings; everything else stays a number.
#[test]
fn no_number_is_larger_than_every_reader_can_hold() {
    let mut record = Record::new((1 << 53) - 1, NEW_YEAR, body::Heartbeat {});
    assert_eq!(show(&[record.clone()])[0]["sequence"], (1u64 << 53) - 1);
    record.sequence += 1;
    assert_eq!(show(&[record])[0]["sequence"], "9007199254740992");
    let pool = PoolPut {
        pool: PoolNo(u32::MAX),
        name: name("p"),
        strategy: Strategy::Spread,
        ttl_max: PerPriority([Some(Span(u64::MAX)), None, None]),
        lifetime_max: PerPriority::default(),
        grace: None,
    };
    let shown = &show(&[Record::new(0, NEW_YEAR, pool)])[0];
    assert_eq!(shown["body"]["ttl_max"]["scavenger_ns"], u64::MAX.to_string());
    assert_eq!(shown["body"]["grace"], Value::Null);
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn any_journal_can_be_shown(records in journals(1..12)) {
        let shown = show(&records);
        prop_assert_eq!(shown.len(), records.len());
        for (shown, record) in shown.iter().zip(&records) {
            check_complete(shown);
            prop_assert_eq!(&shown["kind"], record.body.word());
            check_numbers(shown);
            prop_assert_eq!(&serde_json::from_str::<Value>(&shown.to_string()).expect("JSON"), shown);
        }
    }
}
