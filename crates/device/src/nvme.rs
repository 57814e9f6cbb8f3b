//! The health log of NVMe devices, as the device itself keeps it.
//!
//! An admin command reads it, which the system allows only to privileged callers. The caller
//! interprets the 512 bytes by the NVM Express Base Specification, SMART / Health Information.
#![expect(unsafe_code, reason = "an ioctl call")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Bytes of the health log.
pub const NVME_HEALTH_BYTES: usize = 512;

// `_IOWR('N', 0x41, struct nvme_passthru_cmd)` of <linux/nvme_ioctl.h>.
const NVME_IOCTL_ADMIN_CMD: u64 = 0xc048_4e41;
const GET_LOG_PAGE: u8 = 0x02;
const HEALTH_LOG: u32 = 0x02;
/// The controller as a whole.
const ALL_NAMESPACES: u32 = u32::MAX;

/// `struct nvme_passthru_cmd`.
#[repr(C)]
#[derive(Default)]
struct PassthroughCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    dwords_2_and_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_length: u32,
    data_length: u32,
    dwords_10_to_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

const _: () = assert!(size_of::<PassthroughCommand>() == 72);

/// The health log of the NVMe device that `file` is a namespace or the controller of.
///
/// # Errors
/// It is no such device, the caller may not, or the device refuses. May wait as long as the system
/// waits for the device.
pub fn nvme_health_log(file: &File) -> io::Result<[u8; NVME_HEALTH_BYTES]> {
    let mut page = [0; NVME_HEALTH_BYTES];
    // The length is in dwords, less one.
    let dwords = (NVME_HEALTH_BYTES / 4 - 1) as u32;
    let mut command = PassthroughCommand {
        opcode: GET_LOG_PAGE,
        namespace: ALL_NAMESPACES,
        address: page.as_mut_ptr() as u64,
        data_length: NVME_HEALTH_BYTES as u32,
        dwords_10_to_15: [HEALTH_LOG | dwords << 16, 0, 0, 0, 0, 0],
        ..PassthroughCommand::default()
    };
    // SAFETY: the request reads and writes one command of this layout, and through it at most
    // `data_length` bytes at `address`, which is `page`; both outlive the call.
    let status =
        unsafe { libc::ioctl(file.as_raw_fd(), NVME_IOCTL_ADMIN_CMD as _, &raw mut command) };
    match status {
        0 => Ok(page),
        status if status < 0 => Err(io::Error::last_os_error()),
        status => Err(io::Error::other(format!("the device refuses: NVMe status {status:#x}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_nvme_device_has_no_health_log() {
        let file = File::open("/proc/self/exe").unwrap();
        let error = nvme_health_log(&file).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTTY), "{error}");
    }
}
