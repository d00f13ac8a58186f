//! Prints signed requests as JSON, one in a line, for `tests/webhooks/check_signatures.py`, which verifies them with the
//! library of Standard Webhooks.

use leasehold_deliver::{Event, Message, SignatureKind, Signer, signatures};
use leasehold_model::Instant;
use std::time::{SystemTime, UNIX_EPOCH};

fn main() {
    // The library refuses what is older than five minutes.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let timestamp = since.as_secs();
    let bodies = [
        serde_json::json!({"lease": "lease-3", "quanta": "18446744073709551616"}),
        serde_json::json!({"text": "Grüße, 東京 \u{1f680} \" \\ \n \u{0}"}),
        serde_json::json!({}),
        serde_json::json!({"long": "x".repeat(100_000)}),
    ];
    for (number, data) in (0u16..).zip(bodies) {
        let secrets = [0; 3].map(|_| Signer::generate(SignatureKind::Hmac).expect("randomness"));
        let signers = secrets.each_ref().map(|secret| Signer::parse(secret).expect("just made"));
        let asymmetric = Signer::generate(SignatureKind::Ed25519).expect("randomness");
        let asymmetric = Signer::parse(&asymmetric).expect("just made");
        let event = Event {
            sequence: 7,
            position: number,
            id: format!("evt_7_{number}"),
            kind: "lease.granted".to_owned(),
            order: "lease-3".to_owned(),
            subject: "lease-3".to_owned(),
            time: Instant::from_secs(timestamp),
            data,
        };
        let message = Message::new(event, "leasehold://test");
        // As during a rotation: the last secret does not sign.
        let signing = [signers[0].clone(), signers[1].clone(), asymmetric.clone()];
        let vector = serde_json::json!({
            "id": message.id,
            "timestamp": timestamp,
            "body": std::str::from_utf8(&message.body).expect("JSON is UTF-8"),
            "signature": signatures(&signing, &message.id, timestamp, &message.body),
            "good_secrets": [secrets[0].expose(), secrets[1].expose()],
            "bad_secrets": [secrets[2].expose()],
            "public_key": asymmetric.public_key(),
        });
        println!("{vector}");
    }
}
