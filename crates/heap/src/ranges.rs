//! A set of byte ranges that tells which parts of a new range it did not hold.

use std::collections::BTreeMap;

/// Ranges that neither overlap nor touch, in order.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    /// While there are few.
    few: Vec<(u64, u64)>,
    /// Once there were many: the end of each, by its start.
    many: BTreeMap<u64, u64>,
}

/// Ranges kept in the vector.
const FEW_MAX: usize = 64;

impl Ranges {
    /// Adds `start..end`, not empty; `visit` gets each part that was not in the set, in order.
    pub(crate) fn cover(&mut self, start: u64, end: u64, visit: impl FnMut(u64, u64)) {
        if self.many.is_empty() {
            self.cover_few(start, end, visit);
            if self.few.len() > FEW_MAX {
                self.many.extend(self.few.drain(..));
            }
        } else {
            self.cover_many(start, end, visit);
        }
    }

    fn cover_few(&mut self, start: u64, end: u64, mut visit: impl FnMut(u64, u64)) {
        let first = self.few.partition_point(|(_, other_end)| *other_end < start);
        let (mut from, mut joined) = (start, (start, end));
        let mut last = first;
        while let Some((other_start, other_end)) = self.few.get(last).copied()
            && other_start <= end
        {
            if from < other_start {
                visit(from, other_start);
            }
            from = from.max(other_end);
            joined = (joined.0.min(other_start), joined.1.max(other_end));
            last += 1;
        }
        if from < end {
            visit(from, end);
        }
        match last - first {
            0 => self.few.insert(first, joined),
            1 => self.few[first] = joined,
            _ => drop(self.few.splice(first..last, [joined])),
        }
    }

    fn cover_many(&mut self, start: u64, end: u64, mut visit: impl FnMut(u64, u64)) {
        let before = self.many.range(..start).next_back().map(|(s, e)| (*s, *e));
        let before = before.filter(|(_, other_end)| *other_end >= start).map(|(s, _)| s);
        let (mut from, mut joined) = (start, (start, end));
        let first = before.unwrap_or(start);
        while let Some((other_start, other_end)) =
            self.many.range(first..=end).next().map(|(s, e)| (*s, *e))
        {
            if from < other_start {
                visit(from, other_start);
            }
            from = from.max(other_end);
            joined = (joined.0.min(other_start), joined.1.max(other_end));
            self.many.remove(&other_start);
        }
        if from < end {
            visit(from, end);
        }
        self.many.insert(joined.0, joined.1);
    }

    /// All of them, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let many = self.many.iter().map(|(start, end)| (*start, *end));
        self.few.iter().copied().chain(many)
    }

    pub(crate) fn clear(&mut self) {
        self.few.clear();
        self.many.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_parts_are_told_once_whatever_the_order() {
        for stride in [1, 3, 7, 61] {
            let mut ranges = Ranges::default();
            let mut model = vec![false; 4096];
            let mut at = 17_u64;
            for step in 0..2000_u64 {
                at = (at * 31 + step * stride) % 4000;
                let end = (at + 1 + (step * 13) % 40).min(4096);
                let mut told = vec![false; 4096];
                ranges.cover(at, end, |from, to| {
                    assert!(from < to && from >= at && to <= end);
                    (from..to).for_each(|byte| told[byte as usize] = true);
                });
                for byte in at..end {
                    let byte = byte as usize;
                    assert_eq!(told[byte], !model[byte], "byte {byte}, step {step}, {stride}");
                    model[byte] = true;
                }
            }
            let mut held = vec![false; 4096];
            let mut before = None;
            for (start, end) in ranges.iter() {
                assert!(before.is_none_or(|before| before < start) && start < end);
                before = Some(end);
                (start..end).for_each(|byte| held[byte as usize] = true);
            }
            assert_eq!(held, model);
        }
    }
}
