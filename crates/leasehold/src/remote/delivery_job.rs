//! Retries, replays and reconciliations of webhooks: follows them until they have ended.

use super::details::{Details, word};
use super::failure::Failed;
use super::session::{Session, keyed};
use super::webhook::own;
use crate::cli::remote::ChangeArgs;
use crate::cli::webhook::WebhookArgs;
use crate::numbers::thousands;
use crate::problem::Problem;
use crate::term::{self, Style};
use crate::time_format::to_the_second;
use leasehold_api::{DeliveryJob, DeliveryJobState};
use leasehold_client::{Call, Error, Json};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// How often the progress is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What has become of a request.
pub(super) enum Ended {
    /// The result, as the daemon answered it.
    Result(Value),
    /// It goes on; this is how far it is.
    Running(Value),
}

/// The progress on stderr; draws nothing without a terminal.
struct Progress<'a> {
    is_drawn: bool,
    what: &'a str,
}

impl Progress<'_> {
    const WIDTH: usize = 30;

    fn draw(&self, job: Option<&DeliveryJob>) {
        if self.is_drawn {
            term::say(&format!("\r{}\x1b[K", line(self.what, job)));
        }
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if self.is_drawn {
            term::say("\r\x1b[K");
        }
    }
}

fn line(what: &str, job: Option<&DeliveryJob>) -> String {
    let Some((job, due)) = job.and_then(|job| Some((job, job.due?))) else { return format!("{what} …") };
    let bar = term::fine_bar(job.done, due, Progress::WIDTH);
    format!("{what}  {bar:<30}  {} of {} events", thousands(job.done), thousands(due))
}

fn invalid(error: &serde_json::Error) -> Problem {
    Problem::refused("bad_answer", format!("the daemon's answer is invalid: {error}"))
}

fn read(value: &Value) -> Result<DeliveryJob, Problem> {
    serde_json::from_value(value.clone()).map_err(|error| invalid(&error))
}

/// Makes the call and waits until what it began has ended, also if that takes longer than an answer may.
pub(super) async fn follow<T: DeserializeOwned + Send + 'static>(
    session: &Session,
    of: &WebhookArgs,
    what: &str,
    (call, change, no_wait): (Call<Json<T>>, &ChangeArgs, bool),
) -> Result<Ended, Failed> {
    let progress = Progress { is_drawn: term::drawable().is_some(), what };
    progress.draw(None);
    let mut answer = keyed(own(call, of), change).json().await?;
    // Only an answer about a job that goes on has its number.
    let Some(begun) = answer.get("job").and_then(Value::as_u64) else { return Ok(Ended::Result(answer)) };
    if no_wait {
        return Ok(Ended::Running(answer));
    }
    loop {
        let job = read(&answer)?;
        if job.job != begun {
            let what = format!("another job of the webhook has begun; the result of job {begun} is not known any more");
            return Err(Problem::refused("delivery_interrupted", what)
                .advice("`leasehold events --kind accounting` shows what was recorded")
                .into());
        }
        match (job.state, job.problem) {
            (DeliveryJobState::Running, _) => {}
            (_, Some(problem)) => return Err(Error::from(problem).into()),
            _ => {
                let result =
                    ["resent", "reconciled"].iter().find_map(|name| answer.get(name).filter(|it| !it.is_null()));
                return Ok(Ended::Result(result.cloned().unwrap_or_default()));
            }
        }
        progress.draw(Some(&read(&answer)?));
        tokio::time::sleep(LOOK_EVERY).await;
        answer = own(session.client.show_delivery_job(&of.webhook), of).json().await?;
    }
}

/// A job as names and values.
pub(super) fn shown(session: &Session, job: &DeliveryJob) -> String {
    let style = match job.state {
        DeliveryJobState::Running => Style::Yellow,
        DeliveryJobState::Finished => Style::Green,
        DeliveryJobState::Failed => Style::Red,
    };
    let time = job.since.zip(job.until);
    let due = job.due.map_or_else(String::new, |due| format!(" of {}", thousands(due)));
    let sent = job.resent.as_ref().map(|sent| (sent.delivered, sent.failed));
    let sent = sent.or(job.reconciled.as_ref().map(|result| (result.sent, result.failed)));
    Details::new()
        .add("job", job.job)
        .add("kind", word(job.kind))
        .add("state", session.paint.paint(style, job.state.word()))
        .maybe("time", time.map(|(since, until)| format!("{} to {}", to_the_second(since), to_the_second(until))))
        .maybe("dry run", job.dry_run.filter(|dry_run| *dry_run).map(|_| "yes"))
        .maybe("from record", job.from_sequence.map(thousands))
        .maybe("event", job.event_id.as_ref())
        .add("began", to_the_second(job.started_at))
        .maybe("ended", job.ended_at.map(to_the_second))
        .add("events", format!("{}{due}", thousands(job.done)))
        .maybe("acknowledged", sent.map(|(delivered, _)| thousands(delivered)))
        .maybe("not acknowledged", sent.map(|(_, failed)| failed).filter(|failed| *failed > 0).map(thousands))
        .maybe("record", job.reconciled.as_ref().and_then(|result| result.sequence).map(thousands))
        .maybe("problem", job.problem.as_ref().map(|problem| problem.detail.clone()))
        .text(session.paint)
}

/// What is printed for a job that goes on.
pub(super) fn goes_on(value: &Value, of: &WebhookArgs) -> Result<String, Problem> {
    let job = read(value)?;
    let tenant =
        of.tenant.as_ref().map_or_else(String::new, |tenant| format!(" --tenant {}", term::shell_word(tenant)));
    let webhook = term::shell_word(&of.webhook);
    Ok(format!(
        "The {} goes on (job {}); `leasehold deliveries job {webhook}{tenant}` shows how far it is.\n",
        job.kind, job.job
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn progress_says_how_many_events_are_done() {
        let mut job = json!({
            "job": 1, "webhook_id": 0, "kind": "replay", "state": "running", "started_at": "2026-11-18T12:00:00Z",
            "ended_at": null, "since": null, "until": null, "dry_run": null, "from_sequence": 7, "event_id": null,
            "due": null, "done": 0, "resent": null, "reconciled": null, "problem": null,
        });
        let line = |job: &Value| line("replaying biller", Some(&read(job).expect("a job")));
        assert_eq!(line(&job), "replaying biller …");
        job["due"] = json!(3_000);
        job["done"] = json!(1_500);
        let bar = "█".repeat(15);
        assert_eq!(line(&job), format!("replaying biller  {bar:<30}  1,500 of 3,000 events"));
    }
}
