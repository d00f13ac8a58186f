//! Text tables with aligned columns.

use crate::term::{Paint, Style, columns, fit};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A table that grows row by row.
pub struct Table {
    headings: Vec<(String, Align)>,
    rows: Vec<Vec<(String, Style)>>,
    /// Headings of the less important columns, the least important first.
    shrink_first: &'static [&'static str],
}

/// The smallest width to which a column is cut before it is left out.
const CUT_COLUMNS_MIN: usize = 5;

impl Table {
    pub fn new(headings: &[(&str, Align)]) -> Self {
        let headings = headings.iter().map(|(text, align)| ((*text).to_owned(), *align)).collect();
        Self { headings, rows: Vec::new(), shrink_first: &[] }
    }

    /// Names the columns that are cut, and then left out, if the terminal is too narrow: the least important first.
    pub fn shrink_first(mut self, headings: &'static [&'static str]) -> Self {
        self.shrink_first = headings;
        self
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a row with one cell per heading.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.styled(cells.into_iter().map(|cell| (cell, Style::Plain)));
    }

    pub fn styled<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = (S, Style)>) {
        let row: Vec<_> = cells.into_iter().map(|(text, style)| (text.into(), style)).collect();
        assert_eq!(row.len(), self.headings.len(), "a row has a cell for each heading");
        self.rows.push(row);
    }

    /// The lines, indented by two columns, without trailing spaces.
    pub fn lines(&self, paint: Paint) -> Vec<String> {
        self.lines_within(paint, None)
    }

    /// The lines, fitted to the width of a terminal, so that no row wraps.
    pub fn lines_within(&self, paint: Paint, terminal: Option<usize>) -> Vec<String> {
        let width = |at: usize| {
            let cells = self.rows.iter().map(|row| columns(&row[at].0));
            cells.chain([columns(&self.headings[at].0)]).max().unwrap_or(0)
        };
        let mut widths: Vec<Option<usize>> = (0..self.headings.len()).map(|at| Some(width(at))).collect();
        if let Some(terminal) = terminal {
            self.make_room(&mut widths, terminal);
        }
        let headings: Vec<_> = self.headings.iter().map(|(text, _)| (text.clone(), Style::Dim)).collect();
        let line = |row: &[(String, Style)]| {
            let mut text = String::from(" ");
            for (((cell, style), (_, align)), width) in row.iter().zip(&self.headings).zip(&widths) {
                let Some(width) = *width else { continue };
                let cell = if columns(cell) > width { fit(cell, width - 1) + "…" } else { cell.clone() };
                let gap = " ".repeat(width - columns(&cell));
                let painted = paint.paint(*style, &cell);
                text.push(' ');
                match align {
                    Align::Left => text.push_str(&(painted + &gap)),
                    Align::Right => text.push_str(&(gap + &painted)),
                }
                text.push(' ');
            }
            let text = text.trim_end();
            terminal.map_or_else(|| text.to_owned(), |terminal| fit(text, terminal))
        };
        let blank = self.headings.iter().all(|(text, _)| text.is_empty());
        let heading = (!blank).then(|| line(&headings));
        heading.into_iter().chain(self.rows.iter().map(|row| line(row))).collect()
    }

    /// Cuts the less important columns one after the other, or leaves them out if that is not enough, until the rest
    /// fits.
    fn make_room(&self, widths: &mut [Option<usize>], terminal: usize) {
        for name in self.shrink_first {
            let Some(at) = self.headings.iter().position(|(heading, _)| heading == name) else { continue };
            // Each cell has a space on both sides; the one added before the first makes up for the trimmed last one.
            let taken: usize = widths.iter().flatten().map(|width| width + 2).sum();
            let (over, width) = (taken.saturating_sub(terminal), widths[at].unwrap_or(0));
            if over == 0 {
                return;
            }
            let least = columns(name).max(CUT_COLUMNS_MIN);
            widths[at] = width.checked_sub(over).filter(|left| *left >= least);
        }
    }

    pub fn text(&self, paint: Paint) -> String {
        self.lines(paint).iter().fold(String::new(), |text, line| text + line + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&[("tenant", Align::Left), ("GPU·s", Align::Right)]);
        table.row(["physics", "1,234.5"]);
        table.row(["röntgen", "7.0"]);
        let text = "  tenant     GPU·s\n  physics  1,234.5\n  röntgen      7.0\n";
        assert_eq!(table.text(Paint::PLAIN), text);
    }

    #[test]
    fn columns_line_up_in_any_script() {
        let mut table = Table::new(&[("tenant", Align::Left), ("leases", Align::Right)]).shrink_first(&["tenant"]);
        table.row(["物理学研究室", "12"]);
        table.row(["한국어", "7"]);
        table.row(["physics", "3"]);
        let text = "  tenant        leases\n  物理学研究室      12\n  한국어             7\n  physics            3\n";
        assert_eq!(table.text(Paint::PLAIN), text);
        for width in 1..30 {
            let lines = table.lines_within(Paint::PLAIN, Some(width));
            assert!(lines.iter().all(|line| columns(line) <= width), "{width}: {lines:?}");
        }
    }

    #[test]
    fn less_important_columns_shrink_first() {
        let headings =
            [("lease", Align::Left), ("workload", Align::Left), ("user", Align::Left), ("left", Align::Right)];
        let mut table = Table::new(&headings).shrink_first(&["user", "workload"]);
        table.row(["lease-1", "train the large model", "ada.lovelace", "9m 40s"]);
        let within = |width| table.lines_within(Paint::PLAIN, Some(width));
        assert_eq!(within(80), table.lines(Paint::PLAIN));
        assert_eq!(within(52)[1], "  lease-1  train the large model  ada.lovel…  9m 40s");
        assert_eq!(within(45)[1], "  lease-1  train the large model  9m 40s");
        assert_eq!(within(30)[1], "  lease-1  train the …  9m 40s");
        assert_eq!(within(20)[1], "  lease-1  9m 40s");
        for width in 1..80 {
            assert!(within(width).iter().all(|line| columns(line) <= width), "{width}: {:?}", within(width));
        }
    }
}
