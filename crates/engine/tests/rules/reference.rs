//! The reference pages say what the code does.

use leasehold_engine::Refusal;
use leasehold_model::limits;
use std::collections::BTreeSet;

const CODES: &str = include_str!("../../../../docs/reference/codes.md");
const LIMITS: &str = include_str!("../../../../docs/reference/limits.md");

/// The rows of the page up to where those of HTTP begin, which `leasehold-api` looks after.
fn core_rows() -> impl Iterator<Item = &'static str> {
    CODES.lines().take_while(|line| *line != "## Over HTTP")
}

/// The codes of a page: what stands first in the rows of its tables.
fn listed() -> Vec<&'static str> {
    let rows = core_rows().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once('`')).map(|(code, _)| code).collect()
}

#[test]
fn every_code_is_unique_well_formed_and_on_the_page() {
    let unique: BTreeSet<_> = Refusal::CODES.iter().collect();
    assert_eq!(unique.len(), Refusal::CODES.len());
    for code in Refusal::CODES {
        assert!(code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{code}");
        assert!(listed().contains(code), "docs/reference/codes.md does not list {code}");
    }
}

#[test]
fn the_page_lists_a_code_once_and_the_engines_in_their_order() {
    let all = listed();
    let unique: BTreeSet<_> = all.iter().collect();
    assert_eq!(unique.len(), all.len(), "a code stands twice");
    let engines: Vec<_> = all.into_iter().filter(|code| Refusal::CODES.contains(code)).collect();
    assert_eq!(engines, Refusal::CODES);
}

#[test]
fn every_row_says_what_it_means_and_what_to_do() {
    for row in core_rows().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()), "{row}");
    }
}

/// The codes of other crates, read from their sources: a code that is added there and not on the
/// page fails here.
#[test]
fn codes_of_the_journal_and_the_cell_are_on_the_page() {
    for source in [include_str!("../../../journal/src/error.rs"), include_str!("../../../cell/src/open.rs")] {
        let arms = source.lines().filter_map(|line| line.trim().split_once(" => \""));
        let codes =
            arms.filter_map(|(arm, rest)| arm.starts_with("Self::").then(|| rest.strip_suffix("\",")).flatten());
        let mut found = 0;
        // Sentences are not codes.
        for code in codes.filter(|code| !code.contains(' ')) {
            found += 1;
            assert!(listed().contains(&code), "docs/reference/codes.md does not list {code}");
        }
        assert!(found > 0, "codes are no longer found where they were");
    }
}

/// 1234567 as people read it.
fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[test]
fn every_limit_stands_on_the_page_with_its_value() {
    let row = |constant: &str, value: String| {
        let found = LIMITS.lines().find(|line| line.contains(&format!("`{constant}`")));
        let line = found.unwrap_or_else(|| panic!("docs/reference/limits.md does not name {constant}"));
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.contains(&value.as_str()), "{constant} is {value}, not as in `{line}`");
    };
    macro_rules! numbers {
        ($($constant:ident),*) => { $(row(stringify!($constant), grouped(u128::from(limits::$constant as u64)));)* };
    }
    numbers!(
        NAME_BYTES_MAX,
        IDEMPOTENCY_KEY_BYTES_MAX,
        IDEMPOTENCY_KEYS_PER_TENANT_MAX,
        IDEMPOTENCY_KEYS_SURE_MAX,
        LEASES_PER_RECORD_MAX,
        CLASSES_PER_REQUEST_MAX,
        ALLOCATION_LEASES_MAX,
        LABELS_PER_ALLOCATION_MAX,
        PENDING_PER_TENANT_MAX,
        PENDING_MAX,
        BUDGET_DAYS_MAX,
        BUDGET_HOURS_MAX,
        DEVICES_PER_CLASS_MAX,
        QUANTA_PER_NODE_MAX,
        QUANTA_PER_UNIT_MAX,
        LABELS_PER_NODE_MAX,
        CLASSES_PER_NODE_MAX,
        QUOTAS_PER_TENANT_MAX,
        TOKENS_PER_TENANT_MAX,
        TOKENS_MAX,
        APP_INSTANCES_PER_TOKEN_MAX,
        RECORD_BYTES_MAX,
        SIGNERS_MAX,
        BATCH_RECORDS_MAX,
        BATCH_BYTES_MAX,
        RATE_LINES_MAX,
        CARDS_WAITING_MAX,
        CEILINGS_PER_TENANT_MAX
    );
    for (constant, most) in [("RATE_MAX", limits::RATE_MAX), ("FACTOR_MAX", limits::FACTOR_MAX)] {
        row(constant, grouped(u128::from(most.0 / leasehold_model::rate::BILLION)));
    }
    let billion = u128::from(leasehold_model::rate::BILLION);
    row("CEILING_AMOUNT_MAX", grouped(limits::CEILING_AMOUNT_MAX.0 / billion));
    assert_eq!(limits::LEASE_COST_MAX.0, 1 << 88);
    row("TTL_MAX", limits::TTL_MAX.to_string());
    row("LIMIT_SPAN_MAX", limits::LIMIT_SPAN_MAX.to_string());
    row("IDEMPOTENCY_SURE", limits::IDEMPOTENCY_SURE.to_string());
    row("HEAT_HALF_LIFE_MIN", limits::HEAT_HALF_LIFE_MIN.to_string());
}

/// A limit that is added to the model and not to the page (or to the test above) fails here.
#[test]
fn no_limit_of_the_model_is_left_out() {
    let source = include_str!("../../../model/src/limits.rs");
    let constants = source.lines().filter_map(|line| line.strip_prefix("pub const ")?.split_once(':'));
    for (constant, _) in constants {
        assert!(LIMITS.contains(&format!("`{constant}`")), "docs/reference/limits.md does not name {constant}");
    }
}
