//! CSV as in RFC 4180, except that lines end with a line feed only.

use super::failure::Failed;
use super::session::Session;
use crate::output::print;
use crate::problem::Problem;

/// A cell, quoted if necessary.
fn cell(text: &str) -> String {
    if !text.contains([',', '"', '\n', '\r']) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('"', "\"\""))
}

fn line<S: AsRef<str>>(cells: &[S]) -> String {
    cells.iter().map(|text| cell(text.as_ref())).collect::<Vec<_>>().join(",") + "\n"
}

/// Prints the heading and the rows. The heading is printed even without rows, because programs expect it.
pub(super) fn print_rows(headings: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Result<(), Failed> {
    let rows: String = rows.into_iter().map(|row| line(&row)).collect();
    Ok(print(&(line(headings) + &rows))?)
}

/// Refuses `--csv` together with `--json`.
pub(super) fn one_form(session: &Session, csv: bool) -> Result<(), Problem> {
    if csv && session.json {
        return Err(Problem::usage("usage", "--csv and --json cannot be combined").advice("choose one of them"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        assert_eq!(line(&["a", "", "b c", "d,e", "f\"g", "h\ni"]), "a,,b c,\"d,e\",\"f\"\"g\",\"h\ni\"\n");
    }
}
