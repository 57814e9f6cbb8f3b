//! Who owns which bytes: pages in spans of equal slots and in runs, and what is free.
//!
//! All of this lives in RAM. An open rebuilds it from the page table and the bitmaps, which hold
//! only the allocations. A change of page table and bitmaps is an operation of the transaction's
//! record; here it takes effect in steps.
//!
//! ```text
//! free ──reserve──► live ──begin_free──► freeing ──finish_free──► free
//!                    ▲                    │          (at once, or when no guard
//!                    └────cancel_free─────┘           is older than the free)
//! ```
//!
//! Invariants:
//! 1. A slot or run is handed out only once until it is free again.
//! 2. The bitmaps and the page table in the working memory describe every allocation as those in
//!    the file will, once every transaction in progress has committed.
//! 3. A span is in the log before any allocation in it can be.
//! 4. Until a block's transaction has ended, only that transaction may free the block.
//!
//! Lock: the caller holds one for all of it.

mod classes;
mod newborn;
mod pages;
mod span;

use std::collections::BTreeMap;

pub(crate) use classes::{Classes, SMALL_BYTES_MAX};
pub(crate) use pages::FreePages;
pub(crate) use span::{Shape, Span};

use crate::error::{Error, ErrorKind, Result};
use crate::format::{Operation, PAGE_BYTES, PageEntry};
use crate::memory::Memory;
use newborn::Newborn;

/// The allocator of an open heap.
pub(crate) struct Allocator {
    table_offset: u64,
    data_offset: u64,
    pages: FreePages,
    classes: Classes,
    spans: Vec<Option<Span>>,
    vacant: Vec<u32>,
    /// For each class, by slot size, the spans that may have a free slot.
    open: Vec<Vec<u32>>,
    /// For each page: the span it is of, plus one; zero otherwise.
    owners: Vec<u32>,
    /// Runs by their first page.
    runs: BTreeMap<u64, Run>,
    newborn: Newborn,
    /// Bytes usable in live allocations, and their number.
    pub(crate) live_bytes: u64,
    pub(crate) live: u64,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    bytes: u64,
    is_freeing: bool,
}

/// One allocation, as a transaction remembers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) handle: u64,
    pub(crate) bytes: u64,
    pub(crate) mark: Mark,
}

/// Where the file says that a block is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A bit of a bitmap's word.
    Slot { word: u64, mask: u64 },
    /// The word of the page table at this offset.
    Run { word: u64 },
}

/// A span that must be in the log before its slots are handed out.
pub(crate) struct NewSpan {
    class: usize,
    page: u64,
    shape: Shape,
}

/// What the walk over the page table found that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) page: u64,
    pub(crate) detail: String,
    pub(crate) fixes: Vec<Fix>,
}

/// What makes a flaw go away; the allocation that it was is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fix {
    /// The word is zero.
    Zero { word: u64 },
    /// The bits of the mask are clear.
    Clear { word: u64, mask: u64 },
}

impl Allocator {
    /// Reads the page table and bitmaps of `memory`, which holds `size_bytes`.
    pub(crate) fn read(
        memory: &Memory,
        (table_offset, data_offset, size_bytes): (u64, u64, u64),
        sizes: &[u64],
    ) -> (Allocator, Vec<Flaw>) {
        let classes = Classes::new(sizes);
        let count = (size_bytes - data_offset) / PAGE_BYTES;
        let mut allocator = Allocator {
            table_offset,
            data_offset,
            pages: FreePages::default(),
            open: vec![Vec::new(); classes.len()],
            classes,
            spans: Vec::new(),
            vacant: Vec::new(),
            owners: vec![0; count as usize],
            runs: BTreeMap::new(),
            newborn: Newborn::default(),
            live_bytes: 0,
            live: 0,
        };
        let mut flaws = Vec::new();
        let mut page = 0;
        while page < count {
            page += allocator.read_page(memory, page, count - page, &mut flaws);
        }
        (allocator, flaws)
    }

    /// Takes what begins at `page` into account, at most `left` pages; returns how many.
    fn read_page(&mut self, memory: &Memory, page: u64, left: u64, flaws: &mut Vec<Flaw>) -> u64 {
        let word = self.table_offset + page * 8;
        let value = memory.load(word);
        let mut zero = |page: u64, detail: String| {
            let word = self.table_offset + page * 8;
            flaws.push(Flaw { page, detail, fixes: vec![Fix::Zero { word }] });
        };
        let shape = match PageEntry::decode(value) {
            Some(PageEntry::Span { slot_bytes, pages }) => Shape::of(slot_bytes, pages),
            _ => None,
        };
        let pages = match (PageEntry::decode(value), shape) {
            (Some(PageEntry::Free), _) => {
                let free = |page: &u64| memory.load(self.table_offset + page * 8) == 0;
                let count = 1 + (page + 1..page + left).take_while(free).count() as u64;
                self.pages.give(page, count);
                return count;
            }
            (Some(PageEntry::Run { bytes }), _) => bytes.div_ceil(PAGE_BYTES),
            (Some(PageEntry::Span { .. }), Some(shape)) => shape.pages,
            (Some(PageEntry::Span { .. }) | None, _) => {
                zero(page, format!("the page table holds {value:#x}, which means nothing"));
                return 1;
            }
        };
        if pages > left {
            zero(page, format!("{pages} pages begin where {left} are left"));
            return 1;
        }
        for inside in page + 1..page + pages {
            let value = memory.load(self.table_offset + inside * 8);
            if value != 0 {
                zero(inside, format!("the page table holds {value:#x} inside of something else"));
            }
        }
        match (PageEntry::decode(value), shape) {
            (Some(PageEntry::Span { .. }), Some(shape)) => {
                self.read_span(memory, page, shape, flaws);
            }
            (Some(PageEntry::Run { bytes }), _) => {
                self.runs.insert(page, Run { bytes, is_freeing: false });
                self.live_bytes += bytes;
                self.live += 1;
            }
            _ => {}
        }
        pages
    }

    fn read_span(&mut self, memory: &Memory, page: u64, shape: Shape, flaws: &mut Vec<Flaw>) {
        let base = self.data_offset + page * PAGE_BYTES;
        let (span, astray) = Span::read(memory, base, shape);
        if let Some((word, mask)) = astray {
            let detail = format!("a bitmap marks slots past the last of {}", shape.slots);
            flaws.push(Flaw { page, detail, fixes: vec![Fix::Clear { word, mask }] });
        }
        let used = u64::from(span.live());
        self.live += used;
        self.live_bytes += used * shape.slot_bytes;
        self.add_span(page, span);
    }

    fn add_span(&mut self, page: u64, span: Span) {
        let (pages, slot_bytes, has_free) = (span.shape.pages, span.shape.slot_bytes, span.free());
        let index = match self.vacant.pop() {
            Some(index) => {
                self.spans[index as usize] = Some(span);
                index
            }
            None => {
                self.spans.push(Some(span));
                self.spans.len() as u32 - 1
            }
        };
        for owner in &mut self.owners[page as usize..(page + pages) as usize] {
            *owner = index + 1;
        }
        // A size that was registered once and is so no more has no class: its slots serve nobody.
        if has_free > 0
            && let Some(class) = self.classes.exact(slot_bytes)
        {
            self.open[class].push(index);
            self.span_mut(index).is_listed = true;
        }
    }

    /// A block of at least `bytes`, live and marked so in `memory`; `None` if a span or a run of
    /// pages is wanted first. Its bytes are what they were.
    pub(crate) fn reserve_slot(&mut self, memory: &Memory, bytes: u64) -> Option<Block> {
        let class = self.classes.of(bytes)?;
        while let Some(index) = self.open[class].last().copied() {
            let span = self.span_mut(index);
            let Some(slot) = span.take() else {
                span.is_listed = false;
                self.open[class].pop();
                continue;
            };
            let (word, mask) = span.mark(slot);
            let block = Block {
                handle: span.handle(slot),
                bytes: span.shape.slot_bytes,
                mark: Mark::Slot { word, mask },
            };
            memory.store(word, memory.load(word) | mask);
            self.live += 1;
            self.live_bytes += block.bytes;
            return Some(block);
        }
        None
    }

    /// Pages for a new span for blocks of `bytes`; `None` if there are none.
    pub(crate) fn plan_span(&mut self, bytes: u64) -> Option<NewSpan> {
        let class = self.classes.of(bytes)?;
        let slot_bytes = self.classes.slot_bytes(class);
        let shapes = [Shape::roomy(slot_bytes, self.owners.len() as u64), Shape::tight(slot_bytes)];
        shapes.into_iter().find_map(|shape| {
            let page = self.pages.take(shape.pages)?;
            Some(NewSpan { class, page, shape })
        })
    }

    /// What the log must say of a new span.
    pub(crate) fn describe_span(&self, new: &NewSpan, body: &mut Vec<u8>) {
        let entry = PageEntry::Span { slot_bytes: new.shape.slot_bytes, pages: new.shape.pages };
        let base = self.data_offset + new.page * PAGE_BYTES;
        Operation::Zeros { offset: base, length: new.shape.bitmap_bytes() }.encode(body);
        let offset = self.table_offset + new.page * 8;
        Operation::Bytes { offset, bytes: &entry.encode().to_le_bytes() }.encode(body);
    }

    /// The new span is in the log.
    pub(crate) fn open_span(&mut self, memory: &Memory, new: NewSpan) {
        let NewSpan { class, page, shape } = new;
        let base = self.data_offset + page * PAGE_BYTES;
        memory.fill_zeros(base, shape.bitmap_bytes());
        let entry = PageEntry::Span { slot_bytes: shape.slot_bytes, pages: shape.pages };
        memory.store(self.table_offset + page * 8, entry.encode());
        debug_assert_eq!(self.classes.exact(shape.slot_bytes), Some(class));
        self.add_span(page, Span::empty(base, shape));
    }

    /// The new span did not reach the log.
    pub(crate) fn drop_span(&mut self, new: &NewSpan) {
        self.pages.give(new.page, new.shape.pages);
    }

    /// A run of whole pages for `bytes`, live and marked so in `memory`; `None` if no pages are
    /// left in one piece.
    pub(crate) fn reserve_run(&mut self, memory: &Memory, bytes: u64) -> Option<Block> {
        let page = self.pages.take(bytes.div_ceil(PAGE_BYTES))?;
        self.runs.insert(page, Run { bytes, is_freeing: false });
        let word = self.table_offset + page * 8;
        memory.store(word, PageEntry::Run { bytes }.encode());
        self.live += 1;
        self.live_bytes += bytes;
        let handle = self.data_offset + page * PAGE_BYTES;
        Some(Block { handle, bytes, mark: Mark::Run { word } })
    }

    /// A live block by its handle.
    pub(crate) fn find(&self, handle: u64) -> Option<Block> {
        let page = handle.checked_sub(self.data_offset)? / PAGE_BYTES;
        let owner = *self.owners.get(page as usize)?;
        if owner == 0 {
            let run = self.runs.get(&page).filter(|run| !run.is_freeing)?;
            let is_start = handle.is_multiple_of(PAGE_BYTES);
            let mark = Mark::Run { word: self.table_offset + page * 8 };
            return is_start.then_some(Block { handle, bytes: run.bytes, mark });
        }
        let span = self.span(owner - 1);
        let slot = span.slot_of(handle).filter(|slot| span.is_live(*slot))?;
        let (word, mask) = span.mark(slot);
        Some(Block { handle, bytes: span.shape.slot_bytes, mark: Mark::Slot { word, mask } })
    }

    /// The block was given to transaction `by`, which alone may free it until it has ended.
    pub(crate) fn bear(&mut self, block: &Block, by: u64) {
        self.newborn.bear(block.handle, by);
    }

    /// The transaction that allocated the block has ended, or does without it.
    pub(crate) fn let_go(&mut self, block: &Block) {
        self.newborn.forget(block.handle);
    }

    /// A live block will be freed when transaction `by` commits: nobody else may free it. `None`
    /// too where another transaction that has not ended allocated it.
    pub(crate) fn begin_free(&mut self, handle: u64, by: u64) -> Option<Block> {
        let block = self.find(handle)?;
        if self.newborn.is_of_another(handle, by) {
            return None;
        }
        match self.owner_of(handle) {
            Some((index, slot)) => self.span_mut(index).set_freeing(slot),
            None => self.run_mut(handle).is_freeing = true,
        }
        self.live -= 1;
        self.live_bytes -= block.bytes;
        Some(block)
    }

    /// The transaction that freed it did not commit.
    pub(crate) fn cancel_free(&mut self, block: &Block) {
        match self.owner_of(block.handle) {
            Some((index, slot)) => self.span_mut(index).clear_freeing(slot),
            None => self.run_mut(block.handle).is_freeing = false,
        }
        self.live += 1;
        self.live_bytes += block.bytes;
    }

    /// The transaction committed: the marks go, the bytes stay out of use until
    /// [`Allocator::finish_free`].
    pub(crate) fn unmark(&mut self, memory: &Memory, block: &Block) {
        match block.mark {
            Mark::Slot { word, mask } => memory.store(word, memory.load(word) & !mask),
            Mark::Run { word } => memory.store(word, 0),
        }
    }

    /// A block that is being freed may be handed out again.
    pub(crate) fn finish_free(&mut self, block: &Block) {
        match self.owner_of(block.handle) {
            Some((index, slot)) => {
                let span = self.span_mut(index);
                span.give(slot);
                let (was_listed, slot_bytes) = (span.is_listed, span.shape.slot_bytes);
                if !was_listed && let Some(class) = self.classes.exact(slot_bytes) {
                    self.span_mut(index).is_listed = true;
                    self.open[class].push(index);
                }
            }
            None => {
                let page = (block.handle - self.data_offset) / PAGE_BYTES;
                self.runs.remove(&page);
                self.pages.give(page, block.bytes.div_ceil(PAGE_BYTES));
            }
        }
    }

    /// Spans without a live slot; what the log must say when they go is appended to `body`.
    pub(crate) fn list_empty_spans(&self, body: &mut Vec<u8>) -> Vec<u32> {
        let mut empty = Vec::new();
        for (index, span) in self.spans.iter().enumerate() {
            if let Some(span) = span.as_ref().filter(|span| span.is_empty()) {
                let offset = self.table_offset + self.page_of(span.base) * 8;
                Operation::Bytes { offset, bytes: &[0; 8] }.encode(body);
                empty.push(index as u32);
            }
        }
        empty
    }

    /// The log says that these spans are gone: their pages are free.
    pub(crate) fn free_spans(&mut self, memory: &Memory, indexes: &[u32]) {
        for index in indexes {
            let Some(span) = self.spans[*index as usize].take() else { continue };
            if let Some(class) = self.classes.exact(span.shape.slot_bytes) {
                self.open[class].retain(|open| open != index);
            }
            let page = self.page_of(span.base);
            self.owners[page as usize..(page + span.shape.pages) as usize].fill(0);
            self.vacant.push(*index);
            memory.store(self.table_offset + page * 8, 0);
            self.pages.give(page, span.shape.pages);
        }
    }

    /// Whether blocks of `bytes` are slots of spans.
    pub(crate) fn is_small(&self, bytes: u64) -> bool {
        self.classes.of(bytes).is_some()
    }

    /// Whether blocks of `bytes` are exactly so large.
    pub(crate) fn is_exact(&self, bytes: u64) -> bool {
        self.classes.exact(bytes).is_some()
    }

    /// The heap ends at `size_bytes` now: more pages.
    pub(crate) fn extend(&mut self, size_bytes: u64) {
        let before = self.owners.len() as u64;
        let count = (size_bytes - self.data_offset) / PAGE_BYTES;
        self.owners.resize(count as usize, 0);
        self.pages.give(before, count - before);
    }

    /// Takes free pages at the end out of use, so that at least `pages` are left; returns how many
    /// are left.
    pub(crate) fn cut(&mut self, pages: u64) -> u64 {
        let count = self.pages.cut(pages, self.owners.len() as u64);
        self.owners.truncate(count as usize);
        count
    }

    /// Adds a size of which blocks are exactly as large.
    pub(crate) fn register(&mut self, bytes: u64) {
        if self.classes.register(bytes) {
            self.open.push(Vec::new());
        }
    }

    /// Bytes in free pages, and in the largest run of them.
    pub(crate) fn free_bytes(&self) -> (u64, u64) {
        (self.pages.total() * PAGE_BYTES, self.pages.largest() * PAGE_BYTES)
    }

    /// Bytes in free slots of spans.
    pub(crate) fn free_slot_bytes(&self) -> u64 {
        let spans = self.spans.iter().flatten();
        spans.map(|span| u64::from(span.free()) * span.shape.stride).sum()
    }

    /// Visits every live block, in order of handles within spans, spans before runs.
    pub(crate) fn visit(&self, mut visit: impl FnMut(u64, u64)) {
        for span in self.spans.iter().flatten() {
            for slot in (0..span.shape.slots as u32).filter(|slot| span.is_live(*slot)) {
                visit(span.handle(slot), span.shape.slot_bytes);
            }
        }
        for (page, run) in self.runs.iter().filter(|(_, run)| !run.is_freeing) {
            visit(self.data_offset + page * PAGE_BYTES, run.bytes);
        }
    }

    /// Handles of live blocks from `from` on, ascending, about `most` of them: the rest of a span
    /// comes along.
    pub(crate) fn list_from(&self, from: u64, most: usize) -> Vec<u64> {
        let mut found = Vec::new();
        let mut page = from.saturating_sub(self.data_offset) / PAGE_BYTES;
        while found.len() < most
            && let Some(owner) = self.owners.get(page as usize).copied()
        {
            if owner > 0 {
                let span = self.span(owner - 1);
                let live = (0..span.shape.slots as u32).filter(|slot| span.is_live(*slot));
                found.extend(live.map(|slot| span.handle(slot)).filter(|handle| *handle >= from));
                page = self.page_of(span.base) + span.shape.pages;
                continue;
            }
            let handle = self.data_offset + page * PAGE_BYTES;
            let run = self.runs.get(&page);
            if run.is_some_and(|run| !run.is_freeing) && handle >= from {
                found.push(handle);
            }
            page += run.map_or(1, |run| run.bytes.div_ceil(PAGE_BYTES));
        }
        found
    }

    fn page_of(&self, offset: u64) -> u64 {
        (offset - self.data_offset) / PAGE_BYTES
    }

    fn owner_of(&self, handle: u64) -> Option<(u32, u32)> {
        let page = (handle - self.data_offset) / PAGE_BYTES;
        let owner = self.owners[page as usize];
        let slot = (owner > 0).then(|| self.span(owner - 1).slot_of(handle))?;
        Some((owner - 1, slot.expect("blocks are only made of handles that are slots")))
    }

    fn run_mut(&mut self, handle: u64) -> &mut Run {
        let page = (handle - self.data_offset) / PAGE_BYTES;
        self.runs.get_mut(&page).expect("a block outside spans is a run until it is free")
    }

    fn span(&self, index: u32) -> &Span {
        self.spans[index as usize].as_ref().expect("owners name spans that are in use")
    }

    fn span_mut(&mut self, index: u32) -> &mut Span {
        self.spans[index as usize].as_mut().expect("owners and lists name spans that are in use")
    }
}

/// The error of an allocation for which there is no room.
pub(crate) fn full(name: &str, bytes: u64, largest: u64) -> Error {
    let detail = format!(
        "{name}: no room for {bytes} bytes; the largest free run of pages has {largest} bytes"
    );
    Error::new(ErrorKind::Full, detail)
}

/// Whether `bytes` can be asked for at all.
pub(crate) fn check_size(name: &str, bytes: u64, limit: u64) -> Result<()> {
    if bytes == 0 {
        let detail = format!("{name}: an allocation of 0 bytes; expected at least 1");
        return Err(Error::new(ErrorKind::InvalidInput, detail));
    }
    if bytes > limit { Err(full(name, bytes, 0)) } else { Ok(()) }
}
