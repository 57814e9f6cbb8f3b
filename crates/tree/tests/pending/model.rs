//! Random operations, each compared with a map of lists.

use std::collections::BTreeMap;
use std::ops::Bound;

use entresol_tree::Sequence;
use entresol_tree::format::Effect;
use entresol_tree::pending::{Arena, Entry, Gathered, Pending, Runs};
use entresol_workload::Random;

use crate::{Owned, seeds};

/// The changes of each key, oldest first.
#[derive(Default)]
struct Model {
    entries: BTreeMap<Vec<u8>, Vec<Owned>>,
}

impl Model {
    fn insert(&mut self, key: &[u8], new: Owned) {
        let list = self.entries.entry(key.to_vec()).or_default();
        let older = list.partition_point(|change| change.sequence < new.sequence);
        let is_known = list.get(older).is_some_and(|change| change.sequence == new.sequence);
        let is_covered = older == 0 && list.first().is_some_and(Model::replaces);
        if is_known || is_covered {
            return;
        }
        let from = if Model::replaces(&new) { 0 } else { older };
        list.splice(from..older, [new]);
    }

    fn replaces(change: &Owned) -> bool {
        change.effect != Effect::Part
    }

    fn remove_through(&mut self, low: &[u8], high: Option<&[u8]>, through: u64) {
        let before_high = |key: &[u8]| high.is_none_or(|high| key < high);
        for (key, list) in &mut self.entries {
            if key.as_slice() >= low && before_high(key) {
                list.retain(|change| change.sequence > through);
            }
        }
        self.entries.retain(|_, list| !list.is_empty());
    }

    fn changes(&self) -> u64 {
        self.entries.values().map(|list| list.len() as u64).sum()
    }

    fn bytes_in(&self, low: &[u8], high: Option<&[u8]>) -> u64 {
        let within = |key: &[u8]| key >= low && high.is_none_or(|high| key < high);
        let entries = self.entries.iter().filter(|(key, _)| within(key));
        let bytes = entries.map(|(key, list)| {
            key.len() + list.iter().map(|change| change.value.len()).sum::<usize>()
        });
        bytes.sum::<usize>() as u64
    }
}

/// How the keys of a run look.
#[derive(Clone, Copy, Debug)]
enum Keys {
    /// A few bytes of three kinds: many keys are the start of another one, and go on with zeros.
    Short,
    /// A long start that all keys share.
    Prefixed {
        bytes: usize,
    },
    /// Few partitions, and rows in order within them.
    Partitioned,
    Random,
}

struct Run {
    random: Random,
    keys: Keys,
    universe: u64,
    parts: u64,
    arena: Arena,
    pending: Pending,
    model: Model,
    sequence: u64,
    refused: u64,
}

impl Run {
    fn new(seed: u64, universe: Option<u64>) -> Run {
        let mut random = Random::new(seed);
        let keys = match random.below(5) {
            0 => Keys::Short,
            1 => Keys::Prefixed { bytes: random.below(60) as usize },
            2 => Keys::Prefixed { bytes: 1900 },
            3 => Keys::Partitioned,
            _ => Keys::Random,
        };
        let universe = universe.unwrap_or([20, 300, 4000][random.below(3) as usize]);
        let parts = [0, 20, 90][random.below(3) as usize];
        let cap = if random.below(3) == 0 { 24 << 16 } else { 1 << 30 };
        println!("seed {seed}: {keys:?}, {universe} keys, {parts} % parts, cap {cap}");
        let (arena, pending, model) = (Arena::new(cap), Pending::new(), Model::default());
        Run { random, keys, universe, parts, arena, pending, model, sequence: 1000, refused: 0 }
    }

    fn key(&mut self) -> Vec<u8> {
        let number = self.random.below(self.universe);
        let mixed = entresol_workload::mix64(number);
        match self.keys {
            Keys::Short => {
                let digits = (0..1 + number % 7).map(|digit| (mixed >> (8 * digit)) % 3);
                digits.map(|digit| [0, b'a', 0xff][digit as usize]).collect()
            }
            Keys::Prefixed { bytes } => {
                let mut key = vec![b'k'; bytes];
                key.extend_from_slice(&mixed.to_be_bytes()[..1 + number as usize % 8]);
                key
            }
            Keys::Partitioned => {
                let mut key = b"table of rows/".to_vec();
                key.extend_from_slice(&entresol_workload::mix64(number % 5).to_be_bytes());
                key.extend_from_slice(&number.to_be_bytes());
                key
            }
            Keys::Random => [mixed, number].map(u64::to_be_bytes).concat(),
        }
    }

    fn new_change(&mut self) -> Owned {
        self.sequence += 1 + self.random.below(3);
        let effect = match self.random.below(100) {
            share if share < self.parts => Effect::Part,
            share if share % 5 == 0 => Effect::Remove,
            share if share % 5 == 1 => Effect::Separate,
            _ => Effect::Put,
        };
        let bytes = match self.random.below(100) {
            0 => self.random.below(8192),
            1..30 => self.random.below(20),
            _ => 20 + self.random.below(150),
        };
        let mut value = vec![0; bytes as usize];
        self.random.fill(&mut value);
        // A sequence has one change. Some come late, and a few come twice.
        let sequence = self.sequence - self.random.below(5) / 4 * self.random.below(500);
        Owned { sequence, effect, value }
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..80 => self.insert(),
            80..90 => self.compare_key(),
            90..96 => self.compare_range(),
            _ => self.remove(),
        }
        assert_eq!(self.pending.len(), self.model.changes(), "number of changes");
    }

    fn insert(&mut self) {
        let (key, new) = (self.key(), self.new_change());
        match self.pending.insert(&mut self.arena, new.of_key(&key)) {
            Ok(()) => self.model.insert(&key, new),
            Err(full) => {
                assert_eq!(full.cap_bytes, self.arena.cap_bytes());
                self.refused += 1;
                self.compare_all();
                self.remove();
            }
        }
    }

    fn compare_key(&mut self) {
        let key = self.key();
        let found = self.pending.get(&self.arena, &key);
        assert!(found.clone().all(|change| change.key == key));
        let found: Vec<Owned> = found.map(Owned::of).collect();
        let mut expected = self.model.entries.get(&key).cloned().unwrap_or_default();
        expected.reverse();
        assert_eq!(found, expected, "changes of {key:?}");
    }

    fn compare_range(&mut self) {
        let mut bound = || {
            let key = self.key();
            match self.random.below(3) {
                0 => Bound::Unbounded,
                1 => Bound::Included(key),
                _ => Bound::Excluded(key),
            }
        };
        let (low, high) = (bound(), bound());
        let low = low.as_ref().map(Vec::as_slice);
        let high = high.as_ref().map(Vec::as_slice);
        self.compare_between(low, high);
        let (from, to) = (self.key(), self.key());
        let to = (self.random.below(4) > 0).then_some(to.as_slice());
        let bytes = self.pending.bytes_in(&self.arena, &from, to);
        assert_eq!(bytes, self.model.bytes_in(&from, to), "bytes from {from:?} to {to:?}");
    }

    fn compare_between(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) {
        let within = |key: &[u8]| {
            let above = match low {
                Bound::Unbounded => true,
                Bound::Included(low) => key >= low,
                Bound::Excluded(low) => key > low,
            };
            above
                && match high {
                    Bound::Unbounded => true,
                    Bound::Included(high) => key <= high,
                    Bound::Excluded(high) => key < high,
                }
        };
        let entries = self.model.entries.iter().filter(|(key, _)| within(key));
        let expected: Vec<_> = entries.map(|(key, list)| (key.clone(), list.clone())).collect();
        let owned = |entry: Entry<'_>| {
            let changes: Vec<Owned> = entry.oldest_first().map(Owned::of).collect();
            (entry.key().to_vec(), changes)
        };
        let found: Vec<_> = self.pending.range(&self.arena, low, high).map(owned).collect();
        assert_eq!(found, expected, "from {low:?} to {high:?}");
        let back = self.pending.range_back(&self.arena, low, high);
        let mut found: Vec<_> = back.map(owned).collect();
        found.reverse();
        assert_eq!(found, expected, "back from {high:?} to {low:?}");
    }

    fn remove(&mut self) {
        let mut ends = [self.key(), self.key()];
        if self.random.below(20) > 0 {
            ends.sort();
        }
        let [low, high] = &ends;
        let near = self.model.entries.range(low.clone()..).nth(self.random.below(300) as usize);
        let near = near.filter(|_| self.random.below(4) > 0).map(|(key, _)| key.clone());
        let high = near.as_ref().unwrap_or(high);
        let low = if self.random.below(10) == 0 { &[][..] } else { low.as_slice() };
        let high = (self.random.below(10) > 0).then_some(high.as_slice());
        let through = self.sequence.saturating_sub(self.random.below(600));
        let before = self.model.bytes_in(&[], None);
        self.model.remove_through(low, high, through);
        let freed = before - self.model.bytes_in(&[], None);
        let found = self.pending.remove_through(&mut self.arena, low, high, Sequence(through));
        assert_eq!(found, freed, "bytes freed from {low:?} to {high:?} through {through}");
    }

    fn compare_all(&self) {
        self.compare_between(Bound::Unbounded, Bound::Unbounded);
        for (key, list) in &self.model.entries {
            let found = self.pending.get(&self.arena, key).map(Owned::of);
            assert!(found.eq(list.iter().rev().cloned()), "changes of {key:?}");
        }
        assert_eq!(self.pending.bytes(), self.model.bytes_in(&[], None), "bytes");
        assert!(self.arena.bytes_in_use() <= self.arena.bytes_taken());
        assert!(self.arena.bytes_taken() <= self.arena.cap_bytes(), "the cap is kept");
    }
}

#[test]
fn changes_are_found_as_a_map_of_lists_has_them() {
    let mut refused = 0;
    for seed in seeds(40) {
        let mut run = Run::new(seed, None);
        for _ in 0..8000 {
            run.step();
        }
        run.compare_all();
        run.pending.clear(&mut run.arena);
        assert!(run.pending.is_empty() && run.pending.bytes() == 0);
        assert_eq!(run.arena.bytes_in_use(), 0, "an empty map has no memory");
        refused += run.refused;
    }
    println!("{refused} inserts refused");
}

#[test]
fn large_map_grows_and_shrinks_as_a_map_of_lists_does() {
    for seed in seeds(4) {
        let mut run = Run::new(seed, Some(200_000));
        for round in 0..60 {
            // Merges take more than puts bring in the second half.
            let inserts = if round < 30 { 3000 } else { 500 };
            (0..inserts).for_each(|_| run.insert());
            let removals = if round < 30 { 2 } else { 8 };
            (0..removals).for_each(|_| run.remove());
            run.compare_range();
        }
        run.compare_all();
        run.pending.remove_through(&mut run.arena, &[], None, Sequence(u64::MAX));
        assert!(run.pending.is_empty() && run.arena.bytes_in_use() == 0);
    }
}

#[test]
fn changes_that_come_together_are_found_as_those_that_come_one_by_one() {
    for seed in seeds(12) {
        let universe = [None, Some(50_000)][seed as usize % 2];
        let mut run = Run::new(seed, universe);
        run.arena = Arena::new(1 << 30);
        // A change that comes twice is the same one.
        let mut known: BTreeMap<_, Owned> = BTreeMap::new();
        let mut next = |run: &mut Run| {
            let (key, new) = (run.key(), run.new_change());
            let new = known.entry((key.clone(), new.sequence)).or_insert(new).clone();
            run.model.insert(&key, new.clone());
            (key, new)
        };
        for _ in 0..25 {
            let mut runs = Runs::default();
            for _ in 0..1 + run.random.below(4) {
                let mut parts = Vec::new();
                let count = 1 + run.random.below(4) as usize;
                for mut lent in run.arena.lend(count) {
                    let mut gathered = Gathered::default();
                    for _ in 0..[0, 1, 20, 300, 1500][run.random.below(5) as usize] {
                        let (key, new) = next(&mut run);
                        gathered.push(&mut lent.arena, new.of_key(&key));
                    }
                    gathered.sort(&lent.arena);
                    parts.push((gathered, lent));
                }
                // They come back in any order.
                parts.rotate_left(run.random.below(2) as usize);
                let back = parts.into_iter().map(|(mut gathered, lent)| {
                    gathered.rename(&run.arena.take_back(lent));
                    gathered
                });
                for gathered in back.collect::<Vec<_>>() {
                    let sorted = gathered.folded(&mut run.arena);
                    runs.push(&mut run.arena, sorted);
                }
            }
            let sorted = runs.joined(&mut run.arena).expect("there are parts");
            run.pending.insert_sorted(&mut run.arena, sorted);
            assert_eq!(run.pending.len(), run.model.changes(), "number of changes");
            run.compare_all();
            for _ in 0..run.random.below(100) {
                let (key, new) = next(&mut run);
                run.pending.insert(&mut run.arena, new.of_key(&key)).expect("there is room");
            }
            (0..run.random.below(4)).for_each(|_| run.remove());
        }
        run.pending.clear(&mut run.arena);
        assert_eq!(run.arena.bytes_in_use(), 0, "an empty map has no memory");
    }
}
