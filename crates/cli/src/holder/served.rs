//! A running server as a holder of entries: entries go and come as commands.

use std::collections::VecDeque;

use super::{Damage, Item};
use crate::client::{Client, Reply, refusal};
use crate::failure::{Failure, Outcome};

/// A server, and the keys of the replies that it owes.
pub(crate) struct Served {
    client: Client,
    owed: VecDeque<Vec<u8>>,
}

/// Commands in flight to a server.
const IN_FLIGHT: usize = 256;
/// Bytes of commands that wait to be sent; with more of them, all are answered first.
const UNSENT_BYTES_MAX: usize = 4 << 20;

impl Served {
    /// With `client`, which has chosen its database.
    pub(crate) fn new(client: Client) -> Served {
        Served { client, owed: VecDeque::new() }
    }

    pub(super) fn put(&mut self, item: &Item) -> Outcome<()> {
        let replies = gather_put(&mut self.client, item)?;
        self.owed.extend(std::iter::repeat_n(&item.key, replies).cloned());
        let all = self.owed.len();
        match self.client.unsent() > UNSENT_BYTES_MAX {
            true => self.settle(all),
            false if all >= IN_FLIGHT => self.settle(IN_FLIGHT / 2),
            false => Ok(()),
        }
    }

    pub(super) fn finish(mut self) -> Outcome<()> {
        self.settle(self.owed.len())
    }

    /// Visits every entry; returns how many there are of types that an [`Item`] has not.
    pub(super) fn visit(
        &mut self,
        damage: &mut Damage,
        visit: &mut dyn FnMut(Item) -> Outcome<()>,
    ) -> Outcome<u64> {
        let client = &mut self.client;
        let (mut cursor, mut left_out) = (b"0".to_vec(), 0);
        loop {
            let (next, keys) = client
                .call(&[b"SCAN", &cursor, b"COUNT", b"512"], |reply| match reply {
                    Reply::Array(parts) => match parts.as_slice() {
                        [Reply::Bulk(next), Reply::Array(keys)] => {
                            Some((next.to_vec(), keys.iter().filter_map(bulk).collect::<Vec<_>>()))
                        }
                        _ => None,
                    },
                    _ => None,
                })?
                .ok_or_else(|| {
                    Failure::CannotRun("the server answers SCAN with no cursor".into())
                })?;
            for key in &keys {
                client.gather(&[b"GET", key]);
                client.gather(&[b"PEXPIRETIME", key]);
            }
            let expected = keys.len() * 2;
            let mut page = Page { keys: keys.into_iter(), value: None, others: Vec::new() };
            let (mut taken, mut ended) = (0, Ok(()));
            while taken < expected && ended.is_ok() {
                taken += client.receive(1, &mut |reply| {
                    if ended.is_ok() {
                        ended = page.take(reply, damage, visit);
                    }
                })?;
            }
            ended?;
            for item in page.others {
                match hash_of(client, damage, item)? {
                    Held::Item(item) => visit(item)?,
                    Held::OtherType => left_out += 1,
                    Held::Nothing => {}
                }
            }
            if next == b"0" {
                return Ok(left_out);
            }
            cursor = next;
        }
    }

    /// Takes at least `count` replies, all of which must be good. They are of records before.
    fn settle(&mut self, count: usize) -> Outcome<()> {
        let Served { client, owed } = self;
        let mut ended = Ok(());
        client.receive(count, &mut |reply| {
            let key = owed.pop_front().unwrap_or_default();
            if let (Reply::Error(text), true) = (reply, ended.is_ok()) {
                // Whoever reads on names the line that it has come to.
                let (key, text) = (key.escape_ascii(), refusal(text));
                let sentence = format!("the server refused key '{key}', sent by then: {text}");
                ended = Err(Failure::CannotRun(sentence));
            }
        })?;
        ended
    }
}

/// Gathers the commands of `item`; returns how many replies they bring.
fn gather_put(client: &mut Client, item: &Item) -> Outcome<usize> {
    if item.label != 0 || item.idle_seconds.is_some() || item.is_pinned {
        return Err(Failure::CannotRun(format!(
            "entry '{}' has a type ({}), an idle time or a pin of an engine's export, which no \
             server takes; load it with --dir",
            String::from_utf8_lossy(&item.key),
            item.label
        )));
    }
    let expires = item.expires_at_ms.map(|ms| ms.to_string());
    if item.fields.is_empty() {
        match &expires {
            Some(at) => client.gather(&[b"SET", &item.key, &item.value, b"PXAT", at.as_bytes()]),
            None => client.gather(&[b"SET", &item.key, &item.value]),
        }
        return Ok(1);
    }
    // As a string's, the fields and the end of what is there are replaced, not added to.
    client.gather(&[b"DEL", &item.key]);
    let mut arguments: Vec<&[u8]> = vec![b"HSET", &item.key];
    for (field, value) in &item.fields {
        arguments.push(field);
        arguments.push(value);
    }
    client.gather(&arguments);
    match &expires {
        Some(at) => {
            client.gather(&[b"PEXPIREAT", &item.key, at.as_bytes()]);
            Ok(3)
        }
        None => Ok(2),
    }
}

/// The keys of a scan's page whose values and ends are on their way. Values are large: each is
/// visited as it comes.
struct Page {
    keys: std::vec::IntoIter<Vec<u8>>,
    /// What GET gave for the first of the keys; its end comes next.
    value: Option<Got>,
    /// Those that hold no string, with their ends.
    others: Vec<Item>,
}

impl Page {
    /// Takes the next reply.
    fn take(
        &mut self,
        reply: Reply<'_>,
        damage: &mut Damage,
        visit: &mut dyn FnMut(Item) -> Outcome<()>,
    ) -> Outcome<()> {
        let got = Got::of(reply);
        let Some(value) = self.value.take() else {
            self.value = Some(got);
            return Ok(());
        };
        let Some(key) = self.keys.next() else { return Ok(()) };
        if let Got::Failed(text) = &value {
            damage.note_key(&key, text);
            return Ok(());
        }
        let Some(expires_at_ms) = end_of(&key, &got)? else { return Ok(()) };
        let item = Item { key, expires_at_ms, ..Item::default() };
        match value {
            Got::Value(value) => visit(Item { value, ..item }),
            Got::OtherType => {
                self.others.push(item);
                Ok(())
            }
            Got::Number(_) | Got::Failed(_) | Got::Nothing => Ok(()),
        }
    }
}

enum Got {
    Value(Vec<u8>),
    Number(i64),
    OtherType,
    Failed(String),
    Nothing,
}

impl Got {
    fn of(reply: Reply<'_>) -> Got {
        match reply {
            Reply::Bulk(value) => Got::Value(value.to_vec()),
            Reply::Integer(number) => Got::Number(number),
            Reply::Error(text) if text.starts_with(b"WRONGTYPE") => Got::OtherType,
            Reply::Error(text) => Got::Failed(String::from_utf8_lossy(text).into_owned()),
            _ => Got::Nothing,
        }
    }
}

/// What a key of a server holds that is no string.
enum Held {
    /// A hash.
    Item(Item),
    /// What no export has, such as a list of a redis-server.
    OtherType,
    /// Nothing by now, or what the server does not give.
    Nothing,
}

/// The hash of `item`'s key, if it is still there, is one, and the server gives it.
fn hash_of(client: &mut Client, damage: &mut Damage, mut item: Item) -> Outcome<Held> {
    let (key, mut is_hash) = (item.key.clone(), true);
    let flat = client.call(&[b"HGETALL", &key], |reply| match reply {
        Reply::Array(parts) => parts.iter().filter_map(bulk).collect(),
        Reply::Error(text) if text.starts_with(b"WRONGTYPE") => {
            is_hash = false;
            Vec::new()
        }
        Reply::Error(text) => {
            damage.note_key(&key, &String::from_utf8_lossy(text));
            Vec::new()
        }
        _ => Vec::new(),
    })?;
    if !is_hash {
        return Ok(Held::OtherType);
    }
    let pairs = flat.chunks_exact(2).map(|p| (p[0].clone(), p[1].clone()));
    item.fields = pairs.collect();
    if item.fields.is_empty() { Ok(Held::Nothing) } else { Ok(Held::Item(item)) }
}

/// When the key that PEXPIRETIME was asked of expires, if it does; `None` if it has by now.
fn end_of(key: &[u8], answer: &Got) -> Outcome<Option<Option<u64>>> {
    const NEVER: i64 = -1;
    const GONE: i64 = -2;
    let found = match answer {
        Got::Number(GONE) => return Ok(None),
        Got::Number(NEVER) => return Ok(Some(None)),
        Got::Number(ms) if *ms >= 0 => return Ok(Some(Some(ms.cast_unsigned()))),
        Got::Number(other) => other.to_string(),
        Got::Failed(text) => text.clone(),
        _ => "nothing".to_owned(),
    };
    Err(Failure::CannotRun(format!(
        "PEXPIRETIME of key '{}': expected a time, found {found}; without it entries would lose \
         their end",
        key.escape_ascii()
    )))
}

fn bulk(reply: &Reply<'_>) -> Option<Vec<u8>> {
    match reply {
        Reply::Bulk(bytes) => Some(bytes.to_vec()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::address::Address;

    /// A loaded export kept all that it had sent in memory, once its values were larger than what
    /// the sockets hold.
    #[test]
    fn a_loader_keeps_little_of_what_it_sends_in_memory() {
        const VALUE_BYTES: usize = 200_000;
        const ITEMS: usize = 600;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::tcp(listener.local_addr().unwrap().to_string());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let command = {
                let value = "x".repeat(VALUE_BYTES);
                format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${VALUE_BYTES}\r\n{value}\r\n")
            };
            let mut bytes = vec![0; command.len()];
            for _ in 0..ITEMS {
                stream.read_exact(&mut bytes).unwrap();
                assert!(bytes == command.as_bytes());
                stream.write_all(b"+OK\r\n").unwrap();
            }
        });
        let mut served = Served::new(Client::connect(&address).unwrap());
        let item = Item { key: b"k".into(), value: vec![b'x'; VALUE_BYTES], ..Item::default() };
        for _ in 0..ITEMS {
            served.put(&item).unwrap();
            let kept = served.client.output_bytes();
            assert!(kept <= 4 * UNSENT_BYTES_MAX, "{kept} bytes are kept");
        }
        served.finish().unwrap();
        server.join().unwrap();
    }

    /// Takes `command` from a client and answers with `reply`.
    fn answer(stream: &mut TcpStream, command: &str, reply: &str) {
        let words: Vec<&str> = command.split(' ').collect();
        let mut expected = format!("*{}\r\n", words.len());
        for word in words {
            expected.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        let mut bytes = vec![0; expected.len()];
        stream.read_exact(&mut bytes).unwrap();
        assert_eq!(String::from_utf8_lossy(&bytes), expected);
        stream.write_all(reply.as_bytes()).unwrap();
    }

    /// Lists and the like of a redis-server were left out without a word.
    #[test]
    fn keys_of_types_that_no_export_has_are_counted_and_those_that_are_gone_are_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::tcp(listener.local_addr().unwrap().to_string());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut answer = |command: &str, reply: &str| answer(&mut stream, command, reply);
            answer("SCAN 0 COUNT 512", "*2\r\n$1\r\n0\r\n*3\r\n$1\r\nl\r\n$1\r\ng\r\n$1\r\nb\r\n");
            answer("GET l", "-WRONGTYPE a list\r\n");
            answer("PEXPIRETIME l", ":-1\r\n");
            answer("GET g", "-WRONGTYPE a hash\r\n");
            answer("PEXPIRETIME g", ":-1\r\n");
            answer("GET b", "$1\r\nx\r\n");
            answer("PEXPIRETIME b", ":-1\r\n");
            answer("HGETALL l", "-WRONGTYPE a list\r\n");
            answer("HGETALL g", "*0\r\n");
        });
        let mut served = Served::new(Client::connect(&address).unwrap());
        let (mut damage, mut keys) = (Damage::default(), Vec::new());
        let left_out = served.visit(&mut damage, &mut |item| {
            keys.push(item.key);
            Ok(())
        });
        server.join().unwrap();
        assert_eq!((left_out.unwrap(), keys), (1, vec![b"b".to_vec()]));
        assert_eq!(damage.sentences().len(), 0);
    }

    /// All values of a page of a scan, of which there are 512, were in memory before the first was
    /// written: those of the longest that there may be take 32 GiB.
    #[test]
    fn an_entry_is_visited_before_the_value_of_the_next_one_comes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::tcp(listener.local_addr().unwrap().to_string());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut answer = |command: &str, reply: &str| answer(&mut stream, command, reply);
            let page = "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n";
            answer("SCAN 0 COUNT 512", page);
            answer("GET a", "$1\r\nx\r\n");
            answer("PEXPIRETIME a", ":-1\r\n");
            answer("GET b", "");
            answer("PEXPIRETIME b", "");
        });
        let mut served = Served::new(Client::connect(&address).unwrap());
        let (mut damage, mut keys) = (Damage::default(), Vec::new());
        let ended = served.visit(&mut damage, &mut |item| {
            keys.push(item.key);
            Ok(())
        });
        server.join().unwrap();
        let ended = ended.unwrap_err().to_string();
        assert!(ended.contains("closed the connection"), "{ended}");
        assert_eq!(keys, [b"a".to_vec()]);
    }

    /// Its end, which a server that refuses the value does not tell either, ended the export; of a
    /// hash nothing was said.
    #[test]
    fn a_key_that_the_server_does_not_give_is_damage_and_all_others_are_exported() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::tcp(listener.local_addr().unwrap().to_string());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut answer = |command: &str, reply: &str| answer(&mut stream, command, reply);
            answer("SCAN 0 COUNT 512", "*2\r\n$1\r\n0\r\n*3\r\n$1\r\na\r\n$1\r\nh\r\n$1\r\nb\r\n");
            answer("GET a", "-NOPERM no access\r\n");
            answer("PEXPIRETIME a", "-NOPERM no access\r\n");
            answer("GET h", "-WRONGTYPE a hash\r\n");
            answer("PEXPIRETIME h", ":-1\r\n");
            answer("GET b", "$1\r\nx\r\n");
            answer("PEXPIRETIME b", ":-1\r\n");
            answer("HGETALL h", "-ERR damaged\r\n");
        });
        let mut served = Served::new(Client::connect(&address).unwrap());
        let (mut damage, mut items) = (Damage::default(), Vec::new());
        let visited = served.visit(&mut damage, &mut |item| {
            items.push(item);
            Ok(())
        });
        visited.unwrap();
        server.join().unwrap();
        let said: Vec<_> = damage.sentences().collect();
        assert_eq!(said, ["key 'a': NOPERM no access", "key 'h': ERR damaged"]);
        assert_eq!(items, [Item { key: b"b".into(), value: b"x".into(), ..Item::default() }]);
    }

    /// What expired between its value and its end was exported as what never expires, and so was
    /// everything where the server does not tell.
    #[test]
    fn the_end_of_an_entry_is_known_or_the_export_says_why_not() {
        let end = |got| end_of(b"k", &got);
        assert_eq!(end(Got::Number(-1)).unwrap(), Some(None));
        assert_eq!(end(Got::Number(17)).unwrap(), Some(Some(17)));
        assert_eq!(end(Got::Number(-2)).unwrap(), None);
        let error = end(Got::Failed("ERR unknown command".into())).unwrap_err().to_string();
        assert!(error.contains("found ERR unknown command"), "{error}");
    }
}
