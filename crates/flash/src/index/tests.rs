//! The index against a model that keeps whole hashes.

use std::collections::{HashMap, HashSet};

use entresol_random::{SplitMix, mix64};

use super::*;
use crate::error::ErrorKind;

const SEEDS: [u64; 4] = [1, 2, 3, 0x5eed];
const MAX: u64 = 1 << 20;

fn place(address: u64) -> Place {
    Place { address, size: SizeCode::covering(address % 5000 + 1) }
}

fn index(address_bits: u32) -> Index {
    Index::new(address_bits, MAX).unwrap()
}

/// Recomputes everything and asserts the invariants in the head of `index.rs`.
fn verify(index: &Index) {
    let lines = index.table.as_chunks::<SLOTS>().0;
    assert_eq!(lines.len(), index.current.buckets() + PADDING);
    let mut counted = index.spill.len() as u64;
    let old_reach = index.frontier_bucket + PADDING - 1;
    let new_start = index.current.home(index.frontier);
    assert!(index.frontier_bucket == 0 || new_start > old_reach, "the parts keep apart");
    let (mut fine_min, mut full_from) = (0, 0);
    for (bucket, line) in lines.iter().enumerate() {
        let used = line.iter().take_while(|slot| **slot != 0).count();
        assert!(line[used..].iter().all(|slot| *slot == 0), "empty slots come last");
        let old_part = index.frontier_bucket > 0 && bucket < old_reach;
        let mapping = if old_part { &index.previous } else { &index.current };
        for slot in &line[..used] {
            let home = bucket - distance(*slot) as usize;
            let fine = SlotFormat::fine(home, *slot);
            assert!(fine >= fine_min, "slots are in order of hash");
            assert!(home >= full_from, "no bucket with room between home and entry");
            fine_min = fine;
            assert!(home < mapping.buckets());
            let prefix = index.format.prefix(mapping, home, *slot);
            assert_eq!(prefix.hash >= index.frontier, !old_part, "each part holds its hashes");
            assert_eq!(mapping.home(prefix.hash), home, "the prefix leads home");
            assert_eq!(mapping.fine(prefix.hash) & 31, *slot >> 56 & 31);
        }
        counted += used as u64;
        if used < SLOTS {
            full_from = bucket + 1;
        }
    }
    assert_eq!(counted, index.len());
}

/// What one random run does; small spreads of hashes make clusters and spills.
struct Mix {
    hash_spread: u64,
    address_bits: u32,
    operations: u64,
    removes_in_10: u64,
    entries_max: usize,
}

#[derive(Default)]
struct Model {
    /// (hash, address) to (size, referenced, note).
    entries: HashMap<(u64, u64), (SizeCode, bool, u64)>,
    keys: Vec<(u64, u64)>,
    next_address: u64,
}

impl Model {
    fn fresh(&mut self) -> Place {
        self.next_address += 1;
        place(self.next_address)
    }

    fn pick(&self, random: &mut SplitMix) -> Option<usize> {
        (!self.keys.is_empty()).then(|| random.remainder(self.keys.len() as u64) as usize)
    }
}

fn hash_of(random: &mut SplitMix, spread: u64) -> u64 {
    mix64(random.remainder(spread) + 77)
}

fn step(index: &mut Index, model: &mut Model, mix: &Mix, random: &mut SplitMix) {
    let put = model.keys.len() < mix.entries_max && random.remainder(10) >= mix.removes_in_10;
    if put {
        let (hash, place, note) =
            (hash_of(random, mix.hash_spread), model.fresh(), random.next_u64());
        index.insert_noted(hash, place, note);
        model.entries.insert((hash, place.address), (place.size, false, note));
        model.keys.push((hash, place.address));
        return;
    }
    let Some(i) = model.pick(random) else { return };
    let (hash, address) = model.keys[i];
    match random.remainder(4) {
        0 => {
            let place = model.fresh();
            assert!(index.replace(hash, address, place));
            let (_, referenced, note) = model.entries.remove(&(hash, address)).unwrap();
            model.entries.insert((hash, place.address), (place.size, referenced, note));
            model.keys[i] = (hash, place.address);
        }
        1 => {
            assert!(index.mark_referenced(hash, address));
            model.entries.get_mut(&(hash, address)).unwrap().1 = true;
        }
        2 => {
            let expected = std::mem::take(&mut model.entries.get_mut(&(hash, address)).unwrap().1);
            assert_eq!(index.take_referenced(hash, address), expected);
        }
        _ => {
            assert!(index.remove(hash, address));
            model.entries.remove(&(hash, address));
            model.keys.swap_remove(i);
            assert!(!index.remove(hash, address));
            assert!(!index.contains(hash, address));
        }
    }
}

fn compare(index: &Index, model: &Model) {
    verify(index);
    assert_eq!(index.len() as usize, model.entries.len());
    let mut found = Candidates::default();
    for ((hash, address), (size, _, note)) in &model.entries {
        index.candidates(*hash, &mut found);
        let wanted = Place { address: *address, size: *size };
        assert!(found.iter().any(|place| place == wanted), "hash {hash:#x}");
        assert!(index.contains(*hash, *address));
        assert!((0..found.len()).any(|i| found.get(i) == Some(wanted)));
        if index.notes.is_some() {
            assert_eq!(index.note(*hash, *address), Some(*note));
        }
    }
    let expected: HashSet<u64> = model.entries.keys().map(|(_, address)| *address).collect();
    let mut scanned = HashSet::new();
    let mut cursor = 0;
    loop {
        cursor = index.scan(cursor, 3, &mut |place| assert!(scanned.insert(place.address)));
        assert_eq!(cursor << 40, 0);
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(scanned, expected, "a scan of an index at rest visits each entry once");
}

fn run(mix: &Mix, seed: u64) -> u64 {
    let mut random = SplitMix::new(seed);
    let mut index = index(mix.address_bits);
    let mut model = Model::default();
    index.begin_notes().unwrap();
    let mut spilled_max = 0;
    for operation in 0..mix.operations {
        step(&mut index, &mut model, mix, &mut random);
        spilled_max = spilled_max.max(index.spilled_len());
        if operation % (mix.operations / 16) == 0 {
            compare(&index, &model);
        }
    }
    compare(&index, &model);
    spilled_max
}

#[test]
fn random_operations_agree_with_the_model() {
    for seed in SEEDS {
        let wide = Mix {
            hash_spread: u64::MAX,
            address_bits: 30,
            operations: 40_000,
            removes_in_10: 3,
            entries_max: 30_000,
        };
        run(&wide, seed);
    }
}

#[test]
fn growth_and_shrinkage_agree_with_the_model() {
    for seed in SEEDS {
        let churn = Mix {
            hash_spread: u64::MAX,
            address_bits: 36,
            operations: 60_000,
            removes_in_10: 7,
            entries_max: 1_000,
        };
        run(&churn, seed);
    }
}

#[test]
fn crowded_hashes_spill_and_agree_with_the_model() {
    let mut spilled = 0;
    for seed in SEEDS {
        for hash_spread in [1, 7, 60, 300] {
            let crowded = Mix {
                hash_spread,
                address_bits: 24,
                operations: 6_000,
                removes_in_10: 4,
                entries_max: 1_500,
            };
            spilled += run(&crowded, seed);
        }
    }
    assert!(spilled > 1_000, "the test reached the spill: {spilled}");
}

#[test]
fn more_growth_than_hash_bits_loses_no_entry() {
    // A larger limit after a restart lets a table grow further than its start was chosen for.
    let mut random = SplitMix::new(9);
    let mut small = Index::new(36, 64).unwrap();
    let early: Vec<(u64, u64)> = (0..400).map(|i| (random.next_u64(), i)).collect();
    early.iter().for_each(|(hash, address)| small.insert(*hash, place(*address)));
    let layout = small.settle();
    let words = small.words().to_vec();
    let mut index = Index::restore(layout, bounds(1 << 19), &[], &mut filled_from(&words)).unwrap();
    for i in 0..1_200_000 {
        index.insert(random.next_u64(), place(1000 + i));
    }
    assert!(index.spilled_len() > 100, "old entries ran out of hash bits");
    verify(&index);
    for (hash, address) in early {
        let mut found = Candidates::default();
        index.candidates(hash, &mut found);
        assert!(found.iter().any(|place| place.address == address));
        assert!(index.remove(hash, address));
    }
    verify(&index);
}

#[test]
fn memory_per_entry_stays_within_10_2_bytes_at_every_moment_of_growth() {
    let mut index = index(33);
    let mut random = SplitMix::new(4);
    let (mut worst, mut load_min, mut load_max) = (0.0f64, 1.0f64, 0.0f64);
    let mut check_at = 100_000.0;
    for i in 0..2_000_000u64 {
        index.insert(random.next_u64(), place(i));
        if i as f64 >= check_at {
            check_at *= 1.001;
            worst = worst.max(index.bytes() as f64 / index.len() as f64);
            let load = index.len() as f64 / index.table.len() as f64;
            (load_min, load_max) = (load_min.min(load), load_max.max(load));
        }
    }
    assert!(worst <= 10.2, "{worst} bytes an entry");
    assert!(load_min >= 0.79 && load_max <= 0.885, "load {load_min} to {load_max}");
    assert!(index.spilled_len() <= 2, "{} spilled", index.spilled_len());
}

#[test]
fn absent_hashes_match_rarely_even_after_a_dozen_doublings() {
    // 2^30 units of 32 bytes: 32 GiB a shard.
    let mut index = Index::new(30, MAX).unwrap();
    assert_eq!(index.current.buckets(), 64);
    let mut random = SplitMix::new(5);
    for i in 0..2_000_000u64 {
        index.insert(random.next_u64(), place(i));
    }
    let mut found = Candidates::default();
    let lookups = 1_000_000;
    let mut false_matches = 0;
    for _ in 0..lookups {
        index.candidates(random.next_u64(), &mut found);
        false_matches += found.len();
    }
    let rate = false_matches as f64 / f64::from(lookups);
    assert!(rate <= 1e-4, "{rate} false matches a lookup");
}

#[test]
fn a_scan_visits_what_stays_while_the_table_grows_and_changes() {
    for seed in SEEDS {
        let mut random = SplitMix::new(seed);
        let mut index = index(32);
        let stay: Vec<(u64, u64)> = (0..20_000).map(|i| (random.next_u64(), i)).collect();
        stay.iter().for_each(|(hash, address)| index.insert(*hash, place(*address)));
        let mut others = Vec::new();
        let mut seen = HashSet::new();
        let mut cursor = 0;
        let mut address = 1_000_000;
        loop {
            cursor = index.scan(cursor, 5, &mut |place| {
                seen.insert(place.address);
            });
            if cursor == 0 {
                break;
            }
            for _ in 0..random.remainder(150) {
                address += 1;
                others.push((random.next_u64(), address));
                index.insert(others[others.len() - 1].0, place(address));
                if random.remainder(3) == 0 {
                    let (hash, address) =
                        others.swap_remove(random.remainder(others.len() as u64) as usize);
                    assert!(index.remove(hash, address));
                }
            }
        }
        assert!(stay.iter().all(|(_, address)| seen.contains(address)), "seed {seed}");
        assert!(index.len() > 40_000, "the table grew meanwhile");
    }
}

#[test]
fn retain_keeps_exactly_what_is_wanted() {
    for (seed, spread) in [(1, u64::MAX), (2, 40), (3, 3000)] {
        let mut random = SplitMix::new(seed);
        let mut index = index(28);
        let all: Vec<(u64, u64)> = (0..5_003).map(|i| (hash_of(&mut random, spread), i)).collect();
        all.iter().for_each(|(hash, address)| index.insert(*hash, place(*address)));
        let mut visited = 0;
        let removed = index.retain(&mut |place| {
            visited += 1;
            place.address % 3 != 0
        });
        assert_eq!((visited, removed), (5_003, 1_668), "seed {seed}");
        verify(&index);
        for (hash, address) in all {
            assert_eq!(index.contains(hash, address), address % 3 != 0);
        }
    }
}

/// Hands `words` out, as much as is asked for.
fn filled_from(words: &[u64]) -> impl FnMut(&mut [u64]) -> Result<()> + '_ {
    let mut rest = words;
    move |table| {
        let (part, behind) = rest.split_at(table.len());
        table.copy_from_slice(part);
        rest = behind;
        Ok(())
    }
}

fn bounds(buckets_max: u64) -> Bounds {
    Bounds { buckets_max, addresses_end: 1 << 36 }
}

#[test]
fn a_checkpoint_restores_the_same_index() {
    for (seed, spread) in [(1, u64::MAX), (2, 50)] {
        let mut random = SplitMix::new(seed);
        let mut index = index(30);
        let all: Vec<(u64, u64)> = (0..30_000).map(|i| (hash_of(&mut random, spread), i)).collect();
        all.iter().for_each(|(hash, address)| index.insert(*hash, place(*address)));
        let layout = index.settle();
        let words = index.words().to_vec();
        let spilled: Vec<Spilled> = index.spilled_entries().copied().collect();
        let load = |words: &[u64], layout| {
            Index::restore(layout, bounds(MAX), &spilled, &mut filled_from(words))
        };
        let mut restored = load(&words, layout).unwrap();
        verify(&restored);
        assert!(all.iter().all(|(hash, address)| restored.contains(*hash, *address)));
        (0..9_000).for_each(|i| restored.insert(random.next_u64(), place(40_000 + i)));
        verify(&restored);
        assert!(all.iter().all(|(hash, address)| restored.contains(*hash, *address)));

        // Damage is found, whatever it is.
        let fewer = Layout { entries: layout.entries - 1, ..layout };
        assert_eq!(load(&words, fewer).unwrap_err().kind(), ErrorKind::Corrupt);
        let few = Bounds { buckets_max: MAX, addresses_end: 29_999 };
        let refused = Index::restore(layout, few, &spilled, &mut filled_from(&words));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Corrupt);
        let absurd = Layout { address_bits: 63, ..layout };
        assert_eq!(load(&words, absurd).unwrap_err().kind(), ErrorKind::Corrupt);
        for _ in 0..200 {
            let mut words = words.clone();
            let at = random.remainder(words.len() as u64) as usize;
            words[at] = random.next_u64();
            if let Ok(mut index) = load(&words, layout) {
                (0..100).for_each(|i| index.insert(random.next_u64(), place(i)));
                index.retain(&mut |place| place.address % 2 == 0);
            }
        }
    }
}

#[test]
fn a_table_at_its_limit_stays_exact() {
    let mut random = SplitMix::new(6);
    let mut index = Index::new(30, 200).unwrap();
    let all: Vec<(u64, u64)> = (0..4_000).map(|i| (random.next_u64(), i)).collect();
    all.iter().for_each(|(hash, address)| index.insert(*hash, place(*address)));
    assert!(index.len() > index.entries_max() && index.spilled_len() > 2_000);
    verify(&index);
    for (hash, address) in all {
        assert!(index.remove(hash, address));
    }
    verify(&index);
    assert!(index.is_empty());
}

#[test]
fn room_for_what_is_expected_is_there_from_the_start() {
    let mut index = Index::with_expected(30, MAX, 100_000).unwrap();
    let (bytes, mut random) = (index.bytes(), SplitMix::new(8));
    (0..100_000).for_each(|i| index.insert(random.next_u64(), place(i)));
    assert_eq!(index.bytes(), bytes);
    verify(&index);
}

#[test]
fn an_index_filled_in_order_is_as_good_as_one_filled_at_random() {
    for seed in SEEDS {
        let mut random = SplitMix::new(seed);
        // Evenly spread, at the highest load; then crowded, so that entries spill.
        for (count, room, shift) in [(50_000, 50_000, 0), (3_000, 100, 0), (5_000, 9_000, 54)] {
            let mut hashes: Vec<u64> =
                (0..count).map(|i| random.next_u64() >> shift << (i % 2 * shift)).collect();
            hashes.sort_unstable();
            let mut index = Index::with_expected(30, 1 << 13, room).unwrap();
            let mut end = 0;
            let entries: Vec<_> = (1..).map(place).zip(&hashes).map(|(p, h)| (*h, p)).collect();
            for part in entries.chunks(1 + entries.len() / 3) {
                end = index.append_ordered(end, part.iter().copied());
            }
            verify(&index);
            assert_eq!(index.len(), count, "seed {seed}");
            let mut found = Candidates::default();
            for (hash, place) in &entries {
                index.candidates(*hash, &mut found);
                assert!(found.iter().any(|p| p == *place), "seed {seed}");
            }
            for (hash, wanted) in entries.iter().take(500) {
                assert!(index.remove(*hash, wanted.address), "seed {seed}");
                index.insert(random.next_u64(), *wanted);
            }
            index.finish_growth();
            verify(&index);
        }
    }
}
