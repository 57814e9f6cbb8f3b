//! The open engine: few threads over io_uring, following a schedule that no transfer delays.
//!
//! Transfers become due when the schedule says so, whatever happened to earlier ones. A transfer
//! that finds no room in its lane (one stream on one device) waits there, and no other lane waits
//! for it. Response time counts from the due time, service time from the hand-over to the device.
//!
//! Time and transfers come from a [`Port`], so that the logic runs in virtual time too.

use std::collections::VecDeque;
use std::sync::mpsc;
use std::sync::{Arc, Barrier};
use std::thread::{Builder, JoinHandle};

use entresol_device::IoBuffer;
use entresol_workload::{Random, mix64};

use crate::load::arrival::Arrivals;
use crate::load::content::Place;
use crate::load::error::{Error, Result};
use crate::load::interval::{Ending, Kind};
use crate::load::judging::judge;
use crate::load::model::{BlockTransfer, Model};
use crate::load::observer::Trouble;
use crate::load::plan::{Judging, Pacing};
use crate::load::port::{Ended, Port, Request, RingPort};
use crate::load::psync::{failure, wrong_unit};
use crate::load::session::Session;
use crate::load::shape::Placement;
use crate::load::tally::{Done, Tally};
use crate::load::telemetry::requests_max;

/// Starts `count` threads, each with its share of every stream.
pub(crate) fn start(
    session: &Arc<Session>,
    count: usize,
    depth: usize,
) -> Result<Vec<JoinHandle<()>>> {
    let depth = depth.min(room(session));
    let share = Share { count: count.max(1), depth: depth.div_ceil(count.max(1)).max(1) };
    let (tell, told) = mpsc::channel();
    let begin = Arc::new(Barrier::new(share.count + 1));
    let mut threads = Vec::new();
    for number in 0..share.count {
        let (shared, tell, begin) = (Arc::clone(session), tell.clone(), Arc::clone(&begin));
        let work = move || {
            // A queue belongs to the thread that opens it.
            let port = RingPort::open(&shared, share.depth * shared.plan.streams.len());
            match port {
                Ok(port) => {
                    let _listening = tell.send(Ok(()));
                    drop(tell);
                    begin.wait();
                    Issuer::new(&shared, port, number, share).work();
                }
                Err(error) => {
                    let _listening = tell.send(Err(error));
                    drop(tell);
                    begin.wait();
                }
            }
        };
        let started = Builder::new().name(format!("load-{number}")).spawn(work);
        threads.push(started.map_err(|error| {
            Error::System(format!("cannot start thread {number} of the load: {error}"))
        })?);
    }
    drop(tell);
    let opened = told.into_iter().collect::<Result<Vec<()>>>();
    if let Err(error) = &opened {
        session.end(Ending::Broken(error.to_string()));
    }
    session.begin();
    begin.wait();
    opened.map(|_| threads)
}

/// Transfers that each lane may have in flight so that all together fit into every device's queue
/// of requests: what does not fit is handed to threads of the kernel, which costs several times as
/// much.
fn room(session: &Session) -> usize {
    let streams = &session.plan.streams;
    let targets = session.targets.iter().enumerate();
    let of_device = targets.filter_map(|(device, target)| {
        let lanes = streams.iter().filter(|of| of.device.is_none_or(|only| only == device)).count();
        let requests = requests_max(target.path()?)?;
        Some(requests * 3 / 4 / lanes.max(1))
    });
    of_device.min().unwrap_or(usize::MAX).max(DEPTH_MIN)
}

/// What one of the threads does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    /// How many threads there are.
    pub(crate) count: usize,
    /// Transfers in flight in each lane, at most.
    pub(crate) depth: usize,
}

/// One thread.
pub(crate) struct Issuer<'a, P: Port> {
    session: &'a Session,
    port: P,
    number: usize,
    depth: usize,
    random: Random,
    flows: Vec<Flow>,
    lanes: Vec<Lane>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    ended: Vec<Ended>,
}

/// One stream: what makes its transfers due.
struct Flow {
    stream: usize,
    rhythm: Rhythm,
}

enum Rhythm {
    Open(Arrivals),
    /// When the next is due; `u64::MAX` while one is under way.
    Closed {
        next_ns: u64,
        pause_ns: u64,
    },
    /// The engine of the device of this lane; its reads go to another.
    Modelled {
        model: Box<Model>,
        reads: Option<usize>,
    },
    /// Another flow's engine.
    Fed,
}

/// A transfer that waits.
#[derive(Debug, Clone, Copy)]
struct Due {
    at_ns: u64,
    /// Where, if it is no matter of chance.
    offset: Option<u64>,
}

/// One stream on one device.
struct Lane {
    flow: usize,
    device: usize,
    placement: Placement,
    /// Transfers that wait for room.
    backlog: VecDeque<Due>,
    in_flight: usize,
    /// Due times and slots of those in flight, oldest first; ended ones are dropped when they come
    /// to the front.
    oldest: VecDeque<(u64, u32, u64)>,
}

/// A transfer in flight.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    lane: usize,
    due_ns: u64,
    began_ns: u64,
    offset: u64,
    length: usize,
    /// Which write of the run.
    generation: u32,
    /// Which use of the slot this is; odd while in flight.
    use_count: u64,
}

/// Transfers in flight that every lane may have, whatever the device's queue.
const DEPTH_MIN: usize = 16;
/// Why a modelled engine cannot go on.
const OUT_OF_BLOCKS: &str = "the modelled engine has no free block left: use a larger device or \
                             another defrag-lwm-pct";
/// The longest wait, so that the end of the run is noticed.
const WAIT_NS_MAX: u64 = 50_000_000;
/// Transfers begun in one lane before completions are looked at.
const BATCH: usize = 64;
/// Transfers waiting in one lane, at most; beyond it the load ends as one that lags.
const BACKLOG_MAX: usize = 16 << 20;
/// How long transfers in flight are waited for after an early end, or once no more are begun.
const TAIL_NS: u64 = 2_000_000_000;
/// How long transfers that wait are still begun after the planned end, at most. With the tail it is
/// less than the session grants, so that a load that is late is judged and does not break.
const DRAIN_NS: u64 = 10_000_000_000;

impl Rhythm {
    /// When something may become due.
    fn peek(&self) -> u64 {
        match self {
            Rhythm::Open(arrivals) => arrivals.peek(),
            Rhythm::Closed { next_ns, .. } => *next_ns,
            Rhythm::Modelled { model, .. } => model.peek(),
            Rhythm::Fed => u64::MAX,
        }
    }

    /// The next due time before `now_ns`, if there is one, and goes on.
    fn take_before(&mut self, now_ns: u64, random: &mut Random) -> Option<u64> {
        let due_ns = self.peek();
        if due_ns >= now_ns {
            return None;
        }
        match self {
            Rhythm::Open(arrivals) => arrivals.advance(random),
            Rhythm::Closed { next_ns, .. } => *next_ns = u64::MAX,
            Rhythm::Modelled { .. } | Rhythm::Fed => {}
        }
        Some(due_ns)
    }
}

/// Tells each engine where its reads go.
fn connect(session: &Session, flows: &mut [Flow], lanes: &[Lane]) {
    let fed: Vec<bool> = flows.iter().map(|flow| matches!(flow.rhythm, Rhythm::Fed)).collect();
    for flow in flows {
        let device = session.plan.streams[flow.stream].device;
        if let Rhythm::Modelled { reads, .. } = &mut flow.rhythm {
            *reads = lanes
                .iter()
                .position(|lane| fed[lane.flow] && device.is_none_or(|only| only == lane.device));
        }
    }
}

impl<'a, P: Port> Issuer<'a, P> {
    pub(crate) fn new(session: &'a Session, port: P, number: usize, share: Share) -> Self {
        let plan = &session.plan;
        let mut random = Random::new(mix64(plan.seed ^ mix64(number as u64 + 1)));
        let (mut flows, mut lanes) = (Vec::new(), Vec::new());
        for (stream, of) in plan.streams.iter().enumerate() {
            let rhythm = match of.pacing {
                Pacing::Open(per_sec) => {
                    let per_sec = per_sec / share.count as f64;
                    Rhythm::Open(Arrivals::new(&plan.arrival, per_sec, &mut random))
                }
                // A closed stream is one transfer at a time: the first thread does it.
                Pacing::Closed { .. } if number > 0 => continue,
                Pacing::Closed { pause_ns } => Rhythm::Closed { next_ns: pause_ns, pause_ns },
                // A device's engine is whole, in one thread.
                Pacing::Modelled(_) | Pacing::Fed
                    if of.device.is_some_and(|device| device % share.count != number) =>
                {
                    continue;
                }
                Pacing::Modelled(options) => {
                    let target = &session.targets[of.device.unwrap_or_default()];
                    let blocks = target.blocks(plan.block_bytes);
                    let model = Box::new(Model::new(options, blocks, &mut random));
                    Rhythm::Modelled { model, reads: None }
                }
                Pacing::Fed => Rhythm::Fed,
            };
            for (device, target) in session.targets.iter().enumerate() {
                let span = target.blocks(plan.block_bytes) * u64::from(plan.block_bytes);
                if of.device.is_none_or(|only| only == device) {
                    let placement = of.shape.on(target.transfer_bytes_min(), span);
                    lanes.push(Lane {
                        flow: flows.len(),
                        device,
                        placement: placement.expect("the plan was checked"),
                        backlog: VecDeque::new(),
                        in_flight: 0,
                        oldest: VecDeque::new(),
                    });
                }
            }
            flows.push(Flow { stream, rhythm });
        }
        connect(session, &mut flows, &lanes);
        let (slots, free, ended) = (Vec::new(), Vec::new(), Vec::new());
        let depth = share.depth;
        Issuer { session, port, number, depth, random, flows, lanes, slots, free, ended }
    }

    /// Issues until the planned end and until all is done, or until the run ends early.
    pub(crate) fn work(&mut self) {
        let timing = &self.session.plan.timing;
        let end_ns = timing.duration_ns;
        let drained_ns = end_ns.saturating_add(timing.lag_ns_max.unwrap_or(DRAIN_NS).min(DRAIN_NS));
        let mut stopped_ns = None;
        loop {
            let now_ns = self.port.now_ns();
            if self.session.has_ended() && now_ns < end_ns {
                let stopped_ns = *stopped_ns.get_or_insert(now_ns);
                self.lanes.iter_mut().for_each(|lane| lane.backlog.clear());
                if self.in_flight() == 0 || now_ns > stopped_ns.saturating_add(TAIL_NS) {
                    return;
                }
            } else {
                self.fall_due(now_ns.min(end_ns));
                if now_ns > drained_ns {
                    self.lanes.iter_mut().for_each(|lane| lane.backlog.clear());
                }
                self.begin();
                let idle = self.lanes.iter().all(|lane| lane.in_flight == 0);
                if now_ns >= end_ns && (idle || now_ns > drained_ns.saturating_add(TAIL_NS)) {
                    return;
                }
                self.watch_lag(now_ns);
            }
            let next_ns = if stopped_ns.is_some() { u64::MAX } else { self.next_due(end_ns) };
            let until_ns = next_ns.clamp(now_ns, now_ns + WAIT_NS_MAX);
            if !self.session.flush_journal() {
                return;
            }
            if let Err(error) = self.port.wait(until_ns, &mut self.ended) {
                self.session.end(Ending::Broken(error.to_string()));
                return;
            }
            self.settle();
        }
    }

    fn in_flight(&self) -> usize {
        self.lanes.iter().map(|lane| lane.in_flight).sum()
    }

    /// Puts what became due before `now_ns` into the lanes.
    fn fall_due(&mut self, now_ns: u64) {
        let mut tally = self.session.tally(self.number).lock();
        let mut first = 0;
        for (index, flow) in self.flows.iter_mut().enumerate() {
            let kind = self.session.plan.streams[flow.stream].kind;
            let count = self.lanes[first..].iter().take_while(|lane| lane.flow == index).count();
            let lanes = first..first + count;
            first += count;
            if let Rhythm::Modelled { model, reads } = &mut flow.rhythm {
                let block_bytes = u64::from(self.session.plan.block_bytes);
                let mut emit = |at_ns, transfer| {
                    let (lane, block, kind) = match (transfer, *reads) {
                        (BlockTransfer::Write { block }, _) => (lanes.start, block, kind),
                        (BlockTransfer::Read { block }, Some(lane)) => {
                            (lane, block, Kind::LargeRead)
                        }
                        (BlockTransfer::Read { .. }, None) => return,
                    };
                    let lane = &mut self.lanes[lane];
                    lane.backlog.push_back(Due { at_ns, offset: Some(block * block_bytes) });
                    tally.due(kind, lane.device);
                };
                if model.advance(now_ns, &mut self.random, &mut emit).is_err() {
                    self.session.end(Ending::Broken(OUT_OF_BLOCKS.to_owned()));
                    return;
                }
                continue;
            }
            while let Some(at_ns) = flow.rhythm.take_before(now_ns, &mut self.random) {
                let lane = match count {
                    1 => lanes.start,
                    _ => lanes.start + self.random.below(count as u64) as usize,
                };
                let lane = &mut self.lanes[lane];
                lane.backlog.push_back(Due { at_ns, offset: None });
                tally.due(kind, lane.device);
                if lane.backlog.len() > BACKLOG_MAX {
                    let lag_ns = now_ns - lane.backlog[0].at_ns;
                    self.session.end(Ending::Lagged { kind, lag_ns });
                    return;
                }
            }
        }
    }

    /// Hands over what waits, as far as there is room.
    fn begin(&mut self) {
        for index in 0..self.lanes.len() {
            for _ in 0..BATCH {
                let lane = &mut self.lanes[index];
                if lane.in_flight >= self.depth {
                    break;
                }
                let Some(due) = lane.backlog.pop_front() else { break };
                if !self.begin_one(index, due) {
                    self.lanes[index].backlog.push_front(due);
                    break;
                }
            }
        }
    }

    /// Hands over one transfer; whether there was room.
    fn begin_one(&mut self, index: usize, due: Due) -> bool {
        let due_ns = due.at_ns;
        let session = self.session;
        let lane = &mut self.lanes[index];
        let of = &session.plan.streams[self.flows[lane.flow].stream];
        let (chosen, length) = lane.placement.choose(&mut self.random);
        let offset = due.offset.unwrap_or(chosen);
        let device = lane.device;
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let request = Request { token: u64::from(number), device, kind: of.kind, offset, length };
        let random = &mut self.random;
        let mut generation = 0;
        let begun = self.port.begin(&request, &mut |bytes| {
            generation = session.begin_write(device, (offset, length));
            let place = Place { device: session.targets[device].identity(), offset };
            session.content.fill(random, place, generation, bytes);
        });
        let Ok(began_ns) = begun else {
            if of.kind.writes() {
                session.withdraw_write(generation);
            }
            self.free.push(number);
            return false;
        };
        let slot = &mut self.slots[number as usize];
        let use_count = slot.use_count + 1;
        *slot = Slot { lane: index, due_ns, began_ns, offset, length, generation, use_count };
        lane.in_flight += 1;
        lane.oldest.push_back((due_ns, number, use_count));
        true
    }

    /// When there is something to begin; never, if nothing is due before the end.
    fn next_due(&self, end_ns: u64) -> u64 {
        let flows = self.flows.iter().map(|flow| flow.rhythm.peek().saturating_add(1));
        let room = |lane: &Lane| !lane.backlog.is_empty() && lane.in_flight < self.depth;
        if self.lanes.iter().any(room) {
            return 0;
        }
        flows.filter(|&due_ns| due_ns <= end_ns).min().unwrap_or(u64::MAX)
    }

    /// Takes what is done.
    fn settle(&mut self) {
        if self.ended.is_empty() {
            return;
        }
        let session = self.session;
        let mut tally = session.tally(self.number).lock();
        for mut ended in self.ended.drain(..) {
            let number = ended.token as usize;
            let slot = &mut self.slots[number];
            slot.use_count += 1;
            let slot = *slot;
            self.free.push(number as u32);
            let lane = &mut self.lanes[slot.lane];
            lane.in_flight -= 1;
            let flow = &mut self.flows[lane.flow];
            let kind = session.plan.streams[flow.stream].kind;
            if let Rhythm::Closed { next_ns, pause_ns } = &mut flow.rhythm {
                *next_ns = ended.at_ns.saturating_add(*pause_ns);
            }
            let service_ns = ended.at_ns.saturating_sub(slot.began_ns);
            let response_ns = ended.at_ns.saturating_sub(slot.due_ns).max(service_ns);
            let (device, bytes) = (lane.device, slot.length);
            let done = Done { kind, device, bytes, service_ns, response_ns };
            match &ended.result {
                Ok(()) => {
                    if kind.writes() {
                        let range = (slot.offset, slot.length);
                        session.acknowledge_write(device, slot.generation, range);
                    }
                    tally.done(done);
                    if let Some(bytes) = &mut ended.bytes {
                        look(session, &mut tally, done, (slot.offset, bytes));
                    }
                }
                Err(error) => {
                    tally.failed(kind, device);
                    if kind.writes() {
                        session.fail_write(slot.generation);
                    }
                    let name = session.targets[device].name();
                    session.trouble(failure(kind, name, (slot.offset, bytes), error));
                }
            }
        }
    }

    /// Notes how far the oldest transfer that is not done is behind, and ends the run if that is
    /// too far.
    fn watch_lag(&mut self, now_ns: u64) {
        let mut worst = (0, Kind::Read);
        for lane in &mut self.lanes {
            while let Some(&(_, number, use_count)) = lane.oldest.front()
                && self.slots[number as usize].use_count != use_count
            {
                lane.oldest.pop_front();
            }
            let oldest = lane.oldest.front().map(|&(due_ns, ..)| due_ns);
            let waiting = lane.backlog.front().map(|due| due.at_ns);
            let Some(due_ns) = oldest.into_iter().chain(waiting).min() else { continue };
            let kind = self.session.plan.streams[self.flows[lane.flow].stream].kind;
            let lag_ns = now_ns.saturating_sub(due_ns);
            if lag_ns > worst.0 {
                worst = (lag_ns, kind);
            }
        }
        let (lag_ns, kind) = worst;
        self.session.tally(self.number).lock().lagged(lag_ns);
        let limit = self.session.plan.timing.lag_ns_max.unwrap_or(u64::MAX);
        if lag_ns > limit && !self.session.has_ended() {
            self.session.trouble(Trouble::Lagged { kind, lag_ns });
            self.session.end(Ending::Lagged { kind, lag_ns });
        }
    }
}

/// Looks at what a read brought.
fn look(session: &Session, tally: &mut Tally, done: Done, (offset, bytes): (u64, &mut [u8])) {
    if done.kind.writes() || session.plan.writing.judging == Judging::Ignored {
        return;
    }
    let target = &session.targets[done.device];
    let mut read_again = |bytes: &mut [u8]| {
        let mut again = IoBuffer::aligned(bytes.len());
        let read = target.device().map(|device| device.read_at(offset, &mut again));
        bytes.copy_from_slice(&again);
        matches!(read, Some(Ok(())))
    };
    if let Some(wrong) = judge(session, (done.device, offset), bytes, &mut read_again) {
        tally.wrong(done.kind, done.device);
        session.trouble(wrong_unit(done.kind, target.name(), wrong));
    }
}

#[cfg(test)]
mod tests;
