//! `--watch`: repeats a query on the terminal until Ctrl-C.

use super::failure::{Failed, plain};
use super::interrupt::Interrupt;
use super::session::Session;
use crate::output::print_on;
use crate::problem::Problem;
use crate::table::Table;
use crate::term;
use crate::time_format;
use std::io::Write;
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(2);

/// The alternate screen of the terminal; dropping it restores the normal one.
struct AlternateScreen;

impl AlternateScreen {
    fn enter() -> Result<Self, Problem> {
        let _ = print_on("\x1b[?1049h\x1b[?25l")?;
        Ok(Self)
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        let mut stdout = std::io::stdout().lock();
        // The terminal may be gone.
        let _ = stdout.write_all(b"\x1b[?25h\x1b[?1049l").and_then(|()| stdout.flush());
    }
}

/// Draws the table of `ask` every two seconds.
pub(super) async fn watch(session: &Session, ask: impl AsyncFn() -> Result<Table, Failed>) -> Result<(), Failed> {
    watch_lines(session, async || {
        let table = ask().await?;
        Ok(if table.is_empty() { vec!["  nothing found".into()] } else { session.lines(&table) })
    })
    .await
}

/// Draws the lines of `ask` every two seconds.
pub(super) async fn watch_lines(
    session: &Session,
    ask: impl AsyncFn() -> Result<Vec<String>, Failed>,
) -> Result<(), Failed> {
    if session.json || term::screen().is_none() {
        let what = "--watch needs a terminal and cannot be combined with --json";
        return Err(Problem::usage("usage", what).advice("omit it, or use `leasehold events --follow`").into());
    }
    // Query once before switching the screen, so that errors in the query are printed normally.
    let mut answer = ask().await?;
    let mut interrupt = Interrupt::listen()?;
    let mut trouble = None;
    let _screen = AlternateScreen::enter()?;
    loop {
        if draw(session, &answer, trouble.as_ref())?.is_break() {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = interrupt.wait() => return Ok(()),
        }
        let asked = tokio::select! {
            asked = ask() => asked,
            () = interrupt.wait() => return Ok(()),
        };
        match asked {
            Ok(lines) => (answer, trouble) = (lines, None),
            Err(Failed::Daemon(error)) if !error.is_final() => trouble = Some(plain(&error)),
            Err(failed) => return Err(failed),
        }
    }
}

fn draw(session: &Session, answer: &[String], trouble: Option<&Problem>) -> Result<std::ops::ControlFlow<()>, Problem> {
    let (width, height) = term::screen().unwrap_or((80, 24));
    let now = time_format::now();
    let mut lines =
        vec![session.paint.dim(&format!("  {}   refreshed every 2s, Ctrl-C to quit", time_format::clock(now, now)))];
    lines.extend(trouble.map(|problem| session.paint.paint(term::Style::Red, &format!("  {problem}"))));
    lines.push(String::new());
    lines.extend(answer.iter().cloned());
    if lines.len() > height {
        let more = lines.len() - height + 1;
        lines.truncate(height - 1);
        lines.push(session.paint.dim(&format!("  and {more} more")));
    }
    let text: Vec<String> = lines.iter().map(|line| term::fit(line, width) + "\x1b[K").collect();
    print_on(&format!("\x1b[H{}\x1b[J", text.join("\n")))
}
