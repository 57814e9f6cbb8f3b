//! Random requests to a backing, held against an array of bytes.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;
use entresol_sim::Random;
use entresol_volume::backing::{Backing, BackingCompletion, BackingRequest};
use entresol_volume::{Durable, Hole};

/// What the backing should hold, and what is asked of it just now.
pub(crate) struct Model {
    pub(crate) bytes: Vec<u8>,
    /// Which of them were written, since the test forgot it last.
    pub(crate) written: Vec<bool>,
    in_flight: BTreeMap<u64, BackingRequest>,
    next_token: u64,
    random: Random,
    /// Most bytes of a request.
    pub(crate) length_max: u64,
}

impl Model {
    pub(crate) fn new(bytes: Vec<u8>, seed: u64) -> Model {
        Model {
            written: vec![false; bytes.len()],
            bytes,
            in_flight: BTreeMap::new(),
            next_token: 0,
            random: Random::new(seed),
            length_max: 20_000,
        }
    }

    /// Begins so many random requests, no two that are in flight overlapping unless both read, and
    /// holds the answers against the model.
    pub(crate) fn exercise(&mut self, backing: &mut dyn Backing, requests: u64) {
        let mut completions = Vec::new();
        for _ in 0..requests {
            let request = self.draw(backing);
            if !self.is_apart(&request) {
                backing.wait(&mut completions);
                self.settle(&mut completions);
                continue;
            }
            backing.begin(self.next_token, request.clone());
            self.in_flight.insert(self.next_token, request);
            self.next_token += 1;
            match self.random.below(6) {
                0 => backing.wait(&mut completions),
                1 => backing.submit(),
                2 => backing.reap(&mut completions),
                _ => {}
            }
            self.settle(&mut completions);
            assert_eq!(backing.in_flight(), self.in_flight.len());
        }
        self.drain(backing);
    }

    /// Begins up to so many random requests that are apart, and takes no answers.
    pub(crate) fn begin_apart(&mut self, backing: &mut dyn Backing, requests: u64) {
        for _ in 0..requests {
            let request = self.draw(backing);
            if self.is_apart(&request) {
                backing.begin(self.next_token, request.clone());
                self.in_flight.insert(self.next_token, request);
                self.next_token += 1;
            }
        }
        backing.submit();
    }

    pub(crate) fn drain(&mut self, backing: &mut dyn Backing) {
        let mut completions = Vec::new();
        while backing.in_flight() > 0 {
            backing.wait(&mut completions);
            assert!(!completions.is_empty(), "a wait ended with nothing, and requests in flight");
            self.settle(&mut completions);
        }
        assert!(self.in_flight.is_empty());
    }

    fn draw(&mut self, backing: &dyn Backing) -> BackingRequest {
        let unit = u64::from(backing.description().alignment);
        let size = self.bytes.len() as u64;
        let offset = self.random.below(size) / unit * unit;
        let length = (1 + self.random.below(self.length_max)).next_multiple_of(unit);
        let length = length.min(size - offset);
        match self.random.below(12) {
            0..=4 => BackingRequest::Read { offset, length: length as u32 },
            5..=8 => {
                let mut bytes = vec![0; length as usize];
                self.random.fill(&mut bytes);
                let durable =
                    if self.random.one_in(4) { Durable::AtOnce } else { Durable::AtFlush };
                BackingRequest::Write { offset, bytes: Bytes::from(bytes), durable }
            }
            9 => BackingRequest::Flush,
            10 => BackingRequest::Zero { offset, length, hole: Hole::Forbidden },
            _ => BackingRequest::Zero { offset, length, hole: Hole::Allowed },
        }
    }

    fn is_apart(&self, request: &BackingRequest) -> bool {
        let reads = |one: &BackingRequest| matches!(one, BackingRequest::Read { .. });
        self.in_flight.values().all(|other| {
            let (ours, theirs) = (range(request), range(other));
            (reads(request) && reads(other)) || ours.end <= theirs.start || theirs.end <= ours.start
        })
    }

    /// Takes completions; all must have succeeded.
    fn settle(&mut self, completions: &mut Vec<BackingCompletion>) {
        for BackingCompletion { token, result } in completions.drain(..) {
            let request = self.in_flight.remove(&token).expect("each completes once");
            let bytes = result.unwrap_or_else(|error| panic!("{request:?}: {error}"));
            let range = range(&request);
            let range = range.start as usize..range.end as usize;
            if matches!(&request, BackingRequest::Write { .. } | BackingRequest::Zero { .. }) {
                self.written[range.clone()].fill(true);
            }
            match request {
                BackingRequest::Read { .. } => {
                    assert!(bytes == self.bytes[range.clone()], "read of {range:?}");
                }
                BackingRequest::Write { bytes, .. } => self.bytes[range].copy_from_slice(&bytes),
                BackingRequest::Zero { .. } => self.bytes[range].fill(0),
                BackingRequest::Flush | BackingRequest::Trim { .. } => {}
            }
        }
    }
}

fn range(request: &BackingRequest) -> Range<u64> {
    let (offset, length) = request.range().unwrap_or_default();
    offset..offset + length
}

/// Performs one request.
pub(crate) fn perform(
    backing: &mut dyn Backing,
    request: BackingRequest,
) -> entresol_volume::Result<Bytes> {
    assert_eq!(backing.in_flight(), 0);
    backing.begin(7, request);
    let mut completions = Vec::new();
    backing.wait(&mut completions);
    assert_eq!(completions.len(), 1);
    assert_eq!(completions[0].token, 7);
    completions.remove(0).result
}

/// Whether an event loop would be woken.
pub(crate) fn is_readable(backing: &dyn Backing) -> bool {
    let mut poll = mio::Poll::new().unwrap();
    let descriptor = backing.poll_fd().unwrap();
    let mut source = mio::unix::SourceFd(&descriptor);
    poll.registry().register(&mut source, mio::Token(0), mio::Interest::READABLE).unwrap();
    let mut events = mio::Events::with_capacity(1);
    poll.poll(&mut events, Some(std::time::Duration::ZERO)).unwrap();
    !events.is_empty()
}

/// A write that survives power loss after a flush.
pub(crate) fn write(offset: u64, bytes: &[u8]) -> BackingRequest {
    let bytes = Bytes::copy_from_slice(bytes);
    BackingRequest::Write { offset, bytes, durable: Durable::AtFlush }
}

/// Seeds of random tests; `ENTRESOL_SEED` names another one.
pub(crate) fn seeds() -> Vec<u64> {
    match std::env::var("ENTRESOL_SEED") {
        Ok(seed) => vec![seed.parse().expect("ENTRESOL_SEED is a whole number")],
        Err(_) => (1..=8).collect(),
    }
}

/// Says which seed failed.
pub(crate) struct Seed(pub(crate) u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("replay with: ENTRESOL_SEED={} (this test)", self.0);
        }
    }
}
