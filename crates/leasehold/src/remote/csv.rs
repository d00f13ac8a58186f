//! CSV as in RFC 4180, except that lines end with a line feed only.

use super::failure::Failed;
use super::session::Session;
use crate::cli::books::{Csv, CsvArgs};
use crate::output::print;
use crate::problem::Problem;

/// A cell, quoted if necessary.
fn cell(text: &str) -> String {
    if !text.contains([',', '"', '\n', '\r']) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Spreadsheets run a cell that begins with one of these as a formula; some also accept the wide forms.
const BEGINS_FORMULA: [char; 10] = ['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠'];

/// Whether the text is a number or a fraction as the reports contain them. A negative one is no formula.
fn is_figure(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let positive = text.strip_prefix('-').unwrap_or(text);
    positive.split_once(['.', '/']).map_or_else(|| digits(positive), |(whole, part)| digits(whole) && digits(part))
}

/// The text as a spreadsheet may read it: an apostrophe marks a cell as text.
fn neutralised(text: &str) -> String {
    match text.starts_with(BEGINS_FORMULA) && !is_figure(text) {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}

fn line<S: AsRef<str>>(csv: Csv, cells: &[S]) -> String {
    let cells = cells.iter().map(|text| match csv {
        Csv::Neutralised => cell(&neutralised(text.as_ref())),
        Csv::Raw => cell(text.as_ref()),
    });
    cells.collect::<Vec<_>>().join(",") + "\n"
}

/// Prints the heading and the rows. The heading is printed even without rows, because programs expect it.
pub(super) fn print_rows(
    csv: Csv,
    headings: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Result<(), Failed> {
    let rows: String = rows.into_iter().map(|row| line(csv, &row)).collect();
    Ok(print(&(line(csv, headings) + &rows))?)
}

/// Refuses `--csv` and `--csv-raw` together with `--json`.
pub(super) fn one_form(session: &Session, csv: CsvArgs) -> Result<Option<Csv>, Problem> {
    let csv = csv.form();
    match csv {
        Some(_) if session.json => {
            Err(Problem::usage("usage", "CSV and --json cannot be combined").advice("choose one of them"))
        }
        _ => Ok(csv),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let cells = ["a", "", "b c", "d,e", "f\"g", "h\ni"];
        assert_eq!(line(Csv::Neutralised, &cells), "a,,b c,\"d,e\",\"f\"\"g\",\"h\ni\"\n");
    }

    #[test]
    fn formulas_become_text_and_figures_stay_figures() {
        for formula in ["=1+1", "+1", "-x", "-", "--1", "-1.", "-1/2/3", "-1.5+cmd", "@SUM(A1)", "\tx", "\rx", "＝1"] {
            assert_eq!(neutralised(formula), format!("'{formula}"));
        }
        for plain in ["", "a=b", "-1", "-12.500000", "-1/3", "1/3", "42", "2026-11-01T00:00:00Z", "'=1"] {
            assert_eq!(neutralised(plain), plain);
        }
        let link = ["=HYPERLINK(\"http://a\",\"b\")", "-1.5"];
        assert_eq!(line(Csv::Neutralised, &link), "\"'=HYPERLINK(\"\"http://a\"\",\"\"b\"\")\",-1.5\n");
        assert_eq!(line(Csv::Raw, &link), "\"=HYPERLINK(\"\"http://a\"\",\"\"b\"\")\",-1.5\n");
    }
}
