//! Does a path hold data that belongs to somebody else?
//!
//! A path is refused if it is mounted or otherwise in use by the system, or if its first or last
//! sectors carry the signature of another tool. A path that begins with one of the caller's own
//! magics is the caller's, whatever else it holds: the end of a device may still hold older data.
//!
//! Offsets and magics come from the formats' published descriptions.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::buffer::IoBuffer;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::system;

/// Bytes at the beginning that are looked at: reaches the end of ZFS's first label.
const HEAD_BYTES: u64 = 256 << 10;
/// Bytes at the end that are looked at: reaches the mdraid superblocks and ZFS's last two labels.
const TAIL_BYTES: u64 = 576 << 10;

/// Refuses contents that are neither blank, nor unknown, nor marked by one of `own_magics`.
pub(crate) fn check(path: &Path, file: &File, size: u64, own_magics: &[Vec<u8>]) -> Result<()> {
    let head = read(path, file, 0, size.min(HEAD_BYTES))?;
    if starts_with_one(&head, own_magics) {
        return Ok(());
    }
    let tail_start = size.saturating_sub(TAIL_BYTES) / 4096 * 4096;
    let tail = read(path, file, tail_start, size - tail_start)?;
    let Some((what, offset)) = signature(&head, &tail, size) else { return Ok(()) };
    let detail = format!(
        "{}: holds {what} (found at offset {offset}); force it to overwrite what is there",
        path.display()
    );
    Err(Error::new(ErrorKind::Foreign, detail))
}

/// Whether contents begin with one of `own_magics`.
pub(crate) fn is_own(path: &Path, file: &File, size: u64, own_magics: &[Vec<u8>]) -> Result<bool> {
    Ok(starts_with_one(&read(path, file, 0, size.min(4096))?, own_magics))
}

fn starts_with_one(head: &[u8], own_magics: &[Vec<u8>]) -> bool {
    own_magics.iter().any(|magic| !magic.is_empty() && head.starts_with(magic))
}

/// Bytes of a file that are looked at for contents that nobody here wrote.
const KNOWN_BYTES: u64 = 4 << 20;

/// Refuses a file that holds something, for a caller who found nothing of its own in it and is
/// about to write all over. The bytes before `start` are the caller's own root, which a crash may
/// have cut short. What a used block device was left with is nobody's.
///
/// Errors: `Foreign`, with the first byte that is not zero; those of the device.
pub fn check_unknown(device: &dyn Device, start: u64) -> Result<()> {
    let end = device.geometry().capacity_bytes.min(KNOWN_BYTES);
    if !device.is_file() || start >= end {
        return Ok(());
    }
    let mut bytes = IoBuffer::aligned((end - start) as usize);
    device.read_at(start, &mut bytes)?;
    let Some(at) = bytes.iter().position(|byte| *byte != 0) else { return Ok(()) };
    let detail = format!(
        "{}: is a file with contents of its own, from byte {} at the latest; name another, or \
         force it to overwrite what is there",
        device.name(),
        start + at as u64
    );
    Err(Error::new(ErrorKind::Foreign, detail))
}

/// Refuses what stands at `unfinished`, where the file of `path` is about to be made, unless it is
/// such as an interrupted making leaves: nothing but zeros, by what stands at both of its ends.
pub(crate) fn check_unfinished(unfinished: &Path, file: &File, path: &Path) -> Result<()> {
    let failed = |source| Error::io(format!("{}: cannot stat", unfinished.display()), source);
    let size = file.metadata().map_err(failed)?.len();
    let tail = size.saturating_sub(KNOWN_BYTES) / 4096 * 4096;
    for (start, end) in [(0, size.min(KNOWN_BYTES)), (tail, size)] {
        let bytes = read(unfinished, file, start, end - start)?;
        if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
            let detail = format!(
                "{}: is a file with contents of its own, from byte {} at the latest, and where {} \
                 is made before it gets its name; move it away, or force it to overwrite what is \
                 there",
                unfinished.display(),
                start + at as u64,
                path.display()
            );
            return Err(Error::new(ErrorKind::Foreign, detail));
        }
    }
    Ok(())
}

/// Refuses a block device that is mounted, swapped to or part of another, or one of whose
/// partitions is.
pub(crate) fn check_mounted(path: &Path) -> Result<()> {
    let failed = |source| Error::io(format!("{}: cannot stat", path.display()), source);
    let device = fs::metadata(path).map_err(failed)?.rdev();
    let number = format!("{}:{}", libc::major(device), libc::minor(device));
    let Some(what) = usage(&number) else { return Ok(()) };
    let detail = format!("{}: {what}; stop that first, or force it", path.display());
    Err(Error::new(ErrorKind::Foreign, detail))
}

/// What the system uses the block device `number` (major:minor) for.
fn usage(number: &str) -> Option<String> {
    let system = Path::new("/sys/dev/block").join(number);
    let mut numbers = BTreeSet::from([number.to_owned()]);
    for part in fs::read_dir(&system).into_iter().flatten().flatten() {
        if part.path().join("partition").exists()
            && let Ok(number) = fs::read_to_string(part.path().join("dev"))
        {
            numbers.insert(number.trim().to_owned());
        }
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    if let Some(mount) = mounted_at(&mounts, &numbers) {
        return Some(format!("is mounted at {mount}"));
    }
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    for line in swaps.lines().skip(1) {
        let area = line.split_whitespace().next().unwrap_or_default();
        let Ok(status) = fs::metadata(area) else { continue };
        let device = status.rdev();
        if numbers.contains(&format!("{}:{}", libc::major(device), libc::minor(device))) {
            return Some(format!("is swapped to as {area}"));
        }
    }
    for number in &numbers {
        let holders = Path::new("/sys/dev/block").join(number).join("holders");
        if let Some(holder) = fs::read_dir(holders).into_iter().flatten().flatten().next() {
            return Some(format!("is part of {}", holder.file_name().display()));
        }
    }
    None
}

/// Where one of the block devices is mounted, from the lines of a mountinfo file.
fn mounted_at(mounts: &str, numbers: &BTreeSet<String>) -> Option<String> {
    // "36 35 98:0 /root /mount/point options ..."
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(2);
        let number = words.next()?;
        let mount = words.nth(1)?;
        numbers.contains(number).then(|| mount.to_owned())
    })
}

/// A signature: what it shows, where from the beginning, and its bytes.
const SIGNATURES: &[(&str, usize, &[u8])] = &[
    ("an ext2, ext3 or ext4 file system", 1080, &[0x53, 0xef]),
    ("an XFS file system", 0, b"XFSB"),
    ("a Btrfs file system", 65600, b"_BHRfS_M"),
    ("a swap area", 4086, b"SWAPSPACE2"),
    ("a swap area", 4086, b"SWAP-SPACE"),
    ("a swap area", 65526, b"SWAPSPACE2"),
    ("a suspended system", 4086, b"S1SUSPEND"),
    ("a suspended system", 4086, b"LINHIB0001"),
    ("an LVM physical volume", 0, b"LABELONE"),
    ("an LVM physical volume", 512, b"LABELONE"),
    ("an LVM physical volume", 1024, b"LABELONE"),
    ("an LVM physical volume", 1536, b"LABELONE"),
    ("an encrypted LUKS volume", 0, b"LUKS\xba\xbe"),
    ("an encrypted LUKS volume (second header)", 16384, b"SKUL\xba\xbe"),
    ("a member of a Linux software RAID", 0, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("a member of a Linux software RAID", 4096, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("a GUID partition table", 512, b"EFI PART"),
    ("a GUID partition table", 4096, b"EFI PART"),
    ("an NTFS file system", 3, b"NTFS    "),
    ("an exFAT file system", 3, b"EXFAT   "),
    ("a FAT file system", 54, b"FAT12   "),
    ("a FAT file system", 54, b"FAT16   "),
    ("a FAT file system", 82, b"FAT32   "),
    ("an ISO 9660 file system", 32769, b"CD001"),
    ("a UDF file system", 32769, b"BEA01"),
    (
        "a bcache device",
        4120,
        &[
            0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba,
            0x6d, 0x81,
        ],
    ),
    (
        "a bcachefs file system",
        4120,
        &[
            0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d,
            0xf7, 0xef,
        ],
    ),
    ("an F2FS file system", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    ("a SquashFS file system", 0, b"hsqs"),
    ("a JFS file system", 32768, b"JFS1"),
    ("a ReiserFS file system", 65588, b"ReIsEr"),
    ("a ReiserFS file system", 8244, b"ReIsEr"),
    ("a NILFS2 file system", 1024, &[2, 0, 0, 0, 0, 0, 0x34, 0x34]),
    ("a GFS2 file system", 65536, &[0x01, 0x16, 0x19, 0x70]),
    ("an OCFS2 file system", 8192, b"OCFSV2"),
    ("an HFS+ file system", 1024, &[b'H', b'+', 0, 4]),
    ("an HFS+ file system", 1024, &[b'H', b'X', 0, 5]),
    ("an APFS container", 32, b"NXSB"),
    ("an encrypted BitLocker volume", 3, b"-FVE-FS-"),
    ("an Oracle ASM disk", 32, b"ORCLDISK"),
    ("a dm-integrity device", 0, b"integrt\0"),
    ("a VDO device", 0, b"dmvdo001"),
    ("an EROFS file system", 1024, &[0xe2, 0xe1, 0xf5, 0xe0]),
    ("a Ceph BlueStore device", 0, b"bluestore block device"),
    ("an Entresol store", 0, b"ENTRESOL"),
    ("a member of an Entresol stripe", 0, b"ENTRESTR"),
    ("a QEMU disk image", 0, &[b'Q', b'F', b'I', 0xfb]),
];

/// The first signature found, and its offset from the beginning.
fn signature(head: &[u8], tail: &[u8], size: u64) -> Option<(&'static str, u64)> {
    for &(what, offset, magic) in SIGNATURES {
        if head.get(offset..offset + magic.len()) == Some(magic) {
            return Some((what, offset as u64));
        }
    }
    let tail_start = size - tail.len() as u64;
    let in_tail = |offset: u64, magic: &[u8]| {
        let at = offset.checked_sub(tail_start).map(|at| at as usize);
        at.and_then(|at| tail.get(at..at + magic.len())) == Some(magic)
    };
    const RAID: [u8; 4] = [0xfc, 0x4e, 0x2b, 0xa9];
    // Format 0.90: the last 64 KiB boundary with 64 KiB behind it; 1.0: 8 KiB before the end.
    let old = (size & !0xffff).saturating_sub(0x1_0000);
    let new = (size & !0xfff).saturating_sub(8192);
    for offset in [old, new] {
        if in_tail(offset, &RAID) {
            return Some(("a member of a Linux software RAID", offset));
        }
    }
    for sector in [512, 4096] {
        let offset = size.saturating_sub(sector);
        if in_tail(offset, b"EFI PART") {
            return Some(("the backup of a GUID partition table", offset));
        }
    }
    zfs(head, tail, size).or_else(|| boot_record(head))
}

/// ZFS keeps two labels of 256 KiB at either end, each with a ring of uberblocks behind its first
/// 128 KiB; in which of them the current ones are varies.
fn zfs(head: &[u8], tail: &[u8], size: u64) -> Option<(&'static str, u64)> {
    const UBERBLOCK: u64 = 0x00ba_b10c;
    let found = |bytes: &[u8], start: u64| {
        bytes
            .chunks_exact(1024)
            .position(|chunk| {
                let mut word = [0; 8];
                word.copy_from_slice(&chunk[..8]);
                u64::from_le_bytes(word) == UBERBLOCK || u64::from_be_bytes(word) == UBERBLOCK
            })
            .map(|position| ("a member of a ZFS pool", start + position as u64 * 1024))
    };
    found(head, 0).or_else(|| found(tail, size - tail.len() as u64))
}

/// A partition table of the old kind: its mark, four entries that make sense, and one in use. The
/// mark alone is not enough: boot sectors of anything carry it.
fn boot_record(head: &[u8]) -> Option<(&'static str, u64)> {
    let entries = head.get(446..510)?;
    if head.get(510..512)? != [0x55, 0xaa] {
        return None;
    }
    let mut entries = entries.chunks_exact(16);
    let sensible = entries.clone().all(|entry| entry[0] == 0 || entry[0] == 0x80);
    let used = entries.any(|entry| entry[4] != 0 && entry[12..16] != [0; 4]);
    (sensible && used).then_some(("an MBR partition table", 446))
}

fn read(path: &Path, file: &File, offset: u64, length: u64) -> Result<IoBuffer> {
    let mut buffer = IoBuffer::aligned(length as usize);
    if length > 0 {
        // Direct reads come in whole sectors; a file that ends within one is read up to its end.
        read_whole(file, offset, &mut buffer).map_err(|source| {
            let detail = format!("{}: cannot read {length} bytes at {offset}", path.display());
            Error::io(detail, source)
        })?;
    }
    Ok(buffer)
}

fn read_whole(file: &File, offset: u64, buffer: &mut IoBuffer) -> std::io::Result<()> {
    let whole = buffer.len() / 4096 * 4096;
    system::read_fully(file.as_raw_fd(), offset, &mut buffer[..whole])?;
    if whole < buffer.len() {
        let mut last = IoBuffer::aligned(4096);
        let count = system::read_some(file.as_raw_fd(), offset + whole as u64, &mut last)?;
        let rest = (buffer.len() - whole).min(count);
        buffer[whole..whole + rest].copy_from_slice(&last[..rest]);
    }
    Ok(())
}
