//! The same question again and again, on a terminal, until Ctrl-C.

use super::failure::{Failed, plain};
use super::session::Session;
use crate::output::print_on;
use crate::problem::Problem;
use crate::table::Table;
use crate::term;
use crate::time_format;
use std::io::Write;
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(2);

/// The terminal's second screen, given back at the end.
struct SecondScreen;

impl SecondScreen {
    fn enter() -> Result<Self, Problem> {
        let _ = print_on("\x1b[?1049h\x1b[?25l")?;
        Ok(Self)
    }
}

impl Drop for SecondScreen {
    fn drop(&mut self) {
        let mut stdout = std::io::stdout().lock();
        // A terminal that is gone needs nothing given back.
        let _ = stdout.write_all(b"\x1b[?25h\x1b[?1049l").and_then(|()| stdout.flush());
    }
}

/// Draws what `ask` answers every two seconds.
pub(super) async fn watch(session: &Session, ask: impl AsyncFn() -> Result<Table, Failed>) -> Result<(), Failed> {
    if session.json || term::screen().is_none() {
        let what = "--watch draws on a terminal, and there is none here";
        return Err(Problem::usage("usage", what).advice("leave it out, or follow `leasehold events`").into());
    }
    // What is wrong with the question itself is told before the screen is taken.
    let mut answer = ask().await?;
    let mut trouble = None;
    let _screen = SecondScreen::enter()?;
    loop {
        if draw(session, &answer, trouble.as_ref())?.is_break() {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            _ = tokio::signal::ctrl_c() => return Ok(()),
        }
        let asked = tokio::select! {
            asked = ask() => asked,
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        match asked {
            Ok(table) => (answer, trouble) = (table, None),
            Err(Failed::Daemon(error)) if !error.is_final() => trouble = Some(plain(&error)),
            Err(failed) => return Err(failed),
        }
    }
}

fn draw(session: &Session, table: &Table, trouble: Option<&Problem>) -> Result<std::ops::ControlFlow<()>, Problem> {
    let (width, height) = term::screen().unwrap_or((80, 24));
    let now = time_format::now();
    let mut lines = vec![session.paint.dim(&format!("  {}   every 2s, Ctrl-C ends", time_format::clock(now, now)))];
    lines.extend(trouble.map(|problem| session.paint.paint(term::Style::Red, &format!("  {problem}"))));
    lines.push(String::new());
    if table.is_empty() {
        lines.push("  there is nothing to show".into());
    } else {
        lines.extend(session.lines(table));
    }
    if lines.len() > height {
        let more = lines.len() - height + 1;
        lines.truncate(height - 1);
        lines.push(session.paint.dim(&format!("  and {more} more")));
    }
    let text: Vec<String> = lines.iter().map(|line| term::fit(line, width) + "\x1b[K").collect();
    print_on(&format!("\x1b[H{}\x1b[J", text.join("\n")))
}
