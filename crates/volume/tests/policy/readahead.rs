//! Blocks that are read ahead come before the reader asks for them, and within the limit.

use entresol_sim::Random;
use entresol_volume::policy::readahead;
use entresol_volume::policy::sequential::{Direction, Streams};

const VOLUME: u64 = 10 << 20;

/// Reads from `start` on, `length` at a time; returns what was read ahead.
fn read(start: u64, length: u64, times: u64, most: u64) -> Vec<std::ops::Range<u64>> {
    let mut streams = Streams::default();
    let mut ranges = Vec::new();
    for step in 0..times {
        let offset = start + step * length;
        let end = (offset + length).min(VOLUME);
        let stream = streams.on_request(Direction::Read, offset, end - offset);
        ranges.extend(readahead::on_read(stream, end, most, VOLUME));
    }
    ranges
}

#[test]
fn a_reader_finds_all_but_its_first_requests_ahead_of_it() {
    let ranges = read(8192, 4096, 500, 256 << 10);
    assert_eq!(ranges[0].start, 8192 + 4 * 4096);
    for (before, after) in ranges.iter().zip(&ranges[1..]) {
        assert_eq!(before.end, after.start);
    }
    assert!(ranges.last().is_some_and(|last| last.end >= 8192 + 500 * 4096 + (128 << 10)));
    // Large requests to the backing, once the run is long.
    assert!(ranges.len() < 40, "{} requests", ranges.len());
}

#[test]
fn reach_grows_with_the_run_and_stays_within_what_is_allowed() {
    for length in [512, 4096, 5000, 65536] {
        let mut streams = Streams::default();
        for step in 0..60 {
            let end = (step + 1) * length;
            let stream = streams.on_request(Direction::Read, step * length, length);
            if let Some(range) = readahead::on_read(stream, end, 128 << 10, VOLUME) {
                assert!(range.end <= end + (128 << 10).min(end), "{range:?} after {end}");
                assert!(range.start >= end && range.start % 4096 == 0 && range.end % 4096 == 0);
            }
        }
    }
}

#[test]
fn nothing_is_read_ahead_past_the_end_or_for_random_readers_or_writers() {
    let ranges = read(VOLUME - 100_000, 10_000, 10, 64 << 10);
    assert_eq!(ranges.last().map(|last| last.end), Some(VOLUME));
    assert_eq!(read(0, 4096, 100, 0), []);
    let mut streams = Streams::default();
    let mut random = Random::new(1);
    for step in 0..1000 {
        let offset = random.below(1 << 30) * 8192;
        let stream = streams.on_request(Direction::Read, offset, 4096);
        assert_eq!(readahead::on_read(stream, offset + 4096, 1 << 20, u64::MAX), None);
        let stream = streams.on_request(Direction::Write, step * 4096, 4096);
        assert_eq!(readahead::on_read(stream, (step + 1) * 4096, 1 << 20, VOLUME), None);
    }
}

#[test]
fn requests_that_are_as_large_as_the_reach_are_not_read_ahead_of() {
    assert_eq!(read(0, 256 << 10, 30, 256 << 10), []);
    assert!(!read(0, 128 << 10, 30, 256 << 10).is_empty());
}
