//! Every write to every sector, in the order of submission, and the writes that are known to
//! survive.

use std::ops::Range;

use entresol_volume::Durable;

use super::Ending;

/// Bytes of a sector.
pub(crate) const SECTOR: u64 = 512;

/// What was written, and what must survive.
pub(crate) struct Model {
    /// Writes to each sector, oldest first; the first is what was there at the beginning.
    sectors: Vec<Vec<u64>>,
    writes: Vec<Write>,
    flushes: Vec<Flush>,
    /// Writes that were durable when they were acknowledged.
    durable: u64,
}

#[derive(Debug, Clone)]
struct Write {
    zeros: bool,
    durable: Durable,
    acknowledged: bool,
    flushed: bool,
    /// Flushes begun before it was acknowledged.
    flushes_before: usize,
    /// The last flush that had ended before it was submitted, and one.
    after_flush: usize,
    /// How many were durable before it was when it was acknowledged, where it was itself.
    durable_at: Option<u64>,
    /// How many were durable when it was submitted.
    after_durable: u64,
    /// What was there at the beginning of a round stands in for all before.
    initial: Option<Vec<u8>>,
}

struct Flush {
    covers: Vec<u64>,
    ended: bool,
}

/// What a sector's bytes say who wrote them.
pub(crate) fn id_of(sector: &[u8]) -> u64 {
    sector.first_chunk().map_or(0, |id| u64::from_le_bytes(*id))
}

impl Model {
    pub(crate) fn new(sectors: u64) -> Model {
        let mut model = Model {
            sectors: vec![Vec::new(); sectors as usize],
            writes: Vec::new(),
            flushes: Vec::new(),
            durable: 0,
        };
        model.begin_again(&vec![0; (sectors * SECTOR) as usize]);
        model
    }

    /// Forgets all but what is there now, which survives.
    pub(crate) fn begin_again(&mut self, contents: &[u8]) {
        self.flushes.clear();
        for (sector, bytes) in contents.chunks(SECTOR as usize).enumerate() {
            let number = self.writes.len() as u64;
            self.writes.push(Write {
                zeros: false,
                durable: Durable::AtOnce,
                acknowledged: true,
                flushed: true,
                flushes_before: 0,
                after_flush: 0,
                durable_at: None,
                after_durable: 0,
                initial: Some(bytes.to_vec()),
            });
            self.sectors[sector] = vec![number];
        }
    }

    /// A write is submitted; its number.
    pub(crate) fn write(&mut self, sectors: Range<u64>, durable: Durable, zeros: bool) -> u64 {
        let number = self.writes.len() as u64;
        let after_flush = self.flushes.iter().rposition(|f| f.ended).map_or(0, |at| at + 1);
        self.writes.push(Write {
            zeros,
            durable,
            acknowledged: false,
            flushed: false,
            flushes_before: usize::MAX,
            after_flush,
            durable_at: None,
            after_durable: self.durable,
            initial: None,
        });
        for sector in sectors {
            self.sectors[sector as usize].push(number);
        }
        number
    }

    pub(crate) fn acknowledge(&mut self, number: u64) {
        let flushes = self.flushes.len();
        let write = &mut self.writes[number as usize];
        write.acknowledged = true;
        write.flushes_before = flushes;
        if write.durable == Durable::AtOnce {
            write.flushed = true;
            write.durable_at = Some(self.durable);
            self.durable += 1;
        }
    }

    pub(crate) fn begin_flush(&mut self) -> u64 {
        let acknowledged =
            |(number, write): (usize, &Write)| write.acknowledged.then_some(number as u64);
        let covers = self.writes.iter().enumerate().filter_map(acknowledged).collect();
        self.flushes.push(Flush { covers, ended: false });
        self.flushes.len() as u64 - 1
    }

    pub(crate) fn end_flush(&mut self, number: u64) {
        let flush = &mut self.flushes[number as usize];
        flush.ended = true;
        for covered in &flush.covers {
            self.writes[*covered as usize].flushed = true;
        }
    }

    /// What the last submitted writes leave in `sectors`.
    pub(crate) fn newest(&self, sectors: Range<u64>) -> Vec<u8> {
        let newest = |sector: u64| {
            let last = self.sectors[sector as usize].last().unwrap();
            self.bytes(*last, sector)
        };
        sectors.flat_map(newest).collect()
    }

    /// Whether what is read after `ending` is what had to survive, or something later.
    pub(crate) fn check_survivors(&self, contents: &[u8], ending: Ending) {
        for (sector, found) in contents.chunks(SECTOR as usize).enumerate() {
            let history = &self.sectors[sector];
            let must = |write: &Write| match ending {
                Ending::Close | Ending::Kill => write.acknowledged,
                Ending::PowerLoss => write.flushed,
            };
            let floor = history.iter().rposition(|n| must(&self.writes[*n as usize])).unwrap();
            let known = history[floor..].iter().any(|n| self.bytes(*n, sector as u64) == found);
            assert!(
                known,
                "after {ending:?} sector {sector} reads as {:?}; its writes are {history:?}, what \
                 had to survive is {}",
                id_of(found),
                history[floor]
            );
        }
    }

    /// Whether `contents` are what some moment could have left: no write is there while one that
    /// was flushed, or durable by itself, before it was begun is missing.
    pub(crate) fn check_past(&self, contents: &[u8]) {
        let (mut after_flush, mut after_durable) = (0, 0);
        let mut places = Vec::new();
        for (sector, found) in contents.chunks(SECTOR as usize).enumerate() {
            let history = &self.sectors[sector];
            let matching: Vec<usize> = (0..history.len())
                .filter(|at| self.bytes(history[*at], sector as u64) == found)
                .collect();
            assert!(
                !matching.is_empty(),
                "sector {sector} of the backing holds {:?}; its writes are {history:?}",
                id_of(found)
            );
            let writes = || matching.iter().map(|at| &self.writes[history[*at] as usize]);
            after_flush = after_flush.max(writes().map(|write| write.after_flush).min().unwrap());
            let earliest = writes().map(|write| write.after_durable).min().unwrap();
            after_durable = after_durable.max(earliest);
            places.push(*matching.last().unwrap());
        }
        for (sector, place) in places.into_iter().enumerate() {
            for later in &self.sectors[sector][place + 1..] {
                let write = &self.writes[*later as usize];
                assert!(
                    write.flushes_before >= after_flush,
                    "the backing lacks write {later} of sector {sector}, and has one that was \
                     begun after flush {after_flush} which came after it: {write:?}"
                );
                assert!(
                    write.durable_at.is_none_or(|at| at >= after_durable),
                    "the backing lacks write {later} of sector {sector}, which was durable at \
                     once, and has one that was begun after {after_durable} such: {write:?}"
                );
            }
        }
    }

    fn bytes(&self, number: u64, sector: u64) -> Vec<u8> {
        let write = &self.writes[number as usize];
        if let Some(initial) = &write.initial {
            return initial.clone();
        }
        let mut bytes = vec![0; SECTOR as usize];
        if !write.zeros {
            for chunk in bytes.chunks_mut(16) {
                chunk[..8].copy_from_slice(&number.to_le_bytes());
                chunk[8..].copy_from_slice(&sector.to_le_bytes());
            }
        }
        bytes
    }
}
