//! Where a file or block device is. A copy with the same bytes has another place.
//!
//! A place holds for one boot of the machine; later another file may have the same numbers.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Where a file or a block device is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// An absolute path without links that leads there.
    pub path: PathBuf,
    /// The number of the file's file system, or of the block device.
    pub device: u64,
    /// The file's number there; 0 for a block device, and where it is not known.
    pub inode: u64,
    /// When the file was made, nanoseconds since the epoch: numbers are given again. 0: not known.
    pub born_ns: u64,
}

impl Place {
    /// What stands at `path` now.
    pub fn at(path: &Path) -> io::Result<Place> {
        Ok(Place::of(path, &fs::metadata(path)?))
    }

    /// That of what has this status and was opened by `path`.
    pub(crate) fn of(path: &Path, status: &Metadata) -> Place {
        // A name that was taken away meanwhile is told as it was given.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if status.file_type().is_block_device() {
            return Place { path, device: status.rdev(), inode: 0, born_ns: 0 };
        }
        let born = status.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
        let born_ns = born.map_or(0, |born| born.as_nanos() as u64);
        Place { path, device: status.dev(), inode: status.ino(), born_ns }
    }

    /// Whether more than its path is known.
    pub fn is_known(&self) -> bool {
        self.device != 0
    }

    /// Whether both are the same file or block device, by whatever names.
    pub fn is_same(&self, other: &Place) -> bool {
        let number = |place: &Place| (place.device, place.inode, place.born_ns);
        number(self) == number(other)
    }

    /// Whether it is still where its path leads.
    pub fn stands(&self) -> bool {
        Place::at(&self.path).is_ok_and(|there| there.is_same(self))
    }
}

/// What has become of the files under a device since it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ground {
    /// They are where they were.
    Firm,
    /// They are whole, but not where the next opening looks for them: why.
    Moved(String),
    /// What they hold is gone, or will be once the process ends: why.
    Lost(String),
}

impl Ground {
    /// The worse of two.
    pub fn or(self, other: Ground) -> Ground {
        match (self, other) {
            (lost @ Ground::Lost(_), _) | (_, lost @ Ground::Lost(_)) => lost,
            (moved @ Ground::Moved(_), _) | (_, moved @ Ground::Moved(_)) => moved,
            (Ground::Firm, Ground::Firm) => Ground::Firm,
        }
    }

    /// That of the file with this status which was opened by `path` to hold `bytes`.
    pub(crate) fn of(path: &Path, status: &Metadata, bytes: u64) -> Ground {
        let shown = path.display();
        if status.nlink() == 0 {
            return Ground::Lost(format!(
                "{shown} was removed while it was open: what it holds is gone once this process \
                 ends; take a copy of the entries (`entresol export --target`) before you stop it"
            ));
        }
        if status.len() < bytes {
            return Ground::Lost(format!(
                "{shown} was cut from {bytes} to {} bytes while it was open; restore it from a \
                 copy",
                status.len()
            ));
        }
        if Place::of(path, status).stands_at(path) {
            return Ground::Firm;
        }
        Ground::Moved(format!(
            "{shown} is open, but is not there by that name any more: the next start needs it there"
        ))
    }
}

impl Place {
    fn stands_at(&self, path: &Path) -> bool {
        Place::at(path).is_ok_and(|there| there.is_same(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;

    #[test]
    fn a_place_follows_its_file_and_not_its_copies() {
        let dir = TempDir::new("place");
        let [one, copy, moved] = ["one", "copy", "moved"].map(|name| dir.path().join(name));
        fs::write(&one, b"bytes").unwrap();
        fs::copy(&one, &copy).unwrap();
        let place = Place::at(&one).unwrap();
        assert!(place.stands() && !place.is_same(&Place::at(&copy).unwrap()));
        fs::rename(&one, &moved).unwrap();
        assert!(!place.stands() && place.is_same(&Place::at(&moved).unwrap()));
        fs::rename(&copy, &one).unwrap();
        assert!(!place.stands(), "another file by the name");
    }

    #[test]
    fn ground_is_lost_with_the_file_and_with_its_bytes_and_moves_with_its_name() {
        let dir = TempDir::new("ground");
        let [path, moved] = ["file", "moved"].map(|name| dir.path().join(name));
        fs::write(&path, [1; 4096]).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        let ground = || Ground::of(&path, &file.metadata().unwrap(), 4096);
        assert_eq!(ground(), Ground::Firm);
        fs::rename(&path, &moved).unwrap();
        assert!(matches!(ground(), Ground::Moved(_)));
        fs::write(&path, [1; 4096]).unwrap();
        assert!(matches!(ground(), Ground::Moved(_)), "another file by the name");
        file.set_len(100).unwrap();
        assert!(matches!(ground(), Ground::Lost(_)));
        fs::remove_file(&moved).unwrap();
        let Ground::Lost(why) = ground() else { panic!("it was removed") };
        assert!(why.contains("removed"), "{why}");
    }
}
