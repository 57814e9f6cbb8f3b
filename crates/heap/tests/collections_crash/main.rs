//! Power fails before every sync and fence of seeded changes to each collection, views alive beside
//! some of them, and the writes that are still not covered are kept, dropped, torn or reordered.
//! Each result must open, be sound in every block, hold exactly the state after some prefix of the
//! commits, leak nothing, and go on.
//!
//! `ENTRESOL_SEED` replaces the seeds.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

#[path = "../crash/pages.rs"]
mod pages;
#[path = "../crash/recorder.rs"]
mod recorder;
mod subjects;
#[path = "../crash/words.rs"]
mod words;

use std::sync::Arc;

use entresol_heap::backing::{Backing, Unit};
use entresol_heap::{CreateOptions, Heap, OpenOptions};
use entresol_sim::Random;

use crate::recorder::{Recorder, State};
use crate::subjects::{
    Arrays, Deques, HashMaps, LinkedLists, Logs, RadixMaps, RadixTrees, Splits, Subject,
};

const SEEDS: u64 = 2;
const TRANSACTIONS: usize = 16;

fn seeds() -> Vec<u64> {
    match std::env::var("ENTRESOL_SEED") {
        Ok(seed) => vec![seed.parse().expect("ENTRESOL_SEED is a whole number")],
        Err(_) => (0..SEEDS).collect(),
    }
}

fn medium(unit: Unit, state: &State, recorder: &Arc<Recorder>, seed: u64) -> Arc<dyn Backing> {
    match unit {
        Unit::Page => Arc::new(pages::SimPages::new(state, Arc::clone(recorder), seed)),
        Unit::Word => Arc::new(words::SimWords::new(state, Arc::clone(recorder), seed)),
    }
}

/// Changes a collection and opens what every crash leaves.
fn survives<S: Subject>() {
    for unit in [Unit::Page, Unit::Word] {
        let mut count = 0;
        for seed in seeds() {
            let recorder = Recorder::new(None);
            let backing = medium(unit, &State::blank(), &recorder, seed);
            let models = run::<S>(&backing, &recorder, seed);
            drop(backing);
            for (index, state) in recorder.take().iter().enumerate() {
                count += 1;
                if let Err(error) = verify::<S>(unit, state, &models) {
                    panic!("ENTRESOL_SEED={seed} {unit:?}, state {index}, {}: {error}", state.what);
                }
            }
        }
        println!("{unit:?}: {count} crash states");
        assert!(count > 200, "the changes are explored: {count} states");
    }
}

/// The model after each commit; there is no collection before the first.
fn run<S: Subject>(
    backing: &Arc<dyn Backing>,
    recorder: &Recorder,
    seed: u64,
) -> Vec<Option<S::Model>> {
    let mut random = Random::new(seed);
    let options = CreateOptions {
        bytes: 640 << 10,
        limit_bytes: 2 << 20,
        log_bytes: Some(32 << 10),
        heap_id: Some([seed as u8; 16]),
        ..CreateOptions::default()
    };
    recorder.stop();
    let heap = Heap::create_on(Arc::clone(backing), &options).unwrap();
    recorder.start();
    recorder.set_progress(0, 1);
    let mut transaction = heap.begin();
    let (subject, model) = S::create(&mut transaction);
    transaction.set_root(subject.handle()).unwrap();
    transaction.commit().unwrap();
    let mut models = vec![None, Some(model)];
    let mut view = None;
    for _ in 0..TRANSACTIONS {
        recorder.set_progress(models.len() - 1, models.len());
        if random.one_in(3) {
            view = subject.view();
        }
        let mut model = models[models.len() - 1].clone().unwrap();
        let mut transaction = heap.begin();
        for _ in 0..1 + random.below(3) {
            subject.act(&mut transaction, &mut model, &mut random);
        }
        if random.one_in(6) {
            transaction.abort();
        } else {
            transaction.commit().unwrap();
            models.push(Some(model));
        }
        if random.one_in(3) {
            view = None;
        }
    }
    drop((view, subject));
    recorder.set_progress(models.len() - 1, models.len() - 1);
    heap.close().unwrap();
    models
}

/// Opens the heap and compares it with the models from the last acknowledged commit on.
fn verify<S: Subject>(
    unit: Unit,
    state: &State,
    models: &[Option<S::Model>],
) -> Result<(), String> {
    let recorder = Recorder::new(None);
    recorder.stop();
    let backing = medium(unit, state, &recorder, 1);
    let told = |error: entresol_heap::Error| error.to_string();
    let heap = Heap::open_on(backing, &OpenOptions::default()).map_err(told)?;
    let last = state.started.min(models.len() - 1);
    let possible = &models[state.durable..=last];
    if heap.root() == 0 {
        let empty = possible.contains(&None) && heap.statistics().live == 0;
        return if empty { Ok(()) } else { Err("the collection is gone".to_string()) };
    }
    let subject = S::open(&heap, heap.root()).map_err(told)?;
    let (found, blocks) = subject.contents().map_err(told)?;
    if !possible.contains(&Some(found.clone())) {
        return Err(format!("holds {found:?}; expected one of {possible:?}"));
    }
    if heap.statistics().live != blocks {
        return Err(format!("{} blocks, the collection has {blocks}", heap.statistics().live));
    }
    let mut model = found;
    let mut transaction = heap.begin();
    subject.act(&mut transaction, &mut model, &mut Random::new(1));
    transaction.commit().map_err(told)?;
    let (found, _) = subject.contents().map_err(told)?;
    if found == model { Ok(()) } else { Err(format!("goes on to {found:?}, not {model:?}")) }
}

#[test]
fn radix_trees_survive_power_loss() {
    survives::<RadixTrees>();
}

#[test]
fn split_radix_trees_survive_power_loss() {
    survives::<Splits>();
}

#[test]
fn radix_maps_survive_power_loss() {
    survives::<RadixMaps>();
}

#[test]
fn hash_maps_survive_power_loss() {
    survives::<HashMaps>();
}

#[test]
fn arrays_survive_power_loss() {
    survives::<Arrays>();
}

#[test]
fn linked_lists_survive_power_loss() {
    survives::<LinkedLists>();
}

#[test]
fn deques_survive_power_loss() {
    survives::<Deques>();
}

#[test]
fn append_logs_survive_power_loss() {
    survives::<Logs>();
}
