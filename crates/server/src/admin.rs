//! The HTTP interface: the console at `/`, `/health`, for probes of two kinds too, `/metrics`,
//! `/stats`.

mod console;
mod metrics;
mod stats;

use entresol_device::PendingIo;
use entresol_host::STALLED;
use entresol_net::{Answer, Asked, Site};
use serde_json::{Value, json};

use crate::shared::Shared;

impl Site for Shared {
    fn is_stopping(&self) -> bool {
        Shared::is_stopping(self)
    }

    fn threshold(&self, path: &str) -> Option<Answer> {
        console::threshold(path)
    }

    fn page(&self, asked: &Asked<'_>) -> Option<Answer> {
        match asked.path {
            "/health" | "/health/ready" => {
                let (status, body) = health(self);
                Some(Answer::json(status, format!("{body}\n")))
            }
            "/health/live" => Some(Answer::live()),
            "/metrics" => Some(Answer::metrics(metrics::text(self))),
            "/stats" => Some(Answer::json("200 OK", stats::text(self))),
            _ => console::answer(self, asked),
        }
    }
}

/// The status of an answer about health, and what it says.
fn health(shared: &Shared) -> (&'static str, Value) {
    if let Some(PendingIo { age, .. }) =
        shared.oldest_pending().filter(|pending| pending.age >= STALLED)
    {
        let next = "the device does not answer; what needs it waits, the rest goes on; check it";
        let seconds = age.as_secs();
        let body = json!({"status": "stalled", "oldest_pending_io_seconds": seconds, "next": next});
        ("503 Service Unavailable", body)
    } else if shared.statistics_in_time().poisoned {
        let next = "a write or sync failed; reads go on; check the device, then restart";
        ("503 Service Unavailable", json!({"status": "poisoned", "next": next}))
    } else if shared.is_stopping() {
        ("503 Service Unavailable", json!({"status": "stopping"}))
    } else {
        ("200 OK", json!({"status": "ok"}))
    }
}
