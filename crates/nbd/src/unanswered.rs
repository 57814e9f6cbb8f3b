//! What is said of devices that have not answered.

use entresol_device::PendingIo;
use entresol_host::STALLED;
use entresol_volume::Unanswered;
use serde_json::{Value, json};

/// A device under the name that people know it by.
pub(crate) fn named(one: &Unanswered) -> PendingIo {
    let PendingIo { device, age } = &one.pending;
    let role = match &one.volume {
        Some(volume) => format!("backing of volume {volume}"),
        None => "the cache".to_owned(),
    };
    PendingIo { device: format!("{device} ({role})"), age: *age }
}

/// Writes into figures for how long each device has not answered.
pub(crate) fn complete(report: &mut Value, found: &[Unanswered]) {
    let seconds = |volume: Option<&str>| {
        let ages = found.iter().filter(|one| one.volume.as_deref() == volume);
        ages.map(|one| one.pending.age.as_secs()).max().unwrap_or(0)
    };
    if let Some(cache) = report.get_mut("cache").and_then(Value::as_object_mut) {
        cache.insert("oldest_pending_io_seconds".to_owned(), json!(seconds(None)));
    }
    for volume in report.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        let age = volume["name"].as_str().map_or(0, |name| seconds(Some(name)));
        volume["oldest_pending_io_seconds"] = json!(age);
    }
}

/// The oldest of those that count as stalled.
pub(crate) fn stalled(found: &[Unanswered]) -> Option<PendingIo> {
    let stalled = found.iter().filter(|one| one.pending.age >= STALLED);
    stalled.max_by_key(|one| one.pending.age).map(named)
}
