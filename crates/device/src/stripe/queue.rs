//! The queue of a stripe: a queue for each member, requests cut into parts and put together again.
//!
//! Invariants:
//! 1. A part is a request to one member; its token there is its slot here. A request ends when its
//!    last part does, with the first error of any of them.
//! 2. A part that finds its member's queue full waits in the backlog, and goes ahead of nothing.
#![expect(unsafe_code, reason = "poll and epoll, to wait for several members at once")]

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use super::{Layout, Part};
use crate::buffer::{IoBuffer, WriteBuffer};
use crate::device::{
    Completion, Counters, Doorbell, Geometry, Queue, QueueOptions, WriteMode, WriteRequest, busy,
};
use crate::error::{Error, ErrorKind, Result};

/// What the queue needs to know of its device.
pub(super) struct Stripe {
    pub(super) name: Arc<str>,
    pub(super) layout: Layout,
    pub(super) geometry: Geometry,
    pub(super) counters: Arc<Counters>,
}

pub(super) struct StripeQueue {
    stripe: Stripe,
    members: Vec<Box<dyn Queue>>,
    depth: usize,
    requests: Slots<Request>,
    parts: Slots<PartRequest>,
    backlog: VecDeque<usize>,
    arrived: Vec<Completion>,
    any_member: Option<OwnedFd>,
    next_to_wait_for: usize,
    bell: Option<Arc<Bells>>,
}

/// The doorbells of all members.
struct Bells(Vec<Arc<dyn Doorbell>>);

/// Values in numbered places that are used again.
struct Slots<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
}

struct Request {
    token: u64,
    parts_left: usize,
    result: Result<()>,
    /// Where the parts of a read are put together; a read of one part has its member's buffer.
    buffer: Option<IoBuffer>,
}

struct PartRequest {
    request: usize,
    member: usize,
    action: Action,
}

enum Action {
    Read { offset: u64, at: usize, length: usize },
    Write { offset: u64, buffer: WriteBuffer, range: std::ops::Range<usize>, mode: WriteMode },
    Sync,
}

impl StripeQueue {
    pub(super) fn new(
        stripe: Stripe,
        members: Vec<Box<dyn Queue>>,
        options: QueueOptions,
    ) -> Result<StripeQueue> {
        let descriptors: Option<Vec<RawFd>> =
            members.iter().map(|member| member.poll_fd()).collect();
        let any_member = match descriptors {
            Some(descriptors) => Some(poll_any(&descriptors).map_err(|source| {
                Error::io(format!("{}: cannot wait for its members", stripe.name), source)
            })?),
            None => None,
        };
        let bells: Option<Vec<_>> = members.iter().map(|member| member.doorbell()).collect();
        Ok(StripeQueue {
            bell: bells.map(Bells).map(Arc::new),
            stripe,
            members,
            depth: options.depth,
            requests: Slots::new(),
            parts: Slots::new(),
            backlog: VecDeque::new(),
            arrived: Vec::new(),
            any_member,
            next_to_wait_for: 0,
        })
    }

    fn check_room(&self) -> Result<()> {
        if self.in_flight() < self.depth {
            return Ok(());
        }
        Err(busy(&self.stripe.name, self.depth))
    }

    fn begin(&mut self, token: u64, parts_left: usize, buffer: Option<IoBuffer>) -> usize {
        self.requests.insert(Request { token, parts_left, result: Ok(()), buffer })
    }

    fn gather(&mut self, part: PartRequest) {
        let slot = self.parts.insert(part);
        self.backlog.push_back(slot);
        if self.bell.is_some() {
            // The doorbells ring for what the members have.
            self.hand_out();
        }
    }

    /// Hands parts to their members' queues until one of them is full.
    fn hand_out(&mut self) {
        while let Some(&slot) = self.backlog.front() {
            let part = self.parts.get(slot);
            let member = &mut self.members[part.member];
            let token = slot as u64;
            let handed = match &part.action {
                Action::Read { offset, length, .. } => member.read(token, *offset, *length),
                Action::Write { offset, buffer, range, mode } => {
                    let (offset, range, mode) = (*offset, range.clone(), *mode);
                    member.write(WriteRequest { token, offset, buffer, range, mode })
                }
                Action::Sync => member.sync(token),
            };
            match handed {
                Err(error) if error.kind() == ErrorKind::Busy => return,
                Err(error) => {
                    let failed = Completion { token, result: Err(error), buffer: None };
                    self.arrived.push(failed);
                }
                Ok(()) => {}
            }
            self.backlog.pop_front();
        }
    }

    /// Takes what the members have completed, and appends the requests that this ends.
    fn collect(&mut self, completions: &mut Vec<Completion>) -> Result<()> {
        for member in &mut self.members {
            member.reap(0, &mut self.arrived)?;
        }
        self.put_together(completions);
        Ok(())
    }

    fn put_together(&mut self, completions: &mut Vec<Completion>) {
        while let Some(Completion { token, result, buffer }) = self.arrived.pop() {
            let part = self.parts.remove(token as usize);
            let request = self.requests.get_mut(part.request);
            request.parts_left -= 1;
            match (&part.action, &mut request.buffer, buffer) {
                (Action::Read { at, length, .. }, Some(whole), Some(piece)) => {
                    whole[*at..at + length].copy_from_slice(&piece);
                }
                (Action::Read { .. }, empty @ None, piece) => *empty = piece,
                _ => {}
            }
            if request.result.is_ok() {
                request.result = result;
            }
            if request.parts_left == 0 {
                let Request { token, result, buffer, .. } = self.requests.remove(part.request);
                completions.push(Completion { token, result, buffer });
            }
        }
    }

    /// Waits until a member has completed something or has room. `false` if that is not to come.
    fn wait(&mut self) -> Result<bool> {
        let count = self.members.len();
        let busy = (0..count).map(|step| (self.next_to_wait_for + step) % count);
        let mut busy = busy.filter(|&member| self.members[member].in_flight() > 0);
        let Some(first) = busy.next() else { return Ok(!self.backlog.is_empty()) };
        if let (Some(_), Some(any)) = (busy.next(), &self.any_member) {
            wait_readable(any.as_raw_fd()).map_err(|source| {
                Error::io(format!("{}: cannot wait for its members", self.stripe.name), source)
            })?;
            return Ok(true);
        }
        drop(busy);
        self.next_to_wait_for = first + 1;
        self.members[first].reap(1, &mut self.arrived)?;
        Ok(!self.arrived.is_empty())
    }
}

impl Queue for StripeQueue {
    fn register(&mut self, buffers: &[WriteBuffer]) {
        self.members.iter_mut().for_each(|member| member.register(buffers));
    }

    fn read(&mut self, token: u64, offset: u64, length: usize) -> Result<()> {
        self.check_room()?;
        self.stripe.geometry.check(&self.stripe.name, offset, length)?;
        let layout = self.stripe.layout;
        let count = layout.parts(offset, length).count();
        let buffer = (count > 1).then(|| IoBuffer::aligned(length));
        let request = self.begin(token, count, buffer);
        for Part { member, offset, at, length } in layout.parts(offset, length) {
            self.stripe.counters.count_read(length);
            let action = Action::Read { offset, at, length };
            self.gather(PartRequest { request, member, action });
        }
        Ok(())
    }

    fn write(&mut self, request: WriteRequest<'_>) -> Result<()> {
        self.check_room()?;
        request.check(&self.stripe.geometry, &self.stripe.name)?;
        let WriteRequest { token, offset, buffer, range, mode } = request;
        let layout = self.stripe.layout;
        let request = self.begin(token, layout.parts(offset, range.len()).count(), None);
        for Part { member, offset, at, length } in layout.parts(offset, range.len()) {
            self.stripe.counters.count_write(length, mode);
            let range = range.start + at..range.start + at + length;
            let action = Action::Write { offset, buffer: buffer.alias(), range, mode };
            self.gather(PartRequest { request, member, action });
        }
        Ok(())
    }

    fn sync(&mut self, token: u64) -> Result<()> {
        self.check_room()?;
        self.stripe.counters.count_sync();
        let request = self.begin(token, self.members.len(), None);
        for member in 0..self.members.len() {
            self.gather(PartRequest { request, member, action: Action::Sync });
        }
        Ok(())
    }

    fn submit(&mut self) -> Result<()> {
        self.hand_out();
        self.members.iter_mut().try_for_each(|member| member.submit())
    }

    fn reap(&mut self, wait_for: usize, completions: &mut Vec<Completion>) -> Result<()> {
        let wait_for = wait_for.min(self.in_flight());
        let before = completions.len();
        loop {
            self.hand_out();
            self.collect(completions)?;
            let waited = completions.len() - before >= wait_for;
            if waited && self.backlog.is_empty() {
                return Ok(());
            }
            // What the backlog waits for are places in a member's queue, which only completions
            // make; without a need to wait for them it stays until the next call.
            if waited || !self.wait()? {
                return self.submit();
            }
        }
    }

    fn take_ready(&mut self, completions: &mut Vec<Completion>) -> Result<bool> {
        if self.bell.is_none() {
            return self.reap(0, completions).map(|()| false);
        }
        // Completions make room for the backlog.
        let mut gathered = !self.backlog.is_empty();
        for member in &mut self.members {
            gathered |= member.take_ready(&mut self.arrived)?;
        }
        self.hand_out();
        self.put_together(completions);
        Ok(gathered)
    }

    fn doorbell(&self) -> Option<Arc<dyn Doorbell>> {
        let bell = Arc::clone(self.bell.as_ref()?);
        Some(bell)
    }

    fn in_flight(&self) -> usize {
        self.requests.count()
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn poll_fd(&self) -> Option<RawFd> {
        self.any_member.as_ref().map(AsRawFd::as_raw_fd)
    }
}

impl Doorbell for Bells {
    fn ring(&self) -> Result<()> {
        self.0.iter().try_for_each(|bell| bell.ring())
    }
}

impl Drop for StripeQueue {
    fn drop(&mut self) {
        // Parts in the backlog have been submitted as far as the caller knows.
        let mut completions = Vec::new();
        while self.in_flight() > 0 {
            let left = self.in_flight();
            let reaped = self.reap(left, &mut completions);
            if reaped.is_err() || self.in_flight() == left {
                return;
            }
        }
    }
}

impl<T> Slots<T> {
    fn new() -> Slots<T> {
        Slots { places: Vec::new(), free: Vec::new() }
    }

    fn insert(&mut self, value: T) -> usize {
        match self.free.pop() {
            Some(slot) => {
                self.places[slot] = Some(value);
                slot
            }
            None => {
                self.places.push(Some(value));
                self.places.len() - 1
            }
        }
    }

    fn get(&self, slot: usize) -> &T {
        self.places[slot].as_ref().expect("a slot is used until it is removed")
    }

    fn get_mut(&mut self, slot: usize) -> &mut T {
        self.places[slot].as_mut().expect("a slot is used until it is removed")
    }

    fn remove(&mut self, slot: usize) -> T {
        self.free.push(slot);
        self.places[slot].take().expect("a slot is used until it is removed")
    }

    fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

/// A descriptor that is readable when any of `descriptors` is.
fn poll_any(descriptors: &[RawFd]) -> io::Result<OwnedFd> {
    // SAFETY: plain system call.
    let any = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    if any < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, and owned by nobody else.
    let any = unsafe { OwnedFd::from_raw_fd(any) };
    for &descriptor in descriptors {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        let operation = libc::EPOLL_CTL_ADD;
        // SAFETY: `event` is valid for the call, both descriptors are open.
        let failed =
            unsafe { libc::epoll_ctl(any.as_raw_fd(), operation, descriptor, &raw mut event) };
        if failed < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(any)
}

fn wait_readable(descriptor: RawFd) -> io::Result<()> {
    loop {
        let mut poll = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, valid for the call.
        if unsafe { libc::poll(&raw mut poll, 1, -1) } >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
