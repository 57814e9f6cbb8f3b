//! The byte of a record's header that says which seldom needed fields follow it, in the order
//! of its bits.

/// Which fields follow the first 32 bytes of a header; those left out have their usual values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extras(pub u8);

impl Extras {
    /// Absent: the version is the sequence.
    pub(super) const VERSION: u8 = 1;
    /// Absent: the value is stored as it is.
    pub(super) const RAW_BYTES: u8 = 2;
    /// Absent: the record does not end.
    pub(super) const END: u8 = 4;
    /// Idle seconds and the time of last use; absent: it may idle for ever.
    pub(super) const IDLE: u8 = 8;
    /// Absent: 0.
    pub(super) const LABEL: u8 = 16;
    /// A mark alone: the record is expected to live shortly.
    pub(super) const SHORT: u8 = 32;
    /// A mark alone: the record is expected to live long.
    pub(super) const LONG: u8 = 64;
    pub(super) const KNOWN: u8 = 127;
    const LENGTHS: [usize; 7] = [8, 4, 8, 8, 4, 0, 0];

    pub(super) fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    pub(super) fn bytes(self) -> usize {
        let lengths = Extras::LENGTHS.into_iter().enumerate();
        lengths.filter(|(number, _)| self.has(1 << number)).map(|(_, bytes)| bytes).sum()
    }
}
