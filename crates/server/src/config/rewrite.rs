//! The text of a configuration file with some keys changed and all else as people wrote it.

use super::{keys, unquoted, without_comment};

/// `text` with each of `changes` (key and value): the last line that sets the key says the new
/// value, its indentation and comment kept; a key that no line sets is added at the end.
pub(super) fn rewritten(text: &str, changes: &[(&str, &str)]) -> String {
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
    fn what_was_rewritten_reads_as_it_was_set() {
        let text = rewritten(TEXT, &[("unix", "/tmp/a #1"), ("timeout", "0"), ("users", "")]);
        let mut config = Config::default();
        config.read_text("test", &text).unwrap();
        assert_eq!(config.get("unix"), Some("/tmp/a #1"));
        assert_eq!(config.get("timeout"), Some("0"));
        assert_eq!((config.get("users"), config.get("port")), (Some(""), Some("7")));
    }
}
