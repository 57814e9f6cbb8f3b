//! The three units on files, block devices and servers. A unit of several is their concatenation,
//! each cut to the size of the smallest.

use std::path::Path;
use std::sync::Arc;

use entresol_device::{Device, FileDevice, FileOptions, Force, QueueOptions};
use entresol_volume::backing::Backing;
use entresol_volume::backing::file::FileBacking;
use entresol_volume::backing::nbd::{NbdBacking, NbdOptions};
use entresol_workload::oltp::{BLOCK_BYTES, Layout, Request};

use super::cached::Cached;
use super::lanes::{Lane, Lanes};
use super::ledger::MAGIC;
use super::options::PblioArgs;
use crate::failure::{Failure, Outcome};

/// What the units are made of, in their order.
pub(super) struct Units {
    sources: Vec<Source>,
    /// Each unit's first source and the blocks used of each of its sources.
    pieces: [(usize, u64); 3],
    layout: Layout,
}

/// One file, device or server.
enum Source {
    /// Direct transfers; it stays open, so that nobody else uses it.
    Device(Arc<dyn Device>),
    /// Opened for each run, by this name.
    Backing(String),
}

/// Whether a run goes through the cache that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Where there is one.
    ThroughCache,
    /// Around it.
    AroundCache,
}

/// The part of a request that falls on one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// Which source.
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
        let mut sources = Vec::new();
        let mut pieces = [(0, 0); 3];
        let mut blocks = [0; 3];
        for (index, paths) in args.units().into_iter().enumerate() {
            let first = sources.len();
            let mut piece = u64::MAX;
            for path in paths.split(',') {
                let (source, bytes) = open(index + 1, path, args)?;
                sources.push(source);
                piece = piece.min(bytes / BLOCK_BYTES);
            }
            pieces[index] = (first, piece);
            blocks[index] = piece * (sources.len() - first) as u64;
        }
        let layout = Layout::new(blocks).map_err(|e| Failure::CannotRun(e.to_string()))?;
        Ok(Units { sources, pieces, layout })
    }

    /// The sizes used.
    pub(super) fn layout(&self) -> Layout {
        self.layout
    }

    /// Ways to all sources, for one thread with so many requests in flight.
    pub(super) fn lanes(&self, args: &PblioArgs, way: Way, places: usize) -> Outcome<Lanes> {
        let of_log = self.pieces[2].0;
        let cached = match &args.cache {
            Some(path) if way == Way::ThroughCache => {
                let pieces = self.sources[..of_log].iter().enumerate();
                let pieces: Vec<(String, String)> = pieces
                    .filter_map(|(index, source)| Some((self.name(index), source.name()?)))
                    .collect();
                Some(Cached::open(args, path, &pieces)?)
            }
            _ => None,
        };
        let volumes = cached.as_ref().map(|cached| cached.volumes().to_vec()).unwrap_or_default();
        let options = QueueOptions { depth: places, buffer_bytes: 2 * BLOCK_BYTES as usize };
        let mut lanes = Vec::new();
        for (index, source) in self.sources.iter().enumerate() {
            lanes.push(match (source, volumes.get(index)) {
                (_, Some(volume)) => Lane::Volume(*volume),
                (Source::Device(device), _) => Lane::Device(device.queue(options)?),
                (Source::Backing(name), _) => {
                    let backing = open_backing(name, args.force());
                    Lane::Backing(backing.map_err(|e| Failure::CannotRun(e.to_string()))?)
                }
            });
        }
        Ok(Lanes::new(lanes, cached, places))
    }

    /// On which sources `request` falls.
    pub(super) fn parts(&self, request: &Request) -> Vec<Part> {
        parts(self.pieces[request.asu.index()], request)
    }

    /// What the volume of a source is called.
    fn name(&self, source: usize) -> String {
        let unit = usize::from(source >= self.pieces[1].0);
        format!("asu{}.{}", unit + 1, source - self.pieces[unit].0 + 1)
    }
}

impl Source {
    fn name(&self) -> Option<String> {
        match self {
            Source::Device(_) => None,
            Source::Backing(name) => Some(name.clone()),
        }
    }
}

/// Opens the file, block device or server of this name, through the page cache where there is one.
pub(super) fn open_backing(name: &str, force: Force) -> entresol_volume::Result<Box<dyn Backing>> {
    if is_server(name) {
        return Ok(Box::new(NbdBacking::open(name, &NbdOptions::default())?));
    }
    Ok(Box::new(FileBacking::open(name, force)?))
}

/// Opens `path` of unit `number` far enough to know its size and that it may be used.
fn open(number: usize, path: &str, args: &PblioArgs) -> Outcome<(Source, u64)> {
    let what = format!("--asu{number}");
    if is_server(path) {
        let server = open_backing(path, args.force());
        let server = server.map_err(|error| Failure::doing(&what, error))?;
        let description = server.description();
        if description.read_only {
            let sentence = format!("{what} is `{path}`, which may only be read");
            return Err(Failure::CannotRun(sentence));
        }
        return Ok((Source::Backing(path.to_owned()), description.bytes));
    }
    if path.is_empty() {
        let sentence = format!("{what} has an empty name; expected files or devices");
        return Err(Failure::CannotRun(sentence));
    }
    let own_magics = vec![MAGIC.to_vec()];
    let options = FileOptions { force: args.force(), own_magics, ..FileOptions::default() };
    if !Path::new(path).exists() {
        return Err(Failure::CannotRun(format!(
            "{what} is `{path}`, which does not exist; make it first, as in \
             `fallocate -l 45MiB {path}`, or give sizes and --simulate"
        )));
    }
    let device = FileDevice::open(path, &options).map_err(|error| Failure::doing(&what, error))?;
    let bytes = device.geometry().capacity_bytes;
    if args.directio && (args.cache.is_none() || number == 3) {
        return Ok((Source::Device(Arc::new(device)), bytes));
    }
    // The cache names its backings, and may be opened from elsewhere.
    let path = std::path::absolute(path).map_err(|error| Failure::doing(&what, error))?;
    Ok((Source::Backing(path.display().to_string()), bytes))
}

fn is_server(path: &str) -> bool {
    path.contains("://")
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
