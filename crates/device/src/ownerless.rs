//! Files of shared memory that outlive their process on purpose, and whose owner is gone: a store
//! that was killed and then deleted leaves its write buffers this way.
//!
//! This module names them and does not remove them. A person who removes them must be sure that the
//! owner is gone: a store whose files are only not mounted looks the same, and the memory holds its
//! last writes.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::place::Place;

/// A file of shared memory that no process has open and whose owner's files are not all where they
/// were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownerless {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// What of the owner is not there any more, or is another file by now.
    pub missing: PathBuf,
}

/// Those in `directory`, by name. `owner` tells from a file's name and its first `header_bytes`
/// where its owner's files are; `None` if it is not one. What cannot be read is passed over.
pub fn ownerless(
    directory: &Path,
    header_bytes: usize,
    owner: impl Fn(&str, &[u8]) -> Option<Vec<Place>>,
) -> Vec<Ownerless> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| examine(&entry.path(), header_bytes, &owner));
    let mut found = found.collect::<Vec<_>>();
    if !found.is_empty() {
        let mapped = mapped_files();
        found.retain(|each| !mapped.contains(&each.path.display().to_string()));
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn examine(
    path: &Path,
    header_bytes: usize,
    owner: &impl Fn(&str, &[u8]) -> Option<Vec<Place>>,
) -> Option<Ownerless> {
    let name = path.file_name()?.to_str()?;
    // Whoever may write there may have put anything there, a pipe too.
    let status = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mut header = vec![0; header_bytes];
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).ok()?;
    let missing = owner(name, &header)?.into_iter().find(is_missing)?.path;
    Some(Ownerless { path: path.to_owned(), bytes: status.len(), missing })
}

/// Whether another file is there by now, or none. Who may not look, or knows no number, is not
/// sure.
fn is_missing(place: &Place) -> bool {
    match Place::at(&place.path) {
        Ok(there) => place.is_known() && !there.is_same(place),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// The files that processes have mapped, as far as this user may know: one text to look into.
fn mapped_files() -> String {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(|process| fs::read_to_string(process.path().join("maps")).ok()).collect()
}
