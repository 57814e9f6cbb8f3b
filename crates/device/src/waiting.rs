//! Waiting for completions of several queues at once.
#![expect(unsafe_code, reason = "ppoll")]

use std::os::fd::RawFd;
use std::time::Duration;

use crate::error::{Error, Result};

/// Waits until one of the queues whose [`crate::Queue::poll_fd`] is given has completions, or until
/// the time is over; a signal may end it early. Without descriptors it sleeps. Whether one has.
pub fn wait_readable(descriptors: &[RawFd], timeout: Duration) -> Result<bool> {
    let mut waited: Vec<libc::pollfd> = descriptors
        .iter()
        .map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
        .collect();
    let limit = libc::timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    let count = waited.len() as libc::nfds_t;
    // SAFETY: the array is as long as said and, like the time, outlives the call; no signal mask.
    let answer =
        unsafe { libc::ppoll(waited.as_mut_ptr(), count, &raw const limit, std::ptr::null()) };
    let error = std::io::Error::last_os_error();
    if answer < 0 && error.kind() != std::io::ErrorKind::Interrupted {
        return Err(Error::io(format!("cannot wait for {count} queues"), error));
    }
    Ok(answer > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, QueueOptions};
    use crate::file::{FileDevice, FileOptions};
    use crate::testing::TempDir;

    #[test]
    fn a_completion_ends_the_wait_and_time_does_too() {
        let dir = TempDir::new("waiting");
        let capacity_bytes = Some(1 << 20);
        let options = FileOptions { capacity_bytes, ..FileOptions::default() };
        let device = FileDevice::open(dir.path().join("device"), &options).unwrap();
        let mut queue = device.queue(QueueOptions { depth: 4, buffer_bytes: 4096 }).unwrap();
        let descriptors: Vec<RawFd> = queue.poll_fd().into_iter().collect();
        assert!(!wait_readable(&descriptors, Duration::from_micros(10)).unwrap());
        queue.read(1, 0, 4096).unwrap();
        queue.submit().unwrap();
        let mut completions = Vec::new();
        while completions.is_empty() {
            wait_readable(&descriptors, Duration::from_secs(3600)).unwrap();
            queue.reap(0, &mut completions).unwrap();
        }
        assert_eq!(completions[0].token, 1);
    }

    #[test]
    fn a_queue_of_one_thread_reaps_what_is_done_within_the_time() {
        let dir = TempDir::new("one-thread");
        let capacity_bytes = Some(1 << 20);
        let options = FileOptions { capacity_bytes, ..FileOptions::default() };
        let device = FileDevice::open(dir.path().join("device"), &options).unwrap();
        let options = QueueOptions { depth: 4, buffer_bytes: 4096 };
        let mut queue = device.queue_of_thread(options).unwrap();
        let mut completions = Vec::new();
        queue.reap_within(Duration::from_micros(10), &mut completions).unwrap();
        assert!(completions.is_empty());
        for round in 0..100 {
            (0..4).for_each(|token| queue.read(token, token * 4096, 4096).unwrap());
            while completions.len() < 4 {
                queue.reap_within(Duration::from_secs(3600), &mut completions).unwrap();
            }
            assert!(completions.drain(..).all(|completion| completion.result.is_ok()), "{round}");
            assert_eq!(queue.in_flight(), 0);
        }
    }
}
