//! `leasehold webhook …`, `deliveries …` and `admin accounting …`, against a real daemon and a small receiver.

use super::common::leasehold;
use super::{Daemon, refuses, tells};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::mpsc::{Receiver as Arrived, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

const CONFIG: &str = "accounting:\n  enabled: true\n  webhooks:\n    allowed_networks: [\"127.0.0.0/8\"]\n";
const MINE: &str = "--tenant physics --project lattice";
/// Far longer than a delivery takes: a test that fails says so.
const PATIENCE: Duration = Duration::from_secs(30);

/// One delivery: its headers, in lower case, and its body.
struct Delivery {
    headers: BTreeMap<String, String>,
    body: Value,
}

impl Delivery {
    fn kind(&self) -> &str {
        self.body["type"].as_str().expect("a type")
    }
}

/// How a receiver answers.
struct Answers {
    status: u16,
    /// Answers wait while this is set.
    is_held: bool,
}

/// A receiver on loopback.
struct Receiver {
    url: String,
    answers: Arc<(Mutex<Answers>, Condvar)>,
    arrived: Arrived<Delivery>,
}

impl Receiver {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let answers = Arc::new((Mutex::new(Answers { status: 200, is_held: false }), Condvar::new()));
        let (send, arrived) = channel();
        let shared = Arc::clone(&answers);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answers, send) = (Arc::clone(&shared), send.clone());
                std::thread::spawn(move || serve(stream, &answers, &send));
            }
        });
        Self { url, answers, arrived }
    }

    fn answer(&self, status: u16) {
        self.answers.0.lock().unwrap().status = status;
    }

    fn hold(&self, is_held: bool) {
        self.answers.0.lock().unwrap().is_held = is_held;
        self.answers.1.notify_all();
    }

    fn next(&self) -> Delivery {
        self.arrived.recv_timeout(PATIENCE).expect("a delivery")
    }

    fn kinds<const N: usize>(&self) -> [String; N] {
        [(); N].map(|()| self.next().kind().to_owned())
    }
}

/// Serves one connection until it is closed.
fn serve(stream: TcpStream, answers: &(Mutex<Answers>, Condvar), send: &Sender<Delivery>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a connection"));
    let mut writer = stream;
    loop {
        let mut headers = BTreeMap::new();
        let mut line = String::new();
        loop {
            line.clear();
            if !reader.read_line(&mut line).is_ok_and(|read| read > 0) {
                return;
            }
            match line.trim_end().split_once(": ") {
                Some((name, value)) => drop(headers.insert(name.to_lowercase(), value.to_owned())),
                None if line.trim_end().is_empty() => break,
                None => {}
            }
        }
        let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let body = serde_json::from_slice(&body).expect("JSON");
        let _ = send.send(Delivery { headers, body });
        let waited = answers.1.wait_while(answers.0.lock().unwrap(), |answers| answers.is_held);
        let status = waited.unwrap().status;
        if write!(writer, "HTTP/1.1 {status} Status\r\ncontent-length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}

fn site() -> (Daemon, Receiver) {
    let daemon = Daemon::configured(CONFIG, None);
    daemon.furnish();
    (daemon, Receiver::start())
}

fn lease(daemon: &Daemon) -> String {
    let granted = daemon.json(&format!("lease request --gpu 1 --ttl 1h {MINE}"));
    granted["leases"][0]["id"].as_str().expect("an id").to_owned()
}

/// Looks at the deliveries to the first webhook until they are as wanted. They leave no records to wait for.
fn until(daemon: &Daemon, is_so: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status: Value = serde_json::from_str(&daemon.get("/api/v1/deliveries")).expect("JSON");
        let first = status["deliveries"][0].clone();
        if is_so(&first) {
            return first;
        }
        assert!(Instant::now() < deadline, "{first}");
    }
}

#[test]
fn a_webhook_is_made_tested_changed_and_deleted() {
    let (daemon, receiver) = site();
    let made = daemon.run(&format!("webhook create biller --to {} --events lease.*,node.claimed", receiver.url)).ok();
    // The secret alone is data.
    assert!(made.out.starts_with("whsec_") && made.out.lines().count() == 1, "{made:?}");
    assert!(made.err.contains("biller") && made.err.contains("shown only once"), "{made:?}");
    tells(&daemon.run("webhook list").ok(), &["biller", "enabled", &receiver.url, "lease.*,node.claimed", "hmac"]);
    let shown = daemon.run("webhook show biller").ok();
    tells(&shown, &["biller", "lease.*, node.claimed", "hmac"]);
    assert!(!shown.out.contains("whsec_"), "{shown:?}");

    tells(&daemon.run("webhook test biller").ok(), &["the receiver took the event", "200", "time taken"]);
    assert_eq!(receiver.next().kind(), "leasehold.test");
    receiver.answer(500);
    let failed = daemon.run("webhook test biller");
    tells(&failed, &["did not take the event", "500"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    let failed = daemon.run("webhook test biller --json");
    assert_eq!((failed.code, &failed.json()["status"]), (1, &json!(500)));
    receiver.answer(200);
    receiver.kinds::<2>();

    let held = lease(&daemon);
    let granted = receiver.next();
    assert_eq!((granted.kind(), granted.headers["webhook-id"].as_str()), ("lease.granted", id(&granted)));
    assert_eq!(granted.headers["webhook-signature"].split(' ').count(), 1);
    until(&daemon, |status| status["delivered"] == 1);
    let attempts = daemon.run("webhook attempts biller").ok();
    tells(&attempts, &["leasehold.test", "500", "lease.granted", "200", id(&granted)]);

    // While the secret is rotated there are two signatures, and then one again.
    let rotated = daemon.run("webhook rotate-secret biller --overlap 1h --out {}/second.secret").ok();
    tells(&rotated, &["signed with the old secret as well for 1h", "second.secret"]);
    let file = daemon.path("second.secret");
    assert_eq!(fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&file).expect("a file").starts_with("whsec_"));
    daemon.run(&format!("lease renew {held} --ttl 2h")).ok();
    assert_eq!(receiver.next().headers["webhook-signature"].split(' ').count(), 2);
    let last = daemon.json("webhook rotate-secret biller --overlap 0s");
    assert!(last["secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")), "{last}");
    daemon.run(&format!("lease renew {held} --ttl 3h")).ok();
    assert_eq!(receiver.next().headers["webhook-signature"].split(' ').count(), 1);

    // What happens while it is disabled is delivered later.
    until(&daemon, |status| status["delivered"] == 3);
    daemon.run("webhook disable biller").ok();
    tells(&daemon.run("webhook list").ok(), &["disabled: requested"]);
    refuses(&daemon.run("webhook disable biller"), 1, "webhook_disabled");
    daemon.run(&format!("lease release {held}")).ok();
    let set = daemon.run("webhook set biller --name invoices --enable").ok();
    tells(&set, &["invoices", "enabled"]);
    assert_eq!(receiver.kinds(), ["lease.released"]);
    refuses(&daemon.run("webhook set invoices"), 2, "usage");

    tells(&daemon.run("webhook delete invoices").ok(), &["invoices is deleted"]);
    refuses(&daemon.run("webhook show invoices"), 1, "unknown_webhook");

    let public = daemon.run(&format!("webhook create signed --to {} --signature ed25519", receiver.url)).ok();
    assert!(public.out.starts_with("whpk_") && public.err.contains("The public key is shown only once"), "{public:?}");
    // A tenant's own; the operator names its tenant.
    daemon.run(&format!("webhook create signed --to {} --tenant physics", receiver.url)).ok();
    tells(&daemon.run("webhook show signed --tenant physics").ok(), &["physics", "hmac"]);
    assert_eq!(daemon.json("webhook list --tenant physics")["webhooks"].as_array().map(Vec::len), Some(1));
    daemon.run("token issue admin --role tenant_admin --tenant physics --out {}/admin.token").ok();
    let seen = daemon.by("admin.token", "webhook list --json").ok().json();
    assert_eq!(
        (&seen["webhooks"][0]["signature"], seen["webhooks"].as_array().map(Vec::len)),
        (&json!("hmac"), Some(1))
    );
    daemon.stop();
}

fn id(delivery: &Delivery) -> &str {
    delivery.body["id"].as_str().expect("an id")
}

#[test]
fn what_is_refused_is_set_aside_and_sent_again() {
    let (daemon, receiver) = site();
    let new = format!("webhook create biller --to {} --events lease.granted,lease.released", receiver.url);
    daemon.run(&new).ok();
    let first = daemon.json("webhook show biller")["sequence"].clone();
    receiver.answer(422);
    let held = lease(&daemon);
    let refused = receiver.next();
    until(&daemon, |status| status["dead_letters"] == 1);
    tells(&daemon.run("webhook dead-letters biller").ok(), &[id(&refused), "lease.granted", "422"]);
    tells(&daemon.run("deliveries list").ok(), &["biller", "delivering"]);
    receiver.answer(200);
    daemon.run(&format!("lease release {held}")).ok();
    assert_eq!(receiver.kinds(), ["lease.released"]);
    until(&daemon, |status| status["lag_events"] == 0);

    // Refused again, it stays set aside.
    receiver.answer(422);
    let again = daemon.run("deliveries retry biller");
    assert_eq!((again.code, again.out.as_str()), (1, "1 event sent, 0 acknowledged\n"), "{again:?}");
    assert!(again.err.contains("(partly_failed)") && again.err.contains("dead-letters biller"), "{again:?}");
    receiver.next();
    receiver.answer(200);
    refuses(&daemon.run("deliveries retry biller --event 00"), 1, "no_dead_letter");

    // Compared, sent, and compared again.
    let reconcile = "admin accounting reconcile --since yesterday";
    let plan = daemon.run(&format!("{reconcile} --dry-run")).ok();
    tells(
        &plan,
        &["biller", "would be sent", "Missing at biller", "lease.granted", "set aside: the endpoint answered 422"],
    );
    assert!(plan.err.contains("1 event would be sent"), "{plan:?}");
    let planned = daemon.json("admin accounting reconcile biller --since yesterday --dry-run");
    assert_eq!([&planned["due"], &planned["dead"], &planned["sent"]], [2, 1, 0].map(|n| json!(n)).each_ref());
    let done = daemon.run(reconcile).ok();
    assert_eq!(id(&receiver.next()), id(&refused));
    tells(&done, &["biller", "sent", "record"]);
    let second = daemon.run(reconcile).ok();
    tells(&second, &["Nothing to send"]);
    let second = daemon.json(reconcile);
    assert!(second["webhooks"][0]["result"]["sequence"].is_u64(), "{second}");
    let records = daemon.run("audit records --kind accounting --json").ok().lines();
    let record = records.iter().find(|record| record["body"]["sent"] == 1).expect("the one that sent something");
    assert_eq!((&record["kind"], &record["body"]["sent"]), (&json!("accounting.reconciled"), &json!(1)));
    assert!(done.out.contains(&record["sequence"].to_string()), "{done:?}");
    assert_eq!(daemon.run("deliveries retry biller").ok().out, "nothing to send\n");
    tells(&daemon.run("deliveries job biller").ok(), &["retry", "finished"]);

    // A gap that the receiver knows of is replayed.
    let replayed = daemon.run(&format!("deliveries replay biller --from {first}")).ok();
    assert_eq!(replayed.out, "2 events sent, all acknowledged\n");
    assert_eq!(receiver.kinds(), ["lease.granted", "lease.released"]);
    daemon.stop();
}

/// An answer waits for one second here; what takes longer is followed.
#[test]
fn long_work_is_followed_or_left_alone() {
    let daemon = Daemon::configured(&format!("{CONFIG}limits:\n  request_timeout: 2s\n"), None);
    daemon.furnish();
    let receiver = Receiver::start();
    daemon.run(&format!("webhook create biller --to {} --events lease.granted", receiver.url)).ok();
    lease(&daemon);
    receiver.next();
    until(&daemon, |status| status["lag_events"] == 0);
    receiver.hold(true);
    let left = daemon.run("deliveries replay biller --from 0 --no-wait").ok();
    tells(&left, &["The replay goes on (job 1)", "leasehold deliveries job biller"]);
    tells(&daemon.run("deliveries job biller").ok(), &["replay", "running", "0 of 1"]);
    tells(&daemon.run("deliveries list").ok(), &["replay"]);
    refuses(&daemon.run("deliveries retry biller"), 1, "delivery_busy");
    receiver.hold(false);
    until(&daemon, |status| status["job"]["state"] == "finished");

    receiver.hold(true);
    let mut following = daemon.command("data/operator.token", "deliveries replay biller --from 0 --json");
    following.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let following = following.spawn().expect("the binary runs");
    // The answer says that it goes on only after a second, so the command has to ask again.
    until(&daemon, |status| status["job"]["job"] == 2);
    receiver.kinds::<2>();
    let began = Instant::now();
    until(&daemon, |_| began.elapsed() > Duration::from_millis(1_500));
    receiver.hold(false);
    let output = following.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    let sent: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(sent, json!({ "sent": 1, "delivered": 1, "failed": 0, "unreadable": [] }));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "nothing is drawn without a terminal");
    daemon.stop();
}

#[test]
fn the_status_says_what_is_behind_and_what_to_set() {
    let (daemon, receiver) = site();
    let none = daemon.run("admin accounting status").ok();
    tells(&none, &["Deliveries of events: enabled", "There are no webhooks", "accounting.buffer_size is 10,000"]);
    daemon.run(&format!("webhook create biller --to {} --tenant physics", receiver.url)).ok();
    tells(&daemon.run("admin accounting status").ok(), &["physics/biller", "not tried yet"]);
    receiver.answer(503);
    lease(&daemon);
    receiver.next();
    until(&daemon, |status| status["state"] == "failing");
    let failing = daemon.run("admin accounting status").ok();
    tells(&failing, &["physics/biller", "no", "the last attempt failed: the endpoint answered 503", "next attempt"]);
    receiver.answer(200);
    until(&daemon, |status| status["lag_events"] == 0);
    tells(&daemon.run("admin accounting status").ok(), &["physics/biller", "yes"]);
    let status = daemon.json("admin accounting status");
    assert_eq!((&status["enabled"], &status["advice"]["buffer_size"]), (&json!(true), &json!(10_000)));
    // A tenant sees its own, and no advice.
    daemon.run("token issue admin --role tenant_admin --tenant physics --out {}/admin.token").ok();
    let seen = daemon.by("admin.token", "admin accounting status").ok();
    assert!(seen.out.contains("physics/biller") && !seen.out.contains("buffer_size"), "{seen:?}");
    daemon.stop();
}

#[test]
fn wrong_words_are_refused_with_advice() {
    let (daemon, receiver) = site();
    let url = &receiver.url;
    for (line, exit, code, word) in [
        ("webhook show nobody".to_owned(), 1, "unknown_webhook", ""),
        ("webhook create x --to https://10.0.0.7/hook".to_owned(), 1, "bad_webhook_url", "10.0.0.7 is not public"),
        ("webhook create x --to ftp://example.com/".to_owned(), 1, "bad_webhook_url", ""),
        ("webhook create x --to https://me:word@example.com/".to_owned(), 1, "bad_webhook_url", ""),
        (format!("webhook create x --to {url} --events lease.grant"), 1, "unknown_event_type", "lease.granted"),
        (format!("webhook create x --to {url} --signature rot13"), 2, "usage", "hmac"),
        ("webhook create x".to_owned(), 2, "usage", "--to"),
        ("deliveries replay x --from".to_owned(), 2, "usage", "--from"),
    ] {
        let said = daemon.run(&line);
        refuses(&said, exit, code);
        assert!(said.err.contains(word), "no {word:?} in {said:?}");
    }
    // If nothing was made, no empty file is left.
    refuses(&daemon.run("webhook create x --to https://10.0.0.7/ --out {}/x.secret"), 1, "bad_webhook_url");
    assert!(!daemon.path("x.secret").exists());
    daemon.run(&format!("webhook create biller --to {url}")).ok();
    let near = daemon.run("webhook show bilker");
    assert!(near.err.contains("did you mean \"biller\"?"), "{near:?}");
    let reversed = "admin accounting reconcile biller --since 2026-03-02 --until 2026-03-01";
    refuses(&daemon.run(reversed), 1, "bad_reconciliation");
    refuses(&daemon.run("deliveries replay biller --from 1000000"), 1, "no_such_record");
    refuses(&daemon.run("deliveries job biller"), 1, "no_delivery_job");
    refuses(&daemon.run("admin accounting reconcile nobody --since yesterday"), 1, "unknown_webhook");
    // Members of a project manage no webhooks.
    refuses(&daemon.by("ci.token", "webhook list"), 1, "role_forbids");
    daemon.stop();
}

#[test]
fn without_deliveries_the_commands_say_so() {
    let daemon = Daemon::with_cluster();
    tells(&daemon.run("admin accounting status").ok(), &["off (accounting.enabled is false)"]);
    refuses(&daemon.run("webhook create x --to https://example.com/"), 1, "accounting_disabled");
    assert_eq!(daemon.run("deliveries list").ok().err, "leasehold: nothing found\n");
    let none = daemon.run("admin accounting reconcile --since yesterday").ok();
    assert!(none.out.is_empty() && none.err.contains("there are no webhooks"), "{none:?}");
    daemon.stop();
}

/// The list is compiled in.
#[test]
fn event_types_are_listed_without_a_daemon() {
    let listed = leasehold(["webhook", "events"]).ok();
    tells(&listed, &["lease.granted", "A lease was granted", "node.claimed", "accounting", "Families: lease.*"]);
    let listed = leasehold(["webhook", "events", "--json"]).ok().json();
    assert_eq!(
        listed["events"][0],
        json!({ "type": "lease.granted", "about": "lease", "meaning": "A lease was granted" })
    );
    assert_eq!(listed["others"], json!(["accounting", "*"]));
}
