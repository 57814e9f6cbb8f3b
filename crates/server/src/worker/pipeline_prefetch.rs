//! Looking ahead in a pipeline: what its next commands will touch in memory is loaded while those
//! before are carried out, so that they wait for memory once and not one after the other.
//!
//! It decides nothing: whatever it sees wrong costs time, and no more.

use entresol_tier::{Key, SpaceId};
use entresol_wire::resp::{Decoded, Decoder, Limits};

use crate::engine_session::EngineSession;

/// Commands looked at together.
const COMMANDS_AHEAD: usize = 16;
/// Commands of a pipeline before it is looked ahead in: what comes one by one has nothing behind.
const COMMANDS_BEFORE: usize = 2;
/// Bytes of a key that is looked for ahead, at most.
const KEY_BYTES_MAX: usize = 256;

/// How far the commands of one input were looked ahead.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    begun: usize,
    until: usize,
}

impl Ahead {
    /// Notes that the command at `at` is next; `load` looks ahead from a place on, and says how
    /// many bytes it saw.
    pub(super) fn step(&mut self, at: usize, load: impl FnOnce(usize) -> usize) {
        self.begun += 1;
        if self.begun > COMMANDS_BEFORE && at >= self.until {
            // Where nothing was seen, nothing is to be gained any more.
            self.until = match load(at) {
                0 => usize::MAX,
                seen => at + seen,
            };
        }
    }
}

/// The keys of the next commands of a pipeline.
#[derive(Debug)]
pub(super) struct LookAhead {
    decoder: Decoder,
    keys: Vec<u8>,
    /// Where each key ends.
    ends: Vec<usize>,
}

impl Default for LookAhead {
    fn default() -> LookAhead {
        let (keys, ends) = (Vec::new(), Vec::new());
        LookAhead { decoder: Decoder::new(Limits::default()), keys, ends }
    }
}

impl LookAhead {
    /// Starts loading what the next commands of `input` will touch; how many bytes those take.
    pub(super) fn load(&mut self, engine: &EngineSession, input: &[u8], space: SpaceId) -> usize {
        self.keys.clear();
        self.ends.clear();
        let mut at = 0;
        for _ in 0..COMMANDS_AHEAD {
            let rest = &input[at..];
            let Ok(Decoded::Command { consumed }) = self.decoder.decode(rest) else {
                self.decoder.restart();
                break;
            };
            at += consumed;
            let arguments = self.decoder.arguments(rest);
            // Nearly every command that has a key has it here.
            if arguments.len() > 1 && (1..=KEY_BYTES_MAX).contains(&arguments.at(1).len()) {
                self.keys.extend_from_slice(arguments.at(1));
                self.ends.push(self.keys.len());
            }
        }
        let begins = std::iter::once(&0).chain(&self.ends);
        let ranges = begins.zip(&self.ends).map(|(begin, end)| *begin..*end);
        engine.session().prefetch(ranges.map(|range| Key::new(space, &self.keys[range])));
        at
    }
}
