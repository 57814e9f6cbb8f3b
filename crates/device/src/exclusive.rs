//! Exclusive use of a file or block device.
//!
//! Invariants:
//! 1. The claim sits on a descriptor of its own that is never given to io_uring: the kernel
//!    destroys a ring some time after the death of its process, and a descriptor registered with it
//!    lives until then. The claim's own descriptor is closed before the parent learns of the death,
//!    so a restart finds the file free.
//! 2. The claim is on the file, not on its name: links and renames do not help a second opener.
//!
//! Files carry a `flock`; block devices are also opened with `O_EXCL`, which the kernel refuses for
//! mounted devices and for members of other devices.
#![expect(unsafe_code, reason = "flock")]

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::file::{Force, Kind};
use crate::{foreign, system};

/// Exclusive or, to read, shared use of what stands at a path; given up when dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    file: File,
}

impl Claim {
    /// Claims what stands at `path`, or fails with `InUse`, or `Foreign` if it is mounted.
    pub(crate) fn take(path: &Path, kind: Kind, force: Force) -> Result<Claim> {
        if kind == Kind::BlockDevice && force == Force::No {
            foreign::check_mounted(path)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let exclusive = match kind {
            Kind::BlockDevice => libc::O_EXCL | libc::O_CLOEXEC,
            Kind::File => libc::O_CLOEXEC,
        };
        let file = match options.custom_flags(exclusive).open(path) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                if force == Force::No {
                    return Err(in_use(path, None));
                }
                options.custom_flags(libc::O_CLOEXEC).open(path)
            }
            opened => opened,
        };
        let file = file.map_err(|error| system::open_error(path, error))?;
        Claim::of(path, file)
    }

    /// Claims what stands at `path` for reading, with others that do so, or fails with `InUse`.
    pub(crate) fn share(path: &Path) -> Result<Claim> {
        let file = File::open(path).map_err(|error| system::open_error(path, error))?;
        Claim::lock(path, file, libc::LOCK_SH)
    }

    /// Claims an open file; `path` is for messages.
    pub(crate) fn of(path: &Path, file: File) -> Result<Claim> {
        Claim::lock(path, file, libc::LOCK_EX)
    }

    fn lock(path: &Path, file: File, how: libc::c_int) -> Result<Claim> {
        loop {
            // SAFETY: plain system call on an open descriptor.
            if unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) } == 0 {
                return Ok(Claim { file });
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock => return Err(in_use(path, owner_of(&file))),
                _ => return Err(Error::io(format!("{}: cannot lock", path.display()), error)),
            }
        }
    }

    /// The claimed file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Whether `path` still names the claimed file.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let (Ok(claimed), Ok(there)) = (self.file.metadata(), fs::metadata(path)) else {
            return false;
        };
        (claimed.dev(), claimed.ino()) == (there.dev(), there.ino())
    }
}

// A process that is being started from another thread has the descriptor, too, until it runs its
// program: closing it would not give the claim up yet.
impl Drop for Claim {
    fn drop(&mut self) {
        // SAFETY: plain system call on an open descriptor. It does not fail on one that is locked.
        let _unlocked = unsafe { libc::flock(self.file.as_raw_fd(), libc::LOCK_UN) };
    }
}

fn in_use(path: &Path, owner: Option<u32>) -> Error {
    let owner = match owner {
        Some(owner) if owner == std::process::id() => " by this process".to_owned(),
        Some(owner) => format!(" by process {owner}"),
        None => " by another process or by the system".to_owned(),
    };
    let detail = format!("{}: is in use{owner}; stop that first", path.display());
    Error::new(ErrorKind::InUse, detail)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;

    #[test]
    fn a_file_is_free_once_its_claim_is_dropped_while_a_process_is_being_started() {
        let dir = TempDir::new("unclaimed");
        let path = dir.path().join("file");
        fs::write(&path, b"contents").unwrap();
        let claim = Claim::take(&path, Kind::File, Force::No).unwrap();
        // Such a process has a copy of each descriptor.
        let copy = claim.file.try_clone().unwrap();
        let refused = Claim::take(&path, Kind::File, Force::No).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InUse);
        drop(claim);
        Claim::take(&path, Kind::File, Force::No).unwrap();
        drop(copy);
    }
}
