//! Miss ratios of the cache on synthetic traces, next to LRU and CLOCK of the same memory.

use std::collections::HashMap;

use super::MemoryCache;
use super::tests::{hash, item, mix};

const VALUE: [u8; 420] = [3; 420];
/// Header, key, value and the slot of the index.
const ENTRY_BYTES: usize = 52 + 8 + 420 + 10;
const CAPACITY: usize = 4 << 20;
const ENTRIES: usize = CAPACITY / ENTRY_BYTES;

#[test]
fn misses_are_no_more_than_those_of_lru_on_skewed_traces() {
    let keys = ENTRIES as u64 * 8;
    let skewed = Zipf::new(keys, 0.99);
    let mild = Zipf::new(keys, 0.8);
    let trace = |draw: &dyn Fn(u64) -> u64| (0..400_000).map(draw).collect::<Vec<u64>>();
    let traces = [
        ("zipf 0.99", trace(&|i| skewed.key(mix(i)))),
        ("zipf 0.8", trace(&|i| mild.key(mix(i)))),
        ("zipf 0.99 with scans", trace(&|i| scanning(i, keys, &skewed))),
        ("zipf 0.99, moving", trace(&|i| skewed.key(mix(i)) + i / 100_000 * (keys / 50))),
        ("uniform", trace(&|i| mix(i) % keys)),
        ("each twice", trace(&|i| twice(i))),
        ("half of it each twice", trace(&|i| twice_among(i, keys, &skewed))),
        ("loop of 1.2 × memory", trace(&|i| i % (ENTRIES as u64 * 12 / 10))),
    ];
    println!("{:24} {:>8} {:>8} {:>8}  miss ratio, %", "trace", "this", "LRU", "CLOCK");
    let mut table = Vec::new();
    for (name, trace) in &traces {
        let row = [ours(trace).0, lru(trace), clock(trace)];
        println!("{name:24} {:8.2} {:8.2} {:8.2}", row[0], row[1], row[2]);
        table.push(row);
    }
    for ([ours, lru, clock], (name, _)) in table.iter().zip(&traces) {
        let margin = match *name {
            "uniform" => 1.0,
            "half of it each twice" => 0.1,
            _ => 0.0,
        };
        assert!(*ours <= lru + margin && *ours <= clock + margin, "{name}: {ours} {lru} {clock}");
    }
}

#[test]
fn what_is_hardly_ever_asked_for_again_is_put_in_less_often() {
    let keys = ENTRIES as u64 * 8;
    let skewed = Zipf::new(keys, 0.99);
    let trace = |draw: &dyn Fn(u64) -> u64| (0..400_000).map(draw).collect::<Vec<u64>>();
    let (missed, put_in) = ours(&trace(&|i| skewed.key(mix(i))));
    assert!(missed < 23.5 && put_in < missed * 0.6, "zipf 0.99: {missed}, {put_in} %");
    let (missed, put_in) = ours(&trace(&|i| mix(i) % keys));
    assert!(put_in < missed * 0.5, "uniform: {missed}, {put_in} %");
    for (name, trace) in [
        ("each twice", trace(&|i| twice(i))),
        ("half of it each twice", trace(&|i| twice_among(i, keys, &skewed))),
    ] {
        let (missed, put_in) = ours(&trace);
        assert!(put_in >= missed, "{name}: {missed}, {put_in} %");
    }
}

/// Each key is asked for twice, 100 gets apart.
fn twice(i: u64) -> u64 {
    i / 200 * 100 + i % 100
}

/// Half of the gets are of such keys.
fn twice_among(i: u64, keys: u64, skewed: &Zipf) -> u64 {
    if i.is_multiple_of(2) { skewed.key(mix(i)) } else { keys + twice(i / 2) }
}

/// Now and then, a scan of keys that are not asked for again.
fn scanning(i: u64, keys: u64, skewed: &Zipf) -> u64 {
    if i % 50_000 < 10_000 { keys + i } else { skewed.key(mix(i)) }
}

/// Gets that missed, and entries put in, % of the gets.
fn ours(trace: &[u64]) -> (f64, f64) {
    let cache = MemoryCache::new(CAPACITY as u64, 1).unwrap();
    let mut misses = 0;
    for number in trace {
        let key = number.to_be_bytes();
        let item = item(*number, &key, &VALUE, 1);
        if !cache.get(hash(*number), item.space, &key, &mut |_| {}) {
            cache.insert_found_if(hash(*number), item, &|| true);
            misses += 1;
        }
    }
    (percent(misses, trace), percent(cache.statistics().inserts as u32, trace))
}

fn lru(trace: &[u64]) -> f64 {
    let mut used: HashMap<u64, u64> = HashMap::new();
    let mut order = std::collections::BTreeMap::new();
    let mut misses = 0;
    for (key, time) in trace.iter().zip(0u64..) {
        match used.insert(*key, time) {
            Some(before) => {
                order.remove(&before);
            }
            None => misses += 1,
        }
        order.insert(time, *key);
        if order.len() > ENTRIES
            && let Some((_, oldest)) = order.pop_first()
        {
            used.remove(&oldest);
        }
    }
    percent(misses, trace)
}

fn clock(trace: &[u64]) -> f64 {
    let mut place: HashMap<u64, usize> = HashMap::new();
    let mut slots: Vec<(u64, bool)> = Vec::new();
    let (mut hand, mut misses) = (0, 0);
    for key in trace {
        if let Some(at) = place.get(key) {
            slots[*at].1 = true;
            continue;
        }
        misses += 1;
        if slots.len() < ENTRIES {
            place.insert(*key, slots.len());
            slots.push((*key, false));
            continue;
        }
        while std::mem::take(&mut slots[hand].1) {
            hand = (hand + 1) % ENTRIES;
        }
        place.remove(&slots[hand].0);
        place.insert(*key, hand);
        slots[hand] = (*key, false);
        hand = (hand + 1) % ENTRIES;
    }
    percent(misses, trace)
}

fn percent(misses: u32, trace: &[u64]) -> f64 {
    f64::from(misses) * 100.0 / trace.len() as f64
}

/// Ranks drawn by inversion of the cumulated weights.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(keys: u64, exponent: f64) -> Zipf {
        let mut sum = 0.0;
        let cumulated = (1..=keys).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Zipf(cumulated.collect())
    }

    fn key(&self, random: u64) -> u64 {
        let total = self.0[self.0.len() - 1];
        let wanted = (random >> 11) as f64 / (1u64 << 53) as f64 * total;
        self.0.partition_point(|sum| *sum < wanted) as u64
    }
}
