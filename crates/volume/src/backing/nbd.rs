//! A backing that is an export of an NBD server.
//!
//! Many requests are under way at a time, sent and answered on the owner's thread; another thread
//! does all waiting. When the connection is lost, the backing connects again and repeats unanswered
//! requests. A server that died may have forgotten changes that it had answered and no flush had
//! covered. The backing keeps these changes (at most 64 MiB; flushes of its own see to that) and
//! performs them again, in order, before all other requests. A failed flush is reported, and the
//! changes that it should have covered are performed again, too. So a flush that succeeds is always
//! true, whatever happened before it.
//!
//! Limits: a request ends with an error after [`NbdOptions::give_up_after`] and the time of one
//! attempt to connect. A server that neither answers nor dies within
//! [`NbdOptions::request_timeout`] counts as dead; the backing assumes, as all clients that
//! reconnect do, that it performs no request of an old connection after its answer on a new one. A
//! server that does not offer flushes is trusted to need none. Dropping the backing waits for
//! requests that the server has, at most [`NbdOptions::connect_timeout`]; requests that are still
//! to be sent are dropped.

mod connect;
mod exchange;
mod keeper;
mod ledger;
mod link;
mod stream;
mod task;

use std::os::fd::RawFd;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use entresol_wire::nbd::{ALLOCATION_CONTEXT, Agreement, ExportFlags, PAYLOAD_BYTES_MAX};

use crate::backing::{Backing, BackingCompletion, BackingRequest, Description, Extent, ExtentKind};
use crate::error::{Error, ErrorKind, Result};
use connect::Target;
use exchange::Return;
use link::Link;

/// An export of an NBD server.
pub struct NbdBacking {
    description: Description,
    link: Link,
    in_flight: usize,
    tells_allocation: bool,
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

/// What the link is asked for.
enum Job {
    Request { token: u64, request: BackingRequest, begun: Instant },
    Status { offset: u64, length: u64, back: Return, begun: Instant },
}

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
        let link = Link::new((target, options.clone()), connected).map_err(failed)?;
        Ok(NbdBacking { description, link, in_flight: 0, tells_allocation })
    }
}

impl Backing for NbdBacking {
    fn description(&self) -> &Description {
        &self.description
    }

    fn begin(&mut self, token: u64, request: BackingRequest) {
        self.in_flight += 1;
        match self.description.check(&request) {
            Ok(()) => {
                let begun = Instant::now();
                self.link.take(Job::Request { token, request, begun });
            }
            Err(error) => self.link.complete(token, Err(error)),
        }
    }

    fn submit(&mut self) {
        self.link.submit();
        self.link.signal();
    }

    fn reap(&mut self, completions: &mut Vec<BackingCompletion>) {
        self.link.turn();
        self.in_flight -= self.link.completions().len();
        completions.append(self.link.completions());
    }

    fn wait(&mut self, completions: &mut Vec<BackingCompletion>) {
        self.link.submit();
        while self.in_flight > 0 && self.link.completions().is_empty() {
            self.link.wait();
        }
        self.reap(completions);
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.link.poll_fd())
    }

    fn allocation(&mut self, (offset, length): (u64, u64), most: usize) -> Result<Vec<Extent>> {
        let end = offset.saturating_add(length).min(self.description.bytes);
        let mut extents: Vec<Extent> = Vec::new();
        let mut at = offset;
        // One more says that the last one is whole: the next piece told of may go on with it.
        while at < end && extents.len() <= most {
            let mut found = Vec::new();
            if self.tells_allocation {
                let (back, answer) = std::sync::mpsc::channel();
                let begun = Instant::now();
                let back = Return::Extents(back);
                self.link.take(Job::Status { offset: at, length: end - at, back, begun });
                self.link.submit();
                found = loop {
                    match answer.try_recv() {
                        Ok(answer) => break answer?,
                        Err(TryRecvError::Empty) => self.link.wait(),
                        Err(TryRecvError::Disconnected) => {
                            let name = &self.description.identity;
                            let detail = format!("{name}: its extents were not told");
                            return Err(Error::new(ErrorKind::Io, detail));
                        }
                    }
                };
                self.link.signal();
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
        extents.truncate(most);
        Ok(extents)
    }

    fn begin_allocation(&mut self, token: u64, (offset, length): (u64, u64)) -> bool {
        if self.tells_allocation {
            self.in_flight += 1;
            let (back, begun) = (Return::Told(token), Instant::now());
            self.link.take(Job::Status { offset, length, back, begun });
        }
        self.tells_allocation
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
