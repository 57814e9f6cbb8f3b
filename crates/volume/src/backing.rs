//! The device under a volume: a file, a block device, or an NBD server.

pub mod file;
pub mod memory;
pub mod nbd;
mod outbox;

use std::os::fd::RawFd;

use bytes::Bytes;
use entresol_device::Force;
use entresol_wire::nbd::Uri;

use crate::error::{Error, ErrorKind, Result};
use crate::request::{Durable, Hole};

/// A backing device. One thread owns it and keeps many requests in flight, which complete in any
/// order; the caller keeps overlapping ones apart.
///
/// Invariants every implementation keeps:
/// 1. Every begun request completes exactly once, with its result or an error; none hangs for
///    longer than the implementation's documented time-out.
/// 2. A completed flush makes every write *completed* before it was begun survive power loss.
/// 3. A read sees every write completed before it was begun.
pub trait Backing: Send {
    /// What it is; constant while it is open.
    fn description(&self) -> &Description;

    /// Begins `request`. It may be gathered until [`Backing::submit`].
    fn begin(&mut self, token: u64, request: BackingRequest);

    /// Hands all gathered requests over.
    fn submit(&mut self);

    /// Appends what has completed. Does not wait.
    fn reap(&mut self, completions: &mut Vec<BackingCompletion>);

    /// Submits, waits until something has completed or nothing is in flight; then as
    /// [`Backing::reap`].
    fn wait(&mut self, completions: &mut Vec<BackingCompletion>);

    /// Requests begun and not yet reaped.
    fn in_flight(&self) -> usize;

    /// A descriptor that polls readable when reaping may have something to do, and surely when
    /// completions wait; the same while it is open.
    fn poll_fd(&self) -> Option<RawFd>;

    /// [`Description::version`] as it is now, all writes of our own included.
    fn version(&mut self) -> String {
        self.description().version.clone()
    }

    /// Takes the size that it has now, if that is larger; then [`Backing::description`] has it.
    ///
    /// Errors: `Unsupported` where its size is known when it is opened only.
    fn grow(&mut self) -> Result<()> {
        let detail = format!(
            "{}: its size is asked for when it is opened only; stop the server, then resize",
            self.description().identity
        );
        Err(Error::new(ErrorKind::Unsupported, detail))
    }

    /// Whether there is room for a range that is to be zeros and no hole, as far as that is known
    /// at once. Errors: `NoSpace` if there surely is not.
    fn check_room(&self, range: (u64, u64)) -> Result<()> {
        let _ = range;
        Ok(())
    }

    /// What stands in a range, as far as it is known without reading: blocking, for reports of
    /// allocation. Data, where nothing is known. At most `most` extents (at least one), which may
    /// end before the range: a file may have millions, and whoever asks may want the first.
    fn allocation(&mut self, (offset, length): (u64, u64), most: usize) -> Result<Vec<Extent>> {
        let _ = (offset, most);
        Ok(vec![Extent { length, kind: ExtentKind::Data }])
    }

    /// Begins to ask what stands in a range, where [`Backing::allocation`] would wait for somebody
    /// else; whether it did. The completion of `token` then has extents from the range's begin on,
    /// in bytes that [`Extent::decode`] reads; they may end before the range.
    fn begin_allocation(&mut self, token: u64, range: (u64, u64)) -> bool {
        let _ = (token, range);
        false
    }
}

/// Opens the backing that `place` names: an NBD URI, or the path of a file or block device. `force`
/// also takes a block device that is mounted.
///
/// Errors: as [`nbd::NbdBacking::open`] and [`file::FileBacking::open`].
pub fn open(place: &str, force: Force) -> Result<Box<dyn Backing>> {
    if Uri::is_likely(place) {
        return Ok(Box::new(nbd::NbdBacking::open(place, &nbd::NbdOptions::default())?));
    }
    Ok(Box::new(file::FileBacking::open(place, force)?))
}

/// What a backing is and can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its size in bytes: any number.
    pub bytes: u64,
    /// Binds a cache to it: the same for the same contents' place, whatever process opens it. For a
    /// file its device and inode numbers, for a block device its serial or partition identity where
    /// there is one, for NBD the URI without credentials; and always the size.
    pub identity: String,
    /// Changes when somebody else wrote to it between two uses, where that can be known (a file's
    /// time of modification and, behind a space, that of any change); empty where not.
    pub version: String,
    /// Offsets and lengths of requests must be multiples of this (the end of the backing counts as
    /// one): 1 for files.
    pub alignment: u32,
    /// Most bytes of one read or write.
    pub request_bytes_max: u32,
    /// Whether it may only be read.
    pub read_only: bool,
    /// Whether [`BackingRequest::Trim`] does something.
    pub can_trim: bool,
    /// Whether [`BackingRequest::Zero`] costs less than writing zeros.
    pub zeroes_fast: bool,
    /// Whether it is a spinning disk, as far as is known: near requests are worth sorting.
    pub rotational: bool,
}

/// One request to a backing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackingRequest {
    /// Read a range.
    Read {
        /// Where it begins.
        offset: u64,
        /// How long it is, more than 0.
        length: u32,
    },
    /// Write a range.
    Write {
        /// Where it begins.
        offset: u64,
        /// What is written.
        bytes: Bytes,
        /// What its end means.
        durable: Durable,
    },
    /// Make what completed before survive power loss.
    Flush,
    /// The range is no longer needed.
    Trim {
        /// Where it begins.
        offset: u64,
        /// How long it is.
        length: u64,
    },
    /// The range reads as zeros; written, where the backing has nothing better.
    Zero {
        /// Where it begins.
        offset: u64,
        /// How long it is.
        length: u64,
        /// Whether it may become a hole.
        hole: Hole,
    },
}

impl BackingRequest {
    /// Where it begins and how long it is; nothing for a flush.
    pub fn range(&self) -> Option<(u64, u64)> {
        match *self {
            BackingRequest::Flush => None,
            BackingRequest::Read { offset, length } => Some((offset, length.into())),
            BackingRequest::Write { offset, ref bytes, .. } => Some((offset, bytes.len() as u64)),
            BackingRequest::Trim { offset, length }
            | BackingRequest::Zero { offset, length, .. } => Some((offset, length)),
        }
    }

    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            BackingRequest::Read { .. } => "read",
            BackingRequest::Write { .. } => "write",
            BackingRequest::Flush => "flush",
            BackingRequest::Trim { .. } => "trim",
            BackingRequest::Zero { .. } => "zeroing",
        }
    }
}

impl Description {
    /// Whether a backing like this can be asked for `request`. Errors: `ReadOnly`; `NoSpace` for
    /// writes and `InvalidInput` for others past the end; `InvalidInput` if it is empty, too long
    /// for one request or not aligned.
    pub fn check(&self, request: &BackingRequest) -> Result<()> {
        let name = request.name();
        let changes = !matches!(request, BackingRequest::Read { .. } | BackingRequest::Flush);
        if changes && self.read_only {
            let detail = format!("{}: {name} refused: it may only be read", self.identity);
            return Err(Error::new(ErrorKind::ReadOnly, detail));
        }
        let Some((offset, length)) = request.range() else { return Ok(()) };
        let carries = matches!(request, BackingRequest::Read { .. } | BackingRequest::Write { .. });
        let unit = u64::from(self.alignment.max(1));
        let end = offset.checked_add(length);
        let (kind, expected) = if end.is_none_or(|end| end > self.bytes) {
            let writes =
                matches!(request, BackingRequest::Write { .. } | BackingRequest::Zero { .. });
            let kind = if writes { ErrorKind::NoSpace } else { ErrorKind::InvalidInput };
            (kind, format!("a range within its {} bytes", self.bytes))
        } else if length == 0 {
            (ErrorKind::InvalidInput, "at least one byte".to_owned())
        } else if carries && length > u64::from(self.request_bytes_max) {
            (ErrorKind::InvalidInput, format!("at most {} bytes", self.request_bytes_max))
        } else if !offset.is_multiple_of(unit)
            || !(length.is_multiple_of(unit) || end == Some(self.bytes))
        {
            (ErrorKind::InvalidInput, format!("multiples of {unit}"))
        } else {
            return Ok(());
        };
        let detail = format!(
            "{}: {name} of {length} bytes at offset {offset}: expected {expected}",
            self.identity
        );
        Err(Error::new(kind, detail))
    }
}

/// How a request to a backing ended.
#[derive(Debug)]
pub struct BackingCompletion {
    /// The token it was begun with.
    pub token: u64,
    /// For reads exactly the bytes asked for; else empty.
    pub result: Result<Bytes>,
}

/// A run of bytes that stand alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Its length in bytes.
    pub length: u64,
    /// How it stands.
    pub kind: ExtentKind,
}

/// Bytes of an extent that is handed on.
const EXTENT_BYTES: usize = 9;

impl Extent {
    /// Extents as the bytes of a completion.
    pub fn encode(extents: &[Extent]) -> Bytes {
        let mut bytes = Vec::with_capacity(extents.len() * EXTENT_BYTES);
        for Extent { length, kind } in extents {
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.push(*kind as u8);
        }
        Bytes::from(bytes)
    }

    /// What [`Extent::encode`] made bytes of.
    pub fn decode(bytes: &[u8]) -> Vec<Extent> {
        let (each, _) = bytes.as_chunks::<EXTENT_BYTES>();
        let read = |one: &[u8; EXTENT_BYTES]| {
            let [length @ .., kind] = one;
            let kind = match kind {
                0 => ExtentKind::Data,
                1 => ExtentKind::Zero,
                _ => ExtentKind::Hole,
            };
            Extent { length: u64::from_le_bytes(*length), kind }
        };
        each.iter().map(read).collect()
    }
}

/// How bytes of a backing stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtentKind {
    /// Allocated.
    Data,
    /// Allocated, and reads as zeros.
    Zero,
    /// Not allocated; reads as zeros.
    Hole,
}
