//! Sizes of slots: steps of 8 bytes to 128, then eight steps for each doubling, so that a slot is
//! at most an eighth larger than its contents. Sizes that the user registered come first.

/// The largest allocation that goes into a slot, unless its size was registered; larger ones are
/// runs of pages.
pub(crate) const SMALL_BYTES_MAX: u64 = 32 << 10;
const FINE_BYTES_MAX: u64 = 128;

/// The classes of an open heap, each with a number.
#[derive(Debug)]
pub(crate) struct Classes {
    sizes: Vec<u64>,
    /// The class for each size in steps of 8 bytes.
    steps: Vec<u8>,
    /// Registered sizes and their classes.
    registered: Vec<(u64, usize)>,
}

impl Classes {
    pub(crate) fn new(registered: &[u64]) -> Classes {
        let mut sizes: Vec<u64> = (8..=FINE_BYTES_MAX).step_by(8).collect();
        let mut power = FINE_BYTES_MAX;
        while power < SMALL_BYTES_MAX {
            sizes.extend((1..=8).map(|step| power + power / 8 * step));
            power *= 2;
        }
        let mut steps = vec![0];
        let mut class = 0;
        for size in (8..=SMALL_BYTES_MAX).step_by(8) {
            while sizes[class] < size {
                class += 1;
            }
            steps.push(class as u8);
        }
        let mut classes = Classes { sizes, steps, registered: Vec::new() };
        for bytes in registered {
            classes.register(*bytes);
        }
        classes
    }

    pub(crate) fn len(&self) -> usize {
        self.sizes.len()
    }

    /// The class for blocks of `bytes`; `None` if they are runs.
    pub(crate) fn of(&self, bytes: u64) -> Option<usize> {
        if let Some((_, class)) = self.registered.iter().find(|(size, _)| *size == bytes) {
            return Some(*class);
        }
        let step = bytes.div_ceil(8);
        (bytes <= SMALL_BYTES_MAX).then(|| usize::from(self.steps[step as usize]))
    }

    /// The class whose slots hold exactly `bytes`.
    pub(crate) fn exact(&self, bytes: u64) -> Option<usize> {
        self.of(bytes).filter(|class| self.sizes[*class] == bytes)
    }

    pub(crate) fn slot_bytes(&self, class: usize) -> u64 {
        self.sizes[class]
    }

    /// Adds a class for exactly `bytes`; returns whether it is new. Sizes that are too large for
    /// slots, which only damage registers, have none.
    pub(crate) fn register(&mut self, bytes: u64) -> bool {
        if bytes > SMALL_BYTES_MAX || self.exact(bytes).is_some() {
            return false;
        }
        self.registered.push((bytes, self.sizes.len()));
        self.sizes.push(bytes);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_at_most_an_eighth_too_large() {
        let classes = Classes::new(&[]);
        for bytes in 1..=SMALL_BYTES_MAX {
            let slot = classes.slot_bytes(classes.of(bytes).unwrap());
            let most = if bytes <= FINE_BYTES_MAX { bytes.next_multiple_of(8) } else { slot };
            assert!(slot >= bytes && slot <= most, "{bytes} in {slot}");
            assert!(bytes <= FINE_BYTES_MAX || (slot - bytes) * 8 <= slot, "{bytes} in {slot}");
        }
        assert_eq!(classes.of(SMALL_BYTES_MAX + 1), None);
    }

    #[test]
    fn a_registered_size_is_exact() {
        let mut classes = Classes::new(&[1001]);
        assert_eq!(classes.slot_bytes(classes.of(1001).unwrap()), 1001);
        assert_eq!(classes.slot_bytes(classes.of(1000).unwrap()), 1024);
        assert!(!classes.register(1001) && !classes.register(64) && classes.register(777));
    }
}
