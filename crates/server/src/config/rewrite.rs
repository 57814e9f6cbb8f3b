//! The text of a configuration file with some keys changed and all else as people wrote it.

use toml_edit::Document;

use super::file::{entries, text_of, unquoted, without_comment};
use super::{BYTE_ORDER_MARK, keys};

/// `text` with each of `changes` (key and value): the last line that sets the key says the new
/// value, its indentation and comment kept; a key that no line sets is added at the end. TOML stays
/// TOML.
pub(super) fn rewritten(text: &str, changes: &[(&str, &str)]) -> String {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mark = &text[..text.len() - body.len()];
    match Document::parse(body) {
        Ok(document) => mark.to_owned() + &rewritten_toml(body, &document, changes),
        Err(_) => rewritten_lines(text, changes),
    }
}

/// All that is no value of a change stays byte by byte.
fn rewritten_toml(text: &str, document: &Document<&str>, changes: &[(&str, &str)]) -> String {
    let entries = entries(document.as_table());
    let mut edits = Vec::new();
    let mut added = String::new();
    for (key, value) in changes {
        let sets = |name: &str| keys::find(name).is_some_and(|found| found.name == *key);
        match entries.iter().rfind(|entry| sets(entry.key)) {
            Some(entry) if text_of(entry, text).as_deref() == Ok(*value) => {}
            Some(entry) => edits.push((entry.span.clone(), in_toml(value))),
            None => added.push_str(&format!("{key} = {}\n", in_toml(value))),
        }
    }
    // From the end on, so that no edit moves the place of another.
    edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut out = text.to_owned();
    edits.into_iter().for_each(|(span, value)| out.replace_range(span, &value));
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out + &added
}

/// A value as TOML has it: whole numbers bare, all else in quotes.
fn in_toml(value: &str) -> String {
    if value.parse().is_ok_and(|number: i64| number.to_string() == value) {
        return value.to_owned();
    }
    let mut out = "\"".to_owned();
    for character in value.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            control if control.is_control() => {
                out.push_str(&format!("\\u{:04X}", u32::from(control)));
            }
            other => out.push(other),
        }
    }
    out + "\""
}

fn rewritten_lines(text: &str, changes: &[(&str, &str)]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (key, value) in changes {
        let last = lines.iter().rposition(|line| key_of(line) == Some(*key));
        match last {
            Some(place) if value_of(&lines[place]) == Some(value) => {}
            Some(place) => lines[place] = changed(&lines[place], value),
            None => lines.push(format!("{key} = {}", quoted(value))),
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

fn parts(line: &str) -> Option<(&str, &str)> {
    let line = without_comment(line);
    if line.trim_start().starts_with('[') { None } else { line.split_once('=') }
}

/// The key that a line sets, by its one name.
fn key_of(line: &str) -> Option<&'static str> {
    parts(line).and_then(|(key, _)| keys::find(key.trim())).map(|key| key.name)
}

fn value_of(line: &str) -> Option<&str> {
    parts(line).map(|(_, value)| unquoted(value.trim()))
}

/// `line` with `value` in place of its own.
fn changed(line: &str, value: &str) -> String {
    let setting = without_comment(line);
    let comment = &line[setting.len()..];
    let start = setting.find('=').map_or(setting.len(), |place| place + 1);
    let (before, old) = setting.split_at(start);
    let lead = &old[..old.len() - old.trim_start().len()];
    let trail = &old[old.trim_end().len().max(lead.len())..];
    format!("{before}{lead}{}{trail}{comment}", quoted(value))
}

/// A value as the file's reader takes it: quoted where a comment or blanks would be lost.
fn quoted(value: &str) -> String {
    let plain = !value.is_empty() && !value.contains('#') && value.trim() == value;
    if plain { value.to_owned() } else { format!("\"{value}\"") }
}

#[cfg(test)]
mod tests {
    use super::rewritten;
    use crate::config::Config;

    const TEXT: &str = "# mine\n[network]\nport = 7\n\n  timeout=30s   # long enough\n\
                        maxclients = 5\nmaxclients = 6\n";

    #[test]
    fn values_change_and_everything_else_stays() {
        let changes = [("timeout", "5m"), ("maxclients", "9"), ("slowlog-max-len", "12")];
        assert_eq!(
            rewritten(TEXT, &changes),
            "# mine\n[network]\nport = 7\n\n  timeout=5m   # long enough\nmaxclients = 5\n\
             maxclients = 9\nslowlog-max-len = 12\n"
        );
        assert_eq!(rewritten(TEXT, &[("timeout", "30s")]), TEXT);
    }

    /// The line that holds was left as it was, where another one before it spelled the key as the
    /// reference does: the next start had the old value.
    #[test]
    fn a_key_is_changed_in_the_line_that_holds_however_that_spells_it() {
        let text =
            rewritten("slowlog-max-len = 5\nSlowlog_Max_Len = 6\n", &[("slowlog-max-len", "5")]);
        assert_eq!(text, "slowlog-max-len = 5\nSlowlog_Max_Len = 5\n");
    }

    #[test]
    fn toml_stays_toml_and_everything_but_the_values_stays() {
        let text = "# mine\n[limits]\ntimeout=\"30s\"   # long enough\nmaxclients = 5\n\n\
                    [log] # last\nSlowlog_Max_Len = 6 # few";
        let changes = [
            ("maxclients", "9"),
            ("slowlog-max-len", "12"),
            ("stall-timeout", "5m"),
            ("timeout", "30s"),
        ];
        assert_eq!(
            rewritten(&format!("\u{FEFF}{text}"), &changes),
            "\u{FEFF}# mine\n[limits]\ntimeout=\"30s\"   # long enough\nmaxclients = 9\n\n\
             [log] # last\nSlowlog_Max_Len = 12 # few\nstall-timeout = \"5m\"\n"
        );
        assert_eq!(rewritten("", &[("timeout", "5m")]), "timeout = \"5m\"\n");
        let path = "/a \"b\"\\c\u{1}#";
        let text = rewritten("unix = '/x' # y\n", &[("unix", path)]);
        assert!(text.ends_with(" # y\n"), "{text}");
        let mut config = Config::default();
        config.read_text("test", &text).unwrap();
        assert_eq!(config.get("unix"), Some(path));
    }

    #[test]
    fn what_was_rewritten_reads_as_it_was_set() {
        let text = rewritten(TEXT, &[("unix", "/tmp/a #1"), ("timeout", "0"), ("users", "")]);
        let mut config = Config::default();
        config.read_text("test", &text).unwrap();
        assert_eq!(config.get("unix"), Some("/tmp/a #1"));
        assert_eq!(config.get("timeout"), Some("0"));
        assert_eq!((config.get("users"), config.get("port")), (Some(""), Some("7")));
    }
}
