//! How long a write waits for the device before its session goes on with others.

/// How often a write waits for the device, a moment each time, before its session goes on with
/// others: a device that stalls must not stop everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waits(u32);

impl Waits {
    /// Those of a write that begins: a device that is merely slower than its writers answers
    /// within.
    pub(crate) const OF_FIRST_TRY: Waits = Waits(16);
    /// Those of one that was put off before.
    pub(crate) const OF_RETRY: Waits = Waits(1);

    /// Those for room, one after the other without a step of reclaim between: what was gained for a
    /// write is counted from its beginning, so it is put off only where the device stalls.
    pub(super) const FOR_ROOM: Waits = Waits(64);

    /// Whether a write goes on whose last step `awaited` the device, or not.
    pub(super) fn go_on(&mut self, awaited: bool) -> bool {
        if awaited {
            return self.take();
        }
        *self = Waits::FOR_ROOM;
        true
    }

    pub(super) fn take(&mut self) -> bool {
        let left = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        left
    }
}
