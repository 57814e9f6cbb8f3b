//! Streams are found, told apart and forgotten.

use entresol_sim::Random;
use entresol_volume::policy::sequential::{Direction, REQUESTS_MIN, STREAMS, Streams};

const MIB: u64 = 1 << 20;

#[test]
fn interleaved_streams_grow_each_by_its_own() {
    let mut streams = Streams::default();
    let count = STREAMS as u64 - 1;
    for step in 0..64 {
        for stream in 0..count {
            let offset = stream * 1000 * MIB + step * 65536;
            let direction = if stream % 2 == 0 { Direction::Read } else { Direction::Write };
            let run = *streams.on_request(direction, offset, 65536);
            assert_eq!((run.run_bytes, run.requests), ((step + 1) * 65536, step + 1));
        }
        // One stray request in between, of a place of its own, does not displace any.
        assert_eq!(streams.on_request(Direction::Read, step * 77 * MIB + 1, 512).requests, 1);
    }
}

#[test]
fn the_stream_that_was_continued_longest_ago_makes_room() {
    let mut streams = Streams::default();
    let begin = |streams: &mut Streams, offset: u64| {
        for step in 0..REQUESTS_MIN {
            let stream = streams.on_request(Direction::Read, offset + step * 4096, 4096);
            assert_eq!(stream.requests, step + 1);
        }
    };
    for stream in 0..STREAMS as u64 {
        begin(&mut streams, stream * MIB);
    }
    assert_eq!(streams.on_request(Direction::Read, 16_384, 4096).requests, 5);
    begin(&mut streams, 1000 * MIB);
    assert_eq!(streams.on_request(Direction::Read, 20_480, 4096).requests, 6);
    assert_eq!(streams.on_request(Direction::Read, MIB + 16_384, 4096).requests, 1);
}

// Readers of an index often ask for the neighbour of a block they asked for before: each pair was
// taken for a stream, and hundreds a second of them pushed out every stream there was.
#[test]
fn neighbours_that_are_read_now_and_then_do_not_push_out_streams() {
    let mut random = Random::new(7);
    let mut streams = Streams::default();
    let mut followed = 0;
    for step in 0..100 {
        for stream in 0..64 {
            let offset = (1 + stream) * 1000 * MIB + step * 8192;
            let stream = streams.on_request(Direction::Read, offset, 8192);
            followed += u64::from(stream.is_established());
            for _ in 0..3 {
                let first = random.below(1 << 14) * 8 * 4096;
                streams.on_request(Direction::Read, first, 4096);
                streams.on_request(Direction::Read, first + 4096, 4096);
            }
        }
    }
    assert!(followed > 64 * 97 * 9 / 10, "{followed} of {}", 64 * 97);
}

// An OLTP load reads dozens of streams, each a few times a second, among a thousand requests at
// random: not one was ever seen to be a stream.
#[test]
fn requests_at_random_do_not_push_out_streams_that_advance_slowly() {
    let mut random = Random::new(6);
    let mut streams = Streams::default();
    let mut followed = 0;
    for step in 0..100 {
        for stream in 0..32 {
            let offset = (1 + stream) * 1000 * MIB + step * 8192;
            followed += u64::from(streams.on_request(Direction::Read, offset, 8192).requests > 1);
            for _ in 0..16 {
                streams.on_request(Direction::Read, random.below(1 << 18) * 4096, 4096);
            }
        }
    }
    assert!(followed > 32 * 99 * 95 / 100, "{followed} of {}", 32 * 99);
}

#[test]
fn reads_do_not_continue_writes() {
    let mut streams = Streams::default();
    streams.on_request(Direction::Write, 0, 4096);
    assert_eq!(streams.on_request(Direction::Read, 4096, 4096).requests, 1);
    assert_eq!(streams.on_request(Direction::Write, 4096, 4096).requests, 2);
}

#[test]
fn only_what_is_longer_than_the_cutoff_goes_around() {
    let mut streams = Streams::default();
    let mut around = Vec::new();
    for step in 0..6 {
        let stream = streams.on_request(Direction::Read, step * MIB, MIB);
        around.push(stream.goes_around(4 * MIB));
        assert!(!stream.goes_around(0));
    }
    assert_eq!(around, [false, false, false, false, true, true]);
}

#[test]
fn requests_at_random_in_a_small_place_are_no_stream() {
    let mut random = Random::new(5);
    let mut streams = Streams::default();
    let mut longest = 0;
    for _ in 0..100_000 {
        let offset = random.below(4096) * 4096;
        longest = longest.max(streams.on_request(Direction::Read, offset, 4096).run_bytes);
    }
    assert!(longest < MIB / 8, "a run of {longest} bytes");
}

#[test]
fn the_ends_of_the_numbers_are_places_like_others() {
    let mut streams = Streams::default();
    assert_eq!(streams.on_request(Direction::Read, u64::MAX, u64::MAX).requests, 1);
    assert_eq!(streams.on_request(Direction::Write, 0, 0).requests, 1);
}
