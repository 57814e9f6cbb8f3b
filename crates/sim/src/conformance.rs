//! The requirements on every device, as checks that take any device.
//!
//! Each check panics with the property that does not hold. Devices must be at least
//! [`CAPACITY_BYTES_MIN`] large, hold nothing of value, and have no other user meanwhile.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use entresol_device::{
    Completion, Device, Error, ErrorKind, Geometry, IoBuffer, Queue, QueueOptions, Result,
    WriteBuffer, WriteMode, WriteRequest, wait_readable,
};
use entresol_random::SplitMix;

/// Smallest capacity of a device to be checked, bytes.
pub const CAPACITY_BYTES_MIN: u64 = 8 << 20;

/// Fixed seeds of the random checks.
const SEEDS: [u64; 4] = [1, 2, 0xdead_beef, 0x5eed_5eed_5eed];

/// All checks, one after the other.
pub fn check(device: &dyn Device) {
    geometry_is_sound(device);
    blocking_transfers_agree_with_a_model(device);
    ranges_that_are_no_ranges_are_invalid_input(device);
    queues_agree_with_a_model(device);
    a_queue_past_its_depth_is_busy(device);
    buffers_outlive_their_queue(device);
    dropping_a_queue_completes_its_writes(device);
    large_requests_are_transferred_whole(device);
    several_queues_work_at_once(device);
    every_request_is_counted(device);
    a_doorbell_hands_over_what_was_gathered(device);
    descriptors_tell_of_all_that_was_submitted(device);
    a_queue_of_one_thread_fails_in_no_other(device);
}

fn descriptors_tell_of_all_that_was_submitted(device: &dyn Device) {
    let options = QueueOptions { depth: 8, buffer_bytes: 4096 };
    let mut of_several = device.queue(options).unwrap_or_else(|e| panic!("{e}"));
    let mut of_one = device.queue_of_thread(options).unwrap_or_else(|e| panic!("{e}"));
    a_descriptor_tells_of_all_that_was_submitted(&mut *of_several);
    // Not by the thread that opened it.
    std::thread::scope(|scope| {
        let used = scope.spawn(|| a_descriptor_tells_of_all_that_was_submitted(&mut *of_one));
        used.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

fn a_queue_of_one_thread_fails_in_no_other(device: &dyn Device) {
    let options = QueueOptions { depth: 8, buffer_bytes: 4096 };
    let mut queue = device.queue_of_thread(options).unwrap_or_else(|e| panic!("{e}"));
    let read = |queue: &mut dyn Queue| {
        let mut completions = Vec::new();
        queue.read(1, 0, 4096)?;
        queue.reap(1, &mut completions)?;
        assert_eq!(completions.len(), 1);
        Ok(())
    };
    let mut in_thread = || {
        std::thread::scope(|scope| {
            let used = scope.spawn(|| read(&mut *queue)).join();
            used.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    };
    assert_eq!(kind(in_thread()), None);
    assert_eq!(kind(in_thread()), None);
}

/// Whoever submits and waits for the descriptor alone gets everything, whatever was reaped before.
fn a_descriptor_tells_of_all_that_was_submitted(queue: &mut dyn Queue) {
    let mut random = SplitMix::new(11);
    let Some(descriptor) = queue.poll_fd() else { return };
    let buffer = write_buffer(256 << 10);
    let mut completions = Vec::new();
    for round in 0..300 {
        for token in 0..1 + random.below(6) {
            let size = if random.one_in(3) { 256 << 10 } else { 4096 };
            let (range, mode) = (0..size, WriteMode::Durable);
            let gathered = match random.below(5) {
                0 => queue.sync(token),
                1 => queue.write(WriteRequest { token, offset: 0, buffer: &buffer, range, mode }),
                _ => queue.read(token, 0, size),
            };
            gathered.unwrap_or_else(|e| panic!("{e}"));
        }
        // Some of it may be over at once.
        if random.one_in(3) {
            reap(queue, 0, &mut completions);
        }
        queue.submit().unwrap_or_else(|e| panic!("{e}"));
        while queue.in_flight() > 0 {
            let told = wait_readable(&[descriptor], Duration::from_secs(60));
            assert!(told.unwrap_or_else(|e| panic!("{e}")), "round {round}: nothing told of it");
            reap(queue, 0, &mut completions);
        }
        for completion in completions.drain(..) {
            completion.result.unwrap_or_else(|e| panic!("round {round}: {e}"));
        }
    }
}

/// Nothing but the doorbell submits.
fn a_doorbell_hands_over_what_was_gathered(device: &dyn Device) {
    const REQUESTS: u64 = 8;
    let mut queue = queue_of(device, REQUESTS as usize, 4096);
    let (Some(bell), Some(descriptor)) = (queue.doorbell(), queue.poll_fd()) else { return };
    let size = 256 << 10;
    let mut pattern = vec![0; size];
    SplitMix::new(5).fill(&mut pattern);
    write_at(device, 0, &pattern);
    let mut completions = Vec::new();
    for token in 0..REQUESTS {
        queue.read(token, 0, size).unwrap_or_else(|e| panic!("{e}"));
    }
    assert!(queue.take_ready(&mut completions).unwrap_or_else(|e| panic!("{e}")));
    assert_eq!(completions.len(), 0, "nothing was handed over yet");
    let rung = std::thread::scope(|scope| scope.spawn(|| bell.ring()).join());
    assert!(rung.is_ok_and(|rung| rung.is_ok()));
    for _ in 0..100 {
        let waited = wait_readable(&[descriptor], Duration::from_secs(1));
        waited.unwrap_or_else(|e| panic!("{e}"));
        // What a member had no room for is handed over by the next ring.
        if queue.take_ready(&mut completions).unwrap_or_else(|e| panic!("{e}")) {
            bell.ring().unwrap_or_else(|e| panic!("{e}"));
        }
        if queue.in_flight() == 0 {
            break;
        }
    }
    let mut tokens: Vec<u64> = completions.iter().map(|completion| completion.token).collect();
    tokens.sort_unstable();
    assert_eq!(tokens, (0..REQUESTS).collect::<Vec<_>>(), "each once, and all");
    for completion in completions {
        assert!(completion.buffer.is_some_and(|buffer| *buffer == *pattern));
    }
}

fn geometry_is_sound(device: &dyn Device) {
    let Geometry { capacity_bytes, sector_bytes, sync_unit_bytes } = device.geometry();
    assert!(sector_bytes >= 512 && sector_bytes.is_power_of_two(), "sector {sector_bytes}");
    assert!(sync_unit_bytes.is_power_of_two() && sync_unit_bytes >= sector_bytes);
    assert!(capacity_bytes.is_multiple_of(u64::from(sync_unit_bytes)), "whole units");
    assert!(capacity_bytes >= CAPACITY_BYTES_MIN, "large enough to be checked");
    assert!(!device.name().is_empty());
}

fn blocking_transfers_agree_with_a_model(device: &dyn Device) {
    for seed in SEEDS {
        let mut random = SplitMix::new(seed);
        let sector = u64::from(device.geometry().sector_bytes);
        let size = 1 << 20;
        let base = random.below((device.geometry().capacity_bytes - size) / sector) * sector;
        let mut model = vec![0; size as usize];
        write_at(device, base, &model);
        for _ in 0..200 {
            let (at, length) = range_of(&mut random, size, sector, 64);
            if random.one_in(2) {
                random.fill(&mut model[at..at + length]);
                write_at(device, base + at as u64, &model[at..at + length]);
            } else {
                let mut read = IoBuffer::aligned(length);
                device.read_at(base + at as u64, &mut read).unwrap_or_else(|e| panic!("{e}"));
                assert!(*read == model[at..at + length], "read what was written, seed {seed}");
            }
            if random.one_in(50) {
                device.sync().unwrap_or_else(|error| panic!("sync, seed {seed}: {error}"));
            }
        }
    }
}

fn ranges_that_are_no_ranges_are_invalid_input(device: &dyn Device) {
    let Geometry { capacity_bytes, sector_bytes, .. } = device.geometry();
    let sector = sector_bytes as usize;
    let mut memory = IoBuffer::aligned(4 * sector);
    let mut queue = queue_of(device, 4, 4096);
    let buffer = write_buffer(4 * sector);
    let end = capacity_bytes;
    for (offset, length) in [
        (1, sector),
        (0, sector - 1),
        (0, 0),
        (end, sector),
        (end - sector as u64, 2 * sector),
        (u64::MAX - sector as u64 + 1, sector),
    ] {
        let invalid = |result: Result<()>| {
            let kind = result.expect_err("a wrong range is refused").kind();
            assert_eq!(kind, ErrorKind::InvalidInput, "{length} bytes at {offset}");
        };
        invalid(device.read_at(offset, &mut memory[..length]));
        invalid(device.write_at(offset, &memory[..length]));
        invalid(queue.read(1, offset, length));
        let mode = WriteMode::Flushed;
        invalid(queue.write(WriteRequest {
            token: 2,
            offset,
            buffer: &buffer,
            range: 0..length,
            mode,
        }));
    }
    let odd = device.read_at(0, &mut memory[1..sector + 1]);
    assert_eq!(odd.map_err(|error| error.kind()), Err(ErrorKind::InvalidInput), "memory");
    let past = WriteRequest {
        token: 3,
        offset: 0,
        buffer: &buffer,
        range: 4 * sector..5 * sector,
        mode: WriteMode::Flushed,
    };
    assert_eq!(queue.write(past).map_err(|error| error.kind()), Err(ErrorKind::InvalidInput));
    assert_eq!(queue.in_flight(), 0, "what was refused is not in flight");
    for depth in [0, QueueOptions::DEPTH_MAX + 1] {
        let opened = device.queue(QueueOptions { depth, buffer_bytes: 4096 });
        let kind = opened.map(|_| ()).map_err(|error| error.kind());
        assert_eq!(kind, Err(ErrorKind::InvalidInput), "depth {depth}");
    }
}

/// What a request in flight is expected to do.
enum Expected {
    Read { at: usize, length: usize },
    Write,
    Sync,
}

/// Requests in flight at the same time touch disjoint ranges, as the seam asks of its callers.
fn queues_agree_with_a_model(device: &dyn Device) {
    for seed in SEEDS {
        let mut random = SplitMix::new(seed);
        let geometry = device.geometry();
        let sector = u64::from(geometry.sector_bytes);
        let size = 2_u64 << 20;
        let base = random.below((geometry.capacity_bytes - size) / sector) * sector;
        let mut model = vec![0; size as usize];
        write_at(device, base, &model);
        let mut queue = queue_of(device, 16, 8192);
        let mut in_flight: Vec<(u64, std::ops::Range<usize>, Expected)> = Vec::new();
        let mut completions = Vec::new();
        for token in 0..1000 {
            let (at, length) = range_of(&mut random, size, sector, 48);
            let range = at..at + length;
            let apart = |other: &std::ops::Range<usize>| {
                other.end <= range.start || range.end <= other.start
            };
            if queue.in_flight() < queue.depth()
                && in_flight.iter().all(|(_, other, _)| apart(other))
            {
                let expected = gather(
                    &mut *queue,
                    &mut random,
                    (token, base + at as u64),
                    &mut model[range.clone()],
                    at,
                );
                in_flight.push((token, range, expected));
            } else if random.one_in(8) {
                queue.submit().unwrap_or_else(|error| panic!("submit, seed {seed}: {error}"));
            } else {
                let wait_for = random.below(4) as usize;
                let before = queue.in_flight();
                reap(&mut *queue, wait_for, &mut completions);
                assert!(completions.len() >= wait_for.min(before), "waited, seed {seed}");
                assert_eq!(before - completions.len(), queue.in_flight());
                settle(&mut completions, &mut in_flight, &model, seed);
            }
        }
        reap(&mut *queue, usize::MAX, &mut completions);
        settle(&mut completions, &mut in_flight, &model, seed);
        assert!(in_flight.is_empty() && queue.in_flight() == 0, "all came back, seed {seed}");
        let mut all = IoBuffer::aligned(size as usize);
        device.read_at(base, &mut all).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(*all == *model, "the device holds what was written, seed {seed}");
    }
}

fn gather(
    queue: &mut dyn Queue,
    random: &mut SplitMix,
    (token, offset): (u64, u64),
    model: &mut [u8],
    at: usize,
) -> Expected {
    let (result, expected) = match random.below(16) {
        0 => (queue.sync(token), Expected::Sync),
        1..8 => {
            let length = model.len();
            (queue.read(token, offset, length), Expected::Read { at, length })
        }
        _ => {
            random.fill(model);
            let mut buffer = write_buffer(model.len() + 8192);
            let from = 4096;
            buffer.bytes_mut()[from..from + model.len()].copy_from_slice(model);
            let mode = match random.below(8) {
                0 => WriteMode::Durable,
                _ => WriteMode::Flushed,
            };
            let range = from..from + model.len();
            // The buffer is dropped at once: the queue keeps its memory.
            let request = WriteRequest { token, offset, buffer: &buffer, range, mode };
            (queue.write(request), Expected::Write)
        }
    };
    result.unwrap_or_else(|error| panic!("gathering request {token}: {error}"));
    expected
}

fn settle(
    completions: &mut Vec<Completion>,
    in_flight: &mut Vec<(u64, std::ops::Range<usize>, Expected)>,
    model: &[u8],
    seed: u64,
) {
    for Completion { token, result, buffer } in completions.drain(..) {
        result.unwrap_or_else(|error| panic!("request {token}, seed {seed}: {error}"));
        let position = in_flight.iter().position(|(other, ..)| *other == token);
        let position = position.unwrap_or_else(|| panic!("{token} completed twice, seed {seed}"));
        match in_flight.swap_remove(position).2 {
            Expected::Read { at, length } => {
                let buffer = buffer.unwrap_or_else(|| panic!("a read has a buffer, seed {seed}"));
                assert_eq!(buffer.len(), length, "exactly what was asked for");
                assert!(*buffer == model[at..at + length], "read {token}, seed {seed}");
            }
            Expected::Write | Expected::Sync => assert!(buffer.is_none(), "seed {seed}"),
        }
    }
}

fn a_queue_past_its_depth_is_busy(device: &dyn Device) {
    let sector = device.geometry().sector_bytes as usize;
    let mut queue = queue_of(device, 3, 4096);
    let buffer = write_buffer(4096);
    for token in 0..3 {
        queue.read(token, 0, sector).unwrap_or_else(|error| panic!("room for {token}: {error}"));
    }
    let busy = |result: Result<()>| assert_eq!(kind(result), Some(ErrorKind::Busy));
    busy(queue.read(9, 0, sector));
    busy(queue.sync(9));
    let (range, mode) = (0..sector, WriteMode::Flushed);
    busy(queue.write(WriteRequest { token: 9, offset: 0, buffer: &buffer, range, mode }));
    assert_eq!((queue.in_flight(), queue.depth()), (3, 3));
    let mut completions = Vec::new();
    reap(&mut *queue, 1, &mut completions);
    assert!(!completions.is_empty(), "one was waited for");
    queue.sync(9).unwrap_or_else(|error| panic!("room again: {error}"));
    reap(&mut *queue, 9, &mut completions);
    let tokens: BTreeSet<u64> = completions.iter().map(|completion| completion.token).collect();
    assert_eq!(tokens, BTreeSet::from([0, 1, 2, 9]));
}

fn buffers_outlive_their_queue(device: &dyn Device) {
    let mut bytes = vec![0; 4096];
    SplitMix::new(7).fill(&mut bytes);
    write_at(device, 0, &bytes);
    let mut completions = Vec::new();
    let mut queue = queue_of(device, 2, 4096);
    for token in 0..2 {
        queue.read(token, 0, 4096).unwrap_or_else(|error| panic!("{error}"));
    }
    reap(&mut *queue, 2, &mut completions);
    // All of the queue's own buffers are out: further reads have to work too.
    queue.read(2, 0, 4096).unwrap_or_else(|error| panic!("no pooled buffer left: {error}"));
    reap(&mut *queue, 1, &mut completions);
    drop(queue);
    assert_eq!(completions.len(), 3);
    for completion in completions {
        assert_eq!(completion.buffer.as_deref(), Some(&*bytes));
    }
}

fn dropping_a_queue_completes_its_writes(device: &dyn Device) {
    let mut buffer = write_buffer(64 << 10);
    SplitMix::new(8).fill(buffer.bytes_mut());
    let expected = buffer.bytes().to_vec();
    let mut queue = queue_of(device, 16, 0);
    for token in 0..16 {
        let at = token as usize * 4096;
        let (range, mode) = (at..at + 4096, WriteMode::Flushed);
        let request = WriteRequest { token, offset: at as u64, buffer: &buffer, range, mode };
        queue.write(request).unwrap_or_else(|error| panic!("{error}"));
    }
    queue.submit().unwrap_or_else(|error| panic!("{error}"));
    drop(buffer);
    drop(queue);
    let mut read = IoBuffer::aligned(64 << 10);
    device.read_at(0, &mut read).unwrap_or_else(|error| panic!("{error}"));
    assert!(*read == *expected, "submitted writes land");
}

fn large_requests_are_transferred_whole(device: &dyn Device) {
    let length = 5 << 20;
    let mut buffer = write_buffer(length);
    SplitMix::new(9).fill(buffer.bytes_mut());
    let sector = u64::from(device.geometry().sector_bytes);
    let mut queue = queue_of(device, 2, 4096);
    let mut completions = Vec::new();
    let request = WriteRequest {
        token: 1,
        offset: sector,
        buffer: &buffer,
        range: 0..length,
        mode: WriteMode::Flushed,
    };
    queue.write(request).unwrap_or_else(|error| panic!("{error}"));
    reap(&mut *queue, 1, &mut completions);
    queue.read(2, sector, length).unwrap_or_else(|error| panic!("{error}"));
    reap(&mut *queue, 1, &mut completions);
    assert!(completions.iter().all(|completion| completion.result.is_ok()));
    let read = completions[1].buffer.as_deref().unwrap_or_default();
    assert!(read == buffer.bytes(), "five MiB come back as they went");
}

fn several_queues_work_at_once(device: &dyn Device) {
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            scope.spawn(move || {
                let mut queue = queue_of(device, 8, 4096);
                let mut completions = Vec::new();
                for round in 0..50 {
                    let offset = thread * (1 << 20) + (round % 8) * 4096;
                    let mut buffer = write_buffer(4096);
                    buffer.bytes_mut().fill(thread as u8 * 64 + round as u8);
                    let (range, mode) = (0..4096, WriteMode::Flushed);
                    let request =
                        WriteRequest { token: round, offset, buffer: &buffer, range, mode };
                    queue.write(request).unwrap_or_else(|error| panic!("{error}"));
                    reap(&mut *queue, 1, &mut completions);
                    queue.read(round, offset, 4096).unwrap_or_else(|error| panic!("{error}"));
                    reap(&mut *queue, 1, &mut completions);
                    let read = completions.pop().and_then(|completion| completion.buffer);
                    assert_eq!(read.as_deref(), Some(buffer.bytes()), "thread {thread}");
                    completions.clear();
                }
            });
        }
    });
}

fn every_request_is_counted(device: &dyn Device) {
    let count = || {
        let counters = device.counters();
        [
            &counters.reads,
            &counters.read_bytes,
            &counters.writes,
            &counters.written_bytes,
            &counters.syncs,
        ]
        .map(|counter| counter.load(Ordering::Relaxed))
    };
    let before = count();
    let mut memory = IoBuffer::aligned(4096);
    device.read_at(0, &mut memory).unwrap_or_else(|error| panic!("{error}"));
    write_at(device, 0, &memory);
    device.sync().unwrap_or_else(|error| panic!("{error}"));
    let mut queue = queue_of(device, 4, 4096);
    let buffer = write_buffer(4096);
    let request = WriteRequest {
        token: 1,
        offset: 4096,
        buffer: &buffer,
        range: 0..4096,
        mode: WriteMode::Durable,
    };
    queue.write(request).unwrap_or_else(|error| panic!("{error}"));
    queue.read(2, 0, 4096).unwrap_or_else(|error| panic!("{error}"));
    queue.sync(3).unwrap_or_else(|error| panic!("{error}"));
    reap(&mut *queue, 3, &mut Vec::new());
    let after = count();
    let moved: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(moved[..4], [2, 8192, 2, 8192], "reads and writes");
    assert!(moved[4] >= 3, "sync, durable write, queued sync: {}", moved[4]);
}

fn write_at(device: &dyn Device, offset: u64, bytes: &[u8]) {
    let mut memory = IoBuffer::aligned(bytes.len());
    memory.copy_from_slice(bytes);
    device.write_at(offset, &memory).unwrap_or_else(|error| panic!("write at {offset}: {error}"));
}

fn reap(queue: &mut dyn Queue, wait_for: usize, completions: &mut Vec<Completion>) {
    queue.reap(wait_for, completions).unwrap_or_else(|error| panic!("reap: {error}"));
}

fn queue_of(device: &dyn Device, depth: usize, buffer_bytes: usize) -> Box<dyn Queue> {
    let options = QueueOptions { depth, buffer_bytes };
    device.queue(options).unwrap_or_else(|error| panic!("queue of depth {depth}: {error}"))
}

fn write_buffer(length: usize) -> WriteBuffer {
    WriteBuffer::anonymous(length).unwrap_or_else(|error| panic!("{length} bytes: {error}"))
}

/// A range within `size` of at most `sectors_max` sectors: position and length in bytes.
fn range_of(random: &mut SplitMix, size: u64, sector: u64, sectors_max: u64) -> (usize, usize) {
    let length = (1 + random.below(sectors_max)) * sector;
    let at = random.below((size - length) / sector + 1) * sector;
    (at as usize, length as usize)
}

fn kind(result: Result<()>) -> Option<ErrorKind> {
    result.err().as_ref().map(Error::kind)
}
