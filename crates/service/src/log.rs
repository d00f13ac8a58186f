//! The log of the process, on stderr.

use serde::Deserialize;
use std::fmt;
use std::sync::OnceLock;
use tracing::Subscriber;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::reload;

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

/// Changes the filter of a log while it is written.
type FilterHandle = reload::Handle<Targets, Registry>;

/// The filter of the log of the process, once it is started.
static STARTED: OnceLock<FilterHandle> = OnceLock::new();

/// The level that the environment asks for, which overrides the configured one.
fn wanted() -> Option<String> {
    std::env::var(LEVEL_VARIABLE).ok().filter(|text| !text.is_empty())
}

/// Starts the log of the process. A second start is an error.
pub fn start(level: Level, format: Format) -> Result<(), LogError> {
    let (subscriber, filter) = with_filter(level, format, wanted().as_deref(), std::io::stderr)?;
    let started = tracing::subscriber::set_global_default(subscriber);
    started.map_err(|_| LogError("the log is already started".into()))?;
    // Nobody else sets it: only the first start gets here.
    let _ = STARTED.set(filter);
    Ok(())
}

/// Changes the level of the log of the process. [`LEVEL_VARIABLE`] still overrides it.
pub fn set_level(level: Level) -> Result<(), LogError> {
    match STARTED.get() {
        Some(filter) => change(filter, level, wanted().as_deref()),
        None => Err(LogError("the log is not started".into())),
    }
}

fn change(filter: &FilterHandle, level: Level, wanted: Option<&str>) -> Result<(), LogError> {
    filter
        .reload(targets(level, wanted)?)
        .map_err(|error| LogError(format!("the log level cannot be changed: {error}")))
}

fn targets(level: Level, wanted: Option<&str>) -> Result<Targets, LogError> {
    let level = wanted.unwrap_or(match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    });
    level.parse().map_err(|error| {
        LogError(format!("{LEVEL_VARIABLE}: {error}; write it like info or warn,leasehold_server=debug"))
    })
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
    with_filter(level, format, wanted, writer).map(|(subscriber, _)| subscriber)
}

fn with_filter<W>(
    level: Level,
    format: Format,
    wanted: Option<&str>,
    writer: W,
) -> Result<(Box<dyn Subscriber + Send + Sync>, FilterHandle), LogError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let (filter, handle) = reload::Layer::new(targets(level, wanted)?);
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_target(false);
    let lines = match format {
        Format::Text => lines.boxed(),
        Format::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    };
    Ok((Box::new(tracing_subscriber::registry().with(filter).with(lines)), handle))
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

    #[test]
    fn the_level_can_be_changed_while_the_log_is_written() {
        let captured = Captured::default();
        let writer = captured.clone();
        let (subscriber, filter) =
            with_filter(Level::Error, Format::Text, None, move || writer.clone()).expect("a level");
        tracing::subscriber::with_default(subscriber, || {
            let say = || tracing::info!("heard");
            let heard = || captured.0.lock().expect("no thread panicked").iter().filter(|byte| **byte == b'\n').count();
            say();
            assert_eq!(heard(), 0);
            change(&filter, Level::Info, None).expect("a level");
            say();
            assert_eq!(heard(), 1);
            // The environment still has the last word.
            change(&filter, Level::Trace, Some("warn")).expect("a level");
            say();
            assert_eq!(heard(), 1);
        });
    }
}
