//! One thread's door to a tiered store.

use std::os::fd::RawFd;

use entresol_flash::{Entry, Operation, Outcome, Result, SpaceId, Timestamp};

/// Called with the token and the outcome of each finished operation.
pub type Visit<'v> = &'v mut dyn FnMut(u64, Result<Outcome<'_>>);

/// One thread's operations: submit many, then visit them as they finish.
#[derive(Debug)]
pub struct Session {}

/// How a session is set up.
#[derive(Debug, Clone, Copy)]
pub struct SessionOptions {
    /// Most device reads in flight, 1 to 4096. Operations past it wait in memory.
    pub depth: usize,
    /// Size of the registered read buffers, bytes.
    pub read_buffer_bytes: usize,
}

impl Default for SessionOptions {
    fn default() -> SessionOptions {
        SessionOptions { depth: 256, read_buffer_bytes: 8 << 10 }
    }
}

impl Session {
    /// Begins `operation`. `visit` is called before return where the answer is at hand, else from a
    /// later [`Session::poll`].
    pub fn submit(
        &mut self,
        _token: u64,
        _now: Timestamp,
        _operation: Operation<'_>,
        _visit: Visit<'_>,
    ) {
    }

    /// Hands gathered reads to the device without waiting.
    pub fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    /// Waits until at least `wait_for` operations (0: none) have finished; visits all finished.
    pub fn poll(&mut self, _wait_for: usize, _now: Timestamp, _visit: Visit<'_>) -> Result<usize> {
        Ok(0)
    }

    /// Operations begun and not yet visited.
    pub fn in_flight(&self) -> usize {
        0
    }

    /// Polls readable when `poll(0, …)` has something to visit.
    pub fn poll_fd(&self) -> Option<RawFd> {
        None
    }

    /// Visits about `limit` live entries of `space` from `cursor` (0 starts) in hash order and
    /// returns the next cursor (0: the end). Entries present throughout are visited at least once.
    pub fn scan(
        &mut self,
        _space: SpaceId,
        _cursor: u64,
        _limit: usize,
        _visit: &mut dyn FnMut(Entry<'_>),
    ) -> Result<u64> {
        Ok(0)
    }

    /// Submits one operation and waits for it.
    pub fn run(
        &mut self,
        _now: Timestamp,
        _operation: Operation<'_>,
        _visit: &mut dyn FnMut(Outcome<'_>),
    ) -> Result<()> {
        Ok(())
    }
}
