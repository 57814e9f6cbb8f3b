//! Which requests belong to a sequential stream, and how long it already is.
//!
//! A stream is a run of requests of one direction, each of which begins where the one before ended.
//! The last [`STREAMS`] streams are remembered; a new one takes the place of the one that was
//! continued longest ago. A run of fewer than [`REQUESTS_MIN`] requests is only a candidate, and
//! candidates have places of their own: random readers often ask for a neighbour of an earlier
//! block, and such short runs must not push out streams that advance slowly.
//!
//! Invariant: a stream's run is the bytes of requests that touch each other, so that requests at
//! random are never taken for a stream, however close they lie.

/// Streams that are remembered.
pub const STREAMS: usize = 128;

/// Requests that make a stream.
pub const REQUESTS_MIN: u64 = 4;
/// Shorter runs that are remembered, each at the place that its end says.
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
    /// The run that the request of now continues or begins, where it is no stream yet.
    short: Stream,
}

/// A run that is no stream yet.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    end: u64,
    run: Stream,
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
        let candidate = Candidate { end: u64::MAX, run: none };
        Streams {
            ends: [u64::MAX; STREAMS],
            streams: [none; STREAMS],
            used: [0; STREAMS],
            requests: 0,
            candidates: vec![candidate; CANDIDATES].into_boxed_slice(),
            short: none,
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
        let at = match continued {
            Some(at) => at,
            None => {
                let run = self.take_candidate(direction, offset);
                if run.requests + 1 < REQUESTS_MIN {
                    self.short = run.longer(length);
                    self.candidates[place_of(end)] = Candidate { end, run: self.short };
                    return &mut self.short;
                }
                let oldest = self.used.iter().enumerate().min_by_key(|(_, used)| **used);
                let (at, _) = oldest.expect("there are places for streams");
                self.streams[at] = run;
                at
            }
        };
        self.ends[at] = end;
        self.used[at] = self.requests;
        let stream = &mut self.streams[at];
        *stream = stream.longer(length);
        stream
    }

    /// The run that ended at `offset` and is no stream yet; an empty one if there is none.
    fn take_candidate(&mut self, direction: Direction, offset: u64) -> Stream {
        let found = &mut self.candidates[place_of(offset)];
        if found.end != offset || found.run.direction != direction || offset == u64::MAX {
            return Stream { direction, run_bytes: 0, requests: 0, ahead_end: 0 };
        }
        found.end = u64::MAX;
        found.run
    }
}

/// Where a candidate of this end is: multiplied, since ends are multiples of a block.
fn place_of(end: u64) -> usize {
    (end.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52) as usize
}

impl Stream {
    /// Whether it has the requests that make a stream.
    pub fn is_established(&self) -> bool {
        self.requests >= REQUESTS_MIN
    }

    /// With one request more.
    fn longer(self, length: u64) -> Stream {
        let run_bytes = self.run_bytes.saturating_add(length);
        Stream { run_bytes, requests: self.requests + 1, ..self }
    }

    /// Whether it is longer than `cutoff_bytes` (0: never), so that it goes around the cache.
    pub fn goes_around(&self, cutoff_bytes: u64) -> bool {
        cutoff_bytes > 0 && self.run_bytes > cutoff_bytes
    }
}
