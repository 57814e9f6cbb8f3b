//! JSON as it stands in a text (RFC 8259): numbers keep their digits, objects the order of their
//! fields, and no name has a meaning of its own.
//!
//! An object with one field twice is refused, because neither value is the right one.

use std::collections::HashSet;
use std::fmt::{self, Write as _};

/// Objects and lists within each other, at most.
const DEPTH_MAX: usize = 128;
/// Fields of an object that are compared one by one.
const FEW: usize = 16;

/// A value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Truth(bool),
    /// A number, as it was written.
    Number(String),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object.
    Object(Object),
}

/// The fields of an object, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Object(Vec<(String, Json)>);

/// A text that is no JSON, or that names a field twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// Where, bytes from the beginning of the text, the first being 1.
    pub column: usize,
    /// What was expected and found there.
    pub problem: String,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at column {}", self.problem, self.column)
    }
}

impl std::error::Error for JsonError {}

impl Json {
    /// The value that `text` is.
    ///
    /// # Errors
    /// It is none, or an object in it has a field twice.
    pub fn parse(text: &str) -> Result<Json, JsonError> {
        let mut reader = Reader { text, at: 0, depth: 0 };
        let value = reader.value()?;
        reader.skip_space();
        match reader.peek() {
            None => Ok(value),
            Some(_) => Err(reader.expected("the end")),
        }
    }

    /// Its text where it is a string, else the JSON that it is.
    pub fn to_text(&self) -> String {
        match self {
            Json::Text(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

impl Object {
    /// The value of field `name`.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// The fields, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl FromIterator<(String, Json)> for Object {
    /// Whoever gives them sees to it that no name stands twice.
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(fields: I) -> Object {
        Object(fields.into_iter().collect())
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('{')?;
        for (number, (name, value)) in self.iter().enumerate() {
            f.write_str(if number > 0 { "," } else { "" })?;
            write_text(f, name)?;
            write!(f, ":{value}")?;
        }
        f.write_char('}')
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => f.write_str("null"),
            Json::Truth(truth) => write!(f, "{truth}"),
            Json::Number(digits) => f.write_str(digits),
            Json::Text(text) => write_text(f, text),
            Json::Object(fields) => fields.fmt(f),
            Json::List(values) => {
                f.write_char('[')?;
                for (number, value) in values.iter().enumerate() {
                    f.write_str(if number > 0 { "," } else { "" })?;
                    value.fmt(f)?;
                }
                f.write_char(']')
            }
        }
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for char in text.chars() {
        match char {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\u{8}' => f.write_str("\\b")?,
            '\u{c}' => f.write_str("\\f")?,
            low if low < ' ' => write!(f, "\\u{:04x}", low as u32)?,
            other => f.write_char(other)?,
        }
    }
    f.write_char('"')
}

/// A text and how far it was read.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn error(&self, at: usize, problem: String) -> JsonError {
        JsonError { column: at + 1, problem }
    }

    fn expected(&self, what: &str) -> JsonError {
        let found = self.text.get(self.at..).and_then(|rest| rest.chars().next());
        let found = found.map_or("EOF".to_owned(), |char| format!("'{}'", char.escape_default()));
        self.error(self.at, format!("expected {what}, found {found}"))
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self) -> Result<Json, JsonError> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => self.string().map(Json::Text),
            Some(b'{') => self.within(Reader::object),
            Some(b'[') => self.within(Reader::list),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                let words = [
                    ("null", Json::Null),
                    ("true", Json::Truth(true)),
                    ("false", Json::Truth(false)),
                ];
                let rest = self.text.get(self.at..).unwrap_or_default();
                let found = words.into_iter().find(|(word, _)| rest.starts_with(word));
                let (word, value) = found.ok_or_else(|| self.expected("a value"))?;
                self.at += word.len();
                Ok(value)
            }
        }
    }

    fn within(
        &mut self,
        read: fn(&mut Self) -> Result<Json, JsonError>,
    ) -> Result<Json, JsonError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error(self.at, format!("more than {DEPTH_MAX} levels")));
        }
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Json, JsonError> {
        let mut fields: Vec<(String, Json)> = Vec::new();
        let mut seen = HashSet::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Json::Object(Object(fields)));
        }
        loop {
            self.skip_space();
            let began = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.expected("the name of a field"));
            }
            let name = self.string()?;
            let is_new = match fields.len() {
                ..FEW => fields.iter().all(|(own, _)| *own != name),
                _ => {
                    if seen.is_empty() {
                        seen.extend(fields.iter().map(|(own, _)| own.clone()));
                    }
                    seen.insert(name.clone())
                }
            };
            if !is_new {
                let problem = format!("the field '{name}' stands twice; keep one of them");
                return Err(self.error(began, problem));
            }
            self.skip_space();
            if !self.take(b':') {
                return Err(self.expected("':'"));
            }
            let value = self.value()?;
            fields.push((name, value));
            self.skip_space();
            if self.take(b'}') {
                return Ok(Json::Object(Object(fields)));
            }
            if !self.take(b',') {
                return Err(self.expected("',' or '}'"));
            }
        }
    }

    fn list(&mut self) -> Result<Json, JsonError> {
        let mut values = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Json::List(values));
        }
        loop {
            values.push(self.value()?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Json::List(values));
            }
            if !self.take(b',') {
                return Err(self.expected("',' or ']'"));
            }
        }
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let began = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == began { Err(self.expected("a digit")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Json, JsonError> {
        let began = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _sign = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(Json::Number(self.text.get(began..self.at).unwrap_or_default().to_owned()))
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let end = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..b' '));
            let Some(end) = end else {
                self.at = self.text.len();
                return Err(self.expected("'\"'"));
            };
            text.push_str(rest.get(..end).unwrap_or_default());
            self.at += end;
            if self.take(b'"') {
                return Ok(text);
            }
            if !self.take(b'\\') {
                return Err(self.expected("a control character as an escape"));
            }
            text.push(self.escaped()?);
        }
    }

    fn escaped(&mut self) -> Result<char, JsonError> {
        let simple = match self.peek() {
            Some(plain @ (b'"' | b'\\' | b'/')) => char::from(plain),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.expected("an escape")),
        };
        self.at += 1;
        Ok(simple)
    }

    fn unicode(&mut self) -> Result<char, JsonError> {
        let began = self.at;
        let first = self.four_digits()?;
        let lone = |reader: &Self| {
            reader.error(began, "expected both halves of a surrogate pair".to_owned())
        };
        let code = match first {
            0xD800..=0xDBFF => {
                if !(self.take(b'\\') && self.take(b'u')) {
                    return Err(lone(self));
                }
                let second = self.four_digits()?;
                let low = second.checked_sub(0xDC00).filter(|low| *low < 0x400);
                0x1_0000 + ((first - 0xD800) << 10) + low.ok_or_else(|| lone(self))?
            }
            other => other,
        };
        char::from_u32(code).ok_or_else(|| lone(self))
    }

    fn four_digits(&mut self) -> Result<u32, JsonError> {
        let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
        let is_hex = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        match u32::from_str_radix(digits, 16) {
            Ok(code) if is_hex => {
                self.at += 4;
                Ok(code)
            }
            _ => Err(self.expected("four hexadecimal digits")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A field with a name of the library's own became a number, and large numbers changed.
    #[test]
    fn what_is_read_is_written_as_it_was() {
        for text in [
            r#"{"v":{"$serde_json::private::Number":"12"}}"#,
            r#"{"$serde_json::private::RawValue":"[1"}"#,
            r#"[1e400,-0,1E+5,0.10,123456789012345678901234567890,-1.5e-9]"#,
            r#"{"b":1,"a":null,"":[true,false,[],{}],"é😀":"\"\\\n\r\t\b\f\u0001/"}"#,
            "\"\"",
        ] {
            assert_eq!(Json::parse(text).unwrap().to_string(), text);
            assert_eq!(Json::parse(&format!(" {text}\r\n")).unwrap().to_string(), text);
        }
        let escaped = r#""\u00e9\ud83d\ude00\/\u0041""#;
        assert_eq!(Json::parse(escaped).unwrap(), Json::Text("é😀/A".to_owned()));
    }

    /// The last one won, and nothing was said.
    #[test]
    fn a_field_that_stands_twice_is_refused_with_its_name_and_place() {
        let error = Json::parse(r#"{"a":1,"b":{"c":1,"\u0063":2}}"#).unwrap_err();
        assert_eq!(error.to_string(), "the field 'c' stands twice; keep one of them at column 19");
        let many: Vec<String> = (0..100).map(|n| format!("\"f{n}\":{n}")).collect();
        let text = |last: &str| format!("{{{},{last}}}", many.join(","));
        for name in ["f0", "f15", "f16", "f50", "f99"] {
            let error = Json::parse(&text(&format!("\"{name}\":1"))).unwrap_err();
            assert!(error.problem.starts_with(&format!("the field '{name}' stands")), "{error}");
        }
        assert!(Json::parse(&text("\"g\":1")).is_ok());
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            " ",
            "{",
            "[",
            "\"",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,",
            "{\"a\":1,}",
            "[1,]",
            "[,]",
            "{,}",
            "{a:1}",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "nul",
            "nulll",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u+123\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "\"\\udc00\"",
            "\"\u{1}\"",
            "\"\n\"",
            "1 2",
            "NaN",
            "Infinity",
            "'a'",
            "\u{FEFF}1",
        ] {
            assert!(Json::parse(text).is_err(), "{text}");
        }
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(Json::parse(&nested(DEPTH_MAX)).is_ok());
        assert!(Json::parse(&nested(DEPTH_MAX + 1)).is_err());
        assert!(Json::parse(&"[".repeat(1 << 20)).is_err());
        assert!(Json::parse("{\"a\":").unwrap_err().problem.ends_with("found EOF"));
    }
}
