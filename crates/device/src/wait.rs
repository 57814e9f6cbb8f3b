//! Waiting for several queues at once, and no longer than the caller has time.
#![expect(unsafe_code, reason = "the system call that waits")]

use std::time::Duration;

use crate::device::Queue;
use crate::error::{Error, Result};

/// Waits until a completion waits in one of `queues`, `timeout` is over or a signal came. Queues
/// without a descriptor are not waited for: they are done with a request once it is submitted.
pub fn wait_for_any(queues: &[Box<dyn Queue>], timeout: Duration) -> Result<()> {
    let descriptors = queues.iter().filter(|queue| queue.in_flight() > 0);
    let mut polled: Vec<libc::pollfd> = descriptors
        .filter_map(|queue| queue.poll_fd())
        .map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
        .collect();
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs().min(i32::MAX as u64).cast_signed(),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // SAFETY: the array and the time outlive the call, and its length is the array's. The
    // descriptors belong to queues that are borrowed until the call returns.
    let result = unsafe {
        libc::ppoll(polled.as_mut_ptr(), polled.len() as u64, &raw const timeout, std::ptr::null())
    };
    if result >= 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    match error.kind() {
        std::io::ErrorKind::Interrupted => Ok(()),
        _ => Err(Error::io(format!("cannot wait for {} queues", queues.len()), error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, MemoryDevice, QueueOptions};

    #[test]
    fn waiting_ends_with_the_time_and_with_a_completion() {
        wait_for_any(&[], Duration::from_millis(1)).unwrap();
        let device = MemoryDevice::new(1 << 20).unwrap();
        let mut queue = device.queue(QueueOptions { depth: 1, buffer_bytes: 4096 }).unwrap();
        queue.read(7, 0, 4096).unwrap();
        let mut queues = [queue];
        wait_for_any(&queues, Duration::from_millis(1)).unwrap();
        let mut completions = Vec::new();
        queues[0].reap(1, &mut completions).unwrap();
        assert_eq!(completions[0].token, 7);
    }
}
