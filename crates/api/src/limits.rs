//! Limits of the HTTP API (`docs/reference/limits.md` repeats them for users).

/// Bytes of a request body, except for batches.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a batch.
pub const BATCH_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Operations in one batch.
pub const BATCH_OPERATIONS_MAX: usize = 10_000;
/// Usage records in one request.
pub const USAGE_RECORDS_MAX: usize = 10_000;
/// Items on one page.
pub const PAGE_MAX: usize = 1000;
/// Items on one page if the request sets no limit.
pub const PAGE_DEFAULT: usize = 100;
/// Records that are scanned for one page of records or of a history.
pub const RECORDS_SCANNED_MAX: u64 = 200_000;
/// Leases that are scanned for one page of leases.
pub const LEASES_SCANNED_MAX: usize = 200_000;
/// Bytes of sealed batches in one answer; a single batch may be larger.
pub const BATCHES_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Integers in JSON stay below this: many JSON readers lose the precision of larger ones.
pub const INTEGER_MAX: u64 = (1 << 53) - 1;
/// Lines of one report from the books.
pub const BOOK_LINES_MAX: usize = 50_000;
/// Leases of one waste report.
pub const WASTE_LEASES_MAX: usize = 1000;
/// Days that a report of a tenant's budgets can cover; the engine keeps no more.
pub const USAGE_DAYS_MAX: u32 = 366;
/// Allocations that are scanned for one page of allocations.
pub const ALLOCATIONS_SCANNED_MAX: usize = 200_000;
