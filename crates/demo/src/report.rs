//! The final report: totals computed from the journal's files, and how to verify them.

use super::cluster::{CPU, H100, L40S, MEM};
use super::scene::Tally;
use super::usage::{Counts, QuantaNs, Split, Usage};
use crate::data_directory::DemoDirectory;
use crate::numbers::{bytes, counted, decimal, latency, thousands};
use crate::output::{print, print_json};
use crate::problem::Problem;
use crate::table::{Align, Table};
use crate::term::{Paint, Style, fine_bar, program, shell_word};
use leasehold_journal::{ReadOnly, RealDisk, Scanned};
use leasehold_model::hex;
use leasehold_model::{ClassNo, Instant};
use leasehold_tlog::VerifierKey;
use leasehold_verify::Trust;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// One run of the demo, after its cell has stopped.
pub(crate) struct Run<'a> {
    pub(crate) directory: &'a DemoDirectory,
    pub(crate) seed: u64,
    pub(crate) ran: Duration,
    pub(crate) first_sequence: u64,
    pub(crate) batches: u64,
    pub(crate) tally: &'a Tally,
}

/// What the report is computed from.
struct Found {
    journal: ReadOnly,
    usage: Usage,
    scanned: Scanned,
}

/// Writes a trust file with the current keys and checkpoint, as an auditor would keep it.
pub(crate) fn write_trust(directory: &DemoDirectory) -> Result<ReadOnly, Problem> {
    let journal = ReadOnly::open(Arc::new(RealDisk::new(directory.data())), vec![])
        .map_err(|error| Problem::told(error.code(), &error).at(directory.data()))?;
    let keys = directory.keys(&journal.signed().origin)?;
    let trust = trust_in(&keys.public_keys(), &journal)
        .map_err(|why| Problem::refused("trust_not_derivable", why).at(directory.data()))?;
    let path = directory.trust();
    std::fs::write(&path, trust.to_text()).map_err(|error| {
        Problem::refused("trust_not_written", format!("cannot write the trust file: {error}")).at(&path)
    })?;
    Ok(journal)
}

/// The demo's own keys, oldest first, and the newest checkpoint.
fn trust_in(keys: &[[u8; 32]], journal: &ReadOnly) -> Result<Trust, String> {
    let signed = journal.signed();
    let keys = keys.iter().map(|key| VerifierKey::new(&signed.origin, key)).collect::<Result<Vec<_>, _>>();
    let keys = keys.map_err(|error| error.to_string())?;
    let mut trust = Trust::new(keys[0].clone());
    for key in &keys[1..] {
        trust.add_key(key.clone()).map_err(|error| error.to_string())?;
    }
    // There is nothing to pin in an empty journal.
    if signed.head.size > 0 {
        trust.pin(&signed.note.to_string()).map_err(|error| error.to_string())?;
    }
    Ok(trust)
}

pub(crate) fn print_report(run: &Run<'_>, as_json: bool) -> Result<(), Problem> {
    let journal = write_trust(run.directory)?;
    let (usage, scanned) =
        Usage::of(&journal, run.first_sequence).map_err(|problem| problem.at(run.directory.data()))?;
    let found = Found { journal, usage, scanned };
    if as_json { print_json(&found.json(run)) } else { print(&found.text(run, Paint::stdout())) }
}

/// The number of record kinds that are shown with a bar; the others are listed.
const KINDS_SHOWN: usize = 8;

/// Classes that have a column, and the column headings.
const COLUMNS: [(ClassNo, &str); 4] = [(H100, "h100 GPU"), (L40S, "l40s GPU"), (CPU, "core"), (MEM, "GiB")];

/// A part of the journal: the records before this run, shown in hours, or those of this run, shown in seconds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Before,
    Run,
}

impl Part {
    fn of<T: Copy>(self, split: &Split<T>) -> T {
        match self {
            Self::Before => split.before,
            Self::Run => split.run,
        }
    }
    /// The unit of time, its length in nanoseconds, and the number of decimals.
    fn unit(self) -> (&'static str, u128, u32) {
        match self {
            Self::Before => ("h", 3_600_000_000_000, 1),
            Self::Run => ("s", 1_000_000_000, 3),
        }
    }
}

impl Found {
    fn unit_time(&self, amount: QuantaNs, class: ClassNo, part: Part) -> String {
        let per_unit = self.usage.classes.get(&class).map_or(1, |spec| spec.quanta_per_unit);
        let (_, ns, decimals) = part.unit();
        decimal(amount, u128::from(per_unit) * ns, decimals)
    }

    fn text(&self, run: &Run<'_>, paint: Paint) -> String {
        let mut text = String::new();
        let mut section = |title: &str, remark: &str, body: &str| {
            text.push_str(&format!("{}  {}\n{body}\n", paint.bold(title), paint.dim(remark)));
        };
        if run.first_sequence > 0 {
            let since = self.usage.first_stamp.map_or(String::new(), |at| format!("since {}", minute(at)));
            section("Before this run", &since, &self.tenants(paint, Part::Before));
        }
        section(
            "Usage in this run",
            "computed from the journal; --json prints it exactly",
            &self.tenants(paint, Part::Run),
        );
        section("Records", &self.sealed_remark(run), &self.kinds(paint));
        section(
            "Denied requests",
            "the last denial of each tenant; denials are recorded in the journal",
            &refusals(run.tally),
        );
        section("Latency", "from the request to the durable answer", &self.speed(run));
        section("Final checkpoint", "its signature covers all records", &self.checkpoint());
        let (me, data) = (program(), shell_word(&run.directory.data().display().to_string()));
        let trust = shell_word(&run.directory.trust().display().to_string());
        let verify = paint.paint(Style::Cyan, &format!("{me} audit verify {data} --trust {trust}"));
        let again = paint.paint(Style::Cyan, &format!("{me} demo --data {data} --exit-after 20s"));
        section(
            "Verify it yourself",
            "in production the auditor keeps the trust file, separate from the journal",
            &format!("  {verify}\n"),
        );
        section("Continue", "starts again where this run ended", &format!("  {again}"));
        text
    }

    fn tenants(&self, paint: Paint, part: Part) -> String {
        use Align::{Left, Right};
        let words =
            ["granted", "over soft", "denied", "expired", "revoked", "fenced"].map(|word| (word.to_owned(), Right));
        let columns = COLUMNS.map(|(_, word)| (format!("{word}·{}", part.unit().0), Right));
        let heads: Vec<_> = [("tenant".to_owned(), Left)].into_iter().chain(words).chain(columns).collect();
        let heads: Vec<_> = heads.iter().map(|(word, align)| (word.as_str(), *align)).collect();
        let mut table = Table::new(&heads);
        for (tenant, (name, counts)) in &self.usage.tenants {
            let counts = part.of(counts).of().map(blank_zero);
            let amount = |class| part.of(&self.usage.of_tenant(*tenant, class));
            let held = COLUMNS.map(|(class, _)| self.unit_time(amount(class), class, part));
            table.row([name.to_string()].into_iter().chain(counts).chain(held));
        }
        let blank = std::iter::repeat_n(String::new(), 6);
        let totals = COLUMNS.map(|(class, _)| self.unit_time(part.of(&self.usage.total(class)), class, part));
        let row = ["all".to_owned()].into_iter().chain(blank).chain(totals);
        table.styled(row.map(|cell| (cell, Style::Bold)));
        table.text(paint)
    }

    fn sealed_remark(&self, run: &Run<'_>) -> String {
        let size = self.scanned.size;
        let this_run = size - run.first_sequence;
        let all = format!("{} records, {}", thousands(size), bytes(self.scanned.bytes));
        if run.first_sequence == 0 { all } else { format!("{all}; {} of them in this run", thousands(this_run)) }
    }

    fn kinds(&self, paint: Paint) -> String {
        let mut kinds: Vec<_> = self.usage.kinds.iter().map(|(word, n)| (*word, n.before + n.run)).collect();
        kinds.sort_by_key(|(word, count)| (std::cmp::Reverse(*count), *word));
        let most = kinds.first().map_or(1, |(_, count)| *count);
        let rare = kinds.split_off(kinds.len().min(KINDS_SHOWN));
        let mut table = Table::new(&[("", Align::Left), ("", Align::Right), ("", Align::Left)]);
        for (word, count) in kinds {
            let bar = (fine_bar(count, most, 40), Style::Blue);
            table.styled([(word.to_owned(), Style::Plain), (thousands(count), Style::Plain), bar]);
        }
        let rare: Vec<String> = rare.iter().map(|(word, count)| format!("{word} {}", thousands(*count))).collect();
        table.text(paint) + &wrapped(&rare, 100)
    }

    fn speed(&self, run: &Run<'_>) -> String {
        let latencies = &run.tally.latencies;
        let records = self.scanned.size - run.first_sequence;
        let ms = u64::try_from(run.ran.as_millis()).unwrap_or(u64::MAX).max(1);
        format!(
            "  {} answers   p50 {}   p99 {}   max {}\n  {} records in {} s: {} per second, {} per fsync\n",
            thousands(latencies.count()),
            latency(latencies.permille(500)),
            latency(latencies.permille(990)),
            latency(latencies.max()),
            thousands(records),
            decimal(ms.into(), 1000, 1),
            thousands(records * 1000 / ms),
            decimal(records.into(), run.batches.max(1).into(), 1),
        )
    }

    fn checkpoint(&self) -> String {
        self.journal.signed().note.to_string().lines().fold(String::new(), |text, line| match line {
            "" => text + "\n",
            line => text + "  " + line + "\n",
        })
    }

    fn json(&self, run: &Run<'_>) -> Value {
        let tenants: Vec<Value> = self
            .usage
            .tenants
            .iter()
            .map(|(no, (name, counts))| {
                let held = self.usage.classes.iter().map(|(class, spec)| {
                    let amount = self.usage.of_tenant(*no, *class);
                    json!({
                        "class": spec.name.as_str(),
                        "unit": spec.kind.unit(),
                        "quanta_per_unit": spec.quanta_per_unit,
                        // As text: many JSON parsers lose precision above 2^53.
                        "quanta_ns": amount.all().to_string(),
                        "quanta_ns_this_run": amount.run.to_string(),
                    })
                });
                let mut tenant = counts_json(name.as_str(), counts);
                tenant["held"] = held.collect();
                tenant
            })
            .collect();
        let latencies = &run.tally.latencies;
        let signed = self.journal.signed();
        let of_kind = |n: &Split<u64>| json!({ "all": n.before + n.run, "this_run": n.run });
        let kinds = self.usage.kinds.iter().map(|(word, n)| (*word, of_kind(n)));
        json!({
            "data": run.directory.data().display().to_string(),
            "trust": run.directory.trust().display().to_string(),
            "seed": run.seed,
            "ran_ms": u64::try_from(run.ran.as_millis()).unwrap_or(u64::MAX),
            "records": { "all": self.scanned.size, "this_run": self.scanned.size - run.first_sequence },
            "journal_bytes": self.scanned.bytes,
            "batches": run.batches,
            "kinds": Value::Object(kinds.map(|(word, count)| (word.to_owned(), count)).collect()),
            "tenants": tenants,
            "refused": run.tally.refused,
            "repeated": run.tally.repeated,
            "latency_ns": {
                "count": latencies.count(),
                "p50": latencies.permille(500),
                "p99": latencies.permille(990),
                "max": latencies.max(),
            },
            "checkpoint": {
                "size": signed.head.size,
                "root": hex::encode(signed.checkpoint.root()),
                "note": signed.note.to_string(),
            },
        })
    }
}

/// Counts of a tenant's leases and denials, in the whole journal and in this run.
fn counts_json(name: &str, counts: &Split<Counts>) -> Value {
    const WORDS: [&str; 6] = ["granted", "over_soft", "denied", "expired", "revoked", "fenced"];
    let (before, run) = (counts.before.of(), counts.run.of());
    let mut tenant = json!({ "tenant": name });
    let mut this_run = json!({});
    for (at, word) in WORDS.iter().enumerate() {
        tenant[*word] = (before[at] + run[at]).into();
        this_run[*word] = run[at].into();
    }
    tenant["this_run"] = this_run;
    tenant
}

/// Joins the items with commas, in indented lines of at most `width` columns.
fn wrapped(items: &[String], width: usize) -> String {
    let mut text = String::new();
    let mut line = String::new();
    for (item, at) in items.iter().zip(1..) {
        let item = format!("{item}{}", if at < items.len() { "," } else { "" });
        if !line.is_empty() && line.len() + 1 + item.len() > width {
            text.push_str(&format!(" {line}\n"));
            line.clear();
        }
        line.push_str(&format!(" {item}"));
    }
    if line.is_empty() { text } else { text + &format!(" {line}\n") }
}

/// The date and time of an instant, without seconds.
fn minute(at: Instant) -> String {
    let text = at.to_string();
    text.get(..16).map_or_else(|| text.clone(), |text| text.replace('T', " "))
}

fn blank_zero(count: u64) -> String {
    if count == 0 { "·".to_owned() } else { thousands(count) }
}

fn refusals(tally: &Tally) -> String {
    let mut text = String::new();
    for denial in tally.denials.iter().flatten() {
        text.push_str(&format!("  {denial}\n"));
    }
    let codes: Vec<String> = tally.refused.iter().map(|(code, count)| format!("{code} {count}")).collect();
    if !codes.is_empty() {
        text.push_str(&format!("  refused and not recorded: {}\n", codes.join(", ")));
    }
    if tally.repeated > 0 {
        text.push_str(&format!(
            "  {} repeated with the same idempotency key; the first answer was returned again\n",
            counted(tally.repeated, "request")
        ));
    }
    if text.is_empty() { "  none\n".to_owned() } else { text }
}
