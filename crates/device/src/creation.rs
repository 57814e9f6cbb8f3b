//! Making a file at its full size.
//!
//! Invariants:
//! 1. The file gets its name only when it is complete: it is made as `NAME.new` in the same
//!    directory, allocated, written, synced and then renamed. A crash leaves that unfinished file,
//!    all zeros, and the next creation takes it over. Any other file named `NAME.new` belongs to
//!    somebody else, and stays.
//! 2. The file is claimed before anything is written, and the claim stays through the renaming.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::buffer::IoBuffer;
use crate::error::{Error, ErrorKind, Result};
use crate::exclusive::Claim;
use crate::file::{Force, Preparation, Progress};
use crate::{foreign, system};

/// Bytes of one write of zeros.
const WRITE_BYTES: usize = 4 << 20;
/// Direct transfers begin and end at multiples of this on every device.
const DIRECT_BYTES: u64 = 4096;

/// Where the file of `path` is while it is made.
pub fn unfinished(path: &Path) -> PathBuf {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    PathBuf::from(unfinished)
}

/// The files that an attempt made, by all openings that its clones were given to in
/// [`FileOptions`](crate::FileOptions). Each stays claimed for as long as it is noted here: nobody
/// else has used it.
#[derive(Debug, Clone, Default)]
pub struct MadeFiles(Arc<Mutex<Vec<MadeFile>>>);

#[derive(Debug)]
struct MadeFile {
    path: PathBuf,
    claim: Arc<Claim>,
}

impl MadeFiles {
    /// Removes them: made for nothing, they would stand against the next, better attempt. What
    /// cannot be removed is named by that one's error.
    pub fn remove(&self) {
        for MadeFile { path, claim } in self.0.lock().drain(..) {
            if claim.is_at(&path) {
                let _named_later = fs::remove_file(path);
            }
        }
    }

    pub(crate) fn note(&self, path: &Path, claim: &Arc<Claim>) {
        self.0.lock().push(MadeFile { path: path.to_owned(), claim: Arc::clone(claim) });
    }
}

/// Refuses a path at which no file is made.
pub(crate) fn check_place(path: &Path) -> Result<()> {
    if path.parent() != Some(Path::new("/dev")) {
        return Ok(());
    }
    let detail = format!(
        "{}: there is no such device, and a file there would be one in memory; `lsblk` lists the \
         devices, and a file is made anywhere else",
        path.display()
    );
    Err(Error::new(ErrorKind::NotFound, detail))
}

/// Makes the file at `path`, `size` bytes, and returns the claim on it. With `force`, what stands
/// where it is made is lost, whatever it is.
pub(crate) fn create(
    path: &Path,
    (size, preparation): (u64, Preparation),
    force: Force,
    report: &mut dyn FnMut(Progress),
) -> Result<Claim> {
    check_place(path)?;
    let failed = |doing: &'static str| {
        move |source| Error::io(format!("{}: cannot {doing}", path.display()), source)
    };
    let unfinished = &unfinished(path);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(unfinished)
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let detail = format!("{}: its directory does not exist", path.display());
                Error::new(ErrorKind::NotFound, detail)
            }
            _ => Error::io(format!("{}: cannot create", path.display()), error),
        })?;
    let claim = Claim::of(unfinished, file)?;
    if !claim.is_at(unfinished) || path.exists() {
        let detail = format!("{}: is being made by another process", path.display());
        return Err(Error::new(ErrorKind::InUse, detail));
    }
    let file = claim.file();
    if force == Force::No {
        foreign::check_unfinished(unfinished, file, path)?;
    }
    file.set_len(0).map_err(failed("empty"))?;
    if let Err(error) = fill(path, unfinished, file, (0..size, preparation), report) {
        // The error at hand says more than a failure to clean up would.
        let _left_behind = fs::remove_file(unfinished);
        return Err(error);
    }
    file.sync_all().map_err(failed("sync"))?;
    fs::rename(unfinished, path).map_err(failed("rename to its name"))?;
    sync_directory(path).map_err(failed("sync the directory of"))?;
    Ok(claim)
}

/// Extends `file` at `path` by the bytes of `range`, which starts at its end. A crash may leave a
/// part of them; an error leaves none.
pub(crate) fn extend(
    path: &Path,
    file: &File,
    (range, preparation): (Range<u64>, Preparation),
    report: &mut dyn FnMut(Progress),
) -> Result<()> {
    let former = range.start;
    if let Err(error) = fill(path, path, file, (range, preparation), report) {
        // The error at hand says more than a failure to clean up would.
        let _left_behind = file.set_len(former);
        return Err(error);
    }
    let failed = |source| Error::io(format!("{}: cannot sync", path.display()), source);
    file.sync_all().map_err(failed)
}

/// What else helps where a data file has no room.
const ADVICE: &str = "ask for a smaller capacity";

fn fill(
    path: &Path,
    unfinished: &Path,
    file: &File,
    (range, preparation): (Range<u64>, Preparation),
    report: &mut dyn FnMut(Progress),
) -> Result<()> {
    let (size, wanted) = (range.end, range.end - range.start);
    let free = system::free_bytes(path);
    let failed = |source| system::allocation_error(path, wanted, free, source, ADVICE);
    if free.is_some_and(|free| free < wanted) {
        // An attempt would take what is free from everybody else, if only for a moment.
        return Err(failed(io::Error::from_raw_os_error(libc::ENOSPC)));
    }
    let allocated = match system::allocate(file.as_raw_fd(), size) {
        // A file system that cannot allocate ahead: writing is all there is.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => file.set_len(size),
        allocated => allocated,
    };
    allocated.map_err(failed)?;
    if preparation == Preparation::Written {
        write_zeros(unfinished, range, report).map_err(failed)?;
    }
    Ok(())
}

/// Writes zeros to `range`, directly where possible, so that the page cache stays as it is: what of
/// the file is in there makes each later transfer look it up, and its pages cost more than the
/// device does.
fn write_zeros(path: &Path, range: Range<u64>, report: &mut dyn FnMut(Progress)) -> io::Result<()> {
    let buffered = OpenOptions::new().write(true).open(path)?;
    let direct = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(path).ok();
    let zeros = IoBuffer::aligned(WRITE_BYTES);
    let total_bytes = range.end - range.start;
    let start = range.start;
    for (part, whole_blocks) in parts(range) {
        let file = direct.as_ref().filter(|_| whole_blocks).unwrap_or(&buffered);
        let mut at = part.start;
        while at < part.end {
            let length = (part.end - at).min(WRITE_BYTES as u64) as usize;
            system::write_fully(file.as_raw_fd(), at, &zeros[..length])?;
            at += length as u64;
            report(Progress { done_bytes: at - start, total_bytes });
        }
    }
    Ok(())
}

/// The parts of `range` in order, each with whether it is of whole blocks: all of it but for less
/// than a block at either end.
fn parts(range: Range<u64>) -> impl Iterator<Item = (Range<u64>, bool)> {
    let first = range.start.next_multiple_of(DIRECT_BYTES).min(range.end);
    let last = (range.end - range.end % DIRECT_BYTES).max(first);
    let parts = [(range.start..first, false), (first..last, true), (last..range.end, false)];
    parts.into_iter().filter(|(part, _)| !part.is_empty())
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_less_than_a_block_at_either_end_is_written_as_whole_blocks() {
        for start in [0, 1, 4095, 4096, 4097, 10_000, 4_000_000_000] {
            for length in [0, 1, 95, 4095, 4096, 4097, 8191, 8192, 4_000_000_000] {
                let range = start..start + length;
                let mut at = range.start;
                let mut beside = 0;
                for (part, whole_blocks) in parts(range.clone()) {
                    assert_eq!(part.start, at, "{range:?}: in order, without a gap");
                    at = part.end;
                    if whole_blocks {
                        assert!(part.start.is_multiple_of(DIRECT_BYTES), "{range:?}: {part:?}");
                        assert!(part.end.is_multiple_of(DIRECT_BYTES), "{range:?}: {part:?}");
                    } else {
                        beside += part.end - part.start;
                    }
                }
                assert_eq!(at, range.end);
                assert!(beside <= 2 * (DIRECT_BYTES - 1), "{range:?}: {beside} bytes beside");
            }
        }
    }
}
