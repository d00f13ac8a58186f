//! Limits of the HTTP API (`docs/reference/limits.md` repeats them for users).

/// Bytes of a request body, batches apart.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a batch.
pub const BATCH_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Operations in one batch.
pub const BATCH_OPERATIONS_MAX: usize = 10_000;
/// Items on one page.
pub const PAGE_MAX: usize = 1000;
/// Items on a page that names no limit.
pub const PAGE_DEFAULT: usize = 100;
/// Records that one page of records or of a history looks through before it hands back a cursor.
pub const RECORDS_SCANNED_MAX: u64 = 200_000;
/// Leases that one page of leases looks through before it hands back a cursor.
pub const LEASES_SCANNED_MAX: usize = 200_000;
/// Bytes of sealed batches in one answer; one batch may have more.
pub const BATCHES_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Integers in JSON stay below this: larger ones do not survive every reader.
pub const INTEGER_MAX: u64 = (1 << 53) - 1;
/// Lines of one answer from the books.
pub const BOOK_LINES_MAX: usize = 50_000;
/// Leases of one waste report.
pub const WASTE_LEASES_MAX: usize = 1000;
/// Days that a tenant's usage of its budgets looks back at most: what the engine keeps.
pub const USAGE_DAYS_MAX: u32 = 366;
/// Allocations that one page of allocations looks through before it hands back a cursor.
pub const ALLOCATIONS_SCANNED_MAX: usize = 200_000;
