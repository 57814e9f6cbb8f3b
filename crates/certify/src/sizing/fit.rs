//! Offsets by calculation, not by trial: the offsets with which a configuration gives a device's
//! load.
//!
//! All writes of a device are large blocks, so their offset comes first. The reads that are not
//! record reads are large blocks. The bytes that are not in these give the size of the small reads.

use std::fmt;

use crate::config::Storage;
use crate::derive::{DeriveError, StorageRates};
use crate::import::DeviceLoad;

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// What all devices together should do.
    pub target: DeviceLoad,
    /// What they would do without the new offsets.
    pub before: DeviceLoad,
    /// What they will do.
    pub after: DeviceLoad,
    /// What could not be fitted, and why; sentences.
    pub remarks: Vec<String>,
}

/// Why nothing could be fitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FitError {
    /// The configuration gives no rates.
    Derive(DeriveError),
    /// The configuration writes no large blocks, or the device wrote nothing.
    NoWrites,
}

/// An offset must be a percentage that means something.
const OFFSET_RANGE: std::ops::RangeInclusive<f64> = 1.0..=1000.0;

/// Sets the offsets of `it` so that each of its devices has the load `target`.
///
/// # Errors
/// See [`FitError`].
pub fn fit(it: &mut Storage, target: &DeviceLoad) -> Result<Fit, FitError> {
    let devices = it.device_names.len().max(1) as f64;
    let target = DeviceLoad {
        reads: target.reads * devices,
        read_bytes: target.read_bytes * devices,
        writes: target.writes * devices,
        written_bytes: target.written_bytes * devices,
    };
    let before = predict(it, &derive(it)?);
    let mut remarks = Vec::new();
    it.paper.lbr_req_offset = 100;
    it.paper.lbw_req_offset = 100;
    let plain = derive(it)?;
    let large_writes = target.writes - f64::from(plain.internal_writes);
    if plain.large_writes <= 0.0 || large_writes <= 0.0 {
        return Err(FitError::NoWrites);
    }
    let mut settle = |offset: &mut u32, percent: f64, what: &str| {
        if OFFSET_RANGE.contains(&percent) {
            *offset = percent.round() as u32;
        } else {
            remarks.push(format!(
                "{what} would have to be {percent:.0} %, which is no correction any more; change \
                 the requests or the sizes"
            ));
        }
    };
    let percent = large_writes / plain.large_writes * 100.0;
    settle(&mut it.paper.lbw_req_offset, percent, "lbw-req-offset");
    if plain.large_reads > 0.0 {
        let large_reads = target.reads - f64::from(plain.internal_reads);
        let percent = large_reads / plain.large_reads * 100.0;
        settle(&mut it.paper.lbr_req_offset, percent, "lbr-req-offset");
    }
    if it.sizes_from_histograms() && plain.internal_reads != 0 {
        it.paper.read_size_offset = 100;
        let rates = derive(it)?;
        let block = f64::from(it.large_block_bytes());
        let small_bytes = target.read_bytes - rates.large_reads * block;
        let percent = small_bytes / f64::from(rates.internal_reads) / rates.read_bytes_mean * 100.0;
        settle(&mut it.paper.read_size_offset, percent, "read-size-offset");
    }
    let after = predict(it, &derive(it)?);
    Ok(Fit { target, before, after, remarks })
}

/// What the devices of `it` do together, in the kernel's counting.
pub fn predict(it: &Storage, rates: &StorageRates) -> DeviceLoad {
    let block = f64::from(it.large_block_bytes());
    let (reads, writes) = (f64::from(rates.internal_reads), f64::from(rates.internal_writes));
    DeviceLoad {
        reads: reads + rates.large_reads,
        read_bytes: reads * rates.read_bytes_mean + rates.large_reads * block,
        writes: writes + rates.large_writes,
        written_bytes: writes * rates.stored_bytes_mean + rates.large_writes * block,
    }
}

fn derive(it: &Storage) -> Result<StorageRates, FitError> {
    it.derive().map_err(FitError::Derive)
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FitError::Derive(error) => write!(f, "the configuration gives no rates: {error}"),
            FitError::NoWrites => f.write_str(
                "there is nothing to fit: the configuration writes no large blocks, or the device \
                 of the capture wrote nothing",
            ),
        }
    }
}

impl std::error::Error for FitError {}
