//! Collects the states that power failures would leave, while a workload runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use entresol_heap::backing::Site;
use entresol_sim::Image;
use parking_lot::Mutex;

/// Most that a simulated medium can hold.
pub(crate) const CAPACITY_BYTES: u64 = 4 << 20;

/// What a power failure left, and when.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) image: Image,
    pub(crate) bytes: u64,
    /// Commits acknowledged as durable.
    pub(crate) durable: usize,
    /// Commits begun.
    pub(crate) started: usize,
    /// Where, and what was kept.
    pub(crate) what: String,
}

impl State {
    pub(crate) fn blank() -> State {
        let image = Image::blank(CAPACITY_BYTES);
        State { image, bytes: 0, durable: 0, started: 0, what: String::new() }
    }
}

/// Shared by a workload and the medium under it.
pub(crate) struct Recorder {
    states: Mutex<Vec<State>>,
    durable: AtomicUsize,
    started: AtomicUsize,
    is_recording: AtomicBool,
    without: Option<Site>,
}

impl Recorder {
    pub(crate) fn new(without: Option<Site>) -> Arc<Recorder> {
        Arc::new(Recorder {
            states: Mutex::new(Vec::new()),
            durable: AtomicUsize::new(0),
            started: AtomicUsize::new(0),
            is_recording: AtomicBool::new(true),
            without,
        })
    }

    /// Whether the sync at `site` is left out, once there is something to lose.
    pub(crate) fn leaves_out(&self, site: Site) -> bool {
        self.is_recording() && self.without == Some(site)
    }

    pub(crate) fn is_recording(&self) -> bool {
        self.is_recording.load(Ordering::Relaxed)
    }

    pub(crate) fn start(&self) {
        self.is_recording.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stop(&self) {
        self.is_recording.store(false, Ordering::Relaxed);
    }

    pub(crate) fn set_progress(&self, durable: usize, started: usize) {
        self.durable.store(durable, Ordering::Relaxed);
        self.started.store(started, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, image: Image, bytes: u64, what: String) {
        let durable = self.durable.load(Ordering::Relaxed);
        let started = self.started.load(Ordering::Relaxed);
        self.states.lock().push(State { image, bytes, durable, started, what });
    }

    pub(crate) fn take(&self) -> Vec<State> {
        std::mem::take(&mut self.states.lock())
    }
}
