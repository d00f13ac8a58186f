//! Capacity and load of this machine, from the kernel.

use std::fs;

/// Processors that are online.
pub(crate) fn cores() -> u64 {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").ok().and_then(|text| count(&text));
    online.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get() as u64))
}

/// The number of CPUs in a list such as `0-3,8-11`.
fn count(ranges: &str) -> Option<u64> {
    let range = |text: &str| {
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
        to.checked_sub(from)?.checked_add(1)
    };
    ranges.trim().split(',').map(range).sum()
}

/// Memory that the kernel manages, in KiB.
pub(crate) fn memory_kib() -> Option<u64> {
    memory_in(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn memory_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// The load of the last five minutes, in hundredths.
pub(crate) fn load_hundredths() -> Option<u64> {
    load_in(&fs::read_to_string("/proc/loadavg").ok()?)
}

fn load_in(loadavg: &str) -> Option<u64> {
    let (whole, hundredths) = loadavg.split(' ').nth(1)?.split_once('.')?;
    let two_digits = hundredths.len() == 2;
    whole.parse::<u64>().ok()?.checked_mul(100)?.checked_add(hundredths.parse().ok().filter(|_| two_digits)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_read() {
        assert_eq!([count("0-3,8-11\n"), count("0"), count("3-1"), count("")], [Some(8), Some(1), None, None]);
        assert_eq!(memory_in("MemTotal:       16303428 kB\nMemFree: 1 kB\n"), Some(16_303_428));
        assert_eq!(load_in("0.52 12.08 0.59 3/602 12345\n"), Some(1208));
        assert_eq!(load_in("nonsense"), None);
    }

    #[test]
    fn this_machine_has_something() {
        assert!(cores() > 0);
        assert!(memory_kib().is_some_and(|kib| kib > 0));
        assert!(load_hundredths().is_some());
    }
}
