//! The text of a configuration file as settings: TOML, or lines of `key = value` as before TOML.
//!
//! Invariants:
//! 1. Tables only structure a text: a key means the same in each, and the last that sets it holds.
//! 2. What reads as TOML is never read as lines; lines with what TOML alone has are refused.

use std::ops::Range;

use toml_edit::{Document, Item, Table, Value};

use super::keys;
use super::value::Kind;

/// One key that a text sets.
pub(super) struct Setting {
    /// The number of its line.
    pub(super) line: usize,
    /// The key, as the text spells it.
    pub(super) key: String,
    /// Its value, not yet checked.
    pub(super) value: String,
}

/// What is wrong with a text, where, and at which key, if at one.
pub(super) struct Fault {
    pub(super) line: usize,
    pub(super) key: String,
    pub(super) detail: String,
}

/// A key of a TOML text, and where its value is.
pub(super) struct Entry<'d> {
    pub(super) key: &'d str,
    pub(super) value: &'d Item,
    pub(super) span: Range<usize>,
}

/// The settings of a text, in its order.
pub(super) fn settings(text: &str) -> Result<Vec<Setting>, Fault> {
    match Document::parse(text) {
        Ok(document) => entries(document.as_table())
            .into_iter()
            .map(|entry| {
                let line = line_of(text, entry.span.start);
                let key = entry.key.to_owned();
                match text_of(&entry, text) {
                    Ok(value) => Ok(Setting { line, key, value }),
                    Err(detail) => Err(Fault { line, key, detail }),
                }
            })
            .collect(),
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            let message = error.message().lines().collect::<Vec<_>>().join(", ");
            of_lines(text, &format!("line {}: {message}", line_of(text, at)))
        }
    }
}

/// The keys of a table and of the tables in it, in the order of the text.
pub(super) fn entries(table: &Table) -> Vec<Entry<'_>> {
    fn gather<'d>(table: &'d Table, found: &mut Vec<Entry<'d>>) {
        for (key, item) in table {
            match item {
                Item::None => {}
                Item::Table(table) => gather(table, found),
                Item::ArrayOfTables(tables) => tables.iter().for_each(|t| gather(t, found)),
                Item::Value(value) => {
                    let span = value.span().unwrap_or_default();
                    found.push(Entry { key, value: item, span });
                }
            }
        }
    }
    let mut found = Vec::new();
    gather(table, &mut found);
    found.sort_by_key(|entry| entry.span.start);
    found
}

/// The value of an entry of a TOML `text`, as a line of it would have it.
pub(super) fn text_of(entry: &Entry<'_>, text: &str) -> Result<String, String> {
    let kind = keys::find(entry.key).map(|key| key.kind);
    let written = text.get(entry.span.clone()).unwrap_or_default();
    let otherwise = || {
        let expected = kind.map_or_else(|| "text".to_owned(), Kind::expected);
        format!("expected {expected}, found `{written}`")
    };
    match entry.value.as_value() {
        Some(Value::String(text)) => Ok(text.value().clone()),
        // The digits of permission bits are octal already.
        Some(Value::Integer(number)) => match (kind, written.strip_prefix("0o")) {
            (Some(Kind::Mode), Some(digits)) => Ok(digits.to_owned()),
            _ => Ok(number.value().to_string()),
        },
        Some(Value::Boolean(is_yes)) => Ok(match (kind, is_yes.value()) {
            (Some(kind), true) if kind.is_switch() => "yes".to_owned(),
            (Some(kind), false) if kind.is_switch() => "no".to_owned(),
            (_, other) => other.to_string(),
        }),
        Some(Value::Array(parts)) if matches!(kind, Some(Kind::List)) => {
            let parts = parts.iter().map(|part| part.as_str().filter(|part| !part.contains(',')));
            parts.collect::<Option<Vec<_>>>().map(|parts| parts.join(",")).ok_or_else(otherwise)
        }
        _ => Err(otherwise()),
    }
}

/// The settings of lines of `key = value`: `#` begins a comment, `[section]` lines only structure
/// the text. `why_not_toml` is told where a value looks as if it was meant to be TOML.
fn of_lines(text: &str, why_not_toml: &str) -> Result<Vec<Setting>, Fault> {
    let mut settings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let line = without_comment(line).trim();
        if line.is_empty() || (line.starts_with('[') && line.ends_with(']')) {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            let detail = format!("expected `key = value`, found `{line}`");
            return Err(Fault { line: number, key: String::new(), detail });
        };
        let (key, value) = (key.trim().to_owned(), value.trim());
        if is_unclosed(value) {
            let detail = format!("expected a `\"` at the end as at the begin, found `{value}`");
            return Err(Fault { line: number, key, detail });
        }
        if ["'", "\"\"\"", "[\"", "['", "{ "].iter().any(|start| value.starts_with(start)) {
            let detail = format!(
                "found `{value}`, which only TOML has, and the file is not TOML ({why_not_toml})"
            );
            return Err(Fault { line: number, key, detail });
        }
        settings.push(Setting { line: number, key, value: unquoted(value).to_owned() });
    }
    Ok(settings)
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// The line up to a `#` that is not quoted.
pub(super) fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'#' if !quoted => return &line[..at],
            _ => {}
        }
    }
    line
}

pub(super) fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

/// Whether `value` begins with a quote that does not end it.
fn is_unclosed(value: &str) -> bool {
    value.strip_prefix('"').is_some_and(|rest| !rest.ends_with('"'))
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn read(text: &str) -> Result<Config, String> {
        let mut config = Config::default();
        config.read_text("f", text).map(|()| config).map_err(|error| error.to_string())
    }

    #[test]
    fn toml_and_lines_without_quotes_mean_the_same() {
        let toml = "[data]\ndir = '/var/a#b' # c\nmemory = \"64MiB\"\nunix-mode = 0o640\n\
                    force = true\nenable-debug-command = false\n[network]\nport = 7\n\
                    bind = [\n  \"127.0.0.1\", # first\n  \"::1\",\n]\nslowlog_max_len = 9\n";
        let lines = "[data]\ndir = \"/var/a#b\" # c\nmemory = 64MiB\nunix-mode = 640\nforce = yes\n\
                     enable-debug-command = no\n[network]\nport = 7\nbind = 127.0.0.1,::1\n\
                     slowlog-max-len = 9\n";
        let (toml, lines) = (read(toml).unwrap(), read(lines).unwrap());
        for key in ["dir", "memory", "unix-mode", "force", "enable-debug-command", "port", "bind"] {
            assert_eq!(toml.get(key), lines.get(key), "{key}");
        }
        assert_eq!(toml.get("dir"), Some("/var/a#b"));
        assert_eq!((toml.get("unix-mode"), toml.get("force")), (Some("640"), Some("yes")));
        assert_eq!(toml.get("slowlog-max-len"), Some("9"));
    }

    #[test]
    fn the_last_line_that_sets_a_key_holds_in_toml_too() {
        let config = read("[a]\nport = 1\n[b]\nport = 2\n[a.c]\nport = 3\n").unwrap();
        assert_eq!(config.get("port"), Some("3"));
    }

    #[test]
    fn mistakes_in_toml_are_told_with_line_key_expected_and_found() {
        for (text, told) in [
            (
                "\nmemory = \"1\"\n",
                "f line 2: key `memory`: expected a size like 512MB or 1GiB, at",
            ),
            ("port = 1\n\nmemroy = \"1GiB\"", "f line 3: key `memroy`: there is no such key; did"),
            (
                "port = 1.5",
                "f line 1: key `port`: expected a port from 0 (any free one) to 65535, ",
            ),
            ("dir = { a = 1 }", "f line 1: key `dir`: expected a path, found `{ a = 1 }`"),
            (
                "bind = [1]",
                "f line 1: key `bind`: expected a list separated by commas, found `[1]`",
            ),
            ("devices = [\"a,b\"]", "f line 1: key `devices`: expected a list separated by comm"),
            ("port = true", "f line 1: key `port`: expected a port from 0 (any free one) to 65535"),
            ("force = 1", "f line 1: key `force`: expected one of no, yes, found `1`"),
            // One line that is no TOML made the quotes of all others a part of their values.
            ("memory = 1GiB\ndir = 'a'", "f line 2: key `dir`: found `'a'`, which only TOML has"),
            (
                "port = 1\nbind = [\"a\"",
                "f line 2: key `bind`: found `[\"a\"`, which only TOML has",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(told), "{error}");
        }
    }
}
