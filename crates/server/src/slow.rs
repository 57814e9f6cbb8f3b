//! What `SLOWLOG` shows of the arguments of a command, cut as redis-server cuts them: what is left
//! out is told of, so that the beginning of a key does not pass for another key.

use entresol_tier::Timestamp;
use entresol_wire::resp::Arguments;

use crate::client::Client;
use crate::lock::lock;
use crate::shared::SlowCommand;

/// Arguments of a command that are shown, the line that tells of the others included.
const ARGUMENTS_MAX: usize = 32;
/// Bytes of an argument that are shown.
const BYTES_MAX: usize = 128;

/// The arguments of a call of `name` that are shown; of one with secrets the name alone.
pub(crate) fn shown(name: &str, arguments: Arguments<'_>) -> Vec<Vec<u8>> {
    if arguments.is_empty() || has_secrets(name) {
        return vec![name.as_bytes().to_vec()];
    }
    let count = arguments.len();
    let whole = if count > ARGUMENTS_MAX { ARGUMENTS_MAX - 1 } else { count };
    let all = arguments.from(0).take(whole);
    let mut shown: Vec<Vec<u8>> = all.map(|argument| cut(argument, argument.len())).collect();
    tell_of_others(&mut shown, count);
    shown
}

/// How a command in flight began: what is kept for `SLOWLOG` of one whose arguments are not. Its
/// memory is used again.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    /// The first bytes of the argument behind the name.
    start: Vec<u8>,
    /// Bytes of that argument.
    bytes: usize,
    /// How many arguments there are, the name included.
    count: usize,
}

impl Beginning {
    /// Notes how a command with `arguments` begins.
    pub(crate) fn note(&mut self, arguments: Arguments<'_>) {
        let first = arguments.at(1);
        self.start.clear();
        self.start.extend_from_slice(&first[..first.len().min(BYTES_MAX)]);
        self.bytes = first.len();
        self.count = arguments.len();
    }

    /// Forgets it.
    pub(crate) fn clear(&mut self) {
        self.start.clear();
        self.bytes = 0;
        self.count = 0;
    }

    /// Bytes that are kept.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.start.len()
    }

    /// What is shown of the call of `name` that began so.
    pub(crate) fn shown(&self, name: &str) -> Vec<Vec<u8>> {
        let mut shown = vec![name.as_bytes().to_vec()];
        if self.count > 1 && !has_secrets(name) {
            shown.push(cut(&self.start, self.bytes));
            tell_of_others(&mut shown, self.count);
        }
        shown
    }
}

fn has_secrets(name: &str) -> bool {
    matches!(name, "auth" | "hello")
}

/// An argument of `bytes` bytes that begins with `start`.
fn cut(start: &[u8], bytes: usize) -> Vec<u8> {
    let mut shown = start[..start.len().min(BYTES_MAX)].to_vec();
    if bytes > shown.len() {
        shown.extend_from_slice(format!("... ({} more bytes)", bytes - shown.len()).as_bytes());
    }
    shown
}

/// Tells of those of `count` arguments that are not among `shown`.
fn tell_of_others(shown: &mut Vec<Vec<u8>>, count: usize) {
    if count > shown.len() {
        shown.push(format!("... ({} more arguments)", count - shown.len()).into_bytes());
    }
}

/// What is kept of a command that took long, of whose arguments `arguments` are shown.
pub(crate) fn command(
    arguments: Vec<Vec<u8>>,
    client: &Client,
    took_ns: u64,
    now: Timestamp,
) -> SlowCommand {
    SlowCommand {
        id: 0,
        at_seconds: now.0 / 1000,
        microseconds: took_ns / 1000,
        arguments,
        address: client.facts.address.clone(),
        name: lock(&client.facts.name).clone(),
    }
}

#[cfg(test)]
mod tests {
    use entresol_wire::resp::{Decoded, Decoder, Limits};

    use super::*;

    /// What is shown of an inline command, by its arguments and by its beginning.
    fn both(command: &str) -> [Vec<String>; 2] {
        let line = format!("{command}\r\n");
        let mut decoder = Decoder::new(Limits::default());
        let decoded = decoder.decode(line.as_bytes()).unwrap();
        assert!(matches!(decoded, Decoded::Command { .. }));
        let arguments = decoder.arguments(line.as_bytes());
        let name = command.split(' ').next().unwrap();
        let mut beginning = Beginning::default();
        beginning.note(arguments);
        let text = |shown: Vec<Vec<u8>>| -> Vec<String> {
            shown.into_iter().map(|argument| String::from_utf8(argument).unwrap()).collect()
        };
        [text(shown(name, arguments)), text(beginning.shown(name))]
    }

    #[test]
    fn what_is_cut_off_is_told_of() {
        assert_eq!(both("ping"), [["ping"], ["ping"]]);
        assert_eq!(both("get k"), [["get", "k"], ["get", "k"]]);
        assert_eq!(
            both("set k v"),
            [&["set", "k", "v"][..], &["set", "k", "... (1 more arguments)"]]
        );
        let long = "k".repeat(200);
        let cut = format!("{}... (72 more bytes)", "k".repeat(128));
        assert_eq!(both(&format!("get {long}")), [["get", &cut], ["get", &cut]]);
        let exact = "k".repeat(128);
        assert_eq!(both(&format!("get {exact}")), [["get", &exact], ["get", &exact]]);
        let keys = |count: usize| format!("del{}", " k".repeat(count));
        assert_eq!(both(&keys(31))[0].len(), 32);
        assert_eq!(both(&keys(31))[0][31], "k");
        let [all, _] = both(&keys(32));
        assert_eq!((all.len(), all[30].as_str()), (32, "k"));
        assert_eq!(all[31], "... (2 more arguments)");
    }

    #[test]
    fn passwords_are_not_shown() {
        assert_eq!(both("auth secret"), [["auth"], ["auth"]]);
        assert_eq!(both("hello 3 AUTH default secret"), [["hello"], ["hello"]]);
    }
}
