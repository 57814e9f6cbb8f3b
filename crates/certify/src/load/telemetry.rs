//! The system's figures of devices, as differences from one look to the next.
//!
//! Counts come from the block device that a target is or lies on, temperatures from its hardware
//! monitor, and wear, errors and throttling from the health log of an NVMe device. Without such
//! figures the counts stay 0, and the rest is unknown.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::load::health::{Health, HealthWatch};
use crate::load::interval::Telemetry;
use crate::load::serial;
use crate::load::target::Target;

/// Looks at all targets of a load.
#[derive(Debug)]
pub(crate) struct Meter {
    devices: Vec<Watched>,
    looked: Instant,
}

#[derive(Debug)]
struct Watched {
    name: String,
    directory: Option<PathBuf>,
    before: Counts,
    health: Option<HealthWatch>,
    health_before: Option<Health>,
}

/// The counts of a `stat` file that are used.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Counts {
    reads: u64,
    read_sectors: u64,
    writes: u64,
    written_sectors: u64,
    busy_ms: u64,
    waiting_ms: u64,
}

/// The unit of the system's counts, whatever the device's sector is.
const SECTOR_BYTES: u64 = 512;

impl Meter {
    pub(crate) fn new(targets: &[Target]) -> Meter {
        let watched = targets.iter().map(|target| {
            let directory = target.path().and_then(serial::holding_directory);
            let before = counts(directory.as_deref());
            let health = directory.as_deref().and_then(HealthWatch::of);
            let name = target.name().to_owned();
            Watched { name, directory, before, health, health_before: None }
        });
        Meter { devices: watched.collect(), looked: Instant::now() }
    }

    /// What happened since the last look.
    pub(crate) fn read(&mut self) -> Vec<Telemetry> {
        let now = Instant::now();
        let milliseconds = now.duration_since(self.looked).as_secs_f64() * 1e3;
        self.looked = now;
        self.devices.iter_mut().map(|device| device.read(milliseconds)).collect()
    }
}

impl Watched {
    fn read(&mut self, milliseconds: f64) -> Telemetry {
        let now = counts(self.directory.as_deref());
        let temperature = self.directory.as_deref().and_then(temperature);
        let before = std::mem::replace(&mut self.before, now);
        let health = self.health.as_ref().and_then(HealthWatch::latest);
        // What was counted before the first look is not of this load.
        let health_before = std::mem::replace(&mut self.health_before, health).or(health);
        let grown = |count: fn(&Health) -> u64| {
            let (now, before) = (health.as_ref()?, health_before.as_ref()?);
            Some(count(now).saturating_sub(count(before)))
        };
        let share = |a: u64, b: u64| a.saturating_sub(b) as f64 / milliseconds.max(1.0);
        Telemetry {
            device: self.name.clone(),
            reads: now.reads.saturating_sub(before.reads),
            read_bytes: now.read_sectors.saturating_sub(before.read_sectors) * SECTOR_BYTES,
            writes: now.writes.saturating_sub(before.writes),
            written_bytes: now.written_sectors.saturating_sub(before.written_sectors)
                * SECTOR_BYTES,
            busy: share(now.busy_ms, before.busy_ms).min(1.0),
            queue_depth: share(now.waiting_ms, before.waiting_ms),
            temperature: temperature.or(health.and_then(|health| health.temperature)),
            wear_percent: health.map(|health| health.wear_percent),
            spare_percent: health.map(|health| health.spare_percent),
            media_errors: grown(|health| health.media_errors),
            throttled_seconds: grown(|health| health.throttled_seconds),
            warnings: health.map(|health| health.warnings),
        }
    }
}

fn counts(directory: Option<&Path>) -> Counts {
    let text = directory.and_then(|directory| fs::read_to_string(directory.join("stat")).ok());
    text.and_then(|text| parse(&text)).unwrap_or_default()
}

/// How many requests the block device that `path` is or lies on takes at once; `None`: not known.
pub(crate) fn requests_max(path: &Path) -> Option<usize> {
    let directory = serial::holding_directory(path)?;
    let whole = if directory.join("partition").exists() { directory.parent()? } else { &directory };
    fs::read_to_string(whole.join("queue/nr_requests")).ok()?.trim().parse().ok()
}

/// Reads requests, merges, sectors and ms of reads, the same of writes, requests in flight, ms
/// busy, and ms that requests waited, all told.
fn parse(text: &str) -> Option<Counts> {
    let numbers: Vec<u64> =
        text.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    Some(Counts {
        reads: *numbers.first()?,
        read_sectors: *numbers.get(2)?,
        writes: *numbers.get(4)?,
        written_sectors: *numbers.get(6)?,
        busy_ms: *numbers.get(9)?,
        waiting_ms: *numbers.get(10)?,
    })
}

/// °C, from the hardware monitor of the device or of the controller above it.
fn temperature(directory: &Path) -> Option<f64> {
    let whole = if directory.join("partition").exists() { directory.parent()? } else { directory };
    let device = whole.join("device");
    let monitors = [device.join("hwmon"), device.clone(), device.join("device/hwmon")];
    let entries = monitors.iter().filter_map(|place| fs::read_dir(place).ok()).flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("hwmon"))
        .find_map(|entry| fs::read_to_string(entry.path().join("temp1_input")).ok())
        .and_then(|text| text.trim().parse::<f64>().ok())
        .map(|thousandths| thousandths / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_the_system_s_line() {
        let line = "  100  1  800  30  50  2  12800  40  0  70  75  0 0 0 0 5 6\n";
        let expected = Counts {
            reads: 100,
            read_sectors: 800,
            writes: 50,
            written_sectors: 12800,
            busy_ms: 70,
            waiting_ms: 75,
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("1 2 3"), None);
        assert_eq!(parse("a b c d e f g h i j k"), None);
    }
}
