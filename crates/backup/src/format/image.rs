//! A device as it was at one moment: two copies of a superblock, and segments at their places.

use std::fmt;

use serde_json::{Map, Value, json};

use super::digest::{bytes_of, digits_of};

/// The longest segment.
const SEGMENT_BYTES_MAX: u64 = 64 << 20;
/// The most that a copy of a superblock may have.
const SUPERBLOCK_BYTES_MAX: u64 = 1 << 20;
/// Longest device: offsets in files are signed.
const DEVICE_BYTES_MAX: u64 = i64::MAX as u64;

/// The identity of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub u64);

/// A segment in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Segment {
    /// Its place on the device.
    pub at: u64,
    /// The number of its use.
    pub sequence: u64,
    /// So many of its first bytes count; the others are zeros.
    pub bytes: u64,
    /// Whether store, place and sequence name its content for ever.
    pub sealed: bool,
}

/// A device at one moment. All that is in no superblock and in no segment is zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Whose device it is.
    pub store: StoreId,
    /// Length of the device.
    pub device_bytes: u64,
    /// Length of a segment.
    pub segment_bytes: u64,
    /// Place of the second copy of the superblock; the first is at 0.
    pub superblock_bytes: u64,
    /// The bytes of each copy.
    pub superblock: Vec<u8>,
    /// In the order in which they are copied.
    pub segments: Vec<Segment>,
}

impl StoreId {
    /// What [`StoreId`] prints.
    pub(crate) fn parse(text: &str) -> Option<StoreId> {
        let bytes = bytes_of(text)?;
        Some(StoreId(u64::from_be_bytes(bytes.try_into().ok()?)))
    }
}

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Image {
    /// The image that a server or a manifest describes by the members of an object.
    pub fn from_json(object: &Map<String, Value>) -> Result<Image, String> {
        let text = text_of(object, "store")?;
        let store = StoreId::parse(text).ok_or_else(|| {
            format!("`store`: expected 16 hexadecimal digits, found '{}'", shown(text))
        })?;
        let digits = text_of(object, "superblock")?;
        let superblock = bytes_of(digits).ok_or_else(|| {
            format!("`superblock`: expected hexadecimal digits, found '{}'", shown(digits))
        })?;
        let rows = object.get("segments").and_then(Value::as_array);
        let rows = rows.ok_or("`segments`: expected a list, found none")?;
        let mut segments = Vec::with_capacity(rows.len());
        for (number, row) in rows.iter().enumerate() {
            let segment = row.as_object().ok_or_else(|| "expected an object".to_owned());
            let segment = segment.and_then(Segment::from_json);
            segments.push(segment.map_err(|what| format!("segment {number} of the list: {what}"))?);
        }
        let image = Image {
            store,
            device_bytes: number_of(object, "device_bytes")?,
            segment_bytes: number_of(object, "segment_bytes")?,
            superblock_bytes: number_of(object, "superblock_bytes")?,
            superblock,
            segments,
        };
        image.check()?;
        Ok(image)
    }

    /// The members of an object that describe everything but the segments.
    pub(crate) fn head_to_json(&self) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("store".into(), json!(self.store.to_string()));
        object.insert("device_bytes".into(), json!(self.device_bytes));
        object.insert("segment_bytes".into(), json!(self.segment_bytes));
        object.insert("superblock_bytes".into(), json!(self.superblock_bytes));
        object.insert("superblock".into(), json!(digits_of(&self.superblock)));
        object
    }

    /// Bytes of all segments that count.
    pub fn content_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// That every part lies within the device and no two overlap.
    fn check(&self) -> Result<(), String> {
        let within = |name: &str, value: u64, least: u64, most: u64| match value {
            value if (least..=most).contains(&value) => Ok(()),
            _ => Err(format!("`{name}`: expected {least} to {most}, found {value}")),
        };
        within("segment_bytes", self.segment_bytes, 1, SEGMENT_BYTES_MAX)?;
        within("superblock_bytes", self.superblock_bytes, 1, SUPERBLOCK_BYTES_MAX)?;
        let superblocks = 2 * self.superblock_bytes;
        within("device_bytes", self.device_bytes, superblocks, DEVICE_BYTES_MAX)?;
        within(
            "the length of `superblock`",
            self.superblock.len() as u64,
            1,
            self.superblock_bytes,
        )?;
        let mut order: Vec<&Segment> = self.segments.iter().collect();
        order.sort_unstable_by_key(|segment| segment.at);
        let mut free_from = superblocks;
        for segment in order {
            let Segment { at, bytes, .. } = *segment;
            let end = at.checked_add(self.segment_bytes).filter(|end| *end <= self.device_bytes);
            let end = end.ok_or_else(|| {
                format!(
                    "segment at {at}: expected {} bytes within the device of {}, found it beyond",
                    self.segment_bytes, self.device_bytes
                )
            })?;
            if at < free_from {
                return Err(format!(
                    "segment at {at}: expected a place from {free_from} on, found one in use"
                ));
            }
            if bytes > self.segment_bytes {
                return Err(format!(
                    "segment at {at}: expected at most {} bytes, found {bytes}",
                    self.segment_bytes
                ));
            }
            free_from = end;
        }
        Ok(())
    }
}

impl Segment {
    pub(crate) fn from_json(object: &Map<String, Value>) -> Result<Segment, String> {
        Ok(Segment {
            at: number_of(object, "at")?,
            sequence: number_of(object, "sequence")?,
            bytes: number_of(object, "bytes")?,
            sealed: truth_of(object, "sealed")?,
        })
    }
}

/// A member that is a number.
pub(crate) fn number_of(object: &Map<String, Value>, name: &str) -> Result<u64, String> {
    let value = object.get(name);
    value.and_then(Value::as_u64).ok_or_else(|| expected(name, "a whole number", value))
}

/// A member that is a text.
pub(crate) fn text_of<'a>(object: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    let value = object.get(name);
    value.and_then(Value::as_str).ok_or_else(|| expected(name, "a text", value))
}

/// A member that is `true` or `false`.
pub(crate) fn truth_of(object: &Map<String, Value>, name: &str) -> Result<bool, String> {
    let value = object.get(name);
    value.and_then(Value::as_bool).ok_or_else(|| expected(name, "true or false", value))
}

fn expected(name: &str, what: &str, found: Option<&Value>) -> String {
    let found = found.map_or_else(|| "nothing".to_owned(), |value| shown(&value.to_string()));
    format!("`{name}`: expected {what}, found {found}")
}

/// The beginning of a text that may be long, without what a terminal might obey.
fn shown(text: &str) -> String {
    const SHOWN_CHARS: usize = 60;
    let mut chars = text.chars().map(|sign| if sign.is_control() { '?' } else { sign });
    let mut shown: String = chars.by_ref().take(SHOWN_CHARS).collect();
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}
