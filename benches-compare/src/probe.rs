//! What the device gives at the moment: the measure beside every figure.
//!
//! Random reads, of as many bytes and with as many in flight as the course says, and sequential
//! writes of 1 MiB, four in flight: direct I/O through io_uring on a file as large and as old as
//! the contestant's. It is written again, never removed, before each contestant: on many machines
//! unlinking a large file stalls the device.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use entresol_workload::Random;
use io_uring::{IoUring, opcode, types};

/// A file to probe the device with.
#[derive(Debug)]
pub struct Probe {
    file: File,
    bytes: u64,
    seed: u64,
}

/// Random reads.
#[derive(Debug, Clone, Copy)]
pub struct Reads {
    /// Bytes of each, a multiple of 512.
    pub bytes: usize,
    /// How many are in flight.
    pub depth: usize,
}

impl Reads {
    /// About as long as a record of the comparison.
    pub const OF_RECORDS: Reads = Reads { bytes: 2048, depth: 128 };
}

const WRITE_BYTES: usize = 1 << 20;
const WRITE_DEPTH: usize = 4;
const ALIGNMENT: usize = 4096;

impl Probe {
    /// A probe file of about `bytes` at `path`, allocated and written once.
    pub fn new(path: &Path, bytes: u64) -> io::Result<Probe> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(libc::O_DIRECT)
            .open(path)?;
        let bytes = bytes.next_multiple_of(WRITE_BYTES as u64);
        file.set_len(bytes)?;
        let mut probe = Probe { file, bytes, seed: 1 };
        probe.write(bytes)?;
        Ok(probe)
    }

    /// Writes the first `bytes` of the file once more; bytes a second.
    pub fn write(&mut self, bytes: u64) -> io::Result<f64> {
        let count = (bytes.min(self.bytes) / WRITE_BYTES as u64).max(1);
        self.seed += 1;
        let started = Instant::now();
        let mut next = 0;
        let mut flight = Flight::new(&self.file, WRITE_DEPTH, WRITE_BYTES, self.seed)?;
        flight.run(1, || {
            let offset = next * WRITE_BYTES as u64;
            next += 1;
            (next <= count).then_some(Transfer::Write(offset))
        })?;
        self.file.sync_data()?;
        Ok((count * WRITE_BYTES as u64) as f64 / started.elapsed().as_secs_f64())
    }

    /// Reads at random for `duration`; reads a second.
    pub fn read(&mut self, reads: Reads, duration: Duration) -> io::Result<f64> {
        self.seed += 1;
        let mut random = Random::new(self.seed);
        let sectors = (self.bytes - reads.bytes as u64) / 512;
        let started = Instant::now();
        let mut flight = Flight::new(&self.file, reads.depth, reads.bytes, self.seed)?;
        let done = flight.run((reads.depth / 4).max(1), || {
            let offset = random.below(sectors) * 512;
            (started.elapsed() < duration).then_some(Transfer::Read(offset))
        })?;
        Ok(done as f64 / started.elapsed().as_secs_f64())
    }
}

#[derive(Debug, Clone, Copy)]
enum Transfer {
    Read(u64),
    Write(u64),
}

/// A ring, and memory for as many transfers as are in flight.
struct Flight<'f> {
    ring: IoUring,
    file: &'f File,
    memory: Vec<u8>,
    start: usize,
    bytes: usize,
    free: Vec<usize>,
    depth: usize,
}

impl<'f> Flight<'f> {
    fn new(file: &'f File, depth: usize, bytes: usize, seed: u64) -> io::Result<Flight<'f>> {
        let ring = IoUring::new(u32::try_from(depth).unwrap_or(256).max(8))?;
        let mut memory = vec![0; depth * bytes + ALIGNMENT];
        Random::new(seed).fill(&mut memory);
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        let free = (0..depth).collect();
        Ok(Flight { ring, file, memory, start, bytes, free, depth })
    }

    /// Keeps the ring full with what `next` gives until it gives nothing; transfers done.
    fn run(&mut self, batch: usize, mut next: impl FnMut() -> Option<Transfer>) -> io::Result<u64> {
        let mut done = 0;
        let mut more = true;
        loop {
            while more && let Some(slot) = self.free.pop() {
                match next() {
                    Some(transfer) => self.push(slot, transfer),
                    None => {
                        more = false;
                        self.free.push(slot);
                    }
                }
            }
            let in_flight = self.depth - self.free.len();
            if in_flight == 0 {
                return Ok(done);
            }
            self.ring.submit_and_wait(batch.min(in_flight))?;
            for completion in self.ring.completion() {
                let slot = usize::try_from(completion.user_data()).unwrap_or_default();
                self.free.push(slot);
                if usize::try_from(completion.result()) != Ok(self.bytes) {
                    return Err(io::Error::other("a probe's transfer failed or was short"));
                }
                done += 1;
            }
        }
    }

    fn push(&mut self, slot: usize, transfer: Transfer) {
        let from = self.start + slot * self.bytes;
        let memory = self.memory[from..from + self.bytes].as_mut_ptr();
        let file = types::Fd(self.file.as_raw_fd());
        let bytes = u32::try_from(self.bytes).expect("a transfer is at most a mebibyte");
        let entry = match transfer {
            Transfer::Read(at) => opcode::Read::new(file, memory, bytes).offset(at).build(),
            Transfer::Write(at) => opcode::Write::new(file, memory, bytes).offset(at).build(),
        };
        let entry = entry.user_data(slot as u64);
        // SAFETY: each slot has memory of its own that is in use by one transfer at a time and is
        // freed only after all have ended (`run` ends with none in flight, `drop` waits for them).
        unsafe { self.ring.submission().push(&entry) }
            .expect("the ring has as many entries as there are slots");
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        // Only after an error is anything still in flight here.
        while self.free.len() < self.depth && self.ring.submit_and_wait(1).is_ok() {
            let slots: Vec<u64> = self.ring.completion().map(|c| c.user_data()).collect();
            self.free.extend(slots.iter().map(|slot| *slot as usize));
        }
    }
}
