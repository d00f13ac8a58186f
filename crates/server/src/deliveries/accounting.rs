//! The payloads of events for accounting systems (SEMANTICS 11, "Accounting events"). What is not known is null; usage
//! is exact.

use super::gathered::{Gathered, Unknown};
use super::made::Work;
use crate::app::App;
use crate::past::named;
use leasehold_books::{Attempt, Books, End, NamedKind, Row, Story};
use leasehold_meter::Window;
use leasehold_model::body::{Body, Correlation};
use leasehold_model::class::ResourceKind;
use leasehold_model::{AllocationNo, Instant, LeaseNo, NodeNo, PoolNo, ProjectNo, Record, Span, TenantNo, UserNo};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

const HOUR_NS: u128 = 3_600_000_000_000;

/// What the payloads are made from: the books, and never the state, which could not be published meanwhile.
pub(super) struct Payloads<'a> {
    pub(super) app: &'a App,
    pub(super) books: &'a Books,
    pub(super) gathered: &'a Gathered,
}

/// The names of objects, also of deleted ones.
struct Known<'a>(&'a Books);

impl Known<'_> {
    fn tenant(&self, no: TenantNo) -> String {
        named(self.0, NamedKind::Tenant, no.0, None)
    }
    fn project(&self, no: ProjectNo) -> String {
        named(self.0, NamedKind::Project, no.0, None)
    }
    fn user(&self, no: UserNo) -> String {
        named(self.0, NamedKind::User, no.0, None)
    }
    fn node(&self, no: NodeNo) -> String {
        named(self.0, NamedKind::Node, no.0, None)
    }
    fn pool(&self, no: PoolNo) -> String {
        named(self.0, NamedKind::Pool, no.0, None)
    }
}

/// Nanoseconds as seconds, exactly.
fn seconds(nanoseconds: u128) -> String {
    let (whole, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let text = format!("{whole}.{rest:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// An exact fraction: as a decimal with nine places, rounded half to even, and as it is.
fn fraction(numerator: u128, denominator: u128) -> (String, Value) {
    const SCALE: u128 = 1_000_000_000;
    let (whole, rest) = (numerator / denominator, numerator % denominator);
    // The rest is below the denominator, which is at most an hour times the quanta of a unit: no overflow.
    let (mut places, left) = (rest * SCALE / denominator, rest * SCALE % denominator);
    let is_up = left * 2 > denominator || left * 2 == denominator && places % 2 == 1;
    places += u128::from(is_up);
    let (whole, places) = (whole + places / SCALE, places % SCALE);
    let text = format!("{whole}.{places:09}");
    let text = text.trim_end_matches('0').trim_end_matches('.').to_owned();
    let divisor = gcd(numerator, denominator);
    let exact = json!({
        "numerator": (numerator / divisor).to_string(),
        "denominator": (denominator / divisor).to_string(),
    });
    (text, exact)
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}

/// A fraction of quanta and nanoseconds, over classes with different quanta to the unit.
#[derive(Default)]
struct UnitTime(BTreeMap<u64, u128>);

impl UnitTime {
    fn add(&mut self, quanta_per_unit: u64, quanta: u64, held: Window) {
        let time = u128::from(held.to.0.saturating_sub(held.from.0));
        *self.0.entry(quanta_per_unit).or_default() += u128::from(quanta) * time;
    }

    /// In hours, as a fraction.
    fn hours(&self) -> (u128, u128) {
        let denominator = self.0.keys().fold(1, |all, per| all / gcd(all, u128::from(*per)) * u128::from(*per));
        let numerator = self.0.iter().map(|(per, time)| time * (denominator / u128::from(*per))).sum();
        (numerator, denominator * HOUR_NS)
    }
}

/// The attempt that was placed last up to a record.
pub(super) fn attempt_at(story: &Story, sequence: u64) -> Option<&Attempt> {
    story.attempts.iter().rev().find(|attempt| attempt.sequence <= sequence)
}

impl Payloads<'_> {
    fn known(&self) -> Known<'_> {
        Known(self.books)
    }

    /// The leases of an allocation in a pool, of one attempt or of all.
    fn rows<'s>(&self, attempts: impl Iterator<Item = &'s Attempt>, pool: Option<PoolNo>) -> Result<Vec<Row>, Unknown> {
        let mut rows = Vec::new();
        for lease in attempts.flat_map(Attempt::numbers) {
            let row = self.gathered.lease(LeaseNo(lease))?;
            if pool.is_none_or(|pool| row.pool == pool) {
                rows.push(row.clone());
            }
        }
        Ok(rows)
    }

    /// The leases in a pool of the last attempt that had any there.
    fn last_rows(&self, story: &Story, pool: Option<PoolNo>) -> Result<Vec<Row>, Unknown> {
        for attempt in story.attempts.iter().rev() {
            let rows = self.rows([attempt].into_iter(), pool)?;
            if !rows.is_empty() {
                return Ok(rows);
            }
        }
        Ok(Vec::new())
    }

    fn story(&self, allocation: AllocationNo) -> Result<&Story, Unknown> {
        self.gathered.story(allocation)
    }

    /// Who did it, and what it is called.
    fn of_allocation(&self, story: &Story, pool: Option<PoolNo>) -> Map<String, Value> {
        let (known, outline) = (self.known(), &story.outline);
        let correlation = Correlation::or_derived(story.spec.correlation, outline.number.0).id(&self.app.genesis);
        let pool = pool.or(outline.pool);
        let value = json!({
            "allocation_id": outline.number.to_string(),
            "tenant": known.tenant(outline.tenant), "tenant_id": outline.tenant.0,
            "project": known.project(outline.project), "project_id": outline.project.0,
            "user": outline.user.map(|user| known.user(user)), "user_id": outline.user.map(|user| user.0),
            "pool": pool.map(|pool| known.pool(pool)), "pool_id": pool.map(|pool| pool.0),
            "workload": story.workload.as_ref().map(ToString::to_string),
            "priority": outline.priority.word(), "sensitive": story.spec.sensitive,
            "correlation_id": correlation.to_string(),
        });
        if let Value::Object(map) = value { map } else { Map::new() }
    }

    fn of_lease(&self, row: &Row) -> Map<String, Value> {
        let known = self.known();
        let value = json!({
            "allocation_id": row.lease.to_string(),
            "tenant": known.tenant(row.tenant), "tenant_id": row.tenant.0,
            "project": known.project(row.project), "project_id": row.project.0,
            "user": row.user.map(|user| known.user(user)), "user_id": row.user.map(|user| user.0),
            "pool": known.pool(row.pool), "pool_id": row.pool.0,
            "workload": row.workload.as_ref().map(ToString::to_string),
            "priority": row.priority.word(), "sensitive": row.life.sensitive,
            "correlation_id": row.correlation().id(&self.app.genesis).to_string(),
        });
        if let Value::Object(map) = value { map } else { Map::new() }
    }

    /// Nodes, GPUs and everything else that is held.
    fn resources(&self, rows: &[Row]) -> Value {
        let nodes: BTreeSet<_> = rows.iter().map(|row| row.node).collect();
        let mut classes: BTreeMap<_, u64> = BTreeMap::new();
        rows.iter().for_each(|row| *classes.entry(row.class).or_default() += row.quanta);
        let (mut gpus, mut types, mut lines) = (UnitTime::default(), BTreeSet::new(), Vec::new());
        for (class, quanta) in classes {
            let Some(class) = self.books.class(class) else { continue };
            let per_unit = class.quanta_per_unit;
            let (units, _) = fraction(quanta.into(), per_unit.into());
            lines.push(json!({ "class": class.name.as_str(), "kind": class.kind.word(), "units": units }));
            if class.kind == ResourceKind::Gpu {
                gpus.add(per_unit, quanta, Window::new(Instant(0), Instant(1)));
                types.insert(class.tier.as_ref().unwrap_or(&class.name).to_string());
            }
        }
        let (numerator, denominator) = gpus.hours();
        json!({
            "nodes": nodes.iter().map(|node| self.known().node(*node)).collect::<Vec<_>>(),
            "node_count": nodes.len(),
            "gpus": fraction(numerator, denominator / HOUR_NS).0,
            "gpu_types": types,
            "classes": lines,
        })
    }

    /// What was used up to an instant. Leases that are held beyond it count up to it, whether they have ended by now or
    /// not: the same record makes the same event at any time.
    fn used(&self, rows: &[Row], at: Instant) -> Map<String, Value> {
        let mut gpus = UnitTime::default();
        let mut is_final = true;
        for row in rows {
            is_final &= row.end != End::Held && row.held.to <= at.max(row.held.from);
            let to = row.held.to.min(at).max(row.held.from);
            if let Some(class) = self.books.class(row.class).filter(|class| class.kind == ResourceKind::Gpu) {
                gpus.add(class.quanta_per_unit, row.quanta, Window::new(row.held.from, to));
            }
        }
        let (numerator, denominator) = gpus.hours();
        let (hours, exact) = fraction(numerator, denominator);
        let mut used = Map::new();
        used.insert("gpu_hours".into(), hours.into());
        used.insert("gpu_hours_exact".into(), exact);
        // A lease of it may still be within its grace.
        used.insert("usage_final".into(), is_final.into());
        used
    }

    pub(super) fn started(&self, record: &Record, work: Work) -> Result<Value, Unknown> {
        let (mut data, rows, estimate, attempt) = match work {
            Work::Lease(lease) => {
                let row = self.gathered.lease(lease)?;
                (self.of_lease(row), vec![row.clone()], None, 1)
            }
            Work::Allocation(allocation, pool) => {
                let story = self.story(allocation)?;
                let attempt = attempt_at(story, record.sequence);
                let rows = self.rows(attempt.into_iter(), pool)?;
                let number = attempt.map_or(1, |attempt| attempt.number);
                (self.of_allocation(story, pool), rows, story.spec.walltime, number)
            }
        };
        data.insert("attempt".into(), attempt.into());
        data.insert("started_at".into(), record.effective_at.to_string().into());
        data.insert("resources".into(), self.resources(&rows));
        let estimate = estimate.map(|walltime: Span| seconds(walltime.0.into()));
        data.insert("estimated_duration_seconds".into(), estimate.into());
        Ok(data.into())
    }

    pub(super) fn completed(&self, record: &Record, work: Work) -> Result<Value, Unknown> {
        Ok(self.ended(work, record.effective_at, record.effective_at)?.into())
    }

    /// What an allocation used, after its end was found to be earlier than `allocation.completed` said. The record takes
    /// effect when the lost node was last seen; what ran on other nodes may have ended later.
    pub(super) fn corrected(&self, record: &Record, work: Work) -> Result<Value, Unknown> {
        let rows = match work {
            Work::Lease(lease) => vec![self.gathered.lease(lease)?.clone()],
            Work::Allocation(allocation, pool) => self.rows(self.story(allocation)?.attempts.iter(), pool)?,
        };
        let last = rows.iter().map(|row| row.held.to).max().unwrap_or(record.effective_at);
        let mut data = self.ended(work, last, record.stamp)?;
        data.insert("node_last_seen_at".into(), record.effective_at.to_string().into());
        data.insert("corrected_at".into(), record.stamp.to_string().into());
        Ok(data.into())
    }

    /// What ended at `at`. What is held beyond `known` counts up to then.
    fn ended(&self, work: Work, at: Instant, known: Instant) -> Result<Map<String, Value>, Unknown> {
        let (mut data, rows, last, times) = match work {
            Work::Lease(lease) => {
                let row = self.gathered.lease(lease)?.clone();
                let mut data = self.of_lease(&row);
                data.insert("state".into(), "completed".into());
                data.insert("end".into(), row.end.word().into());
                data.insert("exit_status".into(), Value::Null);
                data.insert("storage_bytes_written".into(), Value::Null);
                let times = vec![(row.held.from, row.held.to)];
                (data, vec![row.clone()], vec![row], times)
            }
            Work::Allocation(allocation, pool) => {
                let story = self.story(allocation)?;
                let mut data = self.of_allocation(story, pool);
                let over = story.over;
                data.insert("state".into(), story.outline.state.word().into());
                data.insert("end".into(), over.and_then(|over| over.end).map(|end| end.word()).into());
                data.insert("exit_status".into(), over.and_then(|over| over.exit_status).into());
                let written = over.and_then(|over| over.known_written()).map(|bytes| bytes.to_string());
                data.insert("storage_bytes_written".into(), written.into());
                let end = |attempt: &Attempt| attempt.ended_at.map_or(at, |ended| ended.min(at));
                let times = story.attempts.iter().map(|attempt| (attempt.placed_at, end(attempt))).collect();
                (data, self.rows(story.attempts.iter(), pool)?, self.last_rows(story, pool)?, times)
            }
        };
        let ran = times.iter().map(|(from, to)| u128::from(to.0.saturating_sub(from.0))).sum();
        data.insert("attempts".into(), times.len().into());
        data.insert("started_at".into(), times.first().map(|(from, _)| from.to_string()).into());
        data.insert("ended_at".into(), at.to_string().into());
        data.insert("duration_seconds".into(), seconds(ran).into());
        // An attempt takes the place of the one before: what was held at a time is not the sum of them.
        data.insert("resources".into(), self.resources(&last));
        data.extend(self.used(&rows, known));
        Ok(data)
    }

    pub(super) fn checkpointed(&self, record: &Record, of: AllocationNo) -> Result<Option<Value>, Unknown> {
        let Body::AllocationCheckpointed(checkpoint) = &record.body else { return Ok(None) };
        let mut data = self.of_allocation(self.story(of)?, None);
        data.insert("checkpoint_bytes".into(), checkpoint.bytes.to_string().into());
        data.insert("checkpoint_duration_seconds".into(), seconds(checkpoint.took.0.into()).into());
        Ok(Some(data.into()))
    }

    /// Whose nodes they are: the head of the record names the claimer.
    fn claimer(&self, record: &Record) -> Map<String, Value> {
        let (known, identity) = (self.known(), &record.identity);
        let value = json!({
            "tenant": identity.tenant.map(|no| known.tenant(no)), "tenant_id": identity.tenant.map(|no| no.0),
            "project": identity.project.map(|no| known.project(no)), "project_id": identity.project.map(|no| no.0),
            "user": identity.user.map(|no| known.user(no)), "user_id": identity.user.map(|no| no.0),
        });
        if let Value::Object(map) = value { map } else { Map::new() }
    }

    pub(super) fn claimed(&self, record: &Record, node: NodeNo) -> Option<Value> {
        let Body::NodesClaimed(claimed) = &record.body else { return None };
        let mut data = self.claimer(record);
        data.insert("nodes".into(), vec![self.known().node(node)].into());
        data.insert("node_ids".into(), vec![node.0].into());
        data.insert("claim".into(), record.sequence.into());
        data.insert("claimed_at".into(), record.effective_at.to_string().into());
        data.insert("until".into(), claimed.until.map(|until| until.to_string()).into());
        Some(data.into())
    }

    pub(super) fn released(&self, record: &Record, released_at: Option<Instant>) -> Option<Value> {
        let (node, claim, outcome) = if let Body::NodeWiped(wiped) = &record.body {
            (wiped.node, wiped.claim, "confirmed")
        } else if let Body::NodeQuarantined(quarantined) = &record.body {
            (quarantined.node, quarantined.claim, quarantined.cause.word())
        } else {
            return None;
        };
        let mut data = self.claimer(record);
        data.insert("nodes".into(), vec![self.known().node(node)].into());
        data.insert("node_ids".into(), vec![node.0].into());
        data.insert("claim".into(), claim.into());
        data.insert("released_at".into(), released_at.map(|at| at.to_string()).into());
        data.insert("wipe".into(), outcome.into());
        data.insert("wipe_ended_at".into(), record.effective_at.to_string().into());
        Some(data.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_exact() {
        let mut time = UnitTime::default();
        let hours = |hours: u64| Window::new(Instant(0), Instant(hours * 3_600_000_000_000));
        // Ten hours on four nodes of four GPUs, and three sevenths of a GPU for an hour.
        time.add(1, 16, hours(10));
        time.add(7, 3, hours(1));
        let (numerator, denominator) = time.hours();
        let (text, exact) = fraction(numerator, denominator);
        assert_eq!(text, "160.428571429");
        assert_eq!(exact, json!({ "numerator": "1123", "denominator": "7" }));
        assert_eq!(fraction(5, 2).0, "2.5");
        assert_eq!(fraction(0, 7), ("0".to_owned(), json!({ "numerator": "0", "denominator": "1" })));
        assert_eq!(seconds(61_500_000_000), "61.5");
        assert_eq!(seconds(0), "0");
    }

    /// Half a billionth is rounded to the even one.
    #[test]
    fn decimals_are_rounded_half_to_even() {
        assert_eq!(fraction(1, 2_000_000_000).0, "0");
        assert_eq!(fraction(3, 2_000_000_000).0, "0.000000002");
        assert_eq!(fraction(1_999_999_999, 2_000_000_000).0, "1");
    }
}
