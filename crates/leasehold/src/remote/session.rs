//! The connection of one command to a daemon.

use super::failure::{Failed, explain};
use super::times::Times;
use crate::cli::remote::{ChangeArgs, DaemonArgs, WhoseArgs};
use crate::cli::times::{PastArgs, TimeZoneArgs};
use crate::output::{print, print_json};
use crate::problem::Problem;
use crate::table::Table;
use crate::term::{self, Paint};
use leasehold_client::{Answer, Call, Client, Json, Named, Page, Settings};
use serde::de::DeserializeOwned;
use std::time::Duration;

pub(super) struct Session {
    pub(super) client: Client,
    pub(super) json: bool,
    pub(super) paint: Paint,
    pub(super) times: Times,
}

/// Long enough for a restart of the daemon, short enough to report soon that none is running.
const LISTENER_TIMEOUT: Duration = Duration::from_secs(3);
const TOTAL_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn settings(daemon: &DaemonArgs) -> Result<Settings, Problem> {
    let named =
        Named { url: daemon.url.clone(), token_file: daemon.token_file.clone(), ca_file: daemon.ca_file.clone() };
    Settings::load(&named).map_err(|error| Problem::told(error.code, &error))
}

/// Adds the filters by owner and priority.
pub(super) fn whose<A: Answer>(call: Call<A>, args: &WhoseArgs) -> Call<A> {
    call.maybe("tenant", args.tenant.as_ref())
        .maybe("project", args.project.as_ref())
        .maybe("user", args.user.as_ref())
        .maybe("priority", args.priority)
}

impl Session {
    pub(super) fn open(daemon: &DaemonArgs, times: &TimeZoneArgs) -> Result<Self, Problem> {
        Ok(Self { times: Times::new(times), ..Self::with(settings(daemon)?, daemon.json)? })
    }

    /// For commands that take no times.
    pub(super) fn with(settings: Settings, json: bool) -> Result<Self, Problem> {
        for warning in &settings.warnings {
            term::say(&format!("leasehold: {warning}\n"));
        }
        let mut config = settings.config;
        config.timeouts.listener = LISTENER_TIMEOUT;
        config.timeouts.total = TOTAL_TIMEOUT;
        let client = Client::new(&config).map_err(|error| Problem::told(error.code, &error))?;
        Ok(Self { client, json, paint: Paint::stdout(), times: Times::new(&TimeZoneArgs::default()) })
    }

    /// Runs a command, and turns an error into a problem with advice.
    pub(super) fn during<T>(self, command: impl AsyncFnOnce(&Self) -> Result<T, Failed>) -> Result<T, Problem> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime
            .map_err(|error| Problem::refused("no_runtime", format!("the async runtime cannot be started: {error}")))?;
        let done = runtime.block_on(async {
            match command(&self).await {
                Ok(done) => Ok(done),
                Err(Failed::Here(problem)) => Err(problem),
                Err(Failed::Daemon(error)) => Err(explain(&self.client, self.json, *error).await),
            }
        });
        // Do not wait for the thread that resolves host names.
        runtime.shutdown_background();
        done
    }

    /// Adds the time or time window.
    pub(super) fn past<A: Answer>(&self, call: Call<A>, args: &PastArgs) -> Result<Call<A>, Problem> {
        let (at, (from, to)) = self.times.listed(args)?;
        Ok(call.maybe("at", at).maybe("from", from).maybe("to", to))
    }

    /// Makes a call and prints the answer.
    pub(super) async fn show<T: DeserializeOwned + Send + 'static>(
        &self,
        call: Call<Json<T>>,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failed> {
        if self.json {
            return Ok(print_json(&call.json().await?)?);
        }
        Ok(print(&text(&call.await?))?)
    }

    /// Makes a change and prints the answer.
    pub(super) async fn change<T: DeserializeOwned + Send + 'static>(
        &self,
        call: Call<Json<T>>,
        args: &ChangeArgs,
        text: impl FnOnce(&T) -> String,
    ) -> Result<(), Failed> {
        self.show(keyed(call, args), text).await
    }

    /// Reads all pages of a list and prints it.
    pub(super) async fn list<P: Page>(
        &self,
        call: Call<Json<P>>,
        table: impl FnOnce(&[P::Item]) -> Table,
    ) -> Result<(), Failed> {
        let call = call.query("limit", leasehold_api::limits::PAGE_MAX);
        if self.json {
            return Ok(print_json(&call.all_json().await?)?);
        }
        let items = call.all().await?;
        self.print_table(&table(&items))
    }

    pub(super) fn print_table(&self, table: &Table) -> Result<(), Failed> {
        if table.is_empty() {
            // This is not data, so it goes to stderr.
            term::say("leasehold: nothing found\n");
            return Ok(());
        }
        Ok(print(&(self.lines(table).join("\n") + "\n"))?)
    }

    pub(super) fn lines(&self, table: &Table) -> Vec<String> {
        table.lines_within(self.paint, term::screen().map(|(width, _)| width))
    }
}

/// The call with the idempotency key of `--key`, if it was given.
pub(super) fn keyed<A: Answer>(call: Call<A>, args: &ChangeArgs) -> Call<A> {
    match &args.key {
        Some(key) => call.key(key),
        None => call,
    }
}
