//! The settings of a user: from the command line, the environment, then `~/.config/leasehold/config.yaml`.

use crate::client::is_loopback;
use crate::config::{Config, ConfigError};
use crate::secret::Secret;
use leasehold_yaml::{LoadError, Reader};
use reqwest::Url;
use serde::Deserialize;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Where the daemon listens by default.
const URL_DEFAULT: &str = "http://127.0.0.1:8420";
const YAML: Reader = Reader { see: "write lines like `url: https://…`", section_of: |_| None };

/// The settings of the command line, which take precedence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    pub url: Option<String>,
    pub token_file: Option<PathBuf>,
    pub ca_file: Option<PathBuf>,
}

/// A configuration, and warnings about it.
#[derive(Clone, Debug)]
pub struct Settings {
    pub config: Config,
    /// Whether an address was given; otherwise it is the default.
    pub named: bool,
    pub warnings: Vec<String>,
}

impl Settings {
    /// Takes each setting from the first source that has it: the command line, then `LEASEHOLD_URL`, `LEASEHOLD_TOKEN` and
    /// `LEASEHOLD_TOKEN_FILE`, then the file. The token and the CA of the file are used only for the address in it.
    pub fn load(named: &Named) -> Result<Self, ConfigError> {
        Self::gather(named, &|name| std::env::var_os(name))
    }

    fn gather(named: &Named, environment: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, ConfigError> {
        let mut warnings = Vec::new();
        let set = |name: &str| match environment(name) {
            Some(value) if value.is_empty() => Ok(None),
            Some(value) => value.into_string().map(Some).map_err(|_| {
                ConfigError::new("bad_setting", format!("{name} is not valid UTF-8"), "correct or unset the variable")
            }),
            None => Ok(None),
        };
        let file = match environment("HOME") {
            Some(home) => File::read(&Path::new(&home).join(".config/leasehold/config.yaml"), &mut warnings)?,
            None => File::default(),
        };
        let in_file = file.url.is_some();
        let file_url = file.url.unwrap_or_else(|| URL_DEFAULT.to_owned());
        let url = named.url.clone().map_or_else(|| set("LEASEHOLD_URL"), |url| Ok(Some(url)))?;
        let named_url = url.is_some() || in_file;
        let of_file = url.as_ref().is_none_or(|url| same(url, &file_url));
        let mut config = Config::new(url.unwrap_or(file_url));
        config.ca_file = named.ca_file.clone().or(file.ca_file.filter(|_| of_file));
        config.token = match (&named.token_file, set("LEASEHOLD_TOKEN")?, set("LEASEHOLD_TOKEN_FILE")?) {
            (Some(path), _, _) => Some(read_token(path, &mut warnings)?),
            (None, Some(token), _) => Some(trimmed(token)),
            (None, None, Some(path)) => Some(read_token(Path::new(&path), &mut warnings)?),
            (None, None, None) if !of_file => None,
            (None, None, None) => match file.token_file {
                Some(path) => Some(read_token(&path, &mut warnings)?),
                None => file.token.map(trimmed),
            },
        };
        if config.token.is_some()
            && let Ok(url) = Url::parse(&config.url)
            && url.scheme() == "http"
            && !is_loopback(&url)
        {
            warnings.push(format!("the token is sent to {} without encryption; use https", config.url));
        }
        Ok(Self { config, named: named_url, warnings })
    }
}

fn same(one: &str, other: &str) -> bool {
    match (Url::parse(one), Url::parse(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    url: Option<String>,
    token: Option<String>,
    token_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
}

impl File {
    /// Reads the file, if it exists. Paths in it are relative to it.
    fn read(path: &Path, warnings: &mut Vec<String>) -> Result<Self, ConfigError> {
        let text = match fs::read_to_string(path) {
            // It may contain a token.
            Ok(text) => Zeroizing::new(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unreadable("settings", path, &error)),
        };
        let mut file: Self = YAML.parse(&text, path).map_err(|error| match error {
            LoadError::Wrong { line: Some(line), what, advice, .. } => {
                ConfigError::new("bad_settings_file", format!("{}:{line}: {what}", path.display()), advice)
            }
            LoadError::Wrong { what, advice, .. } => {
                ConfigError::new("bad_settings_file", format!("{}: {what}", path.display()), advice)
            }
            LoadError::Unreadable { why, .. } => ConfigError::new("file_unreadable", why, "check the path"),
        })?;
        for beside in [&mut file.token_file, &mut file.ca_file] {
            *beside = beside.take().map(|named| path.parent().unwrap_or(path).join(named));
        }
        if file.token.is_some() {
            warn_if_open(path, warnings);
        }
        Ok(file)
    }
}

/// The token without the space around it. The text is overwritten.
fn trimmed(text: String) -> Secret {
    Secret::new(Zeroizing::new(text).trim())
}

fn read_token(path: &Path, warnings: &mut Vec<String>) -> Result<Secret, ConfigError> {
    let text = Zeroizing::new(fs::read_to_string(path).map_err(|error| unreadable("token", path, &error))?);
    let token = text.trim();
    if token.is_empty() {
        let what = format!("the token file {} is empty", path.display());
        return Err(ConfigError::new("file_unreadable", what, "write the token into it"));
    }
    warn_if_open(path, warnings);
    Ok(Secret::new(token))
}

fn warn_if_open(path: &Path, warnings: &mut Vec<String>) {
    let mode = fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o077 != 0 {
        let path = path.display();
        warnings.push(format!("{path} contains a token, and other users can read it; run chmod 600 {path}"));
    }
}

fn unreadable(what: &str, path: &Path, error: &std::io::Error) -> ConfigError {
    let what = format!("the {what} file {} cannot be read: {error}", path.display());
    ConfigError::new("file_unreadable", what, "check the path and its permissions")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    struct Home(TempDir);

    impl Home {
        fn with(config: &str) -> Self {
            let home = Self(tempfile::tempdir().expect("a directory"));
            fs::create_dir_all(home.0.path().join(".config/leasehold")).unwrap();
            home.write("config.yaml", config, 0o600);
            home
        }
        fn write(&self, name: &str, text: &str, mode: u32) {
            let path = self.0.path().join(".config/leasehold").join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        fn load(&self, named: &Named, variables: &[(&str, &str)]) -> Result<Settings, ConfigError> {
            Settings::gather(named, &|name| {
                let home = ("HOME", self.0.path().to_str().unwrap());
                variables.iter().chain([&home]).find(|(known, _)| *known == name).map(|(_, value)| value.into())
            })
        }
    }

    fn url(url: &str) -> Named {
        Named { url: Some(url.into()), ..Named::default() }
    }

    #[test]
    fn the_command_line_comes_before_the_environment_and_that_before_the_file() {
        let home = Home::with("url: https://file\ntoken: t-file\nca_file: ca.pem\n");
        let plain = home.load(&Named::default(), &[]).unwrap();
        assert_eq!((plain.config.url.as_str(), plain.warnings.len()), ("https://file", 0));
        assert_eq!(plain.config.token, Some(Secret::new("t-file")));
        assert_eq!(plain.config.ca_file, Some(home.0.path().join(".config/leasehold/ca.pem")));
        let variables = [("LEASEHOLD_URL", "https://env"), ("LEASEHOLD_TOKEN", "t-env\n")];
        let environment = home.load(&Named::default(), &variables).unwrap().config;
        assert_eq!((environment.url.as_str(), environment.ca_file), ("https://env", None));
        assert_eq!(environment.token, Some(Secret::new("t-env")));
        assert_eq!(home.load(&url("https://line"), &variables).unwrap().config.url, "https://line");
    }

    #[test]
    fn the_token_of_the_file_goes_to_the_address_of_the_file_only() {
        let home = Home::with("url: https://file\ntoken: t-file\n");
        assert_eq!(home.load(&url("https://elsewhere"), &[]).unwrap().config.token, None);
        assert_eq!(home.load(&url("https://file/"), &[]).unwrap().config.token, Some(Secret::new("t-file")));
        let home = Home::with("token: t-file\n");
        assert_eq!(home.load(&url(URL_DEFAULT), &[]).unwrap().config.token, Some(Secret::new("t-file")));
    }

    #[test]
    fn a_token_can_be_in_a_file_of_its_own() {
        let home = Home::with("token_file: token\n");
        home.write("token", "t-1\n", 0o600);
        let settings = home.load(&Named::default(), &[]).unwrap();
        assert_eq!((settings.config.token, settings.warnings.len()), (Some(Secret::new("t-1")), 0));
        home.write("token", "t-2\n", 0o644);
        let settings = home.load(&Named::default(), &[]).unwrap();
        assert!(settings.warnings[0].contains("chmod 600"), "{:?}", settings.warnings);
        home.write("token", "\n", 0o600);
        assert_eq!(home.load(&Named::default(), &[]).unwrap_err().code, "file_unreadable");
        let elsewhere = home.load(&Named::default(), &[("LEASEHOLD_TOKEN_FILE", "/nowhere")]).unwrap_err();
        assert!(elsewhere.to_string().contains("/nowhere"), "{elsewhere}");
    }

    #[test]
    fn errors_in_the_file_have_a_line_number() {
        let message = |text: &str| Home::with(text).load(&Named::default(), &[]).unwrap_err().to_string();
        let unknown = message("url: https://h\ntokn: x\n");
        assert!(unknown.contains("config.yaml:2: unknown key `tokn`; did you mean `token`?"), "{unknown}");
        assert!(message("url: [1, 2]\n").contains("config.yaml:1"), "{}", message("url: [1, 2]\n"));
        assert!(message("just text\n").contains("config.yaml"), "{}", message("just text\n"));
        assert!(Home::with("# nothing yet\n").load(&Named::default(), &[]).is_ok());
        let twice = message("url: a\nurl: b\n");
        assert!(twice.contains("config.yaml:2: duplicate key `url`"), "{twice}");
    }

    #[test]
    fn a_token_without_encryption_causes_a_warning() {
        let home = Home::with("token: t\n");
        let warnings = |named| home.load(&named, &[("LEASEHOLD_TOKEN", "t")]).unwrap().warnings;
        assert_eq!(warnings(Named::default()).len(), 0);
        assert_eq!(warnings(url("http://cluster.example.org")).len(), 1);
        assert_eq!(warnings(url("https://cluster.example.org")).len(), 0);
    }
}
