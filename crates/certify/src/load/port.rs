//! Where the open engine's transfers go and its time comes from.

use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

use entresol_device::{
    Completion, IoBuffer, Queue, QueueOptions, WriteBuffer, WriteMode, WriteRequest,
};

use crate::load::error::{Error, Result};
use crate::load::interval::Kind;
use crate::load::plan::Judging;
use crate::load::session::Session;

/// Transfers and time, real or simulated.
pub(crate) trait Port {
    /// ns since the start of the load.
    fn now_ns(&mut self) -> u64;

    /// Takes a transfer; `fill` makes what a write writes. Returns when it began, or an error if
    /// there is no room: the request is to be made again.
    fn begin(
        &mut self,
        request: &Request,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> std::result::Result<u64, NoRoom>;

    /// Hands over what was begun, and waits until a transfer is done or the time comes; appends all
    /// that are done to `ended`.
    fn wait(&mut self, until_ns: u64, ended: &mut Vec<Ended>) -> Result<()>;
}

/// Nothing more fits.
#[derive(Debug)]
pub(crate) struct NoRoom;

/// A transfer to begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) token: u64,
    pub(crate) device: usize,
    pub(crate) kind: Kind,
    pub(crate) offset: u64,
    pub(crate) length: usize,
}

/// A transfer that is done.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) token: u64,
    pub(crate) at_ns: u64,
    pub(crate) result: io::Result<()>,
    /// What a read brought.
    pub(crate) bytes: Option<IoBuffer>,
}

/// Queues of the targets' devices, and the clock.
pub(crate) struct RingPort {
    session: Arc<Session>,
    queues: Vec<Box<dyn Queue>>,
    descriptors: Vec<RawFd>,
    mode: WriteMode,
    /// Memory of writes in flight, by token.
    writing: HashMap<u64, WriteBuffer>,
    /// Memory that waits for its next write, by length.
    idle: HashMap<usize, Vec<WriteBuffer>>,
    completions: Vec<Completion>,
    /// Reads of media that answer at once: done, and not told of yet.
    answered: Vec<Ended>,
    /// Where such a read goes that nobody looks at.
    unseen: IoBuffer,
}

/// Registered memory for each transfer of a queue; longer reads take that of several.
const BUFFER_BYTES: usize = 8 << 10;
/// Bytes of such memory for all queues of a thread.
const MEMORY_BYTES_MAX: usize = 256 << 20;

impl RingPort {
    /// A queue of `depth` to each target.
    pub(crate) fn open(session: &Arc<Session>, depth: usize) -> Result<RingPort> {
        let depth = depth.clamp(1, QueueOptions::DEPTH_MAX);
        let share = MEMORY_BYTES_MAX / session.targets.len() / depth;
        let options = QueueOptions { depth, buffer_bytes: BUFFER_BYTES.min(share) };
        let mut queues = Vec::new();
        for target in session.targets.iter() {
            let device = target.device().ok_or_else(|| {
                Error::Plan(format!(
                    "{}: can be loaded by the blocking engine only; use `engine: psync`",
                    target.name()
                ))
            })?;
            queues.push(
                device
                    .queue_of_thread(options)
                    .map_err(|error| Error::System(error.to_string()))?,
            );
        }
        Ok(RingPort {
            session: Arc::clone(session),
            descriptors: queues.iter().filter_map(|queue| queue.poll_fd()).collect(),
            queues,
            mode: session.plan.writing.mode,
            writing: HashMap::new(),
            idle: HashMap::new(),
            completions: Vec::new(),
            answered: Vec::new(),
            unseen: IoBuffer::aligned(0),
        })
    }

    /// Makes a read of a medium in memory: a copy, which begins and ends here. A ring could tell
    /// its end only with that of all others that were handed over with it. `None`: the medium is
    /// not of that kind.
    fn read_at_once(&mut self, request: &Request) -> Option<u64> {
        let Request { token, offset, length, .. } = *request;
        let RingPort { session, answered, unseen, .. } = self;
        let device = session.targets[request.device].device()?;
        if !device.answers_at_once(length) {
            return None;
        }
        let mut seen = match session.plan.writing.judging {
            Judging::Ignored => None,
            _ => Some(IoBuffer::aligned(length)),
        };
        if seen.is_none() && unseen.len() < length {
            *unseen = IoBuffer::aligned(length);
        }
        let memory = seen.as_mut().unwrap_or(unseen);
        let began_ns = session.now_ns();
        let result = device.read_at(offset, &mut memory[..length]).map_err(plain);
        let at_ns = session.now_ns();
        answered.push(Ended { token, at_ns, result, bytes: seen });
        Some(began_ns)
    }

    fn write(
        &mut self,
        request: &Request,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> std::result::Result<u64, NoRoom> {
        let Request { token, device, offset, length, .. } = *request;
        let idle = self.idle.get_mut(&length).and_then(Vec::pop);
        let mut buffer = match idle {
            Some(buffer) => buffer,
            None => WriteBuffer::anonymous(length).map_err(|_| NoRoom)?,
        };
        fill(&mut buffer.bytes_mut()[..length]);
        let began_ns = self.session.now_ns();
        let (range, mode) = (0..length, self.mode);
        let taken =
            self.queues[device].write(WriteRequest { token, offset, buffer: &buffer, range, mode });
        match taken {
            Ok(()) => {
                self.writing.insert(token, buffer);
                Ok(began_ns)
            }
            Err(_) => {
                self.idle.entry(length).or_default().push(buffer);
                Err(NoRoom)
            }
        }
    }

    /// Takes all completions there are.
    fn reap(&mut self, ended: &mut Vec<Ended>) -> Result<()> {
        for queue in self.queues.iter_mut().filter(|queue| queue.in_flight() > 0) {
            queue
                .reap(0, &mut self.completions)
                .map_err(|error| Error::System(error.to_string()))?;
        }
        self.take(ended);
        Ok(())
    }

    fn take(&mut self, ended: &mut Vec<Ended>) {
        if self.completions.is_empty() {
            return;
        }
        let at_ns = self.session.now_ns();
        for completion in self.completions.drain(..) {
            if let Some(buffer) = self.writing.remove(&completion.token) {
                self.idle.entry(buffer.len()).or_default().push(buffer);
            }
            ended.push(Ended {
                token: completion.token,
                at_ns,
                result: completion.result.map_err(plain),
                bytes: completion.buffer,
            });
        }
    }
}

impl Port for RingPort {
    fn now_ns(&mut self) -> u64 {
        self.session.now_ns()
    }

    fn begin(
        &mut self,
        request: &Request,
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> std::result::Result<u64, NoRoom> {
        if request.kind.writes() {
            return self.write(request, fill);
        }
        if let Some(began_ns) = self.read_at_once(request) {
            return Ok(began_ns);
        }
        let Request { token, device, offset, length, .. } = *request;
        let began_ns = self.session.now_ns();
        match self.queues[device].read(token, offset, length) {
            Ok(()) => Ok(began_ns),
            Err(_) => Err(NoRoom),
        }
    }

    fn wait(&mut self, until_ns: u64, ended: &mut Vec<Ended>) -> Result<()> {
        if !self.answered.is_empty() {
            ended.append(&mut self.answered);
            return self.reap(ended);
        }
        let now_ns = self.session.now_ns();
        let timeout = Duration::from_nanos(until_ns.saturating_sub(now_ns));
        if self.queues.iter().all(|queue| queue.in_flight() == 0) {
            if !timeout.is_zero() {
                sleep(timeout)?;
            }
            return Ok(());
        }
        if let [queue] = self.queues.as_mut_slice()
            && queue.poll_fd().is_some()
        {
            // One call hands over and waits.
            queue
                .reap_within(timeout, &mut self.completions)
                .map_err(|error| Error::System(error.to_string()))?;
            self.take(ended);
            return Ok(());
        }
        self.reap(ended)?;
        if !ended.is_empty() || timeout.is_zero() {
            return Ok(());
        }
        entresol_device::wait_readable(&self.descriptors, timeout)
            .map_err(|error| Error::System(error.to_string()))?;
        self.reap(ended)
    }
}

fn sleep(timeout: Duration) -> Result<()> {
    let waited = entresol_device::wait_readable(&[], timeout);
    waited.map(|_| ()).map_err(|error| Error::System(error.to_string()))
}

/// The system's error, with its number where there is one.
fn plain(error: entresol_device::Error) -> io::Error {
    let source = std::error::Error::source(&error)
        .and_then(|source| source.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error));
    match source {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Arrival;
    use crate::load::content::Marking;
    use crate::load::plan::{Engine, Plan, Timing, Writing};
    use crate::load::target::{Manner, Target};
    use entresol_device::{FileDevice, FileOptions, IoEngine};

    const READ_BYTES: usize = 4096;

    fn session(judging: Judging, device: FileDevice) -> Arc<Session> {
        let marking = Marking::Plain;
        let mode = WriteMode::Flushed;
        let plan = Plan {
            streams: Vec::new(),
            loops: Vec::new(),
            series: Vec::new(),
            block_bytes: READ_BYTES as u32,
            timing: Timing { duration_ns: 1, interval_ns: 1, lag_ns_max: None },
            engine: Engine::Uring { threads: 1, depth: 8 },
            manner: Manner::Strict,
            arrival: Arrival::Even,
            writing: Writing { compress_pct: 100, marking, judging, mode, journal: None },
            seed: 7,
        };
        let session = Session::new(plan, &Arc::from([Target::of(Arc::new(device))]));
        session.begin();
        Arc::new(session)
    }

    #[test]
    fn a_read_that_is_answered_at_once_ends_before_the_next_one_begins() {
        let path = std::env::temp_dir().join(format!("entresol-port-{}", std::process::id()));
        for (judging, seen) in [(Judging::Ignored, false), (Judging::Verified, true)] {
            let options = FileOptions {
                capacity_bytes: Some(1 << 20),
                io: IoEngine::Inline,
                ..FileOptions::default()
            };
            let device = FileDevice::open(&path, &options).expect("a file of a mebibyte");
            let mut port = RingPort::open(&session(judging, device), 8).expect("a ring");
            let read = |token| Request {
                token,
                device: 0,
                kind: Kind::Read,
                offset: token * READ_BYTES as u64,
                length: READ_BYTES,
            };
            let begun: Vec<u64> = (0..4)
                .map(|token| port.begin(&read(token), &mut |_| unreachable!()).expect("room"))
                .collect();
            let mut ended = Vec::new();
            port.wait(u64::MAX, &mut ended).expect("nothing is waited for");
            assert_eq!(ended.len(), 4);
            for (number, one) in ended.iter().enumerate() {
                assert!(one.result.is_ok() && one.token == number as u64);
                assert!(begun[number] <= one.at_ns);
                assert!(begun.get(number + 1).is_none_or(|&next| one.at_ns <= next), "{number}");
                let length = one.bytes.as_ref().map(|bytes| bytes.len());
                assert_eq!(length, seen.then_some(READ_BYTES));
            }
            drop(port);
            std::fs::remove_file(&path).expect("it was made above");
        }
    }
}
