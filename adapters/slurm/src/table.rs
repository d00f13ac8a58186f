//! The rows of sacct. One row is one run of a job: a job that was requeued has several, each with its own index in the
//! database.
//!
//! Only columns that users cannot write into are read here. A comment may contain line breaks, and with them whole rows
//! that look real (see `comment.rs`).

use crate::tres::Allocated;

/// The columns, as they are asked for and as they stand in the first line.
pub(crate) const COLUMNS: [&str; 11] =
    ["Cluster", "DBIndex", "JobID", "State", "Account", "User", "Partition", "Start", "End", "ElapsedRaw", "AllocTRES"];

/// States in which a run goes on, whatever its times say.
const LIVE: [&str; 6] = ["PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) index: u64,
    /// Such as `123`, `123_4` for a task of an array, or `123+1` for a part of a heterogeneous job.
    pub(crate) job: String,
    pub(crate) account: String,
    pub(crate) user: String,
    pub(crate) partition: String,
    pub(crate) life: Life,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It waits, or it ended without having run.
    NeverStarted {
        over: bool,
    },
    /// It runs, or its end is not known yet.
    Unfinished {
        start: u64,
    },
    Finished {
        start: u64,
        end: u64,
        seconds: u64,
        allocated: Allocated,
    },
}

/// Reads the whole output, or nothing: a line that does not fit means that it was cut off, or is of another version.
pub(crate) fn parse(text: &str, cluster: &str) -> Result<Vec<Run>, String> {
    let mut lines = text.lines();
    let header = lines.next().ok_or("sacct printed nothing, not even the names of its columns")?;
    if header.split('|').ne(COLUMNS) {
        return Err(format!("sacct printed other columns than it was asked for: {header}"));
    }
    if !text.ends_with('\n') {
        return Err("the output of sacct was cut off in the middle of a line".into());
    }
    lines
        .enumerate()
        .map(|(place, line)| row(line, cluster).map_err(|why| format!("row {}: {why}", place + 1)))
        .collect()
}

fn row(line: &str, cluster: &str) -> Result<Run, String> {
    let fields: Vec<&str> = line.split('|').collect();
    let [of, index, job, state, account, user, partition, start, end, seconds, tres] = fields[..] else {
        return Err(format!("it has {} columns instead of {}", fields.len(), COLUMNS.len()));
    };
    if of != cluster {
        return Err(format!("it is of the cluster `{of}`"));
    }
    let index = number("DBIndex", index)?;
    let (start, end) = (time("Start", start)?, time("End", end)?);
    // `CANCELLED by 1000` names who did it.
    let state = state.split(' ').next().unwrap_or_default();
    let life = match (start, end) {
        (None, None) if LIVE.contains(&state) => Life::NeverStarted { over: false },
        (None, _) => Life::NeverStarted { over: true },
        (Some(start), Some(_)) if LIVE.contains(&state) => Life::Unfinished { start },
        (Some(start), None) => Life::Unfinished { start },
        (Some(start), Some(end)) => {
            let seconds = number("ElapsedRaw", seconds)?;
            Life::Finished { start, end, seconds, allocated: Allocated::parse(tres)? }
        }
    };
    let text = |text: &str| text.to_owned();
    Ok(Run { index, job: text(job), account: text(account), user: text(user), partition: text(partition), life })
}

fn number(column: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{column} is `{text}`, which is not a number"))
}

/// Seconds since 1970; `None` if Slurm does not know the time.
fn time(column: &str, text: &str) -> Result<Option<u64>, String> {
    match text {
        "Unknown" | "None" | "0" => Ok(None),
        text => number(column, text).map(Some),
    }
}

impl Run {
    /// The number of the job as it was submitted: that of the array, or of the heterogeneous job.
    pub(crate) fn submitted_as(&self) -> &str {
        self.job.split(['_', '+', '.']).next().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[&str]) -> String {
        std::iter::once(COLUMNS.join("|"))
            .chain(rows.iter().map(|row| (*row).to_owned()))
            .map(|row| row + "\n")
            .collect()
    }

    #[track_caller]
    fn life(row: &str) -> Life {
        parse(&table(&[row]), "box").unwrap()[0].life
    }

    #[test]
    fn only_a_run_with_both_ends_is_finished() {
        let finished = |start, end, seconds, gpus| Life::Finished {
            start,
            end,
            seconds,
            allocated: Allocated { cpus: 1, nodes: 1, gpus },
        };
        let tres = "billing=1,cpu=1,gres/gpu:a100=2,gres/gpu=2,node=1";
        for (row, expected) in [
            (format!("box|2|2|REQUEUED|a|u|p|100|112|12|{tres}"), finished(100, 112, 12, 2)),
            (format!("box|2|2|COMPLETED|a|u|p|100|Unknown|12|{tres}"), Life::Unfinished { start: 100 }),
            (format!("box|2|2|RUNNING|a|u|p|100|Unknown|12|{tres}"), Life::Unfinished { start: 100 }),
            (format!("box|2|2|RUNNING|a|u|p|100|112|12|{tres}"), Life::Unfinished { start: 100 }),
            (format!("box|2|2|SUSPENDED|a|u|p|100|Unknown|12|{tres}"), Life::Unfinished { start: 100 }),
            // Suspended for 8 of 23 seconds: what sacct calls elapsed is without them.
            ("box|3|3|CANCELLED by 0|a|u|p|100|123|15|cpu=1,node=1".into(), finished(100, 123, 15, 0)),
            ("box|4|4_[5-9]|PENDING|a|u|p|Unknown|Unknown|0|".into(), Life::NeverStarted { over: false }),
            ("box|5|5|CANCELLED by 0|a|u|p|None|123|0|".into(), Life::NeverStarted { over: true }),
            ("box|5|5|CANCELLED by 0|a|u|p|Unknown|Unknown|0|".into(), Life::NeverStarted { over: true }),
        ] {
            assert_eq!(life(&row), expected, "{row}");
        }
    }

    #[test]
    fn output_that_does_not_fit_is_an_error() {
        let good = "box|2|2|COMPLETED|a|u|p|100|112|12|cpu=1";
        for (text, why) in [
            (String::new(), "nothing"),
            ("JobID|State\n".into(), "other columns"),
            (table(&[good, "box|3|3|COMPL"]), "row 2: it has 4 columns"),
            (table(&[good]).trim_end().to_owned(), "cut off"),
            (table(&["other|2|2|COMPLETED|a|u|p|100|112|12|cpu=1"]), "of the cluster `other`"),
            (table(&["box|x|2|COMPLETED|a|u|p|100|112|12|cpu=1"]), "DBIndex is `x`"),
            (table(&["box|2|2|COMPLETED|a|u|p|2026-11-18T08:00:00|112|12|cpu=1"]), "Start is `2026-"),
            (table(&["box|2|2|COMPLETED|a|u|p|100|112|12|gres/gpu=x"]), "`gres/gpu=x`"),
        ] {
            let error = parse(&text, "box").unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert_eq!(parse(&table(&[]), "box"), Ok(vec![]));
    }

    #[test]
    fn parts_of_a_job_belong_to_what_was_submitted() {
        for job in ["123", "123_4", "123+1", "123_[5-9]"] {
            let row = format!("box|2|{job}|COMPLETED|a|u|p|100|112|12|cpu=1");
            assert_eq!(parse(&table(&[&row]), "box").unwrap()[0].submitted_as(), "123");
        }
    }
}
