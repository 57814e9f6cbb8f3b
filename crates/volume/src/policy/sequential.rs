//! Which requests belong to a sequential stream, and how long it already is.
//!
//! A stream is a run of requests of one direction, each of which begins where the one before
//! ended. The last [`STREAMS`] of them are remembered; one more takes the place of the one that
//! was continued longest ago. A request that continues none is only a candidate, and candidates
//! have places of their own, so that many requests at random do not push out streams that advance
//! slowly among them.
//!
//! Invariant: a stream's run is the bytes of requests that touch each other, so that requests at
//! random are never taken for a stream, however close they lie.

/// Streams that are remembered.
pub const STREAMS: usize = 128;

/// Single requests that are remembered, each at the place that its end says.
const CANDIDATES: usize = 4096;

/// The streams of one volume.
#[derive(Debug)]
pub struct Streams {
    /// Where each ends, apart from the rest because it is what is searched.
    ends: [u64; STREAMS],
    streams: [Stream; STREAMS],
    /// When each was continued last.
    used: [u64; STREAMS],
    requests: u64,
    candidates: Box<[Candidate]>,
    /// The request of now, where it continues none.
    single: Stream,
}

/// A request that none has continued yet.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    end: u64,
    length: u64,
    direction: Direction,
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
        let candidate = Candidate { end: u64::MAX, length: 0, direction: Direction::Read };
        Streams {
            ends: [u64::MAX; STREAMS],
            streams: [none; STREAMS],
            used: [0; STREAMS],
            requests: 0,
            candidates: vec![candidate; CANDIDATES].into_boxed_slice(),
            single: none,
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
        let Some(at) = continued.or_else(|| self.promote(direction, offset)) else {
            self.candidates[place_of(end)] = Candidate { end, length, direction };
            self.single = Stream { direction, run_bytes: length, requests: 1, ahead_end: 0 };
            return &mut self.single;
        };
        self.ends[at] = end;
        self.used[at] = self.requests;
        let stream = &mut self.streams[at];
        stream.run_bytes = stream.run_bytes.saturating_add(length);
        stream.requests += 1;
        stream
    }

    /// Makes the candidate that ends at `offset` a stream, in the oldest one's place.
    fn promote(&mut self, direction: Direction, offset: u64) -> Option<usize> {
        let found = &mut self.candidates[place_of(offset)];
        if found.end != offset || found.direction != direction || offset == u64::MAX {
            return None;
        }
        let run_bytes = found.length;
        found.end = u64::MAX;
        let (at, _) = self.used.iter().enumerate().min_by_key(|(_, used)| **used)?;
        self.streams[at] = Stream { direction, run_bytes, requests: 1, ahead_end: 0 };
        Some(at)
    }
}

/// Where a candidate of this end is: multiplied, since ends are multiples of a block.
fn place_of(end: u64) -> usize {
    (end.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52) as usize
}

impl Stream {
    /// Whether it is longer than `cutoff_bytes` (0: never), so that it goes around the cache.
    pub fn goes_around(&self, cutoff_bytes: u64) -> bool {
        cutoff_bytes > 0 && self.run_bytes > cutoff_bytes
    }
}
