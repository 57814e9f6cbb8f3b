//! A span: a few pages cut into slots of one size, with a bitmap of the live ones in front.

use crate::format::PAGE_BYTES;
use crate::memory::Memory;

/// How a span is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Usable bytes of a slot.
    pub(crate) slot_bytes: u64,
    /// From slot to slot.
    pub(crate) stride: u64,
    pub(crate) pages: u64,
    pub(crate) slots: u64,
    /// Where the first slot begins, from the span's start.
    first: u64,
}

const PAGES_MAX: u64 = 64;
/// Pages of spans in heaps of at least [`ROOMY_HEAP_PAGES`].
const ROOMY_PAGES: u64 = 4;
const ROOMY_HEAP_PAGES: u64 = 4096;

impl Shape {
    /// The layout of `pages` pages with slots of `slot_bytes`; `None` if not one fits.
    pub(crate) fn of(slot_bytes: u64, pages: u64) -> Option<Shape> {
        let stride = slot_bytes.checked_next_multiple_of(8)?;
        let bytes = pages.checked_mul(PAGE_BYTES)?;
        // Slots of whole lines begin at lines.
        let alignment = 1 << stride.trailing_zeros().min(6);
        let first = |slots: u64| (slots.div_ceil(64) * 8).next_multiple_of(alignment);
        let mut slots = bytes / stride;
        while slots > 0 && first(slots) + slots * stride > bytes {
            slots -= 1;
        }
        (slots > 0).then(|| Shape { slot_bytes, stride, pages, slots, first: first(slots) })
    }

    /// The fewest pages of which at most an eighth is lost.
    pub(crate) fn tight(slot_bytes: u64) -> Shape {
        let mut best = None;
        for shape in (1..=PAGES_MAX).filter_map(|pages| Shape::of(slot_bytes, pages)) {
            if shape.is_thrifty() {
                return shape;
            }
            best = Some(shape);
        }
        best.expect("classes are at most half as large as the largest span")
    }

    /// As `tight`, of more pages where the heap has many.
    pub(crate) fn roomy(slot_bytes: u64, heap_pages: u64) -> Shape {
        let tight = Shape::tight(slot_bytes);
        if heap_pages < ROOMY_HEAP_PAGES || tight.pages >= ROOMY_PAGES {
            return tight;
        }
        Shape::of(slot_bytes, ROOMY_PAGES).filter(Shape::is_thrifty).unwrap_or(tight)
    }

    /// Whether at most an eighth of the pages is lost.
    fn is_thrifty(&self) -> bool {
        let bytes = self.pages * PAGE_BYTES;
        (bytes - self.slots * self.stride) * 8 <= bytes
    }

    pub(crate) fn bitmap_bytes(&self) -> u64 {
        self.slots.div_ceil(64) * 8
    }
}

/// A span in use.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) base: u64,
    pub(crate) shape: Shape,
    /// Slots that may be handed out.
    available: Vec<u64>,
    /// Slots that are freed, but not yet for others to have.
    freeing: Vec<u64>,
    free: u32,
    /// Slots being freed.
    pending: u32,
    /// Where the search for a free slot begins.
    hint: usize,
    /// Whether its class lists it as one that may have a free slot.
    pub(crate) is_listed: bool,
}

impl Span {
    /// A span without a live slot.
    pub(crate) fn empty(base: u64, shape: Shape) -> Span {
        let words = shape.slots.div_ceil(64) as usize;
        let mut available = vec![u64::MAX; words];
        if !shape.slots.is_multiple_of(64) {
            available[words - 1] = (1 << (shape.slots % 64)) - 1;
        }
        Span {
            base,
            shape,
            available,
            freeing: vec![0; words],
            free: shape.slots as u32,
            pending: 0,
            hint: 0,
            is_listed: false,
        }
    }

    /// The span whose bitmap is in `memory`, and the word and bits of slots that it does not have.
    pub(crate) fn read(memory: &Memory, base: u64, shape: Shape) -> (Span, Option<(u64, u64)>) {
        let mut span = Span::empty(base, shape);
        let mut astray = None;
        for (index, available) in span.available.iter_mut().enumerate() {
            let word = base + index as u64 * 8;
            let live = memory.load(word);
            if live & !*available != 0 {
                astray = Some((word, live & !*available));
            }
            span.free -= (live & *available).count_ones();
            *available &= !live;
        }
        (span, astray)
    }

    /// Takes a free slot.
    pub(crate) fn take(&mut self) -> Option<u32> {
        while let Some(word) = self.available.get_mut(self.hint) {
            if *word != 0 {
                let bit = word.trailing_zeros();
                *word &= *word - 1;
                self.free -= 1;
                return Some(self.hint as u32 * 64 + bit);
            }
            self.hint += 1;
        }
        None
    }

    /// Ends the freeing of a slot.
    pub(crate) fn give(&mut self, slot: u32) {
        let (word, mask) = bit(slot);
        assert!(self.freeing[word] & mask != 0, "a slot is freed before it is free");
        self.freeing[word] &= !mask;
        self.available[word] |= mask;
        self.pending -= 1;
        self.free += 1;
        self.hint = self.hint.min(word);
    }

    pub(crate) fn set_freeing(&mut self, slot: u32) {
        let (word, mask) = bit(slot);
        self.freeing[word] |= mask;
        self.pending += 1;
    }

    pub(crate) fn clear_freeing(&mut self, slot: u32) {
        let (word, mask) = bit(slot);
        self.freeing[word] &= !mask;
        self.pending -= 1;
    }

    pub(crate) fn is_live(&self, slot: u32) -> bool {
        let (word, mask) = bit(slot);
        (self.available[word] | self.freeing[word]) & mask == 0
    }

    /// The slot that begins at `handle`, an offset inside the span.
    pub(crate) fn slot_of(&self, handle: u64) -> Option<u32> {
        let inside = handle.checked_sub(self.base + self.shape.first)?;
        let slot = inside / self.shape.stride;
        let begins = slot * self.shape.stride == inside && slot < self.shape.slots;
        begins.then_some(slot as u32)
    }

    pub(crate) fn handle(&self, slot: u32) -> u64 {
        self.base + self.shape.first + u64::from(slot) * self.shape.stride
    }

    /// The word of the bitmap for a slot, and its bit.
    pub(crate) fn mark(&self, slot: u32) -> (u64, u64) {
        let (word, mask) = bit(slot);
        (self.base + word as u64 * 8, mask)
    }

    pub(crate) fn free(&self) -> u32 {
        self.free
    }

    pub(crate) fn live(&self) -> u32 {
        self.shape.slots as u32 - self.free - self.pending
    }

    pub(crate) fn is_empty(&self) -> bool {
        u64::from(self.free) == self.shape.slots
    }
}

fn bit(slot: u32) -> (usize, u64) {
    (slot as usize / 64, 1 << (slot % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::Classes;

    #[test]
    fn every_class_has_a_shape_that_loses_at_most_an_eighth() {
        let classes = Classes::new(&[]);
        for class in 0..classes.len() {
            for shape in [0, 1 << 20].map(|pages| Shape::roomy(classes.slot_bytes(class), pages)) {
                let bytes = shape.pages * PAGE_BYTES;
                assert!((bytes - shape.slots * shape.stride) * 8 <= bytes, "{shape:?}");
                assert!(shape.first + shape.slots * shape.stride <= bytes, "{shape:?}");
                assert!(shape.bitmap_bytes() <= shape.first, "{shape:?}");
                assert_eq!(Shape::of(shape.slot_bytes, shape.pages), Some(shape));
            }
        }
    }

    #[test]
    fn slots_of_whole_lines_begin_at_lines() {
        let shape = Shape::tight(64);
        assert_eq!(shape.first % 64, 0);
    }
}
