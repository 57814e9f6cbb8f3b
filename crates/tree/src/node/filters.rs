//! The filters of a node's leaves: which keys each leaf may hold, with its delta page.
//!
//! They lie one behind the other, since each is small. A node without any takes no memory for them.

use std::ops::Range;

use crate::filter::{KeyHash, add_keys};

/// A filter for each child; an empty one tells nothing.
#[derive(Debug, Default)]
pub(crate) struct LeafFilters {
    bits: Vec<u8>,
    /// Where each filter ends. None, where all are empty.
    ends: Vec<u32>,
}

impl LeafFilters {
    /// Of as many children as there are filters.
    pub(crate) fn of(filters: &[&[u8]]) -> LeafFilters {
        let mut all = LeafFilters::default();
        for filter in filters {
            all.bits.extend_from_slice(filter);
            all.ends.push(all.bits.len() as u32);
        }
        all
    }

    fn start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.ends[before] as usize)
    }

    fn range(&self, index: usize) -> Range<usize> {
        self.start(index)..self.ends[index] as usize
    }

    /// Whether there is a filter that tells something.
    pub(crate) fn has_any(&self) -> bool {
        !self.bits.is_empty()
    }

    /// The filter of child `index`.
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        if self.ends.is_empty() { &[] } else { &self.bits[self.range(index)] }
    }

    /// Child `index` of `count` has another filter.
    pub(crate) fn set(&mut self, index: usize, count: usize, filter: &[u8]) {
        if self.ends.is_empty() {
            if filter.is_empty() {
                return;
            }
            self.ends = vec![0; count];
        }
        let range = self.range(index);
        let (old, new) = (range.len(), filter.len());
        if self.bits.capacity() - self.bits.len() < new {
            // Left to itself it would double.
            self.bits.reserve_exact(new + self.bits.len() / 16);
        }
        self.bits.splice(range, filter.iter().copied());
        for end in &mut self.ends[index..] {
            *end = (*end as usize - old + new) as u32;
        }
    }

    /// Child `index` has more keys.
    pub(crate) fn add(&mut self, index: usize, keys: &[KeyHash]) {
        if !self.get(index).is_empty() {
            let range = self.range(index);
            add_keys(&mut self.bits[range], keys);
        }
    }

    /// A child without a filter comes to `index`.
    pub(crate) fn insert(&mut self, index: usize) {
        if !self.ends.is_empty() {
            let start = self.start(index) as u32;
            self.ends.reserve_exact(1 + self.ends.len() / 16 * usize::from(self.is_full()));
            self.ends.insert(index, start);
        }
    }

    fn is_full(&self) -> bool {
        self.ends.len() == self.ends.capacity()
    }

    /// Children leave.
    pub(crate) fn remove(&mut self, children: Range<usize>) {
        if self.ends.is_empty() {
            return;
        }
        let (start, end) = (self.start(children.start), self.start(children.end));
        self.bits.drain(start..end);
        self.ends.drain(children.clone());
        for rest in &mut self.ends[children.start..] {
            *rest -= (end - start) as u32;
        }
    }

    /// The filters of the children from `index` on go to another node.
    pub(crate) fn split_off(&mut self, index: usize) -> LeafFilters {
        if self.ends.is_empty() {
            return LeafFilters::default();
        }
        let start = self.start(index);
        let ends = self.ends.split_off(index);
        let right = LeafFilters {
            bits: self.bits.split_off(start),
            ends: ends.into_iter().map(|end| end - start as u32).collect(),
        };
        self.bits.shrink_to_fit();
        self.ends.shrink_to_fit();
        right
    }

    /// `others` children follow the `count` that there are.
    pub(crate) fn append(&mut self, count: usize, right: LeafFilters, others: usize) {
        if self.ends.is_empty() && right.ends.is_empty() {
            return;
        }
        self.ends.resize(count, self.bits.len() as u32);
        let start = self.bits.len() as u32;
        self.bits.extend_from_slice(&right.bits);
        self.ends.extend(right.ends.iter().map(|end| end + start));
        self.ends.resize(count + others, self.bits.len() as u32);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.bits.capacity() + self.ends.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(filters: &LeafFilters, count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|index| filters.get(index).to_vec()).collect()
    }

    #[test]
    fn each_child_keeps_its_filter_while_others_come_and_leave() {
        let mut filters = LeafFilters::default();
        filters.insert(0);
        filters.set(0, 1, &[]);
        assert_eq!((filters.memory_bytes(), filters.get(0)), (0, &[][..]));
        filters.set(1, 3, &[1, 2]);
        filters.set(2, 3, &[3]);
        filters.insert(1);
        assert_eq!(all(&filters, 4), [vec![], vec![], vec![1, 2], vec![3]]);
        filters.set(1, 4, &[9]);
        filters.set(2, 4, &[7]);
        let right = filters.split_off(2);
        assert_eq!(
            (all(&filters, 2), all(&right, 2)),
            (vec![vec![], vec![9]], vec![vec![7], vec![3]])
        );
        filters.append(2, LeafFilters::default(), 1);
        filters.append(3, right, 2);
        assert_eq!(all(&filters, 5), [vec![], vec![9], vec![], vec![7], vec![3]]);
        filters.remove(1..4);
        assert_eq!(all(&filters, 2), [vec![], vec![3]]);
        let mut none = LeafFilters::default();
        none.append(2, filters, 2);
        assert_eq!(all(&none, 4), [vec![], vec![], vec![], vec![3]]);
    }
}
