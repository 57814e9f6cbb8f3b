//! A backup: the image of a running store becomes objects and a manifest.
//!
//! Reads are asked for ahead of their answers, so that the way to the server is never empty. A few
//! threads compress what came and write it, so that the place may be slow. Neither side waits in
//! memory for more than a few segments.

use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    Digest, Id, Image, Manifest, ManifestName, Row, Segment, StoreId, encode, object_name,
};
use crate::marks::{Mark, Work};
use crate::pace::Pace;
use crate::parallel::THREADS;
use crate::repository::Repository;

/// Most bytes of one read: who asks the server for something else waits for no more than that.
const READ_BYTES_MAX: u64 = 64 << 10;
/// Bytes that are asked for and not here yet.
const IN_FLIGHT_BYTES: u64 = 1 << 20;
/// Places that one call of [`Source::done`] names.
const DONE_PLACES: usize = 512;

/// A server that has an image of its store's device.
pub trait Source {
    /// Describes the image; from now on the server keeps it.
    fn begin(&mut self) -> Result<Image>;
    /// Asks for bytes of the segment at `at`.
    fn ask(&mut self, at: u64, offset: u64, length: u64) -> Result<()>;
    /// Appends the bytes that were asked for first and did not come yet.
    fn answer(&mut self, into: &mut Vec<u8>) -> Result<()>;
    /// Tells that the segments at these places are needed no more.
    fn done(&mut self, places: &[u64]) -> Result<()>;
    /// Tells that nothing is needed any more.
    fn end(&mut self) -> Result<()>;
}

/// How a backup is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct CopyOptions {
    /// Most bytes a second that are asked for.
    pub bytes_per_second: Option<u64>,
    /// Now, in seconds since the epoch.
    pub now_seconds: u64,
}

/// How far a backup is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Segments that are in the repository, of so many.
    pub segments: u64,
    /// All segments.
    pub segments_total: u64,
    /// Raw bytes that were read, of so many.
    pub bytes: u64,
    /// Raw bytes to read.
    pub bytes_total: u64,
}

/// A backup that was made.
#[derive(Debug, Clone)]
pub struct Made {
    /// What it is.
    pub manifest: Manifest,
    /// Raw bytes that were read.
    pub read_bytes: u64,
}

/// A segment to be read, and its number in the image.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    number: usize,
    segment: Segment,
}

/// A part of a segment that was asked for.
#[derive(Debug, Clone, Copy)]
struct Part {
    wanted: Wanted,
    length: u64,
    is_last: bool,
}

/// A segment's raw bytes.
struct Content {
    wanted: Wanted,
    raw: Vec<u8>,
}

/// What became of a segment.
struct Written {
    number: usize,
    row: Result<Row>,
}

/// Copies what `source` has into `repository`.
pub fn back_up(
    repository: &Repository,
    source: &mut dyn Source,
    options: CopyOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Made> {
    let names = repository.backups()?;
    let id = Id::next(options.now_seconds, names.last().map(|name| &name.id));
    let mut mark = Mark::set(repository, Work::Writing, id)?;
    let image = source.begin()?;
    let known = known_rows(repository, &names, &image)?;
    let (contents, waiting) = sync_channel::<Content>(THREADS);
    let (written, outcomes) = channel::<Written>();
    let waiting = Mutex::new(waiting);
    let (rows, read_bytes) = thread::scope(|scope| {
        for _ in 0..THREADS {
            let (written, waiting) = (written.clone(), &waiting);
            scope.spawn(move || write_contents(repository, image.store, waiting, &written));
        }
        drop(written);
        let rows = vec![None; image.segments.len()];
        let copy = Copy {
            source,
            progress,
            mark: &mut mark,
            pace: Pace::new(options.bytes_per_second),
            told: Progress::default(),
            rows,
            outcomes,
        };
        copy.run(&image, known, contents)
    })?;
    let manifest = Manifest { id: mark.id().clone(), image, rows };
    let (name, text) = manifest.encode();
    mark.demand_kept()?;
    if !repository.put_new(&name.to_string(), text.into_bytes())? {
        let place = repository.place();
        let sentence = format!("{name} in {place}: expected no object of that name, found one");
        return Err(Error::new(ErrorKind::Busy, sentence));
    }
    Ok(Made { manifest, read_bytes })
}

/// Sealed segments that the newest readable backup of the store has, and whose objects are there.
fn known_rows(
    repository: &Repository,
    names: &[ManifestName],
    image: &Image,
) -> Result<HashMap<Segment, Row>> {
    for name in names.iter().rev().filter(|name| name.store == image.store) {
        let manifest = match repository.manifest(name) {
            Ok(manifest) => manifest,
            // It stays until somebody looks after it; the one before serves as well.
            Err(error) if error.kind() == ErrorKind::Damaged => continue,
            Err(error) => return Err(error),
        };
        let lengths = repository.lengths(&format!("segments/{}", image.store))?;
        let rows = manifest.rows.into_iter().filter(|row| {
            row.segment.sealed && lengths.get(&row.object) == Some(&row.object_bytes)
        });
        return Ok(rows.map(|row| (row.segment, row)).collect());
    }
    Ok(HashMap::new())
}

/// Writes what comes until nothing comes any more.
fn write_contents(
    repository: &Repository,
    store: StoreId,
    waiting: &Mutex<Receiver<Content>>,
    written: &Sender<Written>,
) {
    loop {
        let content = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Content { wanted, raw }) = content else { return };
        let row = write_content(repository, store, wanted.segment, &raw);
        if written.send(Written { number: wanted.number, row }).is_err() {
            return;
        }
    }
}

fn write_content(
    repository: &Repository,
    store: StoreId,
    segment: Segment,
    raw: &[u8],
) -> Result<Row> {
    let digest = Digest::of(raw);
    let object = object_name(store, &segment, &digest);
    let bytes = encode(raw).map_err(|what| Error::new(ErrorKind::Failed, what))?;
    let object_bytes = bytes.len() as u64;
    repository.put(&object, bytes)?;
    Ok(Row { segment, object, object_bytes, digest, is_new: true })
}

/// A backup on its way.
struct Copy<'a, 'b> {
    source: &'a mut dyn Source,
    progress: &'a mut dyn FnMut(Progress),
    mark: &'a mut Mark<'b>,
    pace: Pace,
    told: Progress,
    rows: Vec<Option<Row>>,
    outcomes: Receiver<Written>,
}

impl Copy<'_, '_> {
    /// The rows of all segments, and how many raw bytes were read.
    fn run(
        mut self,
        image: &Image,
        known: HashMap<Segment, Row>,
        contents: SyncSender<Content>,
    ) -> Result<(Vec<Row>, u64)> {
        self.told.segments_total = image.segments.len() as u64;
        self.reuse(image, known)?;
        let numbered = image.segments.iter().copied().enumerate();
        let wanted: Vec<Wanted> = numbered
            .filter(|(number, _)| self.rows[*number].is_none())
            .map(|(number, segment)| Wanted { number, segment })
            .collect();
        self.told.bytes_total += wanted.iter().map(|wanted| wanted.segment.bytes).sum::<u64>();
        self.read(&wanted, &contents)?;
        // The server need not wait for the place.
        self.source.end()?;
        drop(contents);
        while let Ok(written) = self.outcomes.recv() {
            self.note(written)?;
        }
        let rows: Vec<Row> = self.rows.into_iter().flatten().collect();
        assert_eq!(rows.len(), image.segments.len(), "each segment was read or was there");
        Ok((rows, self.told.bytes))
    }

    /// Takes over what is known, if the store still has the past that it is known from.
    fn reuse(&mut self, image: &Image, mut known: HashMap<Segment, Row>) -> Result<()> {
        let shared: Vec<Wanted> = (image.segments.iter().copied().enumerate())
            .filter(|(_, segment)| known.contains_key(segment))
            .map(|(number, segment)| Wanted { number, segment })
            .collect();
        // Where two pasts part, all that both have sealed since then differs, the newest included.
        let Some(newest) = shared.iter().max_by_key(|wanted| wanted.segment.sequence) else {
            return Ok(());
        };
        self.told.bytes_total += newest.segment.bytes;
        let raw = self.read_one(newest.segment)?;
        if known.get(&newest.segment).is_none_or(|row| row.digest != Digest::of(&raw)) {
            return Ok(());
        }
        for wanted in &shared {
            let row = known.remove(&wanted.segment);
            self.rows[wanted.number] = row.map(|row| Row { is_new: false, ..row });
        }
        let places: Vec<u64> = shared.iter().map(|wanted| wanted.segment.at).collect();
        for places in places.chunks(DONE_PLACES) {
            self.source.done(places)?;
        }
        self.told.segments += shared.len() as u64;
        (self.progress)(self.told);
        Ok(())
    }

    fn read_one(&mut self, segment: Segment) -> Result<Vec<u8>> {
        let wanted = Wanted { number: 0, segment };
        let mut raw = Vec::new();
        for part in parts(wanted) {
            self.ask(&part, raw.len() as u64)?;
            self.take(&part, &mut raw)?;
        }
        Ok(raw)
    }

    /// Reads segments one behind the other, and hands them to those who write.
    fn read(&mut self, wanted: &[Wanted], contents: &SyncSender<Content>) -> Result<()> {
        let mut to_ask = wanted.iter().flat_map(|wanted| parts(*wanted));
        let (mut in_flight, mut in_flight_bytes) = (VecDeque::new(), 0);
        let (mut raw, mut offset) = (Vec::new(), 0);
        loop {
            while in_flight_bytes < IN_FLIGHT_BYTES
                && let Some(part) = to_ask.next()
            {
                self.ask(&part, offset)?;
                offset = if part.is_last { 0 } else { offset + part.length };
                in_flight_bytes += part.length;
                in_flight.push_back(part);
            }
            let Some(part) = in_flight.pop_front() else { return Ok(()) };
            self.take(&part, &mut raw)?;
            in_flight_bytes -= part.length;
            if part.is_last {
                self.source.done(&[part.wanted.segment.at])?;
                let content = Content { wanted: part.wanted, raw: std::mem::take(&mut raw) };
                // Those who write end only when nothing can come any more.
                contents.send(content).map_err(|error| Error::failed("cannot go on", error))?;
            }
            while let Ok(written) = self.outcomes.try_recv() {
                self.note(written)?;
            }
        }
    }

    fn ask(&mut self, part: &Part, offset: u64) -> Result<()> {
        if part.length == 0 {
            return Ok(());
        }
        self.pace.wait(part.length);
        self.source.ask(part.wanted.segment.at, offset, part.length)
    }

    fn take(&mut self, part: &Part, raw: &mut Vec<u8>) -> Result<()> {
        if part.length == 0 {
            return Ok(());
        }
        let before = raw.len() as u64;
        self.source.answer(raw)?;
        let found = raw.len() as u64 - before;
        if found != part.length {
            let sentence = format!(
                "the server's segment at {}: expected {} bytes from {before} on, found {found}",
                part.wanted.segment.at, part.length
            );
            return Err(Error::new(ErrorKind::Failed, sentence));
        }
        self.told.bytes += found;
        (self.progress)(self.told);
        self.mark.renew()
    }

    fn note(&mut self, written: Written) -> Result<()> {
        self.rows[written.number] = Some(written.row?);
        self.told.segments += 1;
        (self.progress)(self.told);
        self.mark.renew()
    }
}

/// The reads that a segment takes; one of nothing where it has no bytes.
fn parts(wanted: Wanted) -> impl Iterator<Item = Part> {
    let bytes = wanted.segment.bytes;
    let count = bytes.div_ceil(READ_BYTES_MAX).max(1);
    (0..count).map(move |number| {
        let length = (bytes - number * READ_BYTES_MAX).min(READ_BYTES_MAX);
        Part { wanted, length, is_last: number + 1 == count }
    })
}
