//! What only block devices have: sizes from the kernel, and discards.
#![expect(unsafe_code, reason = "ioctl calls")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::device::Geometry;
use crate::error::{Error, Result};

// Request numbers of <linux/fs.h>; BLKSSZGET and BLKPBSZGET are of the old kind without a size.
const BLKDISCARD: u64 = 0x1277;
const BLKSSZGET: u64 = 0x1268;
const BLKPBSZGET: u64 = 0x127b;
const BLKGETSIZE64: u64 = 0x8008_1272;

/// Size in bytes and geometry: logical block as sector, physical block (4096 at least) as unit.
pub(crate) fn sizes(name: &str, file: &File) -> Result<(u64, Geometry)> {
    let failed = |what: &'static str| {
        move |source| Error::io(format!("{name}: cannot read its {what}"), source)
    };
    let mut size = 0_u64;
    // SAFETY: this request writes one u64.
    unsafe { request(file, BLKGETSIZE64, (&raw mut size).cast()) }.map_err(failed("size"))?;
    let mut sector: libc::c_int = 0;
    // SAFETY: this request writes one int.
    unsafe { request(file, BLKSSZGET, (&raw mut sector).cast()) }
        .map_err(failed("logical block size"))?;
    let mut physical: libc::c_uint = 0;
    // SAFETY: this request writes one unsigned int.
    unsafe { request(file, BLKPBSZGET, (&raw mut physical).cast()) }
        .map_err(failed("physical block size"))?;
    let sector_bytes = u32::try_from(sector).unwrap_or(512).max(512);
    let sync_unit_bytes = physical.max(sector_bytes).max(4096);
    Ok((size, Geometry { capacity_bytes: size, sector_bytes, sync_unit_bytes }))
}

/// Tells the device that a range is unused. Devices that cannot be told are left alone.
pub(crate) fn discard(file: &File, offset: u64, length: u64) {
    let mut range = [offset, length];
    // SAFETY: this request reads two u64.
    let _unsupported = unsafe { request(file, BLKDISCARD, range.as_mut_ptr().cast()) };
}

/// # Safety
/// `argument` is what request `number` reads or writes.
unsafe fn request(file: &File, number: u64, argument: *mut libc::c_void) -> io::Result<()> {
    // SAFETY: the caller vouches for the argument; the descriptor is open.
    let failed = unsafe { libc::ioctl(file.as_raw_fd(), number as _, argument) } < 0;
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}
