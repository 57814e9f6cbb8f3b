//! A file or block device with contents of others, used as it is: it has any size, is never made,
//! extended or formatted, and is read and written at any byte.
//!
//! Transfers go through the page cache, so they need no alignment, and the writes of a killed
//! process are still there. The same claims as for other devices keep two writers apart.
#![expect(unsafe_code, reason = "fallocate, lseek and fadvise; writes that are durable at once")]

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::WriteMode;
use crate::error::{Error, ErrorKind, Result};
use crate::exclusive::Claim;
use crate::file::{Force, Kind};
use crate::{block_device, system};

/// A file or block device as it is. Thread-safe.
#[derive(Debug)]
pub struct PlainFile {
    file: File,
    path: PathBuf,
    access: Access,
    kind: Kind,
    bytes: AtomicU64,
    /// Holes and zeros of a block device begin and end at multiples of this.
    sector_bytes: u64,
    device: Option<u64>,
    can_punch: bool,
    found_changed: Option<String>,
    _claim: Claim,
}

/// What may be done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads and writes; nobody else claims it meanwhile.
    ReadWrite,
    /// Reads; others may read too.
    ReadOnly,
}

/// File systems that make holes, by the magic of `<linux/magic.h>`: ext4, XFS, Btrfs, F2FS, tmpfs.
const MAKE_HOLES: [i64; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];

/// What became of a range that was to be punched or zeroed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zeroed {
    /// It reads as zeros.
    Done,
    /// Nothing: the medium has no such operation.
    Unsupported,
}

impl PlainFile {
    /// Opens what stands at `path`.
    ///
    /// Errors: `NotFound`; `InUse` if somebody else claims it; `Foreign` if it is to be written and
    /// is mounted, unless forced; `InvalidInput` if it is no file or block device, or empty.
    pub fn open(path: impl AsRef<Path>, access: Access, force: Force) -> Result<PlainFile> {
        let path = path.as_ref();
        let status = fs::metadata(path).map_err(|error| system::open_error(path, error))?;
        let kind = match status.file_type() {
            kind if kind.is_file() => Kind::File,
            kind if kind.is_block_device() => Kind::BlockDevice,
            _ => {
                let detail = format!("{}: neither a file nor a block device", path.display());
                return Err(Error::new(ErrorKind::InvalidInput, detail));
            }
        };
        let claim = match access {
            Access::ReadWrite => Claim::take(path, kind, force)?,
            Access::ReadOnly => Claim::share(path)?,
        };
        let file = OpenOptions::new()
            .read(true)
            .write(access == Access::ReadWrite)
            .custom_flags(libc::O_CLOEXEC)
            .open(path)
            .map_err(|error| system::open_error(path, error))?;
        let name = path.display().to_string();
        let (bytes, sector_bytes, device) = match kind {
            Kind::File => (status.len(), 1, status.dev()),
            Kind::BlockDevice => {
                let (bytes, geometry) = block_device::sizes(&name, &file)?;
                (bytes, u64::from(geometry.sector_bytes), status.rdev())
            }
        };
        if bytes == 0 {
            let detail = format!("{name}: is empty; expected a file or block device with a size");
            return Err(Error::new(ErrorKind::InvalidInput, detail));
        }
        // SAFETY: plain system call on an open descriptor; advice that may be ignored.
        let _advice =
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
        let mut plain = PlainFile {
            file,
            path: path.to_owned(),
            access,
            kind,
            bytes: AtomicU64::new(bytes),
            sector_bytes,
            device: Some(device),
            can_punch: false,
            found_changed: None,
            _claim: claim,
        };
        plain.found_changed = plain.changed();
        plain.can_punch = access == Access::ReadWrite && plain.knows_holes();
        Ok(plain)
    }

    /// Its path, as it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes the size that it has now, and returns it. A smaller one is not taken.
    pub fn grow(&self) -> Result<u64> {
        let found = match self.kind {
            Kind::File => {
                let failed = |source| self.error("look", (0, self.bytes()), source);
                self.file.metadata().map_err(failed)?.len()
            }
            Kind::BlockDevice => {
                block_device::sizes(&self.path.display().to_string(), &self.file)?.0
            }
        };
        self.bytes.fetch_max(found, Ordering::Relaxed);
        Ok(found)
    }

    /// What may be done with it.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Whether [`PlainFile::punch`] has an effect, as far as can be known without trying.
    pub fn can_punch(&self) -> bool {
        self.can_punch
    }

    /// Whether it lies on a spinning device, as far as the system tells.
    pub fn is_rotational(&self) -> bool {
        self.system_file("queue/rotational").is_some_and(|text| text == "1")
    }

    /// Binds others' records to it: the same for the same contents' place, whoever opens it.
    pub fn identity(&self) -> String {
        let bytes = self.bytes();
        match (self.kind, fs::metadata(&self.path)) {
            (Kind::File, Ok(status)) => {
                format!("file {}:{} of {bytes} bytes", status.dev(), status.ino())
            }
            (Kind::File, Err(_)) => format!("file {} of {bytes} bytes", self.path.display()),
            (Kind::BlockDevice, _) => {
                // From the most to the least lasting name.
                let serials = ["dm/uuid", "md/uuid", "partition_uuid", "wwid", "serial"];
                let devices = ["loop/backing_file", "device/wwid", "device/serial"];
                let names = serials.iter().chain(&devices);
                let found = names.filter_map(|name| Some((name, self.system_file(name)?))).next();
                match found {
                    Some((name, text)) => format!("block device {name} {text} of {bytes} bytes"),
                    None => format!("block device {} of {bytes} bytes", self.device_number()),
                }
            }
        }
    }

    /// When its contents were changed last, where the system keeps that: files only.
    pub fn modified(&self) -> Option<String> {
        let status = self.file.metadata().ok().filter(|_| self.kind == Kind::File)?;
        Some(format!("{}.{:09}", status.mtime(), status.mtime_nsec()))
    }

    /// When anything of it had been changed last as it was opened: an opening may look for what the
    /// file system can do, and leave that trace; likewise.
    pub fn found_changed(&self) -> Option<String> {
        self.found_changed.clone()
    }

    /// When anything of it was changed last, its time of modification included; likewise.
    pub fn changed(&self) -> Option<String> {
        let status = self.file.metadata().ok().filter(|_| self.kind == Kind::File)?;
        Some(format!("{}.{:09}", status.ctime(), status.ctime_nsec()))
    }

    /// Reads exactly `buffer.len()` bytes at `offset`. Blocking.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let length = buffer.len();
        system::read_fully(self.file.as_raw_fd(), offset, buffer)
            .map_err(|source| self.error("read", (offset, length as u64), source))
    }

    /// Writes all of `bytes` at `offset`. Blocking.
    pub fn write_at(&self, offset: u64, bytes: &[u8], mode: WriteMode) -> Result<()> {
        let memory = (bytes.as_ptr(), bytes.len());
        // SAFETY: the memory is readable while it is borrowed.
        unsafe { system::write_raw(self.file.as_raw_fd(), offset, memory, mode) }
            .map_err(|source| self.error("write", (offset, bytes.len() as u64), source))
    }

    /// On return everything written before the call survives power loss. Blocking.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|source| self.error("sync", (0, self.bytes()), source))
    }

    /// Makes the range a hole, which reads as zeros. Blocking. What of it is less than a sector of
    /// a block device is left alone.
    pub fn punch(&self, offset: u64, length: u64) -> Result<Zeroed> {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        self.fallocate(mode, self.whole_sectors(offset, length))
    }

    /// Makes the range read as zeros and keeps its room. Blocking. What of it is less than a sector
    /// of a block device is left alone.
    pub fn zero(&self, offset: u64, length: u64) -> Result<Zeroed> {
        let mode = libc::FALLOC_FL_ZERO_RANGE | libc::FALLOC_FL_KEEP_SIZE;
        self.fallocate(mode, self.whole_sectors(offset, length))
    }

    /// Whether `length` bytes of a file may be given room: what it has now counts as theirs. A
    /// block device has all of its room. Errors: `Full` if its file system surely lacks it.
    pub fn check_room(&self, length: u64) -> Result<()> {
        if self.kind == Kind::BlockDevice {
            return Ok(());
        }
        let (Ok(status), Some(free)) = (self.file.metadata(), crate::free_bytes(&self.path)) else {
            // What cannot be known is found out by trying.
            return Ok(());
        };
        let missing = length.saturating_sub(status.blocks() * 512);
        if missing <= free {
            return Ok(());
        }
        let detail = format!(
            "{}: {length} bytes are to have room, and its file system has {free} bytes free; free \
             {} bytes there, or allow holes",
            self.path.display(),
            missing - free
        );
        Err(Error::new(ErrorKind::Full, detail))
    }

    /// The part of a range that [`PlainFile::punch`] and [`PlainFile::zero`] act on: where it
    /// begins and how long it is.
    pub fn whole_sectors(&self, offset: u64, length: u64) -> (u64, u64) {
        let start = offset.next_multiple_of(self.sector_bytes);
        let end = (offset + length) / self.sector_bytes * self.sector_bytes;
        (start, end.saturating_sub(start))
    }

    /// Runs of data and of holes in a range: lengths, and whether there is data; at most `most`, so
    /// that the last may end before the range. Where the system does not tell, all counts as data.
    pub fn extents(&self, (offset, length): (u64, u64), most: usize) -> Vec<(u64, bool)> {
        let end = offset.saturating_add(length).min(self.bytes());
        let mut runs = Vec::new();
        let mut at = offset;
        while at < end && runs.len() < most {
            let (data, hole) = match self.seek(at, libc::SEEK_DATA) {
                Ok(data) if data > at => (false, data),
                Ok(_) => (true, self.seek(at, libc::SEEK_HOLE).unwrap_or(end)),
                Err(error) if error.raw_os_error() == Some(libc::ENXIO) => (false, end),
                Err(_) => (true, end),
            };
            let next = hole.clamp(at + 1, end);
            runs.push((next - at, data));
            at = next;
        }
        runs
    }

    fn seek(&self, offset: u64, whence: libc::c_int) -> io::Result<u64> {
        // SAFETY: plain system call on an open descriptor, whose position nobody uses.
        let at = unsafe { libc::lseek(self.file.as_raw_fd(), offset as libc::off_t, whence) };
        u64::try_from(at).map_err(|_| io::Error::last_os_error())
    }

    fn fallocate(&self, mode: libc::c_int, (offset, length): (u64, u64)) -> Result<Zeroed> {
        if length == 0 {
            return Ok(Zeroed::Done);
        }
        loop {
            let (at, count) = (offset as libc::off_t, length as libc::off_t);
            // SAFETY: plain system call on an open descriptor.
            if unsafe { libc::fallocate(self.file.as_raw_fd(), mode, at, count) } == 0 {
                return Ok(Zeroed::Done);
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => {
                    return Ok(Zeroed::Unsupported);
                }
                _ => return Err(self.error("zeroing", (offset, length), error)),
            }
        }
    }

    /// Whether its file system or device makes holes: that of some is known, others are asked for
    /// one behind the end, where there is nothing; block devices tell. What cannot be found out
    /// without a trace in the time of modification is taken for granted.
    fn knows_holes(&self) -> bool {
        match self.kind {
            Kind::File if self.is_on_known_file_system() => true,
            Kind::File => {
                // Nothing is changed behind its end: who watches for changes must not see one.
                let modified = self.file.metadata().and_then(|status| status.modified());
                let unseen = || {
                    let modified = *modified.as_ref().ok()?;
                    self.file.set_times(FileTimes::new().set_modified(modified)).ok()
                };
                if unseen().is_none() {
                    // The owner alone may set times back.
                    return true;
                }
                let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                let behind = self.bytes().next_multiple_of(1 << 20);
                let punched = self.fallocate(mode, (behind, 4096));
                let _as_just_before = unseen();
                punched.is_ok_and(|done| done == Zeroed::Done)
            }
            Kind::BlockDevice => ["queue/write_zeroes_max_bytes", "queue/discard_max_bytes"]
                .iter()
                .any(|name| self.system_file(name).is_some_and(|text| text != "0")),
        }
    }

    /// Whether its file system is one of which it is known that it makes holes.
    fn is_on_known_file_system(&self) -> bool {
        let magic = system::file_system_magic(self.file.as_raw_fd());
        magic.is_some_and(|magic| MAKE_HOLES.contains(&magic))
    }

    fn device_number(&self) -> String {
        let device = self.device.unwrap_or_default();
        format!("{}:{}", libc::major(device), libc::minor(device))
    }

    /// What the system says of its block device, or of the one that this is a partition of.
    fn system_file(&self, name: &str) -> Option<String> {
        let folder = Path::new("/sys/dev/block").join(self.device_number());
        let (own, whole) = (folder.join(name), folder.join("..").join(name));
        if name == "partition_uuid" {
            let events = fs::read_to_string(folder.join("uevent")).ok()?;
            return events
                .lines()
                .find_map(|line| line.strip_prefix("PARTUUID=").map(str::to_owned));
        }
        let is_partition = folder.join("partition").exists();
        let text = fs::read_to_string(own);
        // A partition shares its device's queue, and has no identity by its device's serial alone.
        let text = match text {
            Err(_) if is_partition && name.starts_with("queue/") => fs::read_to_string(whole),
            text => text,
        };
        text.ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn error(&self, doing: &str, (offset, length): (u64, u64), source: io::Error) -> Error {
        let name = self.path.display();
        match source.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => {
                let detail = format!(
                    "{name}: no room for a {doing} of {length} bytes at offset {offset}: {source}"
                );
                Error::new(ErrorKind::Full, detail)
            }
            None if source.kind() == io::ErrorKind::UnexpectedEof => {
                let detail = format!(
                    "{name}: {doing} of {length} bytes at offset {offset} met its end; it had {} \
                     bytes when it was opened: was it truncated?",
                    self.bytes()
                );
                Error::new(ErrorKind::Io, detail)
            }
            _ => {
                let detail = format!("{name}: {doing} of {length} bytes at offset {offset} failed");
                Error::io(detail, source)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::testing::TempDir;

    fn file(dir: &TempDir, bytes: usize) -> PathBuf {
        let path = dir.path().join("plain");
        fs::write(&path, vec![7; bytes]).unwrap();
        path
    }

    // The question whether the file system knows holes counted as a change: a cache over the file
    // took its clean blocks for stale at every start.
    #[test]
    fn opening_a_file_does_not_count_as_a_change_of_it() {
        let dir = TempDir::new("plain");
        let path = file(&dir, 10_001);
        let date = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
        File::options().write(true).open(&path).unwrap().set_modified(date).unwrap();
        let plain = PlainFile::open(&path, Access::ReadWrite, Force::No).unwrap();
        assert_eq!(plain.modified().unwrap(), "1000000000.123456789");
        plain.write_at(0, &[1], WriteMode::Flushed).unwrap();
        assert_ne!(plain.modified().unwrap(), "1000000000.123456789");
    }

    // Its time of modification could not be set back: a volume over it with dirty blocks was not
    // opened any more, as if somebody else had written to it.
    #[test]
    fn opening_a_file_of_another_owner_does_not_count_as_a_change_of_it() {
        let dir = TempDir::new("owned");
        let path = file(&dir, 10_001);
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        let date = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        File::options().write(true).open(&path).unwrap().set_modified(date).unwrap();
        let opened = std::thread::spawn(move || {
            // SAFETY: it reads no memory and changes this thread alone, which ends here. Who is not
            // root may not, and opens a file of its own.
            unsafe { libc::syscall(libc::SYS_setfsuid, 65534) };
            PlainFile::open(&path, Access::ReadWrite, Force::No).unwrap().modified()
        });
        assert_eq!(opened.join().unwrap().unwrap(), "1000000000.000000000");
    }

    #[test]
    fn any_byte_is_read_and_written_and_the_size_stays() {
        let dir = TempDir::new("plain");
        let path = file(&dir, 10_001);
        let plain = PlainFile::open(&path, Access::ReadWrite, Force::No).unwrap();
        assert_eq!(plain.bytes(), 10_001);
        plain.write_at(9_999, &[1, 2], WriteMode::Durable).unwrap();
        plain.write_at(3, &[9], WriteMode::Flushed).unwrap();
        plain.sync().unwrap();
        let mut bytes = [0; 3];
        plain.read_at(9_998, &mut bytes).unwrap();
        assert_eq!(bytes, [7, 1, 2]);
        assert_eq!(fs::metadata(&path).unwrap().len(), 10_001);
    }

    #[test]
    fn holes_read_as_zeros_and_are_told() {
        let dir = TempDir::new("holes");
        let path = file(&dir, 1 << 20);
        let plain = PlainFile::open(&path, Access::ReadWrite, Force::No).unwrap();
        assert_eq!(plain.extents((100, 1000), 9), [(1000, true)]);
        if plain.can_punch() {
            assert_eq!(plain.punch(65536, 131_072).unwrap(), Zeroed::Done);
            assert_eq!(
                plain.extents((0, u64::MAX), 9),
                [(65536, true), (131_072, false), ((1 << 20) - 65536 - 131_072, true)]
            );
            assert_eq!(plain.extents((0, u64::MAX), 2), [(65536, true), (131_072, false)]);
        }
        let mut bytes = [1; 512];
        if plain.zero(1000, 512).unwrap() == Zeroed::Done {
            plain.read_at(1000, &mut bytes).unwrap();
            assert_eq!(bytes, [0; 512]);
        }
        assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 20);
    }

    #[test]
    fn one_writer_excludes_all_and_readers_exclude_writers_only() {
        let dir = TempDir::new("claims");
        let path = file(&dir, 4096);
        let open = |access| PlainFile::open(&path, access, Force::No);
        let writer = open(Access::ReadWrite).unwrap();
        assert_eq!(open(Access::ReadWrite).unwrap_err().kind(), ErrorKind::InUse);
        assert_eq!(open(Access::ReadOnly).unwrap_err().kind(), ErrorKind::InUse);
        drop(writer);
        let readers = [open(Access::ReadOnly).unwrap(), open(Access::ReadOnly).unwrap()];
        assert_eq!(open(Access::ReadWrite).unwrap_err().kind(), ErrorKind::InUse);
        assert!(readers[0].write_at(0, &[1], WriteMode::Flushed).is_err());
        drop(readers);
        open(Access::ReadWrite).unwrap();
    }

    #[test]
    fn what_cannot_be_a_backing_is_refused_by_kind() {
        let dir = TempDir::new("refused");
        let kind =
            |path: &Path| PlainFile::open(path, Access::ReadOnly, Force::No).unwrap_err().kind();
        assert_eq!(kind(&dir.path().join("absent")), ErrorKind::NotFound);
        assert_eq!(kind(dir.path()), ErrorKind::InvalidInput);
        assert_eq!(kind(&file(&dir, 0)), ErrorKind::InvalidInput);
    }

    #[test]
    fn identity_stays_and_the_time_of_modification_does_not() {
        let dir = TempDir::new("identity");
        let path = file(&dir, 4096);
        let open = || PlainFile::open(&path, Access::ReadOnly, Force::No).unwrap();
        let (identity, modified) = (open().identity(), open().modified());
        let changed = open().changed();
        assert_eq!(open().identity(), identity);
        let other = File::options().write(true).open(&path).unwrap();
        other.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(open().identity(), identity);
        assert_ne!(open().modified(), modified);
        assert_ne!(open().changed(), changed, "it cannot be set");
        other.set_len(8192).unwrap();
        assert_ne!(open().identity(), identity);
    }

    /// The look for what its file system can do left a trace by which nobody's write was told apart
    /// from ours.
    #[test]
    fn an_opening_changes_nothing_of_a_file() {
        let dir = TempDir::new("untouched");
        let path = file(&dir, 1 << 20);
        let open = |access| PlainFile::open(&path, access, Force::No).unwrap();
        let before = open(Access::ReadOnly).changed();
        let opened = open(Access::ReadWrite);
        assert_eq!(opened.found_changed(), before);
        if opened.is_on_known_file_system() {
            assert_eq!(opened.changed(), before);
        }
    }

    #[test]
    fn a_truncated_file_fails_reads_and_says_so() {
        let dir = TempDir::new("truncated");
        let path = file(&dir, 8192);
        let plain = PlainFile::open(&path, Access::ReadOnly, Force::No).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
        let error = plain.read_at(4000, &mut [0; 512]).unwrap_err();
        assert!(error.to_string().contains("was it truncated?"), "{error}");
    }
}
