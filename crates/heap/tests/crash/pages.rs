//! The simulated device as the backing of a heap, for media that are written by pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use entresol_device::{Device, IoBuffer};
use entresol_heap::backing::{Backing, Counters, Site, Survival, Unit};
use entresol_heap::{Error, ErrorKind, Result};
use entresol_sim::{CrashChoice, SimDevice, SimOptions};

use crate::recorder::{CAPACITY_BYTES, Recorder, State};

/// Random fates tried before each sync.
const RANDOM_CHOICES: u64 = 6;

pub(crate) struct SimPages {
    device: SimDevice,
    bytes: AtomicU64,
    recorder: Arc<Recorder>,
    counters: Counters,
}

impl SimPages {
    pub(crate) fn new(state: &State, recorder: Arc<Recorder>, seed: u64) -> SimPages {
        let options = SimOptions::new(seed, CAPACITY_BYTES);
        let device = SimDevice::from_image(state.image.clone(), options);
        let (bytes, counters) = (AtomicU64::new(state.bytes), Counters::default());
        SimPages { device, bytes, recorder, counters }
    }

    fn record(&self, site: Site) {
        if !self.recorder.is_recording() {
            return;
        }
        let mut choices = self.device.crash_choices();
        if choices.len() > 2 {
            let seed = self.device.calls() * RANDOM_CHOICES;
            choices.extend((seed..seed + RANDOM_CHOICES).map(CrashChoice::Random));
        }
        for choice in choices {
            let image = self.device.image_after_crash(choice);
            let what = format!("{site:?} at call {}, {choice:?}", self.device.calls());
            self.recorder.add(image, self.bytes.load(Ordering::Relaxed), what);
        }
    }
}

impl Backing for SimPages {
    fn name(&self) -> String {
        "simulated pages".to_owned()
    }

    fn unit(&self) -> Unit {
        Unit::Page
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.bytes.load(Ordering::Relaxed))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let start = offset / 4096 * 4096;
        let end = (offset + out.len() as u64).next_multiple_of(4096);
        if end > start {
            let mut buffer = IoBuffer::aligned((end - start) as usize);
            self.device.read_at(start, &mut buffer).map_err(failed)?;
            let from = (offset - start) as usize;
            out.copy_from_slice(&buffer[from..from + out.len()]);
        }
        Ok(())
    }

    fn write(&self, _: Site, offset: u64, bytes: &[u8]) -> Result<()> {
        assert!(offset.is_multiple_of(4096) && bytes.len().is_multiple_of(4096), "whole pages");
        assert!(offset + bytes.len() as u64 <= self.bytes()?, "a write past the end");
        self.counters.count_write(offset, bytes.len() as u64);
        let mut buffer = IoBuffer::aligned(bytes.len());
        buffer.copy_from_slice(bytes);
        self.device.write_at(offset, &buffer).map_err(failed)
    }

    fn zero(&self, site: Site, offset: u64, length: u64) -> Result<()> {
        self.write(site, offset, &vec![0; length as usize])
    }

    fn sync(&self, site: Site) -> Result<()> {
        self.counters.count_sync();
        self.record(site);
        if self.recorder.leaves_out(site) {
            return Ok(());
        }
        self.device.sync().map_err(failed)
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        if bytes > CAPACITY_BYTES {
            return Err(Error::new(ErrorKind::Full, "simulated: no room"));
        }
        let before = self.bytes.load(Ordering::Relaxed);
        if bytes > before {
            // What was cut off once must not come back.
            let zeros = IoBuffer::aligned((bytes - before) as usize);
            self.device.write_at(before, &zeros).map_err(failed)?;
        }
        self.device.sync().map_err(failed)?;
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn make_room(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn survival(&self) -> Survival {
        Survival::Power
    }

    fn release(&self) {}

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

fn failed(error: entresol_device::Error) -> Error {
    Error::new(ErrorKind::Io, error.to_string())
}
