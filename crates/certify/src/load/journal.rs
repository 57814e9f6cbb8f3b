//! A journal of writes on another device. After a power cut it shows whether every acknowledged
//! write is there.
//!
//! Invariants:
//! 1. The entry that a write begins is durable in the journal before the write is handed to its
//!    device.
//! 2. The entry that a write was acknowledged follows its durable completion. Writes whose entry
//!    the power cut takes are not checked.
//!
//! So all writes on the device are in the journal. Each place that an acknowledged write covers
//! must hold that write, a later write, or a write that was under way beside it. A sync unit may be
//! torn only where a write was under way at the cut.

mod check;
mod format;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::load::error::{Error, Result};
use crate::load::target::Target;

pub use check::{JournalReport, check_journal};
use format::{Entry, Event};

/// The journal of a run.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    gathered: Vec<u8>,
}

impl Journal {
    /// A new journal in `directory`, which is made if it is not there.
    pub(crate) fn create(directory: &Path, run: u64, targets: &[Target]) -> Result<Journal> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // Names sort by age.
        let name = format!("{:020}-{run:016x}.{}", since.as_nanos(), format::EXTENSION);
        let path = directory.join(name);
        let failed = |error| failed("make", &path, &error);
        std::fs::create_dir_all(directory).map_err(failed)?;
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(failed)?;
        let identities: Vec<u32> = targets.iter().map(Target::identity).collect();
        let gathered = format::header(run, &identities);
        let mut journal = Journal { path: path.clone(), file, gathered };
        journal.flush()?;
        let directory = File::open(directory).map_err(failed)?;
        directory.sync_all().map_err(failed)?;
        Ok(journal)
    }

    /// A write will begin, once this is flushed.
    pub(crate) fn begin(&mut self, entry: Entry) {
        self.gathered.extend(entry.encode(Event::Begun));
    }

    /// A write is durable.
    pub(crate) fn acknowledge(&mut self, entry: Entry) {
        self.gathered.extend(entry.encode(Event::Acknowledged));
    }

    /// Makes durable what was gathered.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all(&self.gathered).and_then(|()| self.file.sync_data());
        self.gathered.clear();
        written.map_err(|error| failed("write", &self.path, &error))
    }
}

/// An entry for a write of `length` bytes.
pub(crate) fn entry(device: usize, generation: u32, (offset, length): (u64, usize)) -> Entry {
    // Plans have at most 65535 targets, and transfers at most 8 MiB.
    Entry { device: device as u16, generation, offset, length: length as u32 }
}

fn failed(doing: &str, path: &Path, error: &std::io::Error) -> Error {
    let path = path.display();
    Error::System(format!(
        "cannot {doing} the journal {path}: {error}; give a directory on another device that can \
         be written"
    ))
}

#[cfg(test)]
mod tests;
