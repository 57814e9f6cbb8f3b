//! A device that does not answer: what is said of it, and figures that do not wait for it.
//!
//! Operations wait for as long as the device takes: an answer that comes late is right, and one
//! that was given up may still come true.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use entresol_device::PendingIo;
use entresol_tier::{Statistics, Tiered};

use crate::client::lock;
use crate::error::ServeError;
use crate::shared::Shared;
use crate::worker::report;

/// From when on a request that is pending is no longer taken for a slow one.
pub(crate) const STALLED: Duration = Duration::from_secs(30);
/// How long whoever asks for figures waits for the device.
const FIGURES_WAIT: Duration = Duration::from_secs(2);
/// How often the device is looked at, and how often whether the server stops.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// What people were told of a device that does not answer.
#[derive(Debug, Default)]
struct Stall {
    /// The device, and the age that it was told at.
    told: Option<PendingIo>,
}

impl Stall {
    /// What there is to say now: once it is stalled, each time that it lasts twice as long, and
    /// once it is over.
    fn look(&mut self, oldest: Option<PendingIo>) -> Option<String> {
        let stalled = oldest.filter(|pending| pending.age >= STALLED);
        let Some(pending) = stalled else {
            let PendingIo { device, .. } = self.told.take()?;
            return Some(format!("device {device} answers again"));
        };
        if self.told.as_ref().is_some_and(|told| pending.age < told.age * 2) {
            return None;
        }
        let seconds = pending.age.as_secs();
        let said = format!(
            "device {}: oldest I/O pending for {seconds} s; what needs it waits; check the device",
            pending.device
        );
        self.told = Some(pending);
        Some(said)
    }
}

/// Looks at the device until the server stops.
pub(crate) fn watch(shared: &Shared) -> Result<(), ServeError> {
    let mut stall = Stall::default();
    let mut looked = Duration::ZERO;
    while !shared.is_stopping() {
        let now = shared.started.elapsed();
        if now >= looked + LOOK_INTERVAL {
            looked = now;
            if let Some(said) = stall.look(shared.oldest_pending()) {
                report(&said);
            }
        }
        std::thread::park_timeout(STOP_INTERVAL);
    }
    Ok(())
}

/// The figures of a store, for whoever must not wait for its device: its shards may be locked while
/// it does not answer.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    latest: Arc<Mutex<Option<Statistics>>>,
    /// Whether a thread waits for them.
    asked: Arc<AtomicBool>,
}

impl Figures {
    /// Those of now, or the latest where the store does not give them in time.
    pub(crate) fn of(&self, tier: &Arc<Tiered>) -> Option<Statistics> {
        if !self.asked.swap(true, Ordering::AcqRel) {
            let (tier, latest) = (Arc::clone(tier), Arc::clone(&self.latest));
            let asked = Arc::clone(&self.asked);
            let (done, is_done) = sync_channel(1);
            let ask = move || {
                let statistics = tier.statistics();
                drop(tier);
                *lock(&latest) = Some(statistics);
                asked.store(false, Ordering::Release);
                // Whoever asked may have given up.
                let _ = done.send(());
            };
            match std::thread::Builder::new().name("figures".to_owned()).spawn(ask) {
                // An end without a word is one, too: the latest are all there is.
                Ok(_) => drop(is_done.recv_timeout(FIGURES_WAIT)),
                Err(_) => self.asked.store(false, Ordering::Release),
            }
        }
        lock(&self.latest).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(seconds: u64) -> Option<PendingIo> {
        Some(PendingIo { device: "/dev/x".to_owned(), age: Duration::from_secs(seconds) })
    }

    #[test]
    fn a_stall_is_told_once_again_when_it_lasts_twice_as_long_and_when_it_is_over() {
        let mut stall = Stall::default();
        let mut said = Vec::new();
        for second in 0..200 {
            said.extend(stall.look(pending(second)).map(|said| (second, said)));
        }
        let times: Vec<u64> = said.iter().map(|(second, _)| *second).collect();
        assert_eq!(times, [30, 60, 120]);
        assert!(said[0].1.starts_with("device /dev/x: oldest I/O pending for 30 s"), "{said:?}");
        assert_eq!(stall.look(pending(2)).as_deref(), Some("device /dev/x answers again"));
        assert_eq!(stall.look(None), None);
        assert_eq!(stall.look(pending(29)), None);
        assert!(stall.look(pending(31)).is_some());
        assert!(stall.look(None).is_some_and(|said| said.contains("answers again")));
    }
}
