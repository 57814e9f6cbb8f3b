//! The records of a cache about itself and its volumes, byte by byte (integers little-endian, keys
//! big-endian). They are pinned entries of space 0 of the flash store, which checksums them;
//! `docs/internals/volume-format.md` describes them too.

use std::ops::Range;

use bytes::Bytes;

use crate::dirty::LogKind;
use crate::error::{Error, ErrorKind, Result};
use crate::request::Hole;
use crate::types::{Mode, Qos, VolumeId, VolumeOptions};

/// Bytes of a block, the unit of caching.
pub(crate) const BLOCK_BYTES: u64 = 4096;
/// The version of these records.
const VERSION: u16 = 1;
/// That of the session record while the cache is open.
const VERSION_OPEN: u16 = 2;
/// First bytes of every entry of a volume's log.
const LOG_MAGIC: u32 = u32::from_le_bytes(*b"EVLG");
/// Bytes before an entry's data.
pub(crate) const LOG_HEADER_BYTES: usize = 40;
/// Why an entry is refused that does not hold what it was written with.
pub(crate) const NOT_THE_ENTRY: &str = "it is not the entry that was written";

/// A volume, as the cache remembers it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VolumeRecord {
    pub options: VolumeOptions,
    /// Size of the volume.
    pub bytes: u64,
    /// Which backing it belongs to.
    pub identity: String,
    /// The backing's version when the cache was last closed; empty: not known.
    pub version: String,
    /// Entries of the log in one partition of its space.
    pub partition_entries: u64,
}

/// How far the log of a volume was written back, and who wrote what is left of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StateRecord {
    /// Entries up to this number are on the backing.
    pub written_back: u64,
    /// The number after the last entry when the cache was closed; 0: it is open, or was not closed.
    pub next: u64,
    /// (incarnation, number of its first entry), oldest first.
    pub incarnations: Vec<(u32, u64)>,
}

/// How the cache was used last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionRecord {
    /// Whether it was closed in order.
    pub clean: bool,
    /// Grows with every opening.
    pub incarnation: u32,
    /// The boot of the machine, 0 where that is not known.
    pub boot: u128,
    /// Identifies the cache.
    pub cache: u128,
}

/// Regions that writes may have reached on the backing, but not in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RegionsRecord {
    /// Bytes of a region.
    pub region_bytes: u64,
    /// One bit a region.
    pub bits: Vec<u64>,
}

/// Which parts of a volume had clean blocks in the cache when that was closed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct HeldRecord {
    /// Who closed it; of another one the record says nothing.
    pub incarnation: u32,
    /// Blocks of a part.
    pub part_blocks: u64,
    /// One bit a part.
    pub bits: Vec<u64>,
}

/// Blocks that were about to be written over, on the backing and in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverwriteRecord {
    pub first: u64,
    pub blocks: u64,
}

/// What stands before an entry's data in the log of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogHeader {
    pub volume: u16,
    pub kind: LogKind,
    pub incarnation: u32,
    pub epoch: u64,
    pub first: u64,
    pub blocks: u64,
}

/// The key of the session record.
pub(crate) const SESSION_KEY: &[u8] = b"session";

/// The kinds of records that a volume has.
pub(crate) const KINDS: [&str; 4] = ["volume/", "state/", "regions/", "held/"];

/// The key of a volume's record of one of [`KINDS`].
pub(crate) fn key_of(kind: &str, volume: VolumeId) -> Vec<u8> {
    let mut key = kind.as_bytes().to_vec();
    key.extend_from_slice(&volume.0.to_be_bytes());
    key
}

/// The key of a volume's note of what is being written over, at one of its places.
pub(crate) fn overwrite_key(volume: VolumeId, place: u16) -> Vec<u8> {
    let mut key = key_of("over/", volume);
    key.extend_from_slice(&place.to_be_bytes());
    key
}

impl VolumeRecord {
    /// Takes the size that the volume's backing has now; none of its `dirty` blocks may be left.
    pub(crate) fn take_size(&mut self, bytes: u64, dirty: u64) -> Result<()> {
        if dirty > 0 {
            let name = &self.options.name;
            let detail = format!(
                "volume {name}: {dirty} blocks are dirty, which are kept for a backing of {} bytes \
                 only: give that at {} this size again and `entresol volume adopt {name} \
                 --keep-dirty`, then `entresol volume flush {name}` and resize; or `entresol \
                 volume adopt {name} --lose-dirty`, which takes the size that is there, too",
                self.bytes, self.options.backing
            );
            return Err(Error::new(ErrorKind::Io, detail));
        }
        self.bytes = bytes;
        Ok(())
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        let options = &self.options;
        out.u16(options.mode as u16);
        out.u16(u16::from(options.admission_hits));
        out.u64(self.bytes);
        out.u64(self.partition_entries);
        out.u64(options.share_bytes);
        out.u64(options.sequential_cutoff_bytes);
        out.u32(options.read_ahead_bytes);
        for number in [options.qos.reservation, options.qos.limit, options.qos.weight] {
            out.u64(number.to_bits());
        }
        let named = [&options.name, &options.backing, &self.identity, &self.version];
        for text in named.into_iter().chain([&options.description]) {
            out.text(text);
        }
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<VolumeRecord> {
        let mut from = Reader::new("volume", bytes)?;
        let mode = from.u16()?;
        let mode = Mode::ALL.into_iter().find(|known| *known as u16 == mode).ok_or_else(|| {
            from.wrong(&format!("a mode of 0 to {}, found {mode}", Mode::ALL.len() - 1))
        })?;
        let admission_hits = from.u16()?.min(255) as u8;
        let bytes = from.u64()?;
        let partition_entries = from.u64()?.max(1);
        let share_bytes = from.u64()?;
        let sequential_cutoff_bytes = from.u64()?;
        let read_ahead_bytes = from.u32()?;
        let mut number = || from.u64().map(f64::from_bits);
        let qos = Qos { reservation: number()?, limit: number()?, weight: number()? };
        let options = VolumeOptions {
            name: from.text()?,
            backing: from.text()?,
            mode,
            share_bytes,
            qos,
            sequential_cutoff_bytes,
            admission_hits,
            read_ahead_bytes,
            description: String::new(),
        };
        let (identity, version) = (from.text()?, from.text()?);
        // Records of earlier versions end here.
        let description = if from.bytes.is_empty() { String::new() } else { from.text()? };
        let options = VolumeOptions { description, ..options };
        Ok(VolumeRecord { options, bytes, identity, version, partition_entries })
    }
}

impl StateRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u64(self.written_back);
        out.u64(self.next);
        out.u32(self.incarnations.len() as u32);
        for (incarnation, first) in &self.incarnations {
            out.u32(*incarnation);
            out.u64(*first);
        }
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<StateRecord> {
        let mut from = Reader::new("state", bytes)?;
        let (written_back, next) = (from.u64()?, from.u64()?);
        let mut state = StateRecord { written_back, next, incarnations: Vec::new() };
        for _ in 0..from.u32()? {
            state.incarnations.push((from.u32()?, from.u64()?));
        }
        Ok(state)
    }

    /// The incarnation that entry `number` must be of.
    pub(crate) fn incarnation_of(&self, number: u64) -> Option<u32> {
        let mut before = self.incarnations.iter().rev();
        before.find(|(_, first)| *first <= number).map(|(incarnation, _)| *incarnation)
    }

    /// Notes that `incarnation` begins at entry `first`, and forgets those that wrote nothing
    /// that is left.
    pub(crate) fn begin(&mut self, incarnation: u32, first: u64) {
        self.incarnations.retain(|(_, begun)| *begun < first);
        let oldest = self.incarnation_of(self.written_back + 1);
        self.incarnations.retain(|(of, begun)| *begun > self.written_back || Some(*of) == oldest);
        self.incarnations.push((incarnation, first));
        self.next = 0;
    }
}

impl SessionRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        if !self.clean {
            // What a killed cache notes of blocks that were being written over, earlier versions
            // do not heed.
            out.0 = VERSION_OPEN.to_le_bytes().to_vec();
        }
        out.u16(u16::from(self.clean));
        out.u32(self.incarnation);
        out.0.extend_from_slice(&self.boot.to_le_bytes());
        out.0.extend_from_slice(&self.cache.to_le_bytes());
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<SessionRecord> {
        let opened = VERSION_OPEN.to_le_bytes();
        let mut from = match bytes.strip_prefix(&opened) {
            Some(rest) => Reader { what: "session", bytes: rest },
            None => Reader::new("session", bytes)?,
        };
        let (clean, incarnation) = (from.u16()? != 0, from.u32()?);
        Ok(SessionRecord { clean, incarnation, boot: from.u128()?, cache: from.u128()? })
    }
}

impl OverwriteRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u64(self.first);
        out.u64(self.blocks);
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<OverwriteRecord> {
        let mut from = Reader::new("overwrite", bytes)?;
        Ok(OverwriteRecord { first: from.u64()?, blocks: from.u64()? })
    }
}

impl HeldRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u32(self.incarnation);
        out.u64(self.part_blocks);
        out.u32(self.bits.len() as u32);
        self.bits.iter().for_each(|word| out.u64(*word));
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<HeldRecord> {
        let mut from = Reader::new("held", bytes)?;
        let (incarnation, part_blocks) = (from.u32()?, from.u64()?);
        let mut bits = Vec::new();
        for _ in 0..from.u32()? {
            bits.push(from.u64()?);
        }
        Ok(HeldRecord { incarnation, part_blocks, bits })
    }
}

impl RegionsRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u64(self.region_bytes);
        out.u32(self.bits.len() as u32);
        self.bits.iter().for_each(|word| out.u64(*word));
        out.0
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<RegionsRecord> {
        let mut from = Reader::new("regions", bytes)?;
        let region_bytes = from.u64()?;
        let words = from.u32()?;
        let bits: Result<Vec<u64>> = (0..words).map(|_| from.u64()).collect();
        Ok(RegionsRecord { region_bytes, bits: bits? })
    }
}

impl LogHeader {
    pub(crate) fn encode(&self) -> [u8; LOG_HEADER_BYTES] {
        let mut out = Writer(Vec::with_capacity(LOG_HEADER_BYTES));
        out.u32(LOG_MAGIC);
        out.u16(self.volume);
        out.u16(match self.kind {
            LogKind::Data => 0,
            LogKind::Zeros(Hole::Allowed) => 1,
            LogKind::Zeros(Hole::Forbidden) => 2,
        });
        out.u32(self.incarnation);
        out.u32(0);
        out.u64(self.epoch);
        out.u64(self.first);
        out.u64(self.blocks);
        let mut bytes = [0; LOG_HEADER_BYTES];
        bytes.copy_from_slice(&out.0);
        bytes
    }

    /// The header and the data of an entry; `None` if it is none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(LogHeader, &[u8])> {
        let mut from = Reader { what: "log", bytes };
        if from.u32().ok()? != LOG_MAGIC {
            return None;
        }
        let (volume, kind) = (from.u16().ok()?, from.u16().ok()?);
        let kind = match kind {
            0 => LogKind::Data,
            1 => LogKind::Zeros(Hole::Allowed),
            2 => LogKind::Zeros(Hole::Forbidden),
            _ => return None,
        };
        let incarnation = from.u32().ok()?;
        let _unused = from.u32().ok()?;
        let (epoch, first, blocks) = (from.u64().ok()?, from.u64().ok()?, from.u64().ok()?);
        let header = LogHeader { volume, kind, incarnation, epoch, first, blocks };
        let whole = blocks > 0
            && first.checked_add(blocks).is_some()
            && (kind != LogKind::Data) == from.bytes.is_empty();
        whole.then_some((header, from.bytes))
    }

    /// Bytes `wanted` of volume `volume` out of an entry, and the block that the entry begins
    /// with; `None` if it does not hold them.
    pub(crate) fn bytes_of(
        volume: VolumeId,
        wanted: &Range<u64>,
        entry: &Bytes,
    ) -> Option<(u64, Bytes)> {
        let (header, _) = LogHeader::decode(entry)?;
        let skip = wanted.start.checked_sub(header.first.checked_mul(BLOCK_BYTES)?)?;
        let start = LOG_HEADER_BYTES + usize::try_from(skip).ok()?;
        let end = start + (wanted.end - wanted.start) as usize;
        let held = header.volume == volume.0 && end <= entry.len();
        held.then(|| (header.first, entry.slice(start..end)))
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn new() -> Writer {
        Writer(VERSION.to_le_bytes().to_vec())
    }

    fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Length (2 bytes), then the text, cut at 64 KiB.
    fn text(&mut self, text: &str) {
        let mut end = text.len().min(usize::from(u16::MAX));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.u16(end as u16);
        self.0.extend_from_slice(&text.as_bytes()[..end]);
    }
}

struct Reader<'a> {
    what: &'static str,
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn new(what: &'static str, bytes: &'a [u8]) -> Result<Reader<'a>> {
        let mut from = Reader { what, bytes };
        let version = from.u16()?;
        if version != VERSION {
            return Err(from.wrong(&format!("version {VERSION}, found {version}")));
        }
        Ok(from)
    }

    fn wrong(&self, expected: &str) -> Error {
        let detail = format!("the cache's {} record: expected {expected}", self.what);
        Error::new(ErrorKind::Incompatible, detail)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((taken, rest)) = self.bytes.split_first_chunk::<N>() else {
            return Err(self.wrong(&format!("{N} bytes more, found {}", self.bytes.len())));
        };
        self.bytes = rest;
        Ok(*taken)
    }

    fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    fn u128(&mut self) -> Result<u128> {
        Ok(u128::from_le_bytes(self.take()?))
    }

    fn text(&mut self) -> Result<String> {
        let length = usize::from(self.u16()?);
        let Some((text, rest)) = self.bytes.split_at_checked(length) else {
            let expected = format!("a text of {length} bytes, found {}", self.bytes.len());
            return Err(self.wrong(&expected));
        };
        self.bytes = rest;
        String::from_utf8(text.to_vec()).map_err(|_| self.wrong("a text in UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_were_and_cut_ones_are_refused() {
        let volume = VolumeRecord {
            options: VolumeOptions {
                name: "disk".to_owned(),
                backing: "nbd://host/ä".to_owned(),
                mode: Mode::WriteOnly,
                qos: Qos { reservation: 1.5, limit: 100.0, weight: 2.0 },
                description: "root".to_owned(),
                ..VolumeOptions::default()
            },
            bytes: 123_456_789,
            identity: "file 1:2".to_owned(),
            version: String::new(),
            partition_entries: 77,
        };
        let bytes = volume.encode();
        assert_eq!(VolumeRecord::decode(&bytes).unwrap(), volume);
        // An earlier version's, which has no description: its text takes 2 + 4 bytes here.
        let earlier = bytes.len() - 6;
        for length in (0..bytes.len()).filter(|length| *length != earlier) {
            assert!(VolumeRecord::decode(&bytes[..length]).is_err(), "{length} bytes");
        }
        let found = VolumeRecord::decode(&bytes[..earlier]).unwrap();
        assert_eq!(found.options.description, "");
        let state = StateRecord { written_back: 9, next: 3, incarnations: vec![(1, 1), (4, 20)] };
        assert_eq!(StateRecord::decode(&state.encode()).unwrap(), state);
        let regions = RegionsRecord { region_bytes: 1 << 24, bits: vec![5, 0, 7] };
        assert_eq!(RegionsRecord::decode(&regions.encode()).unwrap(), regions);
        let held = HeldRecord { incarnation: 4, part_blocks: 64, bits: vec![1, 0, 1 << 63] };
        assert_eq!(HeldRecord::decode(&held.encode()).unwrap(), held);
        for clean in [true, false] {
            let session = SessionRecord { clean, incarnation: 3, boot: 1 << 90, cache: 7 };
            assert_eq!(SessionRecord::decode(&session.encode()).unwrap(), session);
            assert_eq!(session.encode()[0], if clean { 1 } else { 2 });
        }
        let over = OverwriteRecord { first: 1 << 50, blocks: 16 };
        assert_eq!(OverwriteRecord::decode(&over.encode()).unwrap(), over);
        let kind = LogKind::Data;
        let header = LogHeader { volume: 2, kind, incarnation: 3, epoch: 4, first: 5, blocks: 1 };
        let mut entry = header.encode().to_vec();
        assert!(LogHeader::decode(&entry).is_none());
        entry.push(1);
        assert_eq!(LogHeader::decode(&entry).unwrap(), (header, &[1u8][..]));
        for hole in [Hole::Allowed, Hole::Forbidden] {
            let header = LogHeader { kind: LogKind::Zeros(hole), ..header };
            let mut entry = header.encode().to_vec();
            assert_eq!(LogHeader::decode(&entry).unwrap(), (header, &[][..]));
            entry.push(1);
            assert!(LogHeader::decode(&entry).is_none());
        }
        entry[6] = 3;
        assert!(LogHeader::decode(&entry).is_none());
    }

    #[test]
    fn an_entry_is_of_the_last_incarnation_that_began_before_it() {
        let mut state = StateRecord::default();
        state.begin(1, 1);
        state.begin(2, 50);
        state.begin(3, 80);
        assert_eq!(state.incarnation_of(49), Some(1));
        assert_eq!(state.incarnation_of(79), Some(2));
        assert_eq!(state.incarnation_of(1000), Some(3));
        state.written_back = 60;
        state.begin(4, 70);
        assert_eq!(state.incarnations, [(2, 50), (4, 70)]);
    }
}
