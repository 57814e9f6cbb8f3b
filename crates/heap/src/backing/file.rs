//! A file as the backing of a heap: written by calls and synced, or, where the file system gives
//! direct access to persistent memory, by stores into a shared mapping and fenced.
//!
//! Invariants:
//! 1. One writer, or many readers: a lock on the file, held until [`Backing::release`].
//! 2. A shared mapping, where there is one, is as long as the file.
//! 3. After [`Backing::release`] there is neither a descriptor nor a mapping of the file.
#![expect(unsafe_code, reason = "file locks, room for files, and stores into mapped memory")]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::MappedRwLockReadGuard;

use super::closable::Closable;
use super::direct::Direct;
use super::{Backing, Counters, Site, Survival, Unit, stream};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Memory, Share};
use crate::options::{Access, Medium};

/// A heap's file.
#[derive(Debug)]
pub(crate) struct FileBacking {
    path: PathBuf,
    file: Closable,
    access: Access,
    survival: Survival,
    mapped: Option<Mapped>,
    direct: Option<Direct>,
    counters: Counters,
}

/// The file, shared with it.
#[derive(Debug)]
struct Mapped {
    memory: Memory,
    share: Share,
    bytes: AtomicU64,
    reserved: u64,
}

const EXTENT_BYTES_MIN: u64 = 64 << 20;
/// Room is asked for in pieces: one that a signal ends is lost and begun again.
const ROOM_BYTES_MAX: u64 = 32 << 20;
/// About so many holes of a file are looked for.
const HOLES_MAX: u64 = 512;

impl FileBacking {
    /// Makes the file; it must not exist.
    pub(crate) fn create(path: &Path) -> Result<FileBacking> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options
            .open(path)
            .map_err(|error| Error::io(format!("{}: cannot create", path.display()), error))?;
        FileBacking::of(path, file, Access::ReadWrite)
    }

    /// Opens the file and locks it.
    pub(crate) fn open(path: &Path, access: Access) -> Result<FileBacking> {
        let file = OpenOptions::new()
            .read(true)
            .write(access == Access::ReadWrite)
            // A pipe is to be refused, and not to be waited for; files know no waiting.
            .custom_flags(libc::O_NONBLOCK)
            .open(path)
            .map_err(|error| Error::io(format!("{}: cannot open", path.display()), error))?;
        let kind = file.metadata().map_err(|error| failed(path, "stat", error))?.file_type();
        if !kind.is_file() {
            let detail = format!("{}: not a file; expected the file of a heap", path.display());
            return Err(Error::new(ErrorKind::Incompatible, detail));
        }
        FileBacking::of(path, file, access)
    }

    fn of(path: &Path, file: File, access: Access) -> Result<FileBacking> {
        lock(path, &file, access)?;
        let survival = survival_of(&file);
        let counters = Counters::default();
        let (path, file) = (path.to_owned(), Closable::new(file));
        Ok(FileBacking { path, file, access, survival, mapped: None, direct: None, counters })
    }

    /// Chooses how the file is written, now that it has its length; `limit` is the most it may
    /// become. `Auto` takes stores where they are durable once fenced, and where nothing is more
    /// durable than they are.
    pub(crate) fn with_medium(mut self, medium: Medium, limit: u64) -> Result<FileBacking> {
        if self.access == Access::ReadOnly {
            return Ok(self);
        }
        // Memory of the system has no device to go to.
        if self.survival != Survival::Process {
            let direct = Direct::of(&*self.file()?);
            self.direct = direct;
        }
        if medium == Medium::Pages {
            return Ok(self);
        }
        let bytes = self.bytes()?;
        let shares = match (medium, self.survival) {
            _ if !stream::is_supported() => [].as_slice(),
            (Medium::Bytes, _) | (_, Survival::Process) => &[Share::Synchronous, Share::Shared],
            _ => &[Share::Synchronous],
        };
        for share in shares {
            // Room for the extents of large transactions, which lie behind the heap's end.
            let reserved = limit.max(bytes) * 2 + EXTENT_BYTES_MIN;
            let memory = Memory::reserve(reserved)?;
            let mapped = memory.map(&*self.file()?, 0, bytes, *share);
            if mapped.is_ok() {
                // A store to what the file has no room for would end the process.
                self.make_room(0, bytes)?;
                let bytes = AtomicU64::new(bytes);
                self.mapped = Some(Mapped { memory, share: *share, bytes, reserved });
                return Ok(self);
            }
        }
        if medium == Medium::Bytes {
            let detail = format!("{}: cannot be written by stores; use pages", self.path.display());
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        Ok(self)
    }

    /// The file, which stays open as long as this is held.
    fn file(&self) -> Result<MappedRwLockReadGuard<'_, File>> {
        self.file.get().ok_or_else(|| {
            let detail = format!("{}: the heap is closed", self.path.display());
            Error::new(ErrorKind::Closed, detail)
        })
    }

    fn failed(&self, what: &str, error: io::Error) -> Error {
        failed(&self.path, what, error)
    }

    /// The first stretch from `from` on, before `to`, that the file holds nothing of.
    fn hole(file: &File, from: u64, to: u64) -> Option<(u64, u64)> {
        let seek = |at: u64, whence: i32| {
            // SAFETY: a plain call on an open descriptor; nothing here uses its position.
            let found = unsafe { libc::lseek(file.as_raw_fd(), at as libc::off_t, whence) };
            u64::try_from(found).ok()
        };
        let start = seek(from, libc::SEEK_HOLE).filter(|start| *start < to)?;
        let end = seek(start, libc::SEEK_DATA).map_or(to, |end| end.min(to));
        (end > start).then_some((start, end))
    }

    fn punch(&self, mode: i32, offset: u64, length: u64) -> bool {
        let mode = mode | libc::FALLOC_FL_KEEP_SIZE;
        let (offset, length) = (offset as libc::off_t, length as libc::off_t);
        let Some(file) = self.file.get() else { return false };
        // SAFETY: a plain call on an open descriptor.
        unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, length) == 0 }
    }
}

impl Backing for FileBacking {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn unit(&self) -> Unit {
        if self.mapped.is_some() { Unit::Word } else { Unit::Page }
    }

    fn bytes(&self) -> Result<u64> {
        let status = self.file()?.metadata().map_err(|error| self.failed("stat", error))?;
        Ok(status.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let length = out.len();
        self.file()?
            .read_exact_at(out, offset)
            .map_err(|error| self.failed(&format!("read {length} bytes at offset {offset}"), error))
    }

    fn write(&self, _: Site, offset: u64, bytes: &[u8]) -> Result<()> {
        self.counters.count_write(offset, bytes.len() as u64);
        match &self.mapped {
            Some(mapped) => {
                let inside = offset + bytes.len() as u64 <= mapped.bytes.load(Ordering::Acquire);
                assert!(inside, "a write past the end of the mapping");
                let at = mapped.memory.at(offset, bytes.len() as u64);
                // SAFETY: mapped up to its length (invariant 2), in whole words.
                unsafe { stream::store(at, bytes) };
                Ok(())
            }
            None => self.file()?.write_all_at(bytes, offset).map_err(|error| {
                let what = format!("write {} bytes at offset {offset}", bytes.len());
                self.failed(&what, error)
            }),
        }
    }

    fn zero(&self, site: Site, offset: u64, length: u64) -> Result<()> {
        if self.mapped.is_none() {
            if self.punch(libc::FALLOC_FL_ZERO_RANGE, offset, length) {
                return Ok(());
            }
            // A hole reads as zeros; then the room is taken again.
            if self.punch(libc::FALLOC_FL_PUNCH_HOLE, offset, length) {
                return self.make_room(offset, length);
            }
        }
        let zeros = vec![0; length.min(1 << 20) as usize];
        let mut at = 0;
        while at < length {
            let count = (length - at).min(zeros.len() as u64);
            self.write(site, offset + at, &zeros[..count as usize])?;
            at += count;
        }
        Ok(())
    }

    fn sync(&self, _: Site) -> Result<()> {
        self.counters.count_sync();
        match &self.mapped {
            Some(_) => stream::fence(),
            None => {
                let synced = self.file()?.sync_data();
                let failed = |error| Error::sync(format!("{}: cannot sync", self.name()), error);
                synced.map_err(failed)?;
            }
        }
        Ok(())
    }

    fn write_durably(&self, site: Site, offset: u64, bytes: &[u8]) -> Result<()> {
        if let (Some(direct), None) = (&self.direct, &self.mapped) {
            let written = direct.write(offset, bytes).map_err(|error| {
                let what = format!("write {} bytes at offset {offset}", bytes.len());
                self.failed(&what, error)
            })?;
            if written {
                self.counters.count_write(offset, bytes.len() as u64);
                self.counters.count_sync();
                return Ok(());
            }
        }
        self.write(site, offset, bytes)?;
        self.sync(site)
    }

    fn resize(&self, bytes: u64) -> Result<()> {
        let before = self.bytes()?;
        if self.mapped.as_ref().is_some_and(|mapped| bytes > mapped.reserved) {
            let detail = format!("{}: no address space for {bytes} bytes", self.path.display());
            return Err(Error::new(ErrorKind::Full, detail));
        }
        let file = self.file()?;
        file.set_len(bytes)
            .map_err(|error| self.failed(&format!("change the length to {bytes} bytes"), error))?;
        let synced = file.sync_all();
        synced.map_err(|error| Error::sync(format!("{}: cannot sync", self.name()), error))?;
        if let Some(mapped) = &self.mapped {
            if bytes > before {
                mapped.memory.map(&file, before, bytes - before, mapped.share)?;
            } else {
                mapped.memory.withdraw(bytes, before - bytes)?;
            }
            mapped.bytes.store(bytes, Ordering::Release);
        }
        Ok(())
    }

    fn make_room(&self, offset: u64, length: u64) -> Result<()> {
        let file = self.file()?;
        let mut done = 0;
        while done < length {
            let piece = (length - done).min(ROOM_BYTES_MAX);
            let (from, bytes) = ((offset + done) as libc::off_t, piece as libc::off_t);
            // SAFETY: a plain call on an open descriptor.
            match unsafe { libc::posix_fallocate(file.as_raw_fd(), from, bytes) } {
                0 => done += piece,
                // A signal, which memory of the system lets end the call: this piece once more.
                libc::EINTR => {}
                // A file system that cannot reserve room: holes will do.
                libc::EOPNOTSUPP | libc::EINVAL => return Ok(()),
                code => {
                    let what = format!("find room for {length} bytes");
                    return Err(self.failed(&what, io::Error::from_raw_os_error(code)));
                }
            }
        }
        Ok(())
    }

    fn map(&self, memory: &Memory, offset: u64, length: u64) -> Result<()> {
        let file = self.file()?;
        memory.map(&file, offset, length, Share::Private)?;
        // What the file holds nothing of is zeros either way, and memory of the process's own may
        // come in large pages: random reads of a large heap are mostly misses of the page table.
        // Of a file with many small holes most are passed over: each is a call and a mapping.
        let stride = length / HOLES_MAX;
        let mut at = offset;
        while let Some((start, end)) = FileBacking::hole(&file, at, offset + length) {
            memory.provide_large(start, end - start)?;
            at = end.max(at + stride);
        }
        Ok(())
    }

    fn survival(&self) -> Survival {
        match &self.mapped {
            // Fenced stores are in the system's page cache, and no further.
            Some(mapped) if mapped.share == Share::Shared => Survival::Process,
            _ => self.survival,
        }
    }

    fn release(&self) {
        if self.mapped.as_ref().is_some_and(|mapped| mapped.share == Share::Shared)
            && let Some(file) = self.file.get()
        {
            // More than was promised: no commit waits for it, so nobody is told of a failure.
            let _synced = file.sync_all();
        }
        if let Some(mapped) = &self.mapped {
            // Nothing is appended any more; a mapping would keep a removed file's room.
            let _blank = mapped.memory.blank();
        }
        // Other users of the heap may still be about, and must keep neither file nor descriptors.
        if let Some(direct) = &self.direct {
            direct.close();
        }
        if let Some(file) = self.file.get() {
            unlock(&file);
        }
        self.file.close();
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

// A process that is being started from another thread has the descriptor, too, until it runs its
// program: closing it would not give the lock up yet.
impl Drop for FileBacking {
    fn drop(&mut self) {
        if let Some(file) = self.file.get() {
            unlock(&file);
        }
    }
}

fn failed(path: &Path, what: &str, error: io::Error) -> Error {
    Error::io(format!("{}: cannot {what}", path.display()), error)
}

fn lock(path: &Path, file: &File, access: Access) -> Result<()> {
    let how = match access {
        Access::ReadWrite => libc::LOCK_EX,
        Access::ReadOnly => libc::LOCK_SH,
    };
    loop {
        // SAFETY: a plain call on an open descriptor.
        if unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) } == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock => {
                let owner = match owner_of(file) {
                    Some(owner) if owner == std::process::id() => " by this process".to_owned(),
                    Some(owner) => format!(" by process {owner}"),
                    None => " by another process".to_owned(),
                };
                let detail = format!("{}: is in use{owner}; close it there first", path.display());
                return Err(Error::new(ErrorKind::InUse, detail));
            }
            _ => return Err(failed(path, "lock", error)),
        }
    }
}

fn unlock(file: &File) {
    // SAFETY: a plain call on an open descriptor. It does not fail on one that holds the lock.
    let _unlocked = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
}

/// The process that holds the lock of `file`, as far as the system tells.
fn owner_of(file: &File) -> Option<u32> {
    let status = file.metadata().ok()?;
    let device = status.dev();
    let place = format!("{:02x}:{:02x}:{}", libc::major(device), libc::minor(device), status.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let line = locks.lines().find(|line| {
        line.contains(" FLOCK ") && line.split_whitespace().any(|word| word == place)
    })?;
    // "1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF"
    line.split_whitespace().nth(4)?.parse().ok()
}

fn survival_of(file: &File) -> Survival {
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    let mut status = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: a plain call on an open descriptor, which fills the structure or fails.
    if unsafe { libc::fstatfs(file.as_raw_fd(), status.as_mut_ptr()) } != 0 {
        return Survival::Unknown;
    }
    // SAFETY: the call filled it, and zeros are a value of it too.
    let kind = unsafe { status.assume_init() }.f_type;
    if kind == TMPFS || kind == RAMFS { Survival::Process } else { Survival::Power }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_free_once_it_is_dropped_while_a_process_is_being_started() {
        let name = format!("entresol-heap-unlocked-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, b"heap").unwrap();
        let first = FileBacking::open(&path, Access::ReadWrite).unwrap();
        // Such a process has a copy of each descriptor.
        let copy = first.file().unwrap().try_clone().unwrap();
        let refused = FileBacking::open(&path, Access::ReadWrite).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InUse);
        drop(first);
        FileBacking::open(&path, Access::ReadWrite).unwrap();
        drop(copy);
        fs::remove_file(&path).unwrap();
    }
}
