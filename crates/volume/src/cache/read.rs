//! Reading: a dirty block comes from the log, another from the cache, a missing one from the
//! backing, once for all requests that want it.

use std::ops::Range;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use entresol_flash::{Key, PutOptions};

use crate::backing::BackingRequest;
use crate::cache::core::{Core, Flash, FlashReply};
use crate::cache::run::CachedRun;
use crate::cache::volume::{Fill, Volume};
use crate::dirty::LogKind;
use crate::error::{Error, ErrorKind, Result};
use crate::meta::{BLOCK_BYTES, LogHeader, NOT_THE_ENTRY};
use crate::tasks::Reply;

/// Most bytes of one read of the backing.
pub(crate) const FILL_BYTES_MAX: u64 = 1 << 20;
/// Most blocks of a run that is asked of the cache at once.
const RUN_BLOCKS_MAX: u64 = 256;
/// Times that a read starts over because what it looked up was written back meanwhile.
const OUTRUN_MAX: u32 = 1000;
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Whether blocks that are read from the backing are put into the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Yes,
    /// Those that missed lately: a stream may come by only once.
    Again,
    No,
    /// Nor are they looked for there.
    Around,
}

/// Consecutive bytes of a volume.
pub(crate) struct Part {
    pub offset: u64,
    pub bytes: Bytes,
}

/// Blocks that were gathered.
pub(crate) struct Gathered {
    /// In order, without a gap.
    pub parts: Vec<Part>,
    /// How many of the blocks were in the cache.
    pub hits: u64,
}

impl Gathered {
    /// Takes what the cache has of `wanted`; the rest is missed.
    fn take(
        &mut self,
        volume: &Volume,
        wanted: &Range<u64>,
        run: &CachedRun,
        missed: &mut Vec<u64>,
    ) {
        let mut at = wanted.start;
        for same in run.cached.chunk_by(|one, next| one == next) {
            let blocks = at..at + same.len() as u64;
            at = blocks.end;
            if same[0] {
                self.hits += blocks.end - blocks.start;
                let of = volume.bytes_of(&blocks);
                let first = wanted.start * BLOCK_BYTES;
                let within = (of.start - first) as usize..(of.end - first) as usize;
                self.parts.push(Part { offset: of.start, bytes: run.bytes.slice(within) });
            } else {
                missed.extend(blocks);
            }
        }
    }
}

enum Source {
    Zeros,
    Ahead(Bytes),
    Log(u64, Reply<FlashReply>),
    Cached(Reply<CachedRun>),
}

/// Reads `blocks`, which the caller has locked.
pub(crate) async fn gather(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    blocks: Range<u64>,
    keep: Keep,
) -> Result<Gathered> {
    for _ in 0..OUTRUN_MAX {
        let mut gathered = Gathered { parts: Vec::new(), hits: 0 };
        let mut missed = Vec::new();
        let mut outrun = false;
        let mut puts = Vec::new();
        for (wanted, source) in begin(core, volume, &blocks, keep) {
            let found = match source {
                Source::Zeros => Some(zeros(volume.bytes_of(&wanted))),
                Source::Ahead(bytes) => {
                    // It was a stream that brought it, whoever takes it.
                    let streams = keep == Keep::Yes && volume.tells_streams();
                    let keep = if streams { Keep::Again } else { keep };
                    if core.failure().is_none() && volume.admits(core, wanted.start, keep) {
                        puts.push(insert(core, volume, wanted.start, &bytes));
                    }
                    Some(bytes)
                }
                Source::Log(entry, reply) => match logged(volume, &wanted, entry, reply.await)? {
                    Some(bytes) => Some(bytes),
                    None => {
                        outrun = true;
                        None
                    }
                },
                Source::Cached(reply) => {
                    let run = reply.await;
                    note_errors(core, volume, &run);
                    gathered.take(volume, &wanted, &run, &mut missed);
                    continue;
                }
            };
            if let Some(bytes) = found {
                gathered.hits += wanted.end - wanted.start;
                let offset = wanted.start * BLOCK_BYTES;
                gathered.parts.push(Part { offset, bytes });
            }
        }
        settle(core, volume, puts).await;
        if outrun {
            // Written back and let go since it was looked up: it is elsewhere now.
            continue;
        }
        if !missed.is_empty() {
            let filled = fill(core, volume, &missed, keep).await?;
            gathered.parts.extend(filled);
            gathered.parts.sort_by_key(|part| part.offset);
        }
        return Ok(gathered);
    }
    let detail = format!("volume {}: its log names entries that it does not hold", volume.name);
    Err(Error::new(ErrorKind::Io, detail))
}

/// The bytes of a range out of parts that cover it.
pub(crate) fn assemble(parts: &[Part], range: Range<u64>) -> Bytes {
    let within = |part: &Part| {
        let end = part.offset + part.bytes.len() as u64;
        let start = range.start.max(part.offset);
        let end = range.end.min(end);
        part.bytes.slice((start - part.offset) as usize..(end - part.offset) as usize)
    };
    let overlapping = |part: &&Part| {
        part.offset < range.end && part.offset + part.bytes.len() as u64 > range.start
    };
    let mut found = parts.iter().filter(overlapping);
    match (found.next(), found.next()) {
        (Some(only), None) => within(only),
        _ => {
            let mut whole = BytesMut::with_capacity((range.end - range.start) as usize);
            parts.iter().filter(overlapping).for_each(|part| {
                whole.extend_from_slice(&within(part));
            });
            whole.freeze()
        }
    }
}

/// Puts a block that reads as `bytes` into the cache; its range must be locked.
pub(crate) fn insert(core: &Core, volume: &Volume, block: u64, bytes: &[u8]) -> Reply<FlashReply> {
    volume.counts.borrow_mut().insertions += 1;
    volume.held.borrow_mut().mark(block);
    let space = volume.clean_space();
    let may_hold = |block: u64| core.may_hold(space, &block.to_be_bytes());
    for first in volume.share.borrow_mut().on_put(block, core.held(volume), may_hold) {
        // Nobody waits for its end: the block is clean, and only less of the cache.
        drop(core.remove(space, &first.to_be_bytes()));
    }
    let key = block.to_be_bytes();
    core.put(Key::new(space, &key), bytes, PutOptions::default())
}

/// Waits for insertions.
pub(crate) async fn settle(core: &Core, volume: &Volume, puts: Vec<Reply<FlashReply>>) {
    for put in puts {
        if let Err(error) = put.await {
            volume.counts.borrow_mut().cache_write_errors += 1;
            core.note_error(&error);
        }
    }
}

fn begin(
    core: &Core,
    volume: &Volume,
    blocks: &Range<u64>,
    keep: Keep,
) -> Vec<(Range<u64>, Source)> {
    let log = volume.log.borrow();
    let mut sources = Vec::new();
    let trusted = core.failure().is_none() && keep != Keep::Around;
    let cached = |blocks: Range<u64>, sources: &mut Vec<(Range<u64>, Source)>| {
        let mut at = blocks.start;
        while at < blocks.end {
            let run = at..blocks.end.min(at + RUN_BLOCKS_MAX);
            at = run.end;
            let reply = if trusted { core.get_run(volume, &run) } else { core.no_run(&run) };
            sources.push((run, Source::Cached(reply)));
        }
    };
    for piece in log.pieces(blocks.clone()) {
        let Some(number) = piece.entry else {
            let mut from = piece.blocks.start;
            for block in piece.blocks.clone() {
                let ahead = match keep {
                    Keep::Around => break,
                    _ => core.ahead.borrow_mut().take(volume.id, block),
                };
                if let Some(bytes) = ahead {
                    cached(from..block, &mut sources);
                    sources.push((block..block + 1, Source::Ahead(bytes)));
                    from = block + 1;
                }
            }
            cached(from..piece.blocks.end, &mut sources);
            continue;
        };
        let zeros = log.entry(number).is_some_and(|entry| entry.kind != LogKind::Data);
        let source = if zeros {
            Source::Zeros
        } else {
            Source::Log(number, core.get_logged(volume, number))
        };
        sources.push((piece.blocks, source));
    }
    sources
}

/// The bytes of `wanted` out of a log entry; `None` if the entry was let go meanwhile.
fn logged(
    volume: &Volume,
    wanted: &Range<u64>,
    number: u64,
    reply: FlashReply,
) -> Result<Option<Bytes>> {
    let gone = volume.log.borrow().entry(number).is_none();
    let why = match reply {
        Ok(Flash::Found(entry, _)) => {
            match LogHeader::bytes_of(volume.id, &volume.bytes_of(wanted), &entry) {
                Some((_, bytes)) => return Ok(Some(bytes)),
                None => NOT_THE_ENTRY.to_owned(),
            }
        }
        _ if gone => return Ok(None),
        Ok(_) => "it is not there".to_owned(),
        Err(error) => error.to_string(),
    };
    volume.counts.borrow_mut().cache_read_errors += 1;
    let detail = format!(
        "volume {}: blocks {} to {} are dirty and cannot be read from the cache (entry {number} of \
         the log): {why}",
        volume.name,
        wanted.start,
        wanted.end - 1
    );
    Err(Error::new(ErrorKind::Io, detail))
}

/// Counts what kept blocks from being read. They are clean: the backing has them too.
fn note_errors(core: &Core, volume: &Volume, run: &CachedRun) {
    for error in &run.errors {
        volume.counts.borrow_mut().cache_read_errors += 1;
        core.note_error(error);
    }
}

type Own = Vec<(Range<u64>, Rc<Fill>)>;
type Others = Vec<(u64, Rc<Fill>)>;

/// Reads blocks from the backing, or waits for reads of them that are under way.
async fn fill(
    core: &Rc<Core>,
    volume: &Rc<Volume>,
    missed: &[u64],
    keep: Keep,
) -> Result<Vec<Part>> {
    let (own, others) = share(volume, missed);
    let reads: Vec<_> = own
        .iter()
        .map(|(run, _)| {
            let range = volume.bytes_of(run);
            let length = (range.end - range.start) as u32;
            volume.ask(&core.tasks, BackingRequest::Read { offset: range.start, length })
        })
        .collect();
    let mut parts = Vec::new();
    let mut failed = None;
    for ((run, fill), read) in own.into_iter().zip(reads) {
        let result = read.await;
        for block in run.clone() {
            volume.fills.borrow_mut().remove(&block);
        }
        fill.finish(&core.tasks, result.clone());
        match result {
            Ok(bytes) => {
                if core.failure().is_none() {
                    let admitted = run.clone().filter(|block| volume.admits(core, *block, keep));
                    let puts = admitted
                        .map(|block| insert(core, volume, block, fill.block_of(&bytes, block)));
                    settle(core, volume, puts.collect()).await;
                }
                parts.push(Part { offset: run.start * BLOCK_BYTES, bytes });
            }
            Err(error) => failed = Some(error),
        }
    }
    for (block, fill) in others {
        while fill.value.borrow().is_none() {
            fill.done.wait(&core.tasks).await;
        }
        match fill.value.borrow().clone() {
            Some(Ok(bytes)) => {
                let bytes = bytes.slice_ref(fill.block_of(&bytes, block));
                parts.push(Part { offset: block * BLOCK_BYTES, bytes });
            }
            Some(Err(error)) => failed = Some(error),
            None => {}
        }
    }
    failed.map_or(Ok(parts), Err)
}

/// Of missed blocks, the runs that nobody reads yet, and the reads of others that will bring the
/// rest.
fn share(volume: &Volume, missed: &[u64]) -> (Own, Others) {
    let request_bytes = u64::from(volume.description.request_bytes_max).min(FILL_BYTES_MAX);
    let blocks_max = (request_bytes / BLOCK_BYTES).max(1);
    let (mut own, mut others) = (Own::new(), Others::new());
    let mut fills = volume.fills.borrow_mut();
    for block in missed {
        if let Some(fill) = fills.get(block) {
            fill.joined.borrow_mut().push(*block);
            others.push((*block, Rc::clone(fill)));
            volume.counts.borrow_mut().coalesced += 1;
            continue;
        }
        match own.last_mut() {
            Some((run, fill)) if run.end == *block && run.end - run.start < blocks_max => {
                run.end += 1;
                fills.insert(*block, Rc::clone(fill));
            }
            _ => {
                let fill = Rc::new(Fill::new(*block));
                fills.insert(*block, Rc::clone(&fill));
                own.push((*block..*block + 1, fill));
            }
        }
    }
    (own, others)
}

fn zeros(range: Range<u64>) -> Bytes {
    let length = (range.end - range.start) as usize;
    match ZEROS.get(..length) {
        Some(zeros) => Bytes::from_static(zeros),
        None => BytesMut::zeroed(length).freeze(),
    }
}
