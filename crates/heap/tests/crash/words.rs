//! Simulated persistent memory: stores of 8 bytes wait in their line until a fence; when power
//! fails each line keeps a prefix of them, or, as for stores past the caches, any of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use entresol_heap::backing::{Backing, Counters, Site, Survival, Unit};
use entresol_heap::{Error, ErrorKind, Result};
use entresol_sim::{Image, Random};
use parking_lot::Mutex;

use crate::recorder::{CAPACITY_BYTES, Recorder, State};

/// Prefixes of all lines are tried up to so many combinations.
const EXHAUSTIVE_MAX: usize = 96;
/// Random fates tried beyond.
const RANDOM_CHOICES: usize = 16;
/// Lines of which each alone is kept and dropped.
const LINES_ALONE: usize = 12;

pub(crate) struct SimWords {
    memory: Mutex<Words>,
    recorder: Arc<Recorder>,
    counters: Counters,
}

struct Words {
    /// What the processor sees.
    visible: Image,
    /// What survives.
    durable: Image,
    bytes: u64,
    /// Stores since the last fence, by line.
    pending: BTreeMap<u64, Vec<(u64, [u8; 8])>>,
    fences: u64,
    random: Random,
}

/// How many stores of each line were kept.
type Prefixes = Vec<usize>;

impl SimWords {
    pub(crate) fn new(state: &State, recorder: Arc<Recorder>, seed: u64) -> SimWords {
        let memory = Words {
            visible: state.image.clone(),
            durable: state.image.clone(),
            bytes: state.bytes,
            pending: BTreeMap::new(),
            fences: 0,
            random: Random::new(seed),
        };
        SimWords { memory: Mutex::new(memory), recorder, counters: Counters::default() }
    }

    fn record(&self, site: Site, words: &mut Words) {
        if !self.recorder.is_recording() {
            return;
        }
        let at = format!("{site:?} at fence {}", words.fences);
        let counts: Vec<usize> = words.pending.values().map(Vec::len).collect();
        for prefixes in choices(&counts, &mut words.random) {
            let mut image = words.durable.clone();
            for (stores, kept) in words.pending.values().zip(&prefixes) {
                stores[..*kept].iter().for_each(|(offset, word)| image.write(*offset, word));
            }
            let shown = &prefixes[..prefixes.len().min(16)];
            self.recorder.add(image, words.bytes, format!("{at}, prefixes {shown:?}"));
        }
        for number in 0..RANDOM_CHOICES / 2 {
            let mut image = words.durable.clone();
            for (offset, word) in words.pending.values().flatten() {
                if words.random.one_in(2) {
                    image.write(*offset, word);
                }
            }
            self.recorder.add(image, words.bytes, format!("{at}, random words {number}"));
        }
    }
}

/// Prefixes of lines with so many stores each.
fn choices(counts: &[usize], random: &mut Random) -> Vec<Prefixes> {
    let product = counts.iter().try_fold(1_usize, |all, count| all.checked_mul(count + 1));
    if let Some(product) = product.filter(|product| *product <= EXHAUSTIVE_MAX) {
        return (0..product)
            .map(|mut number| {
                let digit = |count: &usize| {
                    let digit = number % (count + 1);
                    number /= count + 1;
                    digit
                };
                counts.iter().map(digit).collect()
            })
            .collect();
    }
    let mut choices = vec![counts.to_vec(), vec![0; counts.len()]];
    for _ in 0..LINES_ALONE {
        let line = random.below(counts.len() as u64) as usize;
        let mut without = counts.to_vec();
        without[line] = random.below(counts[line] as u64) as usize;
        let mut alone = vec![0; counts.len()];
        alone[line] = counts[line];
        choices.extend([without, alone]);
    }
    for _ in 0..RANDOM_CHOICES {
        choices.push(counts.iter().map(|count| random.below(*count as u64 + 1) as usize).collect());
    }
    choices
}

impl Backing for SimWords {
    fn name(&self) -> String {
        "simulated words".to_owned()
    }

    fn unit(&self) -> Unit {
        Unit::Word
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.memory.lock().bytes)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.memory.lock().visible.read(offset, out);
        Ok(())
    }

    fn write(&self, _: Site, offset: u64, bytes: &[u8]) -> Result<()> {
        assert!(offset.is_multiple_of(8) && bytes.len().is_multiple_of(8), "whole words");
        self.counters.count_write(offset, bytes.len() as u64);
        let mut memory = self.memory.lock();
        assert!(offset + bytes.len() as u64 <= memory.bytes, "a write past the end");
        memory.visible.write(offset, bytes);
        for (at, word) in (offset..).step_by(8).zip(bytes.as_chunks::<8>().0) {
            memory.pending.entry(at / 64).or_default().push((at, *word));
        }
        Ok(())
    }

    fn zero(&self, site: Site, offset: u64, length: u64) -> Result<()> {
        self.write(site, offset, &vec![0; length as usize])
    }

    fn sync(&self, site: Site) -> Result<()> {
        self.counters.count_sync();
        let mut memory = self.memory.lock();
        memory.fences += 1;
        self.record(site, &mut memory);
        if !self.recorder.leaves_out(site) {
            let pending = std::mem::take(&mut memory.pending);
            for (offset, word) in pending.values().flatten() {
                memory.durable.write(*offset, word);
            }
        }
        Ok(())
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        if bytes > CAPACITY_BYTES {
            return Err(Error::new(ErrorKind::Full, "simulated: no room"));
        }
        let mut memory = self.memory.lock();
        if bytes > memory.bytes {
            let (before, zeros) = (memory.bytes, vec![0; (bytes - memory.bytes) as usize]);
            memory.visible.write(before, &zeros);
            memory.durable.write(before, &zeros);
        } else {
            memory.pending.retain(|line, _| line * 64 < bytes);
        }
        memory.bytes = bytes;
        Ok(())
    }

    fn make_room(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn survival(&self) -> Survival {
        Survival::Power
    }

    fn release(&self) {}

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
