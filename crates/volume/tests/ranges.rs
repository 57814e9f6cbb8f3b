//! The cost of a range depends on its cached blocks, not on its length. The tests count operations,
//! not time.
#![expect(clippy::unwrap_used, reason = "a test stops where something fails")]

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use entresol_device::{Device, MemoryDevice};
use entresol_volume::backing::{Backing, BackingCompletion, BackingRequest, Description};
use entresol_volume::{
    Cache, CacheOptions, Completion, Cost, Counts, Durable, Hole, Mode, Moment, Request, Result,
    VolumeId, VolumeOptions, Volumes,
};

const BLOCK: u64 = 4096;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// A backing of any size whose bytes are those of the last write, else zeros.
#[derive(Clone, Default)]
struct Endless(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    blocks: BTreeMap<u64, Vec<u8>>,
    clearings: Vec<(u64, u64)>,
    /// It has just cleared something, and has nothing to tell for a moment.
    rests: bool,
}

struct Opened {
    description: Description,
    kept: Endless,
    queue: VecDeque<(u64, BackingRequest)>,
}

impl Backing for Opened {
    fn description(&self) -> &Description {
        &self.description
    }

    fn begin(&mut self, token: u64, request: BackingRequest) {
        self.queue.push_back((token, request));
    }

    fn submit(&mut self) {}

    /// One request at a time.
    fn reap(&mut self, completions: &mut Vec<BackingCompletion>) {
        let mut kept = self.kept.0.lock().unwrap();
        if std::mem::take(&mut kept.rests) {
            return;
        }
        let Some((token, request)) = self.queue.pop_front() else { return };
        let mut read = Bytes::new();
        match request {
            BackingRequest::Read { offset, length } => {
                let blocks = offset / BLOCK..(offset + u64::from(length)) / BLOCK;
                let zeros = vec![0; BLOCK as usize];
                let bytes: Vec<&[u8]> = blocks
                    .map(|block| kept.blocks.get(&block).unwrap_or(&zeros).as_slice())
                    .collect();
                read = Bytes::from(bytes.concat());
            }
            BackingRequest::Write { offset, bytes, .. } => {
                for (at, block) in bytes.chunks(BLOCK as usize).enumerate() {
                    kept.blocks.insert(offset / BLOCK + at as u64, block.to_vec());
                }
            }
            BackingRequest::Trim { offset, length }
            | BackingRequest::Zero { offset, length, .. } => {
                kept.clearings.push((offset, length));
                kept.rests = true;
                kept.blocks
                    .retain(|block, _| !(offset..offset + length).contains(&(block * BLOCK)));
            }
            BackingRequest::Flush => {}
        }
        completions.push(BackingCompletion { token, result: Ok(read) });
    }

    fn wait(&mut self, completions: &mut Vec<BackingCompletion>) {
        self.reap(completions);
    }

    fn in_flight(&self) -> usize {
        self.queue.len()
    }

    fn poll_fd(&self) -> Option<RawFd> {
        None
    }
}

struct Setup {
    device: Arc<MemoryDevice>,
    endless: Endless,
    bytes: u64,
    cache: Option<Cache>,
    volume: VolumeId,
    now: u64,
}

impl Setup {
    fn new(bytes: u64, mode: Mode) -> Setup {
        let device = Arc::new(MemoryDevice::new(64 * MIB).unwrap());
        let (endless, volume) = (Endless::default(), VolumeId(0));
        let mut setup = Setup { device, endless, bytes, cache: None, volume, now: 0 };
        setup.open();
        let (name, backing) = ("disk".to_owned(), "endless".to_owned());
        let options = VolumeOptions {
            name,
            backing,
            mode,
            sequential_cutoff_bytes: 0,
            read_ahead_bytes: 0,
            ..VolumeOptions::default()
        };
        setup.volume = setup.cache().create(&options, Moment(0)).unwrap();
        setup
    }

    fn open(&mut self) {
        let (kept, bytes) = (self.endless.clone(), self.bytes);
        let description = Description {
            bytes,
            identity: "endless".to_owned(),
            version: String::new(),
            alignment: 1,
            request_bytes_max: 1 << 20,
            read_only: false,
            can_trim: true,
            zeroes_fast: true,
            rotational: false,
        };
        let options = CacheOptions {
            open_backing: Box::new(move |_: &str| {
                let (description, kept) = (description.clone(), kept.clone());
                let queue = VecDeque::new();
                Ok(Box::new(Opened { description, kept, queue }) as Box<dyn Backing>)
            }),
            ..CacheOptions::default()
        };
        let device = Arc::clone(&self.device);
        self.cache = Some(Cache::open(device, options, Moment(self.now)).unwrap());
    }

    fn close(&mut self) {
        self.cache.take().unwrap().close(Moment(self.now)).unwrap();
    }

    fn cache(&mut self) -> &mut Cache {
        self.cache.as_mut().unwrap()
    }

    fn run(&mut self, request: Request) -> Result<Bytes> {
        let (volume, now) = (self.volume, Moment(self.now));
        self.cache().submit(volume, 0, request, now);
        let mut done: Vec<Completion> = Vec::new();
        while done.is_empty() {
            self.now += 100_000;
            let now = Moment(self.now);
            self.cache().wait(now, &mut done);
        }
        done.pop().unwrap().result
    }

    fn read(&mut self, block: u64, blocks: u64) -> Bytes {
        let (offset, length) = (block * BLOCK, (blocks * BLOCK) as u32);
        self.run(Request::Read { offset, length }).unwrap()
    }

    fn write(&mut self, block: u64, blocks: u64, value: u8) {
        let bytes = Bytes::from(vec![value; (blocks * BLOCK) as usize]);
        let (offset, durable) = (block * BLOCK, Durable::AtFlush);
        self.run(Request::Write { offset, bytes, durable }).unwrap();
    }

    fn zero(&mut self, offset: u64, length: u64) {
        let (hole, cost, durable) = (Hole::Allowed, Cost::Any, Durable::AtFlush);
        self.run(Request::Zero { offset, length, hole, cost, durable }).unwrap();
    }

    fn trim(&mut self, offset: u64, length: u64) {
        self.run(Request::Trim { offset, length, durable: Durable::AtFlush }).unwrap();
    }

    fn counts(&self) -> Counts {
        self.cache.as_ref().unwrap().counts(self.volume).unwrap()
    }

    fn device_reads(&self) -> u64 {
        self.device.counters().reads.load(Ordering::Relaxed)
    }

    fn clearings(&self) -> usize {
        self.endless.0.lock().unwrap().clearings.len()
    }
}

/// Each block was read from the cache device alone: sixteen reads for 64 KiB.
#[test]
fn blocks_that_lie_together_in_the_cache_are_one_read_of_its_device() {
    let mut setup = Setup::new(32 * MIB, Mode::WriteThrough);
    for first in (0..1024).step_by(16) {
        setup.write(first, 16, 1 + (first / 16) as u8 % 250);
    }
    setup.close();
    setup.open();
    for first in (0..1024).step_by(16) {
        let before = setup.device_reads();
        let read = setup.read(first, 16);
        assert!(read.iter().all(|byte| *byte == 1 + (first / 16) as u8 % 250), "block {first}");
        // One that crosses a segment's end is two.
        let reads = setup.device_reads() - before;
        assert!(reads <= 2, "{reads} reads for blocks {first} to {}", first + 15);
    }
    assert_eq!(setup.counts().read_hits, 64, "{:?}", setup.counts());
}

/// Each block of a range was looked for in the cache: 46 seconds a tebibyte of an empty cache.
#[test]
fn zeros_and_trims_of_a_range_cost_by_what_is_cached_in_it() {
    for mode in [Mode::WriteThrough, Mode::WriteBack, Mode::PassThrough] {
        let mut setup = Setup::new(8 * TIB, mode);
        setup.zero(BLOCK, 6 * TIB);
        setup.trim(3 * BLOCK, 6 * TIB);
        setup.run(Request::WriteBack).unwrap();
        assert_eq!(setup.counts().blocks_sought, 0, "{mode}: nothing is cached");
        setup.write(TIB / BLOCK, 2, 7);
        setup.run(Request::WriteBack).unwrap();
        assert_eq!(setup.read(TIB / BLOCK, 2)[0], 7);
        let before = setup.counts().blocks_sought;
        setup.zero(BLOCK, 6 * TIB);
        setup.run(Request::WriteBack).unwrap();
        let sought = setup.counts().blocks_sought - before;
        assert!(sought <= 1 << 15, "{mode}: {sought} blocks were looked for of two");
        assert!(setup.read(TIB / BLOCK, 2).iter().all(|byte| *byte == 0), "{mode}");
        // It was let go: nothing is left to be looked for.
        let before = setup.counts().blocks_sought;
        setup.trim(5 * BLOCK, 2 * TIB);
        setup.run(Request::WriteBack).unwrap();
        let sought = setup.counts().blocks_sought - before;
        assert!(sought <= 1 << 15, "{mode}: {sought} blocks");
    }
}

/// It was in proportion to the volume: 22 seconds for a tebibyte with one block.
#[test]
fn a_check_costs_by_what_is_cached_and_not_by_the_volume() {
    let mut setup = Setup::new(4 * TIB, Mode::WriteBack);
    setup.write(TIB / BLOCK + 5, 1, 9);
    setup.run(Request::WriteBack).unwrap();
    setup.write(2 * TIB / BLOCK, 3, 8);
    setup.zero(3 * TIB, 16 * MIB);
    for reopens in [false, true] {
        if reopens {
            setup.close();
            setup.open();
        }
        let before = setup.counts().blocks_sought;
        let (volume, now) = (setup.volume, Moment(setup.now));
        let report = setup.cache().check(volume, now, &mut |_, _| {}).unwrap();
        assert_eq!((report.clean, report.dirty), (1, 3 + 16 * MIB / BLOCK), "{report:?}");
        assert!(report.wrong.is_empty() && report.lost.is_empty());
        let sought = setup.counts().blocks_sought - before;
        assert!(sought <= 1 << 15, "{sought} blocks were looked for of four");
    }
}

/// A stop waited until all of it was written back: over 100 seconds for 6 TiB.
#[test]
fn a_stop_waits_for_a_piece_of_what_is_cleared_and_the_next_start_goes_on() {
    let mut setup = Setup::new(8 * TIB, Mode::WriteBack);
    setup.write(0, 1, 3);
    setup.run(Request::WriteBack).unwrap();
    let before = setup.clearings();
    setup.zero(0, 6 * TIB);
    // Writing back begins.
    let mut done = Vec::new();
    while setup.clearings() == before {
        setup.now += 100_000_000;
        let now = Moment(setup.now);
        setup.cache().turn(now, &mut done);
    }
    setup.close();
    let pieces = (6 * TIB / (64 * GIB)) as usize;
    let done = setup.clearings() - before;
    assert!(done < pieces / 2, "{done} of {pieces} pieces before the stop");
    setup.open();
    assert!(setup.read(0, 2).iter().all(|byte| *byte == 0));
    setup.run(Request::WriteBack).unwrap();
    let volume = setup.volume;
    assert_eq!(setup.cache().dirty_blocks(volume), Some(0));
    assert!(setup.read(0, 2).iter().all(|byte| *byte == 0));
}
