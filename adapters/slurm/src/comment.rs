//! Correlation IDs in the comments of jobs: `leasehold:` and a UUID.
//!
//! A comment is whatever a user wrote, with separators and line breaks, and sacct prints it as it is. A line break can
//! make a line that looks like a row of another job. So comments are read by themselves and never as part of a row that is
//! billed, and an index that occurs twice has no comment: the worst that a forged line does is to hide an ID.

use leasehold_adapter_kit::is_uuid;
use std::collections::BTreeMap;

pub(crate) const COLUMNS: [&str; 2] = ["DBIndex", "Comment"];
const MARK: &str = "leasehold:";

/// Correlation IDs by the index of the run.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<u64, String>, String> {
    let mut lines = text.lines();
    if lines.next().is_none_or(|header| header.split('|').ne(COLUMNS)) {
        return Err("sacct printed other columns than the comments it was asked for".into());
    }
    let mut found: BTreeMap<u64, Option<String>> = BTreeMap::new();
    for line in lines {
        let Some((index, comment)) = line.split_once('|') else { continue };
        let Ok(index) = index.parse() else { continue };
        let correlation = correlation(comment);
        found.entry(index).and_modify(|twice| *twice = None).or_insert(correlation);
    }
    Ok(found.into_iter().filter_map(|(index, correlation)| Some((index, correlation?))).collect())
}

fn correlation(comment: &str) -> Option<String> {
    let (_, rest) = comment.split_once(MARK)?;
    rest.get(..36).filter(|text| is_uuid(text)).map(str::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0b9f4e9c-52d8-4a43-9a3d-1f3a4d1e9f10";

    #[test]
    fn comments_carry_a_correlation_id() {
        let text = format!("DBIndex|Comment\n1|leasehold:{ID}\n2|\n3|a|b leasehold:{ID} c\n4|leasehold:nonsense\n");
        assert_eq!(parse(&text), Ok(BTreeMap::from([(1, ID.to_owned()), (3, ID.to_owned())])));
        assert!(parse("JobID\n").is_err() && parse("").is_err());
    }

    #[test]
    fn a_forged_line_hides_an_id_at_worst() {
        let text = format!("DBIndex|Comment\n1|\n7|x\n1|leasehold:{ID}\nbox|999\n8|é\n");
        assert_eq!(parse(&text), Ok(BTreeMap::new()));
    }

    #[test]
    fn what_a_real_slurm_printed_is_read() {
        let recorded = include_str!("../tests/recorded/comments.txt");
        assert_eq!(parse(recorded), Ok(BTreeMap::from([(1, ID.to_owned())])));
    }
}
