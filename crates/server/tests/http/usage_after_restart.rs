//! Usage that is reported while a daemon has just started: it is accepted once the books have caught up, and once.

use crate::ledger::Ledger;
use crate::usage_records::{PATH, Reporting, record};
use crate::world::{Answer, World};
use leasehold_api::Method;
use leasehold_cell::ManualClock;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

struct Restarted {
    world: World,
    token: String,
}

impl Restarted {
    /// Ends the daemon, lets something happen to its data directory, and starts it again.
    async fn after(reporting: Reporting, between: impl FnOnce(&Path)) -> Self {
        let Reporting { ledger: Ledger { world, clock }, token } = reporting;
        let folder = world.stop().await;
        between(&folder.path().join("data"));
        Self::at(clock, folder, token).await
    }

    async fn at(clock: Arc<ManualClock>, folder: tempfile::TempDir, token: String) -> Self {
        Self { world: World::at(clock, folder, |_| {}).await, token }
    }

    async fn post(&self, body: &Value) -> Answer {
        self.world.send(Some(&self.token), Method::Post, PATH, Some(body.clone())).await
    }

    /// Reports as a client does: what is answered with `Retry-After` is sent again. A report waits until the books have
    /// caught up, so that nothing has to sleep here.
    async fn accepted(&self, body: &Value) -> Answer {
        loop {
            let answer = self.post(body).await;
            if answer.status != 503 {
                return answer;
            }
            is_behind(&answer);
            self.world.get("/api/v1/ledger").await;
        }
    }

    /// Every record by its ID, as often as it was recorded.
    async fn recorded(&self) -> Vec<String> {
        let records = self.world.get("/api/v1/audit/records?kind=usage.recorded&limit=1000").await.expect(200);
        let records = records["records"].as_array().expect("a list").iter();
        records.map(|record| record["body"]["id"].as_str().expect("an ID").to_owned()).collect()
    }
}

#[track_caller]
fn is_behind(answer: &Answer) {
    assert_eq!((answer.status, answer.code()), (503, "books_behind".to_owned()), "{}", answer.text);
    assert_eq!(answer.headers["retry-after"], "5");
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_accepted_at_once_after_a_restart() {
    let reporting = Reporting::open().await;
    reporting.post(&record("before", json!({}))).await.expect(201);
    let again = Restarted::after(reporting, |_| {}).await;
    // The first requests that this daemon gets.
    let known = again.accepted(&record("before", json!({}))).await.expect(200);
    assert_eq!(known["repeated"], true);
    again.accepted(&record("after", json!({}))).await.expect(201);
    let other = again.accepted(&record("before", json!({ "quantity": 11 }))).await;
    assert_eq!((other.status, other.code()), (409, "usage_id_taken".to_owned()));
    assert_eq!(again.recorded().await, ["before", "after"]);
    again.world.stop().await;
}

/// The books cannot be opened at first: nothing is accepted on the word of the engine alone, which remembers only the
/// last IDs. Once the books have caught up, what was sent again is recorded once.
#[tokio::test(flavor = "multi_thread")]
async fn usage_waits_for_books_that_are_behind() {
    let reporting = Reporting::open().await;
    reporting.post(&record("before", json!({}))).await.expect(201);
    // What is in the way of the books is no file, so that they cannot be rebuilt either.
    let again = Restarted::after(reporting, |data| {
        std::fs::remove_file(data.join("books.redb")).expect("the books");
        std::fs::create_dir(data.join("books.redb")).expect("a folder");
    })
    .await;
    let batch = json!({ "records": [record("before", json!({})), record("1", json!({})), record("2", json!({}))] });
    for body in [record("before", json!({})), record("1", json!({})), batch.clone()] {
        is_behind(&again.post(&body).await);
    }
    let mut together = batch.clone();
    together["atomic"] = json!(true);
    is_behind(&again.post(&together).await);
    // Leases do not wait for the books.
    let lease = json!({ "tenant": "physics", "project": "physics-main", "ttl": "1h",
        "asks": [{ "class": "h100", "quantity": 1 }] });
    again.world.post("/api/v1/leases", lease).await.expect(201);
    assert_eq!(again.recorded().await, ["before"], "what was refused left nothing");

    std::fs::remove_dir(again.world.folder.path().join("data/books.redb")).expect("the folder");
    let answer = again.accepted(&batch).await.expect(200);
    let statuses: Vec<&Value> =
        answer["results"].as_array().expect("a list").iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, [200, 201, 201], "{answer}");
    let answer = again.accepted(&together).await.expect(200);
    let statuses: Vec<&Value> =
        answer["results"].as_array().expect("a list").iter().map(|result| &result["status"]).collect();
    assert_eq!(statuses, [200, 200, 200], "{answer}");
    assert_eq!(again.recorded().await, ["before", "1", "2"]);
    again.world.stop().await;
}
