//! What the system knows of this process.

use std::fs;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Bytes of a page of memory.
const PAGE_BYTES: u64 = 4096;
/// Clock ticks a second in `/proc/self/stat`, which Linux fixes for all programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// Files that a server has open beside its clients' sockets: devices, event queues, visitors of the
/// HTTP interface.
const OTHER_FILES: u64 = 512;

/// How many files this process may have open; `None` where the system does not tell.
pub(crate) fn open_files() -> Option<u64> {
    getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(allowed, _)| allowed)
}

/// Lets this process have as many files open as it may ask for, and returns how many; `None` where
/// the system does not tell. What a shell allows at first suits programs that call `select`.
pub fn allow_open_files() -> Option<u64> {
    let (allowed, most) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let raised = allowed < most && setrlimit(Resource::RLIMIT_NOFILE, most, most).is_ok();
    Some(if raised { most } else { allowed })
}

/// How many of `clients` can be connected where so many files may be open.
pub(crate) fn clients_within(files: u64, clients: usize) -> usize {
    let room = files - OTHER_FILES.min(files / 2);
    clients.min(usize::try_from(room).unwrap_or(usize::MAX)).max(1)
}

/// Whether whoever started this program has it ignore `signal`, as `nohup` does.
pub fn is_ignored(signal: i32) -> bool {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = text.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask >> (signal - 1) & 1 == 1
}

/// Memory and processor time of this process; zeros where the system does not tell.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProcessFigures {
    pub(crate) resident_bytes: u64,
    pub(crate) user_seconds: f64,
    pub(crate) system_seconds: f64,
}

impl ProcessFigures {
    /// The present figures.
    pub(crate) fn read() -> ProcessFigures {
        let memory = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: u64 = memory.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let times = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        let mut times = times.split_whitespace().skip(11).map(|ticks| ticks.parse().unwrap_or(0.0));
        let mut seconds = || times.next().unwrap_or(0.0) / TICKS_PER_SECOND;
        ProcessFigures {
            resident_bytes: pages * PAGE_BYTES,
            user_seconds: seconds(),
            system_seconds: seconds(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::clients_within;

    #[test]
    fn clients_leave_files_for_what_else_a_server_opens() {
        for (files, clients, expected) in [
            (u64::MAX, 10_000, 10_000),
            (10_512, 10_000, 10_000),
            (10_511, 10_000, 9_999),
            (1024, 10_000, 512),
            (64, 10_000, 32),
            (64, 20, 20),
            (0, 20, 1),
        ] {
            assert_eq!(clients_within(files, clients), expected, "{files} {clients}");
        }
    }
}
