//! What the system knows of this process.

use std::fs;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Bytes of a page of memory.
const PAGE_BYTES: u64 = 4096;
/// Clock ticks a second in `/proc/self/stat`, which Linux fixes for all programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// How many files this process may have open; `None` where the system does not tell.
pub fn open_files() -> Option<u64> {
    getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(allowed, _)| allowed)
}

/// Lets this process have as many files open as it may ask for, and returns how many; `None` where
/// the system does not tell. What a shell allows at first suits programs that call `select`.
pub fn allow_open_files() -> Option<u64> {
    let (allowed, most) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let raised = allowed < most && setrlimit(Resource::RLIMIT_NOFILE, most, most).is_ok();
    Some(if raised { most } else { allowed })
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
pub struct ProcessFigures {
    /// Memory of its own, in bytes.
    pub resident_bytes: u64,
    /// Processor time in the program.
    pub user_seconds: f64,
    /// Processor time in the system on its behalf.
    pub system_seconds: f64,
}

impl ProcessFigures {
    /// The present figures.
    pub fn read() -> ProcessFigures {
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
