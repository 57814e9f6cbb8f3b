//! Runs of free pages: neighbours join, the first that is large enough serves.

use std::collections::{BTreeMap, BTreeSet};

/// Free pages of a heap, by number.
#[derive(Debug, Default)]
pub(crate) struct FreePages {
    /// Length of each run, by its first page.
    runs: BTreeMap<u64, u64>,
    /// The same runs, by length.
    lengths: BTreeSet<(u64, u64)>,
    total: u64,
}

/// Runs looked at in order of address before the smallest that fits is taken instead.
const TRIED_MAX: usize = 64;

impl FreePages {
    /// Takes `count` pages in one piece.
    pub(crate) fn take(&mut self, count: u64) -> Option<u64> {
        if self.largest() < count {
            return None;
        }
        let near = self.runs.iter().take(TRIED_MAX).find(|(_, length)| **length >= count);
        let (page, length) = match near {
            Some((page, length)) => (*page, *length),
            None => {
                let (length, page) = *self.lengths.range((count, 0)..).next()?;
                (page, length)
            }
        };
        self.remove(page, length);
        if length > count {
            self.insert(page + count, length - count);
        }
        Some(page)
    }

    /// Gives `count` pages from `page` on back.
    pub(crate) fn give(&mut self, mut page: u64, mut count: u64) {
        if count == 0 {
            return;
        }
        if let Some((before, length)) = self.runs.range(..page).next_back().map(|(p, l)| (*p, *l)) {
            assert!(before + length <= page, "pages are given back once");
            if before + length == page {
                self.remove(before, length);
                (page, count) = (before, count + length);
            }
        }
        if let Some((behind, length)) = self.runs.range(page..).next().map(|(p, l)| (*p, *l)) {
            assert!(page + count <= behind, "pages are given back once");
            if page + count == behind {
                self.remove(behind, length);
                count += length;
            }
        }
        self.insert(page, count);
    }

    /// Takes free pages off the end of `count` pages, down to `least`; returns how many are left.
    pub(crate) fn cut(&mut self, least: u64, count: u64) -> u64 {
        let Some((page, length)) = self.runs.last_key_value().map(|(p, l)| (*p, *l)) else {
            return count;
        };
        let left = page.max(least);
        if page + length != count || left >= count {
            return count;
        }
        self.remove(page, length);
        if left > page {
            self.insert(page, left - page);
        }
        left
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn largest(&self) -> u64 {
        self.lengths.last().map_or(0, |(length, _)| *length)
    }

    fn insert(&mut self, page: u64, length: u64) {
        self.runs.insert(page, length);
        self.lengths.insert((length, page));
        self.total += length;
    }

    fn remove(&mut self, page: u64, length: u64) {
        self.runs.remove(&page);
        self.lengths.remove(&(length, page));
        self.total -= length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_join_whatever_the_order() {
        let mut pages = FreePages::default();
        for page in [4, 0, 2, 1, 3] {
            pages.give(page, 1);
        }
        assert_eq!((pages.total(), pages.largest()), (5, 5));
        assert_eq!(pages.take(2), Some(0));
        assert_eq!(pages.take(4), None);
        assert_eq!(pages.take(3), Some(2));
        assert_eq!((pages.total(), pages.largest()), (0, 0));
    }

    #[test]
    fn only_free_pages_at_the_end_are_cut() {
        let mut pages = FreePages::default();
        pages.give(2, 3);
        assert_eq!(pages.cut(0, 6), 6);
        assert_eq!(pages.cut(3, 5), 3);
        assert_eq!((pages.total(), pages.largest()), (1, 1));
    }
}
