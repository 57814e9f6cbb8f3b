//! What a program provides for the engine, which starts no threads and asks the system nothing:
//! threads for the jobs of an open, the machine's boot, and its memory.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use crate::groups::memory_limit_under;

/// A piece of work that may run on any thread.
type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Runs the jobs on as many threads as there are processors, and returns when all have ended.
pub fn on_all_processors(jobs: Vec<Job<'_>>) {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.min(jobs.len());
    let jobs = Mutex::new(jobs);
    // The lock is held to take a job, not to do it.
    let next = || jobs.lock().ok()?.pop();
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| std::iter::from_fn(next).for_each(|job| job()));
        }
        std::iter::from_fn(next).for_each(|job| job());
    });
}

/// Identifies the boot of the machine; 0 where the system does not tell.
pub fn boot_identity() -> u128 {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    u128::from_str_radix(&text.trim().replace('-', ""), 16).unwrap_or(0)
}

/// Memory that this process may use, bytes: of the machine, or the least that its control groups,
/// as those of a container, allow. `None` where the system does not tell, which is no reason to
/// take it for little or for much.
pub fn machine_memory_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok();
    let machine = meminfo.and_then(|text| memory_bytes_in(&text));
    machine.into_iter().chain(memory_limit_under(Path::new("/"))).min()
}

/// What a program takes of `memory_bytes` for its own memory cap unless it is told otherwise: three
/// quarters. The rest is for the system, and for what a cap does not count.
pub fn memory_share(memory_bytes: u64) -> u64 {
    memory_bytes / 4 * 3
}

/// The machine's memory as a text like that of `/proc/meminfo` has it, bytes.
pub fn memory_bytes_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server took a machine that does not tell for one without bound, the command line for one
    /// without any.
    #[test]
    fn memory_that_the_system_does_not_tell_is_neither_little_nor_much() {
        let told = "Foo: 1 kB\nMemTotal:       16384 kB\nMemFree: 2 kB\n";
        assert_eq!(memory_bytes_in(told), Some(16 << 20));
        for text in ["", "MemFree: 2 kB\n", "MemTotal:\n", "MemTotal: much kB\n", "MemTotal: 0 kB"]
        {
            assert_eq!(memory_bytes_in(text), None, "{text:?}");
        }
        assert_eq!(memory_bytes_in("MemTotal: 18446744073709551615 kB"), None);
        assert!(machine_memory_bytes().is_some(), "Linux tells");
    }

    #[test]
    fn every_job_is_run_once() {
        for count in [0, 1, 2, 100] {
            let mut runs = vec![0; count];
            let jobs = runs.iter_mut().map(|run| {
                let job: Job<'_> = Box::new(move || *run += 1);
                job
            });
            on_all_processors(jobs.collect());
            assert_eq!(runs, vec![1; count]);
        }
    }

    #[test]
    fn a_boot_has_one_identity() {
        assert_eq!(boot_identity(), boot_identity());
    }
}
