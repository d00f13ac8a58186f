//! Changing the configuration while the daemon runs, as far as that is possible.

use crate::app::App;
use crate::config::{Config, Limits};
use crate::shares::ShareLimits;
use crate::tls::{Reload, Tls, TlsError};
use std::sync::Weak;
use tokio::sync::watch;

/// The keys that take effect without a restart. The files of `tls.cert` and `tls.key` can be replaced, but TLS cannot be
/// switched on or off.
pub const RELOADED: &[&str] = &[
    "tls.cert",
    "tls.key",
    "limits.connections",
    "limits.connections_per_address",
    "limits.body_bytes",
    "limits.batch_body_bytes",
    "limits.streams",
    "rate.operations_per_second",
    "rate.burst",
    "ledger.invoice_template",
    "issuer.name",
    "issuer.address",
    "issuer.tax_id",
    "issuer.bank",
    "metrics.open",
    "log.level",
    "log.requests",
];

/// What a reload has changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// The keys that took effect.
    pub keys: Vec<&'static str>,
    /// The files of the certificate have changed and are in use.
    pub certificate: bool,
    /// The keys that differ from those of the start, and take effect at the next start.
    pub restart: Vec<&'static str>,
}

/// Applies a new configuration to a running daemon.
pub struct Reloader {
    pub(crate) app: Weak<App>,
    pub(crate) tls: Option<Tls>,
    pub(crate) limits: watch::Sender<Limits>,
    /// The configuration of the start, and the one of which the keys in [`RELOADED`] are in force.
    pub(crate) started: Config,
    pub(crate) in_force: Config,
}

/// The keys whose values differ.
fn differing(one: &Config, other: &Config) -> Vec<&'static str> {
    let pairs = one.values().into_iter().zip(other.values());
    pairs.filter(|(one, other)| one != other).map(|((key, _), _)| key).collect()
}

impl Reloader {
    /// Applies what can be applied. The configuration must have been checked; if the certificate cannot be used
    /// nevertheless, nothing is changed.
    pub fn reload(&mut self, config: Config) -> Result<Reloaded, TlsError> {
        let mut reloaded = Reloaded::default();
        let switched = self.started.tls.cert.is_some() != config.tls.cert.is_some();
        let is_reloaded = |key: &&str| RELOADED.contains(key) && !(switched && key.starts_with("tls."));
        if let (Some(tls), Some(cert), Some(key)) = (&self.tls, &config.tls.cert, &config.tls.key) {
            match tls.reload_from(cert, key) {
                Reload::Kept(error) => return Err(error),
                Reload::Replaced => reloaded.certificate = true,
                Reload::Unchanged => {}
            }
        }
        reloaded.keys = differing(&self.in_force, &config).into_iter().filter(is_reloaded).collect();
        reloaded.restart = differing(&self.started, &config).into_iter().filter(|key| !is_reloaded(key)).collect();
        if let Some(app) = self.app.upgrade() {
            app.settings.set(&config);
            // The configuration was checked; a template that was changed since stays as it was.
            if let Err(why) = app.printing.set(&config) {
                tracing::warn!(why, "the template of invoices cannot be used; the earlier one stays");
            }
            app.live.shares.set_limits(ShareLimits::parts_of(config.limits.streams as usize));
            if reloaded.keys.iter().any(|key| key.starts_with("rate.")) {
                app.rate.set(&config.rate);
            }
        }
        if reloaded.keys.iter().any(|key| key.starts_with("limits.connections")) {
            // If nobody listens any more, the daemon is stopping.
            let _ = self.limits.send(config.limits.clone());
        }
        self.in_force = config;
        Ok(reloaded)
    }
}
