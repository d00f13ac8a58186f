//! Usage, with peaks and utilisation.

use super::books::{overflow, stretch, too_many};
use super::books_query::BooksQuery;
use super::naming::Naming;
use crate::books::{ask, problem};
use crate::context::{Answer, Context, json};
use crate::show_ledger::unit_quantity;
use leasehold_api::{Problem, ReportedLine, UsageLine, UsageReport, When, codes};
use leasehold_books::{Activity, Books, Key, PeakLine, Question, UnitLine, Usage};
use leasehold_meter::{Units, Window};
use leasehold_model::{ClassNo, ClassSpec, Name, Quanta, quantity};
use std::collections::BTreeMap;

/// The group of classes that are added up: kind, and tier if asked for.
type Together = (u8, Option<Name>);

fn together(asked: &BooksQuery, spec: &ClassSpec) -> Together {
    (spec.kind as u8, asked.by_tier().then(|| spec.tier.clone()).flatten())
}

pub(super) async fn usage(context: Context) -> Answer {
    let asked = context.app.now.read(|state| BooksQuery::read(&context, state))?;
    let is_set = |name: &str| context.query(name) == Some("true");
    let (peak, utilisation) = (is_set("peak"), is_set("utilisation"));
    if utilisation && asked.bucket.is_some() {
        let detail = "Activity reports do not say when a lease was busy; remove `bucket` or `utilisation`.";
        return Err(codes::BAD_QUERY.problem(detail).with("field", "utilisation"));
    }
    let (app, caller) = (context.app.clone(), context.caller().clone());
    let now = app.now.clone();
    let report = ask(&app, context.caller(), move |books, known| {
        let window = asked.window(known.as_of)?;
        let question = asked.question(books, window)?;
        let failed = |error| problem(&error);
        let usage = books.usage(&question).map_err(failed)?;
        too_many(usage.len())?;
        let activity = if utilisation { books.activity(&question).map_err(failed)?.0 } else { BTreeMap::new() };
        let lines = now.read(|state| {
            let naming = Naming { state, books, workloads: &usage.workloads, caller: &caller };
            let labels = asked.labels(&question)?;
            let lines = Lines { naming: &naming, asked: &asked, question: &question, usage: &usage, labels };
            if asked.by_kind() {
                let peaks = if peak { kind_peaks(books, &asked, &question)? } else { BTreeMap::new() };
                return lines.by_kind(&peaks, &activity);
            }
            let peaks = if peak { books.peaks(&question).map_err(failed)?.0 } else { Vec::new() };
            lines.by_class(&peaks, &activity)
        })?;
        let units = books.unit_usage(&question).map_err(failed)?;
        too_many(units.len())?;
        let labels = asked.labels(&question)?;
        let reported = now.read(|state| {
            let naming = Naming { state, books, workloads: &usage.workloads, caller: &caller };
            let line = |line: UnitLine| reported(&naming, &question, &labels, &line);
            units.into_iter().map(line).collect()
        });
        Ok(UsageReport { stretch: stretch(window), as_of: When(known.as_of), as_of_size: known.size, lines, reported })
    });
    json(200, &report.await?)
}

fn reported(naming: &Naming<'_>, question: &Question, labels: &[String], line: &UnitLine) -> ReportedLine {
    let mut of = naming.of(&question.dims, &line.key);
    of.usage_unit = Some(naming.unit(line.unit));
    let place = line.bucket as usize;
    ReportedLine {
        of,
        stretch: stretch(Window::new(question.borders[place], question.borders[place + 1])),
        bucket: labels.get(place).cloned(),
        charge: line.charge,
        quantity: unit_quantity(line.quantity),
    }
}

/// What one quantum of a class counts in its group: the quanta per unit of the other classes, so that all can be added.
fn weights(books: &Books, asked: &BooksQuery) -> Result<BTreeMap<Together, u64>, Problem> {
    let mut units: BTreeMap<Together, u64> = BTreeMap::new();
    for (_, spec) in books.classes() {
        let all = units.entry(together(asked, spec)).or_insert(1);
        *all = (*all / gcd(*all, spec.quanta_per_unit))
            .checked_mul(spec.quanta_per_unit)
            .ok_or_else(|| overflow(leasehold_meter::Overflow))?;
    }
    Ok(units)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Peaks of several classes together, in billing units.
fn kind_peaks(
    books: &Books,
    asked: &BooksQuery,
    question: &Question,
) -> Result<BTreeMap<(Key, Together, u32), String>, Problem> {
    let units = weights(books, asked)?;
    let group = |class: ClassNo| match books.class(class) {
        Some(spec) => {
            let group = together(asked, spec);
            let weight = units[&group] / spec.quanta_per_unit;
            (group, weight)
        }
        None => ((u8::MAX, None), 0),
    };
    let peaks = books.peaks_together(question, group).map_err(|error| problem(&error))?;
    let shown = |((key, group, bucket), peak): ((Key, Together, u32), u128)| {
        let spec = books.classes().map(|(_, spec)| spec).find(|spec| together(asked, spec) == group);
        let text = match (spec, u64::try_from(peak)) {
            (Some(spec), Ok(peak)) => {
                quantity::display(Quanta(peak), &ClassSpec { quanta_per_unit: units[&group], ..spec.clone() })
            }
            _ => peak.to_string(),
        };
        ((key, group, bucket), text)
    };
    Ok(peaks.into_iter().map(shown).collect())
}

fn shown(units: &Units) -> Result<(String, String), Problem> {
    let (numerator, denominator) = units.fraction().map_err(overflow)?;
    Ok((units.decimal(9).map_err(overflow)?, format!("{numerator}/{denominator}")))
}

struct Lines<'l> {
    naming: &'l Naming<'l>,
    asked: &'l BooksQuery,
    question: &'l Question,
    usage: &'l Usage,
    /// The names of the buckets.
    labels: Vec<String>,
}

impl Lines<'_> {
    fn bucket(&self, bucket: u32) -> leasehold_api::Stretch {
        let place = bucket as usize;
        stretch(Window::new(self.question.borders[place], self.question.borders[place + 1]))
    }

    fn label(&self, bucket: u32) -> Option<String> {
        self.labels.get(bucket as usize).cloned()
    }

    fn by_kind(
        &self,
        peaks: &BTreeMap<(Key, Together, u32), String>,
        activity: &BTreeMap<(Key, ClassNo), Activity>,
    ) -> Result<Vec<UsageLine>, Problem> {
        let mut sums: BTreeMap<(Key, Together, u32), (Units, ClassNo)> = BTreeMap::new();
        for line in self.usage.lines() {
            let spec = self.naming.spec(line.class)?;
            let place = (line.key, together(self.asked, spec), line.bucket);
            let sum = sums.entry(place).or_insert((Units::default(), line.class));
            sum.0.add_all(&Units::of(line.amount, spec.quanta_per_unit)).map_err(overflow)?;
        }
        let mut used: BTreeMap<(Key, Together), Vec<Used>> = BTreeMap::new();
        for ((key, class), activity) in activity {
            let spec = self.naming.spec(*class)?;
            used.entry((*key, together(self.asked, spec))).or_default().push((spec.quanta_per_unit, *activity));
        }
        let mut out = Vec::with_capacity(sums.len());
        for (place, (units, class)) in sums {
            let peak = peaks.get(&place).cloned();
            let (key, group, bucket) = place;
            let spec = self.naming.spec(class)?;
            let mut of = self.naming.of(&self.question.dims, &key);
            of.kind = Some(spec.kind.word().to_owned());
            let (unit_seconds, exact) = shown(&units)?;
            let utilisation = used.get(&(key, group.clone())).map(|all| utilisation(all)).transpose()?.flatten();
            of.tier = group.1.map(|tier| tier.to_string());
            let unit = spec.kind.unit().to_owned();
            out.push(UsageLine {
                of,
                stretch: self.bucket(bucket),
                bucket: self.label(bucket),
                unit,
                unit_seconds,
                exact,
                quanta_ns: None,
                peak,
                utilisation,
            });
        }
        Ok(out)
    }

    fn by_class(
        &self,
        peaks: &[PeakLine],
        activity: &BTreeMap<(Key, ClassNo), Activity>,
    ) -> Result<Vec<UsageLine>, Problem> {
        let mut out = Vec::with_capacity(self.usage.len());
        let mut peaks = peaks.iter().peekable();
        for line in self.usage.lines() {
            let spec = self.naming.spec(line.class)?;
            let mut of = self.naming.of(&self.question.dims, &line.key);
            self.naming.name_class(&mut of, line.class)?;
            let here = (line.key, line.class, line.bucket);
            while peaks.next_if(|peak| (peak.key, peak.class, peak.bucket) < here).is_some() {}
            let peak = peaks.next_if(|peak| (peak.key, peak.class, peak.bucket) == here);
            let peak = peak.map(|peak| quantity::display(Quanta(peak.peak), spec));
            let (unit_seconds, exact) = shown(&Units::of(line.amount, spec.quanta_per_unit))?;
            let used = activity.get(&(line.key, line.class));
            let utilisation = used.map(|used| utilisation(&[(spec.quanta_per_unit, *used)])).transpose()?.flatten();
            out.push(UsageLine {
                of,
                stretch: self.bucket(line.bucket),
                bucket: self.label(line.bucket),
                unit: spec.kind.unit().to_owned(),
                unit_seconds,
                exact,
                quanta_ns: Some(line.amount.to_string()),
                peak,
                utilisation,
            });
        }
        Ok(out)
    }
}

/// The activity of a class, with its quanta per unit.
pub(super) type Used = (u64, Activity);

/// Busy and covered time of some classes of one unit; `None` without reports.
pub(super) fn utilisation(all: &[Used]) -> Result<Option<leasehold_api::Utilisation>, Problem> {
    let sum = |amount: fn(&Activity) -> u128| -> Result<Units, Problem> {
        let mut units = Units::default();
        for (per_unit, activity) in all {
            units.add_all(&Units::of(amount(activity), *per_unit)).map_err(overflow)?;
        }
        Ok(units)
    };
    let (held, covered, busy) = (sum(|one| one.held)?, sum(|one| one.covered)?, sum(|one| one.busy)?);
    if covered.is_zero() {
        return Ok(None);
    }
    let of_all = Units::over_one_denominator(&[&held, &covered, &busy]).map_err(overflow)?;
    let [held, of_covered, of_busy] = [of_all[0], of_all[1], of_all[2]];
    let known = of_covered + of_covered >= held;
    let permille = known.then(|| (of_busy.min(of_covered) * 1000u128 / of_covered).as_u32());
    Ok(Some(leasehold_api::Utilisation {
        covered: covered.decimal(9).map_err(overflow)?,
        busy: busy.decimal(9).map_err(overflow)?,
        permille,
    }))
}
