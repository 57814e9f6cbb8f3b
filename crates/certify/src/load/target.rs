//! The devices and files under test, opened with care.
//!
//! A target is claimed and checked before anything is written. A target that is mounted,
//! partitioned, used as swap, part of another device, or that carries the signature of another
//! program is refused, unless the caller names its serial number (or its path, if it has none).
//!
//! Transfers of the blocking engine go through a descriptor of their own, opened as ACT does.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use entresol_device::{
    Access, Device, FileDevice, FileOptions, Force, Growth, IoBuffer, IoEngine, PlainFile,
    Preparation, Progress,
};
use nix::fcntl::OFlag;

use crate::load::content::OWN_MAGIC;
use crate::load::error::{Error, Result};
use crate::load::{foreign, serial};

/// An open device or file.
pub struct Target {
    name: String,
    path: Option<PathBuf>,
    size_bytes: u64,
    transfer_bytes_min: u32,
    identity: u32,
    blocking: Option<File>,
    device: Option<Arc<dyn Device>>,
    /// Keeps others from a file that no device of ours has claimed.
    _claim: Option<PlainFile>,
}

/// How targets are opened.
#[derive(Debug, Clone)]
pub struct TargetOptions {
    /// As ACT opens them, or in a better way.
    pub manner: Manner,
    /// Not 0: targets are files of so many MiB.
    pub file_mbytes: u32,
    /// Whether blocking writes are on the medium when they return (`O_DSYNC`).
    pub durability: Durability,
    /// Serial numbers, or paths of what has none, of targets whose contents may be lost whatever
    /// they are.
    pub destroy: Vec<String>,
}

/// As ACT opens targets, or in a better way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Block devices only; files go through the page cache.
    Compatible,
    /// Files are transferred to directly.
    Strict,
}

/// Whether a write is on the medium when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It is (`O_DSYNC`).
    Durable,
    /// It may be in the device's memory.
    Flushed,
}

impl Target {
    /// Opens the device or file `name`. `report` hears how far the making of a file is.
    pub fn open(
        name: &str,
        options: &TargetOptions,
        report: &mut dyn FnMut(Progress),
    ) -> Result<Target> {
        match options.manner {
            Manner::Compatible if options.file_mbytes > 0 => Target::open_cached(name, options),
            _ => Target::open_claimed(name, options, report),
        }
    }

    /// A target on a device of the caller's; only the ring engine can load it.
    pub fn of(device: Arc<dyn Device>) -> Target {
        let geometry = device.geometry();
        let name = device.name();
        Target {
            identity: crc32c::crc32c(name.as_bytes()),
            name,
            path: None,
            size_bytes: geometry.capacity_bytes,
            transfer_bytes_min: geometry.sector_bytes,
            blocking: None,
            device: Some(device),
            _claim: None,
        }
    }

    /// As configured.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is in the file system.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The shortest transfer, bytes.
    pub fn transfer_bytes_min(&self) -> u32 {
        self.transfer_bytes_min
    }

    /// What descriptions of its contents name it by: the same in each run.
    pub fn identity(&self) -> u32 {
        self.identity
    }

    /// Bytes, those behind the last whole 4 KiB included.
    pub(crate) fn whole_bytes(&self) -> u64 {
        self.blocking.as_ref().and_then(|file| size_of(&self.name, file).ok()).map_or(
            self.size_bytes,
            |whole| match self.is_block_device() {
                true => whole,
                // A larger file is used as far as was asked.
                false => self.size_bytes,
            },
        )
    }

    fn is_block_device(&self) -> bool {
        let status = self.path.as_ref().and_then(|path| fs::metadata(path).ok());
        status.is_some_and(|status| status.file_type().is_block_device())
    }

    /// How many blocks of `bytes` it has.
    pub fn blocks(&self, bytes: u32) -> u64 {
        self.size_bytes.checked_div(u64::from(bytes)).unwrap_or_default()
    }

    /// The line of discovery of a data device, as ACT prints it.
    pub fn describe_blocks(&self, block_bytes: u32) -> String {
        format!(
            "{} size = {} bytes, {} large blocks, minimum IO size = {} bytes",
            self.name,
            self.size_bytes,
            self.blocks(block_bytes),
            self.transfer_bytes_min
        )
    }

    /// The line of discovery of an index device, as ACT prints it.
    pub fn describe(&self) -> String {
        format!("{} size = {} bytes", self.name, self.size_bytes)
    }

    /// For blocking transfers.
    pub(crate) fn blocking(&self) -> Option<&File> {
        self.blocking.as_ref()
    }

    /// For transfers through queues.
    pub(crate) fn device(&self) -> Option<&dyn Device> {
        self.device.as_deref()
    }

    fn open_claimed(
        name: &str,
        options: &TargetOptions,
        report: &mut dyn FnMut(Progress),
    ) -> Result<Target> {
        let path = Path::new(name);
        if options.manner == Manner::Compatible || options.file_mbytes == 0 {
            check_kind(name, options.manner)?;
        }
        let force = options.force_of(path);
        let capacity_bytes = match options.file_mbytes {
            0 => None,
            mbytes => Some(u64::from(mbytes) << 20),
        };
        let file_options = FileOptions { makes: true, capacity_bytes, ..file_options(force) };
        let device = FileDevice::open_with_progress(path, &file_options, report)
            .map_err(|error| refused(path, &error))?;
        if options.manner == Manner::Strict && force == Force::No && device.is_file() {
            let known = 0..device.geometry().capacity_bytes.min(foreign::KNOWN_BYTES);
            let mut read = |offset, bytes: &mut [u8]| device.read_at(offset, bytes);
            refuse_somebodys(path, foreign::somebodys(known, &mut read))?;
        }
        let mut flags = OFlag::O_DIRECT;
        if options.durability == Durability::Durable {
            flags |= OFlag::O_DSYNC;
        }
        let blocking = open_blocking(name, flags)?;
        let size_bytes = match options.manner {
            // All of it, whatever the alignment of its end.
            Manner::Compatible => size_of(name, &blocking)?,
            Manner::Strict => device.geometry().capacity_bytes,
        };
        let transfer_bytes_min = match options.manner {
            Manner::Compatible => shortest_read(name, &blocking)?,
            Manner::Strict => device.geometry().sector_bytes,
        };
        Ok(Target {
            name: name.to_owned(),
            path: Some(path.to_owned()),
            size_bytes,
            transfer_bytes_min,
            identity: serial::identity(path),
            blocking: Some(blocking),
            device: Some(Arc::new(device)),
            _claim: None,
        })
    }

    /// A file through the page cache, made at its size, or cut to it: what is somebody's is not.
    fn open_cached(name: &str, options: &TargetOptions) -> Result<Target> {
        let path = Path::new(name);
        let size_bytes = u64::from(options.file_mbytes) << 20;
        let mut claim = None;
        if fs::metadata(path).is_ok_and(|there| there.is_file() && there.len() > 0) {
            claim = Some(claim_plain(path, size_bytes, options.force_of(path))?);
        }
        let mut open = OpenOptions::new();
        open.read(true).write(true).create(true).truncate(false).mode(0o600);
        let failed = |error: std::io::Error| Error::Open {
            device: name.to_owned(),
            errno: error.raw_os_error().unwrap_or_default(),
        };
        let file = open.open(name).map_err(failed)?;
        file.set_len(size_bytes).map_err(failed)?;
        let claim = match claim {
            Some(claim) => claim,
            // What was empty had nothing to lose, and could not be claimed.
            None => PlainFile::open(path, Access::ReadWrite, Force::Yes)
                .map_err(|error| refused(path, &error))?,
        };
        Ok(Target {
            name: name.to_owned(),
            path: Some(path.to_owned()),
            size_bytes,
            transfer_bytes_min: shortest_read(name, &file)?,
            identity: serial::identity(path),
            blocking: Some(file),
            device: None,
            _claim: Some(claim),
        })
    }
}

impl TargetOptions {
    /// Whether what is at `path` may be lost.
    fn force_of(&self, path: &Path) -> Force {
        match self.destroy.iter().any(|given| serial::names(given, path)) {
            true => Force::Yes,
            false => Force::No,
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({}, {} bytes)", self.name, self.size_bytes)
    }
}

/// Whether `name` is something that can be opened: a block device, or a file where those are good.
fn check_kind(name: &str, manner: Manner) -> Result<()> {
    let status = fs::metadata(name).map_err(|error| Error::Open {
        device: name.to_owned(),
        errno: error.raw_os_error().unwrap_or_default(),
    })?;
    let kind = status.file_type();
    let good = kind.is_block_device() || (kind.is_file() && manner == Manner::Strict);
    if good { Ok(()) } else { Err(Error::Size { device: name.to_owned() }) }
}

fn open_blocking(name: &str, flags: OFlag) -> Result<File> {
    let mut open = OpenOptions::new();
    open.read(true).write(true);
    let direct = open.custom_flags(flags.bits()).open(name);
    let opened = match direct {
        // A memory file system knows no direct transfers.
        Err(error) if error.raw_os_error() == Some(nix::libc::EINVAL) => {
            open.custom_flags((flags - OFlag::O_DIRECT).bits()).open(name)
        }
        opened => opened,
    };
    opened.map_err(|error| Error::Open {
        device: name.to_owned(),
        errno: error.raw_os_error().unwrap_or_default(),
    })
}

fn size_of(name: &str, mut file: &File) -> Result<u64> {
    file.seek(SeekFrom::End(0)).map_err(|_| Error::Size { device: name.to_owned() })
}

/// The shortest of the usual lengths that can be read at the beginning.
fn shortest_read(name: &str, file: &File) -> Result<u32> {
    let mut memory = IoBuffer::aligned(4096);
    let readable = [512, 1024, 2048, 4096]
        .into_iter()
        .find(|&length| file.read_exact_at(&mut memory[..length as usize], 0).is_ok());
    readable.ok_or_else(|| Error::Unreadable { device: name.to_owned() })
}

fn refused(path: &Path, error: &entresol_device::Error) -> Error {
    let advice = match error.kind() {
        entresol_device::ErrorKind::Foreign => advice(path),
        _ => String::new(),
    };
    Error::Refused(format!("{error}{advice}"))
}

fn advice(path: &Path) -> String {
    format!(". If all that is on it may be lost, say so with --destroy {}", serial::token(path))
}

/// How a target is opened that holds nothing of somebody else's, or may lose it.
fn file_options(force: Force) -> FileOptions {
    FileOptions {
        makes: false,
        growth: Growth::Never,
        capacity_bytes: None,
        preparation: Preparation::Written,
        force,
        io: IoEngine::Auto,
        own_magics: vec![OWN_MAGIC.to_vec()],
        made: None,
    }
}

/// Claims a file that is to have `size_bytes`, unless it is somebody's: by a signature, at its
/// beginning, or where it is cut.
fn claim_plain(path: &Path, size_bytes: u64, force: Force) -> Result<PlainFile> {
    const SIGNED_BYTES_MIN: u64 = 4096;
    let failed = |error: entresol_device::Error| refused(path, &error);
    if fs::metadata(path).is_ok_and(|there| there.len() >= SIGNED_BYTES_MIN) {
        drop(FileDevice::open(path, &file_options(force)).map_err(failed)?);
    }
    let claim = PlainFile::open(path, Access::ReadWrite, force).map_err(failed)?;
    if force == Force::Yes {
        return Ok(claim);
    }
    let length = claim.bytes();
    let mut read = |offset, bytes: &mut [u8]| claim.read_at(offset, bytes);
    let known = 0..length.min(foreign::KNOWN_BYTES);
    refuse_somebodys(path, foreign::somebodys(known, &mut read))?;
    let cut = size_bytes.min(length)..length;
    refuse_somebodys(path, foreign::somebodys(cut, &mut read))?;
    Ok(claim)
}

/// A file is refused if it holds anything that no test left there.
fn refuse_somebodys(path: &Path, found: entresol_device::Result<Option<u64>>) -> Result<()> {
    let Some(offset) = found.map_err(|error| refused(path, &error))? else {
        return Ok(());
    };
    Err(Error::Refused(format!(
        "{} is a file with contents of its own, at offset {offset}; name another{}",
        path.display(),
        advice(path)
    )))
}
