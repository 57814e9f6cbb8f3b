//! The cache that a command line names: opening it, making it, and the files beside it.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use entresol_device::{Device, FileDevice, FileOptions, Force, boot_identity, on_all_processors};
use entresol_flash::OpenMode;
use entresol_volume::{Adoption, Cache, CacheOptions, Error, Moment, backing};

use crate::failure::{Failure, Outcome};

/// Names a cache.
#[derive(Debug, Clone, Args)]
pub(crate) struct CacheArgs {
    /// The cache: a file or a block device
    #[arg(long, value_name = "PATH")]
    pub(crate) cache: PathBuf,
    /// The socket for administrators of a server on it [default: the cache's path with `.control`]
    #[arg(long, value_name = "SOCK")]
    pub(crate) control: Option<PathBuf>,
}

/// What makes a cache over what is not one, or opens a backing that is in use.
const FORCED_BY: &str = "`entresol volume create` and `entresol volume serve` do, with `--force`";
/// Smallest cache that is made, bytes.
pub(crate) const CAPACITY_MIN: u64 = 16 << 20;
/// Sizes of new caches are multiples of this, bytes.
pub(crate) const CAPACITY_UNIT: u64 = 8 << 20;
/// Longest path of a Unix socket.
const SOCKET_PATH_MAX: usize = 107;
/// Where what belongs to a block device is kept.
const STATE_DIRECTORY: &str = "/var/lib/entresol";

impl CacheArgs {
    /// Whether there is something at the cache's path.
    pub(crate) fn exists(&self) -> bool {
        self.cache.exists()
    }

    /// Where administrators reach a server on it.
    pub(crate) fn control_path(&self) -> PathBuf {
        self.control.clone().unwrap_or_else(|| self.beside("control"))
    }

    /// The socket for administrators that a server opens; none where its path would be too long
    /// and was not asked for.
    pub(crate) fn control_to_open(&self) -> Option<PathBuf> {
        let path = self.control_path();
        let fits = path.as_os_str().len() <= SOCKET_PATH_MAX;
        if !fits && self.control.is_none() {
            say!(
                "entresol: {} is too long for a socket, so there is none for administrators; give \
                 --control with a shorter path",
                path.display()
            );
            return None;
        }
        Some(path)
    }

    /// Opens the cache and its volumes. `capacity` makes one where there is none; `force` opens
    /// backings that are in use, and makes a cache over whatever is there.
    pub(crate) fn open(&self, capacity: Option<u64>, force: Force) -> Outcome<Cache> {
        self.open_as(capacity, force, CacheOptions::default())
    }

    /// Opens the cache; the volume called `name` takes the size that its backing has now.
    pub(crate) fn open_resizing(&self, name: &str, force: Force) -> Outcome<Cache> {
        let options = CacheOptions { resize: vec![name.to_owned()], ..CacheOptions::default() };
        self.open_as(None, force, options)
    }

    /// Opens the cache; one volume takes over a backing as it is now.
    pub(crate) fn open_adopting(&self, adoption: Adoption, force: Force) -> Outcome<Cache> {
        let options = CacheOptions { adopt: Some(adoption), ..CacheOptions::default() };
        self.open_as(None, force, options)
    }

    fn open_as(
        &self,
        capacity: Option<u64>,
        force: Force,
        options: CacheOptions,
    ) -> Outcome<Cache> {
        let opened = self.open_whole(capacity, force, options);
        let cache = opened.map_err(|failure| failure.forced_by(FORCED_BY))?;
        if !cache.unverified().is_empty() {
            say!(
                "entresol: the cache was not closed in order, so nothing tells whether somebody \
                 else wrote to a backing since; if so, stop here, and `entresol volume adopt` it: \
                 {}",
                cache.unverified().join(", ")
            );
        }
        Ok(cache)
    }

    fn open_whole(
        &self,
        capacity: Option<u64>,
        force: Force,
        options: CacheOptions,
    ) -> Outcome<Cache> {
        if capacity.is_none() && !self.exists() {
            return Err(Failure::CannotRun(format!(
                "there is no cache at {}; `entresol volume create NAME --cache {} --backing PATH` \
                 makes one with its first volume",
                self.cache.display(),
                self.cache.display()
            )));
        }
        let device = self.device(capacity, force)?;
        let (noted, told) = (self.clone(), self.clone());
        let options = CacheOptions {
            mode: match (capacity, force) {
                (Some(_), Force::Yes) => OpenMode::OpenOrOverwrite,
                _ => OpenMode::OpenOrCreate,
            },
            identity: random_identity(),
            buffer_directory: Some("/dev/shm".into()),
            boot: boot_identity(),
            open_backing: Box::new(move |name| backing::open(name, force)),
            distrust: Some(Box::new(move |cache, error| write_note(&noted.note(cache), error))),
            distrusted: Box::new(move |cache| told.notes(cache).iter().any(|note| note.exists())),
            parallel: on_all_processors,
            ..options
        };
        let cache = Cache::open(device, options, now())?;
        for note in self.notes(cache.identity()).iter().filter(|note| note.exists()) {
            // Its clean blocks were dropped just now.
            fs::remove_file(note).map_err(|error| {
                Failure::doing(format!("cannot remove {}", note.display()), error)
            })?;
        }
        Ok(cache)
    }

    /// Where it is noted that the clean blocks of a cache are stale: by its identity, in the
    /// directory of the file itself, or in that of the state for a device. By whatever path the
    /// cache is opened next, the note is found.
    fn note(&self, cache: u128) -> PathBuf {
        let real = fs::canonicalize(&self.cache).unwrap_or_else(|_| self.cache.clone());
        let directory = match self.is_device() {
            false => real.parent().unwrap_or(Path::new("/")).to_owned(),
            true => PathBuf::from(STATE_DIRECTORY),
        };
        directory.join(format!("entresol-{cache:032x}.distrusted"))
    }

    /// Where there may be such a note: earlier versions named it by the path that was typed.
    fn notes(&self, cache: u128) -> [PathBuf; 2] {
        [self.note(cache), self.beside("distrusted")]
    }

    fn is_device(&self) -> bool {
        fs::metadata(&self.cache).is_ok_and(|found| found.file_type().is_block_device())
    }

    /// Size of the file that the cache is in; `None` if there is none, or it is a device.
    pub(crate) fn file_bytes(&self) -> Option<u64> {
        let found = fs::metadata(&self.cache).ok()?;
        found.is_file().then_some(found.len())
    }

    fn device(&self, capacity: Option<u64>, force: Force) -> Outcome<Arc<dyn Device>> {
        let is_new = !self.exists();
        let capacity =
            capacity.filter(|_| is_new).map(|bytes| bytes.next_multiple_of(CAPACITY_UNIT));
        let options = FileOptions { capacity_bytes: capacity, force, ..FileOptions::default() };
        Ok(Arc::new(FileDevice::open(&self.cache, &options)?))
    }

    /// A path for what belongs to the cache: beside a file, in the state directory for a device.
    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = match self.is_device() {
            false => self.cache.clone().into_os_string(),
            true => {
                let text = self.cache.display().to_string();
                let flat = text.trim_matches('/').replace('/', "-");
                Path::new(STATE_DIRECTORY).join(flat).into_os_string()
            }
        };
        name.push(".");
        name.push(suffix);
        PathBuf::from(name)
    }
}

/// A backing, so that whoever opens it later finds it from any directory.
pub(crate) fn absolute_backing(backing: &str) -> String {
    if entresol_wire::nbd::Uri::is_likely(backing) {
        return backing.to_owned();
    }
    match std::path::absolute(backing) {
        Ok(path) => path.display().to_string(),
        Err(_) => backing.to_owned(),
    }
}

/// The moment it is: nanoseconds since 1970, which never go back within a process.
pub(crate) fn now() -> Moment {
    static BEGAN: std::sync::OnceLock<(Instant, u64)> = std::sync::OnceLock::new();
    let (began, at) = BEGAN.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (Instant::now(), since.as_nanos() as u64)
    });
    Moment(at + began.elapsed().as_nanos() as u64)
}

/// Notes that the clean blocks of a cache are stale, before anything is written around it.
fn write_note(path: &Path, error: &Error) -> Result<(), String> {
    let write = || -> std::io::Result<()> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        fs::create_dir_all(directory)?;
        let mut file = File::create(path)?;
        writeln!(file, "{error}")?;
        file.sync_all()?;
        File::open(directory)?.sync_all()
    };
    write().map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

fn random_identity() -> u128 {
    let half = || u128::from(RandomState::new().build_hasher().finish());
    half() << 64 | half()
}

#[cfg(test)]
mod tests {
    use entresol_volume::ErrorKind;

    use super::*;
    use crate::scratch::Scratch;

    /// The note lay beside the path that was typed: whoever opened the cache by another one
    /// believed its stale blocks.
    #[test]
    fn a_note_that_a_cache_is_stale_is_found_by_whatever_path_it_is_opened() {
        let scratch = Scratch::below(&std::env::temp_dir(), "entresol-note").unwrap();
        let by = |name: &str| CacheArgs { cache: scratch.path().join(name), control: None };
        let (named, linked, moved) = (by("cache"), by("elsewhere/link"), by("moved"));
        let cache = named.open(Some(CAPACITY_MIN), Force::No).unwrap();
        let identity = cache.identity();
        cache.close(now()).unwrap();
        fs::create_dir(scratch.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(&named.cache, &linked.cache).unwrap();
        let note = named.note(identity);
        for opened in [&linked, &moved] {
            if opened.cache == moved.cache {
                fs::rename(&named.cache, &moved.cache).unwrap();
            }
            write_note(&note, &Error::new(ErrorKind::Io, "the device failed")).unwrap();
            assert_eq!(opened.note(identity), note);
            opened.open(None, Force::No).unwrap().close(now()).unwrap();
            assert!(!note.exists(), "its blocks were dropped");
        }
    }
}
