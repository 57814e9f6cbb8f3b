//! What the system knows of this process.

use std::fs;
use std::sync::OnceLock;

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

/// What this process takes of the machine; zeros where the system does not tell.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessFigures {
    /// Memory of its own, in bytes.
    pub resident_bytes: u64,
    /// Addresses that it has mapped, in bytes.
    pub virtual_bytes: u64,
    /// Processor time in the program.
    pub user_seconds: f64,
    /// Processor time in the system on its behalf.
    pub system_seconds: f64,
    /// When it was started, in seconds since the Unix epoch.
    pub start_seconds: f64,
}

impl ProcessFigures {
    /// The present figures.
    pub fn read() -> ProcessFigures {
        let memory = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let mut pages = memory.split(' ').map(|pages| pages.parse().unwrap_or(0));
        let mut bytes = || pages.next().unwrap_or(0) * PAGE_BYTES;
        let (virtual_bytes, resident_bytes) = (bytes(), bytes());
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        // The system counts fields from 1, and the first two stand before what is left.
        let seconds = |field: usize| {
            let ticks = fields.get(field - 3).and_then(|ticks| ticks.parse().ok());
            ticks.unwrap_or(0.0) / TICKS_PER_SECOND
        };
        ProcessFigures {
            resident_bytes,
            virtual_bytes,
            user_seconds: seconds(14),
            system_seconds: seconds(15),
            start_seconds: boot_seconds() + seconds(22),
        }
    }
}

/// Files that this process has open; `None` where the system does not tell.
pub(crate) fn files_open_now() -> Option<u64> {
    // One of them is the folder that is being read.
    fs::read_dir("/proc/self/fd").ok().map(|files| files.count().saturating_sub(1) as u64)
}

/// When the machine was started, in seconds since the Unix epoch.
fn boot_seconds() -> f64 {
    // It never changes, and the file with it is long on machines with many processors.
    static BOOT: OnceLock<f64> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let seconds = stat.lines().find_map(|line| line.strip_prefix("btime "));
        seconds.and_then(|seconds| seconds.trim().parse().ok()).unwrap_or(0.0)
    })
}
