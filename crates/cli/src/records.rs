//! CSV and JSON lines as entries, and back.
//!
//! Bytes that are not UTF-8 travel as hexadecimal digits under the field's name with `_hex` behind
//! it, so that every entry comes back as it was. The further fields of an export have their meaning
//! only if the load reads `key` and `value`; in other records such names belong to the user.

mod bounded;
mod end_mark;
mod line_starts;

use std::collections::HashSet;
use std::io::{BufRead, Write};
use std::num::NonZeroU32;

use csv::StringRecord;
use entresol_wire::json::{Json, Object};
use serde_json::{Map, Value};

use self::bounded::{Allowance, RECORD_BYTES_MAX};
use self::end_mark::InputEnd;
use self::line_starts::LineStarts;
use crate::failure::{Failure, Outcome};
use crate::holder::{Item, Pairs, Parts};
use crate::units::{from_hex, hex};

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Layout {
    /// Comma-separated values with a heading
    Csv,
    /// One JSON object a line
    Jsonl,
}

/// Which fields of a record make an entry.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    /// Fields whose texts, joined by `separator`, are the key.
    pub(crate) key: Vec<String>,
    /// Between the parts of a key.
    pub(crate) separator: String,
    /// The field that is the value; `None`: the whole record as a JSON object.
    pub(crate) value: Option<String>,
}

impl Fields {
    /// Whether they are those that an export writes.
    fn are_of_export(&self) -> bool {
        self.key == [KEY] && self.value.as_deref() == Some(VALUE)
    }

    /// Whether the field called `name` becomes part of entries.
    fn takes(&self, name: &str) -> bool {
        let own = |wanted: &str| name.strip_suffix("_hex").unwrap_or(name) == wanted;
        match &self.value {
            None => true,
            Some(value) => own(value) || self.key.iter().any(|key| own(key)),
        }
    }
}

const KEY: &str = "key";
const VALUE: &str = "value";
const EXPIRES: &str = "expires_at_ms";
const IDLE: &str = "idle_seconds";
const PINNED: &str = "pinned";
const LABEL: &str = "label";
const FIELDS: &str = "fields";
const FIELDS_HEX: &str = "fields_hex";
const PARTS: &str = "parts";
const PARTS_HEX: &str = "parts_hex";

/// Reads records from `input` and gives their entries to `visit`; errors name the line.
pub(crate) fn read(
    input: impl BufRead,
    layout: Layout,
    fields: &Fields,
    visit: &mut dyn FnMut(Item) -> Outcome<()>,
) -> Outcome<()> {
    read_within(RECORD_BYTES_MAX, (input, layout), fields, visit)
}

/// As [`read`], with records of so many bytes at most.
fn read_within(
    bytes_max: u64,
    (input, layout): (impl BufRead, Layout),
    fields: &Fields,
    visit: &mut dyn FnMut(Item) -> Outcome<()>,
) -> Outcome<()> {
    let allowance = Allowance::new(bytes_max);
    let input = allowance.bound(input);
    match layout {
        Layout::Jsonl => read_lines((input, &allowance), fields, visit),
        Layout::Csv => read_csv((input, &allowance), fields, visit),
    }
}

/// Writes entries as records.
pub(crate) enum Writer<W: Write> {
    /// Comma-separated values.
    Csv(Box<csv::Writer<W>>),
    /// JSON lines.
    Jsonl(W),
}

impl<W: Write> Writer<W> {
    /// A writer of `layout` to `output`.
    pub(crate) fn new(layout: Layout, output: W) -> Outcome<Writer<W>> {
        if layout == Layout::Jsonl {
            return Ok(Writer::Jsonl(output));
        }
        let mut writer = csv::Writer::from_writer(output);
        writer
            .write_record([KEY, "key_hex", VALUE, "value_hex", LABEL, EXPIRES, IDLE, PINNED])
            .map_err(not_written)?;
        Ok(Writer::Csv(Box::new(writer)))
    }

    /// Writes one entry.
    pub(crate) fn write(&mut self, item: &Item) -> Outcome<()> {
        match self {
            Writer::Jsonl(output) => {
                writeln!(output, "{}", to_json(item)).map_err(Failure::not_written)
            }
            Writer::Csv(writer) => {
                if !item.fields.is_empty() {
                    return Err(Failure::CannotRun(format!(
                        "'{}' is a hash, which CSV cannot hold; use --format jsonl",
                        String::from_utf8_lossy(&item.key)
                    )));
                }
                if item.parts.is_some() {
                    return Err(Failure::CannotRun(format!(
                        "row '{}' has parts that nobody has folded, which CSV cannot hold; use \
                         --format jsonl",
                        String::from_utf8_lossy(&item.key)
                    )));
                }
                let (key, key_hex) = text_or_hex(&item.key);
                let (value, value_hex) = text_or_hex(&item.value);
                let label = item.label.to_string();
                let expires = item.expires_at_ms.map_or(String::new(), |ms| ms.to_string());
                let idle = item.idle_seconds.map_or(String::new(), |idle| idle.to_string());
                let pinned = if item.is_pinned { "true" } else { "" };
                let pinned = pinned.to_owned();
                writer
                    .write_record([key, key_hex, value, value_hex, label, expires, idle, pinned])
                    .map_err(not_written)
            }
        }
    }

    /// Hands over what is buffered.
    pub(crate) fn finish(self) -> Outcome<()> {
        match self {
            Writer::Jsonl(mut output) => output.flush(),
            Writer::Csv(mut writer) => writer.flush(),
        }
        .map_err(Failure::not_written)
    }
}

fn not_written(error: csv::Error) -> Failure {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => Failure::not_written(error),
        other => Failure::CannotRun(format!("cannot write: {other:?}")),
    }
}

fn read_lines(
    (input, allowance): (impl BufRead, &Allowance),
    fields: &Fields,
    visit: &mut dyn FnMut(Item) -> Outcome<()>,
) -> Outcome<()> {
    for (index, line) in input.lines().enumerate() {
        allowance.renew();
        let number = index + 1;
        let wrong = |what: String| Failure::CannotRun(format!("line {number}: {what}"));
        let line = line.map_err(|e| wrong(format!("cannot be read: {e}")))?;
        // The mark that some programs begin a text with is no part of it.
        let line = if index == 0 { line.trim_start_matches('\u{FEFF}') } else { &line };
        if line.trim().is_empty() {
            continue;
        }
        let record = match Json::parse(line) {
            Ok(Json::Object(record)) => record,
            Ok(_) => return Err(wrong("expected a JSON object, found another value".to_owned())),
            Err(error) => return Err(wrong(format!("expected a JSON object: {error}"))),
        };
        let item = from_json(&record, fields).map_err(wrong)?;
        visit(item).map_err(|failure| wrong(failure.to_string()))?;
    }
    Ok(())
}

fn read_csv(
    (input, allowance): (impl BufRead, &Allowance),
    fields: &Fields,
    visit: &mut dyn FnMut(Item) -> Outcome<()>,
) -> Outcome<()> {
    let lines = LineStarts::default();
    let end = InputEnd::default();
    let input = lines.of(end.behind(input));
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(input);
    let headings = reader.headers().map_err(|e| not_read(e, 1, &StringRecord::new()))?.clone();
    let position = reader.position().byte();
    if end.is_mark(&headings, position) {
        return Ok(());
    }
    let closed = demand_closed(&headings, end.is_open(&headings, position));
    closed
        .and_then(|()| demand_headings(&headings, fields))
        .map_err(|what| Failure::doing("line 1", what))?;
    let mut record = StringRecord::new();
    loop {
        allowance.renew();
        lines.begin(reader.position().byte());
        let read = reader.read_record(&mut record);
        let line = lines.line();
        let position = reader.position().byte();
        match read {
            Ok(read) if !read || end.is_mark(&record, position) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(not_read(error, line, &headings)),
        }
        let wrong = |what: String| Failure::CannotRun(format!("line {line}: {what}"));
        demand_closed(&record, end.is_open(&record, position)).map_err(wrong)?;
        if record.len() != headings.len() {
            let (expected, found) = (headings.len(), record.len());
            return Err(wrong(format!("expected {expected} fields as in line 1, found {found}")));
        }
        let pairs = headings.iter().zip(record.iter());
        let object: Object =
            pairs.map(|(name, text)| (name.to_owned(), Json::Text(text.to_owned()))).collect();
        let item = from_json(&object, fields).map_err(wrong)?;
        visit(item).map_err(|failure| wrong(failure.to_string()))?;
    }
}

/// A record that begins in `line` could not be read.
fn not_read(error: csv::Error, line: u64, headings: &StringRecord) -> Failure {
    let what = match error.into_kind() {
        csv::ErrorKind::Utf8 { err, .. } => match headings.get(err.field()) {
            Some(name) => format!(
                "the field '{name}' is not UTF-8; write it as hexadecimal digits in a field \
                 '{name}_hex'"
            ),
            None => format!("field {} is not UTF-8", err.field() + 1),
        },
        csv::ErrorKind::Io(error) => error.to_string(),
        other => format!("{other:?}"),
    };
    Failure::CannotRun(format!("line {line}: {what}"))
}

/// Refuses a record whose last field goes on to the end of the file.
fn demand_closed(record: &StringRecord, is_open: bool) -> Result<(), String> {
    if !is_open {
        return Ok(());
    }
    Err(format!(
        "field {} begins with a quote that is never closed: the file was cut off, or a quote \
         stands for itself and is not doubled",
        record.len()
    ))
}

/// Refuses headings that say in two ways what becomes part of entries.
fn demand_headings(headings: &StringRecord, fields: &Fields) -> Result<(), String> {
    let mut seen = HashSet::new();
    match headings.iter().find(|name| !seen.insert(*name) && fields.takes(name)) {
        Some(twice) => Err(format!("two fields are called '{twice}'; rename one of them")),
        None => Ok(()),
    }
}

fn from_json(record: &Object, fields: &Fields) -> Result<Item, String> {
    let mut key = Vec::new();
    for (i, name) in fields.key.iter().enumerate() {
        if record.get(name) == Some(&Json::Null) {
            return Err(format!("the key field '{name}' is null"));
        }
        if i > 0 {
            key.extend_from_slice(fields.separator.as_bytes());
        }
        key.extend(field(record, name)?);
    }
    if key.is_empty() {
        return Err(format!("the key field '{}' is empty", fields.key.join(",")));
    }
    let mut item = Item { key, ..Item::default() };
    let Some(value) = &fields.value else {
        item.value = record.to_string().into_bytes();
        return Ok(item);
    };
    item.expires_at_ms = end_of_life(record)?;
    let is_export = fields.are_of_export();
    if is_export {
        item.label = number(record, LABEL)?.unwrap_or(0);
        item.idle_seconds = number::<u32>(record, IDLE)?.and_then(NonZeroU32::new);
        item.is_pinned = record.get(PINNED).is_some_and(|pinned| pinned.to_text() == "true");
        item.fields = hash_of(record)?;
        item.parts = parts_of(record)?;
    }
    let has_value = item.parts.as_ref().is_none_or(|parts| parts.has_value);
    if item.fields.is_empty() && has_value {
        item.value = field(record, value)?;
    }
    Ok(item)
}

/// The fields and values of a hash, where the record is that of one.
fn hash_of(record: &Object) -> Result<Pairs, String> {
    let mut all = Vec::new();
    if [VALUE, "value_hex"].iter().any(|name| record.get(name).is_some()) {
        return Ok(all);
    }
    let object = |name| match record.get(name) {
        Some(Json::Object(fields)) => Some(fields),
        _ => None,
    };
    for (name, value) in object(FIELDS).into_iter().flat_map(Object::iter) {
        all.push((name.as_bytes().to_vec(), value.to_text().into_bytes()));
    }
    for (name, value) in object(FIELDS_HEX).into_iter().flat_map(Object::iter) {
        let pair = from_hex(name).zip(from_hex(&value.to_text()));
        all.push(pair.ok_or_else(|| {
            format!("field '{name}' in '{FIELDS_HEX}': expected pairs of hexadecimal digits")
        })?);
    }
    Ok(all)
}

/// The parts of a row, where the record is that of one which has some.
fn parts_of(record: &Object) -> Result<Option<Parts>, String> {
    let (name, list) = match (record.get(PARTS), record.get(PARTS_HEX)) {
        (Some(Json::List(list)), _) => (PARTS, list),
        (_, Some(Json::List(list))) => (PARTS_HEX, list),
        _ => return Ok(None),
    };
    let part = |part: &Json| match (name, part.to_text()) {
        (PARTS, text) => Ok(text.into_bytes()),
        (_, text) => from_hex(&text).ok_or_else(|| {
            format!("field '{name}': expected pairs of hexadecimal digits, found '{text}'")
        }),
    };
    let list = list.iter().map(part).collect::<Result<Vec<_>, _>>()?;
    let has_value = [VALUE, "value_hex"].iter().any(|name| record.get(name).is_some());
    Ok(Some(Parts { has_value, list }).filter(|parts| !parts.list.is_empty()))
}

/// The bytes of field `name`, or of its hexadecimal twin.
fn field(record: &Object, name: &str) -> Result<Vec<u8>, String> {
    // Beside a text of its own, a field with such a name is another one.
    let text = record.get(name).map(Json::to_text).unwrap_or_default();
    let twin = match record.get(&format!("{name}_hex")) {
        Some(Json::Text(twin)) => twin.as_str(),
        _ => "",
    };
    if text.is_empty() && !twin.is_empty() {
        return from_hex(twin).ok_or_else(|| {
            format!("field '{name}_hex': expected pairs of hexadecimal digits, found '{twin}'")
        });
    }
    if record.get(name).is_some() {
        return Ok(text.into_bytes());
    }
    let known: Vec<&str> = record.iter().map(|(name, _)| name).take(20).collect();
    Err(format!("no field '{name}'; there are {}", known.join(", ")))
}

fn number<T: TryFrom<u64>>(record: &Object, name: &str) -> Result<Option<T>, String> {
    let text = match record.get(name) {
        None | Some(Json::Null) => return Ok(None),
        Some(value) => value.to_text(),
    };
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse::<u64>().ok().and_then(|number| T::try_from(number).ok());
    let max = if size_of::<T>() < 8 { (1 << (8 * size_of::<T>())) - 1 } else { u64::MAX };
    number.map(Some).ok_or_else(|| {
        format!("field '{name}': expected a whole number up to {max}, found '{text}'")
    })
}

/// When the entry ends. Clients and servers take such a time as a signed number.
fn end_of_life(record: &Object) -> Result<Option<u64>, String> {
    let found = number::<u64>(record, EXPIRES)?;
    if found.is_some_and(|ms| i64::try_from(ms).is_err()) {
        let (max, found) = (i64::MAX, found.unwrap_or_default());
        return Err(format!(
            "field '{EXPIRES}': expected milliseconds since 1970 up to {max}, found {found}"
        ));
    }
    Ok(found)
}

fn to_json(item: &Item) -> Value {
    let mut record = Map::new();
    let mut put = |name: &str, bytes: &[u8]| {
        let (text, hex) = text_or_hex(bytes);
        if hex.is_empty() {
            record.insert(name.to_owned(), text.into());
        } else {
            record.insert(format!("{name}_hex"), hex.into());
        }
    };
    put(KEY, &item.key);
    let has_value = item.parts.as_ref().is_none_or(|parts| parts.has_value);
    if item.fields.is_empty() && has_value {
        put(VALUE, &item.value);
    }
    if let Some(parts) = &item.parts {
        put_parts(&parts.list, &mut record);
    }
    for (name, value) in &item.fields {
        let (place, name, value) = match (str::from_utf8(name), str::from_utf8(value)) {
            (Ok(name), Ok(value)) => (FIELDS, name.to_owned(), value.to_owned()),
            _ => (FIELDS_HEX, hex(name), hex(value)),
        };
        let fields = record.entry(place).or_insert_with(|| Map::new().into());
        fields[name] = value.into();
    }
    if item.label != 0 {
        record.insert(LABEL.to_owned(), item.label.into());
    }
    if let Some(ms) = item.expires_at_ms {
        record.insert(EXPIRES.to_owned(), ms.into());
    }
    if let Some(idle) = item.idle_seconds {
        record.insert(IDLE.to_owned(), idle.get().into());
    }
    if item.is_pinned {
        record.insert(PINNED.to_owned(), true.into());
    }
    Value::Object(record)
}

/// Adds a row's parts to a record.
pub(crate) fn put_parts(parts: &[Vec<u8>], record: &mut Map<String, Value>) {
    let texts: Result<Vec<&str>, _> = parts.iter().map(|part| str::from_utf8(part)).collect();
    match texts {
        Ok(texts) => record.insert(PARTS.to_owned(), texts.into()),
        Err(_) => {
            let digits: Vec<String> = parts.iter().map(|part| hex(part)).collect();
            record.insert(PARTS_HEX.to_owned(), digits.into())
        }
    };
}

/// Text, or hexadecimal digits where bytes are no text; the other one is empty.
pub(crate) fn text_or_hex(bytes: &[u8]) -> (String, String) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), String::new()),
        Err(_) => (String::new(), hex(bytes)),
    }
}

#[cfg(test)]
mod tests;
