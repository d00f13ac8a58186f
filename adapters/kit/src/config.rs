//! The section `leasehold` of an adapter's configuration: where to report, as which app instance, and since when.

use leasehold_client::api::{Ttl, When};
use leasehold_client::{Client, Named, Settings, Timeouts};
use leasehold_model::Span;
use leasehold_terminal::{DaemonArgs, Problem};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

const EVERY: (Span, Span) = (Span::from_millis(100), Span::from_secs(24 * 3600));
const PATIENCE: (Span, Span) = (Span::from_millis(100), Span::from_secs(3600));

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Leasehold {
    pub url: Option<String>,
    pub token_file: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
    /// The app instance whose usage is reported.
    pub app_instance: String,
    /// Its tenant; needed if the token belongs to none.
    pub tenant: Option<String>,
    /// What ended before is not reported. Without it, a lost state directory could not be told from a first start.
    pub begin: Option<When>,
    /// The state directory.
    pub state: Option<PathBuf>,
    #[serde(deserialize_with = "span")]
    pub every: Span,
    /// How long a call to the daemon is tried before the pass fails.
    #[serde(deserialize_with = "span")]
    pub patience: Span,
    /// Users of the runtime by their names at Leasehold, where these differ.
    pub users: BTreeMap<String, String>,
}

impl Default for Leasehold {
    fn default() -> Self {
        Self {
            url: None,
            token_file: None,
            ca_file: None,
            app_instance: String::new(),
            tenant: None,
            begin: None,
            state: None,
            every: Span::from_secs(60),
            patience: Span::from_secs(60),
            users: BTreeMap::new(),
        }
    }
}

/// A length of time, written like `90s`.
pub fn span<'de, D: Deserializer<'de>>(from: D) -> Result<Span, D::Error> {
    let text = Cow::<str>::deserialize(from)?;
    text.parse::<Ttl>().map(|ttl| ttl.0).map_err(D::Error::custom)
}

impl Leasehold {
    /// Adds what is wrong to `found`, one line each.
    pub fn check(&self, found: &mut Vec<String>) {
        if self.app_instance.is_empty() {
            found.push("`leasehold.app_instance`: missing; give the name of the app instance".into());
        }
        if self.begin.is_none() {
            found.push("`leasehold.begin`: missing; give the instant since when usage is reported".into());
        }
        for (key, value, (least, most)) in [("every", self.every, EVERY), ("patience", self.patience, PATIENCE)] {
            if !(least..=most).contains(&value) {
                found.push(format!("`leasehold.{key}`: {value} is out of range; give {least} to {most}"));
            }
        }
    }

    /// The command line overrides the file, and the file overrides the environment.
    pub(crate) fn client(&self, daemon: &DaemonArgs) -> Result<Client, Problem> {
        let named = Named {
            url: daemon.url.clone().or_else(|| self.url.clone()),
            token_file: daemon.token_file.clone().or_else(|| self.token_file.clone()),
            ca_file: daemon.ca_file.clone().or_else(|| self.ca_file.clone()),
        };
        let mut settings = Settings::load(&named).map_err(|error| Problem::told(error.code, &error))?;
        for warning in &settings.warnings {
            tracing::warn!("{warning}");
        }
        let patience = self.patience.into();
        let answer = Timeouts::default().answer.min(patience);
        settings.config.timeouts = Timeouts { total: patience, listener: patience, answer, ..Timeouts::default() };
        Client::new(&settings.config).map_err(|error| Problem::told(error.code, &error))
    }
}
