//! Volumes in memory, for tests of front ends: they answer in any order, fail where they are told
//! to, and hold their answers back for as long as a test wants.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use entresol_device::{Counters, Device, Geometry, MemoryDevice, PendingIo, Queue, QueueOptions};
use entresol_volume::{
    Completion, Context, Cost, Devices, Error, ErrorKind, Mode, Moment, Request, Result, Run,
    VolumeId, VolumeInfo, VolumeOptions, Volumes,
};

/// What residency and allocation are told in.
const BLOCK_BYTES: u64 = 4096;

/// What a test does to volumes that another thread serves.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// While set, nothing is answered.
    pub(crate) holds: AtomicBool,
    /// While set, the device under the volumes has not answered for 45 seconds.
    pub(crate) sticks: AtomicBool,
    /// Volumes take no turn while it is locked.
    pub(crate) turns: Mutex<()>,
    /// They wait for that.
    pub(crate) waits: AtomicBool,
    /// Requests that were submitted.
    pub(crate) submitted: AtomicU64,
    /// Flushes that were submitted.
    pub(crate) flushes: AtomicU64,
    /// Requests that must survive power loss at once.
    pub(crate) durable: AtomicU64,
}

/// A device that has not answered for 45 seconds while the gate says so.
struct StuckDevice {
    memory: MemoryDevice,
    gate: Arc<Gate>,
}

impl Device for StuckDevice {
    fn geometry(&self) -> Geometry {
        self.memory.geometry()
    }
    fn name(&self) -> String {
        "/ssd/cache".to_owned()
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> entresol_device::Result<()> {
        self.memory.read_at(offset, buffer)
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> entresol_device::Result<()> {
        self.memory.write_at(offset, bytes)
    }
    fn sync(&self) -> entresol_device::Result<()> {
        self.memory.sync()
    }
    fn discard(&self, offset: u64, length: u64) -> entresol_device::Result<()> {
        self.memory.discard(offset, length)
    }
    fn queue(&self, options: QueueOptions) -> entresol_device::Result<Box<dyn Queue>> {
        self.memory.queue(options)
    }
    fn oldest_pending(&self, _now: Duration) -> Option<PendingIo> {
        let sticks = self.gate.sticks.load(Ordering::SeqCst);
        sticks.then(|| PendingIo { device: self.name(), age: Duration::from_secs(45) })
    }
    fn counters(&self) -> &Counters {
        self.memory.counters()
    }
}

/// Volumes in memory.
pub(crate) struct MemoryVolumes {
    volumes: Vec<Volume>,
    waiting: Vec<Completion>,
    gate: Arc<Gate>,
    random: u64,
    devices: Arc<Devices>,
}

/// One of them.
pub(crate) struct Volume {
    pub(crate) info: VolumeInfo,
    bytes: Vec<u8>,
    /// For each block: bit 0, allocated; bit 1, cached.
    blocks: Vec<u8>,
    /// Whether zeros cost less than a write in modes that are not lazy.
    pub(crate) zeroes_fast: bool,
    /// Reads and writes that touch this range fail.
    pub(crate) bad: std::ops::Range<u64>,
}

impl Volume {
    /// A volume of `size` bytes, all zeros.
    pub(crate) fn new(name: &str, size: u64) -> Volume {
        let info = VolumeInfo {
            id: VolumeId(0),
            name: name.to_owned(),
            description: String::new(),
            bytes: size,
            mode: Mode::WriteThrough,
            read_only: false,
            can_trim: true,
            preferred_bytes: BLOCK_BYTES as u32,
        };
        let blocks = vec![0; size.div_ceil(BLOCK_BYTES) as usize];
        let bytes = vec![0; size as usize];
        Volume { info, bytes, blocks, zeroes_fast: true, bad: 0..0 }
    }

    fn range(&self, offset: u64, length: u64) -> Result<std::ops::Range<usize>> {
        let end = offset.checked_add(length).filter(|end| *end <= self.info.bytes);
        let end = end.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "past the end"))?;
        if offset < self.bad.end && end > self.bad.start {
            let detail = format!("a bad place from {} on", self.bad.start);
            return Err(Error::new(ErrorKind::Io, detail));
        }
        Ok(offset as usize..end as usize)
    }

    fn mark(&mut self, offset: u64, length: u64, set: u8, clear: u8) {
        let (first, end) = (offset / BLOCK_BYTES, (offset + length).div_ceil(BLOCK_BYTES));
        for block in &mut self.blocks[first as usize..end as usize] {
            *block = *block & !clear | set;
        }
    }

    fn perform(&mut self, request: &Request) -> Result<Bytes> {
        match request {
            Request::Read { offset, length } => {
                let range = self.range(*offset, u64::from(*length))?;
                self.mark(*offset, u64::from(*length), 2, 0);
                return Ok(Bytes::copy_from_slice(&self.bytes[range]));
            }
            Request::Write { offset, bytes, .. } => {
                let range = self.range(*offset, bytes.len() as u64)?;
                self.bytes[range].copy_from_slice(bytes);
                self.mark(*offset, bytes.len() as u64, 3, 0);
            }
            Request::Zero { cost: Cost::LessThanWrite, .. }
                if !self.zeroes_fast && !self.info.mode.is_lazy() =>
            {
                return Err(Error::new(ErrorKind::Unsupported, "zeros are slow"));
            }
            Request::Trim { offset, length, .. } | Request::Zero { offset, length, .. } => {
                let range = self.range(*offset, *length)?;
                self.bytes[range].fill(0);
                let whole = offset.next_multiple_of(BLOCK_BYTES);
                let end = (offset + length) / BLOCK_BYTES * BLOCK_BYTES;
                if end > whole {
                    self.mark(whole, end - whole, 0, 3);
                }
            }
            Request::Prefetch { offset, length } => {
                self.range(*offset, *length)?;
                self.mark(*offset, *length, 2, 0);
            }
            Request::SetMode(mode) => self.info.mode = *mode,
            // Nothing is dirty, and nothing of it is limited.
            _ => {}
        }
        Ok(Bytes::new())
    }
}

impl MemoryVolumes {
    /// These volumes; their answers come in an order that `seed` says.
    pub(crate) fn new(volumes: Vec<Volume>, gate: Arc<Gate>, seed: u64) -> MemoryVolumes {
        let mut volumes = volumes;
        for (number, volume) in volumes.iter_mut().enumerate() {
            volume.info.id = VolumeId(number as u16);
        }
        let memory = MemoryDevice::new(1 << 20).expect("a MiB of memory");
        let device: Arc<dyn Device> = Arc::new(StuckDevice { memory, gate: Arc::clone(&gate) });
        let devices = Arc::new(Devices::new(Some(device)));
        MemoryVolumes { volumes, waiting: Vec::new(), gate, random: seed | 1, devices }
    }

    fn volume(&mut self, id: VolumeId) -> Result<&mut Volume> {
        let found = self.volumes.get_mut(usize::from(id.0));
        found.ok_or_else(|| Error::new(ErrorKind::Name, format!("no volume {}", id.0)))
    }

    /// A number below `limit`: xorshift (Marsaglia 2003).
    fn below(&mut self, limit: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % limit as u64) as usize
    }
}

impl Volumes for MemoryVolumes {
    fn list(&self) -> Vec<VolumeInfo> {
        self.volumes.iter().map(|volume| volume.info.clone()).collect()
    }

    fn submit(&mut self, volume: VolumeId, token: u64, request: Request, _now: Moment) {
        self.gate.submitted.fetch_add(1, Ordering::SeqCst);
        if request == Request::Flush {
            self.gate.flushes.fetch_add(1, Ordering::SeqCst);
        }
        let durable = entresol_volume::Durable::AtOnce;
        if matches!(&request, Request::Write { durable: d, .. } | Request::Trim { durable: d, .. }
            | Request::Zero { durable: d, .. } if *d == durable)
        {
            self.gate.durable.fetch_add(1, Ordering::SeqCst);
        }
        let result = match request {
            Request::Allocation { offset, length, most } => self
                .extents(volume, Context::Allocation, (offset, length), most)
                .map(|runs| Run::encode(&runs)),
            _ => self.volume(volume).and_then(|found| found.perform(&request)),
        };
        let place = self.below(self.waiting.len() + 1);
        self.waiting.insert(place, Completion { volume, token, result });
    }

    fn turn(&mut self, _now: Moment, completions: &mut Vec<Completion>) {
        if self.gate.turns.try_lock().is_err() {
            self.gate.waits.store(true, Ordering::SeqCst);
            drop(self.gate.turns.lock());
        }
        if !self.gate.holds.load(Ordering::SeqCst) {
            let keep = if self.waiting.len() > 4 { self.below(4) } else { 0 };
            completions.extend(self.waiting.drain(keep..));
        }
    }

    fn wake_at(&self) -> Option<Moment> {
        None
    }

    fn poll_fds(&self) -> Vec<std::os::fd::RawFd> {
        Vec::new()
    }

    fn extents(
        &mut self,
        volume: VolumeId,
        context: Context,
        (offset, length): (u64, u64),
        most: usize,
    ) -> Result<Vec<Run>> {
        let found = self.volume(volume)?;
        found.range(offset, length)?;
        let mut runs: Vec<Run> = Vec::new();
        let (mut at, end) = (offset, offset + length);
        while at < end {
            let block = found.blocks[(at / BLOCK_BYTES) as usize];
            let flags = match context {
                Context::Allocation => {
                    if block & 1 == 0 {
                        3
                    } else {
                        0
                    }
                }
                Context::Residency => u32::from(block >> 1 & 1),
            };
            let next = ((at / BLOCK_BYTES + 1) * BLOCK_BYTES).min(end);
            let count = runs.len();
            match runs.last_mut() {
                Some(last) if last.flags == flags => last.length += next - at,
                _ if count == most => break,
                _ => runs.push(Run { length: next - at, flags }),
            }
            at = next;
        }
        Ok(runs)
    }

    fn create(&mut self, options: &VolumeOptions, _now: Moment) -> Result<VolumeId> {
        if self.volumes.iter().any(|volume| volume.info.name == options.name) {
            let detail = format!("there is a volume '{}' already", options.name);
            return Err(Error::new(ErrorKind::Name, detail));
        }
        let mut volume = Volume::new(&options.name, 1 << 20);
        let id = VolumeId(self.volumes.len() as u16);
        volume.info.id = id;
        volume.info.mode = options.mode;
        self.volumes.push(volume);
        Ok(id)
    }

    fn devices(&self) -> Arc<Devices> {
        Arc::clone(&self.devices)
    }

    fn statistics(&self) -> String {
        let names: Vec<String> = self
            .volumes
            .iter()
            .map(|volume| {
                format!("{{\"name\":\"{}\",\"bytes\":{}}}", volume.info.name, volume.info.bytes)
            })
            .collect();
        format!("{{\"cache\":{{}},\"volumes\":[{}]}}", names.join(","))
    }
}
