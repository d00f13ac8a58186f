//! The journal over HTTP: proofs that stand on their own, records as lines, batches as they lie in the files.

use crate::world::World;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use leasehold_api::{Checkpoint, ConsistencyProof, InclusionProof, Role};
use leasehold_model::RawBatch;
use leasehold_model::frame::record_hash;
use leasehold_tlog::{ConsistencyFile, Hash, InclusionFile, VerifierKey, leaf_hash};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The newest checkpoint, once it covers everything that was sealed.
pub(crate) async fn settled(world: &World) -> Checkpoint {
    let size = world.get("/api/v1/audit/records?limit=1").await.expect(200)["size"].as_u64().expect("a size");
    loop {
        let checkpoint = world.get("/api/v1/audit/checkpoint").await.expect(200);
        let checkpoint: Checkpoint = serde_json::from_value(checkpoint).expect("a checkpoint");
        if checkpoint.size >= size {
            return checkpoint;
        }
    }
}

pub(crate) async fn key(world: &World) -> VerifierKey {
    let first = world.get("/api/v1/audit/records?limit=1").await.expect(200)["records"][0].clone();
    let public_key = hash(first["body"]["public_key"].as_str().expect("the genesis record pins a key"));
    VerifierKey::new(first["body"]["origin"].as_str().expect("an origin"), &public_key).expect("a key")
}

fn hash(hex: &str) -> Hash {
    let byte = |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex");
    std::array::from_fn(byte)
}

fn hashes(path: &[String]) -> Vec<Hash> {
    path.iter().map(|text| BASE64_STANDARD.decode(text).expect("base64").try_into().expect("32 bytes")).collect()
}

async fn proved(world: &World, role: Role, sequence: u64) -> InclusionProof {
    let path = format!("/api/v1/audit/proofs/inclusion?sequence={sequence}");
    let answer = world.send(Some(&world.tokens[&role]), leasehold_api::Method::Get, &path, None).await;
    serde_json::from_value(answer.expect(200)).expect("a proof")
}

/// Seals so many records: requests that are denied.
async fn fill(world: &World, records: usize) {
    let ask = |n: usize| {
        json!({ "key": format!("fill-{n}"), "request": {
            "tenant": "physics", "project": "physics-main", "ttl": "1h", "asks": [{ "class": "h100", "quantity": 7 }] } })
    };
    let before = world.get("/api/v1/audit/records?limit=1").await.expect(200)["size"].as_u64().expect("a size");
    let operations: Vec<Value> = (0..records).map(ask).collect();
    world.post("/api/v1/leases/batch", json!({ "operations": operations })).await.expect(200);
    let after = world.get("/api/v1/audit/records?limit=1").await.expect(200)["size"].as_u64().expect("a size");
    assert_eq!(after - before, records as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_record_is_proved_to_everybody_and_shown_to_those_who_may_see_it() {
    let world = World::furnished().await;
    fill(&world, 2100).await;
    let (checkpoint, key) = (settled(&world).await, key(&world).await);
    let page = world.get("/api/v1/audit/records?limit=1000").await.expect(200);
    let records = page["records"].as_array().expect("records").clone();
    for sequence in [0, 1, 7, 30, 500, 999] {
        let record = &records[usize::try_from(sequence).expect("small")];
        for role in Role::ALL.iter().copied() {
            let proof = proved(&world, role, sequence).await;
            assert_eq!(proof.record_hash, record["current_event_hash"].as_str().expect("a hash"));
            assert!(proof.checkpoint.size >= checkpoint.size);
            let leaf = leaf_hash(&hash(&proof.record_hash));
            let file = InclusionFile::parse(&proof.proof).expect("a tlog-proof");
            let proved = file.verify(&leaf, std::slice::from_ref(&key), &checkpoint.origin).expect("it holds");
            assert_eq!((file.index(), proved.size()), (sequence, proof.checkpoint.size));
            let path = leasehold_tlog::InclusionProof {
                leaf_index: sequence,
                tree_size: proof.checkpoint.size,
                hashes: hashes(&proof.path),
            };
            assert_eq!(path.verify(&leaf, proved.root()), Ok(()));
            let tenant = record["identity"]["tenant"].as_str();
            let visible = match role {
                Role::Operator | Role::Auditor => true,
                Role::TenantAdmin => tenant == Some("physics"),
                Role::ProjectMember => {
                    tenant == Some("physics") && record["kind"].as_str().unwrap_or("").starts_with("lease.")
                }
                // What is on its node is another test's matter.
                Role::NodeAgent if record["kind"] != "lease.denied" => continue,
                Role::NodeAgent => false,
                Role::AppOperator | Role::BillingAuthority => false,
            };
            let carried = file.unauthenticated_extra();
            assert_eq!(carried.is_some(), visible, "{role} and {record}");
            assert!(carried.is_none_or(|bytes| record_hash(bytes) == hash(&proof.record_hash)));
        }
    }
    for sequence in [1023, 1024, 1025, 2047, 2048, checkpoint.size - 1] {
        let proof = proved(&world, Role::Auditor, sequence).await;
        let file = InclusionFile::parse(&proof.proof).expect("a tlog-proof");
        let leaf = leaf_hash(&hash(&proof.record_hash));
        assert!(file.verify(&leaf, std::slice::from_ref(&key), &checkpoint.origin).is_ok(), "{sequence}");
    }
    let beyond = world.get(&format!("/api/v1/audit/proofs/inclusion?sequence={}", checkpoint.size + 1000)).await;
    assert_eq!((beyond.status, beyond.code().as_str()), (404, "no_such_record"));
    assert!(beyond.json()["detail"].as_str().is_some_and(|text| text.contains("try again in a moment")), "{beyond:?}");
    for path in ["", "?sequence=x", "?sequence=-1"] {
        let bad = world.get(&format!("/api/v1/audit/proofs/inclusion{path}")).await;
        assert_eq!((bad.status, bad.code().as_str()), (400, "bad_query"), "{path}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn growth_is_proved_from_any_size_to_any_other() {
    let world = World::furnished().await;
    let (early, key) = (settled(&world).await, key(&world).await);
    fill(&world, 2100).await;
    let newest = settled(&world).await;
    let growth = async |query: String| -> ConsistencyProof {
        let answer = world.get(&format!("/api/v1/audit/proofs/consistency?{query}")).await;
        serde_json::from_value(answer.expect(200)).expect("a proof")
    };
    let root = |text: &str| -> Hash { hashes(&[text.to_owned()])[0] };

    // From a checkpoint that was seen, to the newest one: the text is all that is needed.
    let proof = growth(format!("from={}", early.size)).await;
    assert_eq!((&proof.from_root, proof.to), (&early.root, proof.checkpoint.size));
    let keys = std::slice::from_ref(&key);
    let seen = leasehold_tlog::Checkpoint::open(&early.note, keys, &early.origin).expect("signed");
    let file = ConsistencyFile::parse(proof.proof.as_deref().expect("it leads to the checkpoint")).expect("a proof");
    assert_eq!(file.verify(&seen, keys).expect("it grew").size(), proof.to);

    for (from, to) in [(0, 0), (0, 5), (1, 1), (1, 2), (7, 1024), (1000, 2048), (1024, 2047), (early.size, newest.size)]
    {
        let proof = growth(format!("from={from}&to={to}")).await;
        assert_eq!((proof.from, proof.to), (from, to));
        let path = leasehold_tlog::ConsistencyProof { old_size: from, new_size: to, hashes: hashes(&proof.path) };
        assert_eq!(path.verify(&root(&proof.from_root), &root(&proof.to_root)), Ok(()), "{from} to {to}");
        assert_eq!(proof.proof.is_some(), to == proof.checkpoint.size);
        // The end of one proof is the beginning of the next.
        let on = growth(format!("from={to}")).await;
        assert_eq!(on.from_root, proof.to_root);
    }
    let refused = async |query: &str| {
        let answer = world.get(&format!("/api/v1/audit/proofs/consistency?{query}")).await;
        (answer.status, answer.code())
    };
    assert_eq!(refused("from=2&to=1").await, (400, "bad_query".into()));
    assert_eq!(refused("to=1").await, (400, "bad_query".into()));
    assert_eq!(refused("from=9999999").await, (404, "no_such_record".into()));
    assert_eq!(refused("from=1&to=9999999").await, (404, "no_such_record".into()));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_has_every_record_with_the_names_of_its_time() {
    let world = World::furnished().await;
    fill(&world, 1500).await;
    world
        .send(
            Some(&world.operator),
            leasehold_api::Method::Put,
            "/api/v1/tenants/physics",
            Some(json!({ "name": "astronomy" })),
        )
        .await
        .expect(200);
    fill_as(&world, "astronomy").await;
    let lines = async |query: &str| -> Vec<Value> {
        let answer = world.get(&format!("/api/v1/audit/export{query}")).await;
        assert_eq!(
            (answer.status, answer.headers["content-type"].as_bytes()),
            (200, b"application/x-ndjson".as_slice())
        );
        answer.text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    };
    let all = lines("").await;
    for (pair, sequence) in all.windows(2).zip(0_u64..) {
        assert_eq!(pair[0]["sequence"], sequence);
        assert_eq!(pair[1]["prev_event_hash"], pair[0]["current_event_hash"]);
    }
    let tenants: BTreeSet<&str> = all.iter().filter_map(|record| record["identity"]["tenant"].as_str()).collect();
    assert_eq!(tenants, BTreeSet::from(["astronomy", "chemistry", "physics"]));
    let is_change = |record: &Value| record["kind"] == "tenant.put" && record["body"]["tenant"] == "astronomy";
    let renamed = all.iter().position(is_change).expect("the change");
    assert!(all[..renamed].iter().all(|record| record["identity"]["tenant"] != "astronomy"));
    assert!(all[renamed..].iter().all(|record| record["identity"]["tenant"] != "physics"));

    // A part is the same part, names learnt before it included.
    let (from, to) = (renamed + 1, all.len() - 1);
    assert_eq!(lines(&format!("?from={from}&to={to}")).await, all[from..=to]);
    assert_eq!(lines("?to=0").await, all[..1]);
    assert_eq!(lines(&format!("?from={}", all.len() - 1)).await.len(), 1);
    let refused = async |query: &str| {
        let answer = world.get(&format!("/api/v1/audit/export{query}")).await;
        (answer.status, answer.code())
    };
    assert_eq!(refused("?from=3&to=2").await, (400, "bad_query".into()));
    assert_eq!(refused("?from=99999999").await, (404, "no_such_record".into()));
    let forbidden = world
        .send(Some(&world.tokens[&Role::TenantAdmin]), leasehold_api::Method::Get, "/api/v1/audit/export", None)
        .await;
    assert_eq!((forbidden.status, forbidden.code().as_str()), (403, "role_forbids"));
    world.stop().await;
}

async fn fill_as(world: &World, tenant: &str) {
    let request = json!({ "tenant": tenant, "project": "physics-main", "ttl": "1h", "asks": [{ "class": "h100", "quantity": 7 }] });
    let denied = world.post("/api/v1/leases", request).await;
    assert_eq!(denied.code(), "quota_exceeded");
}

/// More exports than there are readers of the journal, none of which takes what it gets; and some that go away.
#[tokio::test(flavor = "multi_thread")]
async fn slow_readers_hold_up_nobody() {
    let world = World::furnished().await;
    for _ in 0..3 {
        fill_more(&world).await;
    }
    let open = async || {
        let request = world.client().get(format!("{}/api/v1/audit/export", world.url));
        request.header("authorization", format!("Bearer {}", world.operator)).send().await.expect("an answer")
    };
    let mut slow = Vec::new();
    for _ in 0..8 {
        slow.push(open().await);
        drop(open().await);
    }
    // Readers of the journal's files still get their turn.
    let whole = world.get("/api/v1/audit/export").await;
    assert_eq!(whole.status, 200);
    proved(&world, Role::Auditor, 3).await;
    world.get("/api/v1/audit/records?limit=1000").await.expect(200);
    // And one that was slow for a while gets all of it.
    let late = slow.pop().expect("one of them").text().await.expect("the rest");
    assert!(late.lines().count() >= 12_000, "{}", late.lines().count());
    assert!(whole.text.starts_with(&late) || late.starts_with(&whole.text));
    world.stop().await;
}

async fn fill_more(world: &World) {
    let ask = |_| {
        json!({ "request": {
            "tenant": "physics", "project": "physics-main", "ttl": "1h", "asks": [{ "class": "h100", "quantity": 7 }] } })
    };
    let operations: Vec<Value> = (0..4000).map(ask).collect();
    world.post("/api/v1/leases/batch", json!({ "operations": operations })).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_are_the_bytes_of_the_segments() {
    let world = World::furnished().await;
    fill(&world, 2100).await;
    let size = settled(&world).await.size;
    let fetch = async |from: u64| {
        let request = world.client().get(format!("{}/api/v1/audit/batches?from={from}", world.url));
        let answer =
            request.header("authorization", format!("Bearer {}", world.operator)).send().await.expect("an answer");
        let number = |name: &str| answer.headers()[name].to_str().expect("text").parse::<u64>().expect("a number");
        let told = (
            number(leasehold_api::FIRST_SEQUENCE),
            number(leasehold_api::NEXT_FROM),
            number(leasehold_api::CHECKPOINT_SIZE),
        );
        assert_eq!(answer.status(), 200);
        (told, answer.bytes().await.expect("a body").to_vec())
    };
    let (mut all, mut from, mut beginnings) = (Vec::new(), 0, Vec::new());
    while from < size {
        let ((first, next, checkpointed), bytes) = fetch(from).await;
        assert_eq!(first, from);
        assert!(next > from && checkpointed >= size);
        let mut at = 0;
        let mut sequence = first;
        while at < bytes.len() {
            let batch = RawBatch::read(&bytes[at..]).expect("a whole batch");
            beginnings.push(sequence);
            for record in batch.records() {
                assert_eq!(record.expect("a frame").sequence(), Ok(sequence));
                sequence += 1;
            }
            at += batch.bytes_total();
        }
        assert_eq!(sequence, next);
        all.extend(bytes);
        from = next;
    }
    // From within a batch, its beginning is handed out; from the end, nothing.
    for from in [1, 2, 1000, size - 1] {
        let ((first, ..), bytes) = fetch(from).await;
        assert_eq!(first, *beginnings.iter().rfind(|first| **first <= from).expect("a batch"));
        assert!(all.windows(bytes.len().min(64)).any(|window| bytes.starts_with(window)));
    }
    let ((first, next, _), bytes) = fetch(from).await;
    assert!(first == from && next >= from && (bytes.is_empty() == (next == from)));
    let beyond = world.get("/api/v1/audit/batches?from=99999999").await;
    assert_eq!((beyond.status, beyond.code().as_str()), (404, "no_such_record"));

    let folder = world.stop().await;
    let mut stored = Vec::new();
    let mut names: Vec<_> = std::fs::read_dir(folder.path().join("data/journal"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    names.retain(|path| path.extension().is_some_and(|ending| ending == "seg"));
    names.sort();
    for path in names {
        stored.extend_from_slice(&std::fs::read(path).expect("a segment")[96..]);
    }
    assert_eq!(all, stored[..all.len()]);
}
