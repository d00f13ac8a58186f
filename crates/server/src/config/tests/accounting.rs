//! `accounting:`, and secrets that were written where a reference belongs.

use super::read;
use crate::config::{Config, Problem, Provider};
use expect_test::{Expect, expect};
use leasehold_deliver::{VaultAuth, VaultConfig};
use std::path::Path;

/// The configuration that other schedulers use, as their documentation writes it.
const OF_THE_SEED: &str = r#"
accounting:
  enabled: true                      # feature flag, default: false
  provider: "waldur"
  waldur:
    api_url: "https://waldur.example.com/api/"
    token_secret_ref: "vault://lattice/waldur-token"
    push_interval_seconds: 60        # batch push interval
    buffer_size: 10000               # in-memory event buffer
    disk_buffer_path: "/var/lib/lattice/accounting-wal"
    disk_buffer_max_events: 100000
"#;

const VAULT: &str = "
  vault:
    address: https://vault.example.com:8200
    namespace: hpc
    auth:
      approle: { role_id: 59d6d1ca, secret_id_file: /etc/leasehold/vault-secret-id }
";

fn problems(text: &str) -> Vec<Problem> {
    let config = read(&format!("data: .\n{text}")).expect("it can be read");
    config.check().err().map(|problems| problems.0).unwrap_or_default()
}

fn check(accounting: &str, expected: &Expect) {
    let shown: Vec<String> =
        problems(&format!("accounting:\n  enabled: true\n{accounting}")).iter().map(ToString::to_string).collect();
    expected.assert_eq(&shown.join("\n"));
}

#[test]
fn the_tree_of_other_schedulers_is_accepted() {
    let config = read(OF_THE_SEED).expect("it can be read");
    let accounting = &config.accounting;
    assert_eq!((accounting.enabled, accounting.provider), (true, Some(Provider::Waldur)));
    assert_eq!(accounting.waldur.api_url.as_deref(), Some("https://waldur.example.com/api/"));
    assert_eq!(accounting.waldur.push_interval_seconds, 60);
    assert_eq!((accounting.waldur_buffer_size(), accounting.waldur_disk_buffer_max_events()), (10_000, 100_000));
    assert_eq!(accounting.waldur.disk_buffer_path.as_deref(), Some(Path::new("/var/lib/lattice/accounting-wal")));
    // Only where Vault is has to be said.
    assert_eq!(problems(&format!("{OF_THE_SEED}{VAULT}")), []);
    let without = problems(OF_THE_SEED);
    let keys: Vec<&str> = without.iter().map(|problem| problem.key).collect();
    assert_eq!(keys, ["accounting.vault.address", "accounting.vault.auth"]);
    // Turned off, nothing of it is needed.
    let off = OF_THE_SEED.replace("enabled: true", "enabled: false");
    assert_eq!(problems(&off), []);
    assert_eq!(problems(&format!("{off}  vault: {{ ca: /nowhere/ca.pem }}\n")), []);
}

#[test]
fn the_limits_of_waldur_take_the_place_of_those_for_all() {
    let sizes = |text: &str| {
        let accounting = read(&format!("accounting:\n{text}")).expect("it can be read").accounting;
        (accounting.waldur_buffer_size(), accounting.waldur_disk_buffer_max_events())
    };
    assert_eq!(sizes("  buffer_size: 7\n  disk_buffer_max_events: 70"), (7, 70));
    assert_eq!(sizes("  buffer_size: 7\n  waldur: { buffer_size: 9, disk_buffer_max_events: 11 }"), (9, 11));
}

#[test]
fn all_problems_are_reported() {
    check(
        "  provider: waldur",
        &expect![[r#"
            `accounting.waldur.api_url`: is missing although `accounting.provider` is waldur; write it like https://waldur.example.com/api/
            `accounting.waldur.token_secret_ref`: is missing although `accounting.provider` is waldur; write where it is, such as vault://lattice/waldur-token"#]],
    );
    check(
        "
  buffer_size: 0
  disk_buffer_max_events: 5
  waldur:
    api_url: https://waldur.example.com/
    token_secret_ref: vault://lattice
    push_interval_seconds: 0
    buffer_size: 2000000
    disk_buffer_max_events: 1
  vault:
    ca: /nowhere/ca.pem
    auth: { token_env: HOME, token_file: relative }
",
        &expect![[r#"
            `accounting.buffer_size`: is 0; use 1 to 1000000 events
            `accounting.waldur.api_url`: does not end in /api/; write it like https://waldur.example.com/api/
            `accounting.waldur.token_secret_ref`: malformed reference to a secret: it should be vault://MOUNT/PATH#FIELD; write where it is, such as vault://lattice/waldur-token
            `accounting.waldur.push_interval_seconds`: is 0; use 1 to 86400 seconds
            `accounting.waldur.buffer_size`: is 2000000; use 1 to 1000000 events
            `accounting.waldur.disk_buffer_max_events`: is 1, less than `buffer_size`; use at least as many events as `buffer_size`
            `accounting.vault.auth`: has several ways to log in; keep one of them
            `accounting.vault.auth.token_file`: is not an absolute path; give the absolute path of a private file (mode 600)
            `accounting.vault.address`: is missing although other keys of Vault are given; write it like https://vault.example.com:8200"#]],
    );
    check(
        "
  vault:
    address: http://vault.example.com:8200/v1
    ca: /nowhere/ca.pem
    auth:
      approle: { role_id: a, mount: 'a/../b' }
",
        &expect![[r#"
            `accounting.vault.auth.approle.mount`: is not the name of a mount; the default is approle
            `accounting.vault.auth.approle.secret_id_file`: is missing although `role_id` is given; give the absolute path of a private file (mode 600)"#]],
    );
    let vault =
        |more: &str| format!("  vault: {{ address: 'http://vault.example.com', auth: {{ token_env: T }}{more} }}");
    check(
        &vault(""),
        &expect![[r#"
            `accounting.vault.address`: the address must begin with https://, unless it is a loopback address; write it like https://vault.example.com:8200"#]],
    );
    check(
        &vault(", ca: /nowhere/ca.pem"),
        &expect![[r#"
            `accounting.vault.ca`: /nowhere/ca.pem: No such file or directory (os error 2); check the path and its permissions"#]],
    );
}

#[test]
fn the_token_is_not_sent_without_tls() {
    let told = |url: &str, more: &str| {
        let text = format!("accounting: {{ waldur: {{ api_url: '{url}'{more} }} }}");
        problems(&text).first().map(|problem| (problem.key, problem.what.clone()))
    };
    for (url, more) in [
        ("https://waldur.example.com/api/", ""),
        ("https://waldur.example.com:8443/sub/api/", ""),
        ("http://127.0.0.1:8000/api/", ""),
        ("http://[::1]:8000/api/", ""),
        ("http://waldur.internal/api/", ", allow_http: true"),
    ] {
        assert_eq!(told(url, more), None, "{url}");
    }
    for url in ["http://waldur.example.com/api/", "http://10.0.0.7/api/", "http://127.0.0.1.example.com/api/"] {
        let (key, what) = told(url, "").expect("refused");
        assert_eq!((key, what.as_str()), ("accounting.waldur.api_url", "would send the token without TLS"), "{url}");
    }
    for url in [
        "waldur.example.com/api/",
        "ftp://waldur.example.com/api/",
        "https://waldur.example.com",
        "https://waldur.example.com/api",
        "https://waldur.example.com/api/v1/",
        "https://waldur.example.com/?next=/api/",
        "https://waldur.example.com/#/api/",
        "https://user@waldur.example.com/api/",
        "",
    ] {
        assert!(told(url, "").is_some(), "{url}");
    }
}

#[test]
fn the_ways_to_log_in_to_vault() {
    let of = |auth: &str| {
        let text = format!("accounting: {{ vault: {{ address: 'https://v.example.com', auth: {{ {auth} }} }} }}");
        assert_eq!(problems(&text), [], "{auth}");
        read(&text).expect("it can be read").accounting.vault.config().expect("no files").expect("one way")
    };
    let role = of("approle: { role_id: r, secret_id_file: /s }");
    let auth = VaultAuth::AppRole { role_id: "r".into(), secret_id_file: "/s".into(), mount: "approle".into() };
    let expected = VaultConfig { address: "https://v.example.com".into(), namespace: None, ca_pem: None, auth };
    assert_eq!(role, expected);
    assert_eq!(of("token_file: /t").auth, VaultAuth::TokenFile("/t".into()));
    assert_eq!(of("token_env: VAULT_TOKEN").auth, VaultAuth::TokenEnv("VAULT_TOKEN".into()));
}

/// Every place where somebody may write a secret by mistake, in every way YAML allows.
#[test]
fn a_literal_secret_is_refused_and_never_repeated() {
    const PLANTED: &str = "hunter2-x7Qq9";
    let waldur = |value: &str| format!("data: .\naccounting:\n  waldur:\n    token_secret_ref: {value}\n");
    let literal = waldur(PLANTED);
    let config = read(&literal).expect("it can be read");
    expect![[r#"
        `accounting.waldur.token_secret_ref`: a secret must not be written in the configuration; refer to it with vault://, file://, env:// or credential://"#]]
    .assert_eq(&config.check().expect_err("a literal").to_string());
    let mut texts: Vec<String> = [
        "{}",
        "'{}'",
        "\"{}\"",
        "\"{}",
        "'{}",
        "| \n      {}",
        "[{}]",
        "[{}",
        "{ {}: 1 }",
        "{ token: {} }",
        "{ {}",
        "*{}",
        "&{} x",
        "!{} x",
        "!!{} x",
        "%{}",
        "@{}",
        "`{}`",
        "x: {}",
        "vault://{}",
        "vault://a/b?{}",
        "{}://a",
        "https://{}@example.com",
        "file://{}",
        "env://A {}",
        "credential://../{}",
        "\\x{}",
        "\"\\x{}\"",
        "{}\n    token_secret_ref: {}",
        "\n      {}\n    {}",
    ]
    .iter()
    .map(|value| waldur(&value.replace("{}", PLANTED)))
    .collect();
    texts.extend(
        [
            "waldur: {}",
            "waldur: { token: {} }",
            "waldur: { api_url: 'https://user:{}@waldur.example.com/api/' }",
            "waldur: { api_url: 'https://{}' }",
            "waldur: { push_interval_seconds: {} }",
            "vault: {}",
            "vault: { auth: {} }",
            "vault: { auth: { token: {} } }",
            "vault: { auth: { token_env: hvs.{} } }",
            "vault: { auth: { token_file: {} } }",
            "vault: { auth: { approle: {} } }",
            "vault: { auth: { approle: { secret_id: {} } } }",
            "vault: { auth: { approle: { role_id: a, secret_id_file: {} } } }",
            "vault: { auth: { approle: { role_id: a, secret_id_file: /a, mount: '{}/' } } }",
            "vault: { address: 'https://:{}@vault.example.com', auth: { token_env: A } }",
        ]
        .map(|section| format!("data: .\naccounting:\n  {}\n", section.replace("{}", PLANTED))),
    );
    for text in &texts {
        let (config, mistakes) = Config::parse_all(text, Path::new("leasehold.yaml"));
        let checked = config.as_ref().map(Config::check);
        assert!(!mistakes.is_empty() || checked.as_ref().is_none_or(Result::is_err), "accepted: {text}");
        let told = format!("{mistakes:?} {checked:?}");
        let shown: String = mistakes.iter().map(|mistake| format!("{mistake}\n")).collect();
        assert!(!told.contains(PLANTED) && !shown.contains(PLANTED), "{text}\n{told}\n{shown}");
    }
    // Nor does the configuration itself keep what stands there.
    assert!(!format!("{config:?} {:?}", config.values()).contains(PLANTED));
}
