//! What systemd hears from a server, by the protocol of `sd_notify(3)`. Where no service manager
//! listens, nobody is told and nothing fails.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sd_notify::NotifyState;
use tracing::warn;

/// The service manager of a server that serves. Thread-safe.
#[derive(Debug)]
pub struct Systemd {
    watchdog: Option<Watchdog>,
}

/// What waits to hear that the server lives.
#[derive(Debug)]
struct Watchdog {
    interval: Duration,
    began: Instant,
    /// When it heard so last, nanoseconds after it began.
    told_ns: AtomicU64,
}

impl Systemd {
    /// Says that the server serves from now on.
    pub fn ready() -> Systemd {
        tell(&[NotifyState::Ready]);
        // Twice in each period, so that one late word does no harm.
        let watchdog = sd_notify::watchdog_enabled().map(|period| Watchdog {
            interval: period / 2,
            began: Instant::now(),
            told_ns: AtomicU64::new(0),
        });
        Systemd { watchdog }
    }

    /// Says that the server lives, if it is time to. To be called more often than that, by what
    /// does the server's work: the watchdog is there for the case that this stands still.
    pub fn alive(&self) {
        if self.watchdog.as_ref().is_some_and(Watchdog::is_due) {
            tell(&[NotifyState::Watchdog]);
        }
    }

    /// Does `work`, a reload, and says when it begins and ends.
    pub fn reload(&self, work: impl FnOnce()) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => tell(&[NotifyState::Reloading, now]),
            Err(_) => tell(&[NotifyState::Reloading]),
        }
        work();
        tell(&[NotifyState::Ready]);
    }

    /// Says that the server comes to its end.
    pub fn stopping(&self) {
        tell(&[NotifyState::Stopping]);
    }
}

impl Watchdog {
    /// Whether it is to be told now; of threads that ask at a time, one is to do so.
    fn is_due(&self) -> bool {
        let now = self.began.elapsed().as_nanos() as u64;
        let told = self.told_ns.load(Ordering::Relaxed);
        let is_late = u128::from(now.saturating_sub(told)) >= self.interval.as_nanos();
        let (set, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        is_late && self.told_ns.compare_exchange(told, now, set, failed).is_ok()
    }
}

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        warn!("the service manager cannot be told: {error}");
    }
}
