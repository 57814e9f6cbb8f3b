//! What names a command in flight, to the engine and among threads.

/// The numbers of slots wrap around here.
pub(crate) const SEQUENCE_MASK: u32 = (1 << 24) - 1;

/// Names a slot of a connection: bits 0 to 23 its number, 24 to 43 the connection's place, 44 to 62
/// the connection's generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotToken(pub(crate) u64);

impl SlotToken {
    /// The token of slot number `sequence` of the connection at `place`.
    pub(crate) fn new(place: usize, generation: u32, sequence: u32) -> SlotToken {
        let generation = u64::from(generation & GENERATION_MASK);
        SlotToken(generation << 44 | (place as u64) << 24 | u64::from(sequence & SEQUENCE_MASK))
    }

    /// The connection's place.
    pub(crate) fn place(self) -> usize {
        (self.0 >> 24 & 0xF_FFFF) as usize
    }

    /// The connection's generation.
    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 44) as u32 & GENERATION_MASK
    }

    /// The slot's number.
    pub(crate) fn sequence(self) -> u32 {
        self.0 as u32 & SEQUENCE_MASK
    }
}

/// Generations wrap around here.
pub(crate) const GENERATION_MASK: u32 = (1 << 19) - 1;
/// Most connections of one worker.
pub(crate) const PLACES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_keep_their_parts() {
        let token = SlotToken::new(0xF_FFFE, GENERATION_MASK, SEQUENCE_MASK);
        assert_eq!(token.place(), 0xF_FFFE);
        assert_eq!(token.generation(), GENERATION_MASK);
        assert_eq!(token.sequence(), SEQUENCE_MASK);
        assert_eq!(token.0 >> 63, 0);
    }
}
