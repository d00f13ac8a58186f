"""Checks signatures that our code made with the library of Standard Webhooks (v1), and with `cryptography` (v1a).

    cargo run --quiet --package leasehold-deliver --example webhook_vectors > vectors.jsonl
    python tests/webhooks/check_signatures.py vectors.jsonl

`make test` does this with the example that the tests have built. Needs the packages in requirements.txt. A signature is also altered in several ways, and must then be refused.
"""

import base64
import json
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks.webhooks import Webhook, WebhookVerificationError


def verifies(secret, body, headers):
    try:
        Webhook(secret).verify(body, headers)
    except WebhookVerificationError:
        return False
    return True


def verifies_ed25519(public_key, body, headers):
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key.removeprefix("whpk_")))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{body}".encode()
    for signature in headers["webhook-signature"].split(" "):
        version, _, value = signature.partition(",")
        if version == "v1a":
            try:
                key.verify(base64.b64decode(value), signed)
                return True
            except InvalidSignature:
                pass
    return False


def check(vector):
    body = vector["body"]
    headers = {
        "webhook-id": vector["id"],
        "webhook-timestamp": str(vector["timestamp"]),
        "webhook-signature": vector["signature"],
    }
    altered = [
        (body + " ", headers),
        (body, headers | {"webhook-id": vector["id"] + "1"}),
        (body, headers | {"webhook-timestamp": str(vector["timestamp"] + 1)}),
        (body, headers | {"webhook-signature": "v1,AAAA v1a,AAAA"}),
    ]
    for secret in vector["good_secrets"]:
        assert verifies(secret, body, headers), f"{vector['id']}: a good signature is refused"
        for other_body, other in altered:
            assert not verifies(secret, other_body, other), f"{vector['id']}: an altered request is accepted"
    for secret in vector["bad_secrets"]:
        assert not verifies(secret, body, headers), f"{vector['id']}: another secret is accepted"
    assert verifies_ed25519(vector["public_key"], body, headers), f"{vector['id']}: v1a is refused"
    for other_body, other in altered[:3]:
        assert not verifies_ed25519(vector["public_key"], other_body, other), f"{vector['id']}: altered v1a is accepted"
    event = json.loads(body)
    assert event["specversion"] == "1.0" and event["id"] == vector["id"], "not a CloudEvent"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        vectors = [json.loads(line) for line in file]
    assert vectors, "there are no vectors"
    for vector in vectors:
        check(vector)
    print(f"{len(vectors)} signed requests verified with the library of Standard Webhooks")


if __name__ == "__main__":
    main()
