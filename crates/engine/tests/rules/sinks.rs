//! Sinks (SEMANTICS 14).

use crate::support::{STAGE, check_on};
use expect_test::expect;

/// Codes of refusals that are reached here.
pub(crate) const CODES: &[&str] =
    &["unknown_webhook", "webhook_disabled", "webhook_owner_fixed", "bad_webhook_events", "bad_reconciliation"];

#[track_caller]
fn story(story: &str, expected: expect_test::Expect) {
    check_on(STAGE, story, expected);
}

#[test]
fn a_webhook_is_the_operators_or_a_tenants() {
    story(
        "
        1 op webhook biller events=node.claimed,lease.*,lease.*
        1 op webhook biller
        1 op webhook biller of=a
        1 a webhook own ed25519
        1 a webhook theirs of=b
        1 b webhook own number=1
        1 b unhook 0
        1 b unhook 1
        1 b disable 1
        2 a webhook own2 number=2 events=lease.granted
        2 op webhook own2 number=2
        2 op webhook own3 number=2 of=a
        3 op webhook other number=9
        3 op webhook other of=nobody
        ",
        expect![[r#"
            1 - sink-0 biller gets lease.*,node.claimed by hmac
            1 refused: name_taken
            1 a sink-1 biller gets * by hmac
            1 a sink-2 own gets * by ed25519
            1 refused: unknown_tenant
            1 refused: unknown_webhook
            1 refused: unknown_webhook
            1 refused: unknown_webhook
            1 refused: unknown_webhook
            2 a sink-2 own2 gets lease.granted by hmac
            2 refused: webhook_owner_fixed
            2 a sink-2 own3 gets * by hmac
            3 refused: unknown_webhook
            3 refused: unknown_tenant
        "#]],
    );
}

#[test]
fn disabled_it_is_enabled_by_setting_it_again() {
    story(
        "
        1 a webhook own
        2 op disable 0 gone
        2 a disable 0
        3 a webhook own number=0
        3 a disable 0
        4 a unhook 0
        4 a unhook 0
        5 a webhook own
        ",
        expect![[r#"
            1 a sink-0 own gets * by hmac
            2 a sink-0 disabled: gone
            2 refused: webhook_disabled
            3 a sink-0 own gets * by hmac
            3 a sink-0 disabled: requested
            4 a sink-0 deleted
            4 refused: unknown_webhook
            5 a sink-1 own gets * by hmac
        "#]],
    );
}

#[test]
fn webhooks_go_with_their_tenant() {
    story(
        "
        1 op tenant c
        1 op webhook own of=c
        1 op webhook biller
        2 op delete tenant c
        3 op disable 0
        3 op disable 1
        ",
        expect![[r#"
            1 c tenant.put
            1 c sink-0 own gets * by hmac
            1 - sink-1 biller gets * by hmac
            2 tenant-2 tenant.deleted
            3 refused: unknown_webhook
            3 - sink-1 disabled: requested
        "#]],
    );
}

#[test]
fn limits() {
    story(
        "
        1 op webhook many many=64
        1 op webhook more many=65
        1 op webhook none many=0
        2 op reconciled 0 from=1 to=1
        2 op reconciled 0 from=2 to=1
        2 a reconciled 0 from=1 to=2
        ",
        expect![[r#"
            1 - sink-0 many gets e.0,e.1,e.10 by hmac
            1 refused: bad_webhook_events
            1 refused: bad_webhook_events
            2 - accounting.reconciled
            2 refused: bad_reconciliation
            2 refused: unknown_webhook
        "#]],
    );
}
