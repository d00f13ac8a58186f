//! The display while the demo runs: on a terminal a panel that is redrawn, otherwise a line every few seconds.

use super::cluster::{CPU, H100, L40S, MEM, TENANTS, main_quota, tenant_no};
use super::scene::{Event, LOCK, Scene, Tally};
use crate::numbers::{decimal, latency, thousands};
use crate::table::{Align, Table};
use crate::term::{self, Paint, Part, Style, bar, fit};
use leasehold_engine::{CapacitySplit, State};
use leasehold_model::{ClassNo, LimitKind, Span, quantity};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

const SHOWN: [(ClassNo, &str); 4] = [(H100, "h100"), (L40S, "l40s"), (CPU, "cpu"), (MEM, "mem")];
/// The most events that are shown; fewer if the terminal has fewer lines.
const EVENTS_SHOWN: usize = 6;
/// On a smaller terminal plain lines are printed.
const PANEL_ROWS: usize = 24;
const PANEL_COLUMNS: usize = 72;

/// Shows the demo until it is over.
pub(crate) fn watch(scene: &Scene, length: Option<Span>) {
    let length = length.map(|length| Duration::from_nanos(length.0));
    let mut screen = Screen { paint: Paint::stderr(), drawn: 0, events: VecDeque::new(), last_line_at: Duration::ZERO };
    let mut sampler = Sampler { records: records_of(scene), at: scene.elapsed() };
    let mut next = Duration::ZERO;
    while !scene.is_over() && length.is_none_or(|length| scene.elapsed() < length) {
        let end = length.unwrap_or(Duration::MAX);
        if !scene.wait_until(next.min(end)) {
            break;
        }
        let sample = sampler.sample(scene, length);
        match term::drawable().filter(|(columns, rows)| *columns >= PANEL_COLUMNS && *rows >= PANEL_ROWS) {
            Some(size) => screen.draw(scene, &sample, size),
            None => screen.print_line(scene, &sample),
        }
        next += Duration::from_secs(1);
    }
    for event in scene.take_events() {
        if screen.drawn == 0 {
            term::say(&format!("{}\n", event_line(&event, screen.paint)));
        }
    }
    term::say("\n");
}

fn records_of(scene: &Scene) -> u64 {
    scene.cell.stats().records.load(Ordering::Relaxed)
}

/// The numbers to display.
struct Sample {
    elapsed: Duration,
    length: Option<Duration>,
    records: u64,
    per_second: u64,
    checkpoint: u64,
    live: usize,
    splits: Vec<(ClassNo, CapacitySplit)>,
}

/// The previous sample, for rates.
struct Sampler {
    records: u64,
    at: Duration,
}

impl Sampler {
    fn sample(&mut self, scene: &Scene, length: Option<Duration>) -> Sample {
        let elapsed = scene.elapsed();
        let records = records_of(scene);
        let passed = u64::try_from((elapsed - self.at).as_millis()).unwrap_or(u64::MAX).max(1);
        let per_second = (records - self.records) * 1000 / passed;
        (self.records, self.at) = (records, elapsed);
        let (live, splits) = scene.cell.now().read(|state| {
            (state.live_leases(), SHOWN.iter().map(|(class, _)| (*class, split_of(state, *class))).collect())
        });
        let checkpoint = scene.cell.journal().checkpointed().size();
        Sample { elapsed, length, records, per_second, checkpoint, live, splits }
    }
}

/// The capacity of a class by state, over all nodes.
fn split_of(state: &State, class: ClassNo) -> CapacitySplit {
    state.nodes().map(|node| node.split(class)).fold(CapacitySplit::default(), |sum, one| CapacitySplit {
        held: sum.held + one.held,
        tearing_down: sum.tearing_down + one.tearing_down,
        reserved: sum.reserved + one.reserved,
        fenced: sum.fenced + one.fenced,
        offline: sum.offline + one.offline,
        idle: sum.idle + one.idle,
    })
}

struct Screen {
    paint: Paint,
    /// Number of lines that the next drawing overwrites.
    drawn: usize,
    events: VecDeque<Event>,
    /// When the last plain line was printed.
    last_line_at: Duration,
}

impl Screen {
    fn print_line(&mut self, scene: &Scene, sample: &Sample) {
        for event in scene.take_events() {
            term::say(&format!("{}\n", event_line(&event, self.paint)));
        }
        if sample.elapsed < self.last_line_at + Duration::from_secs(3) {
            return;
        }
        self.last_line_at = sample.elapsed;
        let held = sample
            .splits
            .iter()
            .zip(SHOWN)
            .map(|((_, split), (_, word))| format!("{word} {}%", split.held * 100 / split.total().max(1)));
        let tally = scene.tally.lock().expect(LOCK);
        let denied: u64 = tally.denied.iter().sum();
        term::say(&format!(
            "{:>4}s  {} records  {}/s  {} leases  {}  denied {denied}  p50 {}  p99 {}  checkpoint {}\n",
            sample.elapsed.as_secs(),
            thousands(sample.records),
            thousands(sample.per_second),
            sample.live,
            held.collect::<Vec<_>>().join(" "),
            latency(tally.latencies.permille(500)),
            latency(tally.latencies.permille(990)),
            thousands(sample.checkpoint),
        ));
    }

    fn draw(&mut self, scene: &Scene, sample: &Sample, (columns, rows): (usize, usize)) {
        let paint = self.paint;
        let mut lines = Vec::new();
        {
            let tally = scene.tally.lock().expect(LOCK);
            lines.extend(heading(sample, &tally, paint));
            lines.push(String::new());
            lines.extend(scene.cell.now().read(|state| capacity_lines(state, sample, columns, paint)));
            lines.push(String::new());
            lines.extend(scene.cell.now().read(|state| tenant_lines(state, &tally, paint)));
        }
        lines.push(String::new());
        // The cursor is in the last row.
        let shown = rows.saturating_sub(lines.len() + 1).min(EVENTS_SHOWN);
        self.events.extend(scene.take_events());
        self.events.drain(..self.events.len().saturating_sub(shown));
        lines.extend(self.events.iter().map(|event| event_line(event, paint)));
        lines.resize(lines.len() + shown - self.events.len(), String::new());
        // Moves up over the previous drawing; each line clears the rest of its row.
        let mut text = if self.drawn > 0 { format!("\x1b[{}A", self.drawn) } else { String::new() };
        for line in &lines {
            text.push_str(&format!("\r{}\x1b[K\n", fit(line, columns - 1)));
        }
        self.drawn = lines.len();
        term::say(&text);
    }
}

fn heading(sample: &Sample, tally: &Tally, paint: Paint) -> [String; 2] {
    let clock = match sample.length {
        Some(length) => {
            let ms = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
            let done = [Part { amount: ms(sample.elapsed), glyph: '━', style: Style::Green }];
            let done = bar(&done, ms(length), 24, paint);
            format!("{done}  {} s of {} s", sample.elapsed.as_secs(), length.as_secs())
        }
        None => format!("{} s   (Ctrl-C to stop)", sample.elapsed.as_secs()),
    };
    let sealed = format!(
        "  {} records, {}/s   checkpoint {}   latency p50 {}, p99 {}",
        paint.bold(&thousands(sample.records)),
        thousands(sample.per_second),
        thousands(sample.checkpoint),
        paint.bold(&latency(tally.latencies.permille(500))),
        latency(tally.latencies.permille(990)),
    );
    [format!("  {}  {clock}   {} live leases", paint.bold("Leasehold demo"), sample.live), sealed]
}

fn capacity_lines(state: &State, sample: &Sample, columns: usize, paint: Paint) -> Vec<String> {
    let width = (columns - 42).clamp(20, 60);
    let legend = [
        ("█ held", Style::Green),
        ("▓ teardown", Style::Blue),
        ("▒ fenced", Style::Red),
        ("░ offline", Style::Magenta),
    ];
    let legend: Vec<String> = legend.into_iter().map(|(text, style)| paint.paint(style, text)).collect();
    let mut lines = vec![format!("  {}   {}", paint.dim("capacity"), legend.join("  "))];
    for ((class, split), (_, word)) in sample.splits.iter().zip(SHOWN) {
        let part = |amount, glyph, style| Part { amount, glyph, style };
        let parts = [
            part(split.held, '█', Style::Green),
            part(split.tearing_down, '▓', Style::Blue),
            part(split.fenced, '▒', Style::Red),
            part(split.offline, '░', Style::Magenta),
        ];
        let Some(spec) = state.class(*class) else { continue };
        let per_unit = u128::from(spec.quanta_per_unit);
        let [held, total] = [split.held, split.total()].map(|n| decimal(n.into(), per_unit, 0));
        let bar = bar(&parts, split.total(), width, paint);
        lines.push(format!("  {word:<8}   {bar}  {held:>6} of {total} {}", spec.kind.unit()));
    }
    lines
}

fn tenant_lines(state: &State, tally: &Tally, paint: Paint) -> Vec<String> {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("tenant", Left),
        ("quota", Left),
        ("used", Right),
        ("limit", Left),
        ("leases", Right),
        ("granted", Right),
        ("denied", Right),
    ]);
    for (at, tenant) in TENANTS.iter().enumerate() {
        let Some(quota) = state.quota(main_quota(at)) else { continue };
        let Some(spec) = state.class(tenant.class) else { continue };
        let shown = |quanta: u64| decimal(quanta.into(), spec.quanta_per_unit.into(), 1);
        let base = quota.limit.limit();
        let used = u64::try_from(quota.used().numerator()).unwrap_or(u64::MAX);
        let (ceiling, limit) = match quota.limit {
            LimitKind::Hard { limit } => (limit, format!("{} hard", quantity_of(limit, spec))),
            LimitKind::Soft { limit } => (limit, format!("{} soft", quantity_of(limit, spec))),
            LimitKind::Burst { limit, burst_limit, .. } => {
                (burst_limit, format!("{}, burst {}", quantity_of(limit, spec), quantity_of(burst_limit, spec)))
            }
        };
        let style = match () {
            () if used > base => Style::Yellow,
            () if used * 10 >= base * 9 => Style::Cyan,
            () => Style::Green,
        };
        let part = [Part { amount: used, glyph: '█', style }];
        let tier = spec.tier.as_ref().map_or("", |tier| tier.as_str());
        table.row([
            tenant.name.to_owned(),
            bar(&part, ceiling.max(used), 16, paint),
            shown(used),
            format!("{limit} {tier}"),
            state.tenant(tenant_no(at)).map_or(0, |tenant| tenant.leases).to_string(),
            thousands(tally.granted[at]),
            thousands(tally.denied[at]),
        ]);
    }
    table.lines(paint)
}

fn quantity_of(quanta: u64, spec: &leasehold_model::ClassSpec) -> String {
    quantity::display(leasehold_model::Quanta(quanta), spec)
}

fn event_line(event: &Event, paint: Paint) -> String {
    let at = event.at.to_string();
    let style = match event.who {
        "node" => Style::Red,
        "holder" => Style::Green,
        _ => Style::Yellow,
    };
    // The time of day from an RFC 3339 instant.
    format!("  {}  {} {}", paint.dim(&at[11..19]), paint.paint(style, &format!("{:<8}", event.who)), event.text)
}
