//! What a program lends the engine, which starts no threads and asks the system nothing: threads
//! for the jobs of an open, and which boot of the machine this is.

use std::fs;
use std::sync::Mutex;
use std::thread;

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

#[cfg(test)]
mod tests {
    use super::*;

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
