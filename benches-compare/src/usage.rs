//! What a process used, as the kernel counts it: CPU, bytes through the block layer, memory.

use std::fs;
use std::path::Path;

/// Counts of one process since it began, and its peak of memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// User and system time, microseconds (the kernel counts in ticks of 10 ms).
    pub cpu_us: u64,
    /// Bytes read from devices for it.
    pub read_bytes: u64,
    /// Bytes written to devices by it; buffered writes count when the page gets dirty.
    pub written_bytes: u64,
    /// Most resident memory so far, mapped file pages included.
    pub peak_rss_bytes: u64,
}

impl Usage {
    /// What process `pid` used so far; zeroes where the kernel does not say.
    pub fn of(pid: u32) -> Usage {
        let io = read(pid, "io");
        let status = read(pid, "status");
        Usage {
            cpu_us: cpu_us(&read(pid, "stat")),
            read_bytes: field(&io, "read_bytes:"),
            written_bytes: field(&io, "\nwrite_bytes:"),
            peak_rss_bytes: field(&status, "VmHWM:") << 10,
        }
    }
}

/// Reads of devices that `file` of a control group counts, of either version.
pub fn device_reads(file: &Path) -> u64 {
    reads_in(&fs::read_to_string(file).unwrap_or_default())
}

fn reads_in(text: &str) -> u64 {
    let words: Vec<&str> = text.split_whitespace().collect();
    let one = words.windows(2).filter(|pair| pair[0] == "Read").map(|pair| pair[1]);
    let two = words.iter().filter_map(|word| word.strip_prefix("rios="));
    one.chain(two).filter_map(|count| count.parse::<u64>().ok()).sum()
}

fn read(pid: u32, file: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
}

fn field(text: &str, name: &str) -> u64 {
    let after = text.split_once(name).map_or("", |(_, after)| after);
    after.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Fields 14 and 15 of `stat`, counted after the name, which may hold spaces.
fn cpu_us(stat: &str) -> u64 {
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks: u64 =
        after.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum();
    ticks * 10_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_is_read_past_a_name_with_spaces_and_brackets() {
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0";
        assert_eq!(cpu_us(stat), 2_000_000);
    }

    #[test]
    fn reads_are_counted_in_both_versions_of_control_groups() {
        assert_eq!(reads_in("254:0 Read 7\n254:0 Write 5\n254:16 Read 2\nTotal 14"), 9);
        assert_eq!(reads_in("254:0 rbytes=9 wbytes=0 rios=3 wios=0\n254:16 rios=4"), 7);
    }

    #[test]
    fn a_process_that_works_uses_memory() {
        assert!(Usage::of(std::process::id()).peak_rss_bytes > 0);
    }
}
