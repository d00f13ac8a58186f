//! Reads processes from `/proc`.

use rustix::process::Pid;
use std::fs;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) group: i32,
    /// Whether it is not a zombie.
    pub(crate) is_alive: bool,
    /// Its start time in ticks since boot. Together with the PID it identifies a process uniquely.
    pub(crate) began_ticks: u64,
}

/// Reads one process, if it exists.
pub(crate) fn process(pid: Pid) -> io::Result<Option<Process>> {
    match fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())) {
        Ok(stat) => parse(pid, &stat).map(Some).ok_or_else(|| io::Error::other("unexpected format of /proc/PID/stat")),
        // The process can exit while its file is read.
        Err(error) if matches!(error.raw_os_error(), Some(code) if code == rustix::io::Errno::SRCH.raw_os_error()) => {
            Ok(None)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// All processes. One that starts or exits meanwhile may be missing.
pub(crate) fn processes() -> io::Result<Vec<Process>> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            all.extend(process(pid)?);
        }
    }
    Ok(all)
}

/// The name is in parentheses and can contain any characters, so fields are counted from the last parenthesis
/// (proc(5)).
fn parse(pid: Pid, stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let is_zombie = matches!(field(3)?, "Z" | "X" | "x");
    // A zombie leader with other threads still runs.
    let threads: u64 = field(20)?.parse().ok()?;
    let group = field(5)?.parse().ok()?;
    Some(Process { pid, group, is_alive: !is_zombie || threads > 1, began_ticks: field(22)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_do_not_confuse() {
        let stat = "7 (a) S (b) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 98765 1 2";
        let pid = Pid::from_raw(7).unwrap();
        let expected = Process { pid, group: 42, is_alive: true, began_ticks: 98765 };
        assert_eq!(parse(pid, stat), Some(expected));
        let zombie = parse(pid, &stat.replace(") S 1", ") Z 1")).unwrap();
        assert!(zombie.is_alive, "three threads run on");
        let zombie = parse(pid, &stat.replace(") S 1", ") Z 1").replace(" 20 0 3", " 20 0 1")).unwrap();
        assert!(!zombie.is_alive);
        assert_eq!(parse(pid, "7 (short) S 1"), None);
    }

    #[test]
    fn this_process_is_among_them() {
        let own = rustix::process::getpid();
        let found = processes().unwrap().into_iter().find(|process| process.pid == own).expect("it is there");
        assert_eq!(process(own).unwrap(), Some(found));
        assert!(found.is_alive && found.group == rustix::process::getpgrp().as_raw_nonzero().get());
    }
}
