//! The device alone: the limit that a store is compared with.
//!
//! The probe runs on the very device that holds the store, so that both see data of the same age,
//! through the same kind of queue, with the same size, alignment and depth.

use std::sync::Arc;
use std::time::{Duration, Instant};

use entresol_device::{Completion, Device, QueueOptions, WriteBuffer, WriteMode, WriteRequest};
use entresol_workload::{Random, Recorder};
use serde_json::{Value, json};

use crate::failure::{Failure, Outcome};
use crate::meter::own_cpu_us;
use crate::report::{latency_us, rounded};

/// Random reads of one size.
#[derive(Clone)]
pub(crate) struct ReadProbe {
    /// Bytes of each read, a multiple of the sector.
    pub(crate) bytes: usize,
    /// Reads fall within the first so many bytes of the device.
    pub(crate) extent: u64,
    /// Reads in flight, each thread.
    pub(crate) depth: usize,
    /// Threads, each with a queue of its own.
    pub(crate) threads: usize,
    /// How long.
    pub(crate) time: Duration,
}

/// What a probe measured.
#[derive(Debug, Clone, Default)]
pub(crate) struct Probed {
    /// Requests a second.
    pub(crate) per_second: f64,
    /// Bytes a second.
    pub(crate) bytes_per_second: f64,
    /// Processor time of a request, µs.
    pub(crate) cpu_us: f64,
    /// Latencies, ns.
    pub(crate) latency: Recorder,
}

impl ReadProbe {
    /// Runs the probe; `round` makes each one draw other places.
    pub(crate) fn run(&self, device: &Arc<dyn Device>, round: u64) -> Outcome<Probed> {
        let started = Instant::now();
        let cpu = own_cpu_us();
        let mut all = Recorder::new();
        std::thread::scope(|scope| {
            let handles: Vec<_> = (0..self.threads as u64)
                .map(|thread| scope.spawn(move || self.reads(device, round << 8 | thread)))
                .collect();
            for handle in handles {
                match handle.join() {
                    Ok(result) => all.merge(&result?),
                    Err(_) => return Err(Failure::Failed("a probe thread panicked".into())),
                }
            }
            Ok(())
        })?;
        let seconds = started.elapsed().as_secs_f64();
        let count = all.count() as f64;
        Ok(Probed {
            per_second: count / seconds,
            bytes_per_second: count * self.bytes as f64 / seconds,
            cpu_us: (own_cpu_us() - cpu) / count.max(1.0),
            latency: all,
        })
    }

    fn reads(&self, device: &Arc<dyn Device>, seed: u64) -> Outcome<Recorder> {
        let geometry = device.geometry();
        let sector = u64::from(geometry.sector_bytes);
        let extent = self.extent.min(geometry.capacity_bytes);
        let places = extent.saturating_sub(self.bytes as u64) / sector + 1;
        let options = QueueOptions { depth: self.depth, buffer_bytes: self.bytes };
        let mut queue = device.queue(options)?;
        let mut random = Random::new(seed);
        let mut begun = vec![0u64; self.depth];
        let mut free: Vec<u64> = (0..self.depth as u64).collect();
        let mut completions: Vec<Completion> = Vec::with_capacity(self.depth);
        let mut recorder = Recorder::new();
        let epoch = Instant::now();
        loop {
            let over = epoch.elapsed() >= self.time;
            if over && queue.in_flight() == 0 {
                return Ok(recorder);
            }
            if !over {
                while let Some(token) = free.pop() {
                    begun[token as usize] = epoch.elapsed().as_nanos() as u64;
                    queue.read(token, random.below(places) * sector, self.bytes)?;
                }
            }
            let at_least = if over { 1 } else { (self.depth / 4).max(1) };
            queue.reap(at_least, &mut completions)?;
            for completion in completions.drain(..) {
                completion.result?;
                let now = epoch.elapsed().as_nanos() as u64;
                recorder.record(now - begun[completion.token as usize]);
                free.push(completion.token);
            }
        }
    }
}

/// Sequential writes of one size, over and over the same range.
///
/// They come from several buffers by turns, with different bytes in each, as a store's and fio's
/// do: one that is written again and again stays in the processor's cache, and is written half as
/// fast again as any that holds news.
#[derive(Debug, Clone)]
pub(crate) struct WriteProbe {
    /// Bytes of each write, a multiple of the sector.
    pub(crate) bytes: usize,
    /// Buffers, each of so many bytes.
    pub(crate) buffers: usize,
    /// Writes in flight.
    pub(crate) depth: usize,
    /// How long.
    pub(crate) time: Duration,
    /// Where the next probe goes on.
    pub(crate) next: u64,
}

impl WriteProbe {
    /// Runs the probe on `device`, whose contents it destroys.
    pub(crate) fn run(&mut self, device: &Arc<dyn Device>) -> Outcome<Probed> {
        let capacity = device.geometry().capacity_bytes / self.bytes as u64 * self.bytes as u64;
        let mut queue = device.queue(QueueOptions { depth: self.depth, buffer_bytes: 4096 })?;
        let mut random = Random::new(7);
        let mut buffers = Vec::with_capacity(self.buffers);
        for _ in 0..self.buffers.max(1) {
            let mut buffer = WriteBuffer::anonymous(self.bytes)?;
            random.fill(buffer.bytes_mut());
            buffers.push(buffer);
        }
        queue.register(&buffers);
        let mut turns = buffers.iter().cycle();
        let mut begun = vec![0u64; self.depth];
        let mut free: Vec<u64> = (0..self.depth as u64).collect();
        let mut completions: Vec<Completion> = Vec::new();
        let mut recorder = Recorder::new();
        let cpu = own_cpu_us();
        let epoch = Instant::now();
        loop {
            let over = epoch.elapsed() >= self.time;
            if over && queue.in_flight() == 0 {
                break;
            }
            while let Some(token) = if over { None } else { free.pop() } {
                let Some(buffer) = turns.next() else { break };
                begun[token as usize] = epoch.elapsed().as_nanos() as u64;
                queue.write(WriteRequest {
                    token,
                    offset: self.next,
                    buffer,
                    range: 0..self.bytes,
                    mode: WriteMode::Flushed,
                })?;
                self.next = (self.next + self.bytes as u64) % capacity;
            }
            queue.reap(1, &mut completions)?;
            for completion in completions.drain(..) {
                completion.result?;
                let now = epoch.elapsed().as_nanos() as u64;
                recorder.record(now - begun[completion.token as usize]);
                free.push(completion.token);
            }
        }
        let seconds = epoch.elapsed().as_secs_f64();
        let count = recorder.count() as f64;
        Ok(Probed {
            per_second: count / seconds,
            bytes_per_second: count * self.bytes as f64 / seconds,
            cpu_us: (own_cpu_us() - cpu) / count.max(1.0),
            latency: recorder,
        })
    }
}

impl Probed {
    /// Joins rounds: median rates, all latencies.
    pub(crate) fn median(rounds: &[Probed]) -> Probed {
        let of = |field: fn(&Probed) -> f64| {
            crate::report::median(&rounds.iter().map(field).collect::<Vec<_>>())
        };
        let mut latency = Recorder::new();
        for round in rounds {
            latency.merge(&round.latency);
        }
        Probed {
            per_second: of(|p| p.per_second),
            bytes_per_second: of(|p| p.bytes_per_second),
            cpu_us: of(|p| p.cpu_us),
            latency,
        }
    }

    /// As JSON.
    pub(crate) fn json(&self, bytes: usize) -> Value {
        json!({
            "bytes": bytes,
            "ops_per_second": rounded(self.per_second),
            "mb_per_second": rounded(self.bytes_per_second / 1e6),
            "cpu_us_per_op": rounded(self.cpu_us),
            "latency_us": latency_us(&self.latency.summary()),
        })
    }
}
