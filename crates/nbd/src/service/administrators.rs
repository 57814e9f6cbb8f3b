//! Administrators of the event loop: taking them, and doing what their lines say.

use std::sync::atomic::Ordering;

use entresol_net::Listener;
use entresol_volume::VolumeId;
use entresol_wire::nbd::ReplyTo;
use mio::Token;
use serde_json::json;
use tracing::error;

use super::{ADMINISTRATORS_MAX, FIRST_ADMINISTRATOR, Service};
use crate::control::{self, Administrator, Begun, Stand};
use crate::pending::{Asked, Asker, Waiting};

impl Service<'_> {
    /// Takes the administrators that wait, some at a time: one who comes again and again must not
    /// keep the others waiting.
    pub(super) fn accept_administrators(&mut self) {
        for _ in 0..ADMINISTRATORS_MAX {
            let Some(found) = self.listening.control.as_ref().map(Listener::accept) else {
                return;
            };
            let mut stream = match found {
                Ok(Some(stream)) => stream,
                Ok(None) => return,
                Err(error) => {
                    error!("administrators wait, for none can be taken: {error}");
                    return;
                }
            };
            if self.administrators.iter().flatten().count() == ADMINISTRATORS_MAX {
                // Those who have gone may not have been heard.
                (0..self.administrators.len()).for_each(|place| self.hear(place));
            }
            let free = self.administrators.iter().position(Option::is_none);
            let place = free.unwrap_or(self.administrators.len());
            let token = Token(FIRST_ADMINISTRATOR + place);
            if place >= ADMINISTRATORS_MAX || stream.register(&self.registry, token).is_err() {
                continue;
            }
            self.next_generation = self.next_generation.wrapping_add(1);
            if place == self.administrators.len() {
                self.administrators.push(None);
            }
            self.administrators[place] = Some(Administrator::new(stream, self.next_generation));
            self.hear(place);
        }
        // If the waker fails, the next sweep looks for more.
        let _ = self.stop.waker.wake();
    }

    /// Takes what an administrator has sent.
    pub(super) fn hear(&mut self, place: usize) {
        let now = self.now();
        let clients = self.connections.iter().flatten();
        let used: Vec<VolumeId> = clients.filter_map(|(_, client)| client.volume()).collect();
        let Some(Some(administrator)) = self.administrators.get_mut(place) else {
            return;
        };
        administrator.write();
        administrator.read(&mut self.scratch);
        while let Some(line) = administrator.next_line() {
            self.figures.held_bytes = self.held_bytes as u64;
            let stand = Stand { now, used: &used, server: self.figures.json() };
            match control::begin(&line, self.volumes, stand) {
                Begun::Answer(answer) => administrator.answer(&answer),
                Begun::Stop => {
                    administrator.answer(&json!({"ok": true}));
                    self.stop.asked.store(true, Ordering::Release);
                }
                Begun::Ask(volume, request) => {
                    administrator.waits = true;
                    let waiting = Waiting {
                        asker: Asker::Administrator(place, administrator.generation),
                        reply: ReplyTo { cookie: 0, offset: 0 },
                        asked: Asked::Administration,
                        behind: Vec::new(),
                        bytes: 0,
                        since_ns: now.0,
                    };
                    let token = self.pending.insert(waiting);
                    self.volumes.submit(volume, token, request, now);
                }
            }
        }
        if administrator.is_over() {
            let _ = administrator.stream.deregister();
            self.administrators[place] = None;
        }
        // A line may have made a volume, whose backing has a descriptor.
        self.watch_volumes();
    }
}
