//! Tables for people: columns that line up, numbers to the right.

use crate::term::{Paint, Style, columns};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table that grows row by row.
pub(crate) struct Table {
    headings: Vec<(String, Align)>,
    rows: Vec<Vec<(String, Style)>>,
}

impl Table {
    pub(crate) fn new(headings: &[(&str, Align)]) -> Self {
        let headings = headings.iter().map(|(text, align)| ((*text).to_owned(), *align)).collect();
        Self { headings, rows: Vec::new() }
    }

    /// One cell for each heading.
    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.styled(cells.into_iter().map(|cell| (cell, Style::Plain)));
    }

    pub(crate) fn styled<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = (S, Style)>) {
        let row: Vec<_> = cells.into_iter().map(|(text, style)| (text.into(), style)).collect();
        assert_eq!(row.len(), self.headings.len(), "a row has a cell for each heading");
        self.rows.push(row);
    }

    /// The lines, each indented by two, without trailing spaces.
    pub(crate) fn lines(&self, paint: Paint) -> Vec<String> {
        let width = |at: usize| {
            let cells = self.rows.iter().map(|row| columns(&row[at].0));
            cells.chain([columns(&self.headings[at].0)]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.headings.len()).map(width).collect();
        let headings: Vec<_> = self.headings.iter().map(|(text, _)| (text.clone(), Style::Dim)).collect();
        let line = |row: &[(String, Style)]| {
            let mut text = String::from(" ");
            for (((cell, style), (_, align)), width) in row.iter().zip(&self.headings).zip(&widths) {
                let gap = " ".repeat(width - columns(cell));
                let painted = paint.paint(*style, cell);
                text.push(' ');
                match align {
                    Align::Left => text.push_str(&(painted + &gap)),
                    Align::Right => text.push_str(&(gap + &painted)),
                }
                text.push(' ');
            }
            text.trim_end().to_owned()
        };
        let blank = self.headings.iter().all(|(text, _)| text.is_empty());
        let heading = (!blank).then(|| line(&headings));
        heading.into_iter().chain(self.rows.iter().map(|row| line(row))).collect()
    }

    pub(crate) fn text(&self, paint: Paint) -> String {
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
}
