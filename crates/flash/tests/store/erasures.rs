//! What a segment held before is gone from the medium before anything is written over a part of it.

use std::os::fd::RawFd;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use entresol_device::{Completion, Counters, Queue, QueueOptions, WriteMode, WriteRequest};

use super::*;

const SEGMENT_BYTES: u64 = 64 << 10;

/// A device in memory that knows which erasures a loss of power could undo.
struct Watched {
    memory: MemoryDevice,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// Segments that were erased without a sync since.
    erased: Vec<u64>,
    /// Those erased before the sync that is under way.
    being_synced: Vec<u64>,
    /// Writes to a segment whose erasure could be undone.
    early: u64,
    erasures: u64,
}

struct WatchedQueue {
    queue: Box<dyn Queue>,
    seen: Arc<Mutex<Seen>>,
    /// Tokens of syncs under way.
    syncs: Vec<u64>,
}

impl Device for Watched {
    fn geometry(&self) -> Geometry {
        self.memory.geometry()
    }

    fn name(&self) -> String {
        self.memory.name()
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
        let (queue, seen) = (self.memory.queue(options)?, Arc::clone(&self.seen));
        Ok(Box::new(WatchedQueue { queue, seen, syncs: Vec::new() }))
    }

    fn counters(&self) -> &Counters {
        self.memory.counters()
    }
}

impl Queue for WatchedQueue {
    fn read(&mut self, token: u64, offset: u64, length: usize) -> entresol_device::Result<()> {
        self.queue.read(token, offset, length)
    }

    fn write(&mut self, request: WriteRequest<'_>) -> entresol_device::Result<()> {
        let mut seen = self.seen.lock().unwrap();
        let segment = request.offset / SEGMENT_BYTES;
        let zeros = request.buffer.bytes()[request.range.clone()].iter().all(|byte| *byte == 0);
        if zeros && request.offset.is_multiple_of(SEGMENT_BYTES) {
            seen.erasures += 1;
            seen.erased.retain(|erased| *erased != segment);
            seen.being_synced.retain(|erased| *erased != segment);
            if request.mode == WriteMode::Flushed {
                seen.erased.push(segment);
            }
        } else if seen.erased.contains(&segment) || seen.being_synced.contains(&segment) {
            seen.early += 1;
        }
        drop(seen);
        self.queue.write(request)
    }

    fn sync(&mut self, token: u64) -> entresol_device::Result<()> {
        let mut seen = self.seen.lock().unwrap();
        let erased = std::mem::take(&mut seen.erased);
        seen.being_synced.extend(erased);
        self.syncs.push(token);
        drop(seen);
        self.queue.sync(token)
    }

    fn submit(&mut self) -> entresol_device::Result<()> {
        self.queue.submit()
    }

    fn reap(
        &mut self,
        wait_for: usize,
        completions: &mut Vec<Completion>,
    ) -> entresol_device::Result<()> {
        self.queue.reap(wait_for, completions)?;
        for completion in completions.iter() {
            if let Some(at) = self.syncs.iter().position(|token| *token == completion.token) {
                self.syncs.swap_remove(at);
                self.seen.lock().unwrap().being_synced.clear();
            }
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }

    fn depth(&self) -> usize {
        self.queue.depth()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        self.queue.poll_fd()
    }
}

/// A sync that never comes must not keep a full store from going on, and a part of a segment that
/// is written over could bring a removed entry back, whose tombstone was in that part.
#[test]
fn nothing_is_written_over_a_segment_whose_erasure_a_loss_of_power_could_undo() {
    for (segments, keys) in [(24, 260), (24, 330), (64, 800)] {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let memory = MemoryDevice::new((segments + 1) * SEGMENT_BYTES).unwrap();
        let device: Arc<dyn Device> = Arc::new(Watched { memory, seen: Arc::clone(&seen) });
        let (store, mut session) = open(&device, StoreOptions { shards: 1, ..small() });
        let mut random = entresol_sim::Random::new(segments);
        for n in 0..30_000 {
            let name = random.below(keys).to_be_bytes();
            if random.below(8) == 0 {
                remove(&mut session, &name);
            } else {
                put(&mut session, &name, &value_of(n, 2000), PutOptions::default());
            }
            if n % 3 == 0 {
                store.maintain(NOW, Budget { segments: 1 }).unwrap();
            }
        }
        let seen = seen.lock().unwrap();
        assert!(seen.erasures > 500, "{segments} segments: {} erased", seen.erasures);
        assert_eq!(seen.early, 0, "of {segments} segments, {} erased", seen.erasures);
        let syncs = device.counters().syncs.load(Ordering::Relaxed);
        assert!(syncs < 3 * seen.erasures, "{syncs} syncs for {} erasures", seen.erasures);
    }
}

// An erasure took a sync unit of several sectors. Where a loss of power tore it, the header was
// there and told of tombstones that were not: their segment counted as damaged for good, and so
// did all tombstones that were younger.
#[test]
fn no_segment_counts_as_damaged_because_power_was_lost_while_it_was_erased() {
    let options = StoreOptions { shards: 1, ..small() };
    for run in 0..12 {
        let sim = SimDevice::new(SimOptions::new(run, 22 * SEGMENT_BYTES));
        let device: Arc<dyn Device> = Arc::new(sim.clone());
        let (store, mut session) = open(&device, options.clone());
        let mut random = entresol_sim::Random::new(run);
        let mut change = |session: &mut Session, n: u64| {
            let name = random.below(250).to_be_bytes();
            match random.below(3) {
                0 => drop(remove(session, &name)),
                _ => drop(put(session, &name, &value_of(n, 1000), PutOptions::default())),
            }
            random.next_u64()
        };
        for n in 0..4_000 {
            let drawn = change(&mut session, n);
            store.maintain(NOW, Budget { segments: 1 }).unwrap();
            if n % 50 == 0 {
                store.sync().unwrap();
            }
            if n < 2_000 || n % 100 != 99 {
                continue;
            }
            let lost: Arc<dyn Device> = Arc::new(sim.reopened(CrashChoice::Random(drawn)));
            let (recovered, mut again) = open(&lost, StoreOptions { boot: 1, ..options.clone() });
            for n in 0..800 {
                change(&mut again, n);
            }
            let segments = recovered.segments();
            let damaged: Vec<_> = segments.iter().filter(|s| s.state == "damaged").collect();
            assert!(damaged.is_empty(), "run {run}, power lost after change {n}: {damaged:?}");
        }
    }
}
