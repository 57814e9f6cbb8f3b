//! Which requests belong to a sequential stream, and how long it already is.
//!
//! A stream is a run of requests of one direction, each of which begins where the one before ended.
//! The last [`STREAMS`] of them are remembered; a request that continues none takes the place of
//! the one that was continued longest ago, and is a stream of its own.
//!
//! Invariant: a stream's run is the bytes of requests that touch each other, so that requests at
//! random are never taken for a stream, however close they lie.

/// Streams that are remembered.
pub const STREAMS: usize = 128;

/// The streams of one volume.
#[derive(Debug)]
pub struct Streams {
    /// Where each ends, apart from the rest because it is what is searched.
    ends: [u64; STREAMS],
    streams: [Stream; STREAMS],
    /// When each was continued last.
    used: [u64; STREAMS],
    requests: u64,
}

/// What is known of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// What its requests do.
    pub direction: Direction,
    /// Bytes from its first request to the end of its last.
    pub run_bytes: u64,
    /// Its requests.
    pub requests: u64,
    /// Up to where it was read ahead; see [`crate::policy::readahead`].
    pub ahead_end: u64,
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// It reads.
    Read,
    /// It writes.
    Write,
}

impl Default for Streams {
    fn default() -> Streams {
        let none = Stream { direction: Direction::Read, run_bytes: 0, requests: 0, ahead_end: 0 };
        // No request ends at the greatest number and another begins there.
        Streams {
            ends: [u64::MAX; STREAMS],
            streams: [none; STREAMS],
            used: [0; STREAMS],
            requests: 0,
        }
    }
}

impl Streams {
    /// The stream that a request continues or begins, this request included.
    pub fn on_request(&mut self, direction: Direction, offset: u64, length: u64) -> &mut Stream {
        self.requests += 1;
        let end = offset.saturating_add(length);
        let continued = (0..STREAMS)
            .find(|&at| self.ends[at] == offset && self.streams[at].direction == direction);
        let at = continued.unwrap_or_else(|| {
            let oldest = self.used.iter().enumerate().min_by_key(|(_, used)| **used);
            let at = oldest.map_or(0, |(at, _)| at);
            self.streams[at] = Stream { direction, run_bytes: 0, requests: 0, ahead_end: 0 };
            at
        });
        self.ends[at] = end;
        self.used[at] = self.requests;
        let stream = &mut self.streams[at];
        stream.run_bytes = stream.run_bytes.saturating_add(length);
        stream.requests += 1;
        stream
    }
}

impl Stream {
    /// Whether it is longer than `cutoff_bytes` (0: never), so that it goes around the cache.
    pub fn goes_around(&self, cutoff_bytes: u64) -> bool {
        cutoff_bytes > 0 && self.run_bytes > cutoff_bytes
    }
}
