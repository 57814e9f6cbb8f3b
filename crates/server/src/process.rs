//! What the system knows of this process.

use std::fs;

/// Bytes of a page of memory.
const PAGE_BYTES: u64 = 4096;
/// Clock ticks a second in `/proc/self/stat`, which Linux fixes for all programs.
const TICKS_PER_SECOND: f64 = 100.0;

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
