//! Files and raw block devices, with direct I/O.
//!
//! Invariants:
//! 1. A file is made at its full size. It may be extended before it is used ([`Growth`]), and is
//!    never truncated or unlinked.
//! 2. One opener at a time, in this process or another (see `exclusive.rs`); the claim goes with
//!    the process, however it ends.
//! 3. Nothing is written before a check that the path holds no data of others, unless the caller
//!    forces it (see `foreign.rs`).
//!
//! If a file system refuses direct I/O, as memory file systems do, transfers go through the page
//! cache; [`FileDevice::describe`] says so.
#![expect(unsafe_code, reason = "system calls and transfers from memory that is only held")]

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::block_device;
use crate::blocking::{BlockingQueue, Medium};
use crate::buffer::{IoBuffer, WriteHold};
use crate::creation::MadeFiles;
use crate::device::{Counters, Device, Geometry, Queue, QueueOptions, WriteMode};
use crate::error::{Error, ErrorKind, Result};
use crate::exclusive::Claim;
use crate::inline::{INLINE_BYTES_MAX, InlineQueue};
use crate::pending::{InFlight, Pending, PendingIo};
use crate::place::{Ground, Place};
use crate::uring::{self, Threads, UringQueue};
use crate::{creation, foreign, residence, system};

/// How to open a file or block device.
#[derive(Debug, Clone)]
pub struct FileOptions {
    /// Bytes to use. A file that is not there is made this large; one that is there, and a block
    /// device, may be larger. `None`: all there is, and a missing file is an error.
    pub capacity_bytes: Option<u64>,
    /// Whether a file with less than that is extended.
    pub growth: Growth,
    /// What is done to a new file, or a new part of one, before its first use.
    pub preparation: Preparation,
    /// Whether foreign contents may be overwritten.
    pub force: Force,
    /// Whether what is missing is made: files, parts of them, the labels of a stripe. If not,
    /// opening writes nothing.
    pub makes: bool,
    /// How transfers are made.
    pub io: IoEngine,
    /// First bytes that mark contents as the caller's own.
    pub own_magics: Vec<Vec<u8>>,
    /// Where files that are made are noted, if they are: they stay claimed for as long.
    pub made: Option<MadeFiles>,
}

impl Default for FileOptions {
    fn default() -> FileOptions {
        FileOptions {
            capacity_bytes: None,
            growth: Growth::Never,
            preparation: Preparation::Written,
            force: Force::No,
            makes: true,
            io: IoEngine::Auto,
            own_magics: vec![b"ENTRESOL".to_vec()],
            made: None,
        }
    }
}

/// Whether a file that is smaller than the capacity asked for is extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// It is refused.
    Never,
    /// It is, before it is used, if it begins with one of the caller's own magics.
    ToCapacity,
}

/// What is done to a new file before its first use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparation {
    /// Its extents are allocated. Quick; the first write to each place then changes file system
    /// metadata, which costs some of the speed.
    Allocated,
    /// Zeros are written too, so that later writes are plain overwrites.
    Written,
}

/// Whether foreign contents may be overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// They are refused as `Foreign`.
    No,
    /// The caller said so, and that what is there may be lost.
    Yes,
}

/// How transfers are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoEngine {
    /// Inline where the medium is memory, else through io_uring.
    Auto,
    /// Many in flight through io_uring; blocking ones where the system forbids io_uring.
    Uring,
    /// Small ones at once, in the calling thread, the others as with `Uring`.
    Inline,
    /// One after the other.
    Blocking,
}

/// How far the making of a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes written so far.
    pub done_bytes: u64,
    /// Bytes to write in all.
    pub total_bytes: u64,
}

/// A file or a raw block device.
#[derive(Debug)]
pub struct FileDevice {
    file: Arc<OpenFile>,
    io: IoEngine,
}

/// What the device and its queues share.
#[derive(Debug)]
pub(crate) struct OpenFile {
    file: File,
    name: String,
    path: PathBuf,
    kind: Kind,
    geometry: Geometry,
    counters: Counters,
    in_flight: InFlight,
    caching: Caching,
    _claim: Arc<Claim>,
}

/// What stands at the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A regular file.
    File,
    /// A block device.
    BlockDevice,
}

/// Whether the page cache is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caching {
    Direct,
    Buffered,
}

impl FileDevice {
    /// Opens the file or block device at `path`; a missing file is made if a capacity is given.
    ///
    /// Errors: `NotFound`; `InUse` if it is open already; `Foreign` if it is mounted or holds what
    /// is not the caller's; `Full` if a new file finds no room; `InvalidInput` if the capacity is
    /// more than there is; else `Io`.
    pub fn open(path: impl AsRef<Path>, options: &FileOptions) -> Result<FileDevice> {
        FileDevice::open_with_progress(path, options, &mut |_| {})
    }

    /// Like [`FileDevice::open`]; `report` hears now and then how far the making of a file is.
    pub fn open_with_progress(
        path: impl AsRef<Path>,
        options: &FileOptions,
        report: &mut dyn FnMut(Progress),
    ) -> Result<FileDevice> {
        let path = path.as_ref();
        let mut kind = kind_of(path)?;
        let mut claim = None;
        if kind.is_none() {
            let Some(capacity) = options.capacity_bytes.filter(|_| options.makes) else {
                creation::check_place(path)?;
                let next = if options.makes { "; name a capacity to make a file" } else { "" };
                let detail = format!("{}: no such file or device{next}", path.display());
                return Err(Error::new(ErrorKind::NotFound, detail));
            };
            check_capacity(path, capacity, u64::MAX)?;
            let size = (capacity, options.preparation);
            let made = creation::create(path, size, options.force, report)?;
            let made = Arc::new(made);
            if let Some(files) = &options.made {
                files.note(path, &made);
            }
            claim = Some(made);
            kind = Some(Kind::File);
        }
        let kind = kind.expect("set just above if it was missing");
        let claim = match claim {
            Some(claim) => claim,
            None => Arc::new(Claim::take(path, kind, options.force)?),
        };
        if let (Kind::File, Growth::ToCapacity, Some(capacity)) =
            (kind, options.growth, options.capacity_bytes)
            && options.makes
        {
            grow(path, claim.file(), (capacity, options), report)?;
        }
        let file = OpenFile::open(path, kind, claim, options)?;
        let io = match options.io {
            _ if uring::uring_refusal().is_some() => IoEngine::Blocking,
            IoEngine::Auto if residence::is_memory(&file.file) => IoEngine::Inline,
            IoEngine::Auto => IoEngine::Uring,
            chosen => chosen,
        };
        Ok(FileDevice { file: Arc::new(file), io })
    }

    /// One line for people: path, size, kind, how transfers are made, sizes of sector and unit.
    pub fn describe(&self) -> String {
        let kind = match self.file.kind {
            Kind::File => "file",
            Kind::BlockDevice => "block device",
        };
        let caching = match self.file.caching {
            Caching::Direct => "direct",
            Caching::Buffered => "buffered (the file system refuses direct I/O)",
        };
        let io = match self.io {
            IoEngine::Auto | IoEngine::Uring => "io_uring",
            IoEngine::Inline => "inline and io_uring",
            IoEngine::Blocking => "blocking",
        };
        let geometry = self.file.geometry;
        format!(
            "{}: {kind} of {} bytes, {caching}, {io}, sector {}, unit {}",
            self.file.name,
            geometry.capacity_bytes,
            geometry.sector_bytes,
            geometry.sync_unit_bytes
        )
    }

    fn queue_for(&self, options: QueueOptions, threads: Threads) -> Result<Box<dyn Queue>> {
        let file = Arc::clone(&self.file);
        Ok(match self.io {
            IoEngine::Auto | IoEngine::Uring => Box::new(UringQueue::new(file, options, threads)?),
            IoEngine::Inline => Box::new(InlineQueue::new(file, options, threads)?),
            IoEngine::Blocking => Box::new(BlockingQueue::new(file, options)?),
        })
    }

    /// What its queues share.
    #[cfg(test)]
    pub(crate) fn open_file(&self) -> &Arc<OpenFile> {
        &self.file
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.file.path
    }
}

impl OpenFile {
    fn open(path: &Path, kind: Kind, claim: Arc<Claim>, options: &FileOptions) -> Result<OpenFile> {
        let name = path.display().to_string();
        let (file, caching) = open_direct(path)?;
        let (size, mut geometry) = match kind {
            Kind::BlockDevice => block_device::sizes(&name, &file)?,
            Kind::File => file_sizes(&name, &file)?,
        };
        let capacity = options.capacity_bytes.unwrap_or(size);
        check_capacity(path, capacity, size)?;
        if options.force == Force::No {
            foreign::check(path, &file, size, &options.own_magics)?;
        }
        let unit = u64::from(geometry.sync_unit_bytes);
        geometry.capacity_bytes = capacity - capacity % unit;
        Ok(OpenFile {
            file,
            name,
            path: path.to_owned(),
            kind,
            geometry,
            counters: Counters::default(),
            in_flight: InFlight::default(),
            caching,
            _claim: claim,
        })
    }

    /// Where a new queue counts what it has in flight.
    pub(crate) fn pending_of_queue(&self) -> Arc<Pending> {
        self.in_flight.of_queue()
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Fills `bytes` from `offset`; whoever calls counts the request.
    pub(crate) fn read_now(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let read = system::read_fully(self.descriptor(), offset, bytes);
        read.map_err(|source| self.transfer_error("read", offset, bytes.len(), source))
    }

    /// Writes what is held at `offset`; whoever calls counts the request.
    pub(crate) fn write_now(&self, offset: u64, bytes: &WriteHold, mode: WriteMode) -> Result<()> {
        let memory = bytes.raw();
        // SAFETY: the hold keeps the memory alive and readable.
        let written = unsafe { system::write_raw(self.descriptor(), offset, memory, mode) };
        written.map_err(|source| self.transfer_error("write", offset, memory.1, source))
    }

    /// The error of a transfer or sync.
    pub(crate) fn transfer_error(
        &self,
        doing: &str,
        offset: u64,
        length: usize,
        source: std::io::Error,
    ) -> Error {
        let name = &self.name;
        match source.raw_os_error() {
            _ if length == 0 => Error::io(format!("{name}: {doing} failed"), source),
            Some(libc::ENOSPC | libc::EDQUOT) => {
                let detail = format!(
                    "{name}: no room to {doing} {length} bytes at offset {offset}: {source}"
                );
                Error::new(ErrorKind::Full, detail)
            }
            _ => {
                let detail = format!("{name}: {doing} of {length} bytes at offset {offset} failed");
                Error::io(detail, source)
            }
        }
    }
}

impl Medium for OpenFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.in_flight.during(|| self.read_now(offset, bytes))
    }

    fn write(&self, offset: u64, bytes: &WriteHold, mode: WriteMode) -> Result<()> {
        self.in_flight.during(|| self.write_now(offset, bytes, mode))
    }

    fn sync(&self) -> Result<()> {
        let synced = self.in_flight.during(|| self.file.sync_data());
        synced.map_err(|source| self.transfer_error("sync", 0, 0, source))
    }
}

impl Device for FileDevice {
    fn geometry(&self) -> Geometry {
        self.file.geometry
    }

    fn name(&self) -> String {
        self.file.name.clone()
    }

    fn places(&self) -> Vec<Place> {
        let status = self.file.file.metadata();
        status.map(|status| Place::of(&self.file.path, &status)).into_iter().collect()
    }

    fn ground(&self) -> Ground {
        match self.file.file.metadata() {
            Ok(status) if self.file.kind == Kind::File => {
                Ground::of(&self.file.path, &status, self.file.geometry.capacity_bytes)
            }
            // What became of a block device is told by its transfers.
            _ => Ground::Firm,
        }
    }

    fn is_file(&self) -> bool {
        self.file.kind == Kind::File
    }

    fn answers_at_once(&self, length: usize) -> bool {
        self.io == IoEngine::Inline && length <= INLINE_BYTES_MAX
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.geometry.check_memory(&self.file.name, offset, buffer)?;
        self.file.counters.count_read(buffer.len());
        self.file.read(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.geometry.check_memory(&self.file.name, offset, bytes)?;
        self.file.counters.count_write(bytes.len(), WriteMode::Flushed);
        let write = || system::write_fully(self.file.descriptor(), offset, bytes);
        let written = self.file.in_flight.during(write);
        written.map_err(|source| self.file.transfer_error("write", offset, bytes.len(), source))
    }

    fn sync(&self) -> Result<()> {
        self.file.counters.count_sync();
        Medium::sync(&*self.file)
    }

    /// Block devices only: a file keeps its extents, so that it cannot run out of room later.
    fn discard(&self, offset: u64, length: u64) -> Result<()> {
        self.file.geometry.check(&self.file.name, offset, length as usize)?;
        if self.file.kind == Kind::BlockDevice {
            block_device::discard(&self.file.file, offset, length);
        }
        Ok(())
    }

    fn queue(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        self.queue_for(options, Threads::Several)
    }

    fn queue_of_thread(&self, options: QueueOptions) -> Result<Box<dyn Queue>> {
        self.queue_for(options, Threads::One)
    }

    fn oldest_pending(&self, now: Duration) -> Option<PendingIo> {
        let age = self.file.in_flight.oldest(now)?;
        Some(PendingIo { device: self.name(), age })
    }

    fn counters(&self) -> &Counters {
        &self.file.counters
    }
}

/// What stands at `path`; `None` if nothing does.
fn kind_of(path: &Path) -> Result<Option<Kind>> {
    let status = match std::fs::metadata(path) {
        Ok(status) => status,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(system::open_error(path, error)),
    };
    match status.file_type() {
        kind if kind.is_file() => Ok(Some(Kind::File)),
        kind if kind.is_block_device() => Ok(Some(Kind::BlockDevice)),
        _ => {
            let detail = format!("{}: neither a file nor a block device", path.display());
            Err(Error::new(ErrorKind::InvalidInput, detail))
        }
    }
}

fn check_capacity(path: &Path, capacity: u64, size: u64) -> Result<()> {
    let path = path.display();
    if capacity > size {
        let detail = format!(
            "{path}: a capacity of {capacity} bytes was asked for, but it has {size} bytes and is \
             not extended; ask for less, or for a new file"
        );
        return Err(Error::new(ErrorKind::InvalidInput, detail));
    }
    if capacity < 4096 || capacity > i64::MAX as u64 {
        let detail = format!("{path}: {capacity} bytes of capacity; expected at least 4096");
        return Err(Error::new(ErrorKind::InvalidInput, detail));
    }
    Ok(())
}

/// Extends the caller's own file to `capacity` bytes if it has less.
fn grow(
    path: &Path,
    file: &File,
    (capacity, options): (u64, &FileOptions),
    report: &mut dyn FnMut(Progress),
) -> Result<()> {
    let failed = |source| Error::io(format!("{}: cannot read its size", path.display()), source);
    let size = file.metadata().map_err(failed)?.len();
    if capacity <= size || !foreign::is_own(path, file, size, &options.own_magics)? {
        return Ok(());
    }
    check_capacity(path, capacity, u64::MAX)?;
    creation::extend(path, file, (size..capacity, options.preparation), report)
}

/// Opens for direct I/O where that is possible.
fn open_direct(path: &Path) -> Result<(File, Caching)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let mut refused = None;
    // Nobody looks when a store was last read, and noting it costs each read some time. Only the
    // owner may ask for that.
    let silent = libc::O_DIRECT | libc::O_NOATIME;
    for (flags, caching) in
        [(silent, Caching::Direct), (libc::O_DIRECT, Caching::Direct), (0, Caching::Buffered)]
    {
        match options.custom_flags(flags | libc::O_CLOEXEC).open(path) {
            Ok(file) => return Ok((file, caching)),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EPERM)) => {
                refused = Some(error);
            }
            Err(error) => return Err(system::open_error(path, error)),
        }
    }
    let refused = refused.expect("the loop ends with a refusal");
    Err(system::open_error(path, refused))
}

/// Size and geometry of a file. The sector is the smallest length that its file system transfers
/// directly, found by trying, since not all of them tell.
fn file_sizes(name: &str, file: &File) -> Result<(u64, Geometry)> {
    let failed = |source| Error::io(format!("{name}: cannot read its size"), source);
    let size = file.metadata().map_err(failed)?.len();
    let mut sector = 512;
    let mut memory = IoBuffer::aligned(4096);
    while sector < 4096 && size >= 8192 {
        // An offset of one sector is what a coarser file system objects to.
        let tried = system::read_fully(file.as_raw_fd(), sector as u64, &mut memory[..sector]);
        match tried {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => sector *= 2,
            _ => break,
        }
    }
    let geometry =
        Geometry { capacity_bytes: size, sector_bytes: sector as u32, sync_unit_bytes: 4096 };
    Ok((size, geometry))
}
