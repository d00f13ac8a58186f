//! Comparing one lease in the books with its records.

use crate::tally::{Closed, others_of};
use leasehold_books::Row;
use leasehold_model::codec::Field;

/// One figure of a lease that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) figure: &'static str,
    pub(crate) books: String,
    pub(crate) records: String,
}

/// Every figure in which the row of a closed lease differs from what its records say.
pub(crate) fn differences(row: &Row, closed: &Closed) -> Vec<Difference> {
    let lease = &closed.lease;
    let mut found = Vec::new();
    let mut compare = |figure: &'static str, books: String, records: String| {
        if books != records {
            found.push(Difference { figure, books, records });
        }
    };
    compare("tenant", row.tenant.0.to_string(), lease.tenant.0.to_string());
    compare("project", row.project.0.to_string(), lease.project.0.to_string());
    compare("node", row.node.0.to_string(), lease.node.0.to_string());
    compare("class", row.class.0.to_string(), lease.class.0.to_string());
    compare("quanta", row.quanta.to_string(), lease.quanta.to_string());
    compare("held_from", row.held.from.to_string(), lease.from.to_string());
    // A later correction has a record of its own.
    compare("held_until", row.end_before.unwrap_or(row.held.to).to_string(), lease.to.to_string());
    compare("end", row.end.word().to_owned(), lease.end.word().to_owned());
    compare("fenced", row.fenced.to_string(), lease.fenced.to_string());
    compare("sequence", row.life.sequence.to_string(), lease.granted.to_string());
    let closed_at = row.life.closed_at.map_or_else(|| "never".to_owned(), |at| at.to_string());
    compare("closed_at", closed_at, closed.at.to_string());
    if others(row) != lease.others {
        let figure = "user, pool, priority, allocation, app_instance, workload, devices or sensitive";
        found.push(Difference { figure, books: "changed".into(), records: "otherwise".into() });
    }
    found
}

/// As in the tally, from the books.
fn others(row: &Row) -> [u8; 8] {
    others_of(|out| {
        row.user.put(out);
        row.pool.put(out);
        out.push(row.priority as u8);
        row.allocation.put(out);
        row.app_instance.put(out);
        row.workload.put(out);
        row.life.devices.put(out);
        row.life.sensitive.put(out);
    })
}
