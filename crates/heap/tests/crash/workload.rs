//! Seeded transactions over a table of blocks, the models they leave, and the comparison of a heap
//! with them.

use std::collections::BTreeMap;
use std::sync::Arc;

use entresol_heap::backing::Backing;
use entresol_heap::{Cipher, CreateOptions, Durability, Heap, OpenOptions, Result, Transaction};
use entresol_sim::Random;

use crate::recorder::Recorder;

/// Slots of the table that the root points to.
const SLOTS: u64 = 12;
const TRANSACTIONS: usize = 24;

/// What a heap holds: for each slot its block and the block's bytes.
pub(crate) type Model = BTreeMap<u64, (u64, Vec<u8>)>;

pub(crate) struct Workload {
    seed: u64,
    cipher: Option<Arc<dyn Cipher>>,
}

impl Workload {
    pub(crate) fn new(seed: u64, cipher: Option<Arc<dyn Cipher>>) -> Workload {
        Workload { seed, cipher }
    }

    fn open_options(&self) -> OpenOptions {
        OpenOptions { cipher: self.cipher.clone(), ..OpenOptions::default() }
    }

    /// Makes a heap and runs the transactions; returns the model after each commit, the empty heap
    /// first.
    pub(crate) fn run(&self, backing: &Arc<dyn Backing>, recorder: &Recorder) -> Vec<Model> {
        let mut random = Random::new(self.seed);
        let options = CreateOptions {
            bytes: 320 << 10,
            limit_bytes: 640 << 10,
            log_bytes: Some(16 << 10),
            heap_id: Some([self.seed as u8; 16]),
            cipher: self.cipher.clone(),
            ..CreateOptions::default()
        };
        // Until it is made there is nothing to open.
        recorder.stop();
        let mut heap = Heap::create_on(Arc::clone(backing), &options).unwrap();
        recorder.start();
        recorder.set_progress(0, 1);
        let mut transaction = heap.begin();
        let table = transaction.allocate(SLOTS * 8).unwrap();
        transaction.set_root(table).unwrap();
        transaction.commit().unwrap();
        // Model 0: no root. Model 1: an empty table.
        let mut models = vec![Model::new(), Model::new()];
        let mut durable = 1;
        for _ in 0..TRANSACTIONS {
            recorder.set_progress(durable, models.len());
            match random.below(16) {
                0 => {
                    heap.close().unwrap();
                    durable = models.len() - 1;
                    recorder.set_progress(durable, durable);
                    heap = Heap::open_on(Arc::clone(backing), &self.open_options()).unwrap();
                    continue;
                }
                1 => {
                    heap.shrink(0).unwrap();
                    continue;
                }
                2 => {
                    heap.grow(heap.size_bytes() + 8192).ok();
                    continue;
                }
                _ => {}
            }
            let mut model = models[models.len() - 1].clone();
            let mut transaction = heap.begin();
            for _ in 0..1 + random.below(4) {
                act(&mut transaction, &mut model, &mut random).unwrap();
            }
            if random.one_in(6) {
                transaction.abort();
                continue;
            }
            let durability = match random.below(6) {
                0 => Durability::None,
                1 | 2 => Durability::Buffered { epoch_ms: 1000 },
                _ => Durability::Sync,
            };
            transaction.commit_with(durability).unwrap();
            models.push(model);
            if durability == Durability::Sync {
                durable = models.len() - 1;
            }
            recorder.set_progress(durable, models.len() - 1);
        }
        heap.close().unwrap();
        models
    }

    /// Opens the heap and compares it with the models from `durable` to `started`.
    pub(crate) fn verify(
        &self,
        backing: &Arc<dyn Backing>,
        recorder: &Recorder,
        (durable, started): (usize, usize),
        models: &[Model],
    ) -> std::result::Result<(), String> {
        let open = || Heap::open_on(Arc::clone(backing), &self.open_options());
        let heap = open().map_err(|error| format!("does not open: {error}"))?;
        recorder.stop();
        let found = contents(&heap)?;
        let last = started.min(models.len() - 1);
        let expected = |found: &Option<Model>| {
            let matches = |at: &usize| match found {
                None => *at == 0,
                Some(found) => *at > 0 && models[*at] == *found,
            };
            (durable..=last).find(matches)
        };
        if expected(&found).is_none() {
            let other = (0..models.len()).find(|at| found.as_ref() == Some(&models[*at]));
            return Err(format!("holds the commits up to {other:?}; expected {durable} to {last}"));
        }
        // It goes on, and keeps what it takes.
        let mut model = found.unwrap_or_default();
        let mut random = Random::new(self.seed);
        let mut transaction = heap.begin();
        if heap.root() == 0 {
            let table = transaction.allocate(SLOTS * 8).unwrap();
            transaction.set_root(table).unwrap();
        }
        act(&mut transaction, &mut model, &mut random).map_err(|error| error.to_string())?;
        transaction.commit().map_err(|error| error.to_string())?;
        heap.close().map_err(|error| error.to_string())?;
        let heap = open().map_err(|error| format!("does not open again: {error}"))?;
        match contents(&heap)? {
            Some(found) if found == model => Ok(()),
            _ => Err("loses what it took after the crash".to_owned()),
        }
    }
}

/// One change of the table or of a block.
fn act(transaction: &mut Transaction, model: &mut Model, random: &mut Random) -> Result<()> {
    let heap = transaction.heap().clone();
    let table = heap.root();
    let slot = random.below(SLOTS);
    match (random.below(8), model.get(&slot).cloned()) {
        (0 | 1, Some((block, _))) => {
            transaction.free(block)?;
            transaction.write_u64(table + slot * 8, 0)?;
            model.remove(&slot);
        }
        (2..6, Some((block, mut bytes))) => {
            let at = random.below(bytes.len() as u64);
            let length = 1 + random.below((bytes.len() as u64 - at).min(6000)) as usize;
            let mut fresh = vec![0; length];
            random.fill(&mut fresh);
            transaction.write(block + at, &fresh)?;
            bytes[at as usize..at as usize + length].copy_from_slice(&fresh);
            model.insert(slot, (block, bytes));
        }
        (_, before) => {
            let bytes = match random.below(10) {
                0 => 4096 * (1 + random.below(4)) + random.below(4096),
                1 => 1 + random.below(3000),
                _ => 1 + random.below(200),
            };
            let Ok(block) = transaction.allocate(bytes) else { return Ok(()) };
            let usable = heap.usable_bytes(block).unwrap_or_default();
            let mut fresh = vec![0; usable as usize];
            let filled = random.below(usable + 1) as usize;
            random.fill(&mut fresh[..filled]);
            transaction.write(block, &fresh[..filled])?;
            if let Some((before, _)) = before {
                transaction.free(before)?;
            }
            transaction.write_u64(table + slot * 8, block)?;
            model.insert(slot, (block, fresh));
        }
    }
    Ok(())
}

/// What the heap holds; `None` without a root. Every live block must be reachable, and no other.
fn contents(heap: &Heap) -> std::result::Result<Option<Model>, String> {
    let mut live = BTreeMap::new();
    heap.visit_live(|handle, bytes| {
        live.insert(handle, bytes);
    });
    let table = heap.root();
    if table == 0 {
        return if live.is_empty() { Ok(None) } else { Err(format!("no root, but {live:?}")) };
    }
    if live.remove(&table).is_none() {
        return Err("the table is not live".to_owned());
    }
    let mut model = Model::new();
    for slot in 0..SLOTS {
        let block = heap.load_u64(table + slot * 8).map_err(|error| error.to_string())?;
        if block == 0 {
            continue;
        }
        let Some(usable) = live.remove(&block) else {
            return Err(format!("slot {slot} holds {block}, which is not live or of another slot"));
        };
        let mut bytes = vec![0; usable as usize];
        heap.read(block, &mut bytes).map_err(|error| error.to_string())?;
        model.insert(slot, (block, bytes));
    }
    if live.is_empty() { Ok(Some(model)) } else { Err(format!("leaked: {live:?}")) }
}
