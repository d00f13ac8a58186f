//! The values of a configuration, to find out what differs between two of them.

use super::Config;

impl Config {
    /// Every key with its value, in the order of [`KEYS`](super::KEYS). The text of a value is only good for comparing.
    pub(crate) fn values(&self) -> Vec<(&'static str, String)> {
        vec![
            ("data", format!("{:?}", self.data)),
            ("listen", format!("{:?}", self.listen)),
            ("origin", format!("{:?}", self.origin)),
            ("tls.cert", format!("{:?}", self.tls.cert)),
            ("tls.key", format!("{:?}", self.tls.key)),
            ("limits.connections", format!("{:?}", self.limits.connections)),
            ("limits.connections_per_address", format!("{:?}", self.limits.connections_per_address)),
            ("limits.header_timeout", format!("{:?}", self.limits.header_timeout)),
            ("limits.body_timeout", format!("{:?}", self.limits.body_timeout)),
            ("limits.request_timeout", format!("{:?}", self.limits.request_timeout)),
            ("limits.idle_timeout", format!("{:?}", self.limits.idle_timeout)),
            ("limits.body_bytes", format!("{:?}", self.limits.body_bytes)),
            ("limits.batch_body_bytes", format!("{:?}", self.limits.batch_body_bytes)),
            ("limits.proof_bytes", format!("{:?}", self.limits.proof_bytes)),
            ("limits.streams", format!("{:?}", self.limits.streams)),
            ("limits.queued_requests", format!("{:?}", self.limits.queued_requests)),
            ("rate.operations_per_second", format!("{:?}", self.rate.operations_per_second)),
            ("rate.burst", format!("{:?}", self.rate.burst)),
            ("journal.segment_bytes", format!("{:?}", self.journal.segment_bytes)),
            ("journal.snapshot_every", format!("{:?}", self.journal.snapshot_every)),
            ("journal.checkpoint_every", format!("{:?}", self.journal.checkpoint_every)),
            ("journal.batch_records_max", format!("{:?}", self.journal.batch_records_max)),
            ("journal.archive", format!("{:?}", self.journal.archive)),
            ("journal.sensitive_retention", format!("{:?}", self.journal.sensitive_retention)),
            ("scrub.enabled", format!("{:?}", self.scrub.enabled)),
            ("scrub.every", format!("{:?}", self.scrub.every)),
            ("scrub.bytes_per_second", format!("{:?}", self.scrub.bytes_per_second)),
            ("engine.ttl_max", format!("{:?}", self.engine.ttl_max)),
            ("engine.grace_default", format!("{:?}", self.engine.grace_default)),
            ("engine.teardown_deadline", format!("{:?}", self.engine.teardown_deadline)),
            ("engine.node_timeout", format!("{:?}", self.engine.node_timeout)),
            ("engine.idempotency_window", format!("{:?}", self.engine.idempotency_window)),
            ("engine.heat_half_life", format!("{:?}", self.engine.heat_half_life)),
            ("engine.sensitive_pool_size", format!("{:?}", self.engine.sensitive_pool_size)),
            ("engine.head_wait_max", format!("{:?}", self.engine.head_wait_max)),
            ("engine.idle_node_after", format!("{:?}", self.engine.idle_node_after)),
            ("ledger.auto_open", format!("{:?}", self.ledger.auto_open)),
            ("ledger.payment_terms_days", format!("{:?}", self.ledger.payment_terms_days)),
            ("ledger.invoice_template", format!("{:?}", self.ledger.invoice_template)),
            ("issuer.name", format!("{:?}", self.issuer.name)),
            ("issuer.address", format!("{:?}", self.issuer.address)),
            ("issuer.tax_id", format!("{:?}", self.issuer.tax_id)),
            ("issuer.bank", format!("{:?}", self.issuer.bank)),
            ("accounting.enabled", format!("{:?}", self.accounting.enabled)),
            ("accounting.provider", format!("{:?}", self.accounting.provider)),
            ("accounting.buffer_size", format!("{:?}", self.accounting.buffer_size)),
            ("accounting.disk_buffer_path", format!("{:?}", self.accounting.disk_buffer_path)),
            ("accounting.disk_buffer_max_events", format!("{:?}", self.accounting.disk_buffer_max_events)),
            ("accounting.on_overflow", format!("{:?}", self.accounting.on_overflow)),
            ("accounting.webhooks.allowed_networks", format!("{:?}", self.accounting.webhooks.allowed_networks)),
            ("accounting.webhooks.allow_http", format!("{:?}", self.accounting.webhooks.allow_http)),
            ("accounting.webhooks.ca", format!("{:?}", self.accounting.webhooks.ca)),
            ("accounting.waldur.api_url", format!("{:?}", self.accounting.waldur.api_url)),
            ("accounting.waldur.allow_http", format!("{:?}", self.accounting.waldur.allow_http)),
            ("accounting.waldur.token_secret_ref", format!("{:?}", self.accounting.waldur.token_secret_ref)),
            ("accounting.waldur.push_interval_seconds", format!("{:?}", self.accounting.waldur.push_interval_seconds)),
            ("accounting.waldur.buffer_size", format!("{:?}", self.accounting.waldur.buffer_size)),
            ("accounting.waldur.disk_buffer_path", format!("{:?}", self.accounting.waldur.disk_buffer_path)),
            (
                "accounting.waldur.disk_buffer_max_events",
                format!("{:?}", self.accounting.waldur.disk_buffer_max_events),
            ),
            ("accounting.vault.address", format!("{:?}", self.accounting.vault.address)),
            ("accounting.vault.namespace", format!("{:?}", self.accounting.vault.namespace)),
            ("accounting.vault.ca", format!("{:?}", self.accounting.vault.ca)),
            ("accounting.vault.auth.approle.role_id", format!("{:?}", self.accounting.vault.auth.approle.role_id)),
            (
                "accounting.vault.auth.approle.secret_id_file",
                format!("{:?}", self.accounting.vault.auth.approle.secret_id_file),
            ),
            ("accounting.vault.auth.approle.mount", format!("{:?}", self.accounting.vault.auth.approle.mount)),
            ("accounting.vault.auth.token_file", format!("{:?}", self.accounting.vault.auth.token_file)),
            ("accounting.vault.auth.token_env", format!("{:?}", self.accounting.vault.auth.token_env)),
            ("clock.max_gap", format!("{:?}", self.clock.max_gap)),
            ("metrics.open", format!("{:?}", self.metrics.open)),
            ("log.level", format!("{:?}", self.log.level)),
            ("log.format", format!("{:?}", self.log.format)),
            ("log.requests", format!("{:?}", self.log.requests)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::KEYS;
    use crate::reload::RELOADED;

    #[test]
    fn every_key_has_its_value() {
        let values = Config::default().values();
        assert_eq!(values.iter().map(|(key, _)| *key).collect::<Vec<_>>(), KEYS);
        assert!(RELOADED.iter().all(|key| KEYS.contains(key)));
    }

    #[test]
    fn the_reference_page_says_which_keys_are_reloaded() {
        let page = include_str!("../../../../docs/reference/config.md");
        let (_, after) = page.split_once("These keys take effect on SIGHUP: ").expect("a list of keys");
        let (list, _) = after.split_once("\n\n").expect("the end of the list");
        let listed: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
        assert_eq!(listed, RELOADED);
    }
}
