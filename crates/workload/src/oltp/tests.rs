//! The stream and the cache's counters against recordings of the original.

use super::*;

const FIXED: &str = include_str!("../../tests/vectors/bsu2-45-45-10MiB-fixed.txt");
const V2: &str = include_str!("../../tests/vectors/bsu32-900-900-200MiB-v2.txt");
const CLASSIC: &str = include_str!("../../tests/vectors/orig-mix-bsu32-900-900-200MiB-classic.txt");
const STATISTICS: &str = include_str!("../../tests/vectors/run2-cache10-new.pblio.data.jsonl");

const MIB: u64 = 1 << 20;

fn configuration(mib: [u64; 3], bsus: u64, style: Style) -> Configuration {
    let layout = Layout::new(mib.map(|size| size * MIB / BLOCK_BYTES)).unwrap();
    Configuration { layout, bsus, contexts: 1, style, mix: Mix::Pblio, seed: None }
}

fn assert_recorded(configuration: &Configuration, recording: &str) {
    let mut stream = RequestStream::new(configuration);
    let lines = recording.lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for (number, line) in lines.enumerate() {
        assert_eq!(stream.next().to_string(), line, "request {number}");
        count += 1;
    }
    assert!(count >= 3_000, "{count}");
}

fn simulate(configuration: &Configuration, cache_bytes: u64, seconds: u64) -> Period {
    let mut simulation = Simulation::new(CacheModel::new(cache_bytes), 0, seconds);
    let mut stream = RequestStream::new(configuration);
    while simulation.serve(&stream.next()) {}
    simulation.end()
}

#[test]
fn the_stream_is_the_recorded_one_request_by_request() {
    assert_recorded(&configuration([45, 45, 10], 2, Style::Fixed), FIXED);
    assert_recorded(&configuration([900, 900, 200], 32, Style::V2), V2);
    let original = configuration([900, 900, 200], 32, Style::Classic);
    assert_recorded(&Configuration { mix: Mix::Original, ..original }, CLASSIC);
}

#[test]
fn the_cache_counts_what_the_original_counted_in_thirty_seconds() {
    // Requests, reads, read hits, invalidations, invalidate hits, insertions, hit rates.
    let rows = [
        (Style::Fixed, [2_958, 2_513, 1_120, 513, 347, 1_906], "0.4457 0.6764"),
        (Style::V2, [2_892, 2_156, 912, 480, 325, 1_724], "0.4230 0.6771"),
        (Style::Classic, [2_962, 2_469, 1_158, 532, 311, 1_843], "0.4690 0.5846"),
    ];
    for (style, expected, rates) in rows {
        let end = simulate(&configuration([45, 45, 10], 2, style), 10 * MIB, 30);
        let (cache, _) = end.cache.unwrap();
        let found = [
            end.tally.total().requests,
            cache.reads,
            cache.read_hits,
            cache.invalidations,
            cache.invalidate_hits,
            cache.insertions,
        ];
        assert_eq!(found, expected, "{style:?}");
        assert_eq!(cache.evictions, 0, "{style:?}");
        let found = format!("{:.4} {:.4}", cache.read_hit_rate(), cache.invalidate_hit_rate());
        assert_eq!(found, rates, "{style:?}");
    }
}

#[test]
fn larger_units_and_a_cache_that_evicts_give_the_rates_that_were_recorded() {
    // The original reported 1598.9 requests a second and a hit rate of 0.1911.
    let end = simulate(&configuration([900, 900, 200], 32, Style::V2), 200 * MIB, 60);
    let (cache, _) = end.cache.unwrap();
    assert_eq!(format!("{:.1}", end.tally.total().requests as f64 / 60.0), "1598.9");
    assert_eq!(format!("{:.4}", cache.read_hit_rate()), "0.1911");
    assert!(cache.evictions > 0);
}

#[test]
fn the_counters_along_the_way_are_those_the_original_wrote_down() {
    let number = |line: &str, name: &str| -> u64 {
        let (_, rest) = line.split_once(&format!("\"{name}\":")).unwrap();
        rest.split([',', '}']).next().unwrap().parse().unwrap()
    };
    let counts = |line: &str, part: &str| {
        let (_, rest) = line.split_once(&format!("\"{part}\":{{\"latency\"")).unwrap();
        [number(rest, "ios"), number(rest, "blocks")]
    };
    let mut simulation = Simulation::new(CacheModel::new(10 * MIB), 0, 30);
    let mut stream = RequestStream::new(&configuration([45, 45, 10], 2, Style::V2));
    for line in STATISTICS.lines() {
        // Its periods end by a clock of its own, so requests are counted instead of seconds.
        let expected = ["total", "read", "write"].map(|part| counts(line, part));
        while simulation.period().tally.total().requests < expected[0][0] {
            assert!(simulation.serve(&stream.next()));
        }
        let Period { tally, cache } = simulation.period();
        let found = [tally.total(), tally.reads(), tally.writes()];
        assert_eq!(found.map(|count| [count.requests, count.blocks]), expected);
        let (c, l) = cache.unwrap();
        let found = [
            ("reads", c.reads),
            ("readhits", c.read_hits),
            ("invalidations", c.invalidations),
            ("invalidatehits", c.invalidate_hits),
            ("insertions", c.insertions),
            ("evictions", c.evictions),
            ("ramhits", l.memory_hits),
            ("storagehits", l.device_hits),
            ("wraps", l.wraps),
            ("segments_skipped", l.segments_skipped),
        ];
        for (name, found) in found {
            assert_eq!(found, number(line, name), "{name}");
        }
        let (_, segments) = line.split_once("mean_segmentread_usecs").unwrap();
        assert_eq!(l.segment_reads, number(segments, "count"));
        let (_, segments) = line.split_once("mean_segmentwrite_usecs").unwrap();
        assert_eq!(l.segment_writes, number(segments, "count"));
    }
}

#[test]
fn every_insertion_is_a_missed_or_a_written_block_and_all_that_stay_are_counted() {
    for (cache_mib, seed) in [(1, 1), (3, 2), (10, 3), (40, 4), (200, 5)] {
        for style in [Style::Classic, Style::Fixed, Style::V2] {
            let configuration = configuration([45, 45, 10], 20, style);
            let mut stream =
                RequestStream::new(&Configuration { seed: Some(seed), ..configuration });
            let mut cache = CacheModel::new(cache_mib * MIB).unwrap();
            for number in 0..20_000 {
                cache.serve(&stream.next());
                let c = cache.counters();
                let at = format!("seed {seed}, {cache_mib} MiB, {style:?}, request {number}");
                assert_eq!(c.insertions, c.reads - c.read_hits + c.invalidations, "{at}");
                assert_eq!(
                    cache.occupancy(),
                    c.insertions - c.evictions - c.invalidate_hits,
                    "{at}"
                );
                assert!(cache.occupancy() * BLOCK_BYTES <= cache.capacity_bytes(), "{at}");
                let log = cache.log_counters();
                assert!(log.memory_hits + log.device_hits <= c.read_hits, "{at}");
            }
        }
    }
}

#[test]
fn a_block_is_a_hit_if_and_only_if_it_was_put_and_neither_evicted_nor_written_since() {
    let configuration = configuration([45, 45, 10], 4, Style::V2);
    for seed in 1..=4 {
        let mut stream = RequestStream::new(&Configuration { seed: Some(seed), ..configuration });
        // A cache that nothing is evicted from holds exactly what was touched before.
        let mut cache = CacheModel::new(200 * MIB).unwrap();
        let mut touched = std::collections::BTreeSet::new();
        for number in 0..10_000 {
            let request = stream.next();
            let before = cache.counters();
            cache.serve(&request);
            let now = cache.counters().since(&before);
            if request.asu == Asu::Log {
                assert_eq!(now, CacheCounters::default(), "seed {seed}, request {number}");
                continue;
            }
            let known = request.range().filter(|block| !touched.insert((request.asu, *block)));
            let known = known.count() as u64;
            let hits = now.read_hits + now.invalidate_hits;
            assert_eq!(hits, known, "seed {seed}, request {number}: {request}");
        }
    }
}

#[test]
fn requests_lie_within_their_units_and_come_in_the_order_of_their_times() {
    for blocks in [256, 300, 1_111, 2_048, 11_520, 20_480, 32_768, 163_840, 1_000_003] {
        let layout = Layout::new([blocks; 3]).unwrap();
        for style in [Style::Classic, Style::Fixed, Style::V2] {
            for mix in [Mix::Pblio, Mix::Original] {
                let seed = Some(blocks);
                let all = Configuration { layout, bsus: 5, contexts: 3, style, mix, seed };
                let mut stream = RequestStream::new(&all);
                let mut before = 0;
                for _ in 0..5_000 {
                    let request = stream.next();
                    let end = request.range().end;
                    assert!(end <= layout.blocks(request.asu), "{all:?}: {request}");
                    assert!(request.due >= before, "{all:?}: {request}");
                    before = request.due;
                }
            }
        }
    }
}

#[test]
fn the_mixes_read_as_much_and_the_streams_take_the_shares_that_are_documented() {
    for (mix, reads) in [(Mix::Pblio, 0.552), (Mix::Original, 0.394)] {
        let configuration = configuration([900, 900, 200], 32, Style::Fixed);
        let mut stream = RequestStream::new(&Configuration { mix, ..configuration });
        let mut tally = Tally::default();
        for _ in 0..200_000 {
            tally.count(&stream.next(), 0);
        }
        let total = tally.total().requests as f64;
        assert!((tally.reads().requests as f64 / total - reads).abs() < 0.01, "{mix:?}");
        let shares = [0.596, 0.123, 0.281];
        for (asu, share) in Asu::ALL.into_iter().zip(shares) {
            let found = tally.asu(asu).total().requests as f64 / total;
            assert!((found - share).abs() < 0.005, "{mix:?} {asu:?} {found}");
        }
    }
}

#[test]
fn asking_one_context_alone_leaves_the_others_where_they_are() {
    let all = Configuration { contexts: 2, ..configuration([900, 900, 200], 200, Style::Fixed) };
    let mut alone = RequestStream::new(&all);
    let before = alone.clone();
    let first: Vec<Request> = (0..100).map(|_| alone.next_of(1)).collect();
    assert!(first.windows(2).all(|pair| pair[0].due <= pair[1].due));
    // The other context goes on from the same state, with other random numbers.
    let mut other = before;
    assert_eq!(other.next_of(0).due, alone.next_of(0).due);
}

#[test]
fn a_seed_makes_another_stream_and_the_same_seed_the_same() {
    let stream = |seed| {
        let all = Configuration { seed, ..configuration([45, 45, 10], 2, Style::Fixed) };
        let mut stream = RequestStream::new(&all);
        (0..50).map(|_| stream.next()).collect::<Vec<_>>()
    };
    assert_eq!(stream(Some(7)), stream(Some(7)));
    assert_ne!(stream(Some(7)), stream(Some(8)));
    assert_ne!(stream(Some(0)), stream(None));
}
