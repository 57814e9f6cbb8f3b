//! The three units on files and block devices. A unit of several is their concatenation, each cut
//! to the size of the smallest.

use std::path::Path;
use std::sync::Arc;

use entresol_device::{Device, FileDevice, FileOptions, Force, Queue, QueueOptions};
use entresol_workload::oltp::{BLOCK_BYTES, Layout, Request};

use super::ledger::MAGIC;
use super::options::PblioArgs;
use crate::failure::{Failure, Outcome};

/// Open devices, in the order of the units.
pub(super) struct Units {
    devices: Vec<Arc<dyn Device>>,
    /// Each unit's first device and the blocks used of each of its devices.
    pieces: [(usize, u64); 3],
    layout: Layout,
}

/// The part of a request that falls on one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// Which device.
    pub(super) device: usize,
    /// Where on it, bytes.
    pub(super) offset: u64,
    /// The first block, counted within the request.
    pub(super) first: usize,
    /// How many blocks.
    pub(super) blocks: usize,
}

impl Units {
    /// Opens what `args` name. Refuses what holds somebody else's data unless forced.
    pub(super) fn open(args: &PblioArgs) -> Outcome<Units> {
        let mut devices: Vec<Arc<dyn Device>> = Vec::new();
        let mut pieces = [(0, 0); 3];
        let mut blocks = [0; 3];
        for (index, paths) in args.units().into_iter().enumerate() {
            let first = devices.len();
            for path in paths.split(',') {
                devices.push(Arc::new(open(index + 1, path, args)?));
            }
            let sizes = devices[first..].iter();
            let sizes = sizes.map(|device| device.geometry().capacity_bytes / BLOCK_BYTES);
            let piece = sizes.min().unwrap_or(0);
            pieces[index] = (first, piece);
            blocks[index] = piece * (devices.len() - first) as u64;
        }
        let layout = Layout::new(blocks).map_err(|e| Failure::CannotRun(e.to_string()))?;
        Ok(Units { devices, pieces, layout })
    }

    /// The sizes used.
    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    /// A queue to each device, for one thread.
    pub(super) fn queues(&self, depth: usize) -> Outcome<Vec<Box<dyn Queue>>> {
        let options = QueueOptions { depth, buffer_bytes: 2 * BLOCK_BYTES as usize };
        self.devices.iter().map(|device| Ok(device.queue(options)?)).collect()
    }

    /// On which devices `request` falls.
    pub(super) fn parts(&self, request: &Request) -> Vec<Part> {
        parts(self.pieces[request.asu.index()], request)
    }
}

fn open(number: usize, path: &str, args: &PblioArgs) -> Outcome<FileDevice> {
    let what = format!("--asu{number}");
    if path.contains("://") || path.starts_with("nbd+unix:") {
        return Err(Failure::CannotRun(format!(
            "{what} is `{path}`; expected a file or a block device: addresses of servers are not \
             offered yet"
        )));
    }
    if path.is_empty() {
        let sentence = format!("{what} has an empty name; expected files or devices");
        return Err(Failure::CannotRun(sentence));
    }
    let force = if args.force { Force::Yes } else { Force::No };
    let own_magics = vec![MAGIC.to_vec()];
    let options = FileOptions { force, own_magics, ..FileOptions::default() };
    if !Path::new(path).exists() {
        return Err(Failure::CannotRun(format!(
            "{what} is `{path}`, which does not exist; make it first, as in \
             `fallocate -l 45MiB {path}`, or give sizes and --simulate"
        )));
    }
    FileDevice::open(path, &options).map_err(|error| Failure::doing(what, error))
}

fn parts((first_device, piece): (usize, u64), request: &Request) -> Vec<Part> {
    let mut parts = Vec::with_capacity(1);
    let mut block = request.position;
    let end = request.range().end;
    while block < end {
        let within = block % piece;
        let blocks = (end - block).min(piece - within);
        parts.push(Part {
            device: first_device + (block / piece) as usize,
            offset: within * BLOCK_BYTES,
            first: (block - request.position) as usize,
            blocks: blocks as usize,
        });
        block += blocks;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_straddles_pieces_falls_on_each_of_them_once() {
        let part = |device, block: u64, first, blocks| {
            let offset = block * BLOCK_BYTES;
            Part { device, offset, first, blocks }
        };
        let request: Request = "1 R 5 2 98 0".parse().unwrap();
        assert_eq!(parts((3, 100), &request), [part(3, 98, 0, 2), part(4, 0, 2, 3)]);
        assert_eq!(parts((0, 200), &request), [part(0, 98, 0, 5)]);
        assert_eq!(
            parts((0, 2), &request),
            [part(49, 0, 0, 2), part(50, 0, 2, 2), part(51, 0, 4, 1)]
        );
    }
}
