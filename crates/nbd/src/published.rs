//! Figures where other threads than the event loop's find them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use entresol_net::{Answer, Asked, Site};
use entresol_volume::Unanswered;
use serde_json::{Value, json};

use crate::{metrics, unanswered};

/// From when on the event loop, which shows its figures every second, counts as waiting.
const STALE: Duration = Duration::from_secs(3);

/// Figures for threads that cannot ask the volumes.
#[derive(Debug)]
pub(crate) struct Published {
    shown: Mutex<Shown>,
    closed: AtomicBool,
}

#[derive(Debug)]
struct Shown {
    report: Value,
    at: Instant,
    unanswered: Vec<Unanswered>,
}

impl Published {
    /// Nothing so far.
    pub(crate) fn new() -> Published {
        let shown = Shown { report: json!({}), at: Instant::now(), unanswered: Vec::new() };
        Published { shown: Mutex::new(shown), closed: AtomicBool::new(false) }
    }
}

impl Published {
    /// Shows `report` from now on.
    pub(crate) fn show(&self, report: Value) {
        let mut shown = self.shown();
        shown.report = report;
        shown.at = Instant::now();
    }

    /// Notes what devices have not answered.
    pub(crate) fn note(&self, unanswered: Vec<Unanswered>) {
        self.shown().unanswered = unanswered;
    }

    /// What devices have not answered.
    pub(crate) fn unanswered(&self) -> Vec<Unanswered> {
        self.shown().unanswered.clone()
    }

    /// The latest figures, and for how long devices have not answered.
    pub(crate) fn report(&self) -> Value {
        let shown = self.shown();
        let mut report = shown.report.clone();
        unanswered::complete(&mut report, &shown.unanswered);
        report
    }

    /// Whether the event loop is late with its figures.
    pub(crate) fn is_stale(&self) -> bool {
        self.age() >= STALE
    }

    /// For how long the event loop has shown no other figures.
    pub(crate) fn age(&self) -> Duration {
        self.shown().at.elapsed()
    }

    /// The event loop has ended.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn health(&self) -> Answer {
        let Some(pending) = unanswered::stalled(&self.unanswered()) else {
            return Answer::json("200 OK", "{\"status\":\"ok\"}\n".to_owned());
        };
        let next = "the device does not answer; what needs it waits, the rest goes on; check it";
        let body = json!({
            "status": "stalled",
            "device": pending.device,
            "oldest_pending_io_seconds": pending.age.as_secs(),
            "next": next,
        });
        Answer::json("503 Service Unavailable", format!("{body}\n"))
    }
}

impl Site for Published {
    fn is_stopping(&self) -> bool {
        self.is_closed()
    }

    fn page(&self, asked: &Asked<'_>) -> Option<Answer> {
        match asked.path {
            "/health" | "/health/ready" => Some(self.health()),
            "/health/live" => Some(Answer::live()),
            "/stats" => Some(Answer::json("200 OK", format!("{}\n", self.report()))),
            "/metrics" => Some(Answer::metrics(metrics::page(&self.report()))),
            _ => None,
        }
    }
}
