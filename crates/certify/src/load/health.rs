//! The health report of an NVMe device: wear, spare blocks, media errors, throttling.
//!
//! A thread of its own asks each device every [`PAUSE`], so that a device that does not answer
//! delays no report, and a slow device is not asked often. Nobody waits for the thread: it ends by
//! itself once nobody needs its answers.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::{Builder, Thread};
use std::time::Duration;

use entresol_device::{NVME_HEALTH_BYTES, nvme_health_log};
use parking_lot::Mutex;

/// What a device said last. Counts are since it was made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Health {
    /// Share of its endurance used, %; may exceed 100.
    pub(crate) wear_percent: f64,
    /// Share of its spare blocks that is left, %.
    pub(crate) spare_percent: f64,
    /// °C; `None`: not told.
    pub(crate) temperature: Option<f64>,
    /// Bits of the critical warning: spare low, temperature, unreliable, read-only, …
    pub(crate) warnings: u8,
    /// Data that it could not bring back, or not without the last means.
    pub(crate) media_errors: u64,
    /// Seconds that it went slower so as not to get too hot.
    pub(crate) throttled_seconds: u64,
}

/// Knows the latest of one device.
#[derive(Debug)]
pub(crate) struct HealthWatch {
    latest: Arc<Mutex<Option<Health>>>,
    asks: Thread,
}

/// How long a device is left alone between two questions.
const PAUSE: Duration = Duration::from_secs(10);

impl Health {
    /// Reads the SMART / Health Information log.
    pub(crate) fn of_page(page: &[u8; NVME_HEALTH_BYTES]) -> Health {
        let number = |from: usize, bytes: usize| {
            page[from..from + bytes]
                .iter()
                .rev()
                .fold(0u128, |sum, &byte| sum << 8 | u128::from(byte))
        };
        let kelvin = number(1, 2) as f64;
        let throttled = number(224, 4) + number(228, 4);
        Health {
            wear_percent: f64::from(page[5]),
            spare_percent: f64::from(page[3]),
            temperature: (kelvin > 0.0).then_some(kelvin - 273.0),
            warnings: page[0],
            media_errors: u64::try_from(number(160, 16)).unwrap_or(u64::MAX),
            throttled_seconds: throttled as u64,
        }
    }
}

impl HealthWatch {
    /// Of the block device that the system keeps in this directory; `None`: it is no NVMe device,
    /// or does not tell us.
    pub(crate) fn of(directory: &Path) -> Option<HealthWatch> {
        let whole = match directory.join("partition").exists() {
            true => directory.parent()?,
            false => directory,
        };
        let name = whole.file_name()?.to_str()?;
        if !name.starts_with("nvme") {
            return None;
        }
        let device = File::open(Path::new("/dev").join(name)).ok()?;
        HealthWatch::asking(move || nvme_health_log(&device))
    }

    /// Asks by `ask` until it fails or nobody wants to know any more.
    fn asking(
        mut ask: impl FnMut() -> io::Result<[u8; NVME_HEALTH_BYTES]> + Send + 'static,
    ) -> Option<HealthWatch> {
        let latest = Arc::new(Mutex::new(None));
        let wanted = Arc::downgrade(&latest);
        let work = move || {
            while wanted.strong_count() > 0
                && let Ok(page) = ask()
                && let Some(latest) = wanted.upgrade()
            {
                *latest.lock() = Some(Health::of_page(&page));
                drop(latest);
                std::thread::park_timeout(PAUSE);
            }
        };
        let asks = Builder::new().name("health".to_owned()).spawn(work).ok()?.thread().clone();
        Some(HealthWatch { latest, asks })
    }

    /// What it said last.
    pub(crate) fn latest(&self) -> Option<Health> {
        *self.latest.lock()
    }
}

impl Drop for HealthWatch {
    fn drop(&mut self) {
        self.latest = Arc::default();
        self.asks.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// A log as a drive with 3 % of its endurance used kept it, at 41 °C.
    fn recorded() -> [u8; NVME_HEALTH_BYTES] {
        let mut page = [0; NVME_HEALTH_BYTES];
        // No warning; 314 K; 100 % spare, threshold 10 %; 3 % used.
        page[..6].copy_from_slice(&[0, 0x3a, 0x01, 100, 10, 3]);
        // Data units read and written, host commands.
        page[32..40].copy_from_slice(&0x0000_0000_02c5_1f3a_u64.to_le_bytes());
        page[48..56].copy_from_slice(&0x0000_0000_03f0_77c1_u64.to_le_bytes());
        page[112..116].copy_from_slice(&87_u32.to_le_bytes());
        page[128..132].copy_from_slice(&9214_u32.to_le_bytes());
        // Two media errors; throttled lightly for 75 s and heavily for 5 s.
        page[160..164].copy_from_slice(&2_u32.to_le_bytes());
        page[200..202].copy_from_slice(&314_u16.to_le_bytes());
        page[224..228].copy_from_slice(&75_u32.to_le_bytes());
        page[228..232].copy_from_slice(&5_u32.to_le_bytes());
        page
    }

    #[test]
    fn a_recorded_log_is_read_as_the_specification_has_it() {
        let expected = Health {
            wear_percent: 3.0,
            spare_percent: 100.0,
            temperature: Some(41.0),
            warnings: 0,
            media_errors: 2,
            throttled_seconds: 80,
        };
        assert_eq!(Health::of_page(&recorded()), expected);
        let mut worn = recorded();
        (worn[0], worn[1], worn[2], worn[5]) = (0x04, 0, 0, 255);
        worn[160..176].fill(0xff);
        let health = Health::of_page(&worn);
        assert_eq!((health.wear_percent, health.warnings), (255.0, 4));
        assert_eq!((health.temperature, health.media_errors), (None, u64::MAX));
    }

    #[test]
    fn a_device_is_asked_until_nobody_wants_to_know() {
        let (tell, told) = mpsc::channel();
        let ask = move || {
            // The answer is in place once the next question is asked.
            let _nobody_waits = tell.send(());
            Ok(recorded())
        };
        let watch = HealthWatch::asking(ask).unwrap();
        told.recv().unwrap();
        watch.asks.unpark();
        told.recv().unwrap();
        assert_eq!(watch.latest().map(|health| health.wear_percent), Some(3.0));
        drop(watch);
        while told.recv().is_ok() {}
    }

    #[test]
    fn a_device_that_does_not_tell_has_no_health() {
        let (tell, told) = mpsc::channel::<()>();
        let watch = HealthWatch::asking(move || {
            let _kept_until_the_end = &tell;
            Err(io::Error::from(io::ErrorKind::PermissionDenied))
        });
        assert!(told.recv().is_err(), "it is asked once");
        assert_eq!(watch.unwrap().latest(), None);
        assert!(HealthWatch::of(Path::new("/sys/block/vda")).is_none());
    }
}
