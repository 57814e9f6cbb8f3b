//! Which piece of hardware a path stands for.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What somebody types to allow that all on the target at `path` is lost: its serial number, or the
/// path where it has none.
pub fn token(path: &Path) -> String {
    serial(path).unwrap_or_else(|| path.display().to_string())
}

/// Whether `given` is that token. A path does not stand for what has a serial number: paths move
/// from one piece of hardware to another when a machine starts.
pub(crate) fn names(given: &str, path: &Path) -> bool {
    match serial(path) {
        Some(serial) => given == serial,
        None => {
            let same = |a: &Path| fs::canonicalize(a).ok();
            given == path.as_os_str()
                || (same(Path::new(given)).is_some() && same(Path::new(given)) == same(path))
        }
    }
}

/// A number for the target at `path` that stays when the machine starts anew.
pub(crate) fn identity(path: &Path) -> u32 {
    let whole = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = match serial(path) {
        // Partitions share the serial number of their device.
        Some(serial) => format!("{serial} {}", partition(&whole).unwrap_or_default()),
        None => whole.display().to_string(),
    };
    crc32c::crc32c(name.as_bytes())
}

/// The serial number of the block device at `path`, or of the one that it is a partition of; with a
/// colon and the namespace's number where that is not the drive's first.
pub fn serial(path: &Path) -> Option<String> {
    let system = system_directory(path)?;
    let whole =
        if system.join("partition").exists() { system.parent()?.to_owned() } else { system };
    let files = ["serial", "device/serial"];
    let told = files.iter().find_map(|name| fs::read_to_string(whole.join(name)).ok());
    let told = told.or_else(|| from_page(&fs::read(whole.join("device/vpd_pg80")).ok()?));
    let serial = told.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())?;
    Some(of_namespace(serial, fs::read_to_string(whole.join("nsid")).ok().as_deref()))
}

/// All namespaces of an NVMe drive have its serial number: those but the first get their own.
fn of_namespace(serial: String, number: Option<&str>) -> String {
    match number.map(str::trim) {
        None | Some("" | "1") => serial,
        Some(number) => format!("{serial}:{number}"),
    }
}

/// Where the system tells of the block device at `path`.
pub(crate) fn system_directory(path: &Path) -> Option<PathBuf> {
    let status = fs::metadata(path).ok()?;
    if !status.file_type().is_block_device() {
        return None;
    }
    directory_of(status.rdev())
}

/// Where the system tells of the block device that the file at `path` lies on, or that it is.
pub(crate) fn holding_directory(path: &Path) -> Option<PathBuf> {
    let status = fs::metadata(path).ok()?;
    match status.file_type().is_block_device() {
        true => directory_of(status.rdev()),
        false => directory_of(status.dev()),
    }
}

fn directory_of(device: u64) -> Option<PathBuf> {
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()
}

fn partition(path: &Path) -> Option<String> {
    let text = fs::read_to_string(system_directory(path)?.join("partition")).ok()?;
    Some(text.trim().to_owned())
}

/// The unit serial number page of SCSI: four bytes of head, of which the last two are the length.
fn from_page(page: &[u8]) -> Option<String> {
    let length = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    let text = page.get(4..(4 + length).min(page.len()))?;
    Some(String::from_utf8_lossy(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_serial_number_is_named_by_its_path_however_written() {
        let path = Path::new("/proc/self/exe");
        assert_eq!(serial(path), None);
        assert!(names("/proc/self/exe", path) && names("/proc/../proc/self/exe", path));
        assert!(!names("/proc/self/status", path) && !names("", path));
        assert_eq!(identity(path), identity(&fs::canonicalize(path).unwrap()));
    }

    #[test]
    fn namespaces_of_a_drive_have_serial_numbers_of_their_own() {
        let of = |number| of_namespace("S4EV".to_owned(), number);
        assert_eq!([of(None), of(Some("1\n"))], ["S4EV", "S4EV"]);
        assert_eq!([of(Some("2\n")), of(Some("12"))], ["S4EV:2", "S4EV:12"]);
    }

    #[test]
    fn serial_number_pages_are_read_to_their_length() {
        let page = [0, 0x80, 0, 5, b' ', b'S', b'N', b'1', b' ', b'x'];
        assert_eq!(from_page(&page).as_deref(), Some(" SN1 "));
        assert_eq!(from_page(&[0, 0x80, 0, 9, b'A']).as_deref(), Some("A"));
        assert_eq!(from_page(&[0, 0x80]), None);
    }
}
