//! Making a file at its full size.
//!
//! Invariants:
//! 1. The file gets its name only when it is complete: it is made as `NAME.new` in the same
//!    directory, allocated, written, synced and then renamed. What a crash leaves behind is that
//!    unfinished file, which the next making takes over.
//! 2. It is claimed before anything is written, and the claim stays through the renaming.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::buffer::IoBuffer;
use crate::error::{Error, ErrorKind, Result};
use crate::exclusive::Claim;
use crate::file::{Preparation, Progress};
use crate::system;

/// Bytes of one write of zeros.
const WRITE_BYTES: usize = 4 << 20;

/// Where the file of `path` is while it is made.
pub fn unfinished(path: &Path) -> PathBuf {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    PathBuf::from(unfinished)
}

/// Files that are not there before an attempt that may make them.
#[derive(Debug)]
pub struct NewFiles(Vec<PathBuf>);

impl NewFiles {
    /// Those of `paths` at which nothing is yet.
    pub fn among<'a>(paths: impl Iterator<Item = &'a Path>) -> NewFiles {
        NewFiles(paths.filter(|path| !path.exists()).map(Path::to_owned).collect())
    }

    /// Removes those that were made after all: made for nothing, they would stand against the next,
    /// better attempt. What cannot be removed is named by that one's error.
    pub fn remove(&self) {
        for path in self.0.iter().filter(|path| path.is_file()) {
            let _named_later = fs::remove_file(path);
        }
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

/// Makes the file at `path`, `size` bytes, and returns the claim on it.
pub(crate) fn create(
    path: &Path,
    size: u64,
    preparation: Preparation,
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

fn fill(
    path: &Path,
    unfinished: &Path,
    file: &File,
    (range, preparation): (Range<u64>, Preparation),
    report: &mut dyn FnMut(Progress),
) -> Result<()> {
    let size = range.end;
    let allocated = match system::allocate(file.as_raw_fd(), size) {
        // A file system that cannot allocate ahead: writing is all there is.
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => file.set_len(size),
        allocated => allocated,
    };
    allocated.map_err(|source| system::allocation_error(path, size, source))?;
    if preparation == Preparation::Written {
        write_zeros(unfinished, range, report)
            .map_err(|source| system::allocation_error(path, size, source))?;
    }
    Ok(())
}

/// Writes zeros to `range`, directly where possible, so that the page cache stays as it is.
fn write_zeros(path: &Path, range: Range<u64>, report: &mut dyn FnMut(Progress)) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    let file = match options.custom_flags(libc::O_DIRECT).open(path) {
        Ok(file) if range.start.is_multiple_of(4096) && range.end.is_multiple_of(4096) => file,
        _ => options.custom_flags(0).open(path)?,
    };
    let zeros = IoBuffer::aligned(WRITE_BYTES);
    let mut at = range.start;
    while at < range.end {
        let length = (range.end - at).min(WRITE_BYTES as u64) as usize;
        system::write_fully(file.as_raw_fd(), at, &zeros[..length])?;
        at += length as u64;
        let total_bytes = range.end - range.start;
        report(Progress { done_bytes: at - range.start, total_bytes });
    }
    Ok(())
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
