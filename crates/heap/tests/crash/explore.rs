//! Runs a workload on a simulated medium, and opens the medium after every power failure.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use entresol_heap::backing::{Backing, Site};
use entresol_heap::{Aes256Gcm, Cipher};

use crate::recorder::{Recorder, State};
use crate::workload::{Model, Workload};
use crate::{pages, words};

/// What a workload runs on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bed {
    Pages,
    EncryptedPages,
    Words,
}

impl Bed {
    fn cipher(self) -> Option<Arc<dyn Cipher>> {
        match self {
            Bed::EncryptedPages => Some(Arc::new(Aes256Gcm::new([7; 32]))),
            Bed::Pages | Bed::Words => None,
        }
    }
}

/// What stands under a heap, made of an image.
fn medium(bed: Bed, state: &State, recorder: &Arc<Recorder>, seed: u64) -> Arc<dyn Backing> {
    match bed {
        Bed::Pages | Bed::EncryptedPages => {
            Arc::new(pages::SimPages::new(state, Arc::clone(recorder), seed))
        }
        Bed::Words => Arc::new(words::SimWords::new(state, Arc::clone(recorder), seed)),
    }
}

/// Runs a workload and opens what every crash leaves; returns how many states, or what is wrong.
pub(crate) fn explore(
    bed: Bed,
    seed: u64,
    without: Option<Site>,
    nested: usize,
) -> Result<usize, String> {
    let recorder = Recorder::new(without);
    let workload = Workload::new(seed, bed.cipher());
    let backing = medium(bed, &State::blank(), &recorder, seed);
    let models = workload.run(&backing, &recorder);
    drop(backing);
    let states = recorder.take();
    let mut count = states.len();
    for (index, state) in states.iter().enumerate() {
        let again = Recorder::new(without);
        again.set_progress(state.durable, state.started);
        if index % nested != 0 {
            again.stop();
        }
        verify(bed, state, &again, &workload, &models)
            .map_err(|error| format!("state {index}, {}: {error}", state.what))?;
        let inner = again.take();
        count += inner.len();
        for (nested, state) in inner.iter().enumerate() {
            let last = Recorder::new(without);
            last.stop();
            verify(bed, state, &last, &workload, &models).map_err(|error| {
                format!("state {index}, then {nested} while it was opened, {}: {error}", state.what)
            })?;
        }
    }
    Ok(count)
}

fn verify(
    bed: Bed,
    state: &State,
    recorder: &Arc<Recorder>,
    workload: &Workload,
    models: &[Model],
) -> Result<(), String> {
    let backing = medium(bed, state, recorder, 1);
    let verified = catch_unwind(AssertUnwindSafe(|| {
        workload.verify(&backing, recorder, (state.durable, state.started), models)
    }));
    match verified {
        Ok(verified) => verified,
        Err(panic) => {
            let said = panic.downcast_ref::<String>().cloned();
            Err(format!("panic: {}", said.unwrap_or_default()))
        }
    }
}
