//! Which segment of a stream was opened after which: the order of the log, for those who read it.
//!
//! The numbers of segments do not tell: free ones are used again in the order they became free.
//! In memory only. Segments that are free now keep their place until they are opened again.

use crate::segment::{STREAMS, Segment};

/// No segment.
const NONE: u32 = u32::MAX;

/// For each stream a list of segments, in the order they were opened.
#[derive(Debug)]
pub(crate) struct Succession {
    links: Vec<Link>,
    last: [u32; STREAMS],
}

/// The neighbours of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Link {
    before: u32,
    after: u32,
}

impl Link {
    const ALONE: Link = Link { before: NONE, after: NONE };
}

impl Succession {
    /// Of `segments` none of which was opened yet.
    pub(crate) fn new(segments: u32) -> Succession {
        Succession { links: vec![Link::ALONE; segments as usize], last: [NONE; STREAMS] }
    }

    /// Of the segments of a table, by their sequences. Streams are as the device has them, where a
    /// damaged header may name one that there is not.
    pub(crate) fn of(table: &[Segment]) -> Succession {
        let mut succession = Succession::new(table.len() as u32);
        let mut used: Vec<u32> = (0..table.len() as u32)
            .filter(|&number| {
                let row = &table[number as usize];
                row.sequence != 0 && usize::from(row.stream) < STREAMS
            })
            .collect();
        used.sort_unstable_by_key(|&number| table[number as usize].sequence);
        for number in used {
            succession.open(number, usize::from(table[number as usize].stream));
        }
        succession
    }

    /// `segment` has been opened, the newest of `stream`.
    pub(crate) fn open(&mut self, segment: u32, stream: usize) {
        self.leave(segment);
        let before = std::mem::replace(&mut self.last[stream], segment);
        self.links[segment as usize] = Link { before, after: NONE };
        if let Some(link) = self.links.get_mut(before as usize) {
            link.after = segment;
        }
    }

    /// The segment that was opened after `segment` in its stream; it may be free by now.
    pub(crate) fn after(&self, segment: u32) -> Option<u32> {
        let link = self.links.get(segment as usize)?;
        (link.after != NONE).then_some(link.after)
    }

    /// Takes a segment out of its list, if it is in one.
    fn leave(&mut self, segment: u32) {
        let Link { before, after } = self.links[segment as usize];
        if let Some(link) = self.links.get_mut(before as usize) {
            link.after = after;
        }
        if let Some(link) = self.links.get_mut(after as usize) {
            link.before = before;
        } else if let Some(last) = self.last.iter_mut().find(|last| **last == segment) {
            *last = before;
        }
        self.links[segment as usize] = Link::ALONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENTS: u32 = 12;

    /// All segments of a stream, oldest first, from `first` on.
    fn from(succession: &Succession, first: u32) -> Vec<u32> {
        std::iter::successors(Some(first), |&at| succession.after(at)).collect()
    }

    #[test]
    fn segments_follow_each_other_in_the_order_they_were_last_opened() {
        let mut state = 11u64;
        let mut random = |bound: u32| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as u32 % bound
        };
        let mut succession = Succession::new(SEGMENTS);
        let mut model: [Vec<u32>; STREAMS] = Default::default();
        for step in 0..10_000 {
            let (segment, stream) = (random(SEGMENTS), random(STREAMS as u32) as usize);
            succession.open(segment, stream);
            model.iter_mut().for_each(|list| list.retain(|&one| one != segment));
            model[stream].push(segment);
            for list in model.iter().filter(|list| !list.is_empty()) {
                assert_eq!(from(&succession, list[0]), *list, "step {step}");
            }
        }
    }

    #[test]
    fn a_table_tells_the_order_by_its_sequences() {
        let row = |sequence, stream| Segment { sequence, stream, ..Segment::UNUSED };
        let damaged = row(6, STREAMS as u8);
        let table = [row(9, 1), row(2, 1), row(0, 0), row(5, 0), row(4, 1), row(3, 0), damaged];
        let mut succession = Succession::of(&table);
        assert_eq!(from(&succession, 1), [1, 4, 0]);
        assert_eq!(from(&succession, 5), [5, 3]);
        assert_eq!(succession.after(2), None);
        succession.open(2, 1);
        assert_eq!(from(&succession, 4), [4, 0, 2]);
    }
}
