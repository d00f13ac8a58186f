//! One measured figure, and how figures are shown.

use serde_json::{Value, json};

/// A figure with its goal. `baseline` is what it was compared with in the same run.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub name: &'static str,
    pub value: f64,
    pub unit: &'static str,
    pub baseline: Option<f64>,
    pub ratio: Option<f64>,
    /// The goal as text: `>= 0.5`.
    pub goal: &'static str,
    /// `None` if there is no goal, or the peer was not built in.
    pub pass: Option<bool>,
    pub note: String,
}

impl Outcome {
    pub fn at_least(name: &'static str, value: f64, unit: &'static str, goal: &'static str, least: f64) -> Self {
        Self { name, value, unit, baseline: None, ratio: None, goal, pass: Some(value >= least), note: String::new() }
    }
    pub fn at_most(name: &'static str, value: f64, unit: &'static str, goal: &'static str, most: f64) -> Self {
        Self { name, value, unit, baseline: None, ratio: None, goal, pass: Some(value <= most), note: String::new() }
    }
    pub fn against(
        name: &'static str,
        value: f64,
        unit: &'static str,
        baseline: f64,
        goal: &'static str,
        least: f64,
    ) -> Self {
        let ratio = value / baseline;
        Self {
            name,
            value,
            unit,
            baseline: Some(baseline),
            ratio: Some(ratio),
            goal,
            pass: Some(ratio >= least),
            note: String::new(),
        }
    }
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// The best of three runs.
pub(crate) fn best_of_three(mut run: impl FnMut() -> f64) -> f64 {
    (0..3).map(|_| run()).fold(f64::MIN, f64::max)
}

fn figure(value: f64) -> String {
    if value >= 1000.0 {
        let digits = format!("{value:.0}");
        let mut grouped = String::new();
        for (i, digit) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        grouped
    } else {
        format!("{value:.3}")
    }
}

pub(crate) fn table(outcomes: &[Outcome]) -> String {
    let head = ["name", "value", "unit", "baseline", "ratio", "goal", "pass", "note"].map(str::to_owned);
    let mut rows = vec![head.to_vec()];
    for o in outcomes {
        let word = |pass| if pass { "yes" } else { "NO" };
        rows.push(vec![
            o.name.to_owned(),
            figure(o.value),
            o.unit.to_owned(),
            o.baseline.map_or(String::new(), figure),
            o.ratio.map_or(String::new(), |r| format!("{r:.2}")),
            o.goal.to_owned(),
            o.pass.map_or("-", word).to_owned(),
            o.note.clone(),
        ]);
    }
    let widths: Vec<usize> = (0..8).map(|c| rows.iter().map(|row| row[c].chars().count()).max().unwrap_or(0)).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(c, cell)| match c {
            1 | 3 | 4 => format!("{cell:>width$}", width = widths[c]),
            _ => format!("{cell:<width$}", width = widths[c]),
        });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

pub(crate) fn json(outcomes: &[Outcome]) -> String {
    let rows: Vec<Value> = outcomes
        .iter()
        .map(|o| {
            json!({
                "name": o.name, "value": o.value, "unit": o.unit, "baseline": o.baseline,
                "ratio": o.ratio, "goal": o.goal, "pass": o.pass, "note": o.note,
            })
        })
        .collect();
    format!("{}\n", serde_json::to_string_pretty(&rows).expect("figures are JSON"))
}
