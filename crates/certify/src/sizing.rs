//! From the load of a namespace on a node to the load of the drives under test.

mod fit;

pub use fit::{Fit, FitError, fit, predict};

use std::fmt;

use crate::derive::Step;

/// Reads and writes of one 1x drive, as ACT's authors defined it.
pub const STANDARD_READS: u32 = 2000;
/// See [`STANDARD_READS`].
pub const STANDARD_WRITES: u32 = 1000;

/// How a namespace is spread over drives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizing {
    /// Storage reads a second of the namespace, on all nodes counted.
    pub reads: f64,
    /// Storage writes a second of the namespace, on all nodes counted.
    pub writes: f64,
    /// Nodes that the rates were counted on.
    pub nodes: u32,
    /// Drives that the namespace is spread over on a node.
    pub drives_per_namespace: u32,
    /// Namespaces with this load that share a drive.
    pub namespaces_per_drive: u32,
    /// Times this load.
    pub load: f64,
    /// Drives under test.
    pub devices: u32,
}

/// What the drives under test must do, all together.
#[derive(Debug, Clone, PartialEq)]
pub struct Requests {
    /// Reads a second.
    pub reads: u32,
    /// Writes a second.
    pub writes: u32,
    /// How they come about.
    pub steps: Vec<Step>,
}

/// Why there are no requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SizingError {
    /// A count or factor is 0, negative or not a number; which.
    NotAboveZero(&'static str),
    /// A rate is negative, not a number, or does not fit into 32 bits.
    Rate,
}

impl Sizing {
    /// The requests.
    ///
    /// # Errors
    /// See [`SizingError`].
    pub fn requests(&self) -> Result<Requests, SizingError> {
        let counts = [
            ("nodes", f64::from(self.nodes)),
            ("drives per namespace", f64::from(self.drives_per_namespace)),
            ("namespaces per drive", f64::from(self.namespaces_per_drive)),
            ("load", self.load),
            ("devices", f64::from(self.devices)),
        ];
        let wrong = counts.iter().find(|(_, count)| !count.is_finite() || *count <= 0.0);
        if let Some((name, _)) = wrong {
            return Err(SizingError::NotAboveZero(name));
        }
        let total = self.reads + self.writes;
        if !(self.reads >= 0.0 && self.writes >= 0.0 && total.is_finite()) {
            return Err(SizingError::Rate);
        }
        let ratio = |part: f64| if total > 0.0 { part / total } else { 0.0 };
        let (read_ratio, write_ratio) = (ratio(self.reads), ratio(self.writes));
        let per_drive = total / f64::from(self.nodes) / f64::from(self.drives_per_namespace)
            * f64::from(self.namespaces_per_drive)
            * self.load;
        let tested = per_drive * f64::from(self.devices);
        let whole = |rate: f64| {
            let rounded = rate.round();
            (rounded <= f64::from(u32::MAX)).then_some(rounded as u32).ok_or(SizingError::Rate)
        };
        Ok(Requests {
            reads: whole(read_ratio * tested)?,
            writes: whole(write_ratio * tested)?,
            steps: self.steps([total, read_ratio, write_ratio, per_drive, tested]),
        })
    }

    fn steps(&self, figures: [f64; 5]) -> Vec<Step> {
        let [total, read_ratio, write_ratio, per_drive, tested] = figures;
        let (reads, writes) = (self.reads, self.writes);
        let step = |name, formula, value, unit| Step { name, formula, value, unit };
        vec![
            step(
                "storage operations",
                format!("{reads:.1} reads + {writes:.1} writes"),
                total,
                "ops/s",
            ),
            step("read ratio", format!("{reads:.1} / {total:.1}"), read_ratio, ""),
            step("write ratio", format!("{writes:.1} / {total:.1}"), write_ratio, ""),
            step(
                "operations of a drive",
                format!(
                    "{total:.1} / {} nodes / {} drives per namespace x {} namespaces per drive x \
                     {} load",
                    self.nodes, self.drives_per_namespace, self.namespaces_per_drive, self.load
                ),
                per_drive,
                "ops/s",
            ),
            step(
                "read-reqs-per-sec",
                format!("{read_ratio:.4} x {per_drive:.1} x {} devices", self.devices),
                (read_ratio * tested).round(),
                "reads/s",
            ),
            step(
                "write-reqs-per-sec",
                format!("{write_ratio:.4} x {per_drive:.1} x {} devices", self.devices),
                (write_ratio * tested).round(),
                "writes/s",
            ),
        ]
    }
}

impl fmt::Display for SizingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SizingError::NotAboveZero(name) => write!(f, "the {name} must be more than 0"),
            SizingError::Rate => {
                f.write_str("reads and writes a second must be from 0 to 4294967295 in the end")
            }
        }
    }
}

impl std::error::Error for SizingError {}
