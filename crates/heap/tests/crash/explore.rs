//! Runs a workload on a simulated medium, and opens what every power failure leaves.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use entresol_heap::backing::{Backing, Site, Unit};

use crate::recorder::{Recorder, State};
use crate::workload::{Model, Workload};
use crate::{pages, words};

/// What stands under a heap, made of an image.
fn medium(unit: Unit, state: &State, recorder: &Arc<Recorder>, seed: u64) -> Arc<dyn Backing> {
    match unit {
        Unit::Page => Arc::new(pages::SimPages::new(state, Arc::clone(recorder), seed)),
        Unit::Word => Arc::new(words::SimWords::new(state, Arc::clone(recorder), seed)),
    }
}

/// Runs a workload and opens what every crash leaves; returns how many states, or what is wrong.
pub(crate) fn explore(
    unit: Unit,
    seed: u64,
    without: Option<Site>,
    nested: usize,
) -> Result<usize, String> {
    let recorder = Recorder::new(without);
    let workload = Workload::new(seed);
    let backing = medium(unit, &State::blank(), &recorder, seed);
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
        verify(unit, state, &again, &workload, &models)
            .map_err(|error| format!("state {index}, {}: {error}", state.what))?;
        let inner = again.take();
        count += inner.len();
        for (nested, state) in inner.iter().enumerate() {
            let last = Recorder::new(without);
            last.stop();
            verify(unit, state, &last, &workload, &models).map_err(|error| {
                format!("state {index}, then {nested} while it was opened, {}: {error}", state.what)
            })?;
        }
    }
    Ok(count)
}

fn verify(
    unit: Unit,
    state: &State,
    recorder: &Arc<Recorder>,
    workload: &Workload,
    models: &[Model],
) -> Result<(), String> {
    let backing = medium(unit, state, recorder, 1);
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
