//! Checks `accounting:`. A value that may be a secret by mistake is never repeated.

use super::Found;
use crate::config::accounting::{Accounting, BUFFER_SIZE_MAX, Provider, VaultSection, Waldur};
use leasehold_deliver::{Endpoint, SecretRef, Vault, VaultError};
use std::path::Path;
use std::sync::Arc;

/// A push longer apart than a day would put usage into the wrong day for certain.
const PUSH_INTERVAL_SECONDS: (u32, u32) = (1, 86_400);

/// A path of the API, as the documentation of Waldur writes it.
const API_URL: &str = "write it like https://waldur.example.com/api/";

/// The address of Vault, as its documentation writes it.
const ADDRESS: &str = "write it like https://vault.example.com:8200";

/// What to write for a file that holds a secret.
const PRIVATE: &str = "give the absolute path of a private file (mode 600)";

pub(super) fn check(accounting: &Accounting, found: &mut Found) {
    buffer_size(found, "accounting.buffer_size", accounting.buffer_size);
    if accounting.disk_buffer_max_events < u64::from(accounting.buffer_size) {
        disk_below_memory(found, "accounting.disk_buffer_max_events", accounting.disk_buffer_max_events);
    }
    for network in &accounting.webhooks.allowed_networks {
        if let Err(why) = network.parse::<leasehold_deliver::Cidr>() {
            let key = "accounting.webhooks.allowed_networks";
            found.add(key, why.to_string(), "write it like 10.0.0.0/8 or fd00::/8");
        }
    }
    check_waldur(accounting, found);
    let in_vault = matches!(accounting.waldur.token_secret_ref, Some(Ok(SecretRef::Vault { .. })));
    check_vault(&accounting.vault, found);
    // Only what is enabled uses Vault: before that, parts of it and its files may be missing.
    if accounting.enabled && (in_vault || accounting.vault != VaultSection::default()) {
        find_missing(&accounting.vault, in_vault, found);
        check_vault_files(&accounting.vault, found);
    }
}

fn buffer_size(found: &mut Found, key: &'static str, size: u32) {
    if !(1..=BUFFER_SIZE_MAX).contains(&size) {
        found.add(key, format!("is {size}"), format!("use 1 to {BUFFER_SIZE_MAX} events"));
    }
}

fn disk_below_memory(found: &mut Found, key: &'static str, events: u64) {
    let what = format!("is {events}, less than `buffer_size`");
    found.add(key, what, "use at least as many events as `buffer_size`");
}

fn check_waldur(accounting: &Accounting, found: &mut Found) {
    let Waldur { api_url, allow_http, token_secret_ref, push_interval_seconds, buffer_size: memory, .. } =
        &accounting.waldur;
    let missing = "is missing although `accounting.provider` is waldur";
    let is_wanted = accounting.provider == Some(Provider::Waldur);
    match api_url {
        None if is_wanted => found.add("accounting.waldur.api_url", missing, API_URL),
        None => {}
        Some(url) => {
            if let Err((what, advice)) = check_api_url(url, *allow_http) {
                found.add("accounting.waldur.api_url", what, advice);
            }
        }
    }
    let refer = "write where it is, such as vault://lattice/waldur-token";
    match token_secret_ref {
        None if is_wanted => found.add("accounting.waldur.token_secret_ref", missing, refer),
        None | Some(Ok(_)) => {}
        Some(Err(why)) => {
            let why = why.to_string();
            let (what, advice) = why.split_once("; ").unwrap_or((&why, refer));
            found.add("accounting.waldur.token_secret_ref", what, advice);
        }
    }
    let (least, most) = PUSH_INTERVAL_SECONDS;
    if !(least..=most).contains(push_interval_seconds) {
        let what = format!("is {push_interval_seconds}");
        found.add("accounting.waldur.push_interval_seconds", what, format!("use {least} to {most} seconds"));
    }
    if let Some(size) = memory {
        buffer_size(found, "accounting.waldur.buffer_size", *size);
    }
    let (memory, disk) = (accounting.waldur_buffer_size(), accounting.waldur_disk_buffer_max_events());
    // Where both are those for all sinks, that was said already.
    let has_own = accounting.waldur.buffer_size.is_some() || accounting.waldur.disk_buffer_max_events.is_some();
    if has_own && disk < u64::from(memory) {
        disk_below_memory(found, "accounting.waldur.disk_buffer_max_events", disk);
    }
}

/// What is wrong with the URL, without the URL: somebody may have written a password into it.
fn check_api_url(url: &str, allow_http: bool) -> Result<(), (String, &'static str)> {
    let endpoint = Endpoint::parse(url).map_err(|why| (url_problem(&why), API_URL))?;
    if url.contains(['?', '#']) || !endpoint.path.ends_with("/api/") {
        return Err(("does not end in /api/".into(), API_URL));
    }
    let is_local = endpoint.literal().is_some_and(|address| address.ip().is_loopback());
    if !endpoint.is_tls && !is_local && !allow_http {
        let advice = "use https, or set `accounting.waldur.allow_http` if the network between is yours alone";
        return Err(("would send the token without TLS".into(), advice));
    }
    Ok(())
}

fn url_problem(why: &leasehold_deliver::Refused) -> String {
    match why {
        leasehold_deliver::Refused::Url(why) => format!("is not usable as a URL: {why}"),
        _ => "is not usable as a URL".into(),
    }
}

/// What those who use Vault cannot do without.
fn find_missing(vault: &VaultSection, is_needed: bool, found: &mut Found) {
    if vault.address.is_none() {
        let because = if is_needed { "`token_secret_ref` is in Vault" } else { "other keys of Vault are given" };
        found.add("accounting.vault.address", format!("is missing although {because}"), ADDRESS);
    }
    if vault.auth.given() == 0 {
        found.add("accounting.vault.auth", "is missing", "give `approle`, `token_file` or `token_env`");
    }
    let role = &vault.auth.approle;
    match (&role.role_id, &role.secret_id_file) {
        (Some(_), None) => {
            found.add("accounting.vault.auth.approle.secret_id_file", "is missing although `role_id` is given", PRIVATE)
        }
        (None, Some(_)) => found.add(
            "accounting.vault.auth.approle.role_id",
            "is missing although `secret_id_file` is given",
            "`vault read auth/approle/role/NAME/role-id` shows it",
        ),
        _ => {}
    }
}

/// What is wrong whether Vault is used or not: a secret may stand where its place belongs.
fn check_vault(vault: &VaultSection, found: &mut Found) {
    if let Some(Err(why)) = vault.address.as_deref().map(Endpoint::parse) {
        found.add("accounting.vault.address", url_problem(&why), ADDRESS);
    }
    let auth = &vault.auth;
    if auth.given() > 1 {
        found.add("accounting.vault.auth", "has several ways to log in", "keep one of them");
    }
    let absolute = |path: Option<&Path>| path.is_none_or(Path::is_absolute);
    let role = &auth.approle;
    for (key, path) in [
        ("accounting.vault.auth.approle.secret_id_file", &role.secret_id_file),
        ("accounting.vault.auth.token_file", &auth.token_file),
    ] {
        if !absolute(path.as_deref()) {
            found.add(key, "is not an absolute path", PRIVATE);
        }
    }
    let is_word = |text: &str, more: &[u8]| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
    };
    if !is_word(&role.mount, b"_-") {
        found.add("accounting.vault.auth.approle.mount", "is not the name of a mount", "the default is approle");
    }
    if auth.token_env.as_deref().is_some_and(|name| !is_word(name, b"_")) {
        let what = "is not the name of an environment variable";
        found.add("accounting.vault.auth.token_env", what, "give its name, such as VAULT_TOKEN; never the token");
    }
}

/// Reads the certificates.
fn check_vault_files(vault: &VaultSection, found: &mut Found) {
    match vault.config() {
        Err(why) => found.add("accounting.vault.ca", why, "check the path and its permissions"),
        Ok(None) => {}
        Ok(Some(config)) => {
            if let Err(VaultError::Config(why)) = Vault::new(config, Arc::new(|_| None))
                && vault.address.as_deref().is_some_and(|address| Endpoint::parse(address).is_ok())
            {
                let key = if why.contains("certificates") { "accounting.vault.ca" } else { "accounting.vault.address" };
                found.add(key, why, ADDRESS);
            }
        }
    }
}
