//! Devices that do not answer, and ground that vanishes: what is said of them.
//!
//! Operations wait for as long as the device takes: an answer that comes late is right, and one
//! that was given up may still come true.

use std::time::{Duration, Instant};

use entresol_device::{Attended, PendingIo};
use entresol_tier::Tiered;
use parking_lot::Mutex;

/// From when on a request that is pending is no longer taken for a slow one.
pub const STALLED: Duration = Duration::from_secs(30);
/// How often devices are looked at.
pub const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How often whoever watches looks whether it is to end.
pub const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// What people were told of devices that do not answer.
#[derive(Debug, Default)]
pub struct Stalls {
    /// The devices, and the ages that they were told at.
    told: Vec<PendingIo>,
}

impl Stalls {
    /// What there is to say now of each device: once it is stalled, each time that it lasts twice
    /// as long, and once it is over.
    pub fn look(&mut self, oldest: &[PendingIo]) -> Vec<String> {
        let stalled = |device: &str| {
            oldest.iter().find(|pending| pending.device == device && pending.age >= STALLED)
        };
        let mut said = Vec::new();
        self.told.retain(|told| {
            let lasts = stalled(&told.device).is_some();
            if !lasts {
                said.push(format!("device {} answers again", told.device));
            }
            lasts
        });
        for pending in oldest.iter().filter(|pending| pending.age >= STALLED) {
            match self.told.iter_mut().find(|told| told.device == pending.device) {
                Some(told) if pending.age < told.age * 2 => continue,
                Some(told) => told.age = pending.age,
                None => self.told.push(pending.clone()),
            }
            said.push(format!(
                "device {}: oldest I/O pending for {} s; what needs it waits; check the device",
                pending.device,
                pending.age.as_secs()
            ));
        }
        said
    }
}

/// What people were told of write buffers and files that are taken away under the store.
#[derive(Debug, Default)]
pub struct Losses {
    wrong: Option<String>,
    remade: u64,
}

impl Losses {
    /// What there is to say now: what is wrong once, and that it is right again.
    pub fn look(&mut self, wrong: Option<String>, remade: u64) -> Vec<String> {
        let mut said = Vec::new();
        if self.remade != remade {
            self.remade = remade;
            said.push(format!(
                "somebody removed the write buffers of the running store ({remade} times by now); \
                 they were made again, with all that was acknowledged; find out who does: \
                 systemd's `RemoveIPC` does so when the user logs out"
            ));
        }
        if self.wrong != wrong {
            said.push(wrong.clone().unwrap_or_else(|| "the store's files are all there".into()));
            self.wrong = wrong;
        }
        said
    }
}

/// For how long requests to a store's device have not been answered: known from the first look
/// on, so somebody looks every second. Time that nobody looked does not count. Thread-safe.
#[derive(Debug)]
pub struct PendingAges {
    began: Instant,
    attended: Mutex<Attended>,
}

impl Default for PendingAges {
    fn default() -> PendingAges {
        PendingAges { began: Instant::now(), attended: Mutex::default() }
    }
}

impl PendingAges {
    /// The oldest request that the device of `tiered` has not answered.
    pub fn oldest(&self, tiered: &Tiered) -> Option<PendingIo> {
        let now = self.attended.lock().look(self.began.elapsed());
        tiered.store().device().oldest_pending(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(device: &str, seconds: u64) -> PendingIo {
        PendingIo { device: device.to_owned(), age: Duration::from_secs(seconds) }
    }

    #[test]
    fn a_stall_is_told_once_again_when_it_lasts_twice_as_long_and_when_it_is_over() {
        let mut stalls = Stalls::default();
        let mut said = Vec::new();
        for second in 0..200 {
            let told = stalls.look(&[pending("/dev/x", second)]);
            said.extend(told.into_iter().map(|said| (second, said)));
        }
        let times: Vec<u64> = said.iter().map(|(second, _)| *second).collect();
        assert_eq!(times, [30, 60, 120]);
        assert!(said[0].1.starts_with("device /dev/x: oldest I/O pending for 30 s"), "{said:?}");
        assert_eq!(stalls.look(&[pending("/dev/x", 2)]), ["device /dev/x answers again"]);
        assert_eq!(stalls.look(&[]), [""; 0]);
        assert_eq!(stalls.look(&[pending("/dev/x", 29)]), [""; 0]);
        assert_eq!(stalls.look(&[pending("/dev/x", 31)]).len(), 1);
        assert_eq!(stalls.look(&[]), ["device /dev/x answers again"]);
    }

    #[test]
    fn what_is_taken_away_is_told_once_and_so_is_its_return() {
        let mut losses = Losses::default();
        assert_eq!(losses.look(None, 0), [""; 0]);
        assert!(losses.look(None, 1)[0].contains("RemoveIPC"));
        let gone = || Some("no room".to_owned());
        assert_eq!(losses.look(gone(), 1), ["no room"]);
        assert_eq!(losses.look(gone(), 1), [""; 0]);
        assert_eq!(losses.look(None, 2).len(), 2);
        assert_eq!(losses.look(None, 2), [""; 0]);
    }

    /// Of a stripe whose first member answered again while another one did not, nothing was said
    /// of the other until it had lasted twice as long as the first.
    #[test]
    fn each_device_is_told_of() {
        let mut stalls = Stalls::default();
        assert_eq!(stalls.look(&[pending("/dev/x", 100)]).len(), 1);
        let said = stalls.look(&[pending("/dev/y", 40)]);
        assert_eq!(said.len(), 2);
        assert_eq!(said[0], "device /dev/x answers again");
        assert!(said[1].starts_with("device /dev/y: oldest I/O pending for 40 s"), "{said:?}");
        let both = [pending("/dev/x", 35), pending("/dev/y", 50)];
        assert!(stalls.look(&both)[0].starts_with("device /dev/x: oldest I/O pending for 35 s"));
        assert_eq!(stalls.look(&both), [""; 0]);
    }
}
