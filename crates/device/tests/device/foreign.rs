//! What belongs to somebody else is refused, and says what it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use entresol_device::{
    Device, ErrorKind, FileDevice, FileOptions, Force, IoBuffer, MemoryDevice, STRIPE_MAGIC,
    StripeDevice, StripeOptions, check_unknown,
};

use crate::place::Place;

const SIZE: usize = 4 << 20;

fn file_with(place: &Place, parts: &[(usize, &[u8])]) -> std::path::PathBuf {
    let mut bytes = vec![0; SIZE];
    for (offset, part) in parts {
        bytes[*offset..offset + part.len()].copy_from_slice(part);
    }
    let path = place.path().join("device");
    fs::write(&path, bytes).unwrap();
    path
}

fn refusal(path: &Path) -> Option<String> {
    match FileDevice::open(path, &FileOptions::default()) {
        Ok(_) => None,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Foreign, "{error}");
            Some(error.to_string())
        }
    }
}

#[test]
fn signatures_of_others_are_refused_by_name() {
    let place = Place::temporary("foreign");
    let raid: &[u8] = &[0xfc, 0x4e, 0x2b, 0xa9];
    let uberblock: &[u8] = &[0x0c, 0xb1, 0xba, 0, 0, 0, 0, 0];
    let bcache: &[u8] = &[
        0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d,
        0x81,
    ];
    let mut partition = [0; 66];
    partition[..16].copy_from_slice(&[0x80, 0, 2, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0, 1, 0]);
    partition[64..].copy_from_slice(&[0x55, 0xaa]);
    for (what, offset, magic) in [
        ("ext4", 1080, &[0x53, 0xef][..]),
        ("XFS", 0, b"XFSB"),
        ("Btrfs", 65600, b"_BHRfS_M"),
        ("swap", 4086, b"SWAPSPACE2"),
        ("LVM", 512, b"LABELONE"),
        ("LUKS", 0, b"LUKS\xba\xbe"),
        ("RAID", 4096, raid),
        ("RAID", SIZE - 65536, raid),
        ("RAID", SIZE - 8192, raid),
        ("MBR", 446, &partition),
        ("GUID", 512, b"EFI PART"),
        ("GUID", SIZE - 512, b"EFI PART"),
        ("NTFS", 3, b"NTFS    "),
        ("exFAT", 3, b"EXFAT   "),
        ("FAT", 54, b"FAT16   "),
        ("FAT", 82, b"FAT32   "),
        ("ISO", 32769, b"CD001"),
        ("bcache", 4120, bcache),
        ("ZFS", 128 << 10, uberblock),
        ("ZFS", SIZE - (128 << 10), uberblock),
        ("stripe", 0, b"ENTRESTR"),
    ] {
        let path = file_with(&place, &[(offset, magic)]);
        let text = refusal(&path).unwrap_or_else(|| panic!("{what} at {offset} was not noticed"));
        assert!(text.contains(what) && text.contains("force"), "{what}: {text}");
        assert!(text.contains(path.to_str().unwrap()), "{text}");
        let forced = FileOptions { force: Force::Yes, ..FileOptions::default() };
        assert_eq!(FileDevice::open(&path, &forced).unwrap().geometry().capacity_bytes, 4 << 20);
    }
}

#[test]
fn zeros_unknown_bytes_and_our_own_are_not_foreign() {
    let place = Place::temporary("not-foreign");
    assert_eq!(refusal(&file_with(&place, &[])), None);
    let boot_mark_alone: &[u8] = &[0x55, 0xaa];
    assert_eq!(refusal(&file_with(&place, &[(510, boot_mark_alone)])), None);
    assert_eq!(refusal(&file_with(&place, &[(0, b"unknown"), (5000, &[0xff; 5000])])), None);
    let own = file_with(&place, &[(0, b"ENTRESOL"), (1080, &[0x53, 0xef]), (512, b"EFI PART")]);
    assert_eq!(refusal(&own), None, "our own superblock stands for all of it");
}

#[test]
fn a_file_with_unknown_contents_is_no_place_for_a_store() {
    let place = Place::temporary("unknown");
    let found = |pieces: &[(usize, &[u8])]| {
        let path = file_with(&place, pieces);
        let device = FileDevice::open(&path, &FileOptions::default()).unwrap();
        check_unknown(&device, 8192).map_err(|error| {
            assert_eq!(error.kind(), ErrorKind::Foreign);
            error.to_string()
        })
    };
    assert_eq!(found(&[]), Ok(()));
    assert_eq!(found(&[(0, b"a root that a crash cut short")]), Ok(()));
    let refused = found(&[(9000, b"a letter")]).unwrap_err();
    assert!(refused.contains("byte 9000") && refused.contains("force"), "{refused}");
    let memory = MemoryDevice::new(SIZE as u64).unwrap();
    let mut letter = IoBuffer::aligned(4096);
    letter.fill(7);
    memory.write_at(8192, &letter).unwrap();
    check_unknown(&memory, 8192).unwrap();
}

#[test]
fn a_stripe_is_not_made_over_files_with_unknown_contents() {
    let place = Place::temporary("unknown-members");
    let open = |force| {
        let open = |path: &PathBuf| {
            let own_magics = vec![STRIPE_MAGIC.to_vec()];
            let options = FileOptions { own_magics, ..FileOptions::default() };
            Arc::new(FileDevice::open(path, &options).unwrap()) as Arc<dyn Device>
        };
        let members = ["one", "two"].map(|name| place.path().join(name));
        for (member, byte) in members.iter().zip([0, 7]) {
            if !member.exists() {
                fs::write(member, vec![byte; SIZE]).unwrap();
            }
        }
        let members = members.iter().map(open).collect();
        StripeDevice::open(
            members,
            StripeOptions { unit_bytes: 64 << 10, force, ..StripeOptions::default() },
        )
        .map(drop)
    };
    let refused = open(Force::No).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Foreign);
    assert!(refused.to_string().contains("two"), "{refused}");
    open(Force::Yes).unwrap();
    open(Force::No).unwrap();
}

#[test]
fn files_of_odd_sizes_are_looked_at_to_their_end() {
    let place = Place::temporary("odd");
    let path = place.path().join("device");
    for size in [4096, 4097, 5000, 70_001, 600_000, 1_000_001] {
        fs::write(&path, vec![0; size]).unwrap();
        assert_eq!(refusal(&path), None, "{size} bytes");
        let device = FileDevice::open(&path, &FileOptions::default()).unwrap();
        assert_eq!(device.geometry().capacity_bytes, (size / 4096 * 4096) as u64);
    }
}

#[test]
fn what_real_tools_make_is_refused() {
    let place = Place::temporary("tools");
    for (tool, arguments, what) in [
        ("mkfs.ext4", &["-q", "-F"][..], "ext4"),
        ("mkswap", &[], "swap"),
        ("mkfs.xfs", &[], "XFS"),
    ] {
        let path = place.path().join(tool);
        fs::write(&path, vec![0; if tool == "mkfs.xfs" { 512 << 20 } else { 8 << 20 }]).unwrap();
        match Command::new(tool).args(arguments).arg(&path).output() {
            Ok(output) if output.status.success() => {
                let text = refusal(&path).unwrap_or_else(|| panic!("{what} was not noticed"));
                assert!(text.contains(what), "{text}");
            }
            _ => println!("skipped: {tool} is not here"),
        }
        fs::remove_file(path).unwrap();
    }
}

/// A loop device over a file, detached when dropped.
struct LoopDevice(String);

impl LoopDevice {
    fn over(path: &Path) -> Option<LoopDevice> {
        let output = Command::new("losetup").args(["--find", "--show"]).arg(path).output().ok()?;
        let name = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && Path::new(&name).exists()).then_some(LoopDevice(name))
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _status = Command::new("losetup").args(["--detach", &self.0]).status();
    }
}

#[test]
fn block_devices_conform_and_are_refused_while_mounted() {
    let place = Place::temporary("loop");
    let path = place.path().join("backing");
    fs::write(&path, vec![0; 32 << 20]).unwrap();
    let Some(block) = LoopDevice::over(&path) else {
        println!("skipped: no loop device can be made here (needs root and losetup)");
        return;
    };
    let smaller = FileOptions { capacity_bytes: Some(16 << 20), ..FileOptions::default() };
    let device = FileDevice::open(&block.0, &smaller).unwrap();
    println!("{}", device.describe());
    assert_eq!(device.geometry().capacity_bytes, 16 << 20, "capacity may be smaller");
    entresol_sim::conformance::check(&device);
    device.discard(0, 8 << 20).unwrap();
    let again = FileDevice::open(&block.0, &smaller).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::InUse, "{again}");
    let zeros = IoBuffer::aligned(16 << 20);
    device.write_at(0, &zeros).unwrap();
    drop(device);
    let larger = FileOptions { capacity_bytes: Some(33 << 20), ..FileOptions::default() };
    let error = FileDevice::open(&block.0, &larger).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    mounted_is_refused(&place, &block);
}

fn mounted_is_refused(place: &Place, block: &LoopDevice) {
    let run = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).status().is_ok_and(|status| status.success())
    };
    let point = place.path().join("mounted");
    fs::create_dir(&point).unwrap();
    let point = point.to_str().unwrap();
    if !run("mkfs.ext4", &["-q", "-F", &block.0]) || !run("mount", &[&block.0, point]) {
        println!("skipped: cannot make or mount a file system here");
        return;
    }
    let refused = FileDevice::open(&block.0, &FileOptions::default()).err();
    assert!(run("umount", &[point]));
    let error = refused.expect("a mounted device is refused");
    assert_eq!(error.kind(), ErrorKind::Foreign, "{error}");
    assert!(error.to_string().contains("is mounted at"), "{error}");
    assert!(refusal(Path::new(&block.0)).is_some_and(|text| text.contains("ext4")));
}
