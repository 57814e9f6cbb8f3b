//! Replies that are ready: from the output to the sockets, and what they take meanwhile.

use std::io::ErrorKind;
use std::sync::atomic::Ordering;

use entresol_tier::Timestamp;
use tracing::warn;

use super::Worker;
use crate::client_memory::Taken;
use crate::connection::{Connection, KEPT_BYTES_MAX};

/// Replies of one connection that are written before those of others are put together.
const MANY_BYTES: usize = 8 << 10;
/// The memory for replies that connections are lent one after the other, at most.
const SPARE_OUTPUT_MAX: usize = 256 << 10;

impl Worker {
    /// Writes what is ready, one call for each client, and closes connections that are done.
    pub(super) fn write_dirty(&mut self) {
        let mut places = std::mem::take(&mut self.dirty);
        for place in places.drain(..) {
            let Some(Some(connection)) = self.connections.get_mut(place) else {
                continue;
            };
            connection.dirty = false;
            self.write_output(place);
            self.account(place);
            if self.connections[place].as_ref().is_some_and(|one| one.is_finished()) {
                self.remove(place);
            }
        }
        if self.dirty.is_empty() {
            self.dirty = places;
        }
    }

    /// Writes the replies of the connection at `place` where they are many: those of the next one
    /// are put together in the same memory, which the processor's cache still holds.
    pub(super) fn write_many(&mut self, place: usize) {
        let Some(Some(connection)) = self.connections.get(place) else {
            return;
        };
        if connection.output.len() - connection.written >= MANY_BYTES {
            // Before the replies, as at the end of a turn.
            self.engine.shared.meters[self.engine.worker].record(&mut self.batch);
            self.write_output(place);
        }
    }

    /// Writes what the peer at `place` takes, and lets it go on where it waited for that.
    fn write_output(&mut self, place: usize) {
        let Some(Some(connection)) = self.connections.get_mut(place) else {
            return;
        };
        let before = connection.waiting_bytes();
        let written = write(connection, self.engine.now());
        self.batch.output_bytes += written as u64;
        if connection.output.is_empty() && connection.output.capacity() > KEPT_BYTES_MAX {
            let output = std::mem::take(&mut connection.output);
            if output.capacity() <= SPARE_OUTPUT_MAX {
                self.spare_output = output;
            }
        }
        if connection.stalled && written > 0 && before > 0 {
            self.make_runnable(place);
        }
    }

    /// Gives the connection at `place` memory for its replies, if it has none.
    pub(super) fn lend_output(&mut self, place: usize) {
        if let Some(Some(connection)) = self.connections.get_mut(place)
            && connection.output.capacity() == 0
        {
            connection.output = std::mem::take(&mut self.spare_output);
        }
    }

    /// Counts what a connection takes. When all together are over the limit, one is closed that has
    /// the server keep more than before: replies go away by themselves.
    pub(super) fn account(&mut self, place: usize) {
        let Some(Some(connection)) = self.connections.get_mut(place) else {
            return;
        };
        let memory = &self.engine.shared.memory;
        if connection.claim.granted > 0 && !connection.uses_claim() {
            memory.settle(std::mem::take(&mut connection.claim.granted));
        }
        let takes = connection.takes();
        let before = std::mem::replace(&mut connection.taken, takes);
        if takes == before {
            return;
        }
        let turns = memory.change(before, takes);
        connection.client.facts.buffered_bytes.store(takes.bytes, Ordering::Relaxed);
        let kept = |taken: Taken| taken.bytes.saturating_sub(taken.replies);
        let is_claimed = connection.claim.granted > 0;
        if !is_claimed && kept(takes) > kept(before) && memory.is_exceeded() {
            warn!(
                "client {} is closed: buffers of clients take more than {} bytes; raise `memory`",
                connection.client.facts.address,
                memory.max()
            );
            connection.broken = true;
        }
        self.engine.shared.hand_out(turns);
    }
}

/// Writes as much of the output as the peer takes; how many bytes.
fn write(connection: &mut Connection, now: Timestamp) -> usize {
    if !connection.was_owing {
        connection.progress_ms = now.0;
    }
    let before = (connection.written, connection.stream.sent_bytes());
    loop {
        while connection.written < connection.output.len() && !connection.broken {
            match connection.stream.write(&connection.output[connection.written..]) {
                Ok(0) => connection.broken = true,
                Ok(length) => connection.written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => connection.broken = true,
            }
        }
        let left = connection.written < connection.output.len() && !connection.broken;
        match connection.stream.flush() {
            // The socket has room again, and took all that TLS had: it tells of none.
            Ok(()) if left && connection.stream.holds_back() => {}
            Err(error) if error.kind() != ErrorKind::WouldBlock => {
                connection.broken = true;
                break;
            }
            _ => break,
        }
    }
    let written = connection.written - before.0;
    if connection.written == connection.output.len() {
        connection.output.clear();
        connection.written = 0;
    } else if connection.written >= KEPT_BYTES_MAX.max(connection.output.len() / 4) {
        // A peer that never quite catches up would have all that it ever took kept.
        connection.output.drain(..connection.written);
        connection.written = 0;
    }
    // What TLS took and holds back is with no peer yet.
    let sent = match connection.stream.holds_output() {
        true => connection.stream.sent_bytes() > before.1,
        false => written > 0 || connection.output.is_empty(),
    };
    if sent {
        connection.progress_ms = now.0;
    }
    connection.was_owing = connection.owes_bytes();
    written
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use entresol_net::Stream;
    use entresol_wire::resp::Limits;
    use mio::net::UnixStream;

    use super::*;
    use crate::client::{Client, Clients};
    use crate::slot_token::SlotToken;

    /// Where the socket was full to the byte with what the peer had not read, the time for the next
    /// reply had begun with the one before.
    #[test]
    fn the_time_to_take_a_reply_begins_with_the_reply() {
        let (ours, _peer) = UnixStream::pair().unwrap();
        let stream = Stream::unix(ours, "test");
        let facts = Clients::default().enter(0, stream.addresses().clone(), 0);
        let client = Rc::new(Client::new(facts, None, SlotToken::new(0, 0, 0)));
        let mut connection = Connection::new(stream, client, 0, Limits::default());
        connection.output = vec![b'x'; 64 << 20];
        assert!(write(&mut connection, Timestamp(1)) < 64 << 20);
        connection.output.clear();
        connection.written = 0;
        write(&mut connection, Timestamp(2));
        connection.output = b"+PONG\r\n".to_vec();
        assert_eq!(write(&mut connection, Timestamp(1000)), 0);
        assert!(!connection.is_stuck(1010, 10) && connection.is_stuck(1011, 10));
        assert_eq!(write(&mut connection, Timestamp(1005)), 0);
        assert!(connection.is_stuck(1011, 10), "it goes on");
    }
}
