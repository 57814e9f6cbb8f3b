//! The resources that a process used, read from the kernel.

use std::fs;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// Processor time of this process so far, user and system, microseconds.
pub(crate) fn own_cpu_us() -> f64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return 0.0 };
    micros(usage.user_time()) + micros(usage.system_time())
}

/// Processor time of process `pid` so far, user and system, microseconds, to the kernel's tick.
pub(crate) fn process_cpu_us(pid: u32) -> Option<f64> {
    const TICK_US: f64 = 10_000.0;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let user: f64 = fields.get(11)?.parse().ok()?;
    let system: f64 = fields.get(12)?.parse().ok()?;
    Some((user + system) * TICK_US)
}

/// Resident memory, bytes: all, and the part that is private to the process.
pub(crate) fn resident_bytes(process: &str) -> (u64, u64) {
    let text = fs::read_to_string(format!("/proc/{process}/statm")).unwrap_or_default();
    let mut fields = text.split_whitespace().map(|f| f.parse::<u64>().unwrap_or(0)).skip(1);
    let resident = fields.next().unwrap_or(0);
    let shared = fields.next().unwrap_or(0);
    (resident * 4096, resident.saturating_sub(shared) * 4096)
}

/// Most resident memory that process `process` had, bytes.
pub(crate) fn peak_resident_bytes(process: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()).and_then(|n| n.parse().ok()).unwrap_or(0) * 1024
}

fn micros(time: TimeVal) -> f64 {
    time.tv_sec() as f64 * 1e6 + time.tv_usec() as f64
}
