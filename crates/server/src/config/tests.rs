mod accounting;

use super::*;
use expect_test::{Expect, expect};

fn read(text: &str) -> Result<Config, LoadError> {
    Config::parse(text, Path::new("leasehold.yaml"))
}

fn check_error(text: &str, expected: &Expect) {
    expected.assert_eq(&read(text).expect_err("the file is wrong").to_string());
}

/// The example with all settings enabled: a `#` directly before a key comments out a setting.
fn uncommented() -> String {
    let is_key = |line: &str| {
        line.trim_start().strip_prefix('#').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
    };
    EXAMPLE.lines().map(|line| if is_key(line) { line.replacen('#', "", 1) } else { line.to_owned() } + "\n").collect()
}

#[test]
fn the_example_changes_nothing_and_neither_do_its_defaults() {
    assert_eq!(read(EXAMPLE), Ok(Config::default()));
    assert_eq!(read(&uncommented()), Ok(Config::default()));
}

/// The keys that the structs accept, from the error messages for an unknown key.
fn keys_of_the_structs() -> Vec<String> {
    fn keys_within(section: &[String]) -> Vec<String> {
        let mut probe = "{'?': 1}".to_owned();
        section.iter().rev().for_each(|name| probe = format!("{{{name}: {probe}}}"));
        let error = serde_saphyr::from_str::<Config>(&probe).expect_err("`?` is no key");
        let serde_saphyr::Error::SerdeUnknownField { expected, .. } = error.without_snippet() else {
            // No section, but a value.
            return vec![section.join(".")];
        };
        let further = |key: &&str| keys_within(&[section, &[(*key).to_owned()]].concat());
        expected.iter().flat_map(further).collect()
    }
    keys_within(&[])
}

/// The keys of a file in which every value is on the line of its key.
fn keys_of_the_file(text: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let mut sections: Vec<(usize, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#') && !line.trim().is_empty()) {
        let (key, value) = line.split_once(':').expect("a key");
        let indent = key.len() - key.trim_start().len();
        while sections.last().is_some_and(|(outer, _)| *outer >= indent) {
            sections.pop();
        }
        let section: String = sections.iter().map(|(_, name)| format!("{name}.")).collect();
        if value.trim().is_empty() {
            sections.push((indent, key.trim().to_owned()));
        } else {
            keys.push(section + key.trim());
        }
    }
    keys
}

#[test]
fn every_key_is_listed_and_is_in_the_example_and_on_the_reference_page() {
    assert_eq!(keys_of_the_structs(), KEYS, "KEYS, in the order of the structs");
    assert_eq!(keys_of_the_file(&uncommented()), KEYS);
    let page = include_str!("../../../../docs/reference/config.md");
    for key in KEYS {
        assert!(page.contains(&format!("| `{key}` |")), "docs/reference/config.md has no row for {key}");
    }
}

#[test]
fn sizes_and_lengths_of_time_are_parsed() {
    let config = read(
        "
data: ./books
listen: '[::]:9000'
limits:
  header_timeout: 1500ms
  body_bytes: 1MiB
  batch_body_bytes: 65536
engine:
  ttl_max: 2d
tls:
log: { level: debug, format: json, requests: all }
metrics:
  open: true
",
    );
    let expected = Config {
        data: "./books".into(),
        listen: "[::]:9000".into(),
        limits: Limits {
            header_timeout: Span::from_millis(1500),
            body_bytes: 1 << 20,
            batch_body_bytes: 65536,
            ..Limits::default()
        },
        engine: Engine { ttl_max: Some(Span::from_secs(2 * 86_400)), ..Engine::default() },
        log: Log { level: Level::Debug, format: Format::Json, requests: Requests::All },
        metrics: Metrics { open: true },
        ..Config::default()
    };
    assert_eq!(config, Ok(expected));
    for empty in ["", "\n\n", "# nothing\n", "---\n"] {
        assert_eq!(read(empty), Ok(Config::default()), "{empty:?}");
    }
}

#[test]
fn errors_name_the_line_and_suggest_a_fix() {
    check_error(
        "data: /x\n\nlisen: 1",
        &expect!["leasehold.yaml: unknown key `lisen` at line 3; did you mean `listen`?"],
    );
    check_error(
        "limits:\n  conections: 5",
        &expect!["leasehold.yaml: unknown key `conections` at line 2; did you mean `connections`?"],
    );
    check_error(
        "body_bytes: 5",
        &expect!["leasehold.yaml: unknown key `body_bytes` at line 1; it belongs under `limits`"],
    );
    check_error(
        "tls:\n  frobnicate: 5",
        &expect!["leasehold.yaml: unknown key `frobnicate` at line 2; the keys here are cert, key"],
    );
    check_error("log:\n  format: jsn", &expect!["leasehold.yaml: unknown value `jsn` at line 2; did you mean `json`?"]);
    check_error(
        "limits:\n  idle_timeout: 75",
        &expect!["leasehold.yaml: `75` is not a length of time at line 2; write it like 90s, 10m, 1h30m, 2d or 250ms"],
    );
    check_error(
        "limits:\n  body_bytes: 1kb",
        &expect!["leasehold.yaml: `1kb` is not a size at line 2; write it like 4096, 256KiB, 64MiB or 1GiB"],
    );
    check_error(
        "listen: a\nlisten: b",
        &expect!["leasehold.yaml: duplicate key `listen` at line 2; keep one of the two"],
    );
    check_error(
        "limits:\n  connections: many",
        &expect![
            "leasehold.yaml: the value must be an integer in range at line 2; `leasehold config example` shows every key"
        ],
    );
    check_error(
        "limits:\n  connections: -1",
        &expect![
            "leasehold.yaml: the value must be an integer in range at line 2; `leasehold config example` shows every key"
        ],
    );
    check_error(
        "metrics:\n  open: yes",
        &expect![
            "leasehold.yaml: the value must be true or false at line 2; `leasehold config example` shows every key"
        ],
    );
    check_error(
        "limits: 5",
        &expect!["leasehold.yaml: expected mapping start at line 1; `leasehold config example` shows every key"],
    );
    check_error(
        "- data",
        &expect!["leasehold.yaml: expected mapping start at line 1; `leasehold config example` shows every key"],
    );
    check_error(
        "data: [",
        &expect!["leasehold.yaml: expected string scalar at line 1; `leasehold config example` shows every key"],
    );
    check_error(
        "a: b: c",
        &expect![
            "leasehold.yaml: unknown key `a` at line 1; the keys here are data, listen, origin, tls, limits, rate, journal, scrub, engine, ledger, issuer, accounting, clock, metrics, log"
        ],
    );
    check_error(
        "api_url: https://waldur.example.com/api/",
        &expect!["leasehold.yaml: unknown key `api_url` at line 1; it belongs under `accounting.waldur`"],
    );
    let missing = Config::load(Path::new("/nowhere/leasehold.yaml")).expect_err("there is no such file");
    expect!["/nowhere/leasehold.yaml: No such file or directory (os error 2); check the path and its permissions"]
        .assert_eq(&missing.to_string());
}

#[test]
fn all_problems_are_reported_at_once() {
    let config = read(
        "
data: /nowhere/at/all
listen: localhost
origin: a b
tls: { cert: /x }
limits:
  connections: 0
  connections_per_address: 0
  header_timeout: 1ms
  body_bytes: 3
  streams: 0
rate: { operations_per_second: 0, burst: 5 }
journal: { segment_bytes: 2GiB, batch_records_max: 70000, snapshot_every: 0 }
engine: { ttl_max: 400d, grace_default: 8d }
",
    )
    .expect("it can be read");
    expect![[r#"
        `listen`: `localhost` is not an address and port; write it like 127.0.0.1:8420, 0.0.0.0:8420 or [::]:8420
        `data`: cannot create /nowhere/at/all because /nowhere/at does not exist; create it first, or give another directory
        `origin`: `a b` is not a valid origin; use 1 to 128 visible bytes without spaces and plus signs, such as example.org/cluster-1
        `tls.key`: is missing although `tls.cert` is given; give both, or neither for plain HTTP
        `limits.connections`: is zero; use at least 1, or remove it for the default
        `limits.connections_per_address`: is zero; remove it for a quarter of limits.connections
        `limits.streams`: is zero; use at least 1, or remove it for the default
        `limits.header_timeout`: 1ms is too short; use 100ms to 1d
        `limits.body_bytes`: 3 is too small; use 1KiB to 256MiB
        `rate.burst`: has no effect without a rate; set rate.operations_per_second, or remove it
        `journal.segment_bytes`: 2GiB is too large; use 4MiB to 1GiB
        `journal.snapshot_every`: is zero; use at least 1, or remove it for the default
        `journal.batch_records_max`: 70000 is not between 1 and 65536; the default is 1000
        `engine.ttl_max`: 400d is too long; use 1ns to 366d
        `engine.grace_default`: 8d is too long; use 0s to 7d"#]].assert_eq(&config.check().expect_err("it makes no sense").to_string());
    let here = Config { data: "books".into(), ..Config::default() };
    assert_eq!(here.check(), Ok(()));
}

#[test]
fn absent_engine_settings_keep_their_recorded_values() {
    let sealed = Settings { ttl_max: Span::from_secs(5), ..Settings::default() };
    let engine = Engine { node_timeout: Some(Span::from_secs(7)), ..Engine::default() };
    assert_eq!(engine.over(&sealed), Settings { node_timeout: Span::from_secs(7), ..sealed });
}

#[test]
fn every_host_name_gives_a_valid_origin() {
    assert!(Name::new(&default_origin()).is_ok());
    assert!(default_origin().chars().all(is_origin_character));
}

use leasehold_model::Name;
