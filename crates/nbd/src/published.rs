//! Figures where other threads than the event loop's find them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use entresol_net::{Answer, Asked, Site};
use entresol_page::{Interval, Span};
use entresol_volume::Unanswered;
use serde_json::{Value, json};

use crate::console::Seen;
use crate::history::{History, Totals};
use crate::stats::Moment;
use crate::{console, metrics, unanswered};

/// From when on the event loop, which shows its figures every second, counts as waiting.
const STALE: Duration = Duration::from_secs(3);

/// Figures for threads that cannot ask the volumes.
#[derive(Debug)]
pub(crate) struct Published {
    shown: Mutex<Shown>,
    history: History,
    started: Instant,
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
        let started = Instant::now();
        let shown = Shown { report: json!({}), at: started, unanswered: Vec::new() };
        let (shown, history) = (Mutex::new(shown), History::default());
        Published { shown, history, started, closed: AtomicBool::new(false) }
    }
}

impl Published {
    /// Shows `report` from now on; `interval` has what clients asked since the one before.
    pub(crate) fn show(&self, report: Value, interval: &Interval) {
        self.history.look(Totals::of(self.uptime(), &report), interval);
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

    /// All figures that `/stats` shows.
    fn stats(&self) -> Value {
        let (report, (_, health)) = (self.report(), self.health());
        let uptime_seconds = self.uptime().as_secs();
        Moment { report, health, second: self.history.latest(), uptime_seconds }.stats()
    }

    /// What the console shows.
    fn look(&self, span: Span) -> Seen {
        let samples = self.history.samples(span);
        Seen { stats: self.stats(), samples, uptime: self.uptime(), late: self.late() }
    }

    fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Whether the event loop is late with its figures.
    pub(crate) fn is_stale(&self) -> bool {
        self.late().is_some()
    }

    /// For how long the event loop has shown no other figures.
    pub(crate) fn age(&self) -> Duration {
        self.shown().at.elapsed()
    }

    /// How old the figures are, if the event loop is late with new ones.
    fn late(&self) -> Option<Duration> {
        Some(self.age()).filter(|age| *age >= STALE)
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

    /// The status of an answer about health, and what it says.
    fn health(&self) -> (&'static str, Value) {
        let Some(pending) = unanswered::stalled(&self.unanswered()) else {
            return ("200 OK", json!({"status": "ok"}));
        };
        let next = "the device does not answer; what needs it waits, the rest goes on; check it";
        let body = json!({
            "status": "stalled",
            "device": pending.device,
            "oldest_pending_io_seconds": pending.age.as_secs(),
            "next": next,
        });
        ("503 Service Unavailable", body)
    }
}

impl Site for Published {
    fn is_stopping(&self) -> bool {
        self.is_closed()
    }

    fn threshold(&self, path: &str) -> Option<Answer> {
        console::threshold(path)
    }

    fn page(&self, asked: &Asked<'_>) -> Option<Answer> {
        match asked.path {
            "/health" | "/health/ready" => {
                let (status, body) = self.health();
                Some(Answer::json(status, format!("{body}\n")))
            }
            "/health/live" => Some(Answer::live()),
            "/stats" => Some(Answer::json("200 OK", format!("{}\n", self.stats()))),
            "/metrics" => Some(Answer::metrics(metrics::page(&self.report()))),
            _ => console::answer(asked, |span| self.look(span)),
        }
    }
}
