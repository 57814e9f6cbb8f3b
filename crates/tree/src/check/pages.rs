//! Which numbers of a table's pages were met.

/// A set of numbers that grows with the largest one.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    words: Vec<u64>,
}

impl Numbers {
    /// Adds a number. Whether it is new.
    pub(super) fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = (number as usize / 64, number % 64);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let is_new = self.words[word] >> bit & 1 == 0;
        self.words[word] |= 1 << bit;
        is_new
    }

    /// Whether a number is in it.
    pub(super) fn has(&self, number: u32) -> bool {
        let word = self.words.get(number as usize / 64).copied().unwrap_or(0);
        word >> (number % 64) & 1 == 1
    }
}
