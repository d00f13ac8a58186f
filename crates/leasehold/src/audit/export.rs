//! `leasehold audit export`: prints records as JSON lines.

use super::open;
use crate::cli::ExportArgs;
use crate::output::failed;
use crate::problem::Problem;
use crate::term;
use leasehold_model::{Body, Record, TenantNo};
use leasehold_view::Directory;
use std::collections::BTreeSet;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::ops::ControlFlow;

pub(super) fn run(args: &ExportArgs) -> Result<(), Problem> {
    let files = open(&args.journal)?;
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut directory = Directory::new();
    let mut filter = Filter::new(args);
    let mut write = |line: String| -> Result<ControlFlow<()>, Problem> {
        match out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")) {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(error) => unless_closed(&error),
        }
    };
    let scanned = files.scan(&mut |entry| {
        if args.to.is_some_and(|to| entry.sequence > to) {
            return Ok(ControlFlow::Break(()));
        }
        let undecodable = |error| {
            let what = format!("record {} cannot be read: {error}", entry.sequence);
            Problem::not_verified("record_undecodable", what).advice("run leasehold audit verify")
        };
        let wanted = filter.matches(&entry.raw.decode().map_err(undecodable)?);
        if wanted {
            let shown = directory.show(&entry.raw, &entry.hash).map_err(undecodable)?;
            return write(shown.to_string());
        }
        directory.pass(&entry.raw, &entry.hash).map_err(undecodable)?;
        Ok(ControlFlow::Continue(()))
    })?;
    if let Err(error) = out.flush() {
        let _: ControlFlow<()> = unless_closed(&error)?;
        return Ok(());
    }
    if scanned.first > args.from.unwrap_or(0) {
        term::say(&format!(
            "leasehold: records 0 to {} are archived or deleted; if they are archived, give their directory with --archive to \
             print them too\n",
            scanned.first - 1
        ));
    }
    match args.from {
        Some(from) if from >= scanned.size => Err(Problem::refused(
            "record_not_found",
            format!("there is no record {from}: the journal has {} records", scanned.size),
        )
        .advice("sequence numbers start at 0")),
        _ => filter.finish(),
    }
}

/// A reader that closed the pipe needs no more output; that is not an error.
fn unless_closed(error: &io::Error) -> Result<ControlFlow<()>, Problem> {
    match error.kind() {
        ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        _ => Err(failed(error)),
    }
}

/// Selects the records to print.
struct Filter<'a> {
    args: &'a ExportArgs,
    /// The numbers of the tenants that have or had the requested name.
    tenants: BTreeSet<TenantNo>,
}

impl<'a> Filter<'a> {
    fn new(args: &'a ExportArgs) -> Self {
        Self { args, tenants: BTreeSet::new() }
    }

    fn matches(&mut self, record: &Record) -> bool {
        let of_tenant = self.args.tenant.as_deref().is_none_or(|name| {
            if let Body::TenantPut(put) = &record.body
                && put.settings.name.as_str() == name
            {
                self.tenants.insert(put.tenant);
            }
            tenant_of(record).is_some_and(|tenant| self.tenants.contains(&tenant))
        });
        let of_kind = self.args.kind.as_deref().is_none_or(|kind| {
            let word = record.body.word();
            word == kind || word.strip_prefix(kind).is_some_and(|rest| rest.starts_with('.'))
        });
        of_tenant && of_kind && self.args.from.is_none_or(|from| record.sequence >= from)
    }

    /// An unknown tenant name is an error, not an empty result.
    fn finish(&self) -> Result<(), Problem> {
        match &self.args.tenant {
            Some(name) if self.tenants.is_empty() => {
                Err(Problem::refused("unknown_tenant", format!("there is no tenant {name:?} in these records"))
                    .advice("`leasehold audit export --kind tenant.put` lists them"))
            }
            _ => Ok(()),
        }
    }
}

/// The tenant of a record: the one that caused it, or the one that it is about.
fn tenant_of(record: &Record) -> Option<TenantNo> {
    record.identity.tenant.or(match &record.body {
        Body::TenantPut(put) => Some(put.tenant),
        Body::TenantDeleted(gone) => Some(gone.tenant),
        Body::ProjectPut(put) => Some(put.tenant),
        Body::UserPut(put) => Some(put.tenant),
        _ => None,
    })
}
