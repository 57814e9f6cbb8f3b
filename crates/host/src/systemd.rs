//! What systemd hears from a server, by the protocol of `sd_notify(3)`. Where no service manager
//! listens, nobody is told and nothing fails.

use std::time::{Duration, Instant};

use sd_notify::NotifyState;
use tracing::warn;

/// The service manager of a server that serves.
#[derive(Debug)]
pub struct Systemd {
    /// How often it wants to hear that the server lives, and when it heard so last.
    watchdog: Option<(Duration, Instant)>,
}

impl Systemd {
    /// Says that the server serves from now on.
    pub fn ready() -> Systemd {
        tell(&[NotifyState::Ready]);
        // Twice in each period, so that one late word does no harm.
        let watchdog = sd_notify::watchdog_enabled().map(|period| (period / 2, Instant::now()));
        Systemd { watchdog }
    }

    /// Says that the server lives, if it is time to. To be called more often than that.
    pub fn alive(&mut self) {
        if let Some((interval, last)) = &mut self.watchdog
            && last.elapsed() >= *interval
        {
            *last = Instant::now();
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

fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        warn!("the service manager cannot be told: {error}");
    }
}
