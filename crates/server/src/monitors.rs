//! Clients that watch every command (`MONITOR`), and the line that each of them gets.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use entresol_wire::resp::Arguments;

use crate::client::Client;

use crate::command::arguments::is;
use crate::command::spec::{ADMIN, Spec};
use crate::lock::lock;
use crate::slot_token::SlotToken;

/// Clients that watch every command. Thread-safe; costs one load where there is none.
#[derive(Debug, Default)]
pub(crate) struct Monitors {
    count: AtomicUsize,
    all: Mutex<Vec<Monitor>>,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Monitor {
    /// The number of the client.
    client: u64,
    /// The worker that serves it.
    pub(crate) worker: usize,
    /// Its connection, with slot number 0.
    pub(crate) connection: SlotToken,
}

impl Monitors {
    /// Lets `client` watch from now on.
    pub(crate) fn enter(&self, client: &Client) {
        let mut all = lock(&self.all);
        if all.iter().all(|monitor| monitor.client != client.facts.id) {
            let worker = client.facts.worker;
            all.push(Monitor { client: client.facts.id, worker, connection: client.connection });
            self.count.store(all.len(), Ordering::Release);
            client.is_monitor.set(true);
        }
    }

    /// Lets `client` watch no more.
    pub(crate) fn leave(&self, client: &Client) {
        if client.is_monitor.replace(false) {
            let mut all = lock(&self.all);
            all.retain(|monitor| monitor.client != client.facts.id);
            self.count.store(all.len(), Ordering::Release);
        }
    }

    /// Who is to be told of a command that `client` gives, and in which words.
    pub(crate) fn tell(
        &self,
        client: &Client,
        spec: &Spec,
        arguments: Arguments<'_>,
    ) -> Option<(Vec<Monitor>, Arc<[u8]>)> {
        if self.count.load(Ordering::Relaxed) == 0 || spec.has(ADMIN) {
            return None;
        }
        let mut others = lock(&self.all).clone();
        others.retain(|monitor| monitor.client != client.facts.id);
        Some((others, line(client, spec, arguments).into()))
    }
}

/// `+SECONDS [SPACE ADDRESS] "ARGUMENT"…`, as redis-server has it; secrets are left out.
fn line(client: &Client, spec: &Spec, arguments: Arguments<'_>) -> Vec<u8> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let address = client.facts.address.as_str();
    let kind = if address.parse::<SocketAddr>().is_ok() { "" } else { "unix:" };
    let mut out = format!(
        "+{}.{:06} [{} {kind}{address}]",
        since.as_secs(),
        since.subsec_micros(),
        client.space.get().0
    )
    .into_bytes();
    let mut secret = spec.name == "auth";
    for (place, argument) in arguments.from(0).enumerate() {
        out.extend_from_slice(b" \"");
        match secret && place > 0 {
            true => out.extend_from_slice(b"(redacted)"),
            false => quote(argument, &mut out),
        }
        out.push(b'"');
        secret |= spec.name == "hello" && is(argument, "AUTH");
    }
    out.extend_from_slice(b"\r\n");
    out
}

fn quote(argument: &[u8], out: &mut Vec<u8>) {
    for byte in argument {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            7 => out.extend_from_slice(b"\\a"),
            8 => out.extend_from_slice(b"\\b"),
            b' '..=b'~' => out.push(*byte),
            _ => out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn arguments_are_quoted_so_that_a_line_stays_a_line() {
        let mut out = Vec::new();
        quote(b"a \"b\"\\\r\n\t\x07\x08\x00\xff", &mut out);
        assert_eq!(out, b"a \\\"b\\\"\\\\\\r\\n\\t\\a\\b\\x00\\xff");
    }
}
