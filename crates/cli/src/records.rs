//! CSV and JSON lines as entries, and back.
//!
//! What is not UTF-8 travels as hexadecimal digits under the field's name with `_hex` behind it, so
//! that every entry comes back as it was.

use std::io::{BufRead, Write};

use csv::StringRecord;
use serde_json::{Map, Value};

use crate::failure::{Failure, Outcome};
use crate::place::Item;

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

const EXPIRES: &str = "expires_at_ms";
const LABEL: &str = "label";
const FIELDS: &str = "fields";

/// Reads records from `input` and gives their entries to `visit`; errors name the line.
pub(crate) fn read(
    input: impl BufRead,
    layout: Layout,
    fields: &Fields,
    visit: &mut dyn FnMut(Item) -> Outcome<()>,
) -> Outcome<()> {
    match layout {
        Layout::Jsonl => read_lines(input, fields, visit),
        Layout::Csv => read_csv(input, fields, visit),
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
            .write_record(["key", "key_hex", "value", "value_hex", LABEL, EXPIRES])
            .map_err(|e| Failure::doing("cannot write", e))?;
        Ok(Writer::Csv(Box::new(writer)))
    }

    /// Writes one entry.
    pub(crate) fn write(&mut self, item: &Item) -> Outcome<()> {
        let failed = |e: &dyn std::fmt::Display| Failure::doing("cannot write", e);
        match self {
            Writer::Jsonl(output) => writeln!(output, "{}", to_json(item)).map_err(|e| failed(&e)),
            Writer::Csv(writer) => {
                if !item.fields.is_empty() {
                    return Err(Failure::CannotRun(format!(
                        "'{}' is a hash, which CSV cannot hold; use --format jsonl",
                        String::from_utf8_lossy(&item.key)
                    )));
                }
                let (key, key_hex) = text_or_hex(&item.key);
                let (value, value_hex) = text_or_hex(&item.value);
                let label = item.label.to_string();
                let expires = item.expires_at_ms.map_or(String::new(), |ms| ms.to_string());
                writer
                    .write_record([&key, &key_hex, &value, &value_hex, &label, &expires])
                    .map_err(|e| failed(&e))
            }
        }
    }

    /// Hands over what is buffered.
    pub(crate) fn finish(self) -> Outcome<()> {
        match self {
            Writer::Jsonl(mut output) => output.flush(),
            Writer::Csv(mut writer) => writer.flush(),
        }
        .map_err(|e| Failure::doing("cannot write", e))
    }
}

fn read_lines(
    input: impl BufRead,
    fields: &Fields,
    visit: &mut dyn FnMut(Item) -> Outcome<()>,
) -> Outcome<()> {
    for (index, line) in input.lines().enumerate() {
        let number = index + 1;
        let wrong = |what: String| Failure::CannotRun(format!("line {number}: {what}"));
        let line = line.map_err(|e| wrong(format!("cannot be read: {e}")))?;
        if line.trim().is_empty() {
            continue;
        }
        let record: Map<String, Value> = serde_json::from_str(&line)
            .map_err(|e| wrong(format!("expected a JSON object: {e}")))?;
        let item = from_json(&record, fields).map_err(wrong)?;
        visit(item).map_err(|failure| wrong(failure.to_string()))?;
    }
    Ok(())
}

fn read_csv(
    input: impl BufRead,
    fields: &Fields,
    visit: &mut dyn FnMut(Item) -> Outcome<()>,
) -> Outcome<()> {
    let mut reader = csv::Reader::from_reader(input);
    let headings = reader.headers().map_err(|e| Failure::doing("line 1", e))?.clone();
    let mut record = StringRecord::new();
    loop {
        match reader.read_record(&mut record) {
            Ok(false) => return Ok(()),
            Ok(true) => {}
            Err(error) => return Err(Failure::CannotRun(error.to_string())),
        }
        let line = record.position().map_or(0, csv::Position::line);
        let wrong = |what: String| Failure::CannotRun(format!("line {line}: {what}"));
        let pairs = headings.iter().zip(record.iter());
        let object: Map<String, Value> =
            pairs.map(|(name, text)| (name.to_owned(), Value::from(text))).collect();
        let item = from_json(&object, fields).map_err(wrong)?;
        visit(item).map_err(|failure| wrong(failure.to_string()))?;
    }
}

fn from_json(record: &Map<String, Value>, fields: &Fields) -> Result<Item, String> {
    let mut key = Vec::new();
    for (i, name) in fields.key.iter().enumerate() {
        if i > 0 {
            key.extend_from_slice(fields.separator.as_bytes());
        }
        key.extend(field(record, name)?);
    }
    if key.is_empty() {
        return Err(format!("the key field '{}' is empty", fields.key.join(",")));
    }
    let hash = record.get(FIELDS).and_then(Value::as_object);
    let mut item = Item { key, ..Item::default() };
    match (&fields.value, hash) {
        (Some(_), Some(hash)) => {
            for (name, value) in hash {
                item.fields.push((name.clone().into_bytes(), text_of(value).into_bytes()));
            }
        }
        (Some(name), None) => item.value = field(record, name)?,
        (None, _) => {
            item.value = Value::Object(record.clone()).to_string().into_bytes();
            return Ok(item);
        }
    }
    item.expires_at_ms = number(record, EXPIRES)?;
    item.label = number(record, LABEL)?.unwrap_or(0) as u8;
    Ok(item)
}

/// The bytes of field `name`, or of its hexadecimal twin.
fn field(record: &Map<String, Value>, name: &str) -> Result<Vec<u8>, String> {
    let twin = record.get(&format!("{name}_hex")).and_then(Value::as_str).unwrap_or_default();
    match record.get(name) {
        Some(value) if twin.is_empty() => Ok(text_of(value).into_bytes()),
        _ if !twin.is_empty() => from_hex(twin).ok_or_else(|| format!("'{name}_hex' is no hex")),
        _ => {
            let known: Vec<&str> = record.keys().map(String::as_str).take(20).collect();
            Err(format!("no field '{name}'; there are {}", known.join(", ")))
        }
    }
}

fn number(record: &Map<String, Value>, name: &str) -> Result<Option<u64>, String> {
    match record.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match text_of(value).as_str() {
            "" => Ok(None),
            text => text
                .parse()
                .map(Some)
                .map_err(|_| format!("field '{name}': expected a whole number, found '{text}'")),
        },
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
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
    put("key", &item.key);
    if item.fields.is_empty() {
        put("value", &item.value);
    } else {
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields: Map<String, Value> =
            item.fields.iter().map(|(f, v)| (lossy(f), lossy(v).into())).collect();
        record.insert(FIELDS.to_owned(), fields.into());
    }
    if item.label != 0 {
        record.insert(LABEL.to_owned(), item.label.into());
    }
    if let Some(ms) = item.expires_at_ms {
        record.insert(EXPIRES.to_owned(), ms.into());
    }
    Value::Object(record)
}

/// Text, or hexadecimal digits where bytes are no text; the other one is empty.
pub(crate) fn text_or_hex(bytes: &[u8]) -> (String, String) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), String::new()),
        Err(_) => {
            let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            (String::new(), hex)
        }
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(key: &str, value: Option<&str>) -> Fields {
        Fields {
            key: key.split(',').map(str::to_owned).collect(),
            separator: "=".into(),
            value: value.map(str::to_owned),
        }
    }

    fn all(text: &str, layout: Layout, fields: &Fields) -> Outcome<Vec<Item>> {
        let mut items = Vec::new();
        read(text.as_bytes(), layout, fields, &mut |item| {
            items.push(item);
            Ok(())
        })?;
        Ok(items)
    }

    #[test]
    fn json_lines_become_entries() {
        let text =
            "{\"name\":\"a\",\"version\":2,\"x\":true}\n\n{\"name\":\"b\",\"version\":\"3\"}\n";
        let items = all(text, Layout::Jsonl, &fields("name,version", None)).unwrap();
        assert_eq!(items[0].key, b"a=2");
        assert_eq!(items[0].value, br#"{"name":"a","version":2,"x":true}"#);
        assert_eq!(items[1].key, b"b=3");
        let values = all(text, Layout::Jsonl, &fields("name", Some("version"))).unwrap();
        assert_eq!(values[1].value, b"3");
    }

    #[test]
    fn csv_becomes_entries_with_quotes_and_newlines() {
        let text = "id,text\n1,\"a, \"\"b\"\"\nc\"\n2,plain\n";
        let items = all(text, Layout::Csv, &fields("id", Some("text"))).unwrap();
        assert_eq!(items[0].value, b"a, \"b\"\nc");
        assert_eq!(items[1].key, b"2");
    }

    #[test]
    fn errors_name_the_line() {
        let cases = [
            ("{\"a\":1}\n{oops\n", Layout::Jsonl, "line 2"),
            ("{\"a\":1}\n{\"b\":1}\n", Layout::Jsonl, "line 2: no field 'a'; there are b"),
            ("a,b\n1,2\n3\n", Layout::Csv, "line: 3"),
            ("a,b\n1,2\n,3\n", Layout::Csv, "line 3: the key field 'a' is empty"),
        ];
        for (text, layout, expected) in cases {
            let error = all(text, layout, &fields("a", None)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let items = [
            Item { key: b"a".into(), value: b"x,\"y\"\n".into(), ..Item::default() },
            Item { key: vec![0xFF, 0], value: vec![0xC0, 1, 2], label: 1, ..Item::default() },
            Item { key: b"t".into(), expires_at_ms: Some(99), ..Item::default() },
        ];
        for layout in [Layout::Csv, Layout::Jsonl] {
            let mut output = Vec::new();
            let mut writer = Writer::new(layout, &mut output).unwrap();
            items.iter().for_each(|item| writer.write(item).unwrap());
            writer.finish().unwrap();
            let text = String::from_utf8(output).unwrap();
            assert_eq!(all(&text, layout, &fields("key", Some("value"))).unwrap(), items);
        }
        let hash =
            Item { key: b"h".into(), fields: vec![(b"f".into(), b"v".into())], ..Item::default() };
        let mut output = Vec::new();
        Writer::new(Layout::Jsonl, &mut output).unwrap().write(&hash).unwrap();
        let text = String::from_utf8(output).unwrap();
        assert_eq!(all(&text, Layout::Jsonl, &fields("key", Some("value"))).unwrap(), [hash]);
    }
}
