//! The HTTP interface: `/health`, `/metrics`, `/stats`.

mod metrics;
mod stats;

use entresol_device::PendingIo;
use entresol_host::STALLED;
use entresol_net::{Answer, Site};

use crate::shared::Shared;

impl Site for Shared {
    fn is_stopping(&self) -> bool {
        Shared::is_stopping(self)
    }

    fn page(&self, path: &str) -> Option<Answer> {
        match path {
            "/health" => Some(health(self)),
            "/metrics" => Some(Answer::metrics(metrics::text(self))),
            "/stats" => Some(Answer::json("200 OK", stats::text(self))),
            _ => None,
        }
    }
}

fn health(shared: &Shared) -> Answer {
    let pending = shared.oldest_pending().filter(|pending| pending.age >= STALLED);
    if let Some(PendingIo { age, .. }) = pending {
        let next = "the device does not answer; what needs it waits, the rest goes on; check it";
        let body = format!(
            "{{\"status\":\"stalled\",\"oldest_pending_io_seconds\":{},\"next\":\"{next}\"}}\n",
            age.as_secs()
        );
        return Answer::json("503 Service Unavailable", body);
    }
    if shared.statistics_in_time().poisoned {
        let next = "a write or sync failed; reads go on; check the device, then restart";
        let body = format!("{{\"status\":\"poisoned\",\"next\":\"{next}\"}}\n");
        return Answer::json("503 Service Unavailable", body);
    }
    if shared.is_stopping() {
        return Answer::json("503 Service Unavailable", "{\"status\":\"stopping\"}\n".to_owned());
    }
    Answer::json("200 OK", "{\"status\":\"ok\"}\n".to_owned())
}
