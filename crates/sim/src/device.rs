//! A device with faults of every kind, from a seed.
//!
//! | fault | granularity | strikes synced bytes | ordered by |
//! | --- | --- | --- | --- |
//! | lost write in a volatile cache | whole write, any subset, order | no | `image_after_crash` |
//! | torn write | sector | no | `image_after_crash`, `Tear` |
//! | torn sector (garbage) | sync unit | what shares the unit | `image_after_crash`, `Tear` |
//! | misdirected write, read | aligned offset | yes | `misdirect_write`, `misdirect_read` |
//! | latent read error | sector, healed by writing | yes | `fail_reads` |
//! | silent corruption | bits | yes | `flip_bits` |
//! | write error, sync error | call, once or for good | no | `fail_write`, `fail_sync` |
//! | full device | from a call on | no | `fill_up` |
//! | slow, stalled | completions | no | `stall` |
//! | completions out of order | request | no | the seed, `Ordering` |
//! | completions late, as of a device slower than memory | request | no | `Ordering::Late` |
//! | power failure | call | no | `crash_after`, `crash_now` |
//! | a copy with the same identity | device | – | `copied_to` |
//!
//! Invariants:
//! 1. A sync covers writes completed before it was submitted, and nothing else.
//! 2. Without an ordered fault, the promises of `entresol_device::Device` hold.
//! 3. A request of a queue reaches the medium at `submit`, is one call there, and ends at `reap`.
//!
//! It knows nothing of the process: memory and shared memory are not simulated.

use std::io::{PipeReader, PipeWriter, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use entresol_device::{
    Completion, Counters, Device, Doorbell, Error, ErrorKind, Geometry, IoBuffer, Place, Queue,
    QueueOptions, Result, WriteMode, WriteRequest,
};
use parking_lot::Mutex;

use crate::crash::CrashChoice;
use crate::fault::{Call, Persistence, Stall};
use crate::image::Image;
use crate::medium::{Durability, Medium};

const NAME: &str = "simulated";

/// A simulated device. Clones are the same device, so that a test keeps hold of what it hands out.
#[derive(Debug, Clone)]
pub struct SimDevice {
    shared: Arc<Shared>,
}

/// How a simulated device is set up.
#[derive(Debug, Clone, Copy)]
pub struct SimOptions {
    /// Everything random follows from it.
    pub seed: u64,
    /// Sizes and alignments.
    pub geometry: Geometry,
    /// In which order queues complete.
    pub ordering: Ordering,
    /// Which of the devices with this identity it is: a copy has all the same bytes, and is
    /// elsewhere. 0: where it is cannot be known.
    pub place: u64,
}

/// In which order the requests of a queue complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ordering {
    /// Any, from the seed; and no more at a time than waited for, or some more.
    Shuffled,
    /// As submitted, and all that are submitted.
    AsSubmitted,
    /// Any, from the seed, and each after so many looks at its queue at most: the device takes
    /// longer than whoever uses it. As those of a file, its queues have a doorbell, and a
    /// descriptor to wait for, which always polls readable: who waits looks again.
    Late {
        /// Most looks.
        looks_max: u32,
    },
}

#[derive(Debug)]
struct Shared {
    medium: Mutex<Medium>,
    counters: Counters,
    options: SimOptions,
    /// Polls readable for as long as the device is there, where queues tell.
    readable: Option<(PipeReader, PipeWriter)>,
}

impl SimOptions {
    /// `capacity_bytes` with sectors of 512 and units of 4096 bytes, completions shuffled.
    pub fn new(seed: u64, capacity_bytes: u64) -> SimOptions {
        let geometry = Geometry { capacity_bytes, sector_bytes: 512, sync_unit_bytes: 4096 };
        SimOptions { seed, geometry, ordering: Ordering::Shuffled, place: 0 }
    }
}

impl SimDevice {
    /// A device of zeros.
    pub fn new(options: SimOptions) -> SimDevice {
        SimDevice::from_image(Image::blank(options.geometry.capacity_bytes), options)
    }

    /// A device that holds `image`, all of it durable.
    pub fn from_image(image: Image, options: SimOptions) -> SimDevice {
        assert_eq!(image.capacity_bytes(), options.geometry.capacity_bytes, "image of that size");
        let medium = Mutex::new(Medium::new(image, options.geometry, options.seed));
        let readable = matches!(options.ordering, Ordering::Late { .. }).then(readable_pipe);
        let counters = Counters::default();
        SimDevice { shared: Arc::new(Shared { medium, counters, options, readable }) }
    }

    /// Writes, syncs and discards so far: the number of the next one.
    pub fn calls(&self) -> u64 {
        self.medium().log().len() as u64
    }

    /// What they were, in order.
    pub fn call_log(&self) -> Vec<Call> {
        self.medium().log().to_vec()
    }

    /// Reads so far: the number of the next one.
    pub fn reads(&self) -> u64 {
        self.medium().reads()
    }

    /// Power fails during call number `calls`: it and all later ones fail, reads included. If it is
    /// a write, it is among those that may have been kept.
    pub fn crash_after(&self, calls: u64) {
        self.medium().faults.crash_at = Some(calls);
    }

    /// Power fails now.
    pub fn crash_now(&self) {
        self.medium().crash_now();
    }

    /// Whether power has failed.
    pub fn is_crashed(&self) -> bool {
        self.medium().is_crashed()
    }

    /// What may have happened to the writes that no sync covered, short of random subsets
    /// ([`CrashChoice::Random`]).
    pub fn crash_choices(&self) -> Vec<CrashChoice> {
        self.medium().crash_choices()
    }

    /// What the medium holds after power failed now, and `choice` happened.
    pub fn image_after_crash(&self, choice: CrashChoice) -> Image {
        self.medium().image_after_crash(choice)
    }

    /// A device with power, the same options and the image after a crash.
    pub fn reopened(&self, choice: CrashChoice) -> SimDevice {
        SimDevice::from_image(self.image_after_crash(choice), self.shared.options)
    }

    /// Another device, elsewhere, that holds what reads see now, all of it durable.
    pub fn copied_to(&self, place: u64) -> SimDevice {
        SimDevice::from_image(self.image(), SimOptions { place, ..self.shared.options })
    }

    /// What reads see now.
    pub fn image(&self) -> Image {
        self.medium().visible().clone()
    }

    /// Call number `call` fails if it is a write; some of its sectors may be visible afterwards.
    pub fn fail_write(&self, call: u64, persistence: Persistence) {
        self.medium().faults.write_errors.push((call, persistence));
    }

    /// Call number `call` fails if it is a sync; what it should have covered stays unsynced for
    /// good.
    pub fn fail_sync(&self, call: u64, persistence: Persistence) {
        self.medium().faults.sync_errors.push((call, persistence));
    }

    /// Writes from call number `call` on fail as `Full`.
    pub fn fill_up(&self, call: u64) {
        self.medium().faults.full_from = Some(call);
    }

    /// Reads that touch `range` (bytes) fail until it is written.
    pub fn fail_reads(&self, range: Range<u64>) {
        self.medium().faults.unreadable.push(range);
    }

    /// Flips the bits of `mask` in the byte at `offset`, durably.
    pub fn flip_bits(&self, offset: u64, mask: u8) {
        self.medium().flip(offset, mask);
    }

    /// Call number `call`, a write, lands at `offset` instead.
    pub fn misdirect_write(&self, call: u64, offset: u64) {
        self.medium().faults.misdirected_writes.push((call, offset));
    }

    /// Read number `read` gets what is at `offset` instead.
    pub fn misdirect_read(&self, read: u64, offset: u64) {
        self.medium().faults.misdirected_reads.push((read, offset));
    }

    /// Withholds completions of queues.
    pub fn stall(&self, stall: Stall) {
        self.medium().faults.stall = stall;
    }

    /// Ends all faults but a power failure that has happened.
    pub fn heal(&self) {
        self.medium().faults = crate::fault::Faults::none();
    }

    fn medium(&self) -> parking_lot::MutexGuard<'_, Medium> {
        self.shared.medium.lock()
    }
}

impl Device for SimDevice {
    fn geometry(&self) -> Geometry {
        self.shared.options.geometry
    }

    fn name(&self) -> String {
        NAME.to_owned()
    }

    fn places(&self) -> Vec<Place> {
        let device = self.shared.options.place;
        let place = || Place { path: format!("/{NAME}").into(), device, inode: 0, born_ns: 0 };
        (device != 0).then(place).into_iter().collect()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.geometry().check_memory(NAME, offset, buffer)?;
        self.shared.counters.count_read(buffer.len());
        self.medium().read(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.geometry().check_memory(NAME, offset, bytes)?;
        self.shared.counters.count_write(bytes.len(), WriteMode::Flushed);
        let mut medium = self.medium();
        let id = medium.issue_write(offset, bytes.into())?;
        medium.complete_write(id, Durability::Flushed)
    }

    fn sync(&self) -> Result<()> {
        self.shared.counters.count_sync();
        let mut medium = self.medium();
        let covered = medium.issue_sync()?;
        medium.complete_sync(&covered)
    }

    fn discard(&self, offset: u64, length: u64) -> Result<()> {
        self.geometry().check(NAME, offset, length as usize)?;
        self.medium().discard(offset, length)
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        options.check(NAME)?;
        let lanes = Lanes { shared: Arc::clone(&self.shared), state: Mutex::default() };
        Ok(Box::new(SimQueue { lanes: Arc::new(lanes), depth: options.depth }))
    }

    fn counters(&self) -> &Counters {
        &self.shared.counters
    }
}

/// A queue of a simulated device.
struct SimQueue {
    lanes: Arc<Lanes>,
    depth: usize,
}

/// The requests of a queue, and what hands them over.
struct Lanes {
    shared: Arc<Shared>,
    state: Mutex<LaneState>,
}

#[derive(Default)]
struct LaneState {
    gathered: Vec<(u64, Request)>,
    under_way: Vec<Handed>,
}

/// A request that was handed over.
struct Handed {
    token: u64,
    request: UnderWay,
    /// Looks that it takes yet.
    looks: u64,
}

enum Request {
    Read { offset: u64, length: usize },
    Write { offset: u64, bytes: Arc<[u8]>, mode: WriteMode },
    Sync,
}

/// What was handed to the medium.
enum UnderWay {
    /// A read that the medium looks up when it completes.
    Read {
        offset: u64,
        length: usize,
    },
    /// A read that the medium looked up when it was submitted.
    ReadEarly(IoBuffer),
    Write {
        id: u64,
        durability: Durability,
    },
    Sync {
        covered: Vec<u64>,
    },
    Failed {
        error: Error,
        buffer: Option<IoBuffer>,
    },
}

impl SimQueue {
    fn gather(&mut self, token: u64, request: Request) -> Result<()> {
        if self.in_flight() >= self.depth {
            let detail = format!("{NAME}: all {} requests are in flight; reap first", self.depth);
            return Err(Error::new(ErrorKind::Busy, detail));
        }
        self.lanes.state.lock().gathered.push((token, request));
        Ok(())
    }

    /// Takes what has completed, at least `wait_for`; nothing is handed over.
    fn look(&mut self, wait_for: usize, completions: &mut Vec<Completion>) {
        let options = self.lanes.shared.options;
        let mut state = self.lanes.state.lock();
        let mut medium = self.lanes.shared.medium.lock();
        let under_way = &mut state.under_way;
        let count = SimQueue::completing(&mut medium, options, under_way, wait_for);
        for _ in 0..count {
            let next = match options.ordering {
                Ordering::AsSubmitted => 0,
                Ordering::Shuffled => medium.random.below(under_way.len() as u64) as usize,
                Ordering::Late { .. } => {
                    let all = under_way.iter().enumerate();
                    let ready: Vec<_> = all.filter(|(_, handed)| handed.looks == 0).collect();
                    ready[medium.random.below(ready.len() as u64) as usize].0
                }
            };
            let Handed { token, request, .. } = under_way.remove(next);
            completions.push(SimQueue::complete(&mut medium, token, request));
        }
    }

    fn complete(medium: &mut Medium, token: u64, request: UnderWay) -> Completion {
        let (result, buffer) = match request {
            UnderWay::Read { offset, length } => {
                let mut buffer = IoBuffer::aligned(length);
                (medium.read(offset, &mut buffer), Some(buffer))
            }
            UnderWay::ReadEarly(buffer) => (Ok(()), Some(buffer)),
            UnderWay::Write { id, durability } => (medium.complete_write(id, durability), None),
            UnderWay::Sync { covered } => (medium.complete_sync(&covered), None),
            UnderWay::Failed { error, buffer } => (Err(error), buffer),
        };
        Completion { token, result, buffer }
    }

    /// How many requests complete now, of `count`, if `wait_for` are waited for.
    fn completing(
        medium: &mut Medium,
        options: SimOptions,
        under_way: &mut [Handed],
        wait_for: usize,
    ) -> usize {
        let count = under_way.len();
        match &mut medium.faults.stall {
            Stall::None => {}
            Stall::Endless => return 0,
            Stall::Reaps(0) => medium.faults.stall = Stall::None,
            Stall::Reaps(left) => {
                *left -= 1;
                return 0;
            }
        }
        let wait_for = wait_for.min(count);
        match options.ordering {
            Ordering::AsSubmitted => count,
            Ordering::Shuffled => {
                wait_for + medium.random.below((count - wait_for) as u64 + 1) as usize
            }
            Ordering::Late { .. } => {
                let mut left: Vec<u64> = under_way.iter().map(|handed| handed.looks).collect();
                left.sort_unstable();
                // Whoever waits for some looks until they are there.
                let waited = wait_for.checked_sub(1).and_then(|last| left.get(last)).copied();
                let looks = waited.unwrap_or(1).max(1);
                for handed in under_way.iter_mut() {
                    handed.looks = handed.looks.saturating_sub(looks);
                }
                under_way.iter().filter(|handed| handed.looks == 0).count()
            }
        }
    }
}

impl Lanes {
    fn hand_over(&self) {
        let mut state = self.state.lock();
        let mut medium = self.shared.medium.lock();
        let LaneState { gathered, under_way } = &mut *state;
        for (token, request) in gathered.drain(..) {
            let looks = match self.shared.options.ordering {
                Ordering::Late { looks_max } => 1 + medium.random.below(u64::from(looks_max)),
                Ordering::Shuffled | Ordering::AsSubmitted => 0,
            };
            let request = request.issue(&mut medium);
            under_way.push(Handed { token, request, looks });
        }
    }
}

impl Doorbell for Lanes {
    fn ring(&self) -> Result<()> {
        self.hand_over();
        Ok(())
    }
}

impl Request {
    /// Hands it to the medium.
    fn issue(self, medium: &mut Medium) -> UnderWay {
        match self {
            Request::Read { offset, length } if medium.random.one_in(2) => {
                let mut buffer = IoBuffer::aligned(length);
                match medium.read(offset, &mut buffer) {
                    Ok(()) => UnderWay::ReadEarly(buffer),
                    Err(error) => UnderWay::Failed { error, buffer: Some(buffer) },
                }
            }
            Request::Read { offset, length } => UnderWay::Read { offset, length },
            Request::Write { offset, bytes, mode } => {
                let durability = match mode {
                    WriteMode::Flushed => Durability::Flushed,
                    WriteMode::Durable => Durability::Synced,
                };
                match medium.issue_write(offset, bytes) {
                    Ok(id) => UnderWay::Write { id, durability },
                    Err(error) => UnderWay::Failed { error, buffer: None },
                }
            }
            Request::Sync => match medium.issue_sync() {
                Ok(covered) => UnderWay::Sync { covered },
                Err(error) => UnderWay::Failed { error, buffer: None },
            },
        }
    }
}

impl Queue for SimQueue {
    fn read(&mut self, token: u64, offset: u64, length: usize) -> Result<()> {
        self.lanes.shared.options.geometry.check(NAME, offset, length)?;
        self.gather(token, Request::Read { offset, length })?;
        self.lanes.shared.counters.count_read(length);
        Ok(())
    }

    fn write(&mut self, request: WriteRequest<'_>) -> Result<()> {
        request.check(&self.lanes.shared.options.geometry, NAME)?;
        let WriteRequest { token, offset, buffer, range, mode } = request;
        let bytes: Arc<[u8]> = buffer.bytes()[range].into();
        let length = bytes.len();
        self.gather(token, Request::Write { offset, bytes, mode })?;
        self.lanes.shared.counters.count_write(length, mode);
        Ok(())
    }

    fn sync(&mut self, token: u64) -> Result<()> {
        self.gather(token, Request::Sync)?;
        self.lanes.shared.counters.count_sync();
        Ok(())
    }

    fn submit(&mut self) -> Result<()> {
        self.lanes.hand_over();
        Ok(())
    }

    fn reap(&mut self, wait_for: usize, completions: &mut Vec<Completion>) -> Result<()> {
        self.submit()?;
        self.look(wait_for, completions);
        Ok(())
    }

    fn take_ready(&mut self, completions: &mut Vec<Completion>) -> Result<bool> {
        if self.lanes.shared.readable.is_none() {
            return self.reap(0, completions).map(|()| false);
        }
        self.look(0, completions);
        Ok(!self.lanes.state.lock().gathered.is_empty())
    }

    fn doorbell(&self) -> Option<Arc<dyn Doorbell>> {
        self.lanes.shared.readable.as_ref()?;
        let bell: Arc<dyn Doorbell> = self.lanes.clone();
        Some(bell)
    }

    fn in_flight(&self) -> usize {
        let state = self.lanes.state.lock();
        state.gathered.len() + state.under_way.len()
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn poll_fd(&self) -> Option<RawFd> {
        let (reader, _) = self.lanes.shared.readable.as_ref()?;
        Some(reader.as_raw_fd())
    }
}

impl Drop for SimQueue {
    fn drop(&mut self) {
        self.lanes.hand_over();
        let mut state = self.lanes.state.lock();
        let mut medium = self.lanes.shared.medium.lock();
        for Handed { token, request, .. } in state.under_way.drain(..) {
            SimQueue::complete(&mut medium, token, request);
        }
    }
}

/// A pipe with a byte in it.
fn readable_pipe() -> (PipeReader, PipeWriter) {
    let made = std::io::pipe().and_then(|(reader, mut writer)| {
        writer.write_all(&[1])?;
        Ok((reader, writer))
    });
    made.expect("a test has descriptors for a pipe")
}
