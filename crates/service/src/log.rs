//! The log of the process, on stderr.

use serde::Deserialize;
use std::fmt;
use tracing::Subscriber;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};

/// Environment variable that overrides the configured level. It may name modules: `info,leasehold_server=debug`.
pub const LEVEL_VARIABLE: &str = "LEASEHOLD_LOG";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    #[default]
    Text,
    Json,
}

/// Why the log could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError(String);

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for LogError {}

/// Starts the log of the process. A second start is an error.
pub fn start(level: Level, format: Format) -> Result<(), LogError> {
    let wanted = std::env::var(LEVEL_VARIABLE).ok().filter(|text| !text.is_empty());
    let subscriber = subscriber(level, format, wanted.as_deref(), std::io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LogError("the log is already started".into()))
}

/// A log that is written to `writer`. `wanted` overrides the level.
pub fn subscriber<W>(
    level: Level,
    format: Format,
    wanted: Option<&str>,
    writer: W,
) -> Result<Box<dyn Subscriber + Send + Sync>, LogError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let level = wanted.unwrap_or(match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    });
    let targets: Targets = level.parse().map_err(|error| {
        LogError(format!("{LEVEL_VARIABLE}: {error}; write it like info or warn,leasehold_server=debug"))
    })?;
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_target(false);
    let lines = match format {
        Format::Text => lines.boxed(),
        Format::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    };
    Ok(Box::new(tracing_subscriber::registry().with(targets).with(lines)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no thread panicked").write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_level_is_the_configured_one_unless_the_environment_says_otherwise() {
        let logged = |wanted: Option<&str>| {
            let captured = Captured::default();
            let writer = captured.clone();
            let subscriber = subscriber(Level::Error, Format::Text, wanted, move || writer.clone()).expect("a level");
            tracing::subscriber::with_default(subscriber, || {
                tracing::debug!("fine");
                tracing::warn!("coarse");
            });
            captured.0.lock().expect("no thread panicked").iter().filter(|byte| **byte == b'\n').count()
        };
        assert_eq!(logged(None), 0);
        assert_eq!(logged(Some("warn")), 1);
        assert_eq!(logged(Some("error,leasehold_service=debug")), 2);
        assert_eq!(logged(Some("trace,leasehold_service::log=warn")), 1);
        let wrong = subscriber(Level::Error, Format::Text, Some("warn=loud=er"), std::io::stderr);
        let error = wrong.err().expect("an invalid level");
        assert!(error.to_string().starts_with("LEASEHOLD_LOG: "), "{error}");
    }
}
