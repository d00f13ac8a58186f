//! Lists with several pages.

use crate::fake::{Fake, Reply};
use serde_json::{Value, json};

fn user(id: u32) -> Value {
    json!({ "id": id, "name": format!("u{id}"), "tenant": "t", "tenant_id": 1, "new": [] })
}

#[tokio::test]
async fn all_pages_are_followed_with_the_filter_of_the_first() {
    let fake = Fake::start(|_, asked| {
        let page = match asked.path.split_once("cursor=").map(|(_, cursor)| cursor) {
            None => json!({ "users": [user(1), user(2)], "next_cursor": "two" }),
            // A page may be empty even if more pages follow.
            Some("two") => json!({ "users": [], "next_cursor": "three" }),
            Some("three") => json!({ "users": [user(3)], "later": 1 }),
            Some(other) => panic!("{other}"),
        };
        Reply::Json(200, page)
    })
    .await;
    let client = fake.client();
    let call = || client.list_users().query("tenant", "t").query("limit", 2);
    let users = call().all().await.unwrap();
    assert_eq!(users.iter().map(|user| user.id).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(fake.asked().iter().all(|asked| asked.path.contains("tenant=t&limit=2")), "{:?}", fake.asked());
    let json = call().all_json().await.unwrap();
    assert_eq!(json, json!({ "users": [user(1), user(2), user(3)], "later": 1 }));
    let mut pages = call().pages();
    assert_eq!(pages.next().await.unwrap().map(|users| users.len()), Some(2));
    assert_eq!(pages.next().await.unwrap().map(|users| users.len()), Some(0));
    assert_eq!(pages.next().await.unwrap().map(|users| users.len()), Some(1));
    assert!(pages.next().await.unwrap().is_none());
}

#[tokio::test]
async fn records_are_followed_to_the_end_of_the_journal() {
    let fake = Fake::start(|_, asked| {
        let after: u64 = asked.path.split_once("after=").map_or(0, |(_, after)| after.parse().unwrap());
        Reply::Json(200, json!({ "records": [{ "sequence": after + 1 }], "next_after": after + 10, "size": 31 }))
    })
    .await;
    let records = fake.client().list_records().query("kind", "lease").all().await.unwrap();
    assert_eq!(records.iter().map(|record| record["sequence"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 11, 21]);
}

#[tokio::test]
async fn a_repeated_cursor_is_an_error() {
    let fake = Fake::start(|_, _| Reply::Json(200, json!({ "users": [], "next_cursor": "again" }))).await;
    let error = fake.client().list_users().all().await.unwrap_err();
    assert_eq!((error.code(), fake.asked().len()), ("bad_answer", 2));
}
