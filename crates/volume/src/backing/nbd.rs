//! A backing that is an export of an NBD server.
//!
//! A thread keeps the connection, many requests under way at a time. When the connection is lost it
//! connects again and sends what was not answered once more. A server that died may have forgotten
//! what it had answered and no flush had covered: those changes are kept (at most 64 MiB of them;
//! flushes of our own see to that) and performed again, in order, before anything else is asked. A
//! flush that fails is reported, and what it should have covered is performed again too. So a
//! flush that succeeds is always true, whatever happened before it.
//!
//! Limits: a request ends with an error after [`NbdOptions::give_up_after`] and the time of one
//! attempt to connect. A server that neither answers nor dies within
//! [`NbdOptions::request_timeout`] counts as dead; that it performs nothing of an old connection
//! after it answered on a new one is assumed, as by all clients that reconnect. A server that does
//! not offer flushes is taken at its word that it needs none. Dropping the backing waits for what
//! the server has, at most [`NbdOptions::connect_timeout`]; what it does not have yet is not sent.

mod connect;
mod exchange;
mod ledger;
mod link;
mod stream;
mod task;

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use entresol_wire::nbd::{ALLOCATION_CONTEXT, Agreement, ExportFlags, PAYLOAD_BYTES_MAX};
use parking_lot::Mutex;

use crate::backing::outbox::Outbox;
use crate::backing::{Backing, BackingCompletion, BackingRequest, Description, Extent, ExtentKind};
use crate::error::{Error, ErrorKind, Result};
use connect::Target;
use link::{Inbox, Link, Shared};

/// An export of an NBD server.
pub struct NbdBacking {
    description: Description,
    shared: Arc<Shared>,
    gathered: Vec<Job>,
    in_flight: usize,
    tells_allocation: bool,
    thread: Option<JoinHandle<()>>,
}

/// How long an NBD backing waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NbdOptions {
    /// For a connection to stand.
    pub connect_timeout: Duration,
    /// For an answer, until the connection counts as lost.
    pub request_timeout: Duration,
    /// For a request, over all connections, until it fails.
    pub give_up_after: Duration,
}

impl Default for NbdOptions {
    fn default() -> NbdOptions {
        NbdOptions {
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(30),
            give_up_after: Duration::from_secs(60),
        }
    }
}

/// What the thread is asked for.
enum Job {
    Request { token: u64, request: BackingRequest, begun: Instant },
    Status { offset: u64, length: u64, back: Sender<Result<Vec<Extent>>>, begun: Instant },
}

/// Extents that are told of at most; behind them all counts as data.
const EXTENTS_MAX: usize = 1 << 16;

impl NbdBacking {
    /// Connects to the export that `uri` names: `nbd://HOST:PORT/NAME`,
    /// `nbd+unix:///NAME?socket=PATH`, or `nbds` for TLS.
    ///
    /// Errors: `InvalidInput` if it is no URI; `Unavailable` if there is no server, or none that
    /// can be spoken with; `Name` if it has no such export; `Unsupported` for kinds of TLS that
    /// there are not.
    pub fn open(uri: &str, options: &NbdOptions) -> Result<NbdBacking> {
        let target = Target::new(uri, options.connect_timeout)?;
        let connected = target.connect()?;
        let description = describe(&target, &connected.agreement)?;
        let contexts = &connected.agreement.contexts;
        let tells_allocation = contexts.iter().any(|(_, name)| name == ALLOCATION_CONTEXT);
        let failed = |source: std::io::Error| {
            let detail = format!("{}: cannot set up its thread: {source}", description.identity);
            Error::new(ErrorKind::Unavailable, detail)
        };
        let poll = mio::Poll::new().map_err(failed)?;
        let waker = mio::Waker::new(poll.registry(), mio::Token(1)).map_err(failed)?;
        let outbox = Outbox::new().map_err(failed)?;
        let shared = Arc::new(Shared { inbox: Mutex::new(Inbox::default()), waker, outbox });
        let made = Link::new((target, options.clone()), Arc::clone(&shared), poll, connected);
        let link = made.map_err(failed)?;
        let thread = std::thread::Builder::new().name("nbd".to_owned()).spawn(move || link.run());
        let thread = Some(thread.map_err(failed)?);
        let gathered = Vec::new();
        Ok(NbdBacking { description, shared, gathered, in_flight: 0, tells_allocation, thread })
    }

    fn ask(&self, jobs: &mut Vec<Job>) {
        let mut inbox = self.shared.inbox.lock();
        let was_empty = inbox.jobs.is_empty();
        inbox.jobs.append(jobs);
        drop(inbox);
        if was_empty {
            self.shared.waker.wake().expect("an event descriptor takes another event");
        }
    }
}

impl Backing for NbdBacking {
    fn description(&self) -> &Description {
        &self.description
    }

    fn begin(&mut self, token: u64, request: BackingRequest) {
        self.in_flight += 1;
        match self.description.check(&request) {
            Ok(()) => self.gathered.push(Job::Request { token, request, begun: Instant::now() }),
            Err(error) => self.shared.outbox.put(token, Err(error)),
        }
    }

    fn submit(&mut self) {
        if !self.gathered.is_empty() {
            let mut jobs = std::mem::take(&mut self.gathered);
            self.ask(&mut jobs);
            self.gathered = jobs;
        }
    }

    fn reap(&mut self, completions: &mut Vec<BackingCompletion>) {
        self.in_flight -= self.shared.outbox.take(completions);
    }

    fn wait(&mut self, completions: &mut Vec<BackingCompletion>) {
        self.submit();
        if self.in_flight > 0 {
            self.in_flight -= self.shared.outbox.wait(completions);
        }
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.shared.outbox.poll_fd())
    }

    fn allocation(&mut self, offset: u64, length: u64) -> Result<Vec<Extent>> {
        let end = offset.saturating_add(length).min(self.description.bytes);
        let mut extents: Vec<Extent> = Vec::new();
        let mut at = offset;
        while at < end {
            let mut found = Vec::new();
            if self.tells_allocation && extents.len() < EXTENTS_MAX {
                let (back, answer) = std::sync::mpsc::channel();
                let begun = Instant::now();
                self.ask(&mut vec![Job::Status { offset: at, length: end - at, back, begun }]);
                found = answer.recv().map_err(|_| {
                    let detail = format!("{}: is being closed", self.description.identity);
                    Error::new(ErrorKind::Closing, detail)
                })??;
            }
            if found.is_empty() {
                found.push(Extent { length: end - at, kind: ExtentKind::Data });
            }
            for Extent { length, kind } in found {
                let length = length.min(end - at);
                at += length;
                match extents.last_mut() {
                    Some(last) if last.kind == kind => last.length += length,
                    _ if length > 0 => extents.push(Extent { length, kind }),
                    _ => {}
                }
            }
        }
        Ok(extents)
    }
}

impl Drop for NbdBacking {
    fn drop(&mut self) {
        self.shared.inbox.lock().is_over = true;
        self.shared.waker.wake().expect("an event descriptor takes another event");
        if let Some(thread) = self.thread.take() {
            // It can only have panicked, which was told where it did.
            let _panicked = thread.join();
        }
    }
}

fn describe(target: &Target, agreement: &Agreement) -> Result<Description> {
    let Agreement { flags, sizes, bytes, .. } = agreement;
    let unit = sizes.minimum.max(1);
    // What lies behind the last whole block cannot be asked for.
    let bytes = bytes / u64::from(unit) * u64::from(unit);
    if bytes == 0 {
        let detail = format!("{}: is empty; expected an export with a size", target.name());
        return Err(Error::new(ErrorKind::InvalidInput, detail));
    }
    Ok(Description {
        bytes,
        identity: format!("{} of {bytes} bytes", target.name()),
        version: String::new(),
        alignment: unit,
        request_bytes_max: sizes.payload_max.min(PAYLOAD_BYTES_MAX) / unit * unit,
        read_only: flags.contains(ExportFlags::READ_ONLY),
        can_trim: flags.contains(ExportFlags::TRIM),
        zeroes_fast: flags.contains(ExportFlags::WRITE_ZEROES),
        rotational: flags.contains(ExportFlags::ROTATIONAL),
    })
}
