//! Proofs of invoices: each tenant gets its own, checks it without the daemon, and sees nothing of others in it.

use crate::audit::{key, settled};
use crate::ledger::Ledger;
use leasehold_api::{Method, Role};
use leasehold_bill::Verdict;
use leasehold_verify::Trust;
use leasehold_verify::invoice::{Judged, Pinning, SignedBy, verify_invoice};
use serde_json::{Value, json};

const HOUR: u64 = 3600;

impl Ledger {
    /// The token of a new tenant admin.
    async fn admin_of(&self, tenant: &str) -> String {
        let new = json!({ "name": format!("{tenant} prover"), "role": "tenant_admin", "tenant": tenant });
        let issued = self.world.post("/api/v1/tokens", new).await.expect(201);
        issued["secret"].as_str().expect("a secret").to_owned()
    }

    /// The newest invoice of a tenant.
    async fn invoice_of(&self, tenant: &str) -> Value {
        let listed = self.get(&format!("/api/v1/invoices?tenant={tenant}")).await;
        listed["invoices"].as_array().and_then(|all| all.last()).expect("an invoice").clone()
    }

    /// The proof of the newest invoice of a tenant, fetched with its own token once a checkpoint covers it.
    pub(crate) async fn proof_of(&self, tenant: &str) -> (Value, Vec<u8>) {
        let token = self.admin_of(tenant).await;
        self.proof_with(tenant, &token, "").await
    }

    /// The same with a token and query parameters.
    async fn proof_with(&self, tenant: &str, token: &str, query: &str) -> (Value, Vec<u8>) {
        settled(&self.world).await;
        let invoice = self.invoice_of(tenant).await;
        let number = invoice["number"].as_str().expect("text");
        let path = format!("{}/api/v1/invoices/{number}/proof{query}", self.world.url);
        let answer = self.world.client().get(path).bearer_auth(token).send().await.expect("an answer");
        let status = answer.status();
        let file = answer.bytes().await.expect("a file").to_vec();
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&file));
        (invoice, file)
    }

    /// Every invoice of January follows from its proof, as the payer checks it.
    pub(crate) async fn prove_january(&self) {
        settled(&self.world).await;
        let trust = self.trust().await;
        let listed = self.get("/api/v1/invoices?month=2026-01").await;
        for invoice in listed["invoices"].as_array().expect("a list") {
            let number = invoice["number"].as_str().expect("text");
            let path = format!("{}/api/v1/invoices/{number}/proof", self.world.url);
            let answer =
                self.world.client().get(path).bearer_auth(&self.world.operator).send().await.expect("an answer");
            let (status, file) = (answer.status(), answer.bytes().await.expect("a file"));
            assert_eq!(status, 200, "{number}: {}", String::from_utf8_lossy(&file));
            let judged = verify_invoice(&file, &[], &trust).expect("a proof");
            assert!(judged.is_proved(), "{number}: {}", explain(&judged));
            let (_, issued) = judged.checked.report.invoice.as_ref().expect("it is proved");
            assert_eq!(json!(issued.total.to_string()), invoice["total"], "{number}");
        }
    }

    pub(crate) async fn trust(&self) -> Trust {
        Trust::new(key(&self.world).await)
    }
}

impl Ledger {
    /// Replaces the signing key.
    async fn rotate(&self) {
        self.world.post("/api/v1/audit/keys/rotate", json!({})).await.expect(200);
        settled(&self.world).await;
        self.world.post("/api/v1/audit/keys/finish", json!({})).await.expect(200);
    }
}

pub(crate) fn explain(judged: &Judged) -> String {
    format!("{:#?} {:?}", judged.checked.report.mismatches, judged.broken)
}

#[tokio::test]
async fn each_tenant_proves_its_invoice_and_sees_no_other() {
    let ledger = Ledger::open().await;
    ledger.pass(HOUR).await;
    ledger.close_january().await;
    let trust = ledger.trust().await;
    for (tenant, other, posted) in [("physics", "chemistry", "144.000000"), ("chemistry", "physics", "72.000000")] {
        let (invoice, file) = ledger.proof_of(tenant).await;
        let judged = verify_invoice(&file, &[], &trust).expect("a proof");
        assert!(judged.is_proved(), "{}", explain(&judged));
        let report = &judged.checked.report;
        let (sequence, issued) = report.invoice.as_ref().expect("the invoice");
        assert_eq!(
            (json!(sequence), json!(issued.total.to_string())),
            (invoice["sequence"].clone(), invoice["total"].clone())
        );
        // Two GPUs, or one, for two hours at 36.00 an hour.
        let lines: Vec<_> = report.lines.iter().map(|line| (line.posted.to_string(), line.verdict)).collect();
        assert_eq!(lines, [(posted.to_owned(), Verdict::Proved)]);
        // No name of the other tenant, its project, its tokens or its accounting tags.
        for name in [other.to_owned(), format!("{other}-main"), format!("{other}-tenant_admin")] {
            assert!(!file.windows(name.len()).any(|window| window == name.as_bytes()), "{name} is in the file");
        }
        assert!(file.windows(tenant.len()).any(|window| window == tenant.as_bytes()), "its own name is there");
    }
    ledger.world.stop().await;
}

/// A lease runs over the end of January. The file of February proves its second part, and fits to that of January. With
/// LEASEHOLD_KEEP_PROOFS the files are kept in that directory: those of `verify/tests/proofs` were made so.
#[tokio::test]
async fn months_fit_together() {
    let ledger = Ledger::open().await;
    ledger.pass(2 * HOUR).await;
    let request = json!({ "tenant": "physics", "project": "physics-main", "ttl": "3h",
        "asks": [{ "class": "h100", "quantity": 4 }] });
    ledger.world.post("/api/v1/leases", request).await.expect(201);
    ledger.close_january().await;
    let (_, january) = ledger.proof_of("physics").await;
    ledger.pass(28 * 24 * HOUR).await;
    ledger.world.post("/api/v1/periods/2026-02/close", json!({})).await.expect(202);
    ledger.world.until("/api/v1/periods/2026-02", |period| period["state"] == "closed").await;
    let (invoice, february) = ledger.proof_of("physics").await;
    assert_eq!(invoice["month"], "2026-02");
    let trust = ledger.trust().await;
    let judged = verify_invoice(&february, std::slice::from_ref(&january), &trust).expect("proofs");
    assert!(judged.is_proved(), "{}", explain(&judged));
    // Four GPUs for 2 h 20 min of February, at 36.00 an hour.
    let lines: Vec<_> = judged.checked.report.lines.iter().map(|line| line.posted.to_string()).collect();
    assert_eq!(lines, ["336.000000"]);
    if let Some(folder) = std::env::var_os("LEASEHOLD_KEEP_PROOFS").map(std::path::PathBuf::from) {
        let trust = trust.to_text().into_bytes();
        for (name, bytes) in [("january.proof", &january), ("february.proof", &february), ("payer.trust", &trust)] {
            std::fs::write(folder.join(name), bytes).expect("the file is written");
        }
    }
    // The files are not earlier ones the other way round.
    let judged = verify_invoice(&january, std::slice::from_ref(&february), &trust).expect("proofs");
    assert!(!judged.is_proved());
    ledger.world.stop().await;
}

#[tokio::test]
async fn a_proof_is_for_those_who_see_the_invoice_and_for_closed_months() {
    let ledger = Ledger::open().await;
    ledger.pass(HOUR).await;
    ledger.close_january().await;
    settled(&ledger.world).await;
    let path = |invoice: &Value| format!("/api/v1/invoices/{}/proof", invoice["number"].as_str().expect("text"));
    let (own, foreign) = (path(&ledger.invoice_of("physics").await), path(&ledger.invoice_of("chemistry").await));
    let get = |role, path: String| ledger.as_role(role, Method::Get, path.leak(), None);
    assert_eq!(get(Role::TenantAdmin, foreign).await.expect(404)["code"], "unknown_invoice");
    assert_eq!(get(Role::ProjectMember, own.clone()).await.expect(403)["code"], "role_forbids");
    assert_eq!(
        get(Role::TenantAdmin, "/api/v1/invoices/INV-999/proof".into()).await.expect(404)["code"],
        "unknown_invoice"
    );
    for role in [Role::Operator, Role::BillingAuthority, Role::TenantAdmin] {
        assert_eq!(get(role, own.clone()).await.status, 200, "{role}");
    }
    ledger.world.stop().await;
}

/// The key is replaced before the range of February, in it and after it. Whoever trusts the first key follows it through
/// the records in the file, and gets a decision about the checkpoint that was pinned at the beginning.
#[tokio::test]
async fn rotated_keys_and_pinned_checkpoints_are_followed() {
    let ledger = Ledger::open().await;
    let (mut old, seen) = (ledger.trust().await, settled(&ledger.world).await);
    ledger.rotate().await;
    ledger.pass(2 * HOUR).await;
    let request = json!({ "tenant": "physics", "project": "physics-main", "ttl": "3h",
        "asks": [{ "class": "h100", "quantity": 4 }] });
    ledger.world.post("/api/v1/leases", request).await.expect(201);
    ledger.close_january().await;
    ledger.rotate().await;
    ledger.pass(28 * 24 * HOUR).await;
    ledger.world.post("/api/v1/periods/2026-02/close", json!({})).await.expect(202);
    ledger.world.until("/api/v1/periods/2026-02", |period| period["state"] == "closed").await;
    ledger.rotate().await;
    let token = ledger.admin_of("physics").await;
    let (_, plain) = ledger.proof_with("physics", &token, "").await;
    let judged = verify_invoice(&plain, &[], &old).expect("a proof");
    assert!(judged.is_proved(), "{}", explain(&judged));
    let SignedBy::RotatedTo { sequence } = judged.checked.signed_by else { panic!("the first key does not sign") };
    assert_eq!(judged.checked.aside.len(), 4, "a statement and three rotations");
    assert!(judged.checked.aside.iter().any(|(at, _)| *at == sequence));
    // Without the pinned size, nothing is decided about it.
    old.pin(&seen.note).expect("a checkpoint");
    let judged = verify_invoice(&plain, &[], &old).expect("a proof");
    assert_eq!(judged.checked.pinning, Pinning::Undecided { pinned: seen.size });
    let (_, grown) = ledger.proof_with("physics", &token, &format!("?since_size={}", seen.size)).await;
    let judged = verify_invoice(&grown, &[], &old).expect("a proof");
    assert!(judged.is_proved(), "{}", explain(&judged));
    assert_eq!(judged.checked.pinning, Pinning::Continues { pinned: seen.size });
    let number = ledger.invoice_of("physics").await["number"].as_str().expect("text").to_owned();
    let later = format!("/api/v1/invoices/{number}/proof?since_size=1000000").leak();
    assert_eq!(ledger.as_role(Role::TenantAdmin, Method::Get, later, None).await.expect(400)["code"], "bad_query");
    ledger.world.stop().await;
}
