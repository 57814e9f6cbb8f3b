//! Whether the contents of a file or a block device lie in memory. A transfer is then a copy, which
//! is done at once.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::system;

// Magics of <linux/magic.h>.
const TMPFS: i64 = 0x0102_1994;
const RAMFS: i64 = 0x8584_58f6;

/// Whether the bytes of `file`, a regular file or a block device, lie in memory: on a memory file
/// system, or on persistent memory or a block device in RAM, whatever the file system there.
/// `false` where the system does not tell.
pub(crate) fn is_memory(file: &File) -> bool {
    let Ok(status) = file.metadata() else { return false };
    let device = if status.file_type().is_block_device() {
        status.rdev()
    } else {
        if matches!(system::file_system_magic(file.as_raw_fd()), Some(TMPFS | RAMFS)) {
            return true;
        }
        status.dev()
    };
    let entry = format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device));
    fs::canonicalize(entry).is_ok_and(|entry| is_in_memory(&entry))
}

/// Whether `entry` is what the kernel's device tree has of a block device in memory, or of a part
/// of one.
fn is_in_memory(entry: &Path) -> bool {
    let parts = entry.iter().rev().take(2);
    let mut named = parts.filter(|part| part.to_str().is_some_and(names_memory));
    // What compressed memory has been written out to lies elsewhere.
    named.next().is_some() && !writes_out(entry)
}

/// Persistent memory, compressed memory and plain memory, each numbered.
fn names_memory(name: &str) -> bool {
    ["pmem", "zram", "ram"]
        .iter()
        .filter_map(|kind| name.strip_prefix(kind))
        .any(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

fn writes_out(entry: &Path) -> bool {
    let backing = fs::read_to_string(entry.join(OsStr::new("backing_dev")));
    backing.is_ok_and(|backing| backing.trim() != "none")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;

    #[test]
    fn block_devices_in_memory_are_known_by_their_names() {
        let tree = Path::new("/sys/devices");
        for name in [
            "virtual/block/zram0",
            "virtual/block/ram12",
            "LNXSYSTM:00/ndbus0/region0/namespace0.0/block/pmem0",
            "LNXSYSTM:00/ndbus0/region0/namespace0.0/block/pmem0/pmem0p1",
            "LNXSYSTM:00/ndbus0/region0/btt0.0/block/pmem0s",
        ] {
            assert!(is_in_memory(&tree.join(name)), "{name}");
        }
        for name in [
            "virtual/block/loop0",
            "virtual/block/dm-0",
            "virtual/block/md0",
            "virtual/block/ramdisk",
            "pci0000:00/nvme/nvme0/nvme0n1",
            "pci0000:00/0000:00:02.0/virtio1/block/vda/vda1",
            "virtual/block/zram0/of/sda",
        ] {
            assert!(!is_in_memory(&tree.join(name)), "{name}");
        }
    }

    #[test]
    fn compressed_memory_that_is_written_out_is_not_memory() {
        let dir = TempDir::new("residence");
        let device = dir.path().join("zram0");
        fs::create_dir(&device).unwrap();
        for (backing, memory) in [("none\n", true), ("/dev/sdb\n", false)] {
            fs::write(device.join("backing_dev"), backing).unwrap();
            assert_eq!(is_in_memory(&device), memory, "{backing}");
        }
    }

    #[test]
    fn files_of_a_memory_file_system_are_memory_and_those_of_a_process_are_not() {
        let file = File::open("/proc/self/status").unwrap();
        assert!(!is_memory(&file), "proc has no bytes");
        let path = format!("/dev/shm/entresol-residence-{}", std::process::id());
        let Ok(file) = File::create(&path) else {
            println!("the rest is skipped: no /dev/shm here");
            return;
        };
        fs::remove_file(&path).unwrap();
        assert!(is_memory(&file));
    }
}
