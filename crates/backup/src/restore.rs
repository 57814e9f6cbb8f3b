//! Writes the device of a backup into a file.
//!
//! Invariant: the file has its name only once every byte of it was verified and synced. Until then
//! it has another one, which the next restore takes over.

use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

use crate::copy::Progress;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Id, Image, Manifest};
use crate::parallel;
use crate::repository::Repository;
use crate::verify::read;

/// As a server makes its data file.
const OWNER_ALONE: u32 = 0o600;

/// What was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Raw bytes of the segments.
    pub bytes: u64,
    /// Segments that were written.
    pub segments: u64,
}

/// The backup called `id`; the newest where it is `None`.
pub fn find(repository: &Repository, id: Option<&Id>) -> Result<Manifest> {
    let names = repository.backups()?;
    let place = repository.place();
    let refused = |sentence| Error::new(ErrorKind::Refused, sentence);
    let Some(id) = id else {
        let newest = names.last();
        let newest = newest.ok_or_else(|| refused(format!("{place} has no backup")))?;
        if let Some(other) = names.iter().find(|name| name.store != newest.store) {
            return Err(refused(format!(
                "{place} has backups of several stores ({}, {}); name one with --backup ID",
                newest.store, other.store
            )));
        }
        return repository.manifest(newest);
    };
    let name = names.iter().find(|name| name.id == *id).ok_or_else(|| {
        let known: Vec<String> = names.iter().rev().take(3).map(|n| n.id.to_string()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        refused(format!("{place} has no backup {id}; the newest are: {known}"))
    })?;
    repository.manifest(name)
}

/// Writes the device of `manifest` into the new file `target`.
pub fn restore(
    repository: &Repository,
    manifest: &Manifest,
    target: &Path,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Restored> {
    demand_absent(target)?;
    let unfinished = Unfinished::create(target)?;
    let mut told = Progress {
        segments_total: manifest.rows.len() as u64,
        bytes_total: manifest.image.content_bytes(),
        ..Progress::default()
    };
    let failed = |error: std::io::Error| unfinished.failed(error);
    unfinished.file.set_len(manifest.image.device_bytes).map_err(failed)?;
    parallel::each(
        &manifest.rows,
        |row| {
            let raw = read(repository, row)?;
            unfinished.file.write_all_at(&raw, row.segment.at).map_err(failed)
        },
        |row, outcome| {
            outcome?;
            told.segments += 1;
            told.bytes += row.segment.bytes;
            progress(told);
            Ok(())
        },
    )?;
    let Image { superblock, superblock_bytes, .. } = &manifest.image;
    for at in [0, *superblock_bytes] {
        unfinished.file.write_all_at(superblock, at).map_err(failed)?;
    }
    unfinished.file.sync_all().map_err(failed)?;
    unfinished.put_in_place(target)?;
    Ok(Restored { bytes: told.bytes, segments: told.segments })
}

fn demand_absent(target: &Path) -> Result<()> {
    match target.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::failed(format!("cannot look for {}", target.display()), error)),
        Ok(_) => Err(exists(target)),
    }
}

fn exists(target: &Path) -> Error {
    Error::new(
        ErrorKind::Refused,
        format!(
            "{} exists, and a restore overwrites nothing: name another directory, or move it away",
            target.display()
        ),
    )
}

/// A file that is not complete, removed when dropped.
#[derive(Debug)]
struct Unfinished {
    file: File,
    path: PathBuf,
}

impl Unfinished {
    fn create(target: &Path) -> Result<Unfinished> {
        let mut path = target.as_os_str().to_owned();
        path.push(".restoring");
        let path = PathBuf::from(path);
        let failed = |error| Error::failed(format!("cannot write {}", path.display()), error);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            // Another restore may be at it; what it wrote goes only once it is known to be dead.
            .truncate(false)
            .mode(OWNER_ALONE)
            .open(&path)
            .map_err(failed)?;
        file.try_lock().map_err(|error| match error {
            std::fs::TryLockError::WouldBlock => Error::new(
                ErrorKind::Busy,
                format!("{}: another restore is writing it", path.display()),
            ),
            std::fs::TryLockError::Error(error) => failed(error),
        })?;
        // Another may have ended meanwhile: then what is open here is its whole file.
        let (here, there) = (file.metadata().map_err(failed)?, path.symlink_metadata());
        if !there.is_ok_and(|there| (there.dev(), there.ino()) == (here.dev(), here.ino())) {
            return Err(exists(target));
        }
        file.set_len(0).map_err(failed)?;
        file.set_permissions(Permissions::from_mode(OWNER_ALONE)).map_err(failed)?;
        Ok(Unfinished { file, path })
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::failed(format!("cannot write {}", self.path.display()), error)
    }

    /// Gives it its name, which nobody else may have taken meanwhile.
    fn put_in_place(self, target: &Path) -> Result<()> {
        let flags = RenameFlags::RENAME_NOREPLACE;
        match renameat2(AT_FDCWD, &self.path, AT_FDCWD, target, flags) {
            Ok(()) => {}
            Err(nix::errno::Errno::EEXIST) => return Err(exists(target)),
            Err(error) => return Err(self.failed(error.into())),
        }
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| Error::failed(format!("cannot sync {}", folder.display()), error))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After the rename there is none; one that stays is taken over by the next restore.
        drop(std::fs::remove_file(&self.path));
    }
}
