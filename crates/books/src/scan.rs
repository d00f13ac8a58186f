//! Scans leases one by one, for questions that the series cannot answer.

use crate::ask::{Dim, Filter, Key, Question, Workloads, brief, brief_value, is_brief, key_of, row_key};
use crate::chunk::{Brief, Depth};
use crate::facts::{Books, BooksError, Open, Phase};
use crate::row::Row;
use leasehold_meter::Window;
use leasehold_model::Instant;

/// The parts of a lease that amounts depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub(crate) brief: Brief,
    pub(crate) quanta: u64,
    pub(crate) held: Window,
}

/// The interval over which an open lease was held, as far as it is known.
pub(crate) fn held_until(open: &Open, until: Instant) -> Window {
    match open.phase {
        Phase::Held => Window::new(open.row.held.from, until.min(open.row.held.to).max(open.row.held.from)),
        _ => open.row.held,
    }
}

impl Books {
    /// Calls `each` for every lease that matches the window and filter, with its key.
    pub(crate) fn scan(
        &self,
        question: &Question,
        workloads: &mut Workloads,
        mut each: impl FnMut(Key, Slice),
    ) -> Result<(), BooksError> {
        let (window, filter, dims) = (question.window(), &question.filter, &question.dims[..]);
        if dims.iter().all(|dim| is_brief(*dim)) && filter.is_brief() {
            self.scan_brief(window, filter, dims, &mut each)?;
        } else {
            self.scan_rows(window, false, |row| {
                if filter.takes_row(row) {
                    let key = row_key(dims, row, workloads);
                    each(key, Slice { brief: brief(row), quanta: row.quanta, held: row.held });
                }
            })?;
        }
        for open in self.open.values().filter(|open| filter.takes_row(&open.row)) {
            let held = held_until(open, window.to);
            if held.meets(window) {
                let key = row_key(dims, &open.row, workloads);
                each(key, Slice { brief: brief(&open.row), quanta: open.row.quanta, held });
            }
        }
        self.idle_rows(window.to, false, |row| {
            if row.held.meets(window) && filter.takes_row(row) {
                let key = row_key(dims, row, workloads);
                each(key, Slice { brief: brief(row), quanta: row.quanta, held: row.held });
            }
        });
        self.sound(())
    }

    fn scan_brief(
        &self,
        window: Window,
        filter: &Filter,
        dims: &[Dim],
        each: &mut impl FnMut(Key, Slice),
    ) -> Result<(), BooksError> {
        for (number, _) in self.chunks.iter().enumerate().filter(|(_, head)| head.meets(window)) {
            let chunk = self.chunk(number, Depth::Amounts)?;
            for row in 0..chunk.rows {
                let held = chunk.held(row);
                if held.from >= window.to || held.to <= window.from {
                    continue;
                }
                let brief = chunk.brief(row);
                if filter.takes_brief(&brief) {
                    let key = key_of(dims, |dim| brief_value(dim, &brief));
                    each(key, Slice { brief, quanta: chunk.quanta(row), held });
                }
            }
        }
        for row in self.tail.iter().filter(|row| row.held.meets(window) && filter.takes_row(row)) {
            let brief = brief(row);
            let key = key_of(dims, |dim| brief_value(dim, &brief));
            each(key, Slice { brief, quanta: row.quanta, held: row.held });
        }
        Ok(())
    }

    /// Calls `each` for every closed lease in the window, completely read; with `exceptions`, at least for those to
    /// which a charge policy can apply.
    pub(crate) fn scan_rows(
        &self,
        window: Window,
        exceptions: bool,
        mut each: impl FnMut(&Row),
    ) -> Result<(), BooksError> {
        let wanted = self.chunks.iter().enumerate().filter(|(_, head)| head.meets(window));
        for (number, _) in wanted.filter(|(_, head)| head.exceptions || !exceptions) {
            self.chunk(number, Depth::Rows)?.rows().filter(|row| row.held.meets(window)).for_each(|row| each(&row));
        }
        self.tail.iter().filter(|row| row.held.meets(window)).for_each(each);
        Ok(())
    }
}
