//! Manifests: a backup is one, and the names of its objects.

use std::fmt;

use serde_json::{Map, Value, json};

use super::digest::{Digest, bytes_of};
use super::id::Id;
use super::image::{Image, Segment, StoreId, number_of, text_of, truth_of};
use super::object::object_bytes_max;

const FORMAT: &str = "entresol-backup";
const VERSION: u64 = 1;
/// Longest manifest, of some four million segments.
pub(crate) const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// The name of a manifest: whose it is, and a check of its text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManifestName {
    /// The backup.
    pub id: Id,
    /// The store that it is of.
    pub store: StoreId,
    check: String,
}

/// A backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Its name.
    pub id: Id,
    /// The device.
    pub image: Image,
    /// The objects of the image's segments, in their order.
    pub rows: Vec<Row>,
}

/// A segment of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Where it was, and how long.
    pub segment: Segment,
    /// Name of its object.
    pub object: String,
    /// Length of the object when the backup was made.
    pub object_bytes: u64,
    /// Of the raw bytes.
    pub digest: Digest,
    /// Whether this backup wrote the object.
    pub is_new: bool,
}

/// The name of the object with a segment's content.
pub(crate) fn object_name(store: StoreId, segment: &Segment, digest: &Digest) -> String {
    let Segment { at, sequence, bytes, .. } = segment;
    format!("segments/{store}/{at:016x}-{sequence:016x}-{bytes:08x}-{}.zst", digest.check())
}

/// Whether a name is one that [`object_name`] gives.
pub(crate) fn is_object_name(name: &str) -> bool {
    const DIGITS: [usize; 4] = [16, 16, 8, 16];
    let is_hex = |text: &str, digits| {
        text.len() == digits && bytes_of(text).is_some_and(|bytes| !bytes.is_empty())
    };
    let Some((store, parts)) = name.strip_prefix("segments/").and_then(|n| n.split_once('/'))
    else {
        return false;
    };
    let Some(parts) = parts.strip_suffix(".zst") else { return false };
    let parts: Vec<&str> = parts.split('-').collect();
    is_hex(store, 16)
        && parts.len() == DIGITS.len()
        && parts.iter().zip(DIGITS).all(|(part, digits)| is_hex(part, digits))
}

impl ManifestName {
    /// What [`ManifestName`] prints; `None` where a name is not a manifest's.
    pub fn parse(name: &str) -> Option<ManifestName> {
        let parts = name.strip_prefix("manifests/")?.strip_suffix(".json")?;
        let mut parts = parts.split('.');
        let name = ManifestName {
            id: Id::parse(parts.next()?)?,
            store: StoreId::parse(parts.next()?)?,
            check: parts.next()?.to_owned(),
        };
        let digits = bytes_of(&name.check)?;
        (digits.len() == 8 && parts.next().is_none()).then_some(name)
    }
}

impl fmt::Display for ManifestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "manifests/{}.{}.{}.json", self.id, self.store, self.check)
    }
}

impl Manifest {
    /// The text, and the name that goes with it.
    pub fn encode(&self) -> (ManifestName, String) {
        let mut object = Map::new();
        object.insert("format".into(), json!(FORMAT));
        object.insert("version".into(), json!(VERSION));
        object.insert("id".into(), json!(self.id.to_string()));
        object.extend(self.image.head_to_json());
        let rows: Vec<Value> = self.rows.iter().map(Row::to_json).collect();
        object.insert("segments".into(), Value::Array(rows));
        let text = Value::Object(object).to_string();
        let check = Digest::of(text.as_bytes()).check();
        (ManifestName { id: self.id.clone(), store: self.image.store, check }, text)
    }

    /// The manifest of that name whose text this is.
    pub fn decode(name: &ManifestName, text: &[u8]) -> Result<Manifest, String> {
        let check = Digest::of(text).check();
        if check != name.check {
            return Err(format!(
                "expected a text whose SHA-256 begins with {}, found {check}",
                name.check
            ));
        }
        let value: Value = serde_json::from_slice(text)
            .map_err(|error| format!("expected a JSON object, found what is none: {error}"))?;
        let object = value.as_object().ok_or("expected a JSON object, found another value")?;
        let format = text_of(object, "format")?;
        if format != FORMAT {
            return Err(format!("`format`: expected {FORMAT}, found {}", format.escape_debug()));
        }
        let version = number_of(object, "version")?;
        if version != VERSION {
            return Err(format!(
                "`version`: expected {VERSION}, found {version}; a newer entresol may read it"
            ));
        }
        let id = text_of(object, "id")?;
        if id != name.id.to_string() {
            return Err(format!("`id`: expected {}, found {}", name.id, id.escape_debug()));
        }
        let image = Image::from_json(object)?;
        if image.store != name.store {
            return Err(format!("`store`: expected {}, found {}", name.store, image.store));
        }
        let rows = object.get("segments").and_then(Value::as_array).into_iter().flatten();
        let rows = rows.zip(&image.segments).map(|(row, segment)| {
            let row = Row::from_json(row.as_object().unwrap_or(&Map::new()), image.store, *segment);
            row.map_err(|what| format!("segment at {}: {what}", segment.at))
        });
        let rows = rows.collect::<Result<Vec<Row>, String>>()?;
        Ok(Manifest { id: name.id.clone(), image, rows })
    }

    /// Lengths of the objects that this backup wrote.
    pub fn new_object_bytes(&self) -> u64 {
        self.rows.iter().filter(|row| row.is_new).map(|row| row.object_bytes).sum()
    }
}

impl Row {
    fn to_json(&self) -> Value {
        let Segment { at, sequence, bytes, sealed } = self.segment;
        json!({
            "at": at,
            "sequence": sequence,
            "bytes": bytes,
            "sealed": sealed,
            "object": self.object,
            "object_bytes": self.object_bytes,
            "sha256": self.digest.to_string(),
            "new": self.is_new,
        })
    }

    fn from_json(
        object: &Map<String, Value>,
        store: StoreId,
        segment: Segment,
    ) -> Result<Row, String> {
        let digits = text_of(object, "sha256")?;
        let digest = Digest::parse(digits).ok_or_else(|| {
            format!("`sha256`: expected 64 hexadecimal digits, found '{}'", digits.escape_debug())
        })?;
        let (found, expected) = (text_of(object, "object")?, object_name(store, &segment, &digest));
        if found != expected {
            return Err(format!("`object`: expected {expected}, found {}", found.escape_debug()));
        }
        let (object_bytes, most) =
            (number_of(object, "object_bytes")?, object_bytes_max(segment.bytes));
        if object_bytes > most {
            return Err(format!("`object_bytes`: expected at most {most}, found {object_bytes}"));
        }
        let is_new = truth_of(object, "new")?;
        Ok(Row { segment, object: expected, object_bytes, digest, is_new })
    }
}
