//! The peer: PostgreSQL of Debian, in a temporary directory, with every transaction durable.

use crate::scratch;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How long pgbench runs.
const SECONDS: u32 = 3;

/// A server in a temporary directory. Dropping it stops the server.
pub(crate) struct Postgres {
    folder: tempfile::TempDir,
    programs: PathBuf,
    /// PostgreSQL refuses to run as root; if this process is root, the server runs as this user.
    as_user: Option<&'static str>,
}

/// Debian installs them outside the path, in one directory per version.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed (make bench sees to it)");
    let mut found: Vec<PathBuf> = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin"))).collect();
    found.retain(|folder| folder.join("initdb").exists());
    found.sort();
    found.pop().expect("PostgreSQL's server is installed")
}

impl Postgres {
    pub(crate) fn start() -> Self {
        let folder = scratch::folder();
        let as_user = rustix::process::getuid().is_root().then_some("postgres");
        let postgres = Self { folder, programs: programs(), as_user };
        fs::set_permissions(postgres.folder.path(), fs::Permissions::from_mode(0o777)).expect("our own directory");
        postgres.run("initdb", &["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"], true);
        let socket = postgres.socket();
        let settings = format!(
            "listen_addresses = ''\nunix_socket_directories = '{}'\nmax_connections = 100\nshared_buffers = 1GB\n\
             wal_buffers = 64MB\nmax_wal_size = 8GB\ncheckpoint_timeout = 15min\nfsync = on\nsynchronous_commit = on\n\
             full_page_writes = on\nwal_compression = on\nautovacuum_naptime = 15s\njit = off\n",
            socket.display()
        );
        let file = postgres.data().join("postgresql.conf");
        let mut all = fs::read_to_string(&file).expect("a fresh configuration");
        all.push_str(&settings);
        fs::write(&file, all).expect("our own directory");
        let log = postgres.folder.path().join("log");
        postgres.run("pg_ctl", &["-w", "-l", log.to_str().expect("a plain path"), "start"], true);
        postgres.sql("create database bench", "postgres");
        postgres
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }
    fn socket(&self) -> PathBuf {
        // Socket paths are limited in length; that of the target directory may be too long.
        let absolute = self.folder.path().canonicalize().expect("our own directory");
        if absolute.as_os_str().len() < 80 { absolute } else { PathBuf::from("/tmp") }
    }

    fn run(&self, program: &str, arguments: &[&str], on_data: bool) -> String {
        let program = self.programs.join(program);
        let mut command = match self.as_user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--regid", user, "--clear-groups"]).arg(program);
                command
            }
            None => Command::new(program),
        };
        if on_data {
            command.arg("-D").arg(self.folder.path().canonicalize().expect("our own directory").join("data"));
        }
        command.args(arguments).current_dir("/").stdin(Stdio::null());
        let stdout = self.folder.path().join("stdout");
        let (out, err) = (
            fs::File::create(&stdout).expect("a file"),
            fs::File::create(stdout.with_extension("err")).expect("a file"),
        );
        let status = command.stdout(out).stderr(err).status().expect("the program starts");
        let said = fs::read_to_string(&stdout).unwrap_or_default();
        let wrong = fs::read_to_string(stdout.with_extension("err")).unwrap_or_default();
        assert!(status.success(), "{program:?} {arguments:?}: {said}{wrong}", program = command.get_program());
        said
    }

    fn connection(&self, database: &str) -> Vec<String> {
        let socket = self.socket().to_str().expect("a plain path").to_owned();
        ["-h", &socket, "-U", "postgres", "-d", database].map(str::to_owned).to_vec()
    }

    /// Runs statements.
    pub(crate) fn sql(&self, text: &str, database: &str) {
        let file = self.write("statement.sql", text);
        let mut arguments = self.connection(database);
        arguments
            .extend(["-q", "-v", "ON_ERROR_STOP=1", "-f", file.to_str().expect("a plain path")].map(str::to_owned));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.run("psql", &arguments, false);
    }

    /// A file that the programs can read.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.folder.path().canonicalize().expect("our own directory").join(name);
        fs::write(&file, text).expect("our own directory");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("a file of ours");
        file
    }

    /// A directory that the programs can write to, empty.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().canonicalize().expect("our own directory").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("our own directory");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("our own directory");
        folder
    }

    /// Repeats a script on a number of connections; returns how often per second it ran.
    pub(crate) fn pgbench(&self, clients: u32, script: &Path, more: &[&str]) -> f64 {
        let mut arguments = self.connection("bench");
        // pgbench takes the database last, and `-d` means something else to it.
        arguments.truncate(4);
        let (count, threads, seconds) = (clients.to_string(), clients.min(2).to_string(), SECONDS.to_string());
        arguments.extend(["-n", "-M", "prepared", "-c", &count, "-j", &threads, "-T", &seconds].map(str::to_owned));
        arguments.extend(["-f", script.to_str().expect("a plain path")].map(str::to_owned));
        arguments.extend(more.iter().map(|more| (*more).to_owned()));
        arguments.push("bench".to_owned());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        Self::per_second(&self.run("pgbench", &arguments, false))
    }

    fn per_second(said: &str) -> f64 {
        let line = said.lines().find(|line| line.starts_with("tps")).expect("pgbench gives a figure");
        line.split_whitespace().nth(2).expect("a figure").parse().expect("a number")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.run("pg_ctl", &["-m", "immediate", "stop"], true);
    }
}
